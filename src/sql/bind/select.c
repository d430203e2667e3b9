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
    ck_sort_item *items;
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
    ck_sort_item *item = &out->items[out->count];
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
    out->items = CK_BIND_ARRAY(b, orders->count, ck_sort_item);
    out->exprs = CK_BIND_ARRAY(b, orders->count, ck_expr *);
    out->pos = CK_BIND_ARRAY(b, orders->count, ck_pos);
    if (!out->items || !out->exprs || !out->pos) return CK_NOMEM;
    for (const ck_ast_order *o = orders->first; o; o = o->next) CK_TRY(order_item(b, &place, l, o, out));
    return CK_OK;
}

/* ---- the clauses in order ---- */

static ck_status where(ck_binder *b, const ck_ast_select *s, ck_scope *scope) {
    ck_bind_place place = {.scope = scope, .clause = "WHERE", .aliases = &s->items};
    ck_expr **conjuncts;
    uint32_t count;
    if (!s->where) return CK_OK;
    CK_TRY(ck_bind_conjuncts(b, &place, s->where, &conjuncts, &count));
    return ck_plan_filter(&b->plan, scope->node, conjuncts, count, &scope->node);
}

static ck_status having(ck_binder *b, const ck_ast_select *s, const ck_scope *scope, const ck_grouping *g,
                        ck_expr **conjuncts, uint32_t count, ck_plan_node **node) {
    if (!s->having) return CK_OK;
    for (uint32_t i = 0; i < count; i++)
        CK_TRY(ck_bind_over_groups(b, g, scope, conjuncts[i], s->having->pos, &conjuncts[i]));
    return ck_plan_filter(&b->plan, *node, conjuncts, count, node);
}

/* Everything above FROM and WHERE becomes an expression over the groups. */
static ck_status lift_over_groups(ck_binder *b, const ck_scope *scope, const ck_grouping *g, list *l, ordering *o) {
    for (uint32_t i = 0; i < l->count; i++)
        CK_TRY(ck_bind_over_groups(b, g, scope, l->exprs[i], l->pos[i], &l->exprs[i]));
    for (uint32_t i = 0; i < o->count; i++)
        if (o->exprs[i]) CK_TRY(ck_bind_over_groups(b, g, scope, o->exprs[i], o->pos[i], &o->exprs[i]));
    return CK_OK;
}

static ck_status no_volatile_over_changes(ck_binder *b, const ck_plan_node *input, const list *l) {
    for (uint32_t i = 0; input->mode == CK_MODE_RETRACT && i < l->count; i++)
        if (ck_expr_is_volatile(l->exprs[i]))
            return ck_bind_refuse(b, l->pos[i],
                                  "this is another value each time it is computed, and a row that changes takes back "
                                  "what it said; compute it over the source, before the rows change");
    return CK_OK;
}

static ck_status project(ck_binder *b, ck_plan_node *input, const list *l, ordering *o, ck_bound_select *out) {
    ck_expr **exprs = CK_BIND_ARRAY(b, l->count + o->count, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, l->count + o->count, const char *);
    uint32_t n = l->count;
    if (!exprs || !names) return CK_NOMEM;
    CK_TRY(no_volatile_over_changes(b, input, l));
    for (uint32_t i = 0; i < n; i++) exprs[i] = l->exprs[i], names[i] = l->names[i];
    for (uint32_t i = 0; i < o->count; i++) {
        if (!o->exprs[i]) continue;
        o->items[i].column = n;
        exprs[n] = o->exprs[i], names[n++] = "";
    }
    out->visible = l->count, out->order = o->items, out->order_count = o->count;
    return ck_plan_project(&b->plan, input, exprs, names, n, &out->node);
}

static ck_status distinct(ck_binder *b, const ck_ast_select *s, const ordering *o, ck_bound_select *out) {
    if (!s->distinct) return CK_OK;
    if (s->distinct_on.count)
        return ck_bind_refuse(
            b, s->distinct_on.first->pos,
            "DISTINCT ON is not supported; ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1 keeps "
            "one row a group");
    for (uint32_t i = 0; i < o->count; i++)
        if (o->exprs[i]) return ck_bind_fail(b, o->pos[i], "with DISTINCT, ORDER BY takes columns of the SELECT list");
    return ck_bind_distinct(b, out->node, &out->node);
}

static ck_status hints(ck_binder *b, const ck_ast_hint *h) {
    if (!h) return CK_OK;
    return ck_bind_refuse(b, h->name.pos, "hint %.*s is not supported", ck_cut(h->name.text), h->name.text.p);
}

ck_status ck_bind_select(ck_binder *b, const ck_ast_select *s, const ck_ast_orders *orders, ck_bound_select *out) {
    ck_scope scope = {0};
    ck_grouping g = {0};
    list l = {0};
    ordering o = {0};
    ck_expr **conjuncts = NULL;
    uint32_t conjunct_count = 0;
    CK_TRY(hints(b, s->hints));
    if (s->windows) return ck_bind_refuse(b, s->windows->pos, "OVER windows are not supported yet");
    CK_TRY(ck_bind_from(b, s->from, &scope));
    CK_TRY(where(b, s, &scope));
    ck_bind_place place = {.scope = &scope, .clause = "SELECT", .calls = &g.calls};
    CK_TRY(bind_list(b, s, &place, &l));
    if (s->having) {
        ck_bind_place having_place = {.scope = &scope, .clause = "HAVING", .calls = &g.calls, .aliases = &s->items};
        CK_TRY(ck_bind_conjuncts(b, &having_place, s->having, &conjuncts, &conjunct_count));
    }
    CK_TRY(bind_order(b, &place, &l, orders, &o));
    ck_plan_node *node = scope.node;
    if (s->grouped || s->having || g.calls.count) {
        CK_TRY(ck_bind_group_keys(b, s, &scope, l.exprs, l.aliases, l.count, &g));
        CK_TRY(ck_bind_group_node(b, &scope, &g));
        node = g.node;
        CK_TRY(having(b, s, &scope, &g, conjuncts, conjunct_count, &node));
        CK_TRY(lift_over_groups(b, &scope, &g, &l, &o));
    }
    CK_TRY(project(b, node, &l, &o, out));
    return distinct(b, s, &o, out);
}
