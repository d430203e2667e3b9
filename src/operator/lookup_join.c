/* FOR SYSTEM_TIME AS OF PROCTIME() with a table outside: each row meets what is found for its key when it comes.
 * Nothing of it is kept, and what was said is not taken back. */
#include "operator/lookup_join.h"

#include <yyjson.h>

#include "base/json.h"
#include "operator/params_int.h"
#include "operator/time_side_int.h"

typedef struct lookup_join {
    ck_mem mem;
    ck_arena arena;
    bool outer;
    const ck_schema *left, *right;
    ck_key_spec keys; /* of the left */
    ck_eval *eval;    /* of the residual; NULL: none */
    const ck_lookup_vtbl *vtbl;
    void *table;
    ck_op_spec inner;
    /* the batch in hand */
    ck_batch *rows; /* those with a key */
    bool running;
    uint8_t met[CK_BATCH_ROWS_MAX]; /* by live row of rows */
    uint16_t sel[CK_BATCH_ROWS_MAX], at[CK_BATCH_ROWS_MAX];
} lookup_join;

static void lookup_free(lookup_join *op) {
    ck_batch_unref(&op->rows);
    if (op->eval) ck_eval_free(op->eval);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *what) {
    return ck_fail(err, CK_INVALID, "%s (%s): %s", spec->type, spec->uid, what);
}

/* What the table is created from: the source's parameters, and the right columns as its schema. */
static ck_status inner_spec(lookup_join *op, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    uint32_t left = op->left->field_count, width = spec->schema ? spec->schema->field_count : 0;
    ck_schema *right = CK_ARENA_NEW(&op->arena, ck_schema);
    size_t n;
    yyjson_alc alc;
    ck_json_alc(&op->arena, &alc);
    const char *params = yyjson_val_write_opts(yyjson_obj_get(root, "source"), 0, &alc, &n, NULL);
    if (!yyjson_is_obj(yyjson_obj_get(root, "source"))) return bad(spec, err, "it has no source");
    if (!params || !right) return ck_nomem(err, op->arena.mem, sizeof *right);
    if (width <= left) return bad(spec, err, "its output is not its left columns and its right columns");
    *right = (ck_schema){spec->schema->fields + left, width - left};
    if (!(op->right = ck_schema_copy(&op->arena, right))) return ck_nomem(err, op->arena.mem, sizeof *right);
    op->inner = *spec;
    op->inner.params = params;
    op->inner.schema = op->right;
    op->inner.inputs = NULL, op->inner.input_count = 0;
    return CK_OK;
}

static ck_status lookup_init(lookup_join *op, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"kind", "left_keys", "right_keys", "residual", "source", NULL};
    yyjson_val *root;
    uint32_t *left, *right, left_count, right_count;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT | 1u << CK_MODE_RETRACT, err));
    CK_TRY(ck_params_read(&op->arena, spec, known, &root, err));
    yyjson_val *kind = yyjson_obj_get(root, "kind");
    op->outer = yyjson_equals_str(kind, "left");
    if (!op->outer && !yyjson_equals_str(kind, "inner")) return bad(spec, err, "kind is inner or left");
    op->left = ck_schema_copy(&op->arena, spec->inputs[0].schema);
    if (!op->left) return ck_nomem(err, op->arena.mem, sizeof *op->left);
    CK_TRY(inner_spec(op, spec, root, err));
    CK_TRY(ck_time_side_columns(&op->arena, spec, root, "left_keys", op->left, &left, &left_count, err));
    CK_TRY(ck_time_side_columns(&op->arena, spec, root, "right_keys", op->right, &right, &right_count, err));
    const ck_type **types = ck_arena_array(&op->arena, left_count + 1u, sizeof(ck_type *));
    if (!types) return ck_nomem(err, op->arena.mem, left_count * sizeof(ck_type *));
    bool same = left_count == right_count && left_count > 0;
    for (uint32_t i = 0; same && i < left_count; i++) {
        types[i] = op->left->fields[left[i]].type;
        same = ck_type_eq(types[i], op->right->fields[right[i]].type);
    }
    if (!same) return bad(spec, err, "both sides have the same keys, one at least, each of one type");
    op->keys = (ck_key_spec){left, types, left_count};
    CK_TRY(ck_time_side_residual(&op->arena, op->mem, spec, root, op->left, op->right, &op->eval, NULL, err));
    ck_lookup_spec s = {&op->inner, right, right_count};
    return op->vtbl->create(&s, op->mem, &op->table, err);
}

ck_status ck_lookup_join_create(const ck_op_spec *spec, const ck_lookup_vtbl *vtbl, ck_mem mem, void **self,
                                ck_error *err) {
    lookup_join *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    op->vtbl = vtbl;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = lookup_init(op, spec, err);
    if (s == CK_OK)
        *self = op;
    else
        lookup_free(op);
    return s;
}

/* ---- a batch ---- */

static ck_status emit_found(lookup_join *op, const ck_lookup_found *f, ck_op_ctx *ctx) {
    uint32_t left = op->left->field_count, n = f->count, passed = n;
    ck_status s = CK_OK;
    ck_batch *pairs = ck_batch_new(ctx->mem, left + op->right->field_count, n, false, false), *out = NULL;
    if (!pairs) return ck_nomem(ctx->error, ctx->mem, n);
    for (uint32_t i = 0; i < n; i++) op->at[i] = (uint16_t)ck_batch_row(op->rows, f->key_of[i]);
    for (uint32_t c = 0; s == CK_OK && c < left; c++) {
        ck_column_builder b;
        s = ck_column_builder_init(&b, ctx->mem, op->left->fields[c].type, n);
        if (s == CK_OK) ck_column_builder_take_with(&b, ctx->proc->cpu);
        if (s == CK_OK) s = ck_build_gather(&b, op->rows->columns[c], op->at, n);
        ck_column *column = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
        ck_column_builder_destroy(&b);
        if (!column) s = ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        if (column) ck_batch_set_column(pairs, c, &column);
    }
    for (uint32_t c = 0; s == CK_OK && c < op->right->field_count; c++) {
        ck_column *column = ck_column_ref(f->rows->columns[c]);
        ck_batch_set_column(pairs, left + c, &column);
    }
    if (s == CK_OK && op->eval) {
        ck_eval_set_now(op->eval, ck_op_now_us(ctx));
        s = ck_eval_filter(op->eval, pairs, op->sel, &passed, ctx->error);
    }
    for (uint32_t i = 0; s == CK_OK && i < passed; i++) op->met[f->key_of[op->eval ? op->sel[i] : i]] = 1;
    if (s == CK_OK) out = op->eval ? ck_batch_select(pairs, op->sel, passed) : ck_batch_ref(pairs);
    ck_batch_unref(&pairs);
    if (s != CK_OK) return s;
    return out ? ck_op_emit(ctx, 0, &out) : ck_nomem(ctx->error, ctx->mem, n);
}

/* Rows without a key, and at the end those for which nothing was found. */
static ck_status pad(lookup_join *op, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    return op->outer ? ck_time_side_pad(b, op->sel, n, op->right, false, ctx) : CK_OK;
}

static ck_status begin(lookup_join *op, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = 0, lone = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (ck_time_side_null_key(&op->keys, b, row))
            op->sel[lone++] = (uint16_t)row;
        else
            op->at[n++] = (uint16_t)row;
    }
    if (!(op->rows = ck_batch_select(b, op->at, n))) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->at);
    memset(op->met, 0, n);
    op->running = true;
    return pad(op, b, lone, ctx);
}

static ck_status take_batch(lookup_join *op, const ck_batch *b, ck_op_ctx *ctx) {
    ck_lookup_found f = {0};
    uint32_t lone = 0;
    if (!op->running) CK_TRY(begin(op, b, ctx));
    if (op->rows->sel_count) {
        CK_TRY(op->vtbl->find(op->table, &op->keys, op->rows, &f, ctx));
        ck_status s = f.count ? emit_found(op, &f, ctx) : CK_OK;
        if (s != CK_OK) return s;
        if (f.more) return CK_MORE;
    }
    for (uint32_t k = 0; k < op->rows->sel_count; k++) {
        op->sel[lone] = (uint16_t)ck_batch_row(op->rows, k);
        lone += !op->met[k];
    }
    ck_batch *rows = op->rows;
    op->rows = NULL;
    op->running = false;
    ck_status s = pad(op, rows, lone, ctx);
    ck_batch_unref(&rows);
    return s;
}

static ck_status lookup_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH && ev->batch->sel_count ? take_batch(self, ev->batch, ctx) : CK_OK;
}

static void lookup_close(void *self, ck_op_ctx *ctx) {
    lookup_join *op = self;
    if (op->table) op->vtbl->close(op->table, ctx);
    lookup_free(op);
}

const ck_operator_vtbl ck_lookup_join_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl), .on_event = lookup_on_event, .close = lookup_close};
