/* The inside of a correlated subquery: conditions that tie it to the query around are taken out of its WHERE, so that
 * the rest can be planned alone and joined. */
#include "expr/function.h"
#include "sql/bind/bind_int.h"

typedef struct look {
    bool outer, inner;
} look;
static void note(void *arg, uint32_t column) {
    look *l = (look *)arg;
    if (column & CK_BIND_OUTER) {
        l->outer = true;
    } else {
        l->inner = true;
    }
}
static look look_at(const ck_expr *e) {
    look l = {false, false};
    ck_expr_visit_columns(e, note, &l);
    return l;
}
bool ck_bind_has_outer(const ck_expr *e) { return look_at(e).outer; }

static ck_status without_mark(void *arg, const ck_expr *e, ck_expr **instead) {
    if (!ck_bind_is_placeholder(e, CK_BIND_OUTER)) return CK_OK;
    *instead = ck_expr_column((ck_arena *)arg, e->column & ~CK_BIND_OUTER, e->type, e->nullable);
    return *instead ? CK_OK : CK_NOMEM;
}

/* inner = outer, in either order. */
static ck_status take_pair(ck_binder *b, ck_outer *o, const ck_expr *e, bool *taken) {
    *taken = false;
    if (e->kind != CK_EXPR_CALL || e->arg_count != 2) return CK_OK;
    bool null_safe = strcmp(e->fn->name, "is_not_distinct_from") == 0;
    if (!null_safe && strcmp(e->fn->name, "=") != 0) return CK_OK;
    look first = look_at(e->args[0]), second = look_at(e->args[1]);
    bool outer_first = first.outer && !first.inner && !second.outer;
    bool outer_second = second.outer && !second.inner && !first.outer;
    if (!outer_first && !outer_second) return CK_OK;
    ck_expr *outer;
    if (ck_expr_rewrite(b->plan.arena, e->args[outer_second], without_mark, b->plan.arena, &outer) != CK_OK)
        return ck_bind_nomem(b);
    o->outer_exprs[o->pair_count] = outer;
    o->inner_exprs[o->pair_count] = e->args[outer_first];
    o->null_safe[o->pair_count++] = null_safe;
    *taken = true;
    return CK_OK;
}

ck_status ck_bind_correlated(ck_binder *b, ck_outer *o, ck_expr **conjuncts, uint32_t *count, ck_pos at) {
    uint32_t kept = 0;
    o->outer_exprs = CK_BIND_ARRAY(b, *count, ck_expr *);
    o->inner_exprs = CK_BIND_ARRAY(b, *count, ck_expr *);
    o->inner_columns = CK_BIND_ARRAY(b, *count, uint32_t);
    o->null_safe = CK_BIND_ARRAY(b, *count, bool);
    o->residual = CK_BIND_ARRAY(b, *count, ck_expr *);
    if (!o->outer_exprs || !o->inner_exprs || !o->inner_columns || !o->null_safe || !o->residual) return CK_NOMEM;
    for (uint32_t i = 0; i < *count; i++) {
        bool taken;
        if (!ck_bind_has_outer(conjuncts[i])) {
            conjuncts[kept++] = conjuncts[i];
            continue;
        }
        CK_TRY(take_pair(b, o, conjuncts[i], &taken));
        if (!taken) o->residual[o->residual_count++] = conjuncts[i];
    }
    *count = kept;
    if (o->residual_count && o->scalar)
        return ck_bind_refuse(
            b, at,
            "a subquery that is used as a value may be tied to the query around it by equalities only: "
            "inner.x = outer.y");
    return CK_OK;
}

/* ---- what ties stands behind the subquery's own columns ---- */

typedef struct behind {
    ck_expr **exprs;
    const char **names;
    uint32_t count;
    ck_plan *plan;
    const ck_plan_node *input;
} behind;

static uint32_t column_behind(behind *x, ck_expr *e) {
    for (uint32_t i = 0; i < x->count; i++)
        if (ck_expr_equal(x->exprs[i], e)) return i;
    x->names[x->count] = "tie";
    x->exprs[x->count] = e;
    return x->count++;
}

/* An inner column of a residual condition: put behind, and numbered as it stands there. */
static ck_status residual_column(void *arg, const ck_expr *e, ck_expr **instead) {
    behind *x = (behind *)arg;
    if (e->kind != CK_EXPR_COLUMN || (e->column & CK_BIND_OUTER)) return CK_OK;
    ck_expr *c = ck_plan_column(x->plan, x->input, e->column);
    if (c) *instead = ck_expr_column(x->plan->arena, column_behind(x, c), e->type, e->nullable);
    return *instead ? CK_OK : CK_NOMEM;
}

ck_status ck_bind_ties(ck_binder *b, const ck_scope *scope, const ck_grouping *g, const ck_plan_node *input,
                       ck_outer *outer, ck_expr **exprs, const char **names, uint32_t *count) {
    behind x = {exprs, names, *count, &b->plan, input};
    for (uint32_t i = 0; i < outer->pair_count; i++) {
        ck_expr *e = outer->inner_exprs[i];
        if (g->node) CK_TRY(ck_bind_over_groups(b, g, scope, e, (ck_pos){0}, &e));
        outer->inner_columns[i] = column_behind(&x, e);
    }
    for (uint32_t i = 0; i < outer->residual_count; i++)
        if (ck_expr_rewrite(b->plan.arena, outer->residual[i], residual_column, &x, &outer->residual[i]) != CK_OK)
            return ck_bind_nomem(b);
    *count = x.count;
    return CK_OK;
}

/* Of a group that HAVING does not let through there is no row, and the value is NULL. */
ck_status ck_bind_where_having(ck_binder *b, ck_expr *const *having, uint32_t count, ck_pos at, ck_expr **value) {
    ck_expr *args[2] = {having[0], *value};
    if (count > 1) CK_TRY(ck_bind_function(b, "and", having, count, at, &args[0]));
    return ck_bind_function(b, "case", args, 2, at, value);
}

/* A correlated aggregate used as a value: its groups come out as they are, the value is computed behind the join. */
ck_status ck_bind_groups_as_value(ck_binder *b, const ck_scope *scope, const ck_grouping *g, ck_expr *value,
                                  ck_plan_node *node, ck_outer *outer, ck_bound_select *out) {
    outer->is_count = CK_BIND_ARRAY(b, node->schema->field_count, bool);
    if (!outer->is_count) return CK_NOMEM;
    for (uint32_t i = 0; i < g->calls.count; i++)
        outer->is_count[g->key_count + i] = strcmp(g->calls.at[i].fn->name, "count") == 0;
    for (uint32_t i = 0; i < outer->pair_count; i++) {
        ck_expr *e;
        CK_TRY(ck_bind_over_groups(b, g, scope, outer->inner_exprs[i], (ck_pos){0}, &e));
        outer->inner_columns[i] = e->column;
    }
    outer->value = value;
    *out = (ck_bound_select){.node = node, .visible = node->schema->field_count};
    return CK_OK;
}
