/* Which operators come to the same state when their input is read again: see ck_op_desc.again. */
#include <yyjson.h>

#include "base/json.h"
#include "expr/tree.h"
#include "operator/params_int.h"

static bool keeps_for_a_while(yyjson_val *root) {
    static const char *const names[] = {"ttl_us", "left_ttl_us", "right_ttl_us"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++)
        if (yyjson_get_uint(yyjson_obj_get(root, names[i])) > 0) return true;
    return false;
}

static bool is_by_clock(yyjson_val *root) {
    return yyjson_equals_str(yyjson_obj_get(root, "time"), "processing") ||
           yyjson_equals_str(yyjson_obj_get(yyjson_obj_get(root, "window"), "time"), "processing");
}

static bool has_window_end(yyjson_val *root) {
    return yyjson_obj_get(root, "window_end") || yyjson_obj_get(root, "left_window_end") ||
           yyjson_obj_get(root, "right_window_end");
}

ck_status ck_op_again_by_rows(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec->params), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    *out = (ck_again){.by_time = has_window_end(root)};
    if (is_by_clock(root))
        out->why_not = "goes by the clock";
    else if (keeps_for_a_while(root))
        out->why_not = "keeps its state for a while only (state_ttl)";
    else if (ck_expr_json_is_volatile(ck_spec_library(spec), root))
        out->why_not = "asks the clock or for random values";
    return CK_OK;
}

ck_status ck_op_again_by_time(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err) {
    CK_TRY(ck_op_again_by_rows(spec, a, out, err));
    out->by_time = true;
    return CK_OK;
}
