#include "operator/params_int.h"

#include <yyjson.h>

#include "base/json.h"

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *member, const char *wanted) {
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"%s\" must be %s", spec->type, spec->uid, member, wanted);
}

ck_status ck_params_read(ck_arena *a, const ck_op_spec *spec, const char *const *known, struct yyjson_val **root,
                         ck_error *err) {
    struct yyjson_doc *doc;
    ck_status s = ck_json_read(a, ck_view_of(spec->params), &doc, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "parameters of %s (%s): ", spec->type, spec->uid);
        return s;
    }
    *root = yyjson_doc_get_root(doc);
    if (!yyjson_is_obj(*root))
        return ck_fail(err, CK_INVALID, "parameters of %s (%s) are not a JSON object", spec->type, spec->uid);
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(*root, i, n, key, value) {
        size_t k = 0;
        while (known[k] && !yyjson_equals_str(key, known[k])) k++;
        if (!known[k])
            return ck_fail(err, CK_INVALID, "%s (%s) has no parameter \"%s\"", spec->type, spec->uid,
                           yyjson_get_str(key));
    }
    return CK_OK;
}

static bool column_number(const ck_op_spec *spec, yyjson_val *v, uint32_t *out) {
    if (!yyjson_is_uint(v) || spec->input_count == 0) return false;
    uint64_t n = yyjson_get_uint(v);
    if (n >= spec->inputs[0].schema->field_count) return false;
    *out = (uint32_t)n;
    return true;
}

ck_status ck_params_columns(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                            uint32_t **out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member);
    if (!yyjson_is_arr(list)) return bad(spec, err, member, "an array of column numbers");
    size_t n = yyjson_arr_size(list);
    *out = ck_arena_array(a, n + 1, sizeof **out);
    if (!*out) return ck_nomem(err, a->mem, (n + 1) * sizeof **out);
    size_t i, max;
    yyjson_val *v;
    yyjson_arr_foreach(list, i, max, v) {
        if (!column_number(spec, v, &(*out)[i])) return bad(spec, err, member, "an array of column numbers");
    }
    *count = (uint32_t)n;
    return CK_OK;
}

typedef struct column_check {
    uint32_t columns;
    bool out_of_range;
} column_check;

static void check_column(void *arg, uint32_t column) {
    column_check *c = arg;
    if (column >= c->columns) c->out_of_range = true;
}

static ck_status read_expr(ck_arena *a, const ck_op_spec *spec, yyjson_val *v, const char *member, const char *wanted,
                           ck_expr **out, ck_error *err) {
    column_check check = {spec->inputs[0].schema->field_count, false};
    ck_status s = ck_expr_from_json(a, ck_spec_library(spec), v, out, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "%s (%s): ", spec->type, spec->uid);
        return s;
    }
    ck_expr_visit_columns(*out, check_column, &check);
    return check.out_of_range ? bad(spec, err, member, wanted) : CK_OK;
}

ck_status ck_params_exprs(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                          ck_expr ***out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member);
    if (!yyjson_is_arr(list)) return bad(spec, err, member, "an array of expressions");
    size_t n = yyjson_arr_size(list);
    *out = ck_arena_array(a, n + 1, sizeof **out);
    if (!*out) return ck_nomem(err, a->mem, (n + 1) * sizeof **out);
    size_t i, max;
    yyjson_val *v;
    yyjson_arr_foreach(list, i, max, v)
        CK_TRY(read_expr(a, spec, v, member, "expressions over the input's columns", &(*out)[i], err));
    *count = (uint32_t)n;
    return CK_OK;
}

ck_status ck_params_expr(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                         ck_expr **out, ck_error *err) {
    yyjson_val *v = yyjson_obj_get(root, member);
    if (!yyjson_is_obj(v)) return bad(spec, err, member, "an expression");
    return read_expr(a, spec, v, member, "an expression over the input's columns", out, err);
}

ck_status ck_params_column(const ck_op_spec *spec, struct yyjson_val *object, const char *member, int64_t *out,
                           ck_error *err) {
    yyjson_val *v = yyjson_obj_get(object, member);
    *out = -1;
    if (!v || yyjson_is_null(v)) return CK_OK;
    uint32_t column;
    if (!column_number(spec, v, &column)) return bad(spec, err, member, "a column number or null");
    *out = column;
    return CK_OK;
}

ck_status ck_params_text(const ck_op_spec *spec, struct yyjson_val *object, const char *member, const char **out,
                         ck_error *err) {
    yyjson_val *v = yyjson_obj_get(object, member);
    *out = NULL;
    if (!v || yyjson_is_null(v)) return CK_OK;
    if (!yyjson_is_str(v) || strlen(yyjson_get_str(v)) != yyjson_get_len(v))
        return bad(spec, err, member, "a text or null");
    *out = yyjson_get_str(v);
    return CK_OK;
}

ck_status ck_params_u64(const ck_op_spec *spec, struct yyjson_val *object, const char *member, uint64_t *out, bool *has,
                        ck_error *err) {
    yyjson_val *v = yyjson_obj_get(object, member);
    *out = 0;
    *has = v && !yyjson_is_null(v);
    if (!*has) return CK_OK;
    if (!yyjson_is_uint(v)) return bad(spec, err, member, "a whole number, not negative, or null");
    *out = yyjson_get_uint(v);
    return CK_OK;
}

const char *const *ck_params_input_names(ck_arena *a, const ck_op_spec *spec) {
    const ck_schema *s = spec->inputs[0].schema;
    const char **names = ck_arena_array(a, s->field_count + 1, sizeof *names);
    for (uint32_t i = 0; names && i < s->field_count; i++) names[i] = s->fields[i].name;
    return names;
}

ck_status ck_params_inputs(const ck_op_spec *spec, uint32_t count, uint32_t refused, ck_error *err) {
    static const char *const mode_names[] = {"append", "retract", "upsert"};
    if (count ? spec->input_count != count : spec->input_count == 0)
        return ck_fail(err, CK_INVALID, "%s (%s) has %u inputs, which is not what it takes", spec->type, spec->uid,
                       spec->input_count);
    for (uint32_t i = 0; i < spec->input_count; i++)
        if (refused >> spec->inputs[i].mode & 1)
            return ck_fail(err, CK_INVALID, "%s (%s) takes no %s input", spec->type, spec->uid,
                           mode_names[spec->inputs[i].mode]);
    return CK_OK;
}
