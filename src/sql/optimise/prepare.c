/* Joins made ready for their operator: both sides of an equality are columns, and rows whose key is NULL, which match
 * nothing, are dropped before the exchange where nothing keeps them. */
#include "sql/optimise/optimise_int.h"

typedef struct side {
    ck_plan_node *node;
    ck_expr **extra; /* keys that are no columns, over the side's own columns */
    uint32_t extra_count;
    ck_expr **not_null;
    uint32_t not_null_count;
    bool may_drop;
} side;

typedef struct prepared_pair {
    uint32_t left, right; /* columns of the sides */
    bool null_safe;
} prepared_pair;

/* The column of a key: itself, or one added behind the side's. */
static uint32_t column_of(side *s, ck_expr *e) {
    if (e->kind == CK_EXPR_COLUMN) return e->column;
    for (uint32_t i = 0; i < s->extra_count; i++)
        if (ck_expr_equal(s->extra[i], e)) return s->node->schema->field_count + i;
    s->extra[s->extra_count] = e;
    return s->node->schema->field_count + s->extra_count++;
}

static ck_status with_extra(ck_plan *p, side *s) {
    if (!s->extra_count) return CK_OK;
    uint32_t n = s->node->schema->field_count;
    ck_expr **exprs = CK_PLAN_ARRAY(p, n + s->extra_count, ck_expr *);
    const char **names = CK_PLAN_ARRAY(p, n + s->extra_count, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < n + s->extra_count; i++) {
        names[i] = i < n ? s->node->schema->fields[i].name : "key";
        if (!(exprs[i] = i < n ? ck_plan_column(p, s->node, i) : s->extra[i - n])) return CK_NOMEM;
    }
    return ck_plan_project(p, s->node, exprs, names, n + s->extra_count, &s->node);
}

static ck_status without_nulls(ck_plan *p, side *s, const prepared_pair *pairs, uint32_t count, bool left) {
    uint32_t n = 0;
    ck_expr **conjuncts = CK_PLAN_ARRAY(p, count, ck_expr *);
    if (!conjuncts) return CK_NOMEM;
    for (uint32_t i = 0; s->may_drop && i < count; i++) {
        uint32_t column = left ? pairs[i].left : pairs[i].right;
        if (pairs[i].null_safe || !s->node->schema->fields[column].nullable) continue;
        ck_expr *c = ck_plan_column(p, s->node, column);
        if (!c) return CK_NOMEM;
        CK_TRY(ck_expr_call(p->arena, "is_not_null", &c, 1, &conjuncts[n++], p->err));
    }
    return n ? ck_plan_filter(p, s->node, conjuncts, n, &s->node) : CK_OK;
}

/* A key of the right over the right's own columns. */
static ck_expr *own_columns(ck_plan *p, const ck_plan_node *n, ck_expr *e) {
    uint32_t left = n->inputs[0]->schema->field_count, right = n->inputs[1]->schema->field_count;
    uint32_t *map = CK_PLAN_ARRAY(p, left + right, uint32_t);
    for (uint32_t i = 0; map && i < right; i++) map[left + i] = i;
    return map ? ck_expr_renumber(p, map, e) : NULL;
}

static ck_status equality(ck_plan *p, const side *l, const side *r, const prepared_pair *pair, ck_expr **out) {
    uint32_t shift = l->node->schema->field_count;
    ck_expr *args[2] = {ck_plan_column(p, l->node, pair->left), ck_plan_column(p, r->node, pair->right)};
    if (!args[0] || !args[1]) return CK_NOMEM;
    args[1] = ck_expr_column(p->arena, shift + pair->right, args[1]->type, args[1]->nullable);
    if (!args[1]) return ck_plan_nomem(p);
    return ck_expr_call(p->arena, pair->null_safe ? "is_not_distinct_from" : "=", args, 2, out, p->err);
}

/* The join's own columns again, without the keys that were added. */
static ck_status original_columns(ck_plan *p, const ck_plan_node *n, const ck_plan_node *left, ck_plan_node **made) {
    uint32_t l = n->inputs[0]->schema->field_count, width = n->schema->field_count;
    ck_expr **exprs = CK_PLAN_ARRAY(p, width, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++)
        if (!(exprs[i] = ck_plan_column(p, *made, i < l ? i : i - l + left->schema->field_count))) return CK_NOMEM;
    return ck_plan_project(p, *made, exprs, NULL, width, made);
}

/* INTEGER = BIGINT: both become what CASE would make of them. */
static ck_status same_type(ck_plan *p, ck_join_pair *pair) {
    ck_expr *both[2] = {pair->left, pair->right}, *all;
    if (ck_type_eq(pair->left->type, pair->right->type)) return CK_OK;
    CK_TRY(ck_expr_call(p->arena, "coalesce", both, 2, &all, p->err));
    CK_TRY(ck_expr_cast(p->arena, pair->left, all->type, false, &pair->left, p->err));
    return ck_expr_cast(p->arena, pair->right, all->type, false, &pair->right, p->err);
}

static ck_status prepare(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    uint32_t count = n->join.on_count, pairs_count = 0, residual_count = 0, left = inputs[0]->schema->field_count;
    ck_join_kind k = n->join.kind;
    side l = {.node = inputs[0], .may_drop = !ck_join_pads_right(k) && k != CK_JOIN_LEFT_ANTI};
    side r = {.node = inputs[1], .may_drop = !ck_join_pads_left(k) && n->join.as_of.kind == CK_AS_OF_NONE};
    prepared_pair *pairs = CK_PLAN_ARRAY(p, count, prepared_pair);
    ck_expr **on = CK_PLAN_ARRAY(p, count, ck_expr *), **residual = CK_PLAN_ARRAY(p, count, ck_expr *);
    ck_join_pair pair;
    l.extra = CK_PLAN_ARRAY(p, count, ck_expr *), r.extra = CK_PLAN_ARRAY(p, count, ck_expr *);
    if (!pairs || !on || !residual || !l.extra || !r.extra) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!ck_join_equality(n->join.on[i], left, &pair)) {
            residual[residual_count++] = n->join.on[i];
            continue;
        }
        CK_TRY(same_type(p, &pair));
        ck_expr *right = own_columns(p, n, pair.right);
        if (!right) return CK_NOMEM;
        pairs[pairs_count++] = (prepared_pair){column_of(&l, pair.left), column_of(&r, right), pair.null_safe};
    }
    CK_TRY(with_extra(p, &l));
    CK_TRY(with_extra(p, &r));
    CK_TRY(without_nulls(p, &l, pairs, pairs_count, true));
    CK_TRY(without_nulls(p, &r, pairs, pairs_count, false));
    for (uint32_t i = 0; i < pairs_count; i++) CK_TRY(equality(p, &l, &r, &pairs[i], &on[i]));
    uint32_t right_count = inputs[1]->schema->field_count, *map = CK_PLAN_ARRAY(p, left + right_count, uint32_t);
    if (!map) return CK_NOMEM;
    for (uint32_t i = 0; i < left + right_count; i++) map[i] = i < left ? i : i - left + l.node->schema->field_count;
    for (uint32_t i = 0; i < residual_count; i++)
        if (!(on[pairs_count + i] = ck_expr_renumber(p, map, residual[i]))) return CK_NOMEM;
    CK_TRY(ck_plan_join_again(p, n, l.node, r.node, on, count, map, out));
    return l.extra_count || r.extra_count ? original_columns(p, n, l.node, out) : CK_OK;
}

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    (void)arg;
    return n->kind == CK_PLAN_JOIN ? prepare(p, n, inputs, out) : ck_plan_with_inputs(p, n, inputs, out);
}

ck_status ck_prepare_joins(ck_plan *p, ck_output *outputs, uint32_t count) {
    return ck_rewrite_plan(p, outputs, count, one, NULL);
}
