/* SELECT: the output's columns from expressions over the input. Plain columns are passed on by reference; only what is
 * computed goes through a program. Selection, weights and origin stay. */
#include "operator/operators.h"

#include "data/builder.h"
#include "expr/program.h"
#include "operator/params_int.h"
#include "operator/parts_int.h"

typedef struct project_op {
    ck_mem mem;
    ck_arena arena;
    ck_eval *eval; /* NULL: every output is a plain column */
    bool upsert;
    uint32_t count; /* output columns */
    uint32_t *from; /* input column of each; UINT32_MAX: the next computed one */
    uint32_t computed_count;
    ck_column **computed;  /* values of the batch in hand */
    const ck_type **types; /* of the computed ones */
    ck_parts parts;
    uint16_t puts[CK_BATCH_ROWS_MAX];
} project_op;

static void project_free(project_op *p) {
    ck_eval_free(p->eval);
    ck_arena_destroy(&p->arena);
    ck_free(p->mem, p, sizeof *p);
}

static ck_status project_init(project_op *p, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"exprs", NULL};
    struct yyjson_val *root;
    ck_expr **exprs;
    ck_program *program;
    CK_TRY(ck_params_inputs(spec, 1, 0, err));
    p->upsert = spec->inputs[0].mode == CK_MODE_UPSERT;
    CK_TRY(ck_params_read(&p->arena, spec, known, &root, err));
    CK_TRY(ck_params_exprs(&p->arena, spec, root, "exprs", &exprs, &p->count, err));
    if (spec->schema && spec->schema->field_count != p->count)
        return ck_fail(err, CK_INVALID, "%s (%s) has %u expressions for %u columns", spec->type, spec->uid, p->count,
                       spec->schema->field_count);
    p->from = ck_arena_array(&p->arena, p->count + 1, sizeof *p->from);
    p->computed = ck_arena_array(&p->arena, p->count + 1, sizeof(ck_column *));
    p->types = ck_arena_array(&p->arena, p->count + 1, sizeof(ck_type *));
    if (!p->from || !p->computed || !p->types) return ck_nomem(err, p->arena.mem, p->count * sizeof(ck_column *));
    ck_expr **computed = exprs; /* compacted in place */
    for (uint32_t i = 0; i < p->count; i++) {
        bool plain = exprs[i]->kind == CK_EXPR_COLUMN;
        p->from[i] = plain ? exprs[i]->column : UINT32_MAX;
        if (plain) continue;
        p->types[p->computed_count] = exprs[i]->type;
        computed[p->computed_count++] = exprs[i];
    }
    if (p->computed_count == 0) return CK_OK;
    CK_TRY(ck_program_compile(&p->arena, computed, p->computed_count, &program, err));
    ck_eval_options o = {spec->proc, p->mem, spec->settings->eval_error_null, spec->settings->timezone,
                         ck_params_input_names(&p->arena, spec)};
    return ck_eval_new(program, &o, &p->eval, err);
}

static ck_status project_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    project_op *p = ck_alloc_zero(mem, sizeof *p);
    if (!p) return ck_nomem(err, mem, sizeof *p);
    p->mem = mem;
    ck_arena_init(&p->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = project_init(p, spec, err);
    if (s == CK_OK)
        *self = p;
    else
        project_free(p);
    return s;
}

/* Evaluate on the puts alone: deletes carry their key columns only, so that whatever is computed is NULL there. */
static ck_status compute_upsert(project_op *p, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t put_count = 0;
    for (uint32_t k = 0; k < b->sel_count; k++)
        if (ck_batch_weight(b, ck_batch_row(b, k)) > 0) p->puts[put_count++] = (uint16_t)ck_batch_row(b, k);
    if (put_count == b->sel_count) return ck_eval_run(p->eval, b, p->computed, ctx->error);
    ck_batch *puts = ck_batch_select(b, p->puts, put_count);
    if (!puts) return ck_nomem(ctx->error, ctx->mem, b->bytes);
    ck_status s = ck_eval_run(p->eval, puts, p->computed, ctx->error);
    ck_batch_unref(&puts);
    for (uint32_t i = 0; s == CK_OK && i < p->computed_count; i++) {
        ck_column_builder out;
        s = ck_column_builder_init(&out, ctx->mem, p->types[i], b->row_count);
        for (uint32_t row = 0, k = 0; s == CK_OK && row < b->row_count; row++) {
            bool put = k < put_count && p->puts[k] == row;
            s = put ? ck_build_from(&out, p->computed[i], row) : ck_build_null(&out);
            k += put;
        }
        ck_column *col = s == CK_OK ? ck_column_builder_finish(&out) : NULL;
        ck_column_builder_destroy(&out);
        if (!col) return ck_nomem(ctx->error, ctx->mem, b->bytes);
        ck_column_unref(&p->computed[i]);
        p->computed[i] = col;
    }
    return s;
}

/* The output batch: b's rows, with the computed columns moved in. */
static ck_batch *assemble(project_op *p, ck_batch *b, ck_op_ctx *ctx) {
    ck_batch *out = ck_batch_new(ctx->mem, p->count, b->row_count, b->sel != NULL, b->weights != NULL);
    if (!out) return NULL;
    uint32_t next = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->from[i] == UINT32_MAX) {
            ck_batch_set_column(out, i, &p->computed[next++]);
        } else if (b->columns[p->from[i]]) {
            ck_column *c = ck_column_ref(b->columns[p->from[i]]);
            ck_batch_set_column(out, i, &c);
        }
    }
    if (b->sel) memcpy(out->sel, b->sel, b->sel_count * sizeof *b->sel);
    if (b->weights) memcpy(out->weights, b->weights, b->row_count);
    out->sel_count = b->sel_count;
    out->origin = ck_origin_ref(b->origin);
    return out;
}

static ck_status project_batch(project_op *p, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    ck_batch *out;
    if (p->eval) {
        ck_eval_set_now(p->eval, ck_op_now_us(ctx));
        ck_status s = p->upsert ? compute_upsert(p, b, ctx) : ck_eval_run(p->eval, b, p->computed, ctx->error);
        out = s == CK_OK ? assemble(p, b, ctx) : NULL;
        for (uint32_t i = 0; i < p->computed_count; i++) ck_column_unref(&p->computed[i]);
        if (s != CK_OK) return s;
    } else {
        out = ck_batch_project(b, p->from, p->count);
    }
    if (!out) return ck_nomem(ctx->error, ctx->mem, p->count * sizeof(ck_column *));
    return ck_op_emit(ctx, 0, &out);
}

static ck_status project_in_parts(project_op *p, ck_batch *b, ck_op_ctx *ctx) {
    for (;;) {
        ck_batch *part = ck_parts_next(&p->parts, b);
        if (!part) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *b->sel);
        uint32_t n = part->sel_count;
        ck_status s = project_batch(p, part, ctx), answer;
        ck_batch_unref(&part);
        if (!ck_parts_again(&p->parts, b, n, s, &answer, ctx->error)) return answer;
    }
}

static ck_status project_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? project_in_parts(self, ev->batch, ctx) : CK_OK;
}

static void project_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    project_free(self);
}

static const ck_operator_vtbl project_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = project_on_event,
    .close = project_close,
};

const ck_op_desc ck_op_project = {
    .type = "project", .op = &project_vtbl, .create = project_create, .again = ck_op_again_by_rows};
