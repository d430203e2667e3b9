/* Rows for a window that has said its rows already, within the allowed lateness: what its groups said is taken back and
 * said anew, where it changed. */
#include "operator/window_int.h"

enum { SEEN_SLOTS = 2 * CK_BATCH_ROWS_MAX };

/* Each group that op->found names once: into rows, and whether it said something before. */
static ck_status unique_groups(ck_window_agg *op, uint32_t n, ck_row **rows, uint8_t *said, uint32_t *count,
                               ck_op_ctx *ctx) {
    uint16_t *slots = ck_arena_alloc(ctx->arena, SEEN_SLOTS * sizeof *slots);
    if (!slots) return ck_nomem(ctx->error, ctx->mem, SEEN_SLOTS * sizeof *slots);
    memset(slots, 0, SEEN_SLOTS * sizeof *slots);
    *count = 0;
    for (uint32_t k = 0; k < n; k++) {
        ck_row *row = op->found[k];
        uint32_t slot = (uint32_t)(ck_mix64((uint64_t)(uintptr_t)row) % SEEN_SLOTS);
        while (slots[slot] && rows[slots[slot] - 1] != row) slot = slot + 1 == SEEN_SLOTS ? 0 : slot + 1;
        if (slots[slot]) continue;
        rows[*count] = row;
        said[*count] = !op->fresh[k] && ck_group_is_there(&op->plan, row) &&
                       (!op->plan.row_count || ck_row_i64(row, op->plan.row_count->offset[0]) > 0);
        slots[slot] = (uint16_t)++ * count;
    }
    return CK_OK;
}

/* The groups' rows as they are now, as a batch of their own; those that say nothing are left out. */
static ck_status as_batch(ck_window_agg *op, int64_t end, ck_table *bucket, ck_row *const *rows, const uint8_t *which,
                          uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    ck_row **some = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *some);
    uint32_t count = 0;
    *out = NULL;
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *some);
    for (uint32_t i = 0; i < n; i++)
        if (!which || which[i]) some[count++] = rows[i];
    CK_TRY(ck_window_put_groups(op, end, end, bucket, some, count, ctx));
    *out = ck_batch_builder_finish(&op->out);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, count * sizeof(ck_strview));
}

static bool same_row(const ck_batch *x, uint32_t i, const ck_batch *y, uint32_t j) {
    for (uint32_t c = 0; c < x->column_count; c++)
        if (!ck_column_rows_equal(x->columns[c], i, y->columns[c], j)) return false;
    return true;
}

/* before and after list the same groups in the same order, each some of them. */
static ck_status say_changes(ck_window_agg *op, const ck_batch *before, const uint8_t *said, const ck_batch *after,
                             const uint8_t *there, uint32_t n, ck_op_ctx *ctx) {
    ck_batch_builder b;
    ck_status s = ck_batch_builder_init(&b, ctx->mem, op->out.schema, 2 * n + 1);
    for (uint32_t i = 0, x = 0, y = 0; s == CK_OK && i < n; i++) {
        uint16_t from = (uint16_t)x, to = (uint16_t)y;
        bool changed = !said[i] || !there[i] || !same_row(before, x, after, y);
        uint32_t at = b.row_count;
        if (changed && said[i]) s = ck_batch_builder_gather(&b, before, &from, 1);
        if (b.row_count > at) b.weights[at] = -1;
        b.has_weights = b.has_weights || b.row_count > at;
        if (s == CK_OK && changed && there[i]) s = ck_batch_builder_gather(&b, after, &to, 1);
        x += said[i];
        y += there[i];
    }
    ck_batch *out = s == CK_OK && b.row_count ? ck_batch_builder_finish(&b) : NULL;
    bool nothing = s == CK_OK && !out && b.row_count == 0;
    ck_batch_builder_destroy(&b);
    if (nothing) return CK_OK;
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    return ck_op_emit(ctx, 0, &out);
}

/* Some rows: no more groups than a batch may have changes. */
static ck_status count_some(ck_window_agg *op, int64_t end, ck_table *bucket, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = b->sel_count, count = 0;
    ck_row **rows = ck_arena_alloc(ctx->arena, n * sizeof *rows);
    uint8_t *said = ck_arena_alloc(ctx->arena, n), *there = ck_arena_alloc(ctx->arena, n);
    ck_batch *before = NULL, *after = NULL;
    if (!rows || !said || !there) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    ck_keys keys = {&op->bucket_keys, b, op->hashes, n};
    ck_key_hash(&op->bucket_keys, b, ck_table_seed(bucket), op->hashes);
    CK_TRY(ck_table_upsert(bucket, &keys, op->found, op->fresh, ctx->error));
    CK_TRY(unique_groups(op, n, rows, said, &count, ctx));
    ck_status s = as_batch(op, end, bucket, rows, said, count, &before, ctx);
    if (s == CK_OK) s = ck_window_count(op, b, ctx);
    for (uint32_t i = 0; i < count; i++)
        there[i] = !op->plan.row_count || ck_row_i64(rows[i], op->plan.row_count->offset[0]) > 0;
    if (s == CK_OK) s = as_batch(op, end, bucket, rows, there, count, &after, ctx);
    if (s == CK_OK) s = say_changes(op, before, said, after, there, count, ctx);
    ck_batch_unref(&before);
    ck_batch_unref(&after);
    return s;
}

ck_status ck_window_count_late(ck_window_agg *op, int64_t end, ck_table *bucket, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t most = ctx->settings->batch_rows / 2 ? ctx->settings->batch_rows / 2 : 1;
    uint16_t *sel = ck_arena_alloc(ctx->arena, b->sel_count * sizeof *sel);
    if (!sel) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *sel);
    for (uint32_t k = 0; k < b->sel_count; k++) sel[k] = (uint16_t)ck_batch_row(b, k);
    for (uint32_t from = 0; from < b->sel_count; from += most) {
        uint32_t n = b->sel_count - from < most ? b->sel_count - from : most;
        ck_batch *some = ck_batch_select(b, sel + from, n);
        if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
        ck_status s = count_some(op, end, bucket, some, ctx);
        ck_batch_unref(&some);
        CK_TRY(s);
    }
    return CK_OK;
}
