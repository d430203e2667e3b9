/* Rows of windows that change what they said, joined on the windows' ends: no side changes a window any more when time
 * has passed its end and the lateness, so that its rows need not be kept. They go when there are as many rows again as
 * the last look has left, which costs each row a look or two. */
#include <yyjson.h>

#include "operator/event_clock_int.h"
#include "operator/join_int.h"

enum { ROWS_LEFT_ALONE = 1024 };

/* Where the side's table has a column: of a counted side there are only keys. */
static bool field_of(const ck_join_side *s, uint64_t column, uint32_t *out) {
    if (column >= s->width) return false;
    for (uint32_t k = 0; k < s->keys.count; k++) {
        if (s->keys.columns[k] != column) continue;
        *out = k;
        return true;
    }
    *out = s->field_of[column];
    return !s->counted;
}

ck_status ck_join_windows_read(ck_join_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    static const char *const members[2] = {"left_window_end", "right_window_end"};
    uint64_t lateness, columns[2];
    bool has[2];
    CK_TRY(ck_params_u64(spec, root, "lateness_us", &lateness, &has[0], err));
    for (uint32_t i = 0; i < 2; i++) CK_TRY(ck_params_u64(spec, root, members[i], &columns[i], &has[i], err));
    if (!has[0] && !has[1]) return CK_OK;
    bool times = has[0] && has[1] && lateness <= (uint64_t)CK_EVENT_TIME_MAX && p->build == CK_JOIN_BOTH;
    for (uint32_t i = 0; times && i < 2; i++) {
        times = field_of(&p->sides[i], columns[i], &p->sides[i].window_end);
        if (!times) break;
        const ck_type *t = p->sides[i].schema->fields[columns[i]].type;
        times = t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ;
    }
    if (!times)
        return ck_fail(err, CK_INVALID, "%s (%s): window ends are TIMESTAMP columns of two sides that go on",
                       spec->type, spec->uid);
    p->windowed = true;
    p->lateness_us = (int64_t)lateness;
    return CK_OK;
}

/* Some rows of a side; *end: they were the last. */
static ck_status drop_some(ck_join *j, const ck_join_table *t, bool *end, ck_op_ctx *ctx) {
    const ck_row_field *f = &ck_table_layout(t->table)->fields[t->side->window_end];
    uint32_t n = ck_table_scan_next(t->table, &j->sweep.scan, j->rows, CK_BATCH_ROWS_MAX), gone = 0;
    *end = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        bool over = !ck_row_null(j->rows[i], f->null_bit) &&
                    ck_event_clock_passed(j->sweep.to, ck_row_i64(j->rows[i], f->offset) + j->plan.lateness_us);
        j->rows[gone] = j->rows[i];
        gone += over;
    }
    return gone ? ck_table_erase(t->table, j->rows, gone, ctx->error) : CK_OK;
}

ck_status ck_join_windows_come_to(ck_join *j, int64_t watermark, ck_op_ctx *ctx) {
    ck_join_sweep *s = &j->sweep;
    if (!s->on) {
        uint64_t rows = ck_table_row_count(j->tables[0].table) + ck_table_row_count(j->tables[1].table);
        if (rows < 2 * s->left + ROWS_LEFT_ALONE) return CK_OK;
        *s = (ck_join_sweep){.on = true, .to = watermark};
    }
    for (; s->side < 2; s->side++, s->scan = (ck_table_scan){0}) {
        bool end;
        CK_TRY(drop_some(j, &j->tables[s->side], &end, ctx));
        if (!end) return CK_MORE;
    }
    s->left = ck_table_row_count(j->tables[0].table) + ck_table_row_count(j->tables[1].table);
    s->on = false;
    return CK_OK;
}
