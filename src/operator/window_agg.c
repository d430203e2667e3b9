/* GROUP BY a window. Rows go to the bucket of their window; a window fires when the watermark has passed its end, and
 * with allowed lateness changes what it said until that is over. By processing time the clock, as it is when rows come,
 * takes the place of event time and watermark: what is open is its own timer. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/params_int.h"
#include "operator/window_int.h"

/* ---- making ---- */

static const char by_window[] = "by window", by_slice[] = "by slice", by_both[] = "by window and slice";

static void window_free(ck_window_agg *op) {
    if (op->out.schema) ck_batch_builder_destroy(&op->out);
    if (op->rows) ck_free(op->mem, op->rows, sizeof *op->rows);
    ck_lanes_destroy(&op->lanes);
    ck_window_slices_close(op);
    ck_window_said_close(op);
    ck_window_lists_close(op);
    ck_event_clock_each_close(&op->behind, op->mem);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

/* The slot: groups by key in a bucket a window; attached windows of one end may have different starts. */
static ck_status plan_slot(ck_window_agg *op, ck_arena *a, const ck_order_field *within, uint32_t within_count,
                           ck_error *err) {
    ck_group_plan *p = &op->plan;
    uint32_t keys = p->keys.count, n = keys + within_count - 1;
    uint32_t *columns = ck_arena_array(a, n + 1u, sizeof *columns);
    const ck_type **types = ck_arena_array(a, n + 1u, sizeof(ck_type *));
    if (!columns || !types) return ck_nomem(err, a->mem, n * sizeof *columns);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = i < keys ? i : i + 1; /* the end is the bucket */
        columns[i] = p->side_keys.columns[from];
        types[i] = p->side_keys.types[from];
    }
    op->bucket_keys = (ck_key_spec){columns, types, n};
    p->slot.slot = "window";
    p->slot.state_type = "window_agg";
    p->slot.order = within;
    p->slot.order_count = within_count;
    p->slot.bucketed = true;
    return CK_OK;
}

/* A hop of many slides counts as over input that changes where all it sums can be taken away again. */
static ck_status plan_groups(ck_window_agg *op, ck_arena *a, const ck_op_spec *spec, yyjson_val *root,
                             const ck_order_field *within, const uint32_t *columns, uint32_t n, ck_error *err) {
    const ck_window *w = &op->window;
    ck_op_input changing = spec->inputs[0];
    ck_op_spec counted = *spec;
    changing.mode = CK_MODE_RETRACT;
    counted.inputs = &changing;
    op->rolling = w->kind == CK_WINDOW_HOP && !w->processing && !op->lateness_us &&
                  w->size_us / w->slide_us >= CK_WINDOW_ROLLS_FROM;
    ck_status st = CK_OK;
    if (op->rolling) st = ck_group_plan_make_within(&op->plan, a, &counted, root, within, columns, n, false, NULL);
    if (st == CK_NOMEM) return ck_nomem(err, a->mem, sizeof op->plan);
    op->rolling = op->rolling && st == CK_OK;
    for (uint32_t i = 0; op->rolling && i < op->plan.acc_count; i++) op->rolling = op->plan.accs[i]->unmerge != NULL;
    op->listing = op->rolling && spec->inputs[0].mode == CK_MODE_APPEND;
    if (op->rolling) return CK_OK;
    return ck_group_plan_make_within(&op->plan, a, spec, root, within, columns, n, false, err);
}

/* Windows that overlap share slices when their groups can be merged. */
static void plan_slices(ck_window_agg *op) {
    ck_window *w = &op->window;
    bool overlap = (w->kind == CK_WINDOW_HOP && w->slide_us < w->size_us) || w->kind == CK_WINDOW_CUMULATE;
    bool apart = op->lateness_us > 0 || w->processing || (op->plan.distinct_count && !op->rolling);
    ck_slot_schema *slot = &op->plan.slot;
    slot->kept = by_window;
    if (!overlap) return;
    for (uint32_t i = 0; i < op->plan.acc_count; i++)
        if (!op->plan.accs[i]->merge) return;
    if (apart && w->unit_us < 2) return;
    w->slice_us = w->unit_us;
    w->apart_us = apart;
    slot->kept = apart ? by_both : by_slice;
    if (apart) slot->kept_before = by_window, slot->version = CK_WINDOW_APART_VERSION, slot->reads_from = 1;
    op->halved = w->kind == CK_WINDOW_HOP && !op->rolling && w->size_us / w->slide_us >= CK_WINDOW_ROLLS_FROM;
}

static ck_status make_plan(ck_window_agg *op, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"window", "keys", "aggregates", "lateness_us", "late", NULL};
    yyjson_val *root;
    uint64_t lateness;
    bool has;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_window_read(a, spec, root, true, &op->window, err));
    CK_TRY(ck_params_u64(spec, root, "lateness_us", &lateness, &has, err));
    if (lateness > (uint64_t)CK_EVENT_TIME_MAX)
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"lateness_us\" is too large", spec->type, spec->uid);
    op->lateness_us = (int64_t)lateness;
    if (lateness && op->window.processing)
        return ck_fail(err, CK_INVALID, "%s (%s): by processing time no row is late", spec->type, spec->uid);
    CK_TRY(ck_late_read(a, spec, root, "late", 0, &op->late, err));
    bool attached = op->window.kind == CK_WINDOW_ATTACHED;
    ck_late_timed_by(&op->late, attached ? op->window.end : op->window.time, op->window.millis);
    uint32_t n = attached ? 2 : 1, columns[2] = {spec->inputs[0].schema->field_count, op->window.start};
    if (attached) columns[0] = op->window.end;
    op->ends_column = columns[0];
    ck_order_field *within = ck_arena_array(a, 2, sizeof *within);
    if (!within) return ck_nomem(err, a->mem, 2 * sizeof *within);
    within[0].field = (ck_field){attached ? "window_end" : "slice_end", op->window.type, false};
    within[1].field = (ck_field){"window_start", op->window.type, false};
    CK_TRY(plan_groups(op, a, spec, root, within, columns, n, err));
    CK_TRY(plan_slot(op, a, within, n, err));
    plan_slices(op);
    CK_TRY(ck_window_rolled_plan(op, a, spec, root, within, columns, n, err));
    return ck_window_check_output(&op->plan, op->window.type, spec, err);
}

static ck_status window_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_window_agg *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    op->rows = ck_alloc(mem, sizeof *op->rows);
    ck_status s = op->rows ? make_plan(op, &op->arena, spec, err) : ck_nomem(err, mem, sizeof *op->rows);
    const ck_schema *schema = s == CK_OK ? ck_schema_copy(&op->arena, spec->schema) : NULL;
    if (s == CK_OK && (!schema || ck_batch_builder_init(&op->out, mem, schema, spec->settings->batch_rows) != CK_OK))
        s = ck_nomem(err, mem, sizeof *schema);
    if (s != CK_OK) {
        window_free(op);
        return s;
    }
    op->end = op->rolled_to = op->forgotten_to = op->halves.boundary = INT64_MIN;
    op->halves.kept_rows = CK_WINDOW_KEPT_ROWS;
    for (uint32_t i = 0; i < CK_BATCH_ROWS_MAX; i++) op->identity[i] = (uint16_t)i;
    *self = op;
    return CK_OK;
}

static ck_status window_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                              ck_error *err) {
    ck_window_agg *op = CK_ARENA_NEW(a, ck_window_agg);
    const ck_slot_schema *own;
    if (!op) return ck_nomem(err, a->mem, sizeof *op);
    *op = (ck_window_agg){0};
    CK_TRY(make_plan(op, a, spec, err));
    CK_TRY(ck_group_plan_slots(&op->plan, a, &own, count, err));
    uint32_t rolled_count = 0;
    const ck_slot_schema *rolled = NULL;
    if (op->rolled.on) CK_TRY(ck_group_plan_slots(&op->rolled.plan, a, &rolled, &rolled_count, err));
    ck_slot_schema *all = ck_arena_array(a, *count + rolled_count + 1u, sizeof *all);
    if (!all) return ck_nomem(err, a->mem, *count * sizeof *all);
    memcpy(all, own, *count * sizeof *all);
    if (rolled_count) memcpy(all + *count, rolled, rolled_count * sizeof *all);
    *count += rolled_count;
    all[(*count)++] = *ck_event_clock_slot();
    *slots = all;
    return CK_OK;
}

static ck_status window_open(void *self, ck_op_ctx *ctx) {
    ck_window_agg *op = self;
    uint32_t sets = op->plan.distinct_count;
    bool each = op->window.processing && op->window.slice_us;
    CK_TRY(each ? ck_event_clock_open_each(&op->clock, op->mem, &op->behind, ctx)
                : ck_event_clock_open(&op->clock, op->window.processing, ctx));
    CK_TRY(ck_state_table(ctx->state, &op->plan.slot, &op->table, ctx->error));
    for (uint32_t i = 0; i < op->plan.acc_count; i++) CK_TRY(ck_acc_open(op->plan.accs[i], op->table, ctx));
    CK_TRY(ck_lanes_open(&op->lanes, &op->plan, op->mem, ctx));
    op->sets = ck_arena_array(&op->arena, sets + 1u, sizeof(ck_table *));
    if (!op->sets) return ck_nomem(ctx->error, op->arena.mem, sets * sizeof(ck_table *));
    memcpy(op->sets, op->lanes.sets, sets * sizeof(ck_table *));
    CK_TRY(ck_window_rolled_open(op, ctx));
    CK_TRY(ck_window_lists_open(op, ctx));
    ck_window_said_open(op);
    return ck_window_slices_open(op, ctx);
}

/* ---- rows ---- */

ck_status ck_window_count(ck_window_agg *op, const ck_batch *b, ck_op_ctx *ctx) {
    CK_TRY(ck_lanes_begin(&op->lanes, b, op->found, ctx));
    for (uint32_t i = 0; i < op->plan.acc_count; i++) {
        ck_acc *a = op->plan.accs[i];
        const ck_lane *lane;
        if (a->shares_side || (op->listing && a->distinct >= 0)) continue;
        CK_TRY(ck_lanes_get(&op->lanes, a->lane, b, &lane, ctx));
        if (lane->n > 0) CK_TRY(a->update(a, lane, b, &op->plan.side_keys, ctx));
    }
    return CK_OK;
}

static ck_status count_run(ck_window_agg *op, int64_t end, const ck_batch *b, ck_op_ctx *ctx) {
    ck_table *bucket;
    if (op->rolling && end <= op->rolled_to) CK_TRY(ck_window_unroll(op, ctx)); /* late for the last window alone */
    if (op->rolled.on && end <= op->rolled.to) CK_TRY(ck_window_rolled_forget(op, ctx));
    if (op->halved && op->pass == 0) CK_TRY(ck_window_slice_changes(op, end, ctx));
    CK_TRY(ck_table_bucket(op->table, end, true, &bucket, ctx->error));
    CK_TRY(ck_window_enter(op, end, bucket, !op->listing, ctx));
    CK_TRY(ck_window_slices_add(op, end, ctx));
    if (op->window.slice_us ? op->pass > 0 : op->lateness_us && ck_event_clock_passed(op->clock.watermark, end))
        return ck_window_count_late(op, end, bucket, b, ctx);
    ck_key_hash(&op->bucket_keys, b, ck_table_seed(bucket), op->hashes);
    ck_keys keys = {&op->bucket_keys, b, op->hashes, b->sel_count};
    CK_TRY(ck_table_upsert(bucket, &keys, op->found, NULL, ctx->error));
    CK_TRY(ck_window_count(op, b, ctx));
    return op->listing ? ck_window_lists_add(op, end, b, ctx) : CK_OK;
}

/* b with a column for the end of each row's window behind its own. */
static ck_batch *with_ends(const ck_batch *b, ck_mem mem, int64_t **ends) {
    ck_batch *out = ck_batch_new(mem, b->column_count + 1, b->row_count, b->sel != NULL, b->weights != NULL);
    ck_column *c = out ? ck_column_new(mem, CK_PHYS_I64, b->row_count) : NULL;
    if (!c) {
        ck_batch_unref(&out);
        return NULL;
    }
    *ends = c->i64;
    ck_batch_set_column(out, b->column_count, &c);
    for (uint32_t i = 0; i < b->column_count; i++) {
        ck_column *ref = b->columns[i] ? ck_column_ref(b->columns[i]) : NULL;
        if (ref) ck_batch_set_column(out, i, &ref);
    }
    out->origin = ck_origin_ref(b->origin); /* for errors */
    if (b->sel) memcpy(out->sel, b->sel, b->sel_count * sizeof *b->sel);
    if (b->weights) memcpy(out->weights, b->weights, b->row_count);
    out->sel_count = b->sel_count;
    return out;
}

static ck_window_passed passed_by(const ck_window_agg *op) {
    int64_t w = op->clock.watermark;
    if (w == CK_WATERMARK_MIN || w == CK_WATERMARK_MAX) return (ck_window_passed){w, w};
    return (ck_window_passed){w < INT64_MIN + op->lateness_us ? INT64_MIN : w - op->lateness_us + 1, w + 1};
}

static ck_status count_pass(ck_window_agg *op, ck_batch *b, ck_op_ctx *ctx) {
    const ck_window_rows *r = op->rows;
    int64_t *ends = NULL;
    ck_batch *all = op->window.kind == CK_WINDOW_ATTACHED ? ck_batch_ref(b) : with_ends(b, ctx->mem, &ends);
    if (!all) return ck_nomem(ctx->error, ctx->mem, b->row_count * sizeof *ends);
    ck_window_rows_find(op->rows, &op->window, all, op->pass, passed_by(op), ends);
    if (op->pass == 0 && r->bad_count) ck_op_count(ctx, "bad_time_rows", r->bad_count);
    ck_status s = op->pass == 0 ? ck_late_drop(&op->late, b, r->late, r->late_count, op->clock.watermark, ctx) : CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < r->run_count; i++) {
        const ck_window_run *run = &r->runs[i];
        ck_batch *some =
            run->n == all->sel_count ? ck_batch_ref(all) : ck_batch_select(all, r->rows + run->first, run->n);
        s = some ? count_run(op, run->end, some, ctx) : ck_nomem(ctx->error, ctx->mem, run->n * sizeof *r->rows);
        ck_batch_unref(&some);
    }
    ck_batch_unref(&all);
    return s;
}

static ck_status count_batch(ck_window_agg *op, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    if (op->window.processing && op->pass == 0)
        op->window.now_us = ck_event_clock_now_ms(&op->clock, ck_op_now_us(ctx));
    if (ck_window_lists_are_tight(op)) CK_TRY(ck_window_lists_forget(op, ctx));
    CK_TRY(count_pass(op, b, ctx));
    op->pass++;
    if (op->window.slice_us ? op->rows->again : op->pass < ck_window_passes(&op->window)) return CK_MORE;
    op->pass = 0;
    return CK_OK;
}

/* ---- events ---- */

static ck_status fire_until(ck_window_agg *op, int64_t watermark, ck_op_ctx *ctx) {
    if (!op->firing) op->target = watermark;
    op->firing = true;
    CK_TRY(ck_window_fire(op, ctx));
    op->firing = false;
    return CK_OK;
}

static ck_status come_to(ck_window_agg *op, int64_t watermark, ck_op_ctx *ctx) {
    if (!op->firing && watermark <= op->clock.watermark) return CK_OK;
    CK_TRY(fire_until(op, watermark, ctx));
    return op->window.processing && watermark != CK_WATERMARK_MAX ? ck_op_emit_watermark(ctx, watermark, false) : CK_OK;
}

/* What some key groups had said before they were restored, the others say; it may come in front of a barrier. */
static ck_status catch_up(ck_window_agg *op, ck_op_ctx *ctx) {
    if (!op->behind.watermarks) return CK_OK;
    CK_TRY(fire_until(op, op->behind.greatest, ctx));
    ck_event_clock_each_close(&op->behind, op->mem);
    return CK_OK;
}

static ck_status window_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    CK_TRY(catch_up(self, ctx));
    switch (ev->kind) {
    case CK_EVENT_BATCH: return count_batch(self, ev->batch, ctx);
    case CK_EVENT_WATERMARK:
        return ((ck_window_agg *)self)->window.processing ? CK_OK : come_to(self, ev->watermark.value, ctx);
    case CK_EVENT_END: return come_to(self, CK_WATERMARK_MAX, ctx);
    default: return CK_OK;
    }
}

static int64_t window_next_wake(void *self, ck_op_ctx *ctx) {
    const ck_window_agg *op = self;
    int64_t end;
    (void)ctx;
    if (!op->window.processing || op->clock.watermark == CK_WATERMARK_MAX) return INT64_MAX;
    int64_t tick = ck_window_next_tick(&op->window, op->clock.watermark);
    return ck_window_next_end(op, &end) && end < tick ? end : tick;
}

static ck_status window_on_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    CK_TRY(catch_up(self, ctx));
    return come_to(self, ck_event_clock_tick(now_us), ctx);
}

/* Windows by the clock are over when it says so, for those behind too. */
static int64_t window_delay(const void *self) {
    return ((const ck_window_agg *)self)->window.processing ? CK_WATERMARKS_OWN : 0;
}

static ck_status window_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    ck_window_agg *op = self;
    CK_TRY(catch_up(op, ctx));
    CK_TRY(ck_window_unroll(op, ctx));
    CK_TRY(ck_window_lists_forget(op, ctx));
    CK_TRY(ck_window_forget_halves(op, ctx));
    CK_TRY(ck_window_rolled_forget(op, ctx));
    return ck_event_clock_store(&op->clock, ctx);
}

static void window_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    window_free(self);
}

static const ck_operator_vtbl window_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = window_open,
    .on_event = window_on_event,
    .pre_snapshot = window_pre_snapshot,
    .next_wake_us = window_next_wake,
    .on_wake = window_on_wake,
    .close = window_close,
    .watermark_delay_us = window_delay,
};

const ck_op_desc ck_op_window_agg = {.type = "window_agg",
                                     .op = &window_vtbl,
                                     .create = window_create,
                                     .slots = window_slots,
                                     .again = ck_op_again_by_time};
