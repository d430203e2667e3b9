/* Joins, set operations: two inputs, both hashed on what is compared. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

static ck_planned_input hashed_input(const ck_lowered *from, const ck_plan_node *n, ck_columns key) {
    bool together = ck_lower_is_hashed_by(from, key);
    return (ck_planned_input){.op = from->op,
                              .kind = together ? CK_EDGE_FORWARD : CK_EDGE_HASH,
                              .key = together ? (ck_columns){0} : key,
                              .mode = n->mode,
                              .bounded = n->bounded};
}

static ck_status two_inputs(ck_lower_state *s, const ck_plan_node *n, ck_columns left_key, ck_columns right_key,
                            ck_planned_op *op) {
    ck_lowered left, right;
    ck_planned_input *in = CK_LOWER_ARRAY(s, 2, ck_planned_input);
    if (!in) return CK_NOMEM;
    CK_TRY(ck_lower_node(s, n->inputs[0], &left));
    CK_TRY(ck_lower_node(s, n->inputs[1], &right));
    in[0] = hashed_input(&left, n->inputs[0], left_key);
    in[1] = hashed_input(&right, n->inputs[1], right_key);
    *op = (ck_planned_op){.base = n->identity,
                          .canonical = n->canonical,
                          .inputs = in,
                          .input_count = 2,
                          .schema = n->schema,
                          .has_key = n->key_count > 0,
                          .final = n->final,
                          .stateful = true};
    if (n->key_count) op->key = n->keys[0];
    return CK_OK;
}

/* ---- join ---- */

typedef struct split {
    uint32_t *left, *right;
    bool *null_safe;
    uint32_t keys;
    ck_expr **residual;
    uint32_t residual_count;
} split;

/* Whether some equality is not of windows: then those of windows need not be keys, and each side stays where its
 * windows were made by the others. */
static bool has_plain_key(const ck_plan_node *n) {
    uint32_t left = n->inputs[0]->schema->field_count;
    ck_join_pair pair;
    for (uint32_t i = 0; i < n->join.on_count; i++)
        if (ck_join_equality(n->join.on[i], left, &pair) && pair.left->kind == CK_EXPR_COLUMN &&
            pair.right->kind == CK_EXPR_COLUMN &&
            !ck_plan_pairs_windows(n, pair.left->column, pair.right->column - left))
            return true;
    return false;
}

/* The optimiser has made both sides of every equality columns. windowed: it is by windows, which end. */
static ck_status split_condition(ck_lower_state *s, const ck_plan_node *n, bool windowed, split *out) {
    uint32_t count = n->join.on_count, left = n->inputs[0]->schema->field_count;
    ck_join_pair pair;
    *out = (split){CK_LOWER_ARRAY(s, count, uint32_t),  CK_LOWER_ARRAY(s, count, uint32_t),
                   CK_LOWER_ARRAY(s, count, bool),      0,
                   CK_LOWER_ARRAY(s, count, ck_expr *), 0};
    if (!out->left || !out->right || !out->null_safe || !out->residual) return CK_NOMEM;
    bool by_others = windowed && has_plain_key(n);
    for (uint32_t i = 0; i < count; i++) {
        bool key = ck_join_equality(n->join.on[i], left, &pair) && pair.left->kind == CK_EXPR_COLUMN &&
                   pair.right->kind == CK_EXPR_COLUMN;
        if (n->join.as_of.kind != CK_AS_OF_NONE && i >= n->join.as_of.key_count) key = false;
        if (key && by_others && ck_plan_pairs_windows(n, pair.left->column, pair.right->column - left)) key = false;
        if (!key) {
            out->residual[out->residual_count++] = n->join.on[i];
            continue;
        }
        out->left[out->keys] = pair.left->column;
        out->right[out->keys] = pair.right->column - left;
        out->null_safe[out->keys++] = pair.null_safe;
    }
    return CK_OK;
}

/* A column's name, with its side where both have one of it. */
static const char *name_beside(ck_lower_state *s, const ck_schema *own, const ck_schema *other, uint32_t column,
                               bool is_left) {
    const char *name = own->fields[column].name;
    for (uint32_t i = 0; i < other->field_count; i++)
        if (strcmp(other->fields[i].name, name) == 0)
            return ck_arena_printf(s->arena, "%s.%s", is_left ? "left" : "right", name);
    return name;
}

const char *ck_lower_join_label(ck_lower_state *s, const ck_plan_node *n) {
    const ck_schema *l = n->inputs[0]->schema, *r = n->inputs[1]->schema;
    uint32_t width = l->field_count + r->field_count;
    const char **names = CK_LOWER_ARRAY(s, width, const char *);
    if (!names) return NULL;
    for (uint32_t i = 0; i < width; i++)
        if (!(names[i] = name_beside(s, i < l->field_count ? l : r, i < l->field_count ? r : l,
                                     i < l->field_count ? i : i - l->field_count, i < l->field_count)))
            return NULL;
    ck_bytes text;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = ck_bytes_str(&text, ck_join_kind_name(n->join.kind));
    for (uint32_t i = 0; st == CK_OK && i < n->join.on_count; i++) {
        st = ck_bytes_str(&text, i ? " AND " : " ON ");
        if (st == CK_OK) st = ck_expr_print_for_people(n->join.on[i], names, &text);
    }
    if (st == CK_OK && n->join.single) st = ck_bytes_str(&text, ", one row at most");
    return ck_label_cut(s, &text, st);
}

/* FOR SYSTEM_TIME AS OF an event time or now. */
static ck_status lower_temporal(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_as_of *as_of = &n->join.as_of;
    bool event = as_of->kind == CK_AS_OF_EVENT;
    split c;
    ck_planned_op op;
    ck_lower_params p;
    CK_TRY(split_condition(s, n, false, &c));
    ck_columns left = {c.left, c.keys}, right = {c.right, c.keys};
    CK_TRY(two_inputs(s, n, left, right, &op));
    op.type = "temporal_join";
    const char *on = ck_lower_join_label(s, n);
    op.label = !on     ? NULL
               : event ? ck_arena_printf(s->arena, "%s, versions of %s", on,
                                         n->inputs[1]->schema->fields[as_of->right_time].name)
                       : ck_arena_printf(s->arena, "%s, as it is now", on);
    CK_TRY(ck_lower_params_begin(s, &p));
    if (!op.label || !yyjson_mut_obj_add_str(p.doc, p.root, "kind", ck_join_kind_name(n->join.kind)) ||
        !yyjson_mut_obj_add_str(p.doc, p.root, "as_of", event ? "event" : "now"))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, &p, "left_keys", left));
    CK_TRY(ck_lower_params_columns(s, &p, "right_keys", right));
    if (event && (!yyjson_mut_obj_add_uint(p.doc, p.root, "left_time", as_of->left_time) ||
                  !yyjson_mut_obj_add_uint(p.doc, p.root, "right_time", as_of->right_time)))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_exprs(s, &p, "residual", c.residual, c.residual_count));
    CK_TRY(ck_lower_params_late(s, &p, n));
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    CK_TRY(ck_lower_late(s, n, out->op));
    out->hashed = true, out->hash = left;
    return CK_OK;
}

/* What every join says of itself: its kind and its keys. */
static ck_status begin_join(ck_lower_state *s, const ck_plan_node *n, const split *c, ck_planned_op *op,
                            ck_lower_params *p) {
    ck_columns left = {c->left, c->keys}, right = {c->right, c->keys};
    CK_TRY(two_inputs(s, n, left, right, op));
    op->type = "join";
    op->label = ck_lower_join_label(s, n);
    CK_TRY(ck_lower_params_begin(s, p));
    if (!op->label || !yyjson_mut_obj_add_str(p->doc, p->root, "kind", ck_join_kind_name(n->join.kind)))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, p, "left_keys", left));
    return ck_lower_params_columns(s, p, "right_keys", right);
}

/* Conditions that bound the time are the operator's bounds; the others are asked of each pair. */
static ck_status lower_in_time(ck_lower_state *s, const ck_plan_node *n, split *c, const ck_time_bounds *bounds,
                               uint32_t *out) {
    ck_planned_op op;
    ck_lower_params p;
    uint32_t beyond = 0;
    CK_TRY(begin_join(s, n, c, &op, &p));
    CK_TRY(ck_lower_time_bounds(s, bounds, &p));
    op.type = "interval_join";
    op.final = false;
    for (uint32_t i = 0; i < c->residual_count; i++)
        if (!ck_plan_bounds_time(n, c->residual[i])) c->residual[beyond++] = c->residual[i];
    CK_TRY(ck_lower_params_exprs(s, &p, "residual", c->residual, beyond));
    for (uint32_t k = 0; k < 2; k++)
        if (n->join.unread[k].count)
            CK_TRY(ck_lower_params_columns(s, &p, k ? "right_unread" : "left_unread", n->join.unread[k]));
    CK_TRY(ck_lower_params_late(s, &p, n));
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, out));
    return ck_lower_late(s, n, *out);
}

static ck_status lower_plain(ck_lower_state *s, const ck_plan_node *n, const split *c, uint32_t *out) {
    ck_planned_op op;
    ck_lower_params p;
    ck_time_bounds bounds;
    CK_TRY(begin_join(s, n, c, &op, &p));
    yyjson_mut_val *safe = yyjson_mut_obj_add_arr(p.doc, p.root, "null_safe");
    for (uint32_t i = 0; safe && i < c->keys; i++)
        if (!yyjson_mut_arr_add_bool(p.doc, safe, c->null_safe[i])) safe = NULL;
    if (!safe) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < c->residual_count; i++) CK_TRY(ck_lower_distance(s, n, &c->residual[i]));
    CK_TRY(ck_lower_params_exprs(s, &p, "residual", c->residual, c->residual_count));
    if (!yyjson_mut_obj_add_bool(p.doc, p.root, "single", n->join.single)) return ck_lower_nomem(s);
    if (n->join.build_left && s->timed[n->id] && !yyjson_mut_obj_add_bool(p.doc, p.root, "build_left", true))
        return ck_lower_nomem(s);
    for (uint32_t side = 0; side < 2; side++) /* a side that ends is kept whole */
        if (!n->inputs[side]->bounded && ck_plan_join_keeps(n, side))
            CK_TRY(ck_lower_params_ttl(s, &p, side ? "right_ttl_us" : "left_ttl_us", n->input_ttl_us[side]));
    if (ck_plan_forgets_windows(n, &bounds) &&
        !(yyjson_mut_obj_add_uint(p.doc, p.root, "left_window_end", bounds.left) &&
          yyjson_mut_obj_add_uint(p.doc, p.root, "right_window_end", bounds.right) &&
          yyjson_mut_obj_add_sint(p.doc, p.root, "lateness_us", bounds.slack_us + 1)))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    return ck_lower_add(s, &op, out);
}

ck_status ck_lower_join(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    if (n->join.as_of.kind == CK_AS_OF_LOOKUP) return ck_lower_lookup(s, n, out);
    if (n->join.as_of.kind != CK_AS_OF_NONE) return lower_temporal(s, n, out);
    split c;
    ck_time_bounds bounds;
    bool in_time = ck_lower_is_in_time(s, n, &bounds);
    CK_TRY(split_condition(s, n, in_time && bounds.windowed, &c));
    CK_TRY(in_time ? lower_in_time(s, n, &c, &bounds, &out->op) : lower_plain(s, n, &c, &out->op));
    /* Rows keep the place of the left key, unless it is padded with NULLs. */
    out->hashed = !ck_join_pads_left(n->join.kind), out->hash = (ck_columns){c.left, c.keys};
    return CK_OK;
}

/* ---- set operations ---- */

ck_status ck_lower_set_op(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    uint32_t width = n->schema->field_count, *all = CK_LOWER_ARRAY(s, width, uint32_t);
    ck_planned_op op;
    ck_lower_params p;
    if (!all) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) all[i] = i;
    CK_TRY(two_inputs(s, n, (ck_columns){all, width}, (ck_columns){all, width}, &op));
    op.type = "set_op";
    op.label =
        ck_arena_printf(s->arena, "%s%s", n->set_op.except ? "EXCEPT" : "INTERSECT", n->set_op.all ? " ALL" : "");
    CK_TRY(ck_lower_params_begin(s, &p));
    if (!op.label || !yyjson_mut_obj_add_str(p.doc, p.root, "op", n->set_op.except ? "except" : "intersect") ||
        !yyjson_mut_obj_add_bool(p.doc, p.root, "all", n->set_op.all))
        return ck_lower_nomem(s);
    if (!n->final && (!n->bounded || s->l->options->changes))
        CK_TRY(
            ck_lower_params_ttl(s, &p, "ttl_us", n->ttl_us)); /* a row has both sides: the longer, if both have one */
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    out->hashed = true, out->hash = (ck_columns){all, width};
    return CK_OK;
}
