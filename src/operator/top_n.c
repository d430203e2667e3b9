/* ROW_NUMBER, RANK or DENSE_RANK up to n in each partition, LIMIT over changes, the first or last row of a key. What is
 * kept and how is in top_n_int.h; nothing is dirty at a barrier. */
#include "operator/params_int.h"
#include "operator/operators.h"

#include "operator/top_n_int.h"

typedef struct top_n {
    ck_mem mem;
    ck_arena arena;
    ck_top top;      /* with the plan */
    ck_first *first; /* instead of ranked rows */
} top_n;

static void top_n_free(top_n *op) {
    ck_first_free(op->first);
    ck_top_destroy(&op->top);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status top_n_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    top_n *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_top_init(&op->top, mem);
    ck_status s = ck_top_plan_make(&op->top.plan, &op->arena, spec, err);
    if (s == CK_OK && op->top.plan.first) s = ck_first_new(&op->top.plan, mem, &op->first, err);
    if (s == CK_OK)
        *self = op;
    else
        top_n_free(op);
    return s;
}

static ck_status top_n_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                             ck_error *err) {
    ck_top_plan *plan = CK_ARENA_NEW(a, ck_top_plan);
    if (!plan) return ck_nomem(err, a->mem, sizeof *plan);
    CK_TRY(ck_top_plan_make(plan, a, spec, err));
    ck_slot_schema *all = ck_arena_array(a, 2, sizeof *all);
    if (!all) return ck_nomem(err, a->mem, 2 * sizeof *all);
    all[0] = plan->slot;
    all[1] = *ck_event_clock_slot();
    *slots = all;
    *count = plan->windowed ? 2 : 1;
    return CK_OK;
}

static ck_status top_n_open(void *self, ck_op_ctx *ctx) {
    top_n *op = self;
    return op->first ? ck_first_open(op->first, ctx) : ck_top_open(&op->top, ctx);
}

static ck_status flush(top_n *op, ck_op_ctx *ctx) {
    if (op->top.plan.final || op->top.plan.at_end) return CK_OK;
    return op->first ? ck_first_flush(op->first, ctx) : ck_top_flush_touched(&op->top, ctx);
}

static ck_status emit_all(top_n *op, ck_op_ctx *ctx) {
    return op->first ? ck_first_emit_all(op->first, ctx) : ck_top_emit_all(&op->top, ctx);
}

static bool is_touched(const top_n *op) { return op->first ? op->first->touched.count > 0 : op->top.touched.count > 0; }

/* Partitions of windows take what is not late. */
static ck_status take(top_n *op, ck_batch *b, ck_op_ctx *ctx) {
    ck_batch *some;
    if (op->first) return ck_first_batch(op->first, b, ctx);
    if (!op->top.plan.windowed) return ck_top_batch(&op->top, b, ctx);
    CK_TRY(ck_top_windows_on_time(&op->top, b, &some, ctx));
    ck_status s = some ? ck_top_batch(&op->top, some, ctx) : CK_OK;
    ck_batch_unref(&some);
    return s;
}

static ck_status top_n_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    top_n *op = self;
    (void)input;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        if (!(op->first ? op->first->flushing : op->top.flush.running)) {
            if (!is_touched(op)) CK_TRY(ck_op_ttl_come(&op->top.plan.ttl, ctx));
            CK_TRY(take(op, ev->batch, ctx));
            bool full = op->first ? ck_first_is_full(op->first) : ck_top_touched_is_full(&op->top.touched);
            if (ctx->settings->batch_rows > 1 && !full) return CK_OK;
        }
        return flush(op, ctx);
    case CK_EVENT_FLUSH: return flush(op, ctx);
    case CK_EVENT_WATERMARK:
        return op->top.plan.windowed ? ck_top_windows_come_to(&op->top, ev->watermark.value, ctx) : flush(op, ctx);
    case CK_EVENT_END:
        if (op->top.plan.windowed) return ck_top_windows_come_to(&op->top, CK_WATERMARK_MAX, ctx);
        return op->top.plan.final ? emit_all(op, ctx) : flush(op, ctx);
    default: return CK_OK;
    }
}

static ck_status top_n_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    top_n *op = self;
    CK_TRY(flush(op, ctx)); /* nothing is dirty at a barrier */
    return op->top.plan.windowed ? ck_event_clock_store(&op->top.windows.clock, ctx) : CK_OK;
}

/* A window's top is said when the lateness is over, too. */
static int64_t top_n_delay(const void *self) {
    const ck_top_plan *plan = &((const top_n *)self)->top.plan;
    return plan->windowed && plan->at_end ? plan->lateness_us : 0;
}

static void top_n_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    top_n_free(self);
}

static const ck_operator_vtbl top_n_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = top_n_open,
    .on_event = top_n_on_event,
    .pre_snapshot = top_n_pre_snapshot,
    .close = top_n_close,
    .watermark_delay_us = top_n_delay,
};

const ck_op_desc ck_op_top_n = {
    .type = "top_n", .op = &top_n_vtbl, .create = top_n_create, .slots = top_n_slots, .again = ck_op_again_by_rows};
