/* UNNEST: a row for each element of an array or entry of a map, the input's columns beside it. A NULL or empty one
 * gives nothing, or with `outer` one row of NULLs. Stateless: a change of a row is the change of all rows it gives. */
#include "operator/operators.h"

#include <yyjson.h>

#include "data/builder.h"
#include "expr/program.h"
#include "operator/params_int.h"
#include "operator/parts_int.h"

typedef struct unnest_op {
    ck_mem mem;
    ck_arena arena;
    ck_eval *eval;
    const ck_schema *input, *output;
    uint32_t element_columns; /* what an element adds, without its number */
    bool of_rows;             /* ARRAY of ROW: its fields are columns */
    bool is_map, ordinality, outer;
    bool *unused; /* input columns nobody looks at */
    /* the batch in hand, when it gives more than one can take */
    ck_parts parts;
    ck_batch *part;
    ck_column *list;
    uint32_t live; /* live rows that are done */
    uint32_t element;
    uint16_t rows[CK_BATCH_ROWS_MAX];     /* of the output: physical row of the input */
    uint32_t elements[CK_BATCH_ROWS_MAX]; /* and of the list's child; UINT32_MAX: none */
    uint32_t numbers[CK_BATCH_ROWS_MAX];
    uint16_t gather[CK_BATCH_ROWS_MAX];
} unnest_op;

static void unnest_free(unnest_op *u) {
    ck_batch_unref(&u->part);
    ck_column_unref(&u->list);
    ck_eval_free(u->eval);
    ck_arena_destroy(&u->arena);
    ck_free(u->mem, u, sizeof *u);
}

static ck_status read_flag(const ck_op_spec *spec, yyjson_val *root, const char *name, bool *out, ck_error *err) {
    yyjson_val *v = yyjson_obj_get(root, name);
    *out = yyjson_get_bool(v);
    if (!v || yyjson_is_bool(v)) return CK_OK;
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"%s\" must be true or false", spec->type, spec->uid, name);
}

static ck_status read_unused(unnest_op *u, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    uint32_t *columns, count = 0;
    u->unused = ck_arena_array(&u->arena, u->input->field_count + 1u, sizeof *u->unused);
    if (!u->unused) return ck_nomem(err, u->arena.mem, u->input->field_count);
    if (yyjson_obj_get(root, "unused"))
        CK_TRY(ck_params_columns(&u->arena, spec, root, "unused", &columns, &count, err));
    for (uint32_t i = 0; i < count; i++) u->unused[columns[i]] = true;
    return CK_OK;
}

/* The output's columns are the input's, what an element adds, and its number. */
static ck_status check_output(unnest_op *u, const ck_op_spec *spec, const ck_type *type, ck_error *err) {
    const ck_type *element = type->fields[0].type;
    u->is_map = type->kind == CK_TYPE_MAP;
    u->of_rows = !u->is_map && element->kind == CK_TYPE_ROW;
    u->element_columns = u->is_map ? 2 : u->of_rows ? element->field_count : 1;
    uint32_t width = u->input->field_count, count = width + u->element_columns + u->ordinality;
    bool same = !spec->schema || spec->schema->field_count == count;
    for (uint32_t i = 0; spec->schema && same && i < count; i++) {
        const ck_type *want = i < width                         ? u->input->fields[i].type
                              : i >= width + u->element_columns ? ck_type_simple(CK_TYPE_BIGINT)
                              : u->of_rows                      ? element->fields[i - width].type
                                                                : type->fields[i - width].type;
        same = ck_type_eq(spec->schema->fields[i].type, want);
    }
    u->output = spec->schema;
    return same ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): its output is not the input's columns and an element's",
                          spec->type, spec->uid);
}

static ck_status unnest_init(unnest_op *u, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"expr", "ordinality", "outer", "unused", NULL};
    yyjson_val *root;
    ck_expr *e = NULL;
    ck_program *program;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    u->input = spec->inputs[0].schema;
    CK_TRY(ck_params_read(&u->arena, spec, known, &root, err));
    CK_TRY(ck_params_expr(&u->arena, spec, root, "expr", &e, err));
    CK_TRY(read_flag(spec, root, "ordinality", &u->ordinality, err));
    CK_TRY(read_flag(spec, root, "outer", &u->outer, err));
    CK_TRY(read_unused(u, spec, root, err));
    if (e->type->kind != CK_TYPE_ARRAY && e->type->kind != CK_TYPE_MAP)
        return ck_fail(err, CK_INVALID, "%s (%s): \"expr\" is neither an ARRAY nor a MAP", spec->type, spec->uid);
    CK_TRY(check_output(u, spec, e->type, err));
    CK_TRY(ck_program_compile(&u->arena, &e, 1, &program, err));
    ck_eval_options o = {spec->proc, u->mem, spec->settings->eval_error_null, spec->settings->timezone,
                         ck_params_input_names(&u->arena, spec)};
    return ck_eval_new(program, &o, &u->eval, err);
}

static ck_status unnest_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    unnest_op *u = ck_alloc_zero(mem, sizeof *u);
    if (!u) return ck_nomem(err, mem, sizeof *u);
    u->mem = mem;
    ck_arena_init(&u->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = unnest_init(u, spec, err);
    if (s == CK_OK)
        *self = u;
    else
        unnest_free(u);
    return s;
}

/* ---- one output batch ---- */

/* The next rows of the output, at most `most`. *all: there is nothing to leave out among the elements. */
static uint32_t choose(unnest_op *u, const ck_batch *b, uint32_t most, bool *all) {
    uint32_t n = 0;
    *all = true;
    for (; u->live < b->sel_count && n < most; u->live++, u->element = 0) {
        uint32_t row = ck_batch_row(b, u->live), first = 0, count = 0;
        if (!ck_column_is_null(u->list, row)) {
            first = (uint32_t)u->list->offsets[row];
            count = (uint32_t)u->list->offsets[row + 1] - first;
        }
        if (count == 0 && u->outer) {
            u->rows[n] = (uint16_t)row;
            u->numbers[n] = 0;
            u->elements[n++] = UINT32_MAX;
            *all = false;
        }
        for (; u->element < count && n < most; u->element++) {
            u->rows[n] = (uint16_t)row;
            u->numbers[n] = u->element + 1;
            u->elements[n++] = first + u->element;
        }
        if (u->element < count) break;
    }
    return n;
}

static ck_status finish(ck_column_builder *b, ck_status s, ck_batch *out, uint32_t index) {
    ck_column *c = s == CK_OK ? ck_column_builder_finish(b) : NULL;
    ck_column_builder_destroy(b);
    if (!c) return CK_NOMEM;
    ck_batch_set_column(out, index, &c);
    return CK_OK;
}

static ck_status copy_inputs(unnest_op *u, const ck_batch *b, uint32_t n, ck_batch *out, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < u->input->field_count; i++) {
        ck_column_builder to;
        if (!b->columns[i]) continue; /* pruned */
        CK_TRY(ck_column_builder_init(&to, ctx->mem, u->input->fields[i].type, n));
        /* A list beside each of its own elements would be quadratic in its length. */
        bool empty = u->unused[i] && to.phys == CK_PHYS_LIST;
        ck_status s = empty ? CK_OK : ck_build_gather(&to, b->columns[i], u->rows, n);
        for (uint32_t k = 0; empty && s == CK_OK && k < n; k++) s = ck_build_end(&to);
        CK_TRY(finish(&to, s, out, i));
    }
    return CK_OK;
}

/* values[elements[i]], NULL where there is none or `holder` (the ROW it is a field of) is NULL. */
static ck_status copy_values(unnest_op *u, const ck_column *values, const ck_column *holder, uint32_t n, bool all,
                             ck_column_builder *to) {
    bool plain = all && values && values->length <= UINT16_MAX && !(holder && holder->validity);
    if (plain) {
        for (uint32_t i = 0; i < n; i++) u->gather[i] = (uint16_t)u->elements[i];
        return ck_build_gather(to, values, u->gather, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = u->elements[i];
        bool none = e == UINT32_MAX || (holder && ck_column_is_null(holder, e));
        CK_TRY(none ? ck_build_null(to) : ck_build_from(to, values, e));
    }
    return CK_OK;
}

static ck_status copy_elements(unnest_op *u, uint32_t n, bool all, ck_batch *out, ck_op_ctx *ctx) {
    const ck_column *child = u->list->child_count ? u->list->children[0] : NULL;
    bool fields = u->is_map || u->of_rows;
    for (uint32_t i = 0; i < u->element_columns; i++) {
        uint32_t at = u->input->field_count + i;
        const ck_column *values = !fields ? child : child && i < child->child_count ? child->children[i] : NULL;
        ck_column_builder to;
        CK_TRY(ck_column_builder_init(&to, ctx->mem, u->output->fields[at].type, n));
        CK_TRY(finish(&to, copy_values(u, values, fields ? child : NULL, n, all, &to), out, at));
    }
    if (!u->ordinality) return CK_OK;
    ck_column_builder to;
    ck_status s = CK_OK;
    CK_TRY(ck_column_builder_init(&to, ctx->mem, ck_type_simple(CK_TYPE_BIGINT), n));
    for (uint32_t i = 0; s == CK_OK && i < n; i++)
        s = u->numbers[i] ? ck_build_i64(&to, u->numbers[i]) : ck_build_null(&to);
    return finish(&to, s, out, u->output->field_count - 1);
}

static ck_status copy_origin(const unnest_op *u, const ck_batch *b, uint32_t n, ck_batch *out, ck_op_ctx *ctx) {
    if (!b->origin) return CK_OK;
    out->origin = ck_origin_new(ctx->mem, b->origin->object, b->origin->base_offset, n);
    if (!out->origin) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) out->origin->row_offset[i] = b->origin->row_offset[u->rows[i]];
    return CK_OK;
}

static ck_status emit(unnest_op *u, const ck_batch *b, uint32_t n, bool all, ck_op_ctx *ctx) {
    ck_batch *out = ck_batch_new(ctx->mem, u->output->field_count, n, false, b->weights != NULL);
    ck_status s = out ? CK_OK : CK_NOMEM;
    if (s == CK_OK) s = copy_inputs(u, b, n, out, ctx);
    if (s == CK_OK) s = copy_elements(u, n, all, out, ctx);
    if (s == CK_OK) s = copy_origin(u, b, n, out, ctx);
    for (uint32_t i = 0; s == CK_OK && b->weights && i < n; i++) out->weights[i] = b->weights[u->rows[i]];
    if (s == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

static ck_status unnest_batch(unnest_op *u, const ck_batch *b, ck_op_ctx *ctx) {
    bool all;
    if (b->sel_count == 0) return CK_OK;
    if (!u->list) {
        ck_eval_set_now(u->eval, ck_op_now_us(ctx));
        CK_TRY(ck_eval_run(u->eval, b, &u->list, ctx->error));
        u->live = u->element = 0;
    }
    uint32_t n = choose(u, b, ctx->settings->batch_rows, &all);
    bool done = u->live == b->sel_count;
    ck_status s = n ? emit(u, b, n, all, ctx) : CK_OK;
    if (done || s != CK_OK) ck_column_unref(&u->list);
    return s != CK_OK ? s : done ? CK_OK : CK_MORE;
}

static ck_status unnest_in_parts(unnest_op *u, ck_batch *b, ck_op_ctx *ctx) {
    for (;;) {
        if (!u->part && !(u->part = ck_parts_next(&u->parts, b)))
            return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *b->sel);
        ck_status s = unnest_batch(u, u->part, ctx), answer;
        if (s == CK_MORE) return s;
        uint32_t n = u->part->sel_count;
        ck_batch_unref(&u->part);
        if (!ck_parts_again(&u->parts, b, n, s, &answer, ctx->error)) return answer;
    }
}

static ck_status unnest_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? unnest_in_parts(self, ev->batch, ctx) : CK_OK;
}

static void unnest_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    unnest_free(self);
}

static const ck_operator_vtbl unnest_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = unnest_on_event,
    .close = unnest_close,
};

const ck_op_desc ck_op_unnest = {
    .type = "unnest", .op = &unnest_vtbl, .create = unnest_create, .again = ck_op_again_by_rows};
