/* ALTER TABLE: the table as it is to be is written as a CREATE TABLE, and that is bound in its place. What goes against
 * the rules of CREATE TABLE is so refused by the same sentences, placed in the ALTER. */
#include "sql/bind/alter_int.h"
#include "sql/parse/parse.h"

ck_status ck_alter_begin(ck_binder *b, const ck_catalog_entry *e, uint32_t extra, ck_altered *a) {
    a->entry = *e;
    const ck_table_def *t = &e->table;
    a->columns = CK_BIND_ARRAY(b, t->column_count + extra, ck_table_column);
    if (!a->columns) return CK_NOMEM;
    memcpy(a->columns, t->columns, t->column_count * sizeof *t->columns);
    a->entry.table.columns = a->columns;
    return CK_OK;
}

static ck_status rename_table(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    const ck_ast_ident *to = &s->alter.to;
    const ck_catalog_entry *other = ck_catalog_find(b->catalog, to->text, to->quoted);
    CK_TRY(ck_alter_begin(b, e, 0, a));
    a->at = to->pos;
    if (other && other != e)
        return ck_bind_fail(b, to->pos, "there is a %s \"%s\" already", other->kind == CK_ENTRY_VIEW ? "view" : "table",
                            other->name);
    a->entry.name = ck_arena_strndup(b->plan.arena, to->text.p, to->text.n);
    return a->entry.name ? CK_OK : ck_bind_nomem(b);
}

static ck_status edit(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    switch (s->alter.what) {
    case CK_ALTER_RENAME: return rename_table(b, s, e, a);
    case CK_ALTER_ADD_COLUMNS: return ck_alter_add_columns(b, s, e, a);
    case CK_ALTER_DROP_COLUMN: return ck_alter_drop_column(b, s, e, a);
    case CK_ALTER_RENAME_COLUMN: return ck_alter_rename_column(b, s, e, a);
    case CK_ALTER_MODIFY_COLUMNS: return ck_alter_modify_columns(b, s, e, a);
    case CK_ALTER_SET_OPTIONS: return ck_alter_set_options(b, s, e, a);
    case CK_ALTER_RESET_OPTIONS: return ck_alter_reset_options(b, s, e, a);
    }
    ck_assert_failed(__FILE__, __LINE__, "every ALTER alters");
}

/* ---- where the parts of the new text are from ---- */

static void add_part(ck_source_part *parts, uint32_t *n, ck_pos made, ck_pos at, bool copied) {
    parts[(*n)++] = (ck_source_part){made.begin, made.end, at, copied};
}

static void parts_of_columns(const ck_ast_create_table *t, const ck_ast_statement *s, ck_source_part *parts,
                             uint32_t *n) {
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next)
        for (const ck_ast_column *made = t->columns; made; made = made->next) {
            if (!ck_view_eq_nocase(made->name.text, c->name.text)) continue;
            add_part(parts, n, made->name.pos, c->name.pos, false);
            if (made->computed && c->computed) add_part(parts, n, made->computed->pos, c->computed->pos, true);
            if (made->type && c->type) add_part(parts, n, made->type->pos, c->type->pos, false);
        }
}

static void parts_of_options(const ck_ast_create_table *t, const ck_ast_statement *s, ck_source_part *parts,
                             uint32_t *n) {
    for (const ck_ast_option *o = s->alter.options.first; o; o = o->next)
        for (const ck_ast_option *made = t->options.first; made; made = made->next) {
            if (!ck_view_eq_nocase(made->key, o->key)) continue;
            add_part(parts, n, made->pos, o->pos, false);
            add_part(parts, n, made->value_pos, o->value_pos, false);
        }
}

/* A column name stands once among the made ones, and twice at most among those of the statement. */
static ck_status find_parts(ck_binder *b, ck_source_text *source, const ck_ast_create_table *t,
                            const ck_ast_statement *s) {
    uint32_t most = 2 * s->alter.options.count;
    for (const ck_ast_column *c = s->alter.columns; c; c = c->next) most += 3;
    ck_source_part *parts = CK_BIND_ARRAY(b, most, ck_source_part);
    if (!parts) return CK_NOMEM;
    parts_of_columns(t, s, parts, &source->part_count);
    parts_of_options(t, s, parts, &source->part_count);
    CK_ASSERT(source->part_count <= most);
    source->parts = parts;
    return CK_OK;
}

/* ---- the table anew ---- */

static ck_status create(ck_binder *b, ck_source_text *source, const ck_ast_statement *s, ck_output *rows) {
    const ck_source_text *script = b->source;
    ck_ast_script ast;
    b->source = source;
    ck_status st = ck_parse_script(source, b->plan.arena, &ast, b->err);
    if (st == CK_OK) st = find_parts(b, source, ast.first->create_table, s);
    if (st == CK_OK) st = ck_bind_create_table(b, ast.first->create_table, ast.first->pos, rows);
    b->source = script;
    return st;
}

static ck_status replace(ck_binder *b, const ck_ast_statement *st, ck_catalog_entry *e, const ck_altered *a) {
    ck_bytes text;
    ck_output rows;
    ck_bytes_init(&text, b->plan.arena->mem, SIZE_MAX);
    ck_source_text *source = CK_ARENA_NEW(b->plan.arena, ck_source_text);
    ck_status s = ck_table_text(&a->entry, &text);
    char *copy = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p, text.n) : NULL;
    char *name = ck_arena_printf(b->plan.arena, "table %s", e->name);
    if (copy && source && name)
        *source = (ck_source_text){.name = name, .text = {copy, text.n}, .made_for = b->source, .made_at = a->at};
    ck_bytes_destroy(&text);
    if (!copy || !source || !name) return ck_bind_nomem(b);
    ck_catalog_drop(b->catalog, e);
    s = create(b, source, st, &rows);
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
    ck_altered a = {0};
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
    return replace(b, s, e, &a);
}
