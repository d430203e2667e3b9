/* FROM: tables, views, WITH queries, subqueries, and how they are joined. */
#include "base/suggest.h"
#include "sql/bind/create_int.h"
#include "sql/parse/parse.h"
#include "sql/foreign.h"

/* ---- names under which columns are known ---- */

ck_status ck_bind_rename(ck_binder *b, ck_plan_node *n, const char *const *names, ck_plan_node **out) {
    uint32_t count = n->schema->field_count;
    ck_expr **exprs = CK_BIND_ARRAY(b, count, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (!(exprs[i] = ck_plan_column(&b->plan, n, i))) return CK_NOMEM;
    return ck_plan_project(&b->plan, n, exprs, names, count, out);
}

ck_status ck_bind_rename_to(ck_binder *b, ck_plan_node *n, const ck_ast_names *list, const char *what,
                            ck_plan_node **out) {
    *out = n;
    if (list->count == 0) return CK_OK;
    if (list->count > n->schema->field_count)
        return ck_bind_fail(b, list->first->ident.pos, "%s has %u columns, and %u names are given", what,
                            n->schema->field_count, list->count);
    const char **names = CK_BIND_ARRAY(b, n->schema->field_count, const char *);
    uint32_t i = 0;
    if (!names) return CK_NOMEM;
    for (const ck_ast_name *c = list->first; c; c = c->next, i++) {
        for (const ck_ast_name *d = list->first; d != c; d = d->next)
            if (ck_view_eq(d->ident.text, c->ident.text))
                return ck_bind_fail(b, c->ident.pos, "column name \"%.*s\" is given twice", ck_cut(c->ident.text),
                                    c->ident.text.p);
        names[i] = ck_arena_strndup(b->plan.arena, c->ident.text.p, c->ident.text.n);
        if (!names[i]) return ck_bind_nomem(b);
    }
    return ck_bind_rename(b, n, names, out);
}

/* ---- tables ---- */

static ck_status check_source(ck_binder *b, const ck_catalog_entry *e, ck_pos at) {
    const ck_table_def *t = &e->table;
    if (!t->connector->source_type)
        return ck_bind_refuse(b, at, "table \"%s\" cannot be read: connector '%s' only takes rows", e->name,
                              t->connector->name);
    return ck_bind_check_table(b, t, false);
}

/* The declared columns over a scan of all physical ones. */
ck_status ck_bind_scan(ck_binder *b, const ck_catalog_entry *e, ck_pos at, ck_plan_node **out) {
    const ck_table_def *t = &e->table;
    uint32_t physical = t->decl.schema->field_count;
    uint32_t *columns = CK_BIND_ARRAY(b, physical, uint32_t);
    ck_expr **exprs = CK_BIND_ARRAY(b, t->column_count, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, t->column_count, const char *);
    ck_plan_node *scan;
    CK_TRY(check_source(b, e, at));
    if (!columns || !exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < physical; i++) columns[i] = i;
    bool bounded = !t->connector->bounded || t->connector->bounded(&t->decl);
    CK_TRY(ck_plan_scan(&b->plan, e, (ck_columns){columns, physical}, bounded, &scan));
    scan->ttl_us = t->ttl_us > 0 ? t->ttl_us : t->ttl_us < 0 ? 0 : b->catalog->settings.state_ttl_us;
    for (uint32_t i = 0; i < t->column_count; i++) {
        const ck_table_column *c = &t->columns[i];
        names[i] = c->name;
        if (c->physical >= 0) {
            if (!(exprs[i] = ck_plan_column(&b->plan, scan, (uint32_t)c->physical))) return CK_NOMEM;
            continue;
        }
        exprs[i] = c->computed;
    }
    return ck_plan_project(&b->plan, scan, exprs, names, t->column_count, out);
}

/* Its query sees what was visible before it, not itself: WITH orders AS (SELECT ... FROM orders) reads the table. */
static ck_status bind_cte(ck_binder *b, ck_cte *c, ck_plan_node **out) {
    if (!c->node) {
        ck_cte *visible = b->ctes;
        if (++b->with_depth > CK_BIND_WITH_MAX)
            return ck_bind_fail(b, c->ast->name.pos, "WITH queries use each other over more than %d levels",
                                CK_BIND_WITH_MAX);
        b->ctes = c->next;
        ck_status s = ck_bind_query(b, c->ast->query, false, &c->node);
        if (s == CK_OK) s = ck_bind_rename_to(b, c->node, &c->ast->columns, "the WITH query", &c->node);
        b->ctes = visible;
        b->with_depth--;
        CK_TRY(s);
    }
    *out = c->node;
    return CK_OK;
}

static ck_status parse_view(ck_binder *b, const ck_view_def *v, const ck_ast_query **out) {
    ck_ast_script script;
    CK_TRY(ck_parse_script(&v->query, b->plan.arena, &script, b->err));
    CK_ASSERT(script.count == 1 && script.first->kind == CK_STATEMENT_QUERY); /* it was checked when it was made */
    *out = script.first->query;
    return CK_OK;
}

/* A view's query sees neither the WITH queries nor the text of who uses it. */
static ck_status view_node(ck_binder *b, const ck_catalog_entry *e, ck_plan_node **out) {
    const ck_source_text *source = b->source;
    ck_cte *ctes = b->ctes;
    const ck_ast_query *q = NULL;
    b->source = &e->view.query;
    b->ctes = NULL;
    ck_status s = parse_view(b, &e->view, &q);
    if (s == CK_OK) s = ck_bind_query(b, q, false, out);
    if (s == CK_OK && e->view.columns) s = ck_bind_rename(b, *out, e->view.columns, out);
    b->source = source;
    b->ctes = ctes;
    return s;
}

static ck_status bind_view(ck_binder *b, const ck_catalog_entry *e, ck_pos at, ck_plan_node **out) {
    ck_bound_view *v = b->views;
    while (v && (v->entry != e || v->emit_on_close != b->plan.emit_on_close)) v = v->next;
    if (v && !v->node)
        return ck_bind_refuse(b, at, "view \"%s\" is used inside itself, and recursive queries are not supported",
                              e->name);
    if (!v) {
        if (!(v = CK_BIND_ARRAY(b, 1, ck_bound_view))) return CK_NOMEM;
        *v = (ck_bound_view){e, b->plan.emit_on_close, NULL, b->views};
        b->views = v;
        if (++b->view_depth > CK_BIND_VIEWS_MAX)
            return ck_bind_fail(b, at, "views are nested deeper than %d levels", CK_BIND_VIEWS_MAX);
        CK_TRY(view_node(b, e, &v->node));
        b->view_depth--;
    }
    *out = v->node;
    return CK_OK;
}

/* ---- looking up ---- */

static ck_status qualified(ck_binder *b, const ck_ast_names *name) {
    if (name->count == 1) return CK_OK;
    return ck_bind_refuse(b, name->first->ident.pos,
                          "there are no catalogs or databases: a table is named alone, \"%.*s\"",
                          ck_cut(name->last->ident.text), name->last->ident.text.p);
}

ck_status ck_bind_find_entry(ck_binder *b, const ck_ast_names *name, ck_pos pos, ck_catalog_entry **out) {
    CK_TRY(qualified(b, name));
    const ck_ast_ident *id = &name->first->ident;
    ck_suggest near;
    if ((*out = ck_catalog_find(b->catalog, id->text, id->quoted))) return CK_OK;
    if (b->defining.n && ck_view_eq_nocase(b->defining, id->text))
        return ck_bind_refuse(b, pos, "view \"%.*s\" is used inside itself, and recursive queries are not supported",
                              ck_cut(id->text), id->text.p);
    ck_suggest_init(&near, id->text);
    ck_catalog_offer(b->catalog, false, &near);
    for (const ck_cte *c = b->ctes; c; c = c->next) ck_suggest_offer(&near, c->ast->name.text);
    return ck_bind_fail(b, pos, "unknown table \"%.*s\"%s", ck_cut(id->text), id->text.p,
                        near.best.n || b->catalog->entries ? ck_bind_near(b, &near) : "; CREATE TABLE makes one");
}

static ck_cte *find_cte(const ck_binder *b, const ck_ast_names *name) {
    const ck_ast_ident *id = &name->first->ident;
    ck_cte *near = NULL;
    for (ck_cte *c = name->count == 1 ? b->ctes : NULL; c; c = c->next) {
        if (ck_view_eq(c->ast->name.text, id->text)) return c;
        if (!near && !id->quoted && ck_view_eq_nocase(c->ast->name.text, id->text)) near = c;
    }
    return near;
}

ck_status ck_bind_table(ck_binder *b, const ck_ast_from *f, ck_plan_node **out) {
    ck_catalog_entry *e;
    ck_cte *c = find_cte(b, &f->name);
    if (f->hints)
        return ck_bind_refuse(b, f->hints->name.pos,
                              "hint %.*s is not supported; put the options into the table's WITH",
                              ck_cut(f->hints->name.text), f->hints->name.text.p);
    if (f->as_of)
        return ck_bind_refuse(
            b, f->as_of->pos,
            "FOR SYSTEM_TIME AS OF stands right of a JOIN and takes a time of its left side: FROM a JOIN "
            "t FOR SYSTEM_TIME AS OF a.ts ON a.x = t.x");
    if (c) return bind_cte(b, c, out);
    CK_TRY(ck_bind_find_entry(b, &f->name, f->name.first->ident.pos, &e));
    return e->kind == CK_ENTRY_VIEW ? bind_view(b, e, f->pos, out) : ck_bind_scan(b, e, f->name.first->ident.pos, out);
}

/* ---- one FROM item ---- */

static ck_status bind_item(ck_binder *b, const ck_ast_from *f, ck_scope *out);

static ck_view known_as(const ck_ast_from *f) {
    if (f->alias.text.n) return f->alias.text;
    return f->kind == CK_FROM_TABLE ? f->name.last->ident.text : (ck_view){0};
}

/* What stands right of a join may be made of the row on its left only in UNNEST. */
static ck_status bind_joined(ck_binder *b, const ck_ast_from *f, ck_scope *out) {
    ck_scope left, right;
    CK_TRY(bind_item(b, f->left, &left));
    if (ck_bind_is_unnest(f->right)) {
        bool outer = f->join == CK_JOIN_LEFT, plain = f->join == CK_JOIN_CROSS || f->join == CK_JOIN_INNER;
        bool on_true = !f->on || (f->on->kind == CK_AST_BOOL && f->on->flag);
        if ((!outer && !plain) || !on_true || f->natural || f->using_columns.count)
            return ck_bind_refuse(b, f->right->pos, "UNNEST is joined with CROSS JOIN, or LEFT JOIN ... ON TRUE");
        return ck_bind_unnest(b, f->right, &left, outer, out);
    }
    ck_ast_from joined = *f->right;
    if (f->join != CK_JOIN_CROSS) joined.as_of = NULL; /* the join's matter */
    CK_TRY(bind_item(b, &joined, &right));
    if (f->join == CK_JOIN_CROSS) return ck_bind_cross(b, &left, &right, f->right->pos, out);
    return ck_bind_join(b, f, &left, &right, out);
}

static ck_status no_table_function(ck_binder *b, const ck_ast_expr *call) {
    static const char *const all[] = {"TUMBLE", "HOP", "CUMULATE", "SESSION", "UNNEST"};
    const char *advice = ck_foreign_name(CK_FOREIGN_TABLE_FUNCTION, call->name);
    ck_suggest near;
    ck_suggest_init(&near, call->name);
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) ck_suggest_offer(&near, ck_view_of(all[i]));
    return ck_bind_refuse(b, call->sign, "there is no table function %.*s%s%s", ck_cut(call->name), call->name.p,
                          advice        ? "; "
                          : near.best.n ? ck_bind_near(b, &near)
                                        : "; TUMBLE, HOP, CUMULATE, SESSION and UNNEST are there",
                          advice ? advice : "");
}

static ck_status bind_item(ck_binder *b, const ck_ast_from *f, ck_scope *out) {
    ck_plan_node *n;
    if (f->kind == CK_FROM_JOIN) return bind_joined(b, f, out);
    switch (f->kind) {
    case CK_FROM_TABLE: CK_TRY(ck_bind_table(b, f, &n)); break;
    case CK_FROM_QUERY:
        if (f->lateral) return ck_bind_refuse(b, f->pos, "LATERAL is not supported yet");
        CK_TRY(ck_bind_query(b, f->query, false, &n));
        break;
    case CK_FROM_FUNCTION:
        if (ck_bind_is_unnest(f)) {
            ck_scope one_row;
            CK_TRY(ck_bind_from(b, NULL, &one_row));
            return ck_bind_unnest(b, f, &one_row, false, out);
        }
        if (ck_bind_is_window(f->call->name)) {
            CK_TRY(ck_bind_window_table(b, f, &n));
            break;
        }
        return no_table_function(b, f->call);
    default: ck_assert_failed(__FILE__, __LINE__, "every FROM item is bound");
    }
    CK_TRY(ck_bind_rename_to(b, n, &f->alias_columns, "the table", &n));
    CK_TRY(ck_bind_ttl_hint(b, known_as(f), &n));
    return ck_scope_of_node(b, n, known_as(f), out);
}

ck_status ck_bind_from(ck_binder *b, const ck_ast_from *items, ck_scope *out) {
    if (!items) { /* one row without columns */
        ck_schema *schema;
        ck_expr **no_row = CK_BIND_ARRAY(b, 0, ck_expr *);
        if (!(schema = CK_BIND_ARRAY(b, 1, ck_schema)) || !no_row) return CK_NOMEM;
        *out = (ck_scope){.no_from = true};
        return ck_plan_values(&b->plan, schema, no_row, 1, &out->node);
    }
    CK_TRY(bind_item(b, items, out));
    for (const ck_ast_from *f = items->next; f; f = f->next) {
        ck_scope left = *out, right;
        if (ck_bind_is_unnest(f)) {
            CK_TRY(ck_bind_unnest(b, f, &left, false, out));
            continue;
        }
        CK_TRY(bind_item(b, f, &right));
        CK_TRY(ck_bind_cross(b, &left, &right, f->pos, out));
    }
    return CK_OK;
}
