/* ALTER TABLE: the table as it is to be is written as a CREATE TABLE, and that is bound in its place. What goes against
 * the rules of CREATE TABLE is so refused by the same sentences. */
#include "base/suggest.h"
#include "sql/bind/create_int.h"
#include "sql/parse/parse.h"

/* The table being changed: a copy that is only printed. */
typedef struct altered {
    ck_catalog_entry entry;
    ck_table_column *columns; /* entry.table.columns */
} altered;

static ck_status begin(ck_binder *b, const ck_catalog_entry *e, uint32_t extra, altered *a) {
    a->entry = *e;
    const ck_table_def *t = &e->table;
    a->columns = CK_BIND_ARRAY(b, t->column_count + extra, ck_table_column);
    if (!a->columns) return CK_NOMEM;
    memcpy(a->columns, t->columns, t->column_count * sizeof *t->columns);
    a->entry.table.columns = a->columns;
    return CK_OK;
}

static ck_status find_column(ck_binder *b, const ck_catalog_entry *e, const ck_ast_ident *name, uint32_t *out) {
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    for (*out = 0; *out < e->table.column_count; ++*out) {
        if (ck_view_eq_nocase(ck_view_of(e->table.columns[*out].name), name->text)) return CK_OK;
        ck_suggest_offer(&near, ck_view_of(e->table.columns[*out].name));
    }
    if (near.best.n)
        return ck_bind_fail(b, name->pos, "table \"%s\" has no column \"%.*s\"; did you mean \"%.*s\"?", e->name,
                            ck_cut(name->text), name->text.p, ck_cut(near.best), near.best.p);
    return ck_bind_fail(b, name->pos, "table \"%s\" has no column \"%.*s\"", e->name, ck_cut(name->text), name->text.p);
}

static bool in_key(const ck_table_def *t, uint32_t column) {
    for (uint32_t i = 0; i < t->decl.primary_key_count; i++)
        if ((int32_t)t->decl.primary_key[i] == t->columns[column].physical) return true;
    return false;
}

/* ---- columns ---- */

static ck_status column_of(ck_binder *b, const ck_ast_column *c, ck_table_column *out) {
    ck_view text = c->computed ? ck_source_slice(b->source, c->computed->pos) : (ck_view){0};
    *out = (ck_table_column){.name = ck_arena_strndup(b->plan.arena, c->name.text.p, c->name.text.n), .physical = -1};
    if (!out->name) return ck_bind_nomem(b);
    if (c->primary_key)
        return ck_bind_refuse(b, c->primary_pos, "ALTER TABLE gives no PRIMARY KEY; DROP and CREATE the table");
    if (c->computed) {
        out->computed = CK_ARENA_NEW(b->plan.arena, ck_expr); /* that it is computed; the text is what counts */
        out->computed_text = ck_arena_strndup(b->plan.arena, text.p, text.n);
        return out->computed && out->computed_text ? CK_OK : ck_bind_nomem(b);
    }
    CK_TRY(ck_bind_type(b, c->type, b->plan.arena, &out->type));
    out->nullable = !c->not_null;
    return CK_OK;
}

static ck_status add_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    uint32_t count = 0;
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) count++;
    CK_TRY(begin(b, e, count, a));
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) {
        for (uint32_t i = 0; i < a->entry.table.column_count; i++)
            if (ck_view_eq_nocase(ck_view_of(a->columns[i].name), c->name.text))
                return ck_bind_fail(b, c->name.pos, "table \"%s\" has a column \"%s\" already", e->name,
                                    a->columns[i].name);
        CK_TRY(column_of(b, c, &a->columns[a->entry.table.column_count++]));
    }
    return CK_OK;
}

static ck_status modify_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    CK_TRY(begin(b, e, 0, a));
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) {
        uint32_t at;
        ck_table_column to;
        CK_TRY(find_column(b, e, &c->name, &at));
        CK_TRY(column_of(b, c, &to));
        to.name = a->columns[at].name;
        a->columns[at] = to;
    }
    return CK_OK;
}

static ck_status drop_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    uint32_t at;
    CK_TRY(begin(b, e, 0, a));
    CK_TRY(find_column(b, e, &s->alter.from, &at));
    if (in_key(&e->table, at))
        return ck_bind_refuse(b, s->alter.from.pos, "column \"%s\" is in the PRIMARY KEY of \"%s\" and cannot go",
                              e->table.columns[at].name, e->name);
    uint32_t left = --a->entry.table.column_count - at;
    memmove(&a->columns[at], &a->columns[at + 1], left * sizeof *a->columns);
    return CK_OK;
}

/* The key is printed by the names of the schema's fields. */
static ck_status rename_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    uint32_t at;
    CK_TRY(begin(b, e, 0, a));
    CK_TRY(find_column(b, e, &s->alter.from, &at));
    for (uint32_t i = 0; i < e->table.column_count; i++)
        if (i != at && ck_view_eq_nocase(ck_view_of(e->table.columns[i].name), s->alter.to.text))
            return ck_bind_fail(b, s->alter.to.pos, "table \"%s\" has a column \"%s\" already", e->name,
                                e->table.columns[i].name);
    a->columns[at].name = ck_arena_strndup(b->plan.arena, s->alter.to.text.p, s->alter.to.text.n);
    const ck_schema *old = e->table.decl.schema;
    ck_schema *schema = CK_ARENA_NEW(b->plan.arena, ck_schema);
    ck_field *fields = CK_BIND_ARRAY(b, old->field_count, ck_field);
    if (!a->columns[at].name || !schema || !fields) return ck_bind_nomem(b);
    memcpy(fields, old->fields, old->field_count * sizeof *fields);
    if (a->columns[at].physical >= 0) fields[a->columns[at].physical].name = a->columns[at].name;
    *schema = (ck_schema){fields, old->field_count};
    a->entry.table.decl.schema = schema;
    return CK_OK;
}

/* ---- options ---- */

static uint32_t find_option(const ck_table_options *o, ck_view key) {
    uint32_t i = 0;
    while (i < o->count && !ck_view_eq_nocase(key, ck_view_of(o->names[i]))) i++;
    return i;
}

static ck_status set_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    const ck_table_options *old = &e->table.decl.options;
    CK_TRY(begin(b, e, 0, a));
    const char **names = CK_BIND_ARRAY(b, old->count + s->alter.options.count, const char *);
    const char **values = CK_BIND_ARRAY(b, old->count + s->alter.options.count, const char *);
    if (!names || !values) return CK_NOMEM;
    ck_table_options now = {names, values, old->count};
    for (uint32_t i = 0; i < old->count; i++) names[i] = old->names[i], values[i] = old->values[i];
    for (const ck_ast_option *o = s->alter.options.first; o; o = o->next) {
        if (ck_view_eq_nocase(o->key, CK_VIEW("connector")))
            return ck_bind_refuse(b, o->pos, "the connector of a table stays; DROP and CREATE the table");
        uint32_t at = find_option(&now, o->key);
        if (at == now.count) now.count++;
        names[at] = ck_arena_strndup(b->plan.arena, o->key.p, o->key.n);
        values[at] = ck_arena_strndup(b->plan.arena, o->value.p, o->value.n);
        if (!names[at] || !values[at]) return ck_bind_nomem(b);
    }
    a->entry.table.decl.options = now;
    return CK_OK;
}

static ck_status reset_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    const ck_table_options *old = &e->table.decl.options;
    CK_TRY(begin(b, e, 0, a));
    const char **names = CK_BIND_ARRAY(b, old->count, const char *),
               **values = CK_BIND_ARRAY(b, old->count, const char *);
    bool *gone = CK_BIND_ARRAY(b, old->count, bool);
    uint32_t n = 0;
    if (!names || !values || !gone) return CK_NOMEM;
    for (const ck_ast_option *o = s->alter.options.first; o; o = o->next) {
        uint32_t at = find_option(old, o->key);
        if (at == old->count || ck_view_eq_nocase(o->key, CK_VIEW("connector")))
            return ck_bind_fail(b, o->pos, "table \"%s\" sets no option '%.*s' that could be reset", e->name,
                                ck_cut(o->key), o->key.p);
        gone[at] = true;
    }
    for (uint32_t i = 0; i < old->count; i++)
        if (!gone[i]) names[n] = old->names[i], values[n++] = old->values[i];
    a->entry.table.decl.options = (ck_table_options){names, values, n};
    return CK_OK;
}

static ck_status rename_table(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    const ck_ast_ident *to = &s->alter.to;
    const ck_catalog_entry *other = ck_catalog_find(b->catalog, to->text, to->quoted);
    CK_TRY(begin(b, e, 0, a));
    if (other && other != e)
        return ck_bind_fail(b, to->pos, "there is a %s \"%s\" already", other->kind == CK_ENTRY_VIEW ? "view" : "table",
                            other->name);
    a->entry.name = ck_arena_strndup(b->plan.arena, to->text.p, to->text.n);
    return a->entry.name ? CK_OK : ck_bind_nomem(b);
}

static ck_status edit(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, altered *a) {
    switch (s->alter.what) {
    case CK_ALTER_RENAME: return rename_table(b, s, e, a);
    case CK_ALTER_ADD_COLUMNS: return add_columns(b, s, e, a);
    case CK_ALTER_DROP_COLUMN: return drop_column(b, s, e, a);
    case CK_ALTER_RENAME_COLUMN: return rename_column(b, s, e, a);
    case CK_ALTER_MODIFY_COLUMNS: return modify_columns(b, s, e, a);
    case CK_ALTER_SET_OPTIONS: return set_options(b, s, e, a);
    case CK_ALTER_RESET_OPTIONS: return reset_options(b, s, e, a);
    }
    ck_assert_failed(__FILE__, __LINE__, "every ALTER alters");
}

/* ---- the table anew ---- */

static ck_status create(ck_binder *b, const ck_source_text *source, ck_output *rows) {
    const ck_source_text *script = b->source;
    ck_ast_script ast;
    b->source = source;
    ck_status s = ck_parse_script(source, b->plan.arena, &ast, b->err);
    if (s == CK_OK) s = ck_bind_create_table(b, ast.first->create_table, ast.first->pos, rows);
    b->source = script;
    return s;
}

static ck_status replace(ck_binder *b, ck_catalog_entry *e, const altered *a) {
    ck_bytes text;
    ck_output rows;
    ck_bytes_init(&text, b->plan.arena->mem, SIZE_MAX);
    ck_source_text *source = CK_ARENA_NEW(b->plan.arena, ck_source_text);
    ck_status s = ck_table_text(&a->entry, &text);
    char *copy = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p, text.n) : NULL;
    char *name = ck_arena_printf(b->plan.arena, "table %s as altered", e->name);
    if (copy && source && name) *source = (ck_source_text){name, {copy, text.n}};
    ck_bytes_destroy(&text);
    if (!copy || !source || !name) return ck_bind_nomem(b);
    ck_catalog_drop(b->catalog, e);
    s = create(b, source, &rows);
    if (s != CK_OK) {
        ck_catalog_undrop(b->catalog, e);
        return s;
    }
    ck_catalog_entry *made = ck_catalog_find(b->catalog, ck_view_of(a->entry.name), true);
    made->lineage = e->lineage;
    if (!e->table.instance) return CK_OK;
    CK_TRY(ck_bind_same_instance(b, made, e->table.instance));
    e->rows_moved = true;
    return CK_OK;
}

ck_status ck_bind_alter(ck_binder *b, const ck_ast_statement *s) {
    altered a;
    const ck_ast_ident *id = &s->alter.table.first->ident;
    ck_catalog_entry *e = ck_catalog_find(b->catalog, id->text, id->quoted);
    if (!e && s->alter.if_exists) return CK_OK;
    CK_TRY(ck_bind_find_entry(b, &s->alter.table, id->pos, &e));
    if (e->kind == CK_ENTRY_VIEW)
        return ck_bind_fail(b, id->pos, "\"%s\" is a view; CREATE OR REPLACE VIEW changes it", e->name);
    if (e->table.instance && s->alter.what != CK_ALTER_RENAME && s->alter.what != CK_ALTER_RENAME_COLUMN)
        return ck_bind_refuse(b, id->pos,
                              "the rows of \"%s\" are in memory as they were written; CREATE TABLE ... AS "
                              "SELECT makes a table of them with other columns",
                              e->name);
    CK_TRY(edit(b, s, e, &a));
    return replace(b, e, &a);
}
