/* Results made of all values of a group in their order: one text, an array, the first or last, the one at a fraction of
 * the way. With DISTINCT a value counts once: the order is then that of the values. */
#include "operator/group_int.h"

#include <math.h>

#include "expr/approx.h"

enum { TEXT_BYTES_MAX = CK_RECORD_BYTES_MAX, ELEMENTS_MAX = 1 << 22 };

typedef struct making {
    const ck_result *r;
    const ck_groups *groups;
    ck_values_walk walk;
    ck_column_builder *to;
    ck_bytes text; /* of the group in hand */
    ck_op_ctx *ctx;
} making;

static ck_status too_large(making *m, uint32_t group, const char *limit) {
    return ck_acc_over_limit(m->r->text, limit, m->groups, group, m->ctx);
}

static ck_status concat(making *m, uint32_t group) {
    const ck_acc *a = m->r->parts[0];
    ck_view separator = m->r->separator;
    ck_row *row;
    bool any = false;
    ck_bytes_clear(&m->text);
    for (int64_t count; ck_values_next(&m->walk, &row, &count);) {
        ck_view v = ck_table_str(a->side_table, row, a->side_field);
        if (m->r->distinct) count = 1;
        for (; count > 0; count--, any = true) {
            if (m->text.n + separator.n + v.n > TEXT_BYTES_MAX) return too_large(m, group, "64 MiB");
            if (any) CK_TRY(ck_bytes_view(&m->text, separator));
            CK_TRY(ck_bytes_view(&m->text, v));
        }
    }
    return any ? ck_build_str(m->to, m->text.p ? m->text.p : "", m->text.n) : ck_build_null(m->to);
}

static ck_status list(making *m, uint32_t group) {
    const ck_acc *a = m->r->parts[0];
    ck_row *row;
    uint32_t n = 0;
    for (int64_t count; ck_values_next(&m->walk, &row, &count);) {
        if (m->r->distinct) count = 1;
        for (; count > 0; count--) {
            if (n++ == ELEMENTS_MAX) return too_large(m, group, "4194304 elements");
            CK_TRY(ck_values_build(a, row, &m->to->children[0]));
        }
    }
    return n ? ck_build_end(m->to) : ck_build_null(m->to);
}

static ck_status edge(making *m) {
    ck_row *row;
    int64_t count;
    bool last = m->r->finish == CK_FINISH_LAST_VALUE;
    bool there = last ? ck_values_last(&m->walk, &row) : ck_values_next(&m->walk, &row, &count);
    return there ? ck_values_build(m->r->parts[0], row, m->to) : ck_build_null(m->to);
}

/* ---- percentiles ---- */

static ck_status count_all(making *m, uint32_t group, uint64_t *n) {
    ck_row *row;
    *n = 0;
    for (int64_t count; ck_values_next(&m->walk, &row, &count);) *n += m->r->distinct ? 1 : (uint64_t)count;
    return ck_values_open(&m->walk, group, m->ctx); /* from the start again */
}

/* The value of a rank, counted from 0; *left: how many of the next ranks have it, too. */
static const ck_row *value_at(making *m, uint64_t rank, uint64_t *left) {
    ck_row *row = NULL;
    uint64_t passed = 0;
    for (int64_t count; ck_values_next(&m->walk, &row, &count);) {
        passed += m->r->distinct ? 1 : (uint64_t)count;
        if (passed > rank) break;
    }
    *left = passed - rank - 1;
    return row;
}

static double number_in(const ck_acc *a, const ck_row *row) {
    return ck_row_f64(row, ck_table_layout(a->side_table)->fields[a->side_field].offset);
}

static ck_status continuous(making *m, uint64_t n) {
    const ck_acc *a = m->r->parts[0];
    double at = m->r->fraction * (double)(n - 1), below = floor(at), part = at - below;
    uint64_t left;
    double low = number_in(a, value_at(m, (uint64_t)below, &left)), high = low;
    ck_row *next;
    int64_t count;
    if (part > 0 && left == 0 && ck_values_next(&m->walk, &next, &count)) high = number_in(a, next);
    return ck_build_f64(m->to, low == high ? low : low + (high - low) * part);
}

static ck_status discrete(making *m, uint64_t n) {
    const ck_acc *a = m->r->parts[0];
    double reached = ceil(m->r->fraction * (double)n);
    uint64_t rank = reached < 1 ? 0 : reached > (double)n ? n - 1 : (uint64_t)reached - 1, left;
    const ck_row *row = value_at(m, rank, &left);
    if (m->r->finish == CK_FINISH_PERCENTILE_DISC) return ck_values_build(a, row, m->to);
    return ck_build_f64(m->to,
                        ck_approx_value(ck_row_i64(row, ck_table_layout(a->side_table)->fields[a->side_field].offset)));
}

static ck_status percentile(making *m, uint32_t group) {
    uint64_t n;
    CK_TRY(count_all(m, group, &n));
    if (n == 0) return ck_build_null(m->to);
    return m->r->finish == CK_FINISH_PERCENTILE_CONT ? continuous(m, n) : discrete(m, n);
}

/* ---- all groups ---- */

static ck_status one(making *m, uint32_t group) {
    CK_TRY(ck_values_open(&m->walk, group, m->ctx));
    switch (m->r->finish) {
    case CK_FINISH_CONCAT: return concat(m, group);
    case CK_FINISH_LIST: return list(m, group);
    case CK_FINISH_FIRST_VALUE:
    case CK_FINISH_LAST_VALUE: return edge(m);
    default: return percentile(m, group);
    }
}

ck_status ck_group_ordered(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    ck_column_builder builder;
    making m = {.r = r, .groups = g, .to = &builder, .ctx = ctx};
    *out = NULL;
    CK_TRY(ck_column_builder_init(&builder, ctx->mem, r->type, g->n));
    ck_bytes_init(&m.text, ctx->mem, SIZE_MAX);
    ck_status s = ck_values_begin(&m.walk, r->parts[0], g, ctx);
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) s = one(&m, i);
    ck_values_end(&m.walk);
    if (s == CK_OK && !(*out = ck_column_builder_finish(&builder))) s = CK_NOMEM;
    ck_bytes_destroy(&m.text);
    ck_column_builder_destroy(&builder);
    return s == CK_NOMEM ? ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_strview)) : s;
}
