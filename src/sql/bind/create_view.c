/* CREATE VIEW: the query is bound once to see that it can be, and kept as text. */
#include "sql/bind/create_int.h"

static ck_status fill(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_view *v, ck_pos pos) {
    ck_plan_node *n;
    ck_view sql = ck_source_slice(b->source, pos), query = ck_source_slice(b->source, v->query->pos);
    const char *text = ck_arena_strndup(&e->arena, query.p, query.n);
    char *name = ck_arena_printf(&e->arena, "view %s", e->name);
    e->sql = ck_arena_strndup(&e->arena, sql.p, sql.n);
    if (!text || !name || !e->sql) return ck_bind_nomem(b);
    e->view.query = (ck_source_text){.name = name, .text = {text, query.n}};
    e->temporary = v->temporary;
    uint32_t nodes = b->plan.node_count, depth = b->view_depth, with = b->with_depth;
    struct ck_bound_view *views = b->views;
    ck_status s = ck_bind_query(b, v->query, false, &n);
    if (s == CK_OK) s = ck_bind_rename_to(b, n, &v->columns, "the query", &n);
    b->plan.node_count = nodes; /* what was bound for the check is not the job's */
    b->views = views, b->view_depth = depth, b->with_depth = with;
    CK_TRY(s);
    if (!v->columns.count) return CK_OK;
    const char **columns = ck_arena_array(&e->arena, n->schema->field_count, sizeof *columns);
    if (!columns) return ck_bind_nomem(b);
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (!(columns[i] = ck_arena_strdup(&e->arena, n->schema->fields[i].name))) return ck_bind_nomem(b);
    e->view.columns = columns, e->view.column_count = n->schema->field_count;
    return CK_OK;
}

ck_status ck_bind_create_view(ck_binder *b, const ck_ast_create_view *v, ck_pos pos) {
    ck_catalog_entry *e = NULL, *replaced;
    bool skip;
    CK_TRY(ck_bind_free_name(b, &v->name, v->if_not_exists, CK_ENTRY_VIEW, &skip, v->or_replace ? &replaced : NULL));
    if (skip) return CK_OK;
    b->defining = v->name.first->ident.text;
    ck_status s = ck_catalog_entry_new(b->catalog, CK_ENTRY_VIEW, b->defining, &e, b->err);
    if (s == CK_OK) s = fill(b, e, v, pos);
    b->defining = (ck_view){0};
    if (s == CK_OK) {
        ck_catalog_add(b->catalog, e);
    } else {
        ck_catalog_entry_discard(b->catalog, &e);
        if (v->or_replace && replaced) ck_catalog_undrop(b->catalog, replaced);
    }
    return s;
}

ck_status ck_bind_no_own_function(ck_binder *b, const ck_ast_ident *name) {
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    ck_catalog_offer(b->catalog, true, &near);
    return ck_bind_fail(b, name->pos, "CREATE FUNCTION has made no \"%.*s\"%s", ck_cut(name->text), name->text.p,
                        ck_bind_near(b, &near));
}

ck_status ck_bind_drop(ck_binder *b, const ck_ast_statement *s) {
    static const char *const words[] = {"TABLE", "VIEW", "FUNCTION"};
    ck_entry_kind kind = s->drop.object == CK_OBJECT_VIEW       ? CK_ENTRY_VIEW
                         : s->drop.object == CK_OBJECT_FUNCTION ? CK_ENTRY_FUNCTION
                                                                : CK_ENTRY_TABLE;
    uint32_t count = 0;
    ck_catalog_entry **all = CK_BIND_ARRAY(b, s->drop.names.count, ck_catalog_entry *); /* all or none */
    if (!all) return CK_NOMEM;
    for (const ck_ast_name *n = s->drop.names.first; n; n = n->next) {
        ck_ast_name alone = {.ident = n->ident};
        ck_ast_names one = {&alone, &alone, 1};
        bool function = kind == CK_ENTRY_FUNCTION;
        ck_catalog_entry *e = function ? ck_catalog_find_function(b->catalog, n->ident.text, n->ident.quoted)
                                       : ck_catalog_find(b->catalog, n->ident.text, n->ident.quoted);
        if (!e && s->drop.if_exists) continue;
        if (!e && function) return ck_bind_no_own_function(b, &n->ident);
        if (!e) CK_TRY(ck_bind_find_entry(b, &one, n->ident.pos, &e));
        if (e->kind != kind)
            return ck_bind_fail(b, n->ident.pos, "\"%s\" is a %s; DROP %s removes it", e->name,
                                e->kind == CK_ENTRY_VIEW ? "view" : "table", words[e->kind == CK_ENTRY_VIEW]);
        for (uint32_t i = 0; i < count; i++)
            if (all[i] == e) return ck_bind_fail(b, n->ident.pos, "\"%s\" is named twice", e->name);
        all[count++] = e;
    }
    for (uint32_t i = 0; i < count; i++) ck_catalog_drop(b->catalog, all[i]);
    return CK_OK;
}
