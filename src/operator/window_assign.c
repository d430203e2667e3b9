/* Windows as columns: a row once for each window it is in. Without state; what is late is for whoever keeps windows to
 * say. */
#include "operator/operators.h"

#include "operator/params_int.h"
#include "operator/window_int.h"

typedef struct window_assign {
    ck_mem mem;
    ck_arena arena;
    ck_window window;
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

static ck_status read_params(window_assign *op, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"window", NULL};
    struct yyjson_val *root;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(&op->arena, spec, known, &root, err));
    CK_TRY(ck_window_read(&op->arena, spec, root, false, &op->window, err));
    if (op->window.processing)
        return ck_fail(err, CK_INVALID, "%s (%s): windows as columns are of event time", spec->type, spec->uid);
    return check_output(op, spec, err);
}

static ck_status assign_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    window_assign *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = read_params(op, spec, err);
    if (s == CK_OK)
        *self = op;
    else
        assign_free(op);
    return s;
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
        bool fine = ck_window_row_time(w, b->columns[w->time], row, &us);
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
        ck_column *ref = b->columns[i] ? ck_column_ref(b->columns[i]) : NULL;
        if (ref) ck_batch_set_column(out, i, &ref);
    }
    memcpy(out->sel, op->sel, n * sizeof *op->sel);
    if (b->weights) memcpy(out->weights, b->weights, b->row_count);
    out->sel_count = n;
    out->origin = ck_origin_ref(b->origin);
    return out;
}

static ck_status assign_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    window_assign *op = self;
    (void)input;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    const ck_batch *b = ev->batch;
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

static void assign_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    assign_free(self);
}

static const ck_operator_vtbl assign_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl), .on_event = assign_on_event, .close = assign_close};

const ck_op_desc ck_op_window_assign = {.type = "window_assign", .op = &assign_vtbl, .create = assign_create};
