#include "connector/table.h"

#include <yyjson.h>

#include "base/json.h"
#include "data/text.h"
#include "expr/tree.h"

static ck_status bad(const ck_op_spec *spec, const char *member, const char *wanted, ck_error *err) {
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"%s\" must be %s", spec->type, spec->uid, member, wanted);
}

static ck_status read_root(ck_arena *a, const ck_op_spec *spec, yyjson_val **root, ck_error *err) {
    struct yyjson_doc *doc;
    ck_status s = ck_json_read(a, ck_view_of(spec->params), &doc, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "parameters of %s (%s): ", spec->type, spec->uid);
        return s;
    }
    *root = yyjson_doc_get_root(doc);
    return yyjson_is_obj(*root)
               ? CK_OK
               : ck_fail(err, CK_INVALID, "parameters of %s (%s) are not a JSON object", spec->type, spec->uid);
}

static ck_status read_options(ck_arena *a, const ck_op_spec *spec, yyjson_val *root, ck_table_options *out,
                              ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "options"), *key, *value;
    *out = (ck_table_options){0};
    if (!list) return CK_OK;
    if (!yyjson_is_obj(list)) return bad(spec, "options", "an object of texts", err);
    size_t n = yyjson_obj_size(list), i;
    const char **names = ck_arena_array(a, n + 1, sizeof *names), **values = ck_arena_array(a, n + 1, sizeof *values);
    if (!names || !values) return ck_nomem(err, a->mem, n * sizeof *names);
    yyjson_obj_foreach(list, i, n, key, value) {
        if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value))
            return bad(spec, "options", "an object of texts", err);
        names[i] = yyjson_get_str(key);
        values[i] = yyjson_get_str(value);
    }
    *out = (ck_table_options){names, values, (uint32_t)n};
    return CK_OK;
}

static ck_status read_schema(ck_arena *a, const ck_op_spec *spec, yyjson_val *root, const ck_schema **out,
                             ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "table_schema"), *v;
    if (!yyjson_is_arr(list)) return bad(spec, "table_schema", "an array of columns", err);
    size_t n = yyjson_arr_size(list), i;
    ck_schema *s = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, n + 1, sizeof *fields);
    if (!s || !fields) return ck_nomem(err, a->mem, n * sizeof *fields);
    yyjson_arr_foreach(list, i, n, v) {
        yyjson_val *name = yyjson_obj_get(v, "name"), *type = yyjson_obj_get(v, "type"),
                   *nullable = yyjson_obj_get(v, "nullable");
        if (!yyjson_is_str(name) || !yyjson_is_str(type) || (nullable && !yyjson_is_bool(nullable)))
            return bad(spec, "table_schema", "an array of columns with name, type, nullable", err);
        fields[i].name = yyjson_get_str(name);
        fields[i].nullable = nullable ? yyjson_get_bool(nullable) : true;
        CK_TRY(ck_type_parse(a, (ck_view){yyjson_get_str(type), yyjson_get_len(type)}, &fields[i].type, err));
    }
    *s = (ck_schema){fields, (uint32_t)n};
    *out = s;
    return CK_OK;
}

static ck_status read_columns(ck_arena *a, const ck_op_spec *spec, yyjson_val *root, const char *member,
                              uint32_t field_count, const uint32_t **out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member), *v;
    *out = NULL;
    *count = 0;
    if (!list || yyjson_is_null(list)) return CK_OK;
    if (!yyjson_is_arr(list)) return bad(spec, member, "an array of column numbers", err);
    size_t n = yyjson_arr_size(list), i;
    uint32_t *columns = ck_arena_array(a, n + 1, sizeof *columns);
    if (!columns) return ck_nomem(err, a->mem, n * sizeof *columns);
    yyjson_arr_foreach(list, i, n, v) {
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) >= field_count)
            return bad(spec, member, "an array of column numbers", err);
        columns[i] = (uint32_t)yyjson_get_uint(v);
    }
    *out = columns;
    *count = (uint32_t)n;
    return CK_OK;
}

static ck_status read_table_name(const ck_op_spec *spec, yyjson_val *root, const char **out, ck_error *err) {
    yyjson_val *name = yyjson_obj_get(root, "table");
    *out = yyjson_get_str(name);
    return !name || *out ? CK_OK : bad(spec, "table", "a text", err);
}

/* Marks the columns of a list. */
static ck_status flags_of(ck_arena *a, const uint32_t *columns, uint32_t count, uint32_t field_count, const bool **out,
                          ck_error *err) {
    bool *flags = ck_arena_array(a, field_count + 1u, sizeof *flags);
    if (!flags) return ck_nomem(err, a->mem, field_count);
    for (uint32_t i = 0; i < count; i++) flags[columns[i]] = true;
    *out = flags;
    return CK_OK;
}

static ck_status check_output(const ck_op_spec *spec, const ck_source_table *t, ck_error *err) {
    bool same = !spec->schema || spec->schema->field_count == t->column_count;
    for (uint32_t i = 0; spec->schema && same && i < t->column_count; i++)
        same = ck_type_eq(spec->schema->fields[i].type, t->schema->fields[t->columns[i]].type);
    return same
               ? CK_OK
               : ck_fail(err, CK_INVALID, "%s (%s): its output is not the columns it was given", spec->type, spec->uid);
}

static void want(void *arg, uint32_t column) { ((bool *)arg)[column] = true; }

ck_status ck_source_table_read(ck_arena *a, const ck_op_spec *spec, ck_source_table *out, ck_error *err) {
    yyjson_val *root;
    const uint32_t *checked;
    uint32_t checked_count;
    *out = (ck_source_table){0};
    CK_TRY(read_root(a, spec, &root, err));
    CK_TRY(read_table_name(spec, root, &out->table, err));
    CK_TRY(read_schema(a, spec, root, &out->schema, err));
    uint32_t n = out->schema->field_count;
    CK_TRY(read_columns(a, spec, root, "columns", n, &out->columns, &out->column_count, err));
    CK_TRY(read_columns(a, spec, root, "checked", n, &checked, &checked_count, err));
    CK_TRY(flags_of(a, out->columns, out->column_count, n, &out->wanted, err));
    CK_TRY(flags_of(a, checked, checked_count, n, &out->checked, err));
    CK_TRY(read_options(a, spec, root, &out->options, err));
    CK_TRY(ck_event_time_read(a, spec, out->schema, yyjson_obj_get(root, "event_time"), &out->event_time, err));
    if (out->event_time) ck_expr_visit_columns(out->event_time->expr, want, (bool *)(uintptr_t)out->wanted);
    if (!out->table) return bad(spec, "table", "a text", err);
    return check_output(spec, out, err);
}

static const uint32_t no_column;

ck_status ck_sink_table_read(ck_arena *a, const ck_op_spec *spec, ck_sink_table *out, struct yyjson_val **root,
                             ck_error *err) {
    yyjson_val *r;
    *out = (ck_sink_table){0};
    if (spec->input_count != 1 || !spec->inputs[0].schema)
        return ck_fail(err, CK_INVALID, "%s (%s) takes one input, not %u", spec->type, spec->uid, spec->input_count);
    out->schema = spec->schema ? spec->schema : spec->inputs[0].schema; /* the table's or result's own column names */
    if (out->schema->field_count != spec->inputs[0].schema->field_count)
        return ck_fail(err, CK_INVALID, "%s (%s) has %u columns, its input %u", spec->type, spec->uid,
                       out->schema->field_count, spec->inputs[0].schema->field_count);
    CK_TRY(read_root(a, spec, &r, err));
    CK_TRY(read_table_name(spec, r, &out->table, err));
    const char *key = yyjson_obj_get(r, "key") ? "key" : "primary_key";
    CK_TRY(read_columns(a, spec, r, key, out->schema->field_count, &out->key, &out->key_count, err));
    if (out->key_count == 0) out->key = yyjson_get_bool(yyjson_obj_get(r, "one_row")) ? &no_column : NULL;
    CK_TRY(read_options(a, spec, r, &out->options, err));
    if (root) *root = r;
    return CK_OK;
}

ck_status ck_sink_check_nulls(const ck_sink_table *t, const ck_batch *b, ck_error *err) {
    for (uint32_t c = 0; t->table && c < t->schema->field_count; c++) {
        const ck_column *column = b->columns[c];
        if (t->schema->fields[c].nullable || (column->phys != CK_PHYS_NULL && !column->validity)) continue;
        for (uint32_t k = 0; k < b->sel_count; k++)
            if (ck_column_is_null(column, ck_batch_row(b, k)) && ck_batch_weight(b, ck_batch_row(b, k)) > 0)
                return ck_fail(err, CK_DATA, "column \"%s\" of \"%s\" is NOT NULL, and a row gives it NULL",
                               t->schema->fields[c].name, t->table);
    }
    return CK_OK;
}

ck_batch *ck_source_output(const ck_source_table *t, const ck_batch *b) {
    return ck_batch_project(b, t->columns, t->column_count);
}

bool ck_source_skips(const ck_op_ctx *ctx, const char *object, uint64_t offset) {
    const ck_job_settings *s = ctx->settings;
    for (uint32_t i = 0; i < s->skip_count; i++)
        if (s->skips[i].offset == offset && strcmp(s->skips[i].object, object) == 0) return true;
    return false;
}

/* Takes out of *b the rows the job goes on without; they are found by their origin. */
static ck_status leave_out(ck_batch **b, ck_op_ctx *ctx) {
    const ck_batch *from = *b;
    const ck_origin *o = from ? from->origin : NULL;
    uint32_t kept = 0;
    if (!o || ctx->settings->skip_count == 0) return CK_OK;
    uint16_t *sel = ck_arena_array(ctx->arena, from->sel_count, sizeof *sel);
    if (!sel) return ck_nomem(ctx->error, ctx->mem, from->sel_count * sizeof *sel);
    for (uint32_t k = 0; k < from->sel_count; k++) {
        uint32_t row = ck_batch_row(from, k);
        if (row >= o->row_count || !ck_source_skips(ctx, o->object, o->base_offset + o->row_offset[row]))
            sel[kept++] = (uint16_t)row;
    }
    if (kept == from->sel_count) return CK_OK;
    ck_op_count(ctx, "bad_rows", from->sel_count - kept);
    ck_batch *left = ck_batch_select(from, sel, kept);
    if (!left) return ck_nomem(ctx->error, ctx->mem, kept * sizeof *sel);
    ck_batch_unref(b);
    *b = left;
    return CK_OK;
}

ck_status ck_source_emit(const ck_source_table *t, ck_event_time *times, uint32_t clock, ck_batch **b, uint32_t rows,
                         ck_op_ctx *ctx) {
    ck_status status = leave_out(b, ctx);
    ck_batch *out = *b && status == CK_OK ? ck_source_output(t, *b) : NULL;
    if (status == CK_OK)
        status =
            out ? ck_event_time_see(times, clock, *b, ctx) : ck_nomem(ctx->error, ctx->mem, rows * sizeof(ck_strview));
    ck_batch_unref(b);
    if (status != CK_OK) {
        ck_batch_unref(&out);
        return status;
    }
    ck_op_count(ctx, "rows_in", rows);
    CK_TRY(ck_op_emit(ctx, 0, &out));
    return ck_event_time_say(times, ctx);
}

/* ---- options ---- */

const char *ck_option_text(const ck_table_options *o, const char *name, const char *deflt) {
    for (uint32_t i = 0; i < o->count; i++)
        if (strcmp(o->names[i], name) == 0) return o->values[i];
    return deflt;
}

static ck_status bad_option(const char *name, const char *value, const char *wanted, ck_error *err) {
    return ck_fail(err, CK_INVALID, "option '%s' is '%s', which is not %s", name, value, wanted);
}

ck_status ck_option_bool(const ck_table_options *o, const char *name, bool deflt, bool *out, ck_error *err) {
    const char *v = ck_option_text(o, name, NULL);
    *out = deflt;
    if (!v || ck_parse_bool(ck_view_of(v), out)) return CK_OK;
    return bad_option(name, v, "true or false", err);
}

ck_status ck_option_i64(const ck_table_options *o, const char *name, int64_t deflt, int64_t lo, int64_t hi,
                        int64_t *out, ck_error *err) {
    const char *v = ck_option_text(o, name, NULL);
    *out = deflt;
    if (!v) return CK_OK;
    if (ck_parse_i64(ck_view_of(v), out) && *out >= lo && *out <= hi) return CK_OK;
    if (hi == INT64_MAX)
        return ck_fail(err, CK_INVALID, "option '%s' is '%s', which is not a whole number of at least %lld", name, v,
                       (long long)lo);
    return ck_fail(err, CK_INVALID, "option '%s' is '%s', which is not a whole number from %lld to %lld", name, v,
                   (long long)lo, (long long)hi);
}

ck_status ck_option_f64(const ck_table_options *o, const char *name, double deflt, double *out, ck_error *err) {
    const char *v = ck_option_text(o, name, NULL);
    *out = deflt;
    if (!v || (ck_parse_f64(ck_view_of(v), out) && *out - *out == 0)) return CK_OK;
    return bad_option(name, v, "a number", err);
}

/* The first column that is read and that rows of before may have under another name; NULL: none. */
static const char *renamed_column(yyjson_val *root) {
    yyjson_val *schema = yyjson_obj_get(root, "table_schema"), *column;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(root, "columns"), i, n, column) {
        yyjson_val *field = yyjson_arr_get(schema, yyjson_get_uint(column));
        if (yyjson_obj_get(field, "renamed_from")) return yyjson_get_str(yyjson_obj_get(field, "name"));
    }
    return NULL;
}

ck_status ck_source_again(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec->params), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *renamed = renamed_column(root);
    *out = (ck_again){0};
    if (ck_expr_json_is_volatile(ck_spec_library(spec), root)) out->why_not = "asks the clock or for random values";
    if (!renamed) return CK_OK;
    out->why_not = ck_arena_printf(a, "has rows of before its column '%s' was renamed", renamed);
    return out->why_not ? CK_OK : ck_nomem(err, a->mem, strlen(renamed));
}
