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

/* e AND right - left >= us, or <= us. */
static ck_status add_bound(ck_lower_state *s, ck_expr *distance, const char *op, int64_t us, ck_expr **e) {
    ck_expr *args[] = {distance, ck_expr_literal(s->arena, ck_type_simple(CK_TYPE_INTERVAL_US), (ck_datum){.i64 = us})},
            *both[2];
    if (!args[1]) return ck_lower_nomem(s);
    CK_TRY(ck_expr_call(s->arena, op, args, 2, &both[1], s->err));
    both[0] = *e;
    if (*e) return ck_expr_call(s->arena, "and", both, 2, e, s->err);
    *e = both[1];
    return CK_OK;
}

/* ts + INTERVAL '1' DAY is no time any more on the last day of the year 9999; how far two times are apart can always be
 * said. So the answer is that of the same join over input that goes on. */
ck_status ck_lower_distance(ck_lower_state *s, const ck_plan_node *n, ck_expr **conjunct) {
    const ck_schema *l = n->inputs[0]->schema, *r = n->inputs[1]->schema;
    ck_time_bounds b;
    ck_expr *distance, *e = NULL;
    if (!ck_plan_distance(n, *conjunct, &b)) return CK_OK;
    const ck_field *left = &l->fields[b.left], *right = &r->fields[b.right];
    ck_expr *times[] = {ck_expr_column(s->arena, l->field_count + b.right, right->type, right->nullable),
                        ck_expr_column(s->arena, b.left, left->type, left->nullable)};
    if (!times[0] || !times[1]) return ck_lower_nomem(s);
    CK_TRY(ck_expr_call(s->arena, "-", times, 2, &distance, s->err));
    if (b.lower_us > -CK_TIME_UNBOUNDED) CK_TRY(add_bound(s, distance, ">=", b.lower_us, &e));
    if (b.upper_us < CK_TIME_UNBOUNDED) CK_TRY(add_bound(s, distance, "<=", b.upper_us, &e));
    if (e) *conjunct = e;
    return CK_OK;
}
