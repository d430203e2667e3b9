/* Parameters of operators as JSON. */
#include <yyjson.h>

#include "base/json.h"
#include "sql/lower/lower_int.h"

ck_status ck_lower_params_begin(ck_lower_state *s, ck_lower_params *p) {
    CK_TRY(ck_json_new(s->arena, &p->doc, s->err));
    if (!(p->root = yyjson_mut_obj(p->doc))) return ck_lower_nomem(s);
    yyjson_mut_doc_set_root(p->doc, p->root);
    return CK_OK;
}

ck_status ck_lower_params_exprs(ck_lower_state *s, ck_lower_params *p, const char *name, ck_expr *const *exprs,
                                uint32_t count) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(p->doc, p->root, name), *v;
    if (!list) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < count; i++) {
        ck_status st = ck_expr_to_json(exprs[i], p->doc, &v);
        if (st != CK_OK || !yyjson_mut_arr_append(list, v)) return ck_lower_nomem(s);
    }
    return CK_OK;
}

ck_status ck_lower_params_columns(ck_lower_state *s, ck_lower_params *p, const char *name, ck_columns columns) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(p->doc, p->root, name);
    for (uint32_t i = 0; list && i < columns.count; i++)
        if (!yyjson_mut_arr_add_uint(p->doc, list, columns.at[i])) list = NULL;
    return list ? CK_OK : ck_lower_nomem(s);
}

ck_status ck_lower_params_ttl(ck_lower_state *s, ck_lower_params *p, const char *name, int64_t ttl_us) {
    if (ttl_us == 0) return CK_OK;
    bool fine = yyjson_mut_obj_add_sint(p->doc, p->root, name, ttl_us);
    if (fine && s->l->catalog->settings.state_ttl_events && !yyjson_mut_obj_get(p->root, "ttl_time"))
        fine = yyjson_mut_obj_add_str(p->doc, p->root, "ttl_time", "event");
    return fine ? CK_OK : ck_lower_nomem(s);
}

ck_status ck_lower_params_end(ck_lower_state *s, ck_lower_params *p, const char **out) {
    ck_view text;
    CK_TRY(ck_json_write(s->arena, p->doc, &text, s->err));
    *out = text.p;
    return CK_OK;
}
