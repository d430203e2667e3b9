/* Subqueries in expressions become joins. EXISTS and IN that are conjuncts of WHERE are semi joins, their negations
 * anti joins; elsewhere a left join with a marker. A scalar subquery is a left join that provably meets one row at
 * most. */
#include "expr/function.h"
#include "sql/bind/bind_int.h"

/* ---- binding the inside ---- */

static ck_status bind_inside(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, bool scalar,
                             ck_outer *outer, ck_plan_node **out) {
    *outer = (ck_outer){.scope = place->scope, .scalar = scalar};
    CK_TRY(ck_bind_needs(b, "join", e->pos, "a subquery in an expression is"));
    if (place->inside)
        return ck_bind_refuse(
            b, e->pos, "a subquery cannot stand inside an aggregate (%s); join it in a subquery first", place->inside);
    if (!place->queries)
        return ck_bind_refuse(b, e->pos,
                              "a subquery cannot stand in %s; it can in SELECT, WHERE, GROUP BY, HAVING and ORDER BY, and "
                              "in ON of an inner join",
                              place->clause);
    b->outer = e->query->kind == CK_QUERY_SELECT ? outer : NULL;
    ck_status s = ck_bind_query(b, e->query, false, out);
    b->outer = NULL;
    CK_TRY(s);
    bool tied = outer->pair_count + outer->residual_count > 0;
    if (tied && (e->query->limit || e->query->offset))
        return ck_bind_refuse(b, e->query->limit ? e->query->limit_pos : e->query->offset->pos,
                              "LIMIT in a subquery that is tied to the query around it is not supported; EXISTS needs "
                              "none, and MIN or MAX gives one value");
    if (!tied) outer->visible = (*out)->schema->field_count;
    if (e->kind != CK_AST_EXISTS && outer->visible != 1)
        return ck_bind_fail(b, e->query->pos, "this subquery gives %u columns where one is wanted", outer->visible);
    return CK_OK;
}

/* ---- conditions of the join ---- */

typedef struct sides {
    ck_arena *arena;
    uint32_t left_count;
} sides;

/* Columns of a residual condition: outer ones are the left's, inner ones the right's. */
static ck_status of_join(void *arg, const ck_expr *e, ck_expr **instead) {
    const sides *s = (const sides *)arg;
    if (e->kind != CK_EXPR_COLUMN) return CK_OK;
    uint32_t c = e->column & CK_BIND_OUTER ? e->column & ~CK_BIND_OUTER : e->column + s->left_count;
    *instead = ck_expr_column(s->arena, c, e->type, e->nullable);
    return *instead ? CK_OK : CK_NOMEM;
}

static ck_expr *of_right(void *arg, const ck_expr *e) {
    const sides *s = (const sides *)arg;
    return e->kind == CK_EXPR_COLUMN ? ck_expr_column(s->arena, e->column + s->left_count, e->type, e->nullable) : NULL;
}

static ck_status conditions(ck_binder *b, const ck_outer *o, const ck_plan_node *left, const ck_plan_node *right,
                            ck_expr *in_left, ck_pos at, ck_expr ***out, uint32_t *count) {
    sides s = {b->plan.arena, left->schema->field_count};
    ck_expr **on = CK_BIND_ARRAY(b, o->pair_count + o->residual_count + 1, ck_expr *), *args[2];
    *count = 0;
    if (!on) return CK_NOMEM;
    for (uint32_t i = 0; i < o->pair_count + (in_left ? 1 : 0); i++) {
        bool own = i == o->pair_count; /* x IN: with the first column */
        args[0] = own ? in_left : o->outer_exprs[i];
        ck_expr *c = ck_plan_column(&b->plan, right, own ? 0 : o->inner_columns[i]);
        if (!c) return CK_NOMEM;
        if (!(args[1] = of_right(&s, c))) return ck_bind_nomem(b);
        const char *equals = !own && o->null_safe[i] ? "is_not_distinct_from" : "=";
        CK_TRY(ck_bind_function(b, equals, args, 2, at, &on[(*count)++]));
    }
    for (uint32_t i = 0; i < o->residual_count; i++)
        if (ck_expr_rewrite(b->plan.arena, o->residual[i], of_join, &s, &on[(*count)++]) != CK_OK)
            return ck_bind_nomem(b);
    *out = on;
    return CK_OK;
}

/* Of a query nothing ties to the row: one row if it has any. */
static ck_status any_row(ck_binder *b, ck_plan_node **node) {
    if ((*node)->mode == CK_MODE_APPEND) return ck_plan_limit(&b->plan, *node, 1, 0, node);
    ck_plan_aggregate *count = CK_BIND_ARRAY(b, 1, ck_plan_aggregate);
    const char **name = CK_BIND_ARRAY(b, 1, const char *);
    ck_expr **some = CK_BIND_ARRAY(b, 1, ck_expr *), *args[2];
    if (!count || !name || !some) return CK_NOMEM;
    *count = (ck_plan_aggregate){.fn = ck_aggregate_find("count"),
                                 .arg = CK_NO_COLUMN,
                                 .filter = CK_NO_COLUMN,
                                 .type = ck_type_simple(CK_TYPE_BIGINT)};
    *name = "count";
    CK_TRY(ck_plan_aggregate_node(&b->plan, *node, (ck_columns){0}, count, 1, "", name, node));
    args[0] = ck_plan_column(&b->plan, *node, 0);
    args[1] = ck_expr_literal(b->plan.arena, ck_type_simple(CK_TYPE_BIGINT), (ck_datum){.i64 = 0});
    if (!args[0] || !args[1]) return ck_bind_nomem(b);
    CK_TRY(ck_expr_call(b->plan.arena, ">", args, 2, &some[0], b->err));
    return ck_plan_filter(&b->plan, *node, some, 1, node);
}

/* ---- NULLs of IN as a value, and of NOT IN ---- */

static ck_status no_nulls(ck_binder *b, const ck_ast_expr *e, const ck_plan_node *left, const ck_expr *x, bool is_not,
                          bool is_conjunct, const ck_plan_node *n) {
    bool left_null = x->nullable && (x->kind != CK_EXPR_COLUMN || !ck_plan_is_not_null(left, x->column));
    bool right_null = !ck_plan_is_not_null(n, 0);
    if (!left_null && !right_null) return CK_OK;
    const ck_ast_query *q = e->query;
    const ck_ast_expr *item =
        q->kind == CK_QUERY_SELECT && q->select->items.count == 1 ? q->select->items.first->expr : NULL;
    ck_view l = ck_source_slice(b->source, e->args.first->pos), r = ck_view_of(n->schema->fields[0].name);
    if (item && item->kind != CK_AST_STAR) r = ck_source_slice(b->source, item->pos);
    bool same = ck_view_eq_nocase(l, r); /* the tables tell them apart */
    return ck_bind_refuse(b, e->sign,
                          "%.*s%s%.*s may be NULL, and then the answer is NULL%s. Write %sEXISTS "
                          "(SELECT 1 FROM ... WHERE %s%.*s = %s%.*s), or take NULLs out first, with IS NOT NULL",
                          left_null ? ck_cut(l) : 0, l.p, left_null && right_null && !same ? " and " : "",
                          right_null && !(same && left_null) ? ck_cut(r) : 0, r.p,
                          is_conjunct ? " and no row passes" : "", is_not ? "NOT " : "", same ? "u." : "", ck_cut(r),
                          r.p, same ? "t." : "", ck_cut(l), l.p);
}

/* ---- conjuncts ---- */

ck_status ck_bind_subquery_conjunct(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, bool *done) {
    bool anti = false;
    *done = false;
    for (; e->kind == CK_AST_NOT; e = e->args.first) anti = !anti;
    if (e->kind != CK_AST_EXISTS && e->kind != CK_AST_IN_QUERY) return CK_OK;
    ck_outer outer;
    ck_plan_node *right;
    ck_expr *x = NULL, **on;
    uint32_t count;
    if (e->kind == CK_AST_IN_QUERY && e->negated) anti = !anti;
    if (e->kind == CK_AST_IN_QUERY) CK_TRY(ck_bind_expr(b, place, e->args.first, &x));
    if (x && ck_bind_has_outer(x)) return CK_OK; /* the value's way says what is wrong */
    CK_TRY(bind_inside(b, place, e, false, &outer, &right));
    if (anti && x) CK_TRY(no_nulls(b, e, place->scope->node, x, true, true, right));
    if (!x && outer.pair_count + outer.residual_count == 0) CK_TRY(any_row(b, &right));
    ck_scope *s = place->scope;
    CK_TRY(conditions(b, &outer, s->node, right, x, e->sign, &on, &count));
    *done = true;
    return ck_plan_join(&b->plan, anti ? CK_JOIN_LEFT_ANTI : CK_JOIN_LEFT_SEMI, s->node, right, on, count, false, NULL,
                        &s->node);
}

bool ck_bind_has_query(const ck_ast_expr *e) {
    if (e->kind == CK_AST_IN_QUERY || e->kind == CK_AST_EXISTS || e->kind == CK_AST_SUBQUERY ||
        e->kind == CK_AST_QUANTIFIED)
        return true;
    for (const ck_ast_expr *a = e->args.first; a; a = a->next)
        if (ck_bind_has_query(a)) return true;
    return false;
}

ck_status ck_bind_query_conjuncts(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e) {
    ck_scope *scope = place->scope;
    bool many = e->kind == CK_AST_AND;
    for (const ck_ast_expr *c = many ? e->args.first : e; c; c = many ? c->next : NULL) {
        bool done = false;
        if (!ck_bind_has_query(c)) continue;
        CK_TRY(ck_bind_subquery_conjunct(b, place, c, &done));
        if (done) continue;
        ck_expr **one = CK_BIND_ARRAY(b, 1, ck_expr *);
        if (!one) return CK_NOMEM;
        CK_TRY(ck_bind_condition(b, place, c, one));
        CK_TRY(ck_plan_filter(&b->plan, scope->node, one, 1, &scope->node));
    }
    return CK_OK;
}

/* ---- values ---- */

/* The value over the join's columns, bound again: what was NOT NULL may now be padded. A COUNT of no rows is 0. */
static ck_status value_of_join(ck_binder *b, const ck_later *l, uint32_t left_count, const ck_plan_node *join,
                               const ck_expr *e, ck_expr **out) {
    if (e->kind == CK_EXPR_LITERAL) {
        *out = (ck_expr *)(uintptr_t)e; /* handed on as it is */
        return CK_OK;
    }
    if (e->kind == CK_EXPR_COLUMN) {
        ck_expr *args[2] = {ck_plan_column(&b->plan, join, e->column + left_count), NULL};
        if (!(*out = args[0])) return CK_NOMEM;
        if (!l->outer.is_count || !l->outer.is_count[e->column]) return CK_OK;
        args[1] = ck_expr_literal(b->plan.arena, e->type, (ck_datum){.i64 = 0});
        return args[1] ? ck_bind_function(b, "coalesce", args, 2, l->pos, out) : ck_bind_nomem(b);
    }
    ck_expr **args = CK_BIND_ARRAY(b, e->arg_count, ck_expr *);
    if (!args) return CK_NOMEM;
    for (uint32_t i = 0; i < e->arg_count; i++) CK_TRY(value_of_join(b, l, left_count, join, e->args[i], &args[i]));
    ck_pos at = {.line = e->line, .column = e->col};
    bool try_cast = strcmp(e->fn->name, "try_cast") == 0;
    if (try_cast || strcmp(e->fn->name, "cast") == 0) return ck_bind_cast(b, args[0], e->type, try_cast, at, out);
    return ck_bind_function(b, e->fn->name, args, e->arg_count, at, out);
}

static ck_status join_one(ck_binder *b, const ck_later *l, ck_expr *in_left, ck_plan_node **node, ck_expr **value) {
    ck_expr **on;
    uint32_t count;
    sides s = {b->plan.arena, (*node)->schema->field_count};
    CK_TRY(conditions(b, &l->outer, *node, l->node, in_left, l->pos, &on, &count));
    CK_TRY(ck_plan_join(&b->plan, l->always ? CK_JOIN_BOTH_INNER : CK_JOIN_LEFT_OUTER, *node, l->node, on, count,
                        !l->always, NULL, node));
    return value_of_join(b, l, s.left_count, *node, l->value, value);
}

static ck_status join_now_or_later(ck_binder *b, const ck_bind_place *place, const ck_later *l, ck_expr **out) {
    ck_laters *list = place->laters;
    uint32_t width = place->scope->node->schema->field_count;
    if (!list) {
        CK_TRY(join_one(b, l, NULL, &place->scope->node, out));
        return ck_scope_extended(b, place->scope, width);
    }
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        ck_later *more = CK_BIND_ARRAY(b, capacity, ck_later);
        if (!more) return CK_NOMEM;
        if (list->count) memcpy(more, list->at, list->count * sizeof *more);
        list->at = more, list->capacity = capacity;
    }
    *out = ck_expr_column(b->plan.arena, CK_BIND_SUBQUERY | list->count, l->value->type, true);
    if (!*out) return ck_bind_nomem(b);
    list->at[list->count++] = *l;
    return CK_OK;
}

static bool is_one_row(const ck_plan_node *n) {
    while (n->kind == CK_PLAN_PROJECT) n = n->inputs[0];
    return (n->kind == CK_PLAN_AGGREGATE && n->aggregate.keys.count == 0) ||
           (n->kind == CK_PLAN_VALUES && n->values.row_count == 1);
}

static ck_status scalar(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_later l = {.pos = e->pos};
    CK_TRY(bind_inside(b, place, e, true, &l.outer, &l.node));
    if (!ck_plan_is_unique(l.node, l.outer.inner_columns, l.outer.pair_count))
        return ck_bind_refuse(
            b, e->query->pos,
            "a subquery used as a value must give one row at most, and nothing says that this one does: "
            "aggregate it, or add LIMIT 1");
    l.always = l.outer.pair_count == 0 && is_one_row(l.node);
    l.value = l.outer.value ? l.outer.value : ck_plan_column(&b->plan, l.node, 0);
    if (!l.value) return CK_NOMEM;
    return join_now_or_later(b, place, &l, out);
}

/* EXISTS and IN anywhere: rows that differ in what ties them, once each, with a marker behind. */
static ck_status marked(ck_binder *b, ck_later *l, bool with_first) {
    uint32_t n = l->outer.pair_count + (with_first ? 1 : 0);
    ck_expr **ties = CK_BIND_ARRAY(b, n, ck_expr *), **exprs = CK_BIND_ARRAY(b, n + 1, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, n + 1, const char *);
    if (!ties || !exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = !with_first ? l->outer.inner_columns[i] : i == 0 ? 0 : l->outer.inner_columns[i - 1];
        if (!(ties[i] = ck_plan_column(&b->plan, l->node, from))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < l->outer.pair_count; i++) l->outer.inner_columns[i] = i + (with_first ? 1 : 0);
    if (n) {
        CK_TRY(ck_plan_project(&b->plan, l->node, ties, NULL, n, &l->node));
        CK_TRY(ck_bind_distinct(b, l->node, &l->node));
    } else {
        CK_TRY(any_row(b, &l->node));
    }
    for (uint32_t i = 0; i < n; i++)
        if (!(exprs[i] = ck_plan_column(&b->plan, l->node, i))) return CK_NOMEM;
    exprs[n] = ck_expr_literal(b->plan.arena, ck_type_simple(CK_TYPE_BOOLEAN), (ck_datum){.b = true});
    if (!exprs[n]) return ck_bind_nomem(b);
    names[n] = "found";
    CK_TRY(ck_plan_project(&b->plan, l->node, exprs, names, n + 1, &l->node));
    ck_expr *marker = ck_expr_column(b->plan.arena, n, ck_type_simple(CK_TYPE_BOOLEAN), true); /* after padding */
    if (!marker) return ck_bind_nomem(b);
    return ck_expr_call(b->plan.arena, "is_not_null", &marker, 1, &l->value, b->err);
}

static ck_status membership(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_later l = {.pos = e->sign};
    ck_expr *x = NULL;
    if (e->kind == CK_AST_IN_QUERY) CK_TRY(ck_bind_expr(b, place, e->args.first, &x));
    if (x && ck_bind_has_outer(x))
        return ck_bind_refuse(b, e->sign, "IN over a column of the query around is not supported; compare it in WHERE");
    CK_TRY(bind_inside(b, place, e, false, &l.outer, &l.node));
    if (x) CK_TRY(no_nulls(b, e, place->scope->node, x, e->negated, false, l.node));
    if (l.outer.residual_count)
        return ck_bind_refuse(b, e->sign,
                              "here a subquery may be tied to the query around it by equalities only; as a "
                              "condition of its own in WHERE it may be by others, too");
    CK_TRY(marked(b, &l, x != NULL));
    if (x) { /* one more pair: x and the first column */
        ck_outer *o = &l.outer;
        uint32_t n = o->pair_count + 1;
        ck_expr **outer = CK_BIND_ARRAY(b, n, ck_expr *);
        uint32_t *inner = CK_BIND_ARRAY(b, n, uint32_t);
        bool *safe = CK_BIND_ARRAY(b, n, bool);
        if (!outer || !inner || !safe) return CK_NOMEM;
        for (uint32_t i = 0; i + 1 < n; i++)
            outer[i] = o->outer_exprs[i], inner[i] = o->inner_columns[i], safe[i] = o->null_safe[i];
        outer[n - 1] = x;
        o->outer_exprs = outer, o->inner_columns = inner, o->null_safe = safe, o->pair_count = n;
    }
    CK_TRY(join_now_or_later(b, place, &l, out));
    return e->negated ? ck_bind_function(b, "not", out, 1, e->sign, out) : CK_OK;
}

ck_status ck_bind_subquery(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_SUBQUERY: return scalar(b, place, e, out);
    case CK_AST_IN_QUERY:
    case CK_AST_EXISTS: return membership(b, place, e, out);
    default:
        if (e->what == CK_OP_EQ && !e->flag)
            return ck_bind_refuse(b, e->sign, "= ANY (SELECT ...) is IN (SELECT ...); write that");
        return ck_bind_refuse(b, e->sign,
                              "a comparison with ANY or ALL of a query is not supported; compare with its MIN or MAX");
    }
}

/* ---- joining later ---- */

typedef struct settle {
    ck_expr **values;
} settle;

static ck_status settled(void *arg, const ck_expr *e, ck_expr **instead) {
    if (ck_bind_is_placeholder(e, CK_BIND_SUBQUERY)) *instead = ((settle *)arg)->values[e->column & ~CK_BIND_SUBQUERY];
    return CK_OK;
}

ck_status ck_bind_join_laters(ck_binder *b, ck_laters *l, ck_plan_node **node, ck_expr **exprs, uint32_t count) {
    settle s = {CK_BIND_ARRAY(b, l->count, ck_expr *)};
    if (!s.values) return CK_NOMEM;
    for (uint32_t i = 0; i < l->count; i++) CK_TRY(join_one(b, &l->at[i], NULL, node, &s.values[i]));
    for (uint32_t i = 0; l->count && i < count; i++)
        if (exprs[i] && ck_expr_rewrite(b->plan.arena, exprs[i], settled, &s, &exprs[i]) != CK_OK)
            return ck_bind_nomem(b);
    return CK_OK;
}
