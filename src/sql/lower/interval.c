/* Joins that a condition bounds in time: partners are looked for, and kept, only as far as it says. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

bool ck_lower_is_in_time(const ck_lower_state *s, const ck_plan_node *n, ck_time_bounds *b) {
    /* The end of bounded input bounds it too, and a hash join is faster, but time does not go through it. */
    return (n->join.in_time || s->timed[n->id]) && ck_plan_time_bounds(n, b);
}

ck_status ck_lower_time_bounds(ck_lower_state *s, const ck_time_bounds *b, ck_lower_params *p) {
    bool fine = yyjson_mut_obj_add_uint(p->doc, p->root, "left_time", b->left) &&
                yyjson_mut_obj_add_uint(p->doc, p->root, "right_time", b->right) &&
                yyjson_mut_obj_add_sint(p->doc, p->root, "lower_us", b->lower_us) &&
                yyjson_mut_obj_add_sint(p->doc, p->root, "upper_us", b->upper_us);
    if (fine && b->windowed) fine = yyjson_mut_obj_add_bool(p->doc, p->root, "windowed", true);
    if (fine && b->slack_us) fine = yyjson_mut_obj_add_sint(p->doc, p->root, "slack_us", b->slack_us);
    return fine ? CK_OK : ck_lower_nomem(s);
}
