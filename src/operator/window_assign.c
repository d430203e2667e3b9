/* Windows as columns: a row once for each window it is in. By event time without state; what is late is for whoever
 * keeps windows to say.
 * By processing time a row is in the windows of the instant at which it comes here, which its column of PROCTIME() then
 * shows, and the operator makes the watermark of those behind it: how far its clock is. It is said behind the rows it
 * is about, so that to windows, ranks and joins behind other exchanges none of them is late. What it has said is in the
 * state: a clock that went back over a restart stands until it has caught up. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/event_clock_int.h"
#include "operator/params_int.h"
#include "operator/window_int.h"

typedef struct window_assign {
    ck_mem mem;
    ck_arena arena;
    ck_window window;
    uint32_t stamp;       /* by processing time: the column of PROCTIME() */
    ck_event_clock clock; /* by processing time: what has been said */
    int64_t pass;
    uint16_t sel[CK_BATCH_ROWS_MAX];
} window_assign;

static void assign_free(window_assign *op) {
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status check_output(const window_assign *op, const ck_op_spec *spec, ck_error *err) {
    const ck_schema *in = spec->inputs[0].schema, *out = spec->schema;
    bool same = out && out->field_count == in->field_count + CK_WINDOW_COLUMNS;
    for (uint32_t i = 0; same && i < out->field_count; i++)
        same = ck_type_eq(out->fields[i].type, i < in->field_count ? in->fields[i].type : op->window.type);
    return same ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): its output is not its input and the window's columns", spec->type,
                          spec->uid);
}

static ck_status read_stamp(window_assign *op, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    int64_t column;
    CK_TRY(ck_params_column(spec, root, "stamp", &column, err));
    if (column < 0 || spec->inputs[0].schema->fields[column].type->kind != CK_TYPE_TIMESTAMP_LTZ)
        return ck_fail(err, CK_INVALID, "%s (%s): windows by processing time need their column \"stamp\"", spec->type,
                       spec->uid);
    op->stamp = (uint32_t)column;
    return CK_OK;
}

static ck_status read_params(window_assign *op, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"window", "stamp", NULL};
    yyjson_val *root;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_window_read(a, spec, root, false, &op->window, err));
    if (op->window.processing) CK_TRY(read_stamp(op, spec, root, err));
    return check_output(op, spec, err);
}

static ck_status assign_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    window_assign *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = read_params(op, &op->arena, spec, err);
    if (s == CK_OK)
        *self = op;
    else
        assign_free(op);
    return s;
}

static ck_status assign_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                              ck_error *err) {
    window_assign *op = CK_ARENA_NEW(a, window_assign);
    if (!op) return ck_nomem(err, a->mem, sizeof *op);
    *op = (window_assign){0};
    CK_TRY(read_params(op, a, spec, err));
    *slots = ck_event_clock_slot();
    *count = op->window.processing;
    return CK_OK;
}

static ck_status assign_open(void *self, ck_op_ctx *ctx) {
    window_assign *op = self;
    return op->window.processing ? ck_event_clock_open(&op->clock, true, ctx) : CK_OK;
}

/* The end of each live row's window in this pass, into ends by physical row; the rows that have one into sel. */
static uint32_t find(window_assign *op, const ck_batch *b, int64_t *ends, uint32_t *bad) {
    const ck_window *w = &op->window;
    uint32_t n = 0;
    *bad = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        ck_window_ends e = {0, CK_WATERMARK_MAX};
        bool fine = ck_window_row_time(w, ck_window_times(w, b), row, &us);
        if (fine) e = ck_window_ends_of(w, us);
        if (!fine) {
            ++*bad;
            continue;
        }
        ends[row] = e.first + op->pass * w->slide_us;
        if (ends[row] <= e.last) op->sel[n++] = (uint16_t)row;
    }
    return n;
}

static bool is_stamp(const window_assign *op, uint32_t column) { return op->window.processing && column == op->stamp; }

/* The instant of all rows, instead of that at which something before it looked at the clock. */
static bool stamp(const window_assign *op, ck_batch *out, ck_mem mem) {
    ck_column *c = ck_column_new(mem, CK_PHYS_I64, out->row_count);
    for (uint32_t i = 0; c && i < out->row_count; i++) c->i64[i] = op->window.now_us;
    if (c) ck_batch_set_column(out, op->stamp, &c);
    return out->columns[op->stamp];
}

/* b's columns, and the window's three behind them. */
static ck_batch *with_window(const window_assign *op, const ck_batch *b, const int64_t *ends, uint32_t n, ck_mem mem) {
    ck_batch *out = ck_batch_new(mem, b->column_count + CK_WINDOW_COLUMNS, b->row_count, true, b->weights != NULL);
    for (uint32_t i = 0; out && i < CK_WINDOW_COLUMNS; i++) {
        ck_column *c = ck_column_new(mem, CK_PHYS_I64, b->row_count);
        if (!c) ck_batch_unref(&out);
        for (uint32_t k = 0; c && k < n; k++) {
            int64_t end = ends[op->sel[k]];
            c->i64[op->sel[k]] = i == 0 ? ck_window_start_of(&op->window, end) : i == 1 ? end : ck_window_time_of(end);
        }
        if (c) ck_batch_set_column(out, b->column_count + i, &c);
    }
    if (!out) return NULL;
    for (uint32_t i = 0; i < b->column_count; i++) {
        ck_column *ref = b->columns[i] && !is_stamp(op, i) ? ck_column_ref(b->columns[i]) : NULL;
        if (ref) ck_batch_set_column(out, i, &ref);
    }
    if (op->window.processing && !stamp(op, out, mem)) {
        ck_batch_unref(&out);
        return NULL;
    }
    memcpy(out->sel, op->sel, n * sizeof *op->sel);
    if (b->weights) memcpy(out->weights, b->weights, b->row_count);
    out->sel_count = n;
    out->origin = ck_origin_ref(b->origin);
    return out;
}

static ck_status take_batch(window_assign *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (op->window.processing && op->pass == 0)
        op->window.now_us = ck_event_clock_now_ms(&op->clock, ck_op_now_us(ctx));
    int64_t *ends = ck_arena_alloc(ctx->arena, (b->row_count + 1u) * sizeof *ends);
    uint32_t bad;
    if (!ends) return ck_nomem(ctx->error, ctx->mem, b->row_count * sizeof *ends);
    uint32_t n = find(op, b, ends, &bad);
    if (op->pass == 0 && bad) ck_op_count(ctx, "bad_time_rows", bad);
    if (n > 0) {
        ck_batch *out = with_window(op, b, ends, n, ctx->mem);
        if (!out) return ck_nomem(ctx->error, ctx->mem, b->row_count * sizeof *ends);
        CK_TRY(ck_op_emit(ctx, 0, &out));
    }
    if (++op->pass < ck_window_passes(&op->window)) return CK_MORE;
    op->pass = 0;
    return CK_OK;
}

static ck_status assign_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? take_batch(self, ev->batch, ctx) : CK_OK;
}

/* ---- the clock ---- */

static int64_t assign_next_wake(void *self, ck_op_ctx *ctx) {
    const window_assign *op = self;
    (void)ctx;
    return op->window.processing ? ck_window_next_tick(&op->window, op->clock.watermark) : INT64_MAX;
}

static ck_status assign_on_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    window_assign *op = self;
    int64_t watermark = ck_event_clock_tick(now_us);
    if (watermark <= op->clock.watermark) return CK_OK;
    op->clock.watermark = watermark;
    return ck_op_emit_watermark(ctx, watermark, false);
}

static ck_status assign_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    window_assign *op = self;
    (void)checkpoint;
    return op->window.processing ? ck_event_clock_store(&op->clock, ctx) : CK_OK;
}

static int64_t assign_delay(const void *self) {
    return ((const window_assign *)self)->window.processing ? CK_WATERMARKS_OWN : 0;
}

static void assign_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    assign_free(self);
}

static const ck_operator_vtbl assign_vtbl = {.struct_bytes = sizeof(ck_operator_vtbl),
                                             .open = assign_open,
                                             .on_event = assign_on_event,
                                             .pre_snapshot = assign_pre_snapshot,
                                             .next_wake_us = assign_next_wake,
                                             .on_wake = assign_on_wake,
                                             .close = assign_close,
                                             .watermark_delay_us = assign_delay};

const ck_op_desc ck_op_window_assign = {.type = "window_assign",
                                        .op = &assign_vtbl,
                                        .create = assign_create,
                                        .slots = assign_slots,
                                        .again = ck_op_again_by_rows};
