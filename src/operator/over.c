/* OVER (PARTITION BY ... ORDER BY ...): append in, append out. By event time rows are said when the watermark has
 * passed them; by processing time as they come; else, over input that ends, at its end. */
#include "operator/operators.h"

#include "operator/over_int.h"

/* ---- making ---- */

static void over_free(ck_over *op) {
    ck_partition_timers_destroy(&op->timers);
    for (uint32_t i = 0; op->sums && i < op->plan.total_count; i++) {
        ck_bytes_destroy(&op->sums[i].n);
        ck_bytes_destroy(&op->sums[i].sum);
        ck_bytes_destroy(&op->sums[i].in_range);
    }
    for (uint32_t i = 0; op->picks && i < op->plan.pick_count; i++) ck_bytes_destroy(&op->picks[i]);
    for (uint32_t i = 0; op->ranks && i < op->plan.call_count; i++) ck_bytes_destroy(&op->ranks[i]);
    ck_over_rows *const pointers[] = {&op->chunk, &op->tails, &op->past};
    for (size_t i = 0; i < CK_ARRAY_COUNT(pointers); i++)
        if (pointers[i]->at) ck_free(op->mem, pointers[i]->at, pointers[i]->capacity * sizeof(ck_row *));
    ck_bytes *const bytes[] = {&op->resume, &op->last, &op->leave, &op->deque, &op->key, &op->keep};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bytes); i++) ck_bytes_destroy(bytes[i]);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status make_buffers(ck_over *op, ck_error *err) {
    const ck_over_plan *p = &op->plan;
    ck_bytes *const bytes[] = {&op->resume, &op->last, &op->leave, &op->deque, &op->key, &op->keep};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bytes); i++) ck_bytes_init(bytes[i], op->mem, SIZE_MAX);
    op->sums = ck_arena_array(&op->arena, p->total_count + 1u, sizeof *op->sums);
    op->picks = ck_arena_array(&op->arena, p->pick_count + 1u, sizeof *op->picks);
    op->ranks = ck_arena_array(&op->arena, p->call_count + 1u, sizeof *op->ranks);
    if (!op->sums || !op->picks || !op->ranks)
        return ck_nomem(err, op->arena.mem, (p->total_count + p->call_count) * sizeof *op->sums);
    for (uint32_t i = 0; i < p->total_count; i++) {
        ck_bytes_init(&op->sums[i].n, op->mem, SIZE_MAX);
        ck_bytes_init(&op->sums[i].sum, op->mem, SIZE_MAX);
        ck_bytes_init(&op->sums[i].in_range, op->mem, SIZE_MAX);
    }
    for (uint32_t i = 0; i < p->pick_count; i++) ck_bytes_init(&op->picks[i], op->mem, SIZE_MAX);
    for (uint32_t i = 0; i < p->call_count; i++) ck_bytes_init(&op->ranks[i], op->mem, SIZE_MAX);
    return CK_OK;
}

static ck_status over_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_over *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_partition_timers_init(&op->timers, mem);
    ck_status s = ck_over_plan_make(&op->plan, &op->arena, spec, err);
    if (s == CK_OK) s = make_buffers(op, err);
    if (s == CK_OK)
        *self = op;
    else
        over_free(op);
    return s;
}

static ck_status over_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                            ck_error *err) {
    ck_over_plan *plan = CK_ARENA_NEW(a, ck_over_plan);
    ck_slot_schema *all = ck_arena_array(a, 3, sizeof *all);
    if (!plan || !all) return ck_nomem(err, a->mem, sizeof *plan);
    CK_TRY(ck_over_plan_make(plan, a, spec, err));
    all[0] = plan->keyed;
    all[1] = plan->rows;
    all[2] = *ck_event_clock_slot();
    *slots = all;
    *count = plan->by == CK_OVER_END ? 2 : 3;
    return CK_OK;
}

/* ---- opening ---- */

static void find_fields(ck_over *op) {
    ck_over_plan *p = &op->plan;
    const ck_row_layout *rows = ck_table_layout(op->rows), *keyed = ck_table_layout(op->keyed);
    op->time_at = rows->fields[p->keys.count].offset;
    op->seq_at = rows->fields[p->keys.count + p->rows.order_count - 1].offset;
    for (uint32_t i = 0; i < CK_OVER_FIELDS; i++) op->field_at[i] = keyed->fields[keyed->value_first + i].offset;
    for (uint32_t i = 0; i < p->total_count; i++) {
        ck_over_total *t = &p->totals[i];
        for (uint32_t k = 0; k < t->field_count; k++)
            t->at[k] = keyed->fields[keyed->value_first + t->first_field + k].offset;
        t->arg_null = UINT32_MAX;
        if (t->arg < 0) continue;
        t->arg_at = rows->fields[p->field_of[t->arg]].offset;
        t->arg_null = rows->fields[p->field_of[t->arg]].null_bit;
    }
}

/* A key that was restored is looked at when its first row is due. */
static int64_t first_due(const void *arg, const ck_row *row) {
    const ck_over *op = arg;
    return op->plan.by == CK_OVER_END ? 0 : ck_over_instant(op, ck_row_i64(row, op->time_at));
}

static ck_status restore(ck_over *op, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row *row;
    CK_TRY(ck_partition_timers_restore(&op->timers, op->rows, op->partitions, first_due, op, ctx));
    while (ck_table_scan_next(op->rows, &scan, &row, 1) > 0)
        if (ck_row_i64(row, op->seq_at) >= op->next_seq) op->next_seq = ck_row_i64(row, op->seq_at) + 1;
    return CK_OK;
}

static ck_status over_open(void *self, ck_op_ctx *ctx) {
    ck_over *op = self;
    if (op->plan.by != CK_OVER_END) CK_TRY(ck_event_clock_open(&op->clock, op->plan.by == CK_OVER_PROCESSING_TIME, ctx));
    CK_TRY(ck_state_table(ctx->state, &op->plan.rows, &op->rows, ctx->error));
    CK_TRY(ck_state_table(ctx->state, &op->plan.keyed, &op->keyed, ctx->error));
    find_fields(op);
    return restore(op, ctx);
}

/* ---- working off what is due ---- */

static ck_status make_chunk(ck_over *op, ck_op_ctx *ctx) {
    CK_TRY(ck_over_gather(op, ctx));
    ck_over_run_totals(op);
    ck_over_run_ranks(op);
    CK_TRY(ck_over_run_picks(op, ctx));
    op->said = 0;
    op->chunked = true;
    return CK_OK;
}

/* Nothing of any key is needed at the end. */
static ck_status wipe(ck_over *op, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row **rows = ck_arena_alloc(ctx->arena, CK_BATCH_ROWS_MAX * sizeof *rows);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, CK_BATCH_ROWS_MAX * sizeof *rows);
    for (uint32_t n; (n = ck_table_partition_scan(op->rows, &scan, op->partitions, CK_BATCH_ROWS_MAX)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            CK_TRY(ck_partition_erase_range(op->rows, op->partitions[i], (ck_view){0}, (ck_view){0}, NULL, ctx->error));
    scan = (ck_table_scan){0};
    for (uint32_t n; (n = ck_table_scan_next(op->keyed, &scan, rows, CK_BATCH_ROWS_MAX)) > 0;)
        CK_TRY(ck_table_erase(op->keyed, rows, n, ctx->error));
    return CK_OK;
}

/* About one batch; CK_MORE until all that is due has been said. */
static ck_status fire(ck_over *op, ck_op_ctx *ctx) {
    for (;;) {
        if (!op->chunked) CK_TRY(make_chunk(op, ctx));
        bool any = op->chunk.n > 0;
        if (op->said < op->chunk.n) CK_TRY(ck_over_emit(op, ctx));
        if (op->said < op->chunk.n) return CK_MORE;
        op->chunked = false;
        if (op->run_count == 0) break;
        CK_TRY(ck_over_prune(op, ctx));
        if (any) return CK_MORE;
    }
    if (op->target == CK_WATERMARK_MAX) CK_TRY(wipe(op, ctx));
    op->clock.watermark = op->target;
    return CK_OK;
}

static ck_status come_to(ck_over *op, int64_t target, ck_op_ctx *ctx) {
    if (!op->firing) {
        if (op->plan.by != CK_OVER_END && target <= op->clock.watermark) return CK_OK;
        op->firing = true;
        op->target = target;
    }
    CK_TRY(fire(op, ctx));
    op->firing = false;
    return CK_OK;
}

/* ---- events ---- */

static ck_status over_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    ck_over *op = self;
    (void)input;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        if (!op->firing) CK_TRY(ck_over_take(op, ev->batch, ctx));
        if (op->plan.by != CK_OVER_PROCESSING_TIME || ev->batch->sel_count == 0) return CK_OK;
        return come_to(op, op->target, ctx);
    case CK_EVENT_WATERMARK: return op->plan.by == CK_OVER_EVENT_TIME ? come_to(op, ev->watermark.value, ctx) : CK_OK;
    case CK_EVENT_END: return come_to(op, CK_WATERMARK_MAX, ctx);
    default: return CK_OK;
    }
}

static ck_status over_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    ck_over *op = self;
    (void)checkpoint;
    return op->plan.by == CK_OVER_END ? CK_OK : ck_event_clock_store(&op->clock, ctx);
}

static void over_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    over_free(self);
}

static const ck_operator_vtbl over_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = over_open,
    .on_event = over_on_event,
    .pre_snapshot = over_pre_snapshot,
    .close = over_close,
};

const ck_op_desc ck_op_over = {.type = "over", .op = &over_vtbl, .create = over_create, .slots = over_slots};
