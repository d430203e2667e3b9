/* Groups of one bucket into another: the slices of a hop into a scratch bucket when it fires, a step of a cumulating
 * window into the next when it has fired. Of counts and exact sums a hop of many slides rolls: each slice is merged
 * into the scratch bucket once and taken out of it once. */
#include "operator/window_int.h"

/* Some groups of a bucket on their way into another, or out of it. */
typedef struct merge {
    int64_t from_end, to_end;
    ck_table *from, *to;
    uint32_t n;
    ck_row **dst;
    ck_batch *src_keys, *dst_keys; /* what they are called here and there; NULL until somebody asks */
} merge;

/* The keys of the same groups in another bucket. */
static ck_status keys_there(const ck_window_agg *op, const ck_batch *here, int64_t end, ck_batch **out,
                            ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
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

static ck_status name_groups(ck_window_agg *op, merge *m, ck_op_ctx *ctx) {
    if (!m->src_keys) CK_TRY(ck_window_keys_of(op, m->from_end, m->from, op->found, m->n, &m->src_keys, ctx));
    return m->dst_keys ? CK_OK : keys_there(op, m->src_keys, m->to_end, &m->dst_keys, ctx);
}

static ck_status find_there(ck_window_agg *op, merge *m, ck_op_ctx *ctx) {
    if (ck_table_takes_rows(m->to, m->from))
        return ck_table_upsert_rows(m->to, m->from, op->found, m->n, m->dst, NULL, ctx->error);
    CK_TRY(ck_window_keys_of(op, m->from_end, m->from, op->found, m->n, &m->src_keys, ctx));
    ck_key_hash(&op->plan.own_keys, m->src_keys, ck_table_seed(m->to), op->hashes);
    ck_keys keys = {&op->plan.own_keys, m->src_keys, op->hashes, m->n};
    return ck_table_upsert(m->to, &keys, m->dst, NULL, ctx->error);
}

/* sign -1: out of it. Values in order are found by what groups are called, carries of sums where there are any. */
static ck_status merge_one(ck_window_agg *op, ck_acc *a, int sign, merge *m, ck_op_ctx *ctx) {
    a->table = m->to;
    if (a->shares_side || a->distinct >= 0) return CK_OK;
    if (a->side && !a->side->hashed) CK_TRY(name_groups(op, m, ctx));
    for (;;) {
        ck_groups g = {(const ck_row *const *)op->found, m->n, m->src_keys, &op->plan.own_side_keys, NULL};
        ck_status s = (sign > 0 ? a->merge : a->unmerge)(a, m->dst, m->from, &g, m->dst_keys, ctx);
        if (s != CK_MORE) return s;
        CK_TRY(name_groups(op, m, ctx));
    }
}

static ck_status merge_groups(ck_window_agg *op, int sign, merge *m, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    m->dst = ck_arena_alloc(ctx->arena, m->n * sizeof *m->dst);
    m->src_keys = m->dst_keys = NULL;
    if (!m->dst) return ck_nomem(ctx->error, ctx->mem, m->n * sizeof *m->dst);
    ck_status s = find_there(op, m, ctx);
    for (uint32_t i = 0; s == CK_OK && i < p->acc_count; i++) s = merge_one(op, p->accs[i], sign, m, ctx);
    if (s == CK_OK && sign < 0) s = ck_rows_erase_zero(m->to, m->dst, m->n, p->row_count->offset[0], ctx);
    ck_batch_unref(&m->src_keys);
    ck_batch_unref(&m->dst_keys);
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
        merge m = {.from_end = slice, .to_end = to_end, .from = from, .to = to, .n = n};
        CK_TRY(merge_groups(op, sign, &m, ctx));
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
    if (op->rolled_to != INT64_MIN && op->listing) CK_TRY(ck_window_lists_leave(op, ctx));
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
