/* CREATE TABLE: columns, computed columns, the key, where the rows are. */
#include "sql/bind/create_int.h"

static ck_status name_of(ck_binder *b, const ck_ast_names *name, const ck_ast_ident **out) {
    if (name->count > 1)
        return ck_bind_refuse(b, name->first->ident.pos,
                              "there are no catalogs or databases: a table is named alone, \"%.*s\"",
                              ck_cut(name->last->ident.text), name->last->ident.text.p);
    *out = &name->first->ident;
    return CK_OK;
}

ck_status ck_bind_free_name(ck_binder *b, const ck_ast_names *name, bool if_not_exists, ck_entry_kind kind, bool *skip,
                            ck_catalog_entry **replaced) {
    const ck_ast_ident *id = NULL;
    *skip = false;
    if (replaced) *replaced = NULL;
    CK_TRY(name_of(b, name, &id));
    ck_catalog_entry *e = kind == CK_ENTRY_FUNCTION ? ck_catalog_find_function(b->catalog, id->text, id->quoted)
                                                    : ck_catalog_find(b->catalog, id->text, id->quoted);
    static const char *const kinds[][2] = {{"table", "TABLE"}, {"view", "VIEW"}, {"function", "FUNCTION"}};
    if (!e) return CK_OK;
    if (if_not_exists && e->kind == kind) {
        *skip = true;
        return CK_OK;
    }
    if (replaced && e->kind == kind) {
        ck_catalog_drop(b->catalog, e);
        *replaced = e;
        return CK_OK;
    }
    return ck_bind_fail(b, id->pos, "%s \"%s\" exists already; DROP %s \"%s\" removes it", kinds[e->kind][0], e->name,
                        kinds[e->kind][1], e->name);
}

/* ---- what is refused before anything is made ---- */

static ck_status refuse_unsupported(ck_binder *b, const ck_ast_create_table *t, ck_pos pos) {
    if (t->partitioned_pos.line) return ck_bind_refuse(b, t->partitioned_pos, "PARTITIONED BY is not supported");
    if (t->columns && t->query)
        return ck_bind_refuse(b, t->columns->name.pos,
                              "CREATE TABLE ... AS takes its columns from the query; name them there with AS, and give "
                              "them types with CAST");
    if (!t->columns && !t->query) return ck_bind_fail(b, pos, "a table has columns: CREATE TABLE t (a BIGINT, ...)");
    return CK_OK;
}

/* ---- columns ---- */

static ck_status add_column(ck_binder *b, ck_catalog_entry *e, const ck_ast_column *c, ck_table_column *columns,
                            uint32_t n) {
    ck_table_column *out = &columns[n];
    out->name = ck_arena_strndup(&e->arena, c->name.text.p, c->name.text.n);
    if (c->comment.p) out->comment = ck_arena_strndup(&e->arena, c->comment.p, c->comment.n);
    if (c->renamed_from.text.n)
        out->renamed_from = ck_arena_strndup(&e->arena, c->renamed_from.text.p, c->renamed_from.text.n);
    if (!out->name || (c->comment.p && !out->comment) || (c->renamed_from.text.n && !out->renamed_from))
        return ck_bind_nomem(b);
    for (uint32_t k = 0; k < n; k++)
        if (ck_view_eq_nocase(ck_view_of(columns[k].name), c->name.text))
            return ck_bind_fail(b, c->name.pos, "column \"%s\" stands twice", out->name);
    out->physical = -1;
    if (c->computed) return CK_OK; /* when all physical ones are known */
    if (c->not_null && c->null) return ck_bind_fail(b, c->name.pos, "column \"%s\" is NULL and NOT NULL", out->name);
    CK_TRY(ck_bind_type(b, c->type, &e->arena, &out->type));
    out->nullable = !c->not_null;
    return CK_OK;
}

static ck_status physical_schema(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t,
                                 ck_table_column *columns, uint32_t count) {
    ck_schema *schema = CK_ARENA_NEW(&e->arena, ck_schema);
    ck_field *fields = ck_arena_array(&e->arena, count, sizeof *fields);
    uint32_t n = 0, i = 0;
    if (!schema || !fields) return ck_bind_nomem(b);
    for (const ck_ast_column *c = t->columns; c; c = c->next, i++) {
        if (c->computed) continue;
        fields[n] = (ck_field){columns[i].name, columns[i].type, columns[i].nullable};
        columns[i].physical = (int32_t)n++;
    }
    if (n == 0) return ck_bind_fail(b, t->columns->name.pos, "a table has at least one column that is not computed");
    *schema = (ck_schema){fields, n};
    e->table.decl.schema = schema;
    return CK_OK;
}

/* Bound over the physical columns in the entry's own arena, since it outlives the compilation. */
static ck_status computed_columns(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t,
                                  ck_table_column *columns) {
    ck_arena *script = b->plan.arena;
    ck_status s = CK_OK;
    uint32_t i = 0;
    ck_plan_node row = {.schema = e->table.decl.schema};
    ck_scope scope;
    b->plan.arena = &e->arena;
    s = ck_scope_of_node(b, &row, ck_view_of(e->name), &scope);
    ck_bind_place place = {.scope = &scope, .clause = "a computed column", .queries = true};
    for (const ck_ast_column *c = t->columns; s == CK_OK && c; c = c->next, i++) {
        if (!c->computed) continue;
        ck_view text = ck_source_slice(b->source, c->computed->pos);
        s = ck_bind_expr(b, &place, c->computed, &columns[i].computed);
        if (s == CK_OK && scope.node != &row)
            s = ck_bind_refuse(b, c->computed->pos, "a computed column is made of its own row; a view can join tables");
        if (s != CK_OK) break;
        columns[i].type = columns[i].computed->type;
        columns[i].nullable = columns[i].computed->nullable;
        columns[i].computed_text = ck_arena_strndup(&e->arena, text.p, text.n);
        if (!columns[i].computed_text) s = ck_bind_nomem(b);
        if (s == CK_OK && columns[i].type->kind == CK_TYPE_NULL)
            s = ck_bind_fail(b, c->computed->pos, "this NULL has no type; write CAST(NULL AS ...)");
    }
    b->plan.arena = script;
    return s;
}

/* Names that state knows columns by are names of their own: one column's alone. */
static ck_status check_renames(ck_binder *b, const ck_ast_create_table *t) {
    for (const ck_ast_column *c = t->columns; c; c = c->next) {
        ck_view was = c->renamed_from.text;
        for (const ck_ast_column *o = was.n ? t->columns : NULL; o; o = o->next) {
            ck_view name = o->renamed_from.text.n ? o->renamed_from.text : o->name.text;
            if (o == c || !ck_view_eq_nocase(name, was)) continue;
            return ck_bind_fail(
                b, c->renamed_from.pos, "column \"%.*s\" cannot be renamed from \"%.*s\": that is column \"%.*s\"",
                ck_cut(c->name.text), c->name.text.p, ck_cut(was), was.p, ck_cut(o->name.text), o->name.text.p);
        }
    }
    return CK_OK;
}

/* ---- the key ---- */

static ck_status not_enforced(ck_binder *b, ck_pos at, bool enforced) {
    if (!enforced) return CK_OK;
    return ck_bind_refuse(b, at, "a key of a stream is declared, not checked: write PRIMARY KEY ... NOT ENFORCED");
}

static ck_status key_column(ck_binder *b, const ck_table_column *columns, uint32_t count, const ck_ast_ident *name,
                            uint32_t *out) {
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    for (uint32_t i = 0; i < count; i++) {
        ck_suggest_offer(&near, ck_view_of(columns[i].name));
        if (!ck_view_eq_nocase(ck_view_of(columns[i].name), name->text)) continue;
        if (columns[i].physical < 0)
            return ck_bind_refuse(b, name->pos, "column \"%s\" is computed and cannot be in the PRIMARY KEY",
                                  columns[i].name);
        *out = (uint32_t)columns[i].physical;
        return CK_OK;
    }
    return ck_bind_fail(b, name->pos, "PRIMARY KEY: there is no column \"%.*s\"%s", ck_cut(name->text), name->text.p,
                        ck_bind_near(b, &near));
}

static ck_status add_key(ck_binder *b, ck_catalog_entry *e, const ck_table_column *columns, uint32_t count,
                         const ck_ast_names *names, ck_pos at) {
    if (e->table.decl.primary_key_count)
        return ck_bind_fail(b, at, "a table has one PRIMARY KEY, and this is the second");
    uint32_t *key = ck_arena_array(&e->arena, names->count, sizeof *key), n = 0;
    if (!key) return ck_bind_nomem(b);
    for (const ck_ast_name *k = names->first; k; k = k->next, n++) {
        CK_TRY(key_column(b, columns, count, &k->ident, &key[n]));
        for (uint32_t i = 0; i < n; i++)
            if (key[i] == key[n])
                return ck_bind_fail(b, k->ident.pos, "column \"%.*s\" stands twice in the PRIMARY KEY",
                                    ck_cut(k->ident.text), k->ident.text.p);
    }
    e->table.decl.primary_key = key, e->table.decl.primary_key_count = n;
    return CK_OK;
}

ck_status ck_bind_table_key(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t, ck_table_column *columns,
                            uint32_t count) {
    for (const ck_ast_column *c = t->columns; c; c = c->next) {
        if (!c->primary_key) continue;
        ck_ast_name one = {.ident = c->name};
        ck_ast_names names = {&one, &one, 1};
        CK_TRY(not_enforced(b, c->primary_pos, c->enforced));
        CK_TRY(add_key(b, e, columns, count, &names, c->primary_pos));
    }
    for (const ck_ast_key *k = t->keys; k; k = k->next) {
        CK_TRY(not_enforced(b, k->pos, k->enforced));
        CK_TRY(add_key(b, e, columns, count, &k->columns, k->pos));
    }
    ck_field *fields = (ck_field *)(uintptr_t)e->table.decl.schema->fields; /* still ours alone */
    for (uint32_t i = 0; i < e->table.decl.primary_key_count; i++)
        fields[e->table.decl.primary_key[i]].nullable = false;
    for (uint32_t i = 0; i < count; i++)
        if (columns[i].physical >= 0) columns[i].nullable = fields[columns[i].physical].nullable;
    return CK_OK;
}

/* ---- the whole ---- */

static ck_status fill(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t, ck_pos pos) {
    uint32_t count = 0, n = 0;
    for (const ck_ast_column *c = t->columns; c; c = c->next) count++;
    if (count > CK_SQL_COLUMNS_MAX)
        return ck_bind_fail(b, pos, "%u columns are too many; at most %d are allowed", count, CK_SQL_COLUMNS_MAX);
    ck_table_column *columns = ck_arena_array(&e->arena, count, sizeof *columns);
    ck_view sql = ck_source_slice(b->source, pos);
    e->sql = ck_arena_strndup(&e->arena, sql.p, sql.n);
    if (!columns || !e->sql) return ck_bind_nomem(b);
    for (const ck_ast_column *c = t->columns; c; c = c->next, n++) CK_TRY(add_column(b, e, c, columns, n));
    CK_TRY(check_renames(b, t));
    CK_TRY(physical_schema(b, e, t, columns, count));
    CK_TRY(ck_bind_table_key(b, e, t, columns, count));
    CK_TRY(computed_columns(b, e, t, columns));
    e->table.columns = columns, e->table.column_count = count;
    e->table.decl.name = e->name;
    e->temporary = t->temporary;
    e->table.comment = ck_arena_strndup(&e->arena, t->comment.p ? t->comment.p : "", t->comment.n);
    if (!e->table.comment) return ck_bind_nomem(b);
    CK_TRY(ck_bind_options(b, &t->options, e, t->name.first->ident.pos, pos));
    CK_TRY(ck_bind_metadata(b, e, t));
    CK_TRY(ck_bind_state_ttl(b, e, t));
    CK_TRY(ck_bind_event_time(b, e, t));
    return ck_bind_check_options(b, &t->options, e, t->name.first->ident.pos);
}

ck_status ck_bind_create_table(ck_binder *b, const ck_ast_create_table *t, ck_pos pos, ck_output *rows) {
    ck_catalog_entry *e;
    bool skip;
    *rows = (ck_output){0};
    CK_TRY(refuse_unsupported(b, t, pos));
    if (t->or_replace)
        return ck_bind_refuse(b, pos, "OR REPLACE is for views; DROP TABLE IF EXISTS comes before CREATE TABLE");
    CK_TRY(ck_bind_free_name(b, &t->name, t->if_not_exists, CK_ENTRY_TABLE, &skip, NULL));
    if (skip) return CK_OK;
    CK_TRY(ck_catalog_entry_new(b->catalog, CK_ENTRY_TABLE, t->name.first->ident.text, &e, b->err));
    ck_status s = t->query ? ck_bind_create_as(b, e, t, pos, rows) : fill(b, e, t, pos);
    if (s == CK_OK) {
        ck_catalog_add(b->catalog, e);
    } else {
        ck_catalog_entry_discard(b->catalog, &e);
    }
    return s;
}
