/* Filters go down. Conjuncts keep their order, since one may guard the next: an expression that can fail moves only
 * together with everything before it, and never below an aggregate. */
#include "expr/function.h"
#include "sql/optimise/optimise_int.h"

enum { SUBSTITUTED_NODES_MAX = 200 };

typedef struct conjuncts {
    ck_expr **at;
    uint32_t count;
} conjuncts;

typedef struct pushdown {
    ck_plan *p;
    const uint32_t *uses;
    ck_plan_node **shared; /* by id: nodes with several users, already rewritten */
} pushdown;

static ck_status push(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out);

static ck_status filtered(ck_plan *p, ck_plan_node *n, conjuncts c, ck_plan_node **out) {
    *out = n;
    return c.count ? ck_plan_filter(p, n, c.at, c.count, out) : CK_OK;
}

/* Splits into what may go below and what stays, by a rule for each conjunct and the one for guards. */
typedef ck_status (*below_fn)(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below); /* *below NULL: stays */

static ck_status split(ck_plan *p, const ck_plan_node *n, conjuncts all, below_fn fn, conjuncts *below,
                       conjuncts *stays) {
    *below = (conjuncts){CK_PLAN_ARRAY(p, all.count, ck_expr *), 0};
    *stays = (conjuncts){CK_PLAN_ARRAY(p, all.count, ck_expr *), 0};
    if (!below->at || !stays->at) return CK_NOMEM;
    for (uint32_t i = 0; i < all.count; i++) {
        ck_expr *moved = NULL;
        if (stays->count == 0 || !ck_expr_is_fallible(all.at[i])) CK_TRY(fn(p, n, all.at[i], &moved));
        if (moved && stays->count && ck_expr_is_fallible(moved)) moved = NULL; /* the projection made it so */
        if (moved) {
            below->at[below->count++] = moved;
        } else {
            stays->at[stays->count++] = all.at[i];
        }
    }
    return CK_OK;
}

static ck_status below_project(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    ck_expr *moved = ck_expr_through(p, n, e);
    if (!moved) return CK_NOMEM;
    bool fine = !ck_expr_is_volatile(moved) && ck_expr_size(moved, SUBSTITUTED_NODES_MAX) < SUBSTITUTED_NODES_MAX;
    *below = fine ? moved : NULL;
    return CK_OK;
}

typedef struct only_below {
    uint32_t bound;  /* columns below it are fine */
    ck_columns some; /* or, when at is set, these */
    bool all;
} only_below;
static void check_column(void *arg, uint32_t column) {
    only_below *o = (only_below *)arg;
    if (!o->some.at) {
        if (column >= o->bound) o->all = false;
        return;
    }
    for (uint32_t i = 0; i < o->some.count; i++)
        if (o->some.at[i] == column) return;
    o->all = false;
}
static void check_stamp(void *arg, uint32_t column) {
    only_below *o = (only_below *)arg;
    if (column == o->bound) o->all = false;
}
static bool uses_only(const ck_expr *e, uint32_t bound, const ck_columns *some) {
    only_below o = {bound, some ? *some : (ck_columns){0}, true};
    ck_expr_visit_columns(e, check_column, &o);
    return o.all;
}
static bool moves_freely(const ck_expr *e) { return !ck_expr_is_fallible(e) && !ck_expr_is_volatile(e); }

/* A condition on the keys of a GROUP BY holds for all rows of a group or for none. */
static ck_status below_aggregate(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    *below = NULL;
    if (n->aggregate.keys.count == 0 || !moves_freely(e) || !uses_only(e, n->aggregate.keys.count, NULL)) return CK_OK;
    *below = ck_expr_renumber(p, n->aggregate.keys.at, e);
    return *below ? CK_OK : CK_NOMEM;
}

/* On the partition only, of a top-N: for all of its rows or for none. */
static ck_status below_top_n(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    (void)p;
    *below = n->top.partition.count && moves_freely(e) && uses_only(e, 0, &n->top.partition) ? e : NULL;
    return CK_OK;
}

static ck_status below_over(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    (void)p;
    *below = n->over.partition.count && moves_freely(e) && uses_only(e, 0, &n->over.partition) ? e : NULL;
    return CK_OK;
}

/* On what an element is taken from. */
static ck_status below_unnest(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    (void)p;
    *below = moves_freely(e) && uses_only(e, n->inputs[0]->schema->field_count, NULL) ? e : NULL;
    return CK_OK;
}

/* A sort without LIMIT passes every row. */
static ck_status below_sort(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    (void)p;
    *below = n->order.limit == UINT64_MAX && n->order.offset == 0 && !ck_expr_is_volatile(e) ? e : NULL;
    return CK_OK;
}

/* On what a window is put beside, not on the window; a window by the clock also says when its rows come. */
static ck_status below_window(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    only_below stamp = {n->window.of.time, {0}, true};
    CK_TRY(below_unnest(p, n, e, below));
    if (!n->window.of.processing || !*below) return CK_OK;
    ck_expr_visit_columns(e, check_stamp, &stamp);
    if (!stamp.all) *below = NULL;
    return CK_OK;
}

/* On the keys of an aggregation of windows. */
static ck_status below_window_agg(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    *below = NULL;
    if (n->window.keys.count == 0 || !moves_freely(e) || !uses_only(e, n->window.keys.count, NULL)) return CK_OK;
    *below = ck_expr_renumber(p, n->window.keys.at, e);
    return *below ? CK_OK : CK_NOMEM;
}

static ck_status push_filter(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    conjuncts all = {CK_PLAN_ARRAY(d->p, n->filter.count + pending.count, ck_expr *), 0};
    if (!all.at) return CK_NOMEM;
    for (uint32_t i = 0; i < n->filter.count; i++) all.at[all.count++] = n->filter.conjuncts[i];
    for (uint32_t i = 0; i < pending.count; i++) all.at[all.count++] = pending.at[i];
    return push(d, n->inputs[0], all, out);
}

static ck_status push_through(pushdown *d, ck_plan_node *n, conjuncts pending, below_fn fn, ck_plan_node **out) {
    conjuncts below, stays;
    ck_plan_node *input, *made;
    CK_TRY(split(d->p, n, pending, fn, &below, &stays));
    CK_TRY(push(d, n->inputs[0], below, &input));
    CK_TRY(ck_plan_with_inputs(d->p, n, &input, &made));
    return filtered(d->p, made, stays, out);
}

/* Into every arm: the columns are the same. */
static ck_status push_into_arms(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    ck_plan_node **inputs = CK_PLAN_ARRAY(d->p, n->input_count, ck_plan_node *);
    if (!inputs) return CK_NOMEM;
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(push(d, n->inputs[i], pending, &inputs[i]));
    return ck_plan_with_inputs(d->p, n, inputs, out);
}

/* A condition on rows holds in both inputs of a set operation alike. */
static ck_status push_into_set_op(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    conjuncts below = {CK_PLAN_ARRAY(d->p, pending.count, ck_expr *), 0},
              stays = {CK_PLAN_ARRAY(d->p, pending.count, ck_expr *), 0};
    ck_plan_node *made;
    if (!below.at || !stays.at) return CK_NOMEM;
    for (uint32_t i = 0; i < pending.count; i++) {
        conjuncts *to = moves_freely(pending.at[i]) ? &below : &stays;
        to->at[to->count++] = pending.at[i];
    }
    CK_TRY(push_into_arms(d, n, below, &made));
    return filtered(d->p, made, stays, out);
}

/* ---- joins ---- */

typedef struct join_parts {
    conjuncts left, right, on, above;
} join_parts;

static ck_status to_side(pushdown *d, const ck_plan_node *n, bool left, ck_expr *e, join_parts *parts) {
    conjuncts *to = left ? &parts->left : &parts->right;
    uint32_t shift = n->inputs[0]->schema->field_count, width = n->inputs[1]->schema->field_count;
    if (!left) {
        uint32_t *map = CK_PLAN_ARRAY(d->p, shift + width, uint32_t);
        if (!map) return CK_NOMEM;
        for (uint32_t i = 0; i < width; i++) map[shift + i] = i;
        if (!(e = ck_expr_renumber(d->p, map, e))) return CK_NOMEM;
    }
    to->at[to->count++] = e;
    return CK_OK;
}

/* A conjunct of WHERE above the join. */
static ck_status place_pending(pushdown *d, const ck_plan_node *n, ck_expr *e, join_parts *parts) {
    ck_join_kind k = n->join.kind;
    ck_join_side side = ck_join_side_of(e, n->inputs[0]->schema->field_count);
    bool left_stays_whole = !ck_join_pads_left(k); /* no left column is NULL because of the join */
    bool right_stays_whole =
        !ck_join_pads_right(k) && !ck_join_keeps_left_only(k) && n->join.as_of.kind == CK_AS_OF_NONE;
    if (moves_freely(e) && side == CK_SIDE_LEFT && left_stays_whole) return to_side(d, n, true, e, parts);
    if (moves_freely(e) && side == CK_SIDE_RIGHT && right_stays_whole) return to_side(d, n, false, e, parts);
    bool joins = k == CK_JOIN_BOTH_INNER && parts->above.count == 0 && !ck_expr_is_volatile(e);
    conjuncts *to = joins ? &parts->on : &parts->above;
    to->at[to->count++] = e;
    return CK_OK;
}

/* A conjunct of ON. What it says about one side alone cannot drop a row that is kept in any case. */
static ck_status place_on(pushdown *d, const ck_plan_node *n, ck_expr *e, join_parts *parts) {
    ck_join_kind k = n->join.kind;
    ck_join_side side = ck_join_side_of(e, n->inputs[0]->schema->field_count);
    bool left_may_drop = k == CK_JOIN_BOTH_INNER || k == CK_JOIN_LEFT_SEMI || k == CK_JOIN_RIGHT_OUTER;
    /* without a row another version would be the one that was valid */
    bool right_may_drop = k != CK_JOIN_RIGHT_OUTER && k != CK_JOIN_FULL_OUTER && n->join.as_of.kind == CK_AS_OF_NONE;
    if (moves_freely(e) && side == CK_SIDE_LEFT && left_may_drop) return to_side(d, n, true, e, parts);
    if (moves_freely(e) && side == CK_SIDE_RIGHT && right_may_drop) return to_side(d, n, false, e, parts);
    parts->on.at[parts->on.count++] = e;
    return CK_OK;
}

static ck_status push_into_join(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    uint32_t room = n->join.on_count + pending.count;
    join_parts parts = {{CK_PLAN_ARRAY(d->p, room, ck_expr *), 0},
                        {CK_PLAN_ARRAY(d->p, room, ck_expr *), 0},
                        {CK_PLAN_ARRAY(d->p, room, ck_expr *), 0},
                        {CK_PLAN_ARRAY(d->p, room, ck_expr *), 0}};
    ck_plan_node *left, *right, *made;
    if (!parts.left.at || !parts.right.at || !parts.on.at || !parts.above.at) return CK_NOMEM;
    for (uint32_t i = 0; i < n->join.on_count; i++) CK_TRY(place_on(d, n, n->join.on[i], &parts));
    for (uint32_t i = 0; i < pending.count; i++) CK_TRY(place_pending(d, n, pending.at[i], &parts));
    CK_TRY(push(d, n->inputs[0], parts.left, &left));
    CK_TRY(push(d, n->inputs[1], parts.right, &right));
    CK_TRY(ck_plan_join_again(d->p, n, left, right, parts.on.at, parts.on.count, NULL, &made));
    return filtered(d->p, made, parts.above, out);
}

/* ---- top-N ---- */

static bool literal_count(const ck_expr *e, uint64_t *out) {
    if (e->kind != CK_EXPR_LITERAL || e->value.null || !ck_kind_is_integer(e->type->kind) || e->value.i64 < 0)
        return false;
    *out = (uint64_t)e->value.i64;
    return true;
}

/* What `rank <= n`, `rank < n`, `rank = n`, `rank BETWEEN m AND n` say about the greatest rank; *whole: nothing else.
 */
static bool rank_bound(const ck_expr *e, uint32_t rank, uint64_t *bound, bool *whole) {
    if (e->kind != CK_EXPR_CALL || e->arg_count < 2) return false;
    const char *op = e->fn->name;
    bool crossed = e->args[1]->kind == CK_EXPR_COLUMN && e->args[1]->column == rank;
    bool straight = e->args[0]->kind == CK_EXPR_COLUMN && e->args[0]->column == rank;
    if (straight && e->arg_count == 3 && strcmp(op, "between") == 0) {
        *whole = false;
        return literal_count(e->args[2], bound);
    }
    if (e->arg_count != 2 || straight == crossed || !literal_count(e->args[straight], bound)) return false;
    const char *at_most = crossed ? ">=" : "<=", *below = crossed ? ">" : "<";
    *whole = strcmp(op, "=") != 0 || *bound == 1;
    if (strcmp(op, below) == 0) {
        if (*bound == 0) return false;
        *bound -= 1;
        return true;
    }
    return strcmp(op, at_most) == 0 || strcmp(op, "=") == 0;
}

/* Conditions on the rank bound it; those that say no more are kept by the bound. */
static ck_status push_into_top_n(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    ck_plan_node *bounded = n;
    conjuncts rest = {CK_PLAN_ARRAY(d->p, pending.count, ck_expr *), 0};
    ck_plan_top top = n->top;
    if (!rest.at) return CK_NOMEM;
    for (uint32_t i = 0; i < pending.count; i++) {
        uint64_t bound = 0;
        bool whole = false, bounds = top.rank_column && top.offset == 0 &&
                                     rank_bound(pending.at[i], n->schema->field_count - 1, &bound, &whole);
        if (bounds && bound < top.limit) top.limit = bound;
        if (!bounds || !whole) rest.at[rest.count++] = pending.at[i];
    }
    if (top.limit != n->top.limit) {
        const char *rank = n->schema->fields[n->schema->field_count - 1].name;
        CK_TRY(ck_plan_top_n(d->p, n->inputs[0], &top, rank, &bounded));
        ck_plan_keep_identity(bounded, n);
        bounded->final = n->final;
        if (n->final) bounded->mode = n->mode, ck_plan_top_ends(bounded, n);
    }
    return push_through(d, bounded, rest, below_top_n, out);
}

static ck_status push_here(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    ck_plan_node *input, *made;
    switch (n->kind) {
    case CK_PLAN_FILTER: return push_filter(d, n, pending, out);
    case CK_PLAN_PROJECT: return push_through(d, n, pending, below_project, out);
    case CK_PLAN_AGGREGATE: return push_through(d, n, pending, below_aggregate, out);
    case CK_PLAN_UNION: return push_into_arms(d, n, pending, out);
    case CK_PLAN_LIMIT:
        CK_TRY(push(d, n->inputs[0], (conjuncts){NULL, 0}, &input));
        CK_TRY(ck_plan_with_inputs(d->p, n, &input, &made));
        return filtered(d->p, made, pending, out);
    case CK_PLAN_SORT: return push_through(d, n, pending, below_sort, out);
    case CK_PLAN_TOP_N: return push_into_top_n(d, n, pending, out);
    case CK_PLAN_OVER: return push_through(d, n, pending, below_over, out);
    case CK_PLAN_UNNEST: return push_through(d, n, pending, below_unnest, out);
    case CK_PLAN_WINDOW: return push_through(d, n, pending, below_window, out);
    case CK_PLAN_WINDOW_AGG: return push_through(d, n, pending, below_window_agg, out);
    case CK_PLAN_JOIN: return push_into_join(d, n, pending, out);
    case CK_PLAN_SET_OP: return push_into_set_op(d, n, pending, out);
    case CK_PLAN_SCAN:
    case CK_PLAN_VALUES: return filtered(d->p, n, pending, out);
    }
    ck_assert_failed(__FILE__, __LINE__, "every kind says how filters pass");
}

static ck_status push(pushdown *d, ck_plan_node *n, conjuncts pending, ck_plan_node **out) {
    if (d->uses[n->id] <= 1) return push_here(d, n, pending, out);
    if (!d->shared[n->id]) CK_TRY(push_here(d, n, (conjuncts){NULL, 0}, &d->shared[n->id]));
    return filtered(d->p, d->shared[n->id], pending, out);
}

ck_status ck_pushdown(ck_plan *p, ck_output *outputs, uint32_t count) {
    ck_reach r;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    pushdown d = {p, r.uses, CK_PLAN_ARRAY(p, p->node_count, ck_plan_node *)};
    if (!d.shared) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) CK_TRY(push(&d, outputs[i].node, (conjuncts){NULL, 0}, &outputs[i].node));
    return CK_OK;
}
