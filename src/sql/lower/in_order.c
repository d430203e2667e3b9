/* Whether the changes of a key arrive in the order in which they were made: the old row's end before the new row's
 * beginning. They do where every exchange since the key arose hashes on a subset of it, so that they all take one way.
 * Where they do not, what wants rows by their key (an upserting sink) gets a materialiser in front. */
#include "sql/lower/lower_int.h"

static bool holds(ck_columns set, uint32_t column) {
    for (uint32_t i = 0; i < set.count; i++)
        if (set.at[i] == column) return true;
    return false;
}

static bool holds_all(ck_columns set, ck_columns part) {
    for (uint32_t i = 0; i < part.count; i++)
        if (!holds(set, part.at[i])) return false;
    return true;
}

static ck_status in_order(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes);

/* The key in columns of what is projected; a computed column names none. */
static ck_status through_project(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes) {
    uint32_t *at = CK_LOWER_ARRAY(s, key.count, uint32_t), count = 0;
    if (!at) return CK_NOMEM;
    for (uint32_t i = 0; i < key.count; i++) {
        const ck_expr *e = n->project.exprs[key.at[i]];
        if (e->kind == CK_EXPR_COLUMN) at[count++] = e->column;
    }
    return in_order(s, n->inputs[0], (ck_columns){at, count}, yes);
}

typedef struct side {
    const ck_plan_node *node;
    ck_columns key;  /* of the output's key, in columns of this side */
    ck_columns join; /* what it is hashed on */
} side;

static ck_status side_of(ck_lower_state *s, const ck_plan_node *n, ck_columns key, uint32_t which, side *out) {
    uint32_t left = n->inputs[0]->schema->field_count, first = which ? left : 0, count = 0, joins = 0;
    uint32_t *at = CK_LOWER_ARRAY(s, key.count + n->join.on_count, uint32_t);
    uint32_t *on = CK_LOWER_ARRAY(s, n->join.on_count, uint32_t);
    if (!at || !on) return CK_NOMEM;
    for (uint32_t i = 0; i < key.count; i++)
        if ((key.at[i] >= left) == (which == 1)) at[count++] = key.at[i] - first;
    for (uint32_t i = 0; i < n->join.on_count; i++) {
        ck_join_pair pair;
        if (!ck_join_equality(n->join.on[i], left, &pair)) continue;
        if (pair.left->kind != CK_EXPR_COLUMN || pair.right->kind != CK_EXPR_COLUMN) continue;
        on[joins++] = (which ? pair.right->column : pair.left->column) - first;
    }
    *out = (side){n->inputs[which], {at, count}, {on, joins}};
    return CK_OK;
}

/* What is joined on is fixed where the key holds the other side's part of an equality, or knows a row of the other side
 * that stays what it is. */
static ck_status side_in_order(ck_lower_state *s, const side *one, const side *other, bool *yes) {
    uint32_t *at = CK_LOWER_ARRAY(s, one->key.count + one->join.count, uint32_t), count = one->key.count;
    if (!at) return CK_NOMEM;
    bool fixed = other->node->mode == CK_MODE_APPEND && ck_plan_is_unique(other->node, other->key.at, other->key.count);
    if (count) memcpy(at, one->key.at, count * sizeof *at);
    for (uint32_t i = 0; i < one->join.count; i++) /* the pairs stand in one order on both sides */
        if (fixed || holds(other->key, other->join.at[i])) at[count++] = one->join.at[i];
    ck_columns key = {at, count};
    *yes = holds_all(key, one->join);
    return *yes ? in_order(s, one->node, key, yes) : CK_OK;
}

static ck_status through_join(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes) {
    side left, right;
    CK_TRY(side_of(s, n, key, 0, &left));
    CK_TRY(side_of(s, n, key, 1, &right));
    *yes = true;
    if (left.node->mode != CK_MODE_APPEND) CK_TRY(side_in_order(s, &left, &right, yes));
    /* Of semi and anti, rows of the left come and go where they are kept, whatever makes them. */
    if (*yes && right.node->mode != CK_MODE_APPEND && !ck_join_keeps_left_only(n->join.kind))
        CK_TRY(side_in_order(s, &right, &left, yes));
    return CK_OK;
}

static ck_status through_top_n(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes) {
    *yes = n->inputs[0]->mode == CK_MODE_APPEND || holds_all(key, n->top.partition);
    bool one_row = n->top.limit == 1 && n->top.offset == 0 && n->top.rank == CK_RANK_ROW_NUMBER;
    if (!*yes || n->inputs[0]->mode == CK_MODE_APPEND || one_row) return CK_OK;
    if (n->top.rank_column) { /* the last column names nothing below */
        uint32_t *at = CK_LOWER_ARRAY(s, key.count, uint32_t), count = 0;
        if (!at) return CK_NOMEM;
        for (uint32_t i = 0; i < key.count; i++)
            if (key.at[i] + 1 != n->schema->field_count) at[count++] = key.at[i];
        key = (ck_columns){at, count};
    }
    return in_order(s, n->inputs[0], key, yes);
}

static ck_status in_order(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes) {
    *yes = true;
    if (n->mode == CK_MODE_APPEND) return CK_OK;
    switch (n->kind) {
    case CK_PLAN_FILTER: return in_order(s, n->inputs[0], key, yes);
    case CK_PLAN_PROJECT: return through_project(s, n, key, yes);
    case CK_PLAN_JOIN: return through_join(s, n, key, yes);
    case CK_PLAN_TOP_N: return through_top_n(s, n, key, yes);
    case CK_PLAN_AGGREGATE: { /* the key arises here, where it is that of the groups */
        uint32_t *at = CK_LOWER_ARRAY(s, n->aggregate.keys.count, uint32_t);
        if (!at) return CK_NOMEM;
        for (uint32_t i = 0; i < n->aggregate.keys.count; i++) at[i] = i;
        *yes = holds_all(key, (ck_columns){at, n->aggregate.keys.count});
        return CK_OK;
    }
    default: *yes = false; return CK_OK;
    }
}

ck_status ck_lower_in_order(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes) {
    return in_order(s, n, key, yes);
}
