/* Rows for sessions that have said what they are, within the allowed lateness: what was said is taken back, and said
 * anew for what the sessions have become - at once where that is over, else when it is. */
#include "operator/session_int.h"

/* What these sessions say, as a batch of its own: op->out is empty before and after. */
static ck_status images(ck_session_agg *op, ck_row *const *rows, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    ck_batch_builder waiting = op->out;
    ck_batch *keys = NULL;
    *out = NULL;
    if (ck_batch_builder_init(&op->out, op->mem, waiting.schema, n) != CK_OK) {
        op->out = waiting;
        return ck_nomem(ctx->error, op->mem, n * sizeof(ck_strview));
    }
    ck_status s = ck_instant_keys(op, (const ck_row *const *)rows, n, &keys, ctx);
    if (s == CK_OK) s = ck_session_put(op, rows, keys, n, ctx);
    if (s == CK_OK && !(*out = ck_batch_builder_finish(&op->out)))
        s = ck_nomem(ctx->error, op->mem, n * sizeof(ck_strview));
    ck_batch_unref(&keys);
    ck_batch_builder_destroy(&op->out);
    op->out = waiting;
    return s;
}

static ck_status change(ck_session_agg *op, const ck_batch *b, int weight, ck_op_ctx *ctx) {
    for (uint32_t i = 0; b && i < b->row_count; i++) {
        uint16_t row = (uint16_t)i;
        if (op->out.row_count == ctx->settings->batch_rows) CK_TRY(ck_session_emit(op, ctx));
        if (ck_batch_builder_gather(&op->out, b, &row, 1) != CK_OK)
            return ck_nomem(ctx->error, op->mem, sizeof(ck_strview));
        op->out.weights[op->out.row_count - 1] = (int8_t)weight;
        op->out.has_weights = true;
    }
    return CK_OK;
}

ck_status ck_session_take_back(ck_session_agg *op, ck_partition p, const int64_t *starts, uint32_t n, ck_op_ctx *ctx) {
    uint32_t count = 0;
    if (!op->lateness_us) return CK_OK;
    ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        char key[CK_INSTANT_KEY_BYTES];
        CK_TRY(ck_partition_find(op->table, p, ck_instant_key(starts[i], key), &rows[count]));
        count += ck_session_said(op, rows[count]);
    }
    if (count == 0) return CK_OK;
    CK_TRY(change(op, op->was, -1, ctx)); /* of sessions found before */
    ck_batch_unref(&op->was);
    return images(op, rows, count, &op->was, ctx);
}

static bool says_the_same(const ck_batch *x, const ck_batch *y) {
    bool same = x && y && x->row_count == 1 && y->row_count == 1;
    for (uint32_t c = 0; same && c < x->column_count; c++)
        same = ck_column_rows_equal(x->columns[c], 0, y->columns[c], 0);
    return same;
}

ck_status ck_session_say_anew(ck_session_agg *op, ck_partition p, int64_t start, ck_op_ctx *ctx) {
    char key[CK_INSTANT_KEY_BYTES];
    ck_batch *is = NULL;
    ck_row *row;
    bool fresh;
    if (!op->lateness_us) return CK_OK;
    CK_TRY(ck_partition_upsert(op->table, p, ck_instant_key(start, key), &row, &fresh, ctx->error));
    bool over = ck_event_clock_passed(op->clock.watermark, ck_row_i64(row, op->end_at));
    if (over) CK_TRY(images(op, &row, 1, &is, ctx));
    ck_row_set_bool(row, op->said_at, over);
    ck_status s = CK_OK;
    if (!says_the_same(op->was, is)) {
        s = change(op, op->was, -1, ctx);
        if (s == CK_OK) s = change(op, is, 1, ctx);
    }
    ck_batch_unref(&op->was);
    ck_batch_unref(&is);
    return s;
}
