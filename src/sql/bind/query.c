/* Queries: WITH, set operations, ORDER BY, LIMIT, EMIT ON CLOSE around SELECT and VALUES. */
#include "sql/bind/bind_int.h"

/* ---- WITH ---- */

static ck_status push_ctes(ck_binder *b, const ck_ast_cte *list) {
    for (const ck_ast_cte *a = list; a; a = a->next) {
        for (const ck_ast_cte *o = list; o != a; o = o->next)
            if (ck_view_eq(o->name.text, a->name.text))
                return ck_bind_fail(b, a->name.pos, "WITH defines \"%.*s\" twice", ck_cut(a->name.text),
                                    a->name.text.p);
        ck_cte *c = CK_BIND_ARRAY(b, 1, ck_cte);
        if (!c) return CK_NOMEM;
        *c = (ck_cte){.ast = a, .next = b->ctes};
        b->ctes = c;
    }
    return CK_OK;
}

/* ---- set operations ---- */

static ck_status same_width(ck_binder *b, const ck_ast_query *q, ck_plan_node *const *arms) {
    uint32_t i = 0;
    for (const ck_ast_query *a = q->arms; a; a = a->next, i++)
        if (arms[i]->schema->field_count != arms[0]->schema->field_count)
            return ck_bind_fail(b, a->pos, "this query has %u columns, and the first one has %u",
                                arms[i]->schema->field_count, arms[0]->schema->field_count);
    return CK_OK;
}

/* Column c of every arm gets the type they have in common. */
static ck_status common_types(ck_binder *b, const ck_ast_query *q, ck_plan_node *const *arms, uint32_t count,
                              const ck_type **types) {
    ck_expr **examples = CK_BIND_ARRAY(b, count, ck_expr *);
    if (!examples) return CK_NOMEM;
    for (uint32_t c = 0; c < arms[0]->schema->field_count; c++) {
        for (uint32_t i = 0; i < count; i++)
            if (!(examples[i] = ck_plan_column(&b->plan, arms[i], c))) return CK_NOMEM;
        ck_status s = ck_bind_common_type(b, examples, count, &types[c]);
        if (s == CK_OK) continue;
        if (s == CK_NOMEM) return s;
        return ck_bind_fail(b, q->arms->next->pos, "column %u is %s in one query and %s in another", c + 1,
                            ck_type_name(b->plan.arena, examples[0]->type),
                            ck_type_name(b->plan.arena, examples[1]->type));
    }
    return CK_OK;
}

static ck_status cast_arm(ck_binder *b, const ck_type *const *types, ck_pos at, ck_plan_node **arm) {
    uint32_t n = (*arm)->schema->field_count;
    ck_expr **exprs = CK_BIND_ARRAY(b, n, ck_expr *);
    bool differs = false;
    if (!exprs) return CK_NOMEM;
    for (uint32_t c = 0; c < n; c++) {
        ck_expr *e = ck_plan_column(&b->plan, *arm, c);
        if (!e) return CK_NOMEM;
        CK_TRY(ck_bind_cast(b, e, types[c], false, at, &exprs[c]));
        differs = differs || exprs[c] != e;
    }
    const char *const *names = ck_plan_names(&b->plan, *arm);
    if (!names) return CK_NOMEM;
    return differs ? ck_plan_project(&b->plan, *arm, exprs, names, n, arm) : CK_OK;
}

/* INTERSECT and EXCEPT, from left to right. */
static ck_status compare_arms(ck_binder *b, const ck_ast_query *q, ck_plan_node *const *arms, uint32_t count,
                              ck_plan_node **out) {
    bool except = q->kind == CK_QUERY_EXCEPT;
    CK_TRY(ck_bind_needs(b, "set_op", q->arms->next->pos, except ? "EXCEPT is" : "INTERSECT is"));
    *out = arms[0];
    for (uint32_t i = 1; i < count; i++) CK_TRY(ck_plan_set_op(&b->plan, except, q->all, *out, arms[i], out));
    return CK_OK;
}

static ck_status set_operation(ck_binder *b, const ck_ast_query *q, ck_plan_node **out) {
    uint32_t count = 0, i = 0;
    for (const ck_ast_query *a = q->arms; a; a = a->next) count++;
    ck_plan_node **arms = CK_BIND_ARRAY(b, count, ck_plan_node *);
    if (!arms) return CK_NOMEM;
    for (const ck_ast_query *a = q->arms; a; a = a->next) CK_TRY(ck_bind_query(b, a, false, &arms[i++]));
    *out = arms[0];
    if (count == 1) return CK_OK; /* a query in parentheses */
    CK_TRY(same_width(b, q, arms));
    const ck_type **types = CK_BIND_ARRAY(b, arms[0]->schema->field_count, const ck_type *);
    if (!types) return CK_NOMEM;
    CK_TRY(common_types(b, q, arms, count, types));
    i = 0;
    for (const ck_ast_query *a = q->arms; a; a = a->next) CK_TRY(cast_arm(b, types, a->pos, &arms[i++]));
    if (q->kind != CK_QUERY_UNION) return compare_arms(b, q, arms, count, out);
    CK_TRY(ck_plan_union(&b->plan, arms, count, out));
    return q->all ? CK_OK : ck_bind_select_distinct(b, *out, q->arms->next->pos, out);
}

static ck_status all_columns(ck_binder *b, const ck_plan_node *n, ck_columns *out) {
    uint32_t count = n->schema->field_count, *keys = CK_BIND_ARRAY(b, count, uint32_t);
    if (!keys) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) keys[i] = i;
    *out = (ck_columns){keys, count};
    return CK_OK;
}

ck_status ck_bind_distinct(ck_binder *b, ck_plan_node *n, ck_plan_node **out) {
    ck_columns all;
    CK_TRY(all_columns(b, n, &all));
    return ck_plan_aggregate_node(&b->plan, n, all, NULL, 0, NULL, NULL, out);
}

/* Where a window is among the columns, its rows are said, and forgotten, when it is over. */
ck_status ck_bind_select_distinct(ck_binder *b, ck_plan_node *n, ck_pos at, ck_plan_node **out) {
    ck_plan_node *of_windows;
    ck_columns all;
    CK_TRY(all_columns(b, n, &all));
    CK_TRY(ck_bind_window_agg(b, n, all, NULL, 0, NULL, NULL, false, at, &of_windows));
    if (!of_windows) return ck_bind_distinct(b, n, out);
    *out = of_windows;
    return CK_OK;
}

/* ---- ORDER BY, LIMIT ---- */

/* The columns of the result, without those that were only ordered by. */
static ck_status visible_only(ck_binder *b, uint32_t visible, ck_plan_node **node) {
    if (visible == (*node)->schema->field_count) return CK_OK;
    ck_expr **exprs = CK_BIND_ARRAY(b, visible, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < visible; i++)
        if (!(exprs[i] = ck_plan_column(&b->plan, *node, i))) return CK_NOMEM;
    return ck_plan_project(&b->plan, *node, exprs, NULL, visible, node);
}

static ck_status top_n(ck_binder *b, const ck_ast_query *q, ck_bound_select *s, uint64_t limit, uint64_t offset) {
    ck_pos at = q->order_by.count ? q->order_pos : q->limit_pos;
    CK_TRY(ck_bind_needs(b, "top_n", at,
                         q->order_by.count ? "ORDER BY over rows that change is" : "LIMIT over rows that change is"));
    ck_plan_top top = {.order = s->order,
                       .order_count = s->order_count,
                       .limit = limit,
                       .offset = offset,
                       .rank = CK_RANK_ROW_NUMBER,
                       .at = at,
                       .source = b->source};
    return ck_plan_top_n(&b->plan, s->node, &top, NULL, &s->node);
}

static ck_status ordered(ck_binder *b, const ck_ast_query *q, bool root, ck_bound_select *s, uint64_t limit,
                         uint64_t offset) {
    bool cut = limit != UINT64_MAX || offset;
    if (!root && !cut)
        return ck_bind_refuse(b, q->order_pos, "ORDER BY in a subquery without LIMIT orders nothing; remove it");
    if (s->node->mode == CK_MODE_APPEND && s->node->bounded) {
        CK_TRY(ck_bind_needs(b, "sort", q->order_pos, "ORDER BY is"));
        CK_TRY(ck_plan_sort(&b->plan, s->node, s->order, s->order_count, limit, offset, &s->node));
    } else if (limit != UINT64_MAX) {
        CK_TRY(top_n(b, q, s, limit, offset));
    } else {
        return ck_bind_refuse(b, q->order_pos,
                              s->node->bounded
                                  ? "changes cannot be sorted; remove ORDER BY, or ask for the result instead "
                                    "of its changes"
                                  : "ORDER BY waits for the end of its input, which never comes; with LIMIT n "
                                    "it keeps the first n rows at any time");
    }
    return visible_only(b, s->visible, &s->node);
}

static ck_status order_and_limit(ck_binder *b, const ck_ast_query *q, bool root, ck_bound_select *s) {
    uint64_t limit = UINT64_MAX, offset = 0;
    if (q->limit) CK_TRY(ck_bind_count(b, "LIMIT", q->limit, &limit));
    if (q->offset) CK_TRY(ck_bind_count(b, "OFFSET", q->offset, &offset));
    if (s->order_count) return ordered(b, q, root, s, limit, offset);
    if (!q->limit && !q->offset) return CK_OK;
    if (s->node->mode == CK_MODE_APPEND) return ck_plan_limit(&b->plan, s->node, limit, offset, &s->node);
    return top_n(b, q, s, limit, offset);
}

/* ORDER BY over the output of a set operation or VALUES: its columns only. */
static ck_status order_by_output(ck_binder *b, const ck_ast_orders *orders, ck_bound_select *s) {
    s->visible = s->node->schema->field_count;
    s->order = CK_BIND_ARRAY(b, orders->count, ck_plan_order);
    if (!s->order) return CK_NOMEM;
    for (const ck_ast_order *o = orders->first; o; o = o->next) {
        bool twice = false;
        uint32_t c = CK_NO_COLUMN;
        if (o->expr->kind == CK_AST_INTEGER) {
            uint64_t n;
            CK_TRY(ck_bind_count(b, "ORDER BY", o->expr, &n));
            if (n >= 1 && n <= s->visible) c = (uint32_t)n - 1;
        } else if (o->expr->kind == CK_AST_NAME) {
            c = ck_bind_find_field(s->node->schema, 0, s->visible, o->expr->name, o->expr->quoted, &twice);
        }
        if (c == CK_NO_COLUMN)
            return ck_bind_fail(b, o->expr->pos, "ORDER BY takes a column of the result here, by name or number");
        s->order[s->order_count++] = (ck_plan_order){
            c, o->descending, o->nulls == CK_NULLS_DEFAULT ? o->descending : o->nulls == CK_NULLS_FIRST};
    }
    return CK_OK;
}

static ck_status body(ck_binder *b, const ck_ast_query *q, bool root, ck_plan_node **out) {
    ck_bound_select s = {0};
    switch (q->kind) {
    case CK_QUERY_SELECT: CK_TRY(ck_bind_select(b, q->select, &q->order_by, &s)); break;
    case CK_QUERY_VALUES:
        CK_TRY(ck_bind_values(b, q, &s.node));
        CK_TRY(order_by_output(b, &q->order_by, &s));
        break;
    default: CK_TRY(set_operation(b, q, &s.node)); CK_TRY(order_by_output(b, &q->order_by, &s));
    }
    CK_TRY(order_and_limit(b, q, root, &s));
    *out = s.node;
    return CK_OK;
}

ck_status ck_bind_query(ck_binder *b, const ck_ast_query *q, bool root, ck_plan_node **out) {
    ck_cte *ctes = b->ctes;
    bool emit_on_close = b->plan.emit_on_close;
    ck_status s = push_ctes(b, q->ctes);
    if (q->emit_on_close) b->plan.emit_on_close = true;
    if (s == CK_OK) s = body(b, q, root, out);
    b->ctes = ctes;
    b->plan.emit_on_close = emit_on_close;
    return s;
}
