/* GROUP BY: the keys, the node, and the clauses above it in terms of its output. */
#include "sql/bind/bind_int.h"

/* ---- keys ---- */

typedef struct select_list {
    ck_expr *const *items;
    const ck_ast_ident *aliases;
    uint32_t count;
} select_list;

static ck_status from_item(ck_binder *b, const select_list *l, uint32_t i, const ck_ast_expr *e, ck_expr **out) {
    if (ck_bind_has_aggregate(l->items[i]))
        return ck_bind_fail(b, e->pos, "GROUP BY cannot group by column %u of the SELECT list: it is an aggregate",
                            i + 1);
    *out = l->items[i];
    return CK_OK;
}

/* As PostgreSQL: a number is a column of the SELECT list; a name is a column of FROM, else an alias. */
static ck_status key_of(ck_binder *b, ck_scope *scope, const select_list *l, const ck_ast_expr *e, ck_expr **out) {
    ck_bind_place place = {.scope = scope, .clause = "GROUP BY"};
    if (e->kind == CK_AST_INTEGER) {
        uint64_t n;
        CK_TRY(ck_bind_count(b, "GROUP BY", e, &n));
        if (n < 1 || n > l->count)
            return ck_bind_fail(b, e->pos, "GROUP BY %llu: the SELECT list has %u columns", (unsigned long long)n,
                                l->count);
        return from_item(b, l, (uint32_t)n - 1, e, out);
    }
    if (e->kind == CK_AST_NAME) {
        bool twice = false;
        uint32_t c = ck_scope_find(scope, e->name, e->quoted, &twice);
        for (uint32_t i = 0; c == CK_NO_COLUMN && i < l->count; i++)
            if (l->aliases[i].text.n && (ck_view_eq(l->aliases[i].text, e->name) ||
                                         (!e->quoted && ck_view_eq_nocase(l->aliases[i].text, e->name))))
                return from_item(b, l, i, e, out);
    }
    if (e->kind == CK_AST_GROUPING_SETS)
        return ck_bind_refuse(b, e->sign, "GROUPING SETS are not supported yet; UNION ALL one GROUP BY for each set");
    if (e->kind == CK_AST_CALL &&
        (ck_view_eq_nocase(e->name, CK_VIEW("rollup")) || ck_view_eq_nocase(e->name, CK_VIEW("cube"))))
        return ck_bind_refuse(b, e->sign, "%.*s is not supported yet; UNION ALL one GROUP BY for each set",
                              ck_cut(e->name), e->name.p);
    return ck_bind_expr(b, &place, e, out);
}

static ck_status groupable(ck_binder *b, const ck_expr *e, ck_pos at) {
    if (e->type->kind == CK_TYPE_NULL)
        return ck_bind_fail(b, at, "GROUP BY takes a typed value; write CAST(NULL AS ...)");
    if (ck_expr_is_volatile(e))
        return ck_bind_refuse(b, at,
                              "GROUP BY cannot group by a value that is another one each time it is computed; "
                              "compute it in a subquery over the source");
    return CK_OK;
}

static ck_status add_key(ck_binder *b, ck_grouping *g, ck_expr *key, ck_pos at) {
    CK_TRY(groupable(b, key, at));
    for (uint32_t i = 0; i < g->key_count; i++)
        if (ck_expr_equal(g->keys[i], key)) return CK_OK;
    g->key_pos[g->key_count] = at;
    g->keys[g->key_count++] = key;
    return CK_OK;
}

ck_status ck_bind_group_keys(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_expr *const *items,
                             const ck_ast_ident *aliases, uint32_t item_count, const ck_outer *o, ck_grouping *g) {
    select_list l = {items, aliases, item_count};
    uint32_t room = 0;
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next)
        room += e->kind == CK_AST_ROW && !e->flag ? e->args.count : 1;
    if (o) room += o->pair_count;
    g->keys = CK_BIND_ARRAY(b, room, ck_expr *);
    g->key_pos = CK_BIND_ARRAY(b, room, ck_pos);
    if (!g->keys || !g->key_pos) return CK_NOMEM;
    for (uint32_t i = 0; o && i < o->pair_count; i++) CK_TRY(add_key(b, g, o->inner_exprs[i], s->pos));
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next) {
        bool row = e->kind == CK_AST_ROW && !e->flag; /* (a, b): both; (): none */
        for (const ck_ast_expr *k = row ? e->args.first : e; k; k = row ? k->next : NULL) {
            ck_expr *key;
            CK_TRY(key_of(b, scope, &l, k, &key));
            CK_TRY(add_key(b, g, key, k->pos));
        }
    }
    return CK_OK;
}

/* ---- the node ---- */

/* Columns of the projection below the aggregate, equal expressions once. */
typedef struct below {
    ck_expr **exprs;
    uint32_t count;
} below;

static uint32_t place_of(below *l, ck_expr *e) {
    if (!e) return CK_NO_COLUMN;
    for (uint32_t i = 0; i < l->count; i++)
        if (ck_expr_equal(l->exprs[i], e)) return i;
    l->exprs[l->count] = e;
    return l->count++;
}

static ck_status text_of(ck_binder *b, const ck_scope *scope, ck_expr *const *exprs, uint32_t count, const char **out) {
    ck_bytes text;
    ck_bytes_init(&text, b->plan.arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        if (i) s = ck_bytes_char(&text, ',');
        if (s == CK_OK) s = ck_expr_print(exprs[i], scope->canonical, &text);
    }
    *out = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return *out ? CK_OK : ck_bind_nomem(b);
}

/* Names of the key columns, as they show in state: the column's, else the canonical text. */
static ck_status names_below(ck_binder *b, const ck_scope *scope, const below *l, const char ***out) {
    const char **names = CK_BIND_ARRAY(b, l->count, const char *);
    if (!names) return CK_NOMEM;
    for (uint32_t i = 0; i < l->count; i++) CK_TRY(text_of(b, scope, &l->exprs[i], 1, &names[i]));
    *out = names;
    return CK_OK;
}

static ck_status calls_of(ck_binder *b, const ck_scope *scope, const ck_grouping *g, below *l, ck_plan_aggregate *calls,
                          const char **names) {
    for (uint32_t i = 0; i < g->calls.count; i++) {
        const ck_bound_call *c = &g->calls.at[i];
        calls[i] = (ck_plan_aggregate){.fn = c->fn,
                                       .arg = place_of(l, c->arg),
                                       .filter = place_of(l, c->filter),
                                       .distinct = c->distinct,
                                       .type = c->type,
                                       .nullable = c->nullable};
        if (c->arg) CK_TRY(text_of(b, scope, &c->arg, 1, &calls[i].arg_text));
        if (c->filter) CK_TRY(text_of(b, scope, &c->filter, 1, &calls[i].filter_text));
        names[i] = c->name;
    }
    return CK_OK;
}

ck_status ck_bind_group_node(ck_binder *b, ck_scope *scope, ck_grouping *g) {
    uint32_t n = g->calls.count;
    below l = {CK_BIND_ARRAY(b, g->key_count + 2 * n, ck_expr *), 0};
    ck_plan_aggregate *calls = CK_BIND_ARRAY(b, n, ck_plan_aggregate);
    const char **names = CK_BIND_ARRAY(b, n, const char *), **inner_names, *key_text;
    uint32_t *keys = CK_BIND_ARRAY(b, g->key_count, uint32_t);
    ck_plan_node *projected;
    if (!l.exprs || !calls || !names || !keys) return CK_NOMEM;
    for (uint32_t i = 0; i < g->key_count; i++) keys[i] = place_of(&l, g->keys[i]);
    CK_TRY(calls_of(b, scope, g, &l, calls, names));
    CK_TRY(names_below(b, scope, &l, &inner_names));
    CK_TRY(text_of(b, scope, g->keys, g->key_count, &key_text));
    CK_TRY(ck_plan_project(&b->plan, scope->node, l.exprs, inner_names, l.count, &projected));
    return ck_plan_aggregate_node(&b->plan, projected, (ck_columns){keys, g->key_count}, calls, n, key_text, names,
                                  &g->node);
}

/* ---- above it ---- */

typedef struct lift {
    ck_binder *b;
    const ck_grouping *g;
    const ck_scope *scope;
    ck_pos at;
    ck_status status;
} lift;

static bool is_aggregate_column(const ck_expr *e) {
    return e->kind == CK_EXPR_COLUMN && (e->column & CK_BIND_AGGREGATE);
}

bool ck_bind_has_aggregate(const ck_expr *e) {
    if (is_aggregate_column(e)) return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (ck_bind_has_aggregate(e->args[i])) return true;
    return false;
}

static ck_expr *replace(void *arg, const ck_expr *e) {
    lift *l = (lift *)arg;
    uint32_t column = CK_NO_COLUMN;
    if (l->status != CK_OK) return NULL;
    if (ck_bind_is_placeholder(e, CK_BIND_WINDOW | CK_BIND_SUBQUERY)) return (ck_expr *)(uintptr_t)e; /* handed on as it is */
    if (is_aggregate_column(e)) column = l->g->key_count + (e->column & ~CK_BIND_AGGREGATE);
    for (uint32_t i = 0; column == CK_NO_COLUMN && i < l->g->key_count; i++)
        if (ck_expr_equal(l->g->keys[i], e)) column = i;
    if (column == CK_NO_COLUMN) {
        if (e->kind == CK_EXPR_COLUMN)
            l->status =
                ck_bind_fail(l->b, l->at, "column \"%s\" must stand in GROUP BY or inside an aggregate such as MAX(%s)",
                             l->scope->canonical[e->column], l->scope->canonical[e->column]);
        return NULL;
    }
    ck_expr *out = ck_plan_column(&l->b->plan, l->g->node, column);
    if (out) {
        out->line = e->line, out->col = e->col;
    } else {
        l->status = CK_NOMEM;
    }
    return out;
}

ck_status ck_bind_over_groups(ck_binder *b, const ck_grouping *g, const ck_scope *scope, ck_expr *e, ck_pos at,
                              ck_expr **out) {
    lift l = {b, g, scope, at, CK_OK};
    *out = ck_expr_rewrite(b->plan.arena, e, replace, &l);
    if (l.status != CK_OK) return l.status;
    return *out ? CK_OK : ck_bind_nomem(b);
}
