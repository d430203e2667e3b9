/* ALTER TABLE ADD, MODIFY, DROP and RENAME of columns. */
#include "base/suggest.h"
#include "sql/bind/alter_int.h"

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

/* ---- who needs a column ---- */

static bool in_key(const ck_table_def *t, uint32_t column) {
    for (uint32_t i = 0; i < t->decl.primary_key_count; i++)
        if ((int32_t)t->decl.primary_key[i] == t->columns[column].physical) return true;
    return false;
}

static bool uses(const ck_expr *e, uint32_t column) {
    if (e->kind == CK_EXPR_COLUMN && e->column == column) return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (uses(e->args[i], column)) return true;
    return false;
}

/* Computed columns are kept as they were written, by the names they use. */
static ck_status refuse_used(ck_binder *b, const ck_catalog_entry *e, uint32_t column, ck_pos at, const char *cannot) {
    const ck_table_def *t = &e->table;
    for (uint32_t i = 0; t->columns[column].physical >= 0 && i < t->column_count; i++)
        if (t->columns[i].computed && uses(t->columns[i].computed, (uint32_t)t->columns[column].physical))
            return ck_bind_refuse(b, at,
                                  "column \"%s\" of \"%s\" %s: \"%s\" is computed from it, and has to be dropped first",
                                  t->columns[column].name, e->name, cannot, t->columns[i].name);
    return CK_OK;
}

/* ---- ADD, MODIFY ---- */

static ck_status column_of(ck_binder *b, const ck_ast_column *c, ck_table_column *out) {
    ck_view text = c->computed ? ck_source_slice(b->source, c->computed->pos) : (ck_view){0};
    *out = (ck_table_column){.name = ck_arena_strndup(b->plan.arena, c->name.text.p, c->name.text.n), .physical = -1};
    if (c->comment.p) out->comment = ck_arena_strndup(b->plan.arena, c->comment.p, c->comment.n);
    if (!out->name || (c->comment.p && !out->comment)) return ck_bind_nomem(b);
    if (c->primary_key)
        return ck_bind_refuse(b, c->primary_pos, "ALTER TABLE gives no PRIMARY KEY; DROP and CREATE the table");
    if (c->metadata_pos.line) return ck_bind_refuse(b, c->metadata_pos, "METADATA columns come with CREATE TABLE");
    if (c->not_null && c->null) return ck_bind_fail(b, c->name.pos, "column \"%s\" is NULL and NOT NULL", out->name);
    if (c->computed) {
        out->computed = CK_ARENA_NEW(b->plan.arena, ck_expr); /* that it is computed; the text is what counts */
        out->computed_text = ck_arena_strndup(b->plan.arena, text.p, text.n);
        return out->computed && out->computed_text ? CK_OK : ck_bind_nomem(b);
    }
    CK_TRY(ck_bind_type(b, c->type, b->plan.arena, &out->type));
    out->nullable = !c->not_null;
    return CK_OK;
}

ck_status ck_alter_add_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    uint32_t count = 0;
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) count++;
    CK_TRY(ck_alter_begin(b, e, count, a));
    a->at = s->alter.columns->name.pos;
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) {
        for (uint32_t i = 0; i < a->entry.table.column_count; i++)
            if (ck_view_eq_nocase(ck_view_of(a->columns[i].name), c->name.text))
                return ck_bind_fail(b, c->name.pos, "table \"%s\" has a column \"%s\" already", e->name,
                                    a->columns[i].name);
        CK_TRY(column_of(b, c, &a->columns[a->entry.table.column_count++]));
    }
    return CK_OK;
}

/* A comment stays where none is given. */
ck_status ck_alter_modify_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    CK_TRY(ck_alter_begin(b, e, 0, a));
    a->at = s->alter.columns->name.pos;
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) {
        uint32_t at;
        ck_table_column to;
        CK_TRY(find_column(b, e, &c->name, &at));
        CK_TRY(column_of(b, c, &to));
        to.name = a->columns[at].name;
        if (!to.comment) to.comment = a->columns[at].comment;
        if (to.computed && in_key(&e->table, at))
            return ck_bind_refuse(b, c->name.pos,
                                  "column \"%s\" is in the PRIMARY KEY of \"%s\" and cannot be computed", to.name,
                                  e->name);
        if (to.computed) CK_TRY(refuse_used(b, e, at, c->name.pos, "cannot be computed"));
        a->columns[at] = to;
    }
    return CK_OK;
}

/* ---- DROP, RENAME ---- */

ck_status ck_alter_drop_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    uint32_t at;
    const char *named;
    const ck_table_def *t = &e->table;
    CK_TRY(ck_alter_begin(b, e, 0, a));
    a->at = s->alter.from.pos;
    CK_TRY(find_column(b, e, &s->alter.from, &at));
    const char *name = t->columns[at].name;
    if (in_key(t, at))
        return ck_bind_refuse(b, a->at, "column \"%s\" is in the PRIMARY KEY of \"%s\" and cannot go", name, e->name);
    if (t->time.expr && t->time.column == at)
        return ck_bind_refuse(b, a->at,
                              "column \"%s\" is the event time of \"%s\" and cannot go; DROP and CREATE the table",
                              name, e->name);
    CK_TRY(refuse_used(b, e, at, a->at, "cannot go"));
    CK_TRY(ck_alter_options_of_column(b, a, name, NULL, &named));
    if (named)
        return ck_bind_refuse(b, a->at,
                              "column \"%s\" is named by option '%s' of \"%s\" and cannot go; SET the option "
                              "first",
                              name, named, e->name);
    uint32_t left = --a->entry.table.column_count - at;
    memmove(&a->columns[at], &a->columns[at + 1], left * sizeof *a->columns);
    if (a->entry.table.time.column > at) a->entry.table.time.column--;
    return CK_OK;
}

/* The key is printed by the names of the schema's fields. */
ck_status ck_alter_rename_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    uint32_t at;
    const char *named;
    CK_TRY(ck_alter_begin(b, e, 0, a));
    a->at = s->alter.from.pos;
    CK_TRY(find_column(b, e, &s->alter.from, &at));
    for (uint32_t i = 0; i < e->table.column_count; i++)
        if (i != at && ck_view_eq_nocase(ck_view_of(e->table.columns[i].name), s->alter.to.text))
            return ck_bind_fail(b, s->alter.to.pos, "table \"%s\" has a column \"%s\" already", e->name,
                                e->table.columns[i].name);
    CK_TRY(refuse_used(b, e, at, a->at, "keeps its name"));
    const char *to = ck_arena_strndup(b->plan.arena, s->alter.to.text.p, s->alter.to.text.n);
    const ck_schema *old = e->table.decl.schema;
    ck_schema *schema = CK_ARENA_NEW(b->plan.arena, ck_schema);
    ck_field *fields = CK_BIND_ARRAY(b, old->field_count, ck_field);
    if (!to || !schema || !fields) return ck_bind_nomem(b);
    CK_TRY(ck_alter_options_of_column(b, a, a->columns[at].name, to, &named));
    a->columns[at].name = to;
    memcpy(fields, old->fields, old->field_count * sizeof *fields);
    if (a->columns[at].physical >= 0) fields[a->columns[at].physical].name = to;
    *schema = (ck_schema){fields, old->field_count};
    a->entry.table.decl.schema = schema;
    return CK_OK;
}
