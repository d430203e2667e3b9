/* Filters go down. Conjuncts keep their order, since one may guard the next: an expression that can fail moves only
 * together with everything before it, and never below an aggregate. */
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

typedef struct only_keys {
    uint32_t key_count;
    bool all;
} only_keys;
static void check_key(void *arg, uint32_t column) {
    only_keys *o = (only_keys *)arg;
    if (column >= o->key_count) o->all = false;
}

/* A condition on the keys of a GROUP BY holds for all rows of a group or for none. */
static ck_status below_aggregate(ck_plan *p, const ck_plan_node *n, ck_expr *e, ck_expr **below) {
    only_keys o = {n->aggregate.keys.count, true};
    *below = NULL;
    if (o.key_count == 0 || ck_expr_is_fallible(e) || ck_expr_is_volatile(e)) return CK_OK;
    ck_expr_visit_columns(e, check_key, &o);
    if (!o.all) return CK_OK;
    *below = ck_expr_renumber(p, n->inputs[0], n->aggregate.keys.at, e);
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
