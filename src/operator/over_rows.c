/* Rows as they come: each gets its place among the rows of its key. */
#include "operator/over_int.h"

ck_view ck_over_time_key(int64_t time, char *out) { return ck_instant_key(time, out); }

/* ---- which rows are taken ---- */

/* Of a rank with a limit: no row of the key can be said any more. */
static bool is_full(const ck_over *op, const ck_row *key) {
    const ck_over_plan *p = &op->plan;
    if (!p->limit || !key) return false;
    int field = p->calls[0].fn == CK_OVER_DENSE_RANK ? CK_OVER_GROUPS : CK_OVER_SEEN;
    return (uint64_t)ck_over_get(op, key, field) >= p->limit;
}

static ck_status find_keys(ck_over *op, const ck_batch *b, ck_op_ctx *ctx) {
    ck_key_hash(&op->plan.keys, b, ck_table_seed(op->keyed), op->hashes);
    ck_keys keys = {&op->plan.keys, b, op->hashes, b->sel_count};
    return ck_table_find(op->keyed, &keys, op->found, ctx->error);
}

/* Rows with a time that has not been passed into op->sel. */
static ck_status choose(ck_over *op, const ck_batch *b, uint32_t *count, ck_op_ctx *ctx) {
    const ck_over_plan *p = &op->plan;
    bool timed = p->by == CK_OVER_EVENT_TIME;
    uint32_t n = 0, bad = 0, late = 0;
    if (p->limit) CK_TRY(find_keys(op, b, ctx));
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us = 0;
        if (timed && !ck_window_row_time(&p->time, b->columns[p->time.time], row, &us)) {
            bad++;
        } else if (timed && us <= op->clock.watermark) {
            op->late[late++] = (uint16_t)row;
        } else if (!is_full(op, p->limit ? op->found[k] : NULL)) {
            op->sel[n++] = (uint16_t)row;
        }
    }
    if (bad) ck_op_count(ctx, "bad_time_rows", bad);
    *count = n;
    return ck_late_drop(&op->plan.late, b, op->late, late, op->clock.watermark, ctx);
}

/* ---- places ---- */

static ck_status key_failed(const ck_over *op, ck_status s, ck_op_ctx *ctx) {
    if (s == CK_FULL)
        return ck_fail(ctx->error, CK_FULL, "%s: a row is over %d bytes, more than rows that are put in order may have",
                       ctx->uid, (int)CK_KEY_BYTES_MAX);
    if (s == CK_INVALID) return ck_fail(ctx->error, CK_INVALID, "%s: NULL in a column that is NOT NULL", ctx->uid);
    return ck_nomem(ctx->error, op->mem, op->key.capacity);
}

static ck_status encode(ck_over *op, const ck_batch *b, uint32_t row, int64_t now, ck_op_ctx *ctx) {
    const ck_over_plan *p = &op->plan;
    char number[CK_INSTANT_KEY_BYTES];
    ck_bytes_clear(&op->key);
    ck_status s = p->by == CK_OVER_PROCESSING_TIME ? ck_bytes_view(&op->key, ck_over_time_key(now, number))
                                                   : ck_order_encode(p->order, p->order_count, b, row, &op->key);
    if (s == CK_OK) s = ck_bytes_view(&op->key, ck_instant_key(op->next_seq++, number));
    return s == CK_OK ? CK_OK : key_failed(op, s, ctx);
}

/* When a row is due, as the timers count. */
static int64_t due_at(const ck_over *op, const ck_batch *b, uint32_t row, int64_t now) {
    int64_t us = 0;
    if (op->plan.by == CK_OVER_PROCESSING_TIME) return now;
    if (op->plan.by == CK_OVER_EVENT_TIME)
        (void)ck_window_row_time(&op->plan.time, b->columns[op->plan.time.time], row, &us);
    return us;
}

/* Of row numbers up to a limit, rows that come behind so many are not needed. */
static ck_status trim(ck_over *op, ck_partition p, ck_op_ctx *ctx) {
    if (!op->plan.limit || op->plan.calls[0].fn != CK_OVER_ROW_NUMBER) return CK_OK;
    while (ck_partition_rows(op->rows, p) > op->plan.limit) {
        ck_row *last;
        bool any = ck_partition_last(op->rows, p, &last);
        CK_ASSERT(any);
        ck_bytes_clear(&op->key);
        ck_status s = ck_row_order_key(op->rows, last, &op->key);
        if (s != CK_OK) return key_failed(op, s, ctx);
        CK_TRY(ck_partition_erase(op->rows, p, ck_bytes_as_view(&op->key), ctx->error));
    }
    return CK_OK;
}

static ck_status put(ck_over *op, ck_partition p, const ck_batch *b, uint32_t row, int64_t now, ck_op_ctx *ctx) {
    const ck_over_plan *plan = &op->plan;
    ck_row *to;
    bool fresh;
    CK_TRY(encode(op, b, row, now, ctx));
    CK_TRY(ck_partition_upsert(op->rows, p, ck_bytes_as_view(&op->key), &to, &fresh, ctx->error));
    for (uint32_t i = 0; i < plan->value_count; i++) {
        uint32_t c = plan->values[i];
        if (ck_table_set_field(op->rows, to, plan->field_of[c], b->columns[c], row) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, sizeof(ck_strview));
    }
    if (ck_partition_timers_set(&op->timers, p, due_at(op, b, row, now)) != CK_OK)
        return ck_nomem(ctx->error, op->mem, sizeof(ck_partition_timer));
    return trim(op, p, ctx);
}

ck_status ck_over_take(ck_over *op, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n;
    if (b->sel_count == 0) return CK_OK;
    if (op->plan.by == CK_OVER_PROCESSING_TIME) {
        int64_t now = ck_op_now_us(ctx);
        op->target = now > op->clock.watermark ? now : op->clock.watermark + 1; /* clocks are set back */
    }
    CK_TRY(choose(op, b, &n, ctx));
    if (n == 0) return CK_OK;
    ck_batch *some = n == b->sel_count ? ck_batch_ref((ck_batch *)(uintptr_t)b) : ck_batch_select(b, op->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
    ck_key_hash(&op->plan.keys, some, ck_table_seed(op->rows), op->hashes);
    ck_keys keys = {&op->plan.keys, some, op->hashes, n};
    ck_status s = ck_table_partitions(op->rows, &keys, true, op->partitions, ctx->error);
    for (uint32_t k = 0; s == CK_OK && k < n; k++)
        s = put(op, op->partitions[k], some, ck_batch_row(some, k), op->target, ctx);
    ck_batch_unref(&some);
    return s;
}
