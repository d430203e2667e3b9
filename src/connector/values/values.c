/* VALUES, INSERT ... VALUES and SELECT without FROM: rows written in the statement. One split, whose position is the
 * number of the next row. */
#include "connector/connectors.h"

#include <yyjson.h>

#include "base/json.h"
#include "data/builder.h"
#include "expr/tree.h"

typedef struct values_source {
    ck_mem mem;
    ck_arena arena;
    const ck_schema *schema;
    ck_expr ***rows; /* literals */
    uint64_t row_count, next;
    bool owned; /* the split is ours */
} values_source;

enum { VALUES_BYTES_MAX = 256 << 20 };

static ck_status read_rows(values_source *v, const ck_op_spec *spec, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(&v->arena, ck_view_of(spec->params), &doc, err));
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "rows"), *row, *cell;
    size_t r, rn, c, cn;
    v->row_count = yyjson_arr_size(list);
    v->rows = ck_arena_array(&v->arena, v->row_count + 1, sizeof *v->rows);
    if (!v->rows) return ck_nomem(err, v->arena.mem, v->row_count * sizeof *v->rows);
    bool good = yyjson_is_arr(list);
    yyjson_arr_foreach(list, r, rn, row) {
        good = good && yyjson_arr_size(row) == v->schema->field_count;
        if (!good) break;
        v->rows[r] = ck_arena_array(&v->arena, v->schema->field_count + 1u, sizeof(ck_expr *));
        if (!v->rows[r]) return ck_nomem(err, v->arena.mem, v->schema->field_count * sizeof(ck_expr *));
        yyjson_arr_foreach(row, c, cn, cell) {
            CK_TRY(ck_expr_from_json(&v->arena, ck_spec_library(spec), cell, &v->rows[r][c], err));
            const ck_expr *e = v->rows[r][c];
            good = good && e->kind == CK_EXPR_LITERAL &&
                   (e->value.null || ck_type_phys(e->type) == ck_type_phys(v->schema->fields[c].type));
        }
    }
    return good ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): \"rows\" must be rows of %u literals of the columns' types",
                          spec->type, spec->uid, v->schema->field_count);
}

static ck_status values_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    values_source *v = ck_alloc_zero(mem, sizeof *v);
    if (!v) return ck_nomem(err, mem, sizeof *v);
    v->mem = mem;
    v->schema = spec->schema;
    ck_arena_init(&v->arena, ck_mem_as(mem, CK_MEM_PLAN), VALUES_BYTES_MAX);
    ck_status s = read_rows(v, spec, err);
    if (s == CK_OK) {
        *self = v;
    } else {
        ck_arena_destroy(&v->arena);
        ck_free(mem, v, sizeof *v);
    }
    return s;
}

static ck_status values_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    (void)spec;
    (void)parallelism;
    if (ck_split_list_add(out, "values", "{\"position\":0}") != CK_OK) return ck_nomem(err, out->arena->mem, 32);
    return CK_OK;
}

static ck_status values_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    values_source *v = self;
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(ctx->arena, ck_view_of(split->spec), &doc, ctx->error));
    yyjson_val *position = yyjson_obj_get(yyjson_doc_get_root(doc), "position");
    if (!yyjson_is_uint(position) || yyjson_get_uint(position) > v->row_count)
        return ck_fail(ctx->error, CK_CORRUPT, "split %s does not fit its rows: %s", split->id, split->spec);
    v->next = yyjson_get_uint(position);
    v->owned = true;
    return CK_OK;
}

static ck_status build_datum(ck_column_builder *b, const ck_datum *d) {
    if (d->null) return ck_build_null(b);
    switch (b->phys) {
    case CK_PHYS_BOOL: return ck_build_bool(b, d->b);
    case CK_PHYS_I64: return ck_build_i64(b, d->i64);
    case CK_PHYS_F64: return ck_build_f64(b, d->f64);
    case CK_PHYS_I128: return ck_build_i128(b, d->i128);
    case CK_PHYS_VIEW: return ck_build_str(b, d->str.p, d->str.n);
    default: return ck_build_null(b); /* literals are scalars */
    }
}

static ck_status values_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    values_source *v = self;
    (void)until_us;
    *result = CK_POLL_END;
    if (!v->owned || v->next == v->row_count) return CK_OK;
    uint64_t left = v->row_count - v->next;
    uint32_t n = left < ctx->settings->batch_rows ? (uint32_t)left : ctx->settings->batch_rows;
    ck_batch_builder b;
    ck_status s = ck_batch_builder_init(&b, ctx->mem, v->schema, n);
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        for (uint32_t c = 0; s == CK_OK && c < v->schema->field_count; c++)
            s = build_datum(&b.columns[c], &v->rows[v->next + i][c]->value);
        ck_batch_builder_row(&b, 1);
    }
    ck_batch *out = s == CK_OK ? ck_batch_builder_finish(&b) : NULL;
    ck_batch_builder_destroy(&b);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    v->next += n;
    ck_op_count(ctx, "rows_in", n);
    *result = v->next < v->row_count ? CK_POLL_MORE : CK_POLL_END;
    return ck_op_emit(ctx, 0, &out);
}

static ck_status values_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    values_source *v = self;
    if (!v->owned) return CK_OK;
    const char *spec = ck_arena_printf(ctx->arena, "{\"position\":%llu}", (unsigned long long)v->next);
    if (!spec || ck_split_list_add(out, "values", spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, 64);
    return CK_OK;
}

static void values_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    values_source *v = self;
    ck_arena_destroy(&v->arena);
    ck_free(v->mem, v, sizeof *v);
}

static const ck_source_vtbl values_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = values_add_split,
    .poll = values_poll,
    .snapshot = values_snapshot,
    .close = values_close,
};

const ck_op_desc ck_op_source_values = {
    .type = "source.values", .source = &values_vtbl, .create = values_create, .enumerate = values_enumerate};
