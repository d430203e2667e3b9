/* Joins that a condition bounds in time: partners are looked for, and kept, only as far as it says. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

ck_status ck_lower_time_bounds(ck_lower_state *s, const ck_plan_node *n, ck_lower_params *p, bool *bounded) {
    const ck_op_desc *op;
    ck_time_bounds b;
    /* The end of bounded input bounds it too, and a hash join is faster, but time does not go through it. */
    *bounded = n->join.in_time || (s->timed[n->id] && ck_plan_time_bounds(n, &b));
    if (!*bounded) return CK_OK;
    CK_TRY(ck_registry_op(s->l->catalog->registry, "interval_join", &op, s->err));
    CK_ASSERT(ck_plan_time_bounds(n, &b));
    bool fine = yyjson_mut_obj_add_uint(p->doc, p->root, "left_time", b.left) &&
                yyjson_mut_obj_add_uint(p->doc, p->root, "right_time", b.right) &&
                yyjson_mut_obj_add_sint(p->doc, p->root, "lower_us", b.lower_us) &&
                yyjson_mut_obj_add_sint(p->doc, p->root, "upper_us", b.upper_us);
    return fine ? CK_OK : ck_lower_nomem(s);
}
