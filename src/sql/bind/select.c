/* One SELECT: FROM, WHERE, grouping, HAVING, the list, DISTINCT, and the columns ORDER BY needs. */
#include "sql/bind/bind_int.h"

/* The SELECT list with * written out, bound over FROM (aggregates as CK_BIND_AGGREGATE columns). */
typedef struct list {
    ck_expr **exprs;
    const char **names;
    ck_ast_ident *aliases; /* as written; empty text: none */
    ck_pos *pos;
    uint32_t count;
} list;

static ck_status room_for(ck_binder *b, const ck_ast_select *s, const ck_scope *scope, list *l) {
    size_t columns = scope->node ? scope->node->schema->field_count : 0, room = 0;
    for (const ck_ast_item *i = s->items.first; i; i = i->next) room += i->expr->kind == CK_AST_STAR ? columns : 1;
    if (room > CK_SQL_COLUMNS_MAX)
        return ck_bind_fail(b, s->pos, "%zu columns are too many; at most %d are allowed", room, CK_SQL_COLUMNS_MAX);
    l->exprs = CK_BIND_ARRAY(b, room, ck_expr *);
    l->names = CK_BIND_ARRAY(b, room, const char *);
    l->aliases = CK_BIND_ARRAY(b, room, ck_ast_ident);
    l->pos = CK_BIND_ARRAY(b, room, ck_pos);
    return l->exprs && l->names && l->aliases && l->pos ? CK_OK : CK_NOMEM;
}

static ck_status add_star(ck_binder *b, const ck_ast_item *i, ck_scope *scope, list *l) {
    uint32_t *columns = CK_BIND_ARRAY(b, scope->node ? scope->node->schema->field_count : 0, uint32_t), n = 0;
    if (!columns) return CK_NOMEM;
    CK_TRY(ck_scope_star(b, scope, i->expr, columns, &n));
    for (uint32_t k = 0; k < n; k++) {
        if (!(l->exprs[l->count] = ck_plan_column(&b->plan, scope->node, columns[k]))) return CK_NOMEM;
        l->names[l->count] = scope->node->schema->fields[columns[k]].name;
        l->pos[l->count++] = i->expr->pos;
    }
    return CK_OK;
}

static ck_status bind_list(ck_binder *b, const ck_ast_select *s, const ck_bind_place *place, list *l) {
    CK_TRY(room_for(b, s, place->scope, l));
    for (const ck_ast_item *i = s->items.first; i; i = i->next) {
        if (i->expr->kind == CK_AST_STAR) {
            CK_TRY(add_star(b, i, place->scope, l));
            continue;
        }
        uint32_t n = l->count++;
        l->pos[n] = i->expr->pos, l->aliases[n] = i->alias;
        CK_TRY(ck_bind_expr(b, place, i->expr, &l->exprs[n]));
        if (i->alias.text.n) {
            l->names[n] = ck_arena_strndup(b->plan.arena, i->alias.text.p, i->alias.text.n);
            if (!l->names[n]) return ck_bind_nomem(b);
        } else {
            CK_TRY(ck_bind_default_name(b, i->expr, n, &l->names[n]));
        }
    }
    return CK_OK;
}

/* ---- ORDER BY: over the list where it names it, else hidden columns behind it ---- */

typedef struct ordering {
    ck_plan_order *items;
    ck_expr **exprs; /* of hidden columns, over FROM; NULL: items[i].column is of the list */
    ck_pos *pos;
    uint32_t count;
} ordering;

static bool names_alias(const list *l, const ck_ast_expr *e, uint32_t *column) {
    if (e->kind != CK_AST_NAME) return false;
    for (uint32_t i = 0; i < l->count; i++) {
        ck_view name = ck_view_of(l->names[i]);
        if (!ck_view_eq(name, e->name) && (e->quoted || !ck_view_eq_nocase(name, e->name))) continue;
        *column = i;
        return true;
    }
    return false;
}

static ck_status order_item(ck_binder *b, const ck_bind_place *place, const list *l, const ck_ast_order *o,
                            ordering *out) {
    ck_plan_order *item = &out->items[out->count];
    out->pos[out->count] = o->expr->pos;
    item->descending = o->descending;
    item->nulls_first = o->nulls == CK_NULLS_DEFAULT ? o->descending : o->nulls == CK_NULLS_FIRST;
    if (o->expr->kind == CK_AST_INTEGER) {
        uint64_t n;
        CK_TRY(ck_bind_count(b, "ORDER BY", o->expr, &n));
        if (n < 1 || n > l->count)
            return ck_bind_fail(b, o->expr->pos, "ORDER BY %llu: the SELECT list has %u columns", (unsigned long long)n,
                                l->count);
        item->column = (uint32_t)n - 1;
    } else if (!names_alias(l, o->expr, &item->column)) {
        ck_expr *e;
        CK_TRY(ck_bind_expr(b, place, o->expr, &e));
        item->column = CK_NO_COLUMN;
        for (uint32_t i = 0; i < l->count && item->column == CK_NO_COLUMN; i++)
            if (ck_expr_equal(l->exprs[i], e)) item->column = i;
        if (item->column == CK_NO_COLUMN) out->exprs[out->count] = e;
    }
    out->count++;
    return CK_OK;
}

static ck_status bind_order(ck_binder *b, const ck_bind_place *select, const list *l, const ck_ast_orders *orders,
                            ordering *out) {
    ck_bind_place place = *select;
    place.clause = "ORDER BY";
    out->items = CK_BIND_ARRAY(b, orders->count, ck_plan_order);
    out->exprs = CK_BIND_ARRAY(b, orders->count, ck_expr *);
    out->pos = CK_BIND_ARRAY(b, orders->count, ck_pos);
    if (!out->items || !out->exprs || !out->pos) return CK_NOMEM;
    for (const ck_ast_order *o = orders->first; o; o = o->next) CK_TRY(order_item(b, &place, l, o, out));
    return CK_OK;
}

/* ---- the clauses in order ---- */

/* A row that changes takes back what it said: the same value must come again. */
static ck_status no_volatile_over_changes(ck_binder *b, const ck_plan_node *input, ck_expr *const *exprs,
                                          uint32_t count, ck_pos at) {
    for (uint32_t i = 0; input->mode == CK_MODE_RETRACT && i < count; i++)
        if (ck_expr_is_volatile(exprs[i])) {
            return ck_bind_refuse(b, at,
                                  "this is another value each time it is computed, and a row that changes takes back "
                                  "what it said; compute it over the source, before the rows change");
        }
    return CK_OK;
}

static ck_status keep(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_expr **conjuncts, uint32_t count,
                      ck_outer *outer) {
    if (outer) CK_TRY(ck_bind_correlated(b, outer, conjuncts, &count, s->where->pos));
    CK_TRY(ck_bind_absorb(b, scope, conjuncts, &count));
    CK_TRY(no_volatile_over_changes(b, scope->node, conjuncts, count, s->where->pos));
    return count ? ck_plan_filter(&b->plan, scope->node, conjuncts, count, &scope->node) : CK_OK;
}

/* Conjuncts with subqueries come behind the others: joins of what is left. */
static ck_status where(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_outer *outer) {
    ck_bind_place place = {
        .scope = scope, .clause = "WHERE", .aliases = &s->items, .outer = outer, .queries = true};
    const ck_ast_expr *w = s->where;
    if (!w) return CK_OK;
    bool many = w->kind == CK_AST_AND;
    uint32_t room = many ? w->args.count : 1, count = 0;
    ck_expr **conjuncts = CK_BIND_ARRAY(b, room, ck_expr *);
    if (!conjuncts) return CK_NOMEM;
    for (const ck_ast_expr *c = many ? w->args.first : w; c; c = many ? c->next : NULL)
        if (!ck_bind_has_query(c)) CK_TRY(ck_bind_condition(b, &place, c, &conjuncts[count++]));
    CK_TRY(keep(b, s, scope, conjuncts, count, outer));
    place.outer = NULL, place.shut = outer;
    return ck_bind_query_conjuncts(b, &place, w);
}

/* All expressions above FROM and WHERE, as one list: they are lifted and settled alike. */
typedef struct clauses {
    list l;
    ordering o;
    ck_expr **having;
    uint32_t having_count;
    ck_bound_windows windows;
    ck_laters laters;
} clauses;

typedef struct slots {
    ck_expr **at;
    ck_pos *pos;
    uint32_t count;
} slots;

static void put(slots *s, ck_expr *const *exprs, uint32_t count, const ck_pos *pos, ck_pos at) {
    for (uint32_t i = 0; i < count; i++) {
        s->pos[s->count] = pos ? pos[i] : at;
        s->at[s->count++] = exprs[i];
    }
}
static void get(slots *s, ck_expr **exprs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) exprs[i] = s->at[s->count++];
}

static ck_status gather(ck_binder *b, const ck_ast_select *s, const clauses *c, slots *out) {
    uint32_t room = c->l.count + c->o.count + c->having_count;
    for (uint32_t i = 0; i < c->windows.count; i++)
        room += c->windows.at[i].partition_count + c->windows.at[i].order_count + 1;
    *out = (slots){CK_BIND_ARRAY(b, room, ck_expr *), CK_BIND_ARRAY(b, room, ck_pos), 0};
    if (!out->at || !out->pos) return CK_NOMEM;
    put(out, c->l.exprs, c->l.count, c->l.pos, s->pos);
    put(out, c->o.exprs, c->o.count, c->o.pos, s->pos);
    put(out, c->having, c->having_count, NULL, s->having ? s->having->pos : s->pos);
    for (uint32_t i = 0; i < c->windows.count; i++) {
        put(out, c->windows.at[i].partition, c->windows.at[i].partition_count, NULL, c->windows.at[i].pos);
        put(out, c->windows.at[i].order, c->windows.at[i].order_count, NULL, c->windows.at[i].pos);
        put(out, &c->windows.at[i].arg, 1, NULL, c->windows.at[i].pos);
    }
    return CK_OK;
}

static void scatter(clauses *c, slots *from) {
    from->count = 0;
    get(from, c->l.exprs, c->l.count);
    get(from, c->o.exprs, c->o.count);
    get(from, c->having, c->having_count);
    for (uint32_t i = 0; i < c->windows.count; i++) {
        get(from, c->windows.at[i].partition, c->windows.at[i].partition_count);
        get(from, c->windows.at[i].order, c->windows.at[i].order_count);
        get(from, &c->windows.at[i].arg, 1);
    }
}

/* Everything becomes an expression over the groups, also what ties subqueries to this query. */
static ck_status lift_over_groups(ck_binder *b, const ck_scope *scope, const ck_grouping *g, const clauses *c,
                                  slots *all) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i]) CK_TRY(ck_bind_over_groups(b, g, scope, all->at[i], all->pos[i], &all->at[i]));
    for (uint32_t i = 0; i < c->laters.count; i++) {
        ck_later *l = &c->laters.at[i];
        for (uint32_t k = 0; k < l->outer.pair_count; k++)
            CK_TRY(ck_bind_over_groups(b, g, scope, l->outer.outer_exprs[k], l->pos, &l->outer.outer_exprs[k]));
    }
    return CK_OK;
}

/* There are groups, and without a key in GROUP BY: one, which is there over nothing, too. */
static bool is_one_group(const ck_ast_select *s, const ck_grouping *g) {
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next)
        if (e->kind != CK_AST_ROW || e->flag || e->args.count) return false;
    return s->grouped || s->having || g->calls.count;
}

/* With a value to be made behind a join, HAVING is asked there. */
static ck_status over_node(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_grouping *g, clauses *c,
                           const ck_outer *outer, bool as_value, ck_plan_node **node) {
    slots all;
    bool grouped = s->grouped || s->having || g->calls.count;
    *node = scope->node;
    if (grouped) {
        CK_TRY(ck_bind_group_keys(b, s, scope, c->l.exprs, c->l.aliases, c->l.count, outer, g));
        CK_TRY(ck_bind_group_node(b, scope, g));
        *node = g->node;
    }
    CK_TRY(gather(b, s, c, &all));
    if (grouped) CK_TRY(lift_over_groups(b, scope, g, c, &all));
    CK_TRY(ck_bind_join_laters(b, &c->laters, node, all.at, all.count));
    scatter(c, &all);
    if (s->having && !as_value) CK_TRY(ck_plan_filter(&b->plan, *node, c->having, c->having_count, node));
    CK_TRY(gather(b, s, c, &all));
    CK_TRY(ck_bind_window_nodes(b, &c->windows, node, all.at, c->l.count + c->o.count));
    scatter(c, &all);
    return no_volatile_over_changes(b, *node, c->l.exprs, c->l.count, s->pos);
}

static const char *text_at(ck_binder *b, ck_pos at) {
    ck_view v = ck_source_slice(b->source, at);
    return ck_arena_strndup(b->plan.arena, v.p, v.n > 60 ? 60 : v.n);
}

/* ---- the list ---- */

static ck_status project(ck_binder *b, const ck_scope *scope, const ck_grouping *g, ck_plan_node *input, const list *l,
                         ordering *o, ck_outer *outer, ck_bound_select *out) {
    uint32_t ties = outer ? outer->pair_count + scope->node->schema->field_count : 0;
    ck_expr **exprs = CK_BIND_ARRAY(b, l->count + o->count + ties, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, l->count + o->count + ties, const char *);
    uint32_t n = l->count;
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) exprs[i] = l->exprs[i], names[i] = l->names[i];
    for (uint32_t i = 0; i < o->count; i++) {
        if (!o->exprs[i]) continue;
        o->items[i].column = n;
        exprs[n] = o->exprs[i], names[n] = text_at(b, o->pos[i]);
        if (!names[n++]) return ck_bind_nomem(b);
    }
    if (outer) CK_TRY(ck_bind_ties(b, scope, g, input, outer, exprs, names, &n));
    out->visible = l->count, out->order = o->items, out->order_count = o->count;
    return ck_plan_project(&b->plan, input, exprs, names, n, &out->node);
}

static ck_status distinct(ck_binder *b, const ck_ast_select *s, const ordering *o, bool one_row, ck_bound_select *out) {
    if (!s->distinct) return CK_OK;
    if (s->distinct_on.count)
        return ck_bind_refuse(
            b, s->distinct_on.first->pos,
            "DISTINCT ON is not supported; ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1 keeps "
            "one row a group");
    for (uint32_t i = 0; i < o->count; i++)
        if (o->exprs[i]) return ck_bind_fail(b, o->pos[i], "with DISTINCT, ORDER BY takes columns of the SELECT list");
    return one_row ? CK_OK : ck_bind_select_distinct(b, out->node, s->pos, &out->node);
}

/* Under GROUPING SETS a key is NULL in the rows of sets without it, whatever its column says. */
static ck_status all_nullable(ck_binder *b, ck_scope *scope) {
    uint32_t n = scope->node->schema->field_count;
    ck_expr **exprs = CK_BIND_ARRAY(b, n, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        exprs[i] = ck_expr_column(b->plan.arena, i, scope->node->schema->fields[i].type, true);
        if (!exprs[i]) return ck_bind_nomem(b);
    }
    return ck_plan_project(&b->plan, scope->node, exprs, NULL, n, &scope->node);
}

/* What a subquery that is tied to the query around it cannot have. */
static ck_status check_tied(ck_binder *b, const ck_ast_select *s, const ck_ast_orders *orders, const ck_grouping *g,
                            const clauses *c, bool one_group, const ck_outer *outer) {
    if (orders->count)
        return ck_bind_refuse(b, orders->first->pos,
                              "ORDER BY in a subquery that is tied to the query around it is not supported; EXISTS "
                              "needs none, and MIN or MAX gives one value");
    if (c->windows.count)
        return ck_bind_refuse(b, c->windows.at[0].pos,
                              "OVER in a subquery that is tied to the query around it is not "
                              "supported");
    if (!outer->scalar && one_group)
        return ck_bind_refuse(b, s->pos,
                              "an aggregate without GROUP BY gives a row even of nothing; compare it as a value: "
                              "x = (SELECT ...)");
    if (one_group && c->laters.count)
        return ck_bind_refuse(b, c->laters.at[0].pos,
                              "a subquery inside an aggregation that is tied to the query around it is not supported; "
                              "write the two beside each other");
    if (outer->residual_count && (g->calls.count || s->grouped || s->having))
        return ck_bind_refuse(b, s->where->pos,
                              "a subquery with groups may be tied to the query around it by equalities "
                              "only: inner.x = outer.y");
    return CK_OK;
}

ck_status ck_bind_select(ck_binder *b, const ck_ast_select *s, const ck_ast_orders *orders, ck_bound_select *out) {
    ck_scope scope = {0};
    ck_grouping g = {0};
    clauses c = {0};
    ck_plan_node *node;
    ck_outer *outer = b->outer;
    b->outer = NULL;
    ck_ttl_hints *hints = CK_BIND_ARRAY(b, 1, ck_ttl_hints);
    if (!hints) return CK_NOMEM;
    CK_TRY(ck_bind_hints_begin(b, s->hints, hints));
    CK_TRY(ck_bind_from(b, s->from, &scope));
    CK_TRY(ck_bind_hints_end(b, hints));
    CK_TRY(where(b, s, &scope, outer));
    if (s->from) CK_TRY(ck_bind_check_joins(b, scope.node, s->from->pos));
    CK_TRY(ck_bind_group_window(b, s, &scope));
    if (ck_bind_has_grouping_sets(s)) CK_TRY(all_nullable(b, &scope));
    bool tied = outer && outer->pair_count + outer->residual_count > 0;
    ck_bind_place place = {.scope = &scope,
                           .clause = "SELECT",
                           .calls = &g.calls,
                           .shut = outer,
                           .queries = true,
                           .laters = &c.laters,
                           .windows = &c.windows,
                           .named = s->windows};
    CK_TRY(bind_list(b, s, &place, &c.l));
    if (s->having) {
        ck_bind_place having = place;
        having.clause = "HAVING", having.windows = NULL, having.aliases = &s->items;
        CK_TRY(ck_bind_conjuncts(b, &having, s->having, &c.having, &c.having_count));
    }
    CK_TRY(bind_order(b, &place, &c.l, orders, &c.o));
    bool one_group = is_one_group(s, &g), as_value = tied && outer->scalar && one_group;
    if (tied) CK_TRY(check_tied(b, s, orders, &g, &c, one_group, outer));
    CK_TRY(over_node(b, s, &scope, &g, &c, tied ? outer : NULL, as_value, &node));
    if (outer) outer->visible = c.l.count;
    if (as_value) {
        ck_expr *value = c.l.exprs[0];
        if (s->having) CK_TRY(ck_bind_where_having(b, c.having, c.having_count, s->having->pos, &value));
        return ck_bind_groups_as_value(b, &scope, &g, value, node, outer, out);
    }
    CK_TRY(project(b, &scope, &g, node, &c.l, &c.o, tied ? outer : NULL, out));
    return distinct(b, s, &c.o, one_group, out);
}
