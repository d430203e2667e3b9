/* GROUP BY: rows of a batch find their groups in one call to the state table, then each accumulator runs over the row
 * pointers. Without aggregates it is DISTINCT: over append input a key passes when it is new. */
#include "operator/params_int.h"
#include "operator/operators.h"

#include "operator/group_int.h"

static void group_free(ck_group *op) {
    ck_touched_destroy(&op->touched);
    ck_lanes_destroy(&op->lanes);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status group_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_group *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_group_plan_make(&op->plan, &op->arena, spec, err);
    if (s != CK_OK) {
        group_free(op);
        return s;
    }
    bool nullable = false;
    for (uint32_t i = 0; i < op->plan.keys.count; i++) nullable = nullable || op->plan.partition[i].nullable;
    ck_touched_init(&op->touched, mem, nullable, op->plan.keys.count + op->plan.result_count);
    for (uint32_t i = 0; i < CK_BATCH_ROWS_MAX; i++) op->identity[i] = (uint16_t)i;
    *self = op;
    return CK_OK;
}

static ck_status group_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                             ck_error *err) {
    ck_group_plan plan;
    CK_TRY(ck_group_plan_make(&plan, a, spec, err));
    return ck_group_plan_slots(&plan, a, slots, count, err);
}

static ck_status group_open(void *self, ck_op_ctx *ctx) {
    ck_group *op = self;
    CK_TRY(ck_state_table(ctx->state, &op->plan.slot, &op->table, ctx->error));
    for (uint32_t i = 0; i < op->plan.acc_count; i++) CK_TRY(ck_acc_open(op->plan.accs[i], op->table, ctx));
    return ck_lanes_open(&op->lanes, &op->plan, op->mem, ctx);
}

/* DISTINCT over append input: what is new passes at once, bounded or not. */
static bool passes_new_keys(const ck_group *op) {
    return op->plan.result_count == 0 && !op->plan.retract && !ck_group_is_global(&op->plan);
}

static ck_status find_groups(ck_group *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (ck_group_is_global(&op->plan)) {
        bool fresh = false;
        CK_TRY(ck_table_single(op->table, true, &op->rows[0], &fresh, ctx->error));
        for (uint32_t k = 1; k < b->sel_count; k++) op->rows[k] = op->rows[0];
        op->fresh[0] = fresh;
        op->hashes[0] = 0;
        return CK_OK;
    }
    ck_key_hash(&op->plan.keys, b, ck_table_seed(op->table), op->hashes);
    ck_keys keys = {&op->plan.keys, b, op->hashes, b->sel_count};
    return ck_table_upsert(op->table, &keys, op->rows, op->fresh, ctx->error);
}

static ck_status emit_new_keys(ck_group *op, ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        op->newly[n] = (uint16_t)ck_batch_row(b, k);
        n += op->fresh[k] != 0;
    }
    if (n == 0) return CK_OK;
    ck_batch *keys = ck_batch_project(b, op->plan.keys.columns, op->plan.keys.count);
    ck_batch *out = keys ? ck_batch_select(keys, op->newly, n) : NULL;
    ck_batch_unref(&keys);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->newly);
    return ck_op_emit(ctx, 0, &out);
}

/* Without flushes nobody else removes groups that are empty again. */
static ck_status erase_empty_now(ck_group *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (!op->plan.retract || !op->plan.final || !b->weights || ck_group_is_global(&op->plan)) return CK_OK;
    return ck_rows_erase_zero(op->table, op->rows, b->sel_count, op->plan.row_count->offset[0], ctx);
}

static ck_status count_batch(ck_group *op, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    if (op->touched.count == 0) CK_TRY(ck_op_ttl_come(&op->plan.ttl, ctx)); /* what is touched stays */
    CK_TRY(find_groups(op, b, ctx));
    if (passes_new_keys(op)) return emit_new_keys(op, b, ctx);
    if (!op->plan.final) CK_TRY(ck_group_touch(op, b, ctx));
    CK_TRY(ck_lanes_begin(&op->lanes, b, op->rows, ctx));
    for (uint32_t i = 0; i < op->plan.acc_count; i++) {
        ck_acc *a = op->plan.accs[i];
        const ck_lane *lane;
        if (a->shares_side) continue;
        CK_TRY(ck_lanes_get(&op->lanes, a->lane, b, &lane, ctx));
        if (lane->n > 0) CK_TRY(a->update(a, lane, b, &op->plan.keys, ctx));
    }
    return erase_empty_now(op, b, ctx);
}

static ck_status flush(ck_group *op, ck_op_ctx *ctx) {
    if (op->plan.final || passes_new_keys(op)) return CK_OK;
    if (!op->flushing && ck_group_is_global(&op->plan)) CK_TRY(ck_group_touch_global(op, ctx));
    return ck_group_flush(op, ctx);
}

static ck_status group_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    ck_group *op = self;
    (void)input;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        if (!op->flushing) {
            CK_TRY(count_batch(op, ev->batch, ctx));
            bool now = ctx->settings->batch_rows == 1 || ck_touched_is_full(&op->touched);
            if (!now) return CK_OK;
        }
        return flush(op, ctx);
    case CK_EVENT_FLUSH:
    case CK_EVENT_WATERMARK: return flush(op, ctx);
    case CK_EVENT_END: return op->plan.final && !passes_new_keys(op) ? ck_group_emit_all(op, ctx) : flush(op, ctx);
    default: return CK_OK;
    }
}

static ck_status group_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    return flush(self, ctx); /* nothing is dirty at a barrier */
}

static void group_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    group_free(self);
}

static const ck_operator_vtbl group_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = group_open,
    .on_event = group_on_event,
    .pre_snapshot = group_pre_snapshot,
    .close = group_close,
};

const ck_op_desc ck_op_group_agg = {
    .type = "group_agg", .op = &group_vtbl, .create = group_create, .slots = group_slots, .again = ck_op_again_by_rows};
