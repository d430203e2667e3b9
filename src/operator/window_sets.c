/* Sets of DISTINCT values in windows made of slices. Each slice has the set of its values; a set goes into another as
 * if its values were rows that come. Over input that changes, and in a hop that rolls, a value counts in it as often as
 * it does in the slices, and is there while that is more than 0: so it can be taken out again. Groups are looked for
 * only of values that have become new, or have gone. */
#include "operator/window_int.h"

/* A column that two calls look at is made once. */
static void set_column(ck_batch *b, uint32_t at, ck_column **c) {
    if (b->columns[at])
        ck_column_unref(c);
    else
        ck_batch_set_column(b, at, c);
}

/* Values in op->found as rows of the input, as far as the set's calls look at them behind their filters. */
static ck_status as_input(ck_window_agg *op, const ck_distinct_plan *d, const ck_table *set, ck_row *const *rows,
                          uint32_t n, int64_t end, ck_batch **out, ck_op_ctx *ctx) {
    uint32_t keys = op->plan.keys.count, skip = op->plan.side_keys.count - d->spec.count + 1;
    ck_batch *b = *out = ck_batch_new(ctx->mem, op->ends_column + 1, n, false, false);
    ck_column *c = b ? ck_column_new(ctx->mem, CK_PHYS_I64, n) : NULL;
    if (!c) return ck_nomem(ctx->error, ctx->mem, n * sizeof(int64_t));
    for (uint32_t i = 0; i < n; i++) c->i64[i] = end;
    set_column(b, op->ends_column, &c);
    for (uint32_t i = 0; i < d->spec.count; i++) { /* behind the keys stands the slice's end, then the value */
        CK_TRY(ck_window_field_of(set, rows, n, i < keys ? i : i + skip, d->spec.types[i], &c, ctx));
        set_column(b, d->spec.columns[i], &c);
    }
    return CK_OK;
}

/* What some values of a slice change in the set they go into. */
typedef struct changes {
    uint32_t n;      /* those that change something */
    uint16_t *at;    /* which */
    uint64_t *bits;  /* for which filters, by number; one filter: 1 */
    int8_t *weights; /* NULL: they come */
    ck_row **values; /* scratch, as long as the values */
    uint8_t *fresh;
} changes;

static ck_status changes_new(changes *c, uint32_t n, bool weighted, ck_op_ctx *ctx) {
    *c = (changes){.at = ck_arena_alloc(ctx->arena, n * sizeof *c->at),
                   .bits = ck_arena_alloc(ctx->arena, n * sizeof *c->bits),
                   .weights = weighted ? ck_arena_alloc(ctx->arena, n) : NULL,
                   .values = ck_arena_alloc(ctx->arena, n * sizeof *c->values),
                   .fresh = ck_arena_alloc(ctx->arena, n)};
    bool all = c->at && c->bits && (c->weights || !weighted) && c->values && c->fresh;
    return all ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof *c->bits);
}

static uint32_t values_at(const ck_table *set) {
    const ck_row_layout *layout = ck_table_layout(set);
    return layout->fields[layout->value_first].offset;
}

/* Counts them in, or out of, the set. from_at: where a value of the slice has how often it is there, or -1: it is; or
 * whether it has passed the filter. */
static void count_changes(changes *c, ck_row *const *from, uint32_t n, int sign, int64_t from_at, bool of_filter,
                          uint32_t at) {
    for (uint32_t k = 0; k < n; k++) {
        int64_t count = from_at < 0 ? 1
                        : of_filter ? ck_row_bool(from[k], (uint32_t)from_at)
                                    : ck_row_i64(from[k], (uint32_t)from_at);
        int64_t old = ck_row_i64(c->values[k], at), now = old + sign * count;
        ck_row_set_i64(c->values[k], at, now);
        c->at[c->n] = (uint16_t)k;
        c->bits[c->n] = 1;
        c->weights[c->n] = now > 0 ? 1 : -1;
        c->n += (old > 0) != (now > 0);
    }
}

/* A byte for each filter that the value has passed. */
static void filter_changes(changes *c, ck_row *const *from, uint32_t n, uint32_t at, uint32_t filters) {
    for (uint32_t k = 0; k < n; k++) {
        uint64_t bits = 0;
        for (uint32_t m = 0; m < filters; m++) {
            if (!ck_row_bool(from[k], at + m)) continue;
            if (!ck_row_bool(c->values[k], at + m)) bits |= 1ULL << m;
            ck_row_set_bool(c->values[k], at + m, true);
        }
        c->at[c->n] = (uint16_t)k;
        c->bits[c->n] = bits;
        c->n += bits != 0;
    }
}

static void fresh_changes(changes *c, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        c->at[c->n] = (uint16_t)k;
        c->bits[c->n] = 1;
        c->n += c->fresh[k];
    }
}

/* Values in op->found in the set. */
static ck_status find_values(ck_window_agg *op, const ck_distinct_plan *d, ck_table *set, const ck_table *from,
                             uint32_t n, int64_t to_end, changes *c, ck_op_ctx *ctx) {
    ck_batch *b;
    if (ck_table_takes_rows(set, from))
        return ck_table_upsert_rows(set, from, op->found, n, c->values, c->fresh, ctx->error);
    ck_status s = as_input(op, d, from, op->found, n, to_end, &b, ctx);
    if (s == CK_OK) ck_key_hash(&d->spec, b, ck_table_seed(set), op->hashes);
    ck_keys keys = {&d->spec, b, op->hashes, n};
    if (s == CK_OK) s = ck_table_upsert(set, &keys, c->values, c->fresh, ctx->error);
    ck_batch_unref(&b);
    return s;
}

/* Puts them into the set of the bucket. */
static ck_status find_changes(ck_window_agg *op, const ck_window_sets *to, const ck_table *from, uint32_t n, int sign,
                              int64_t to_end, changes *c, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &to->plan->distincts[to->set];
    ck_table *set;
    CK_TRY(changes_new(c, n, to->plan->retract, ctx));
    CK_TRY(ck_table_bucket(to->sets[to->set], to_end, true, &set, ctx->error));
    CK_TRY(find_values(op, d, set, from, n, to_end, c, ctx));
    if (to->plan->retract) {
        int64_t from_at = op->plan.retract ? (int64_t)values_at(from) : -1;
        if (to->member >= 0) from_at = (int64_t)values_at(from) + to->member;
        count_changes(c, op->found, n, sign, from_at, to->member >= 0, values_at(set));
        return ck_rows_erase_zero(set, c->values, n, values_at(set), ctx);
    }
    if (d->member_count > 1)
        filter_changes(c, op->found, n, values_at(set), d->member_count);
    else
        fresh_changes(c, n);
    return CK_OK;
}

/* Those of one filter. */
static ck_status lane_of(const changes *c, uint32_t member, ck_row **groups, ck_lane *out, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_alloc(ctx->arena, c->n * sizeof *rows);
    uint16_t *at = ck_arena_alloc(ctx->arena, c->n * sizeof *at);
    if (!rows || !at) return ck_nomem(ctx->error, ctx->mem, c->n * sizeof *rows);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        rows[n] = groups[i];
        at[n] = (uint16_t)i;
        n += (uint32_t)(c->bits[i] >> member & 1);
    }
    *out = (ck_lane){rows, at, c->weights, n};
    return CK_OK;
}

/* What has changed into the groups; b: the values that did, in their order. */
static ck_status count_values(ck_window_agg *op, const ck_window_sets *sets, const ck_batch *b, const changes *c,
                              int64_t to_end, ck_op_ctx *ctx) {
    const ck_group_plan *p = sets->plan;
    const ck_distinct_plan *d = &p->distincts[sets->set];
    ck_table *to;
    CK_TRY(ck_table_bucket(sets->table, to_end, true, &to, ctx->error));
    for (uint32_t i = 0; i < p->acc_count; i++) p->accs[i]->table = to;
    ck_key_hash(&op->bucket_keys, b, ck_table_seed(to), op->hashes);
    ck_keys keys = {&op->bucket_keys, b, op->hashes, c->n};
    ck_status s = ck_table_upsert(to, &keys, op->found, NULL, ctx->error);
    for (uint32_t m = 0; s == CK_OK && m < d->member_count; m++) {
        ck_lane lane = {op->found, NULL, c->weights, c->n};
        if (d->member_count > 1) s = lane_of(c, m, op->found, &lane, ctx);
        for (uint32_t i = 0; s == CK_OK && lane.n && i < p->acc_count; i++) {
            ck_acc *a = p->accs[i];
            if (a->distinct != sets->set || a->lane != d->members[m].lane || a->shares_side) continue;
            s = a->update(a, &lane, b, &p->side_keys, ctx);
        }
    }
    if (s == CK_OK && p != &op->plan) { /* there a group is of as many rows as it has values */
        const ck_lane lane = {op->found, NULL, c->weights, c->n};
        s = p->row_count->update(p->row_count, &lane, b, &p->side_keys, ctx);
        if (s == CK_OK) s = ck_rows_erase_zero(to, op->found, c->n, p->row_count->offset[0], ctx);
    }
    return s;
}

static ck_status merge_values(ck_window_agg *op, const ck_window_sets *to, int sign, const ck_table *from, uint32_t n,
                              int64_t to_end, ck_op_ctx *ctx) {
    ck_batch *b;
    changes c;
    CK_TRY(find_changes(op, to, from, n, sign, to_end, &c, ctx));
    if (c.n == 0) return CK_OK;
    for (uint32_t i = 0; i < c.n; i++) op->found[i] = op->found[c.at[i]];
    ck_status s = as_input(op, &to->plan->distincts[to->set], from, op->found, c.n, to_end, &b, ctx);
    if (s == CK_OK) s = count_values(op, to, b, &c, to_end, ctx);
    ck_batch_unref(&b);
    return s;
}

ck_status ck_window_count_values(ck_window_agg *op, const ck_window_sets *sets, const ck_table *from,
                                 ck_row *const *rows, uint32_t n, int sign, int64_t to_end, ck_op_ctx *ctx) {
    changes c = {.n = n, .weights = ck_arena_alloc(ctx->arena, n + 1u)};
    ck_batch *b;
    if (n == 0) return CK_OK;
    if (!c.weights) return ck_nomem(ctx->error, ctx->mem, n);
    memset(c.weights, sign, n);
    ck_status s = as_input(op, &sets->plan->distincts[sets->set], from, rows, n, to_end, &b, ctx);
    if (s == CK_OK) s = count_values(op, sets, b, &c, to_end, ctx);
    ck_batch_unref(&b);
    return s;
}

ck_status ck_window_merge_set(ck_window_agg *op, const ck_window_sets *to, int sign, int64_t slice, int64_t to_end,
                              uint32_t *merged, ck_op_ctx *ctx) {
    ck_table *from;
    CK_TRY(ck_table_bucket(op->sets[to->from], slice, false, &from, ctx->error));
    while (from) {
        if (*merged >= CK_WINDOW_MERGED_ROWS) return CK_MORE;
        uint32_t n = ck_table_scan_next(from, &op->set_scan, op->found, CK_BATCH_ROWS_MAX);
        if (n == 0) break;
        CK_TRY(merge_values(op, to, sign, from, n, to_end, ctx));
        *merged += n;
    }
    op->set_scan = (ck_table_scan){0};
    return CK_OK;
}

ck_status ck_window_merge_sets(ck_window_agg *op, int sign, int64_t slice, int64_t to_end, uint32_t *merged,
                               ck_op_ctx *ctx) {
    for (; op->set < op->plan.distinct_count; op->set++) {
        if (op->listing) {
            CK_TRY(ck_window_lists_merge(op, op->set, sign, slice, merged, ctx));
            continue;
        }
        const ck_window_sets to = {&op->plan, op->table, op->sets, op->set, op->set, -1};
        CK_TRY(ck_window_merge_set(op, &to, sign, slice, to_end, merged, ctx));
    }
    return CK_OK;
}
