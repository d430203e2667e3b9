#include "operator/late_int.h"

#include <yyjson.h>

#include "data/builder.h"
#include "stream/event.h"

ck_status ck_late_read(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member, uint32_t input,
                       ck_late *out, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member), *v;
    size_t i, n;
    *out = (ck_late){0};
    if (!list || yyjson_is_null(list)) return CK_OK;
    int64_t *columns = ck_arena_array(a, yyjson_arr_size(list) + 1, sizeof *columns);
    const ck_type **types = ck_arena_array(a, yyjson_arr_size(list) + 1, sizeof(ck_type *));
    if (!columns || !types) return ck_nomem(err, a->mem, yyjson_arr_size(list) * sizeof *columns);
    bool fine = yyjson_arr_size(list) > 0;
    const ck_schema *in = spec->inputs[input].schema;
    yyjson_arr_foreach(list, i, n, v) {
        bool is_column = yyjson_is_uint(v) && yyjson_get_uint(v) < in->field_count;
        columns[i] = is_column ? (int64_t)yyjson_get_uint(v) : -1;
        if (is_column && !(types[i] = ck_type_copy(a, in->fields[columns[i]].type)))
            return ck_nomem(err, a->mem, sizeof *in);
        fine = fine && (is_column || yyjson_is_null(v));
    }
    if (!fine)
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"%s\" is an array of input columns", spec->type, spec->uid,
                       member);
    *out = (ck_late){
        .routed = true, .port = CK_PORT_LATE + input, .columns = columns, .types = types, .count = (uint32_t)n};
    return CK_OK;
}

static int64_t floor_ms_of(int64_t us) { return us / 1000 - (us % 1000 < 0); }

/* "+I" or "-D" for each row that is late. */
static ck_column *kinds_of(const ck_batch *b, const uint16_t *rows, uint32_t n, ck_mem mem) {
    static const ck_type text = {.kind = CK_TYPE_VARCHAR};
    ck_column_builder builder;
    ck_column *out = NULL;
    ck_status s = ck_column_builder_init(&builder, mem, &text, n);
    for (uint32_t k = 0; s == CK_OK && k < n; k++)
        s = ck_build_str(&builder, b->weights && b->weights[rows[k]] < 0 ? "-D" : "+I", 2);
    if (s == CK_OK) out = ck_column_builder_finish(&builder);
    ck_column_builder_destroy(&builder);
    return out;
}

static ck_column *gathered(const ck_batch *b, uint32_t column, const ck_type *type, const uint16_t *rows, uint32_t n,
                           ck_mem mem) {
    ck_column_builder builder;
    ck_column *out = NULL;
    ck_status s = ck_column_builder_init(&builder, mem, type, n);
    if (s == CK_OK) s = ck_build_gather(&builder, b->columns[column], rows, n);
    if (s == CK_OK) out = ck_column_builder_finish(&builder);
    ck_column_builder_destroy(&builder);
    return out;
}

/* The counter goes up by what the latest row is later than all before: it stands at the greatest. */
static void count_lateness(ck_late *l, const ck_batch *b, const uint16_t *rows, uint32_t n, int64_t watermark,
                           ck_op_ctx *ctx) {
    const ck_column *times = b->columns[l->time];
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (times->i64[rows[i]] < least) least = times->i64[rows[i]];
    if (watermark == CK_WATERMARK_MAX) return; /* at the end everything is over */
    int64_t ms = floor_ms_of(watermark + 1) - (l->millis ? least : floor_ms_of(least));
    if (ms <= l->behind_ms) return;
    ck_op_count(ctx, "late_by_ms", (uint64_t)(ms - l->behind_ms));
    l->behind_ms = ms;
}

ck_status ck_late_drop(ck_late *l, const ck_batch *b, const uint16_t *rows, uint32_t n, int64_t watermark,
                       ck_op_ctx *ctx) {
    if (n == 0) return CK_OK;
    ck_op_count(ctx, "late_rows", n);
    count_lateness(l, b, rows, n, watermark, ctx);
    if (!l->routed) return CK_OK;
    ck_batch *out = ck_batch_new(ctx->mem, l->count, n, false, false);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    for (uint32_t i = 0; i < l->count; i++) {
        ck_column *c = l->columns[i] < 0 ? kinds_of(b, rows, n, ctx->mem)
                                         : gathered(b, (uint32_t)l->columns[i], l->types[i], rows, n, ctx->mem);
        if (!c) {
            ck_batch_unref(&out);
            return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        }
        ck_batch_set_column(out, i, &c);
    }
    return ck_op_emit(ctx, l->port, &out);
}
