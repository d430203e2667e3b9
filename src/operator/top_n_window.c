/* A top-N whose partitions are of windows. Rows carry their window, and a partition is over when the watermark has
 * passed its window's end: over append input its top is said then, once, so that nothing is taken back; over input that
 * changes (a window with allowed lateness) it has been said as it changed. Either way the partition goes, and rows that
 * come for it later are late. */
#include "operator/top_n_int.h"

/* The last instant at which something of the window may come. */
static int64_t last_of(const ck_top *op, int64_t end) { return end - 1 + op->plan.lateness_us; }

static int64_t first_due(const void *arg, const ck_row *row) {
    const ck_top *op = arg;
    return last_of(op, ck_row_i64(row, op->windows.end_at));
}

ck_status ck_top_windows_open(ck_top *op, ck_op_ctx *ctx) {
    ck_top_windows *w = &op->windows;
    CK_TRY(ck_event_clock_open(&w->clock, false, ctx));
    w->end_at = ck_table_layout(op->table)->fields[op->plan.field_of[op->plan.window_end]].offset;
    return ck_partition_timers_restore(&w->timers, op->table, op->partitions, first_due, op, ctx);
}

/* ---- rows ---- */

typedef enum place { ON_TIME, LATE, BAD } place;

static place place_of(const ck_top *op, const ck_column *ends, uint32_t row) {
    if (ck_column_is_null(ends, row)) return BAD;
    int64_t end = ends->i64[row];
    if (end < CK_EVENT_TIME_MIN || end > CK_WINDOW_END_MAX) return BAD;
    return last_of(op, end) <= op->windows.clock.watermark ? LATE : ON_TIME;
}

ck_status ck_top_windows_on_time(ck_top *op, ck_batch *b, ck_batch **out, ck_op_ctx *ctx) {
    const ck_column *ends = b->columns[op->plan.window_end];
    uint16_t *sel = ck_arena_array(ctx->arena, b->sel_count + 1u, sizeof *sel);
    uint16_t *late = ck_arena_array(ctx->arena, b->sel_count + 1u, sizeof *late);
    uint32_t n = 0, late_count = 0, bad = 0;
    *out = NULL;
    if (!sel || !late) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *sel);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        place p = place_of(op, ends, row);
        if (p == ON_TIME) sel[n++] = (uint16_t)row;
        if (p == LATE) late[late_count++] = (uint16_t)row;
        bad += p == BAD;
    }
    if (bad) ck_op_count(ctx, "bad_time_rows", bad);
    CK_TRY(ck_late_drop(&op->plan.late, b, late, late_count, op->windows.clock.watermark, ctx));
    if (n == 0) return CK_OK;
    *out = n == b->sel_count ? ck_batch_ref(b) : ck_batch_select(b, sel, n);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
}

ck_status ck_top_windows_note(ck_top *op, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_column *ends = b->columns[op->plan.window_end];
    for (uint32_t k = 0; k < b->sel_count; k++)
        if (ck_partition_timers_set(&op->windows.timers, op->partitions[k], last_of(op, ends->i64[ck_batch_row(b, k)])) !=
            CK_OK)
            return ck_nomem(ctx->error, op->mem, b->sel_count * sizeof(ck_partition_timer));
    return CK_OK;
}

/* ---- time ---- */

/* A partition that changes may have gone with its last row, and its number may be another one's by now. */
bool ck_top_windows_next(ck_top *op, ck_partition *p) {
    ck_top_windows *w = &op->windows;
    ck_row *row;
    while (w->over_count < CK_BATCH_ROWS_MAX && ck_partition_timers_take(&w->timers, w->target, p)) {
        if (!ck_partition_first(op->table, *p, &row)) continue;
        int64_t due = last_of(op, ck_row_i64(row, w->end_at));
        if (due > w->target) {
            ck_status s = ck_partition_timers_set(&w->timers, *p, due); /* where one was taken there is room */
            CK_ASSERT(s == CK_OK);
            continue;
        }
        w->over[w->over_count++] = *p;
        return true;
    }
    return false;
}

ck_status ck_top_windows_drop(ck_top *op, ck_op_ctx *ctx) {
    ck_top_windows *w = &op->windows;
    for (uint32_t i = 0; i < w->over_count; i++)
        CK_TRY(ck_partition_erase_range(op->table, w->over[i], (ck_view){0}, (ck_view){0}, NULL, ctx->error));
    w->over_count = 0;
    return CK_OK;
}

/* What has been said as it changed goes without a word. */
static ck_status forget(ck_top *op, ck_op_ctx *ctx) {
    ck_partition p;
    if (op->touched.count > 0 || op->flush.running) {
        CK_TRY(ck_top_flush_touched(op, ctx));
        return CK_MORE;
    }
    while (ck_top_windows_next(op, &p)) {
    }
    bool more = op->windows.over_count == CK_BATCH_ROWS_MAX;
    CK_TRY(ck_top_windows_drop(op, ctx));
    return more ? CK_MORE : CK_OK;
}

ck_status ck_top_windows_come_to(ck_top *op, int64_t watermark, ck_op_ctx *ctx) {
    ck_top_windows *w = &op->windows;
    if (!w->coming) {
        if (watermark <= w->clock.watermark) return CK_OK;
        w->coming = true;
        w->target = watermark;
    }
    CK_TRY(op->plan.at_end ? ck_top_emit_over(op, ctx) : forget(op, ctx));
    w->clock.watermark = w->target;
    w->coming = false;
    return CK_OK;
}
