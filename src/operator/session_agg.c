/* GROUP BY sessions: a row of the state a session, said when the watermark has passed its end; by processing time, when
 * the clock has. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/params_int.h"
#include "operator/session_int.h"

/* ---- making ---- */

static void session_free(ck_session_agg *op) {
    if (op->out.schema) ck_batch_builder_destroy(&op->out);
    ck_batch_unref(&op->was);
    ck_partition_timers_destroy(&op->timers);
    ck_lanes_destroy(&op->lanes);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

/* The slot: sessions of a key in the order of their starts; the end, and whether it has been said, in front of the
 * accumulators. */
static ck_status plan_slot(ck_session_agg *op, ck_arena *a, const ck_order_field *start, ck_error *err) {
    ck_slot_schema *slot = &op->plan.slot;
    uint32_t own = op->lateness_us ? 2 : 1;
    ck_field *values = ck_arena_array(a, slot->value_count + own, sizeof *values);
    if (!values) return ck_nomem(err, a->mem, slot->value_count * sizeof *values);
    values[0] = (ck_field){"session_end", op->window.type, false};
    if (own > 1) values[1] = (ck_field){"#said", ck_type_simple(CK_TYPE_BOOLEAN), false};
    if (slot->value_count) memcpy(values + own, slot->values, slot->value_count * sizeof *values);
    for (uint32_t i = 0; i < op->plan.acc_count; i++) op->plan.accs[i]->first_field += own;
    slot->slot = "session";
    slot->state_type = "session_agg";
    slot->order = start;
    slot->order_count = 1;
    slot->values = values;
    slot->value_count += own;
    return CK_OK;
}

static ck_status read_time(ck_session_agg *op, ck_arena *a, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    int64_t time = -1;
    uint64_t gap;
    bool has, processing = yyjson_equals_str(yyjson_obj_get(root, "time"), "processing");
    if (!processing) CK_TRY(ck_params_column(spec, root, "time", &time, err));
    CK_TRY(ck_params_u64(spec, root, "gap_us", &gap, &has, err));
    const ck_type *t = time >= 0 ? spec->inputs[0].schema->fields[time].type : NULL;
    bool fine = processing ||
                (t && (t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ || t->kind == CK_TYPE_BIGINT));
    if (!fine || gap == 0 || gap > (uint64_t)CK_WINDOW_SIZE_MAX)
        return ck_fail(err, CK_INVALID, "%s (%s): it needs a time column that is a TIMESTAMP or BIGINT, and a gap_us",
                       spec->type, spec->uid);
    op->window = (ck_window){.size_us = (int64_t)gap, .processing = processing};
    if (t) op->window.time = (uint32_t)time, op->window.millis = t->kind == CK_TYPE_BIGINT;
    op->window.type = ck_event_window_type(a, t);
    return op->window.type ? CK_OK : ck_nomem(err, a->mem, sizeof *t);
}

static ck_status make_plan(ck_session_agg *op, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"time", "gap_us", "keys", "aggregates", "lateness_us", "late", NULL};
    yyjson_val *root;
    uint64_t lateness;
    bool has;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT | 1u << CK_MODE_RETRACT, err));
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(read_time(op, a, spec, root, err));
    CK_TRY(ck_params_u64(spec, root, "lateness_us", &lateness, &has, err));
    if (lateness > (uint64_t)CK_EVENT_TIME_MAX)
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"lateness_us\" is too large", spec->type, spec->uid);
    op->lateness_us = (int64_t)lateness;
    CK_TRY(ck_late_read(a, spec, root, "late", 0, &op->late, err));
    ck_late_timed_by(&op->late, op->window.time, op->window.millis);
    ck_order_field *start = CK_ARENA_NEW(a, ck_order_field);
    if (!start) return ck_nomem(err, a->mem, sizeof *start);
    *start = (ck_order_field){.field = {"session_start", op->window.type, false}};
    uint32_t column = spec->inputs[0].schema->field_count;
    CK_TRY(ck_group_plan_make_within(&op->plan, a, spec, root, start, &column, 1, true, err));
    CK_TRY(plan_slot(op, a, start, err));
    return ck_window_check_output(&op->plan, op->window.type, spec, err);
}

static ck_status session_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_session_agg *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_partition_timers_init(&op->timers, mem);
    ck_status s = make_plan(op, &op->arena, spec, err);
    const ck_schema *schema = s == CK_OK ? ck_schema_copy(&op->arena, spec->schema) : NULL;
    if (s == CK_OK && (!schema || ck_batch_builder_init(&op->out, mem, schema, spec->settings->batch_rows) != CK_OK))
        s = ck_nomem(err, mem, sizeof *schema);
    if (s != CK_OK) {
        session_free(op);
        return s;
    }
    for (uint32_t i = 0; i < CK_BATCH_ROWS_MAX; i++) op->identity[i] = (uint16_t)i;
    *self = op;
    return CK_OK;
}

static ck_status session_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                               ck_error *err) {
    ck_session_agg *op = CK_ARENA_NEW(a, ck_session_agg);
    const ck_slot_schema *own;
    if (!op) return ck_nomem(err, a->mem, sizeof *op);
    *op = (ck_session_agg){0};
    CK_TRY(make_plan(op, a, spec, err));
    CK_TRY(ck_group_plan_slots(&op->plan, a, &own, count, err));
    ck_slot_schema *all = ck_arena_array(a, *count + 1u, sizeof *all);
    if (!all) return ck_nomem(err, a->mem, *count * sizeof *all);
    memcpy(all, own, *count * sizeof *all);
    all[(*count)++] = *ck_event_clock_slot();
    *slots = all;
    return CK_OK;
}

/* A key that was restored is due when its first session ends; one that is said has ended. */
static int64_t first_due(const void *arg, const ck_row *row) {
    return ck_row_i64(row, ((const ck_session_agg *)arg)->end_at);
}

static ck_status session_open(void *self, ck_op_ctx *ctx) {
    ck_session_agg *op = self;
    CK_TRY(ck_event_clock_open(&op->clock, op->window.processing, ctx));
    CK_TRY(ck_state_table(ctx->state, &op->plan.slot, &op->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(op->table);
    op->start_at = layout->fields[op->plan.keys.count].offset;
    op->end_at = layout->fields[layout->value_first].offset;
    if (op->lateness_us) op->said_at = layout->fields[layout->value_first + 1].offset;
    for (uint32_t i = 0; i < op->plan.acc_count; i++) CK_TRY(ck_acc_open(op->plan.accs[i], op->table, ctx));
    CK_TRY(ck_lanes_open(&op->lanes, &op->plan, op->mem, ctx));
    return ck_partition_timers_restore(&op->timers, op->table, op->partitions, first_due, op, ctx);
}

/* ---- saying ---- */

ck_status ck_instant_keys(const ck_session_agg *op, const ck_row *const *rows, uint32_t n, ck_batch **out,
                          ck_op_ctx *ctx) {
    const ck_key_spec *keys = &op->plan.own_side_keys;
    *out = ck_batch_new(ctx->mem, keys->count, n, false, false);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, n);
    for (uint32_t i = 0; i < keys->count; i++) {
        ck_column_builder b;
        ck_column *c = NULL;
        ck_status s = ck_column_builder_init(&b, ctx->mem, keys->types[i], n);
        if (s == CK_OK) s = ck_table_gather_field(op->table, rows, n, i, &b);
        if (s == CK_OK) c = ck_column_builder_finish(&b);
        ck_column_builder_destroy(&b);
        if (!c) {
            ck_batch_unref(out);
            return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        }
        ck_batch_set_column(*out, i, &c);
    }
    return CK_OK;
}

ck_status ck_session_erase_beside(ck_session_agg *op, const ck_batch *keys, uint32_t n, ck_op_ctx *ctx) {
    const ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    ck_row **gone = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *gone);
    if (!rows || !gone) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t k = 0; k < op->plan.acc_count; k++) {
        ck_acc *a = op->plan.accs[k];
        uint32_t count = 0;
        if (!a->side || a->shares_side || ck_table_row_count(a->side_table) == 0) continue;
        ck_groups g = {NULL, n, keys, &op->plan.own_side_keys, NULL};
        if (!a->side->hashed) {
            CK_TRY(ck_acc_erase_values(a, &g, ctx));
            continue;
        }
        CK_TRY(ck_groups_find(&g, a->side_table, rows, ctx));
        for (uint32_t i = 0; i < n; i++)
            if (rows[i]) gone[count++] = (ck_row *)(uintptr_t)rows[i];
        if (count) CK_TRY(ck_table_erase(a->side_table, gone, count, ctx->error));
    }
    return ck_session_sets_erase(op, keys, n, ctx);
}

static ck_status put_rows(ck_session_agg *op, ck_row *const *rows, const ck_batch *keys, ck_column *const *results,
                          uint32_t n) {
    uint32_t key_count = op->plan.keys.count;
    ck_column_builder *to = op->out.columns;
    for (uint32_t i = 0; i <= key_count; i++) CK_TRY(ck_build_gather(&to[i], keys->columns[i], op->identity, n));
    for (uint32_t i = 0; i < n; i++) {
        int64_t end = ck_row_i64(rows[i], op->end_at);
        CK_TRY(ck_build_i64(&to[key_count + 1], end));
        CK_TRY(ck_build_i64(&to[key_count + 2], ck_window_time_of(end)));
    }
    for (uint32_t i = 0; i < op->plan.result_count; i++)
        CK_TRY(ck_build_gather(&to[key_count + CK_WINDOW_COLUMNS + i], results[i], op->identity, n));
    for (uint32_t i = 0; i < n; i++) ck_batch_builder_row(&op->out, 1);
    return CK_OK;
}

ck_status ck_session_put(ck_session_agg *op, ck_row *const *rows, const ck_batch *keys, uint32_t n, ck_op_ctx *ctx) {
    ck_column **results = ck_arena_array(ctx->arena, op->plan.result_count + 1u, sizeof(ck_column *));
    if (!results) return ck_nomem(ctx->error, ctx->mem, op->plan.result_count * sizeof(ck_column *));
    ck_groups g = {(const ck_row *const *)rows, n, keys, &op->plan.own_side_keys, NULL};
    ck_status s = ck_group_results(&op->plan, &g, results, ctx);
    if (s == CK_OK && put_rows(op, rows, keys, results, n) != CK_OK)
        s = ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    for (uint32_t i = 0; i < op->plan.result_count; i++) ck_column_unref(&results[i]);
    return s;
}

ck_status ck_session_emit(ck_session_agg *op, ck_op_ctx *ctx) {
    if (op->out.row_count == 0) return CK_OK;
    ck_batch *b = ck_batch_builder_finish(&op->out);
    return b ? ck_op_emit(ctx, 0, &b) : ck_nomem(ctx->error, ctx->mem, op->out.row_count * sizeof(ck_strview));
}

/* Those of op->found[0..n) that have not been said, with their keys. */
static ck_status say(ck_session_agg *op, uint32_t n, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    ck_batch *keys = NULL;
    uint32_t count = 0;
    if (!rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++)
        if (op->says[i]) rows[count++] = op->found[i];
    if (count == 0) return CK_OK;
    CK_TRY(ck_instant_keys(op, (const ck_row *const *)rows, count, &keys, ctx));
    ck_status s = ck_session_put(op, rows, keys, count, ctx);
    ck_batch_unref(&keys);
    return s;
}

static ck_status mark_said(ck_session_agg *op, uint32_t n, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    uint32_t count = 0;
    if (!rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++)
        if (op->says[i] && !op->goes[i]) rows[count++] = op->found[i];
    CK_TRY(ck_table_touch_rows(op->table, rows, count, ctx->error));
    for (uint32_t i = 0; i < count; i++) ck_row_set_bool(rows[i], op->said_at, true);
    return CK_OK;
}

/* The sessions of op->found[0..n) say what they have to say; those that are closed go. */
static ck_status settle(ck_session_agg *op, uint32_t n, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    ck_partition *of = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *of);
    ck_batch *keys = NULL;
    uint32_t gone = 0;
    if (!rows || !of) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        if (!op->goes[i]) continue;
        of[gone] = op->partitions[i];
        rows[gone++] = op->found[i];
    }
    CK_TRY(say(op, n, ctx));
    if (gone) CK_TRY(ck_instant_keys(op, (const ck_row *const *)rows, gone, &keys, ctx));
    ck_status s = gone < n ? mark_said(op, n, ctx) : CK_OK; /* rows are not looked at any more */
    if (s == CK_OK && gone) s = ck_session_erase_beside(op, keys, gone, ctx);
    for (uint32_t i = 0; s == CK_OK && i < gone; i++) {
        char key[CK_INSTANT_KEY_BYTES];
        s = ck_partition_erase(op->table, of[i], ck_instant_key(keys->columns[op->plan.keys.count]->i64[i], key),
                               ctx->error);
    }
    ck_batch_unref(&keys);
    return s == CK_OK ? ck_session_emit(op, ctx) : s;
}

/* Sessions of one key that are due at op->target, behind the n found so far; a timer for what is due later. */
static ck_status due_of(ck_session_agg *op, ck_partition p, uint32_t most, uint32_t *n, ck_op_ctx *ctx) {
    ck_range r;
    ck_row *row;
    ck_range_open(&r, op->table, p, (ck_view){0}, (ck_view){0});
    while (ck_range_next(&r, &row)) {
        int64_t end = ck_row_i64(row, op->end_at), next = ck_session_due(op, row);
        bool over = ck_event_clock_passed(op->target, end), says = over && !ck_session_said(op, row);
        bool goes = ck_event_clock_passed(op->target, end + op->lateness_us);
        bool due = says || goes, taken = due && *n < most;
        if (taken) {
            op->found[*n] = row;
            op->says[*n] = says;
            op->goes[*n] = goes;
            op->partitions[(*n)++] = p;
            if (goes) continue;
            next = end + op->lateness_us;
        }
        if (ck_partition_timers_set(&op->timers, p, next) != CK_OK)
            return ck_nomem(ctx->error, op->mem, sizeof(ck_partition_timer));
        if (!over || (due && !taken)) return CK_OK; /* what is behind it is due no sooner */
    }
    return CK_OK;
}

/* Sessions that are over, or closed, at op->target: about one batch; CK_MORE until all are said. */
static ck_status fire(ck_session_agg *op, ck_op_ctx *ctx) {
    uint32_t n = 0, most = ctx->settings->batch_rows;
    int64_t until = op->target == CK_WATERMARK_MAX ? op->target : op->target + 1;
    ck_partition p;
    while (n < most && ck_partition_timers_take(&op->timers, until, &p)) CK_TRY(due_of(op, p, most, &n, ctx));
    if (n) CK_TRY(settle(op, n, ctx));
    if (n == most) return CK_MORE;
    op->clock.watermark = op->target;
    return CK_OK;
}

/* ---- events ---- */

static ck_status come_to(ck_session_agg *op, int64_t watermark, ck_op_ctx *ctx) {
    if (!op->firing) {
        if (watermark <= op->clock.watermark) return CK_OK;
        op->firing = true;
        op->target = watermark;
    }
    CK_TRY(fire(op, ctx));
    op->firing = false;
    return op->window.processing && watermark != CK_WATERMARK_MAX ? ck_op_emit_watermark(ctx, watermark, false) : CK_OK;
}

static ck_status count(ck_session_agg *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (op->window.processing) op->window.now_us = ck_event_clock_now_ms(&op->clock, ck_op_now_us(ctx));
    return ck_session_count(op, b, ctx);
}

static ck_status session_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    switch (ev->kind) {
    case CK_EVENT_BATCH: return count(self, ev->batch, ctx);
    case CK_EVENT_WATERMARK:
        return ((ck_session_agg *)self)->window.processing ? CK_OK : come_to(self, ev->watermark.value, ctx);
    case CK_EVENT_END: return come_to(self, CK_WATERMARK_MAX, ctx);
    default: return CK_OK;
    }
}

/* Sessions end at any time: how far the clock has come is said once a gap, and at least every second. */
enum { TICK_MOST_US = 1000000 };
static int64_t next_tick(const ck_session_agg *op) {
    int64_t us = op->window.size_us < TICK_MOST_US ? op->window.size_us : TICK_MOST_US;
    if (us < CK_TICK_LEAST_US) us = CK_TICK_LEAST_US;
    return op->clock.watermark == CK_WATERMARK_MIN ? CK_EVENT_TIME_MIN : op->clock.watermark + 1 + us;
}

static int64_t session_next_wake(void *self, ck_op_ctx *ctx) {
    const ck_session_agg *op = self;
    (void)ctx;
    if (!op->window.processing || op->clock.watermark == CK_WATERMARK_MAX) return INT64_MAX;
    int64_t tick = next_tick(op), first = ck_partition_timers_first(&op->timers);
    return first < tick ? first : tick;
}

static ck_status session_on_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    return come_to(self, ck_event_clock_tick(now_us), ctx);
}

static int64_t session_delay(const void *self) {
    return ((const ck_session_agg *)self)->window.processing ? CK_WATERMARKS_OWN : 0;
}

static ck_status session_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    return ck_event_clock_store(&((ck_session_agg *)self)->clock, ctx);
}

static void session_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    session_free(self);
}

static const ck_operator_vtbl session_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = session_open,
    .on_event = session_on_event,
    .pre_snapshot = session_pre_snapshot,
    .next_wake_us = session_next_wake,
    .on_wake = session_on_wake,
    .close = session_close,
    .watermark_delay_us = session_delay,
};

const ck_op_desc ck_op_session_agg = {.type = "session_agg",
                                      .op = &session_vtbl,
                                      .create = session_create,
                                      .slots = session_slots,
                                      .again = ck_op_again_by_time};
