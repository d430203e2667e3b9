/* WHERE and HAVING: narrows a batch's selection to the rows for which every conjunct is TRUE. Nothing is copied. Over
 * upsert input a row that fails becomes the deletion of its key, since an earlier version of it may have passed. */
#include "operator/operators.h"

#include "expr/program.h"
#include "operator/params_int.h"

typedef struct filter_op {
    ck_mem mem;
    ck_arena arena; /* expressions and program */
    ck_eval *eval;
    bool upsert;
    uint16_t puts[CK_BATCH_ROWS_MAX], sel[CK_BATCH_ROWS_MAX]; /* of the batch in hand */
} filter_op;

static void filter_free(filter_op *f) {
    ck_eval_free(f->eval);
    ck_arena_destroy(&f->arena);
    ck_free(f->mem, f, sizeof *f);
}

static ck_status filter_init(filter_op *f, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"conjuncts", NULL};
    struct yyjson_val *root;
    ck_expr **conjuncts;
    uint32_t count;
    ck_program *program;
    CK_TRY(ck_params_inputs(spec, 1, 0, err));
    f->upsert = spec->inputs[0].mode == CK_MODE_UPSERT;
    CK_TRY(ck_params_read(&f->arena, spec, known, &root, err));
    CK_TRY(ck_params_exprs(&f->arena, spec, root, "conjuncts", &conjuncts, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (conjuncts[i]->type->kind != CK_TYPE_BOOLEAN && conjuncts[i]->type->kind != CK_TYPE_NULL)
            return ck_fail(err, CK_INVALID, "%s (%s): conjunct %u is not BOOLEAN", spec->type, spec->uid, i + 1);
    CK_TRY(ck_program_compile(&f->arena, conjuncts, count, &program, err));
    ck_eval_options o = {spec->proc, f->mem, spec->settings->eval_error_null, spec->settings->timezone,
                         ck_params_input_names(&f->arena, spec)};
    return ck_eval_new(program, &o, &f->eval, err);
}

static ck_status filter_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    filter_op *f = ck_alloc_zero(mem, sizeof *f);
    if (!f) return ck_nomem(err, mem, sizeof *f);
    f->mem = mem;
    ck_arena_init(&f->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = filter_init(f, spec, err);
    if (s == CK_OK)
        *self = f;
    else
        filter_free(f);
    return s;
}

/* Over puts and deletes: deletes pass, a put that fails becomes a delete. */
static ck_status filter_upsert(filter_op *f, ck_batch *b, ck_op_ctx *ctx) {
    uint32_t put_count = 0, pass_count = 0;
    for (uint32_t k = 0; k < b->sel_count; k++)
        if (ck_batch_weight(b, ck_batch_row(b, k)) > 0) f->puts[put_count++] = (uint16_t)ck_batch_row(b, k);
    ck_batch *puts = ck_batch_select(b, f->puts, put_count);
    if (!puts) return ck_nomem(ctx->error, ctx->mem, b->bytes);
    ck_status s = ck_eval_filter(f->eval, puts, f->sel, &pass_count, ctx->error);
    ck_batch_unref(&puts);
    if (s != CK_OK) return s;

    ck_batch *out = ck_batch_new(ctx->mem, b->column_count, b->row_count, b->sel != NULL, true);
    if (!out) return ck_nomem(ctx->error, ctx->mem, b->bytes);
    for (uint32_t c = 0; c < b->column_count; c++) {
        ck_column *col = b->columns[c] ? ck_column_ref(b->columns[c]) : NULL;
        ck_batch_set_column(out, c, &col);
    }
    if (b->sel) memcpy(out->sel, b->sel, b->sel_count * sizeof *b->sel);
    out->sel_count = b->sel_count;
    out->origin = ck_origin_ref(b->origin);
    memset(out->weights, -1, b->row_count);
    for (uint32_t i = 0; i < pass_count; i++) out->weights[f->sel[i]] = 1;
    return ck_op_emit(ctx, 0, &out);
}

static ck_status filter_batch(filter_op *f, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    ck_eval_set_now(f->eval, ck_op_now_us(ctx));
    if (f->upsert) return filter_upsert(f, b, ctx);
    uint32_t pass_count = 0;
    CK_TRY(ck_eval_filter(f->eval, b, f->sel, &pass_count, ctx->error));
    if (pass_count == 0) return CK_OK;
    ck_batch *out = pass_count == b->sel_count ? ck_batch_ref(b) : ck_batch_select(b, f->sel, pass_count);
    if (!out) return ck_nomem(ctx->error, ctx->mem, pass_count * sizeof *f->sel);
    return ck_op_emit(ctx, 0, &out);
}

static ck_status filter_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? filter_batch(self, ev->batch, ctx) : CK_OK;
}

static void filter_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    filter_free(self);
}

static const ck_operator_vtbl filter_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = filter_on_event,
    .close = filter_close,
};

const ck_op_desc ck_op_filter = {
    .type = "filter", .op = &filter_vtbl, .create = filter_create, .again = ck_op_again_by_rows};
