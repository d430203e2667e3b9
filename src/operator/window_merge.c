/* Groups of one bucket into another: the slices of a hop into a scratch bucket when it fires, a step of a cumulating
 * window into the next when it has fired. Of counts and exact sums a hop of many slides rolls: each slice is merged
 * into the scratch bucket once and taken out of it once. */
#include "operator/window_int.h"

/* The keys of the same groups in another bucket, for accumulators that keep something beside it; else NULL. */
static ck_status keys_there(const ck_window_agg *op, const ck_batch *here, int64_t end, ck_batch **out,
                            ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    bool beside = false;
    *out = NULL;
    for (uint32_t i = 0; i < p->acc_count; i++) beside = beside || p->accs[i]->side;
    if (!beside) return CK_OK;
    ck_batch *b = ck_batch_new(ctx->mem, here->column_count, here->row_count, false, false);
    ck_column *ends = b ? ck_column_new(ctx->mem, CK_PHYS_I64, here->row_count) : NULL;
    if (!ends) {
        ck_batch_unref(&b);
        return ck_nomem(ctx->error, ctx->mem, here->row_count * sizeof(int64_t));
    }
    for (uint32_t i = 0; i < here->row_count; i++) ends->i64[i] = end;
    for (uint32_t i = 0; i < here->column_count; i++) {
        ck_column *c = i == p->keys.count ? ends : ck_column_ref(here->columns[i]);
        ck_batch_set_column(b, i, &c);
    }
    *out = b;
    return CK_OK;
}

/* sign -1: out of it. */
static ck_status merge_groups(ck_window_agg *op, int sign, int64_t from_end, ck_table *from, uint32_t n, int64_t to_end,
                              ck_table *to, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    const ck_row *const *rows = (const ck_row *const *)op->found;
    ck_row **dst = ck_arena_alloc(ctx->arena, n * sizeof *dst);
    ck_batch *src_keys = NULL, *dst_keys = NULL;
    if (!dst) return ck_nomem(ctx->error, ctx->mem, n * sizeof *dst);
    ck_status s = ck_window_keys_of(op, from_end, from, op->found, n, &src_keys, ctx);
    if (s == CK_OK) s = keys_there(op, src_keys, to_end, &dst_keys, ctx);
    if (s == CK_OK) {
        ck_key_hash(&p->own_keys, src_keys, ck_table_seed(to), op->hashes);
        ck_keys keys = {&p->own_keys, src_keys, op->hashes, n};
        s = ck_table_upsert(to, &keys, dst, NULL, ctx->error);
    }
    ck_groups g = {rows, n, src_keys, &p->own_side_keys, NULL};
    for (uint32_t i = 0; s == CK_OK && i < p->acc_count; i++) {
        ck_acc *a = p->accs[i];
        a->table = to;
        if (!a->shares_side && a->distinct < 0) s = (sign > 0 ? a->merge : a->unmerge)(a, dst, from, &g, dst_keys, ctx);
    }
    if (s == CK_OK && sign < 0) s = ck_rows_erase_zero(to, dst, n, p->row_count->offset[0], ctx);
    ck_batch_unref(&src_keys);
    ck_batch_unref(&dst_keys);
    return s;
}

ck_status ck_window_merge_bucket(ck_window_agg *op, int sign, int64_t slice, int64_t to_end, uint32_t *merged,
                                 ck_op_ctx *ctx) {
    ck_table *from, *to;
    CK_TRY(ck_table_bucket(op->table, to_end, true, &to, ctx->error));
    CK_TRY(ck_table_bucket(op->table, slice, false, &from, ctx->error)); /* buckets stay where they are */
    if (!op->rolled.on) CK_TRY(ck_window_merge_sets(op, sign, slice, to_end, merged, ctx));
    for (;;) {
        if (*merged >= CK_WINDOW_MERGED_ROWS) return CK_MORE;
        uint32_t n = ck_table_scan_next(from, &op->scan, op->found, CK_BATCH_ROWS_MAX);
        if (n == 0) break;
        CK_TRY(merge_groups(op, sign, slice, from, n, to_end, to, ctx));
        *merged += n;
    }
    op->set = 0;
    op->set_scan = (ck_table_scan){0};
    return CK_OK;
}

ck_status ck_window_gather_slices(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t first, second, oldest = op->end - op->window.size_us + 1;
    uint32_t merged = 0;
    if (!op->moving) {
        if (op->rolling && op->rolled_to >= oldest) oldest = op->rolled_to + 1;
        bool any = ck_window_next_slice(op, oldest, op->end, &first);
        CK_ASSERT(any || op->rolling); /* a window is due because it has a slice */
        if (!any || (!op->rolling &&
                     !ck_window_next_slice(op, first + 1, op->end, &second))) { /* none to add, or the only one */
            op->made = any ? first : CK_WINDOW_SCRATCH;
            if (op->rolling) op->rolled_to = op->end;
            return CK_OK;
        }
        op->moving = true;
        op->slice = first;
        op->scan = (ck_table_scan){0};
    }
    op->made = CK_WINDOW_SCRATCH;
    do {
        CK_TRY(ck_window_merge_bucket(op, 1, op->slice, CK_WINDOW_SCRATCH, &merged, ctx));
        op->scan = (ck_table_scan){0};
    } while (ck_window_next_slice(op, op->slice + 1, op->end, &op->slice));
    op->moving = false;
    if (op->rolling) op->rolled_to = op->end;
    return CK_OK;
}

ck_status ck_window_roll_off(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t slice;
    uint32_t merged = 0;
    while (ck_window_next_slice(op, INT64_MIN, op->end - op->window.size_us + op->window.slide_us, &slice)) {
        if (!op->moving) op->scan = (ck_table_scan){0};
        op->moving = true;
        CK_TRY(ck_window_merge_bucket(op, -1, slice, CK_WINDOW_SCRATCH, &merged, ctx));
        op->moving = false;
        CK_TRY(ck_window_drop(op, slice, ctx));
    }
    return ck_window_next_slice(op, INT64_MIN, op->rolled_to, &slice) ? CK_OK : ck_window_unroll(op, ctx);
}

ck_status ck_window_unroll(ck_window_agg *op, ck_op_ctx *ctx) {
    if (op->rolled_to != INT64_MIN) CK_TRY(ck_window_drop(op, CK_WINDOW_SCRATCH, ctx));
    op->rolled_to = INT64_MIN;
    return CK_OK;
}

ck_status ck_window_hand_on(ck_window_agg *op, ck_op_ctx *ctx) {
    uint32_t merged = 0;
    int64_t full = ck_window_start_of(&op->window, op->end) + op->window.size_us;
    int64_t next = op->end + op->window.slide_us - op->window.apart_us;
    bool nothing = op->window.apart_us && op->made == op->end; /* all it has was counted for it alone */
    if (op->end == full || nothing) return CK_OK;
    if (!op->moving) {
        op->moving = true;
        op->scan = (ck_table_scan){0};
    }
    CK_TRY(ck_window_merge_bucket(op, 1, op->made, next, &merged, ctx));
    op->moving = false;
    return ck_window_slices_add(op, next, ctx);
}
