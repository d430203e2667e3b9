/* DESCRIBE, SHOW, SET without a key: lines of text. */
#include <stdio.h>

#include "base/suggest.h"
#include "expr/library.h"
#include "sql/bind/bind_int.h"
#include "sql/foreign.h"
#include "sql/parse/parse.h"
#include "sql/script_int.h"

static ck_status text_step(ck_script *s, ck_bytes *text, ck_status st) {
    ck_sql_step step = {.kind = CK_SQL_TEXT};
    if (st == CK_OK) step.text = ck_arena_strndup(s->b.plan.arena, text->p ? text->p : "", text->n);
    ck_bytes_destroy(text);
    return step.text ? ck_script_add_step(s, &step) : ck_bind_nomem(&s->b);
}

static void begin(ck_script *s, ck_bytes *text) { ck_bytes_init(text, s->b.plan.arena->mem, SIZE_MAX); }

static const char *type_text(ck_script *s, const ck_type *t, bool nullable) {
    const char *text = ck_plan_type_text(&s->b.plan, t);
    return text && !nullable ? ck_arena_printf(s->b.plan.arena, "%s NOT NULL", text) : text;
}

/* ---- DESCRIBE ---- */

static bool in_key(const ck_table_decl *t, int32_t physical) {
    for (uint32_t i = 0; i < t->primary_key_count; i++)
        if ((int32_t)t->primary_key[i] == physical) return true;
    return false;
}

/* FROM what a column stands beside the record; NULL: it stands in it. */
static const char *beside(const ck_table_decl *t, const char *column) {
    enum { PREFIX = sizeof "metadata." - 1 };
    for (uint32_t i = 0; i < t->options.count; i++)
        if (strncmp(t->options.names[i], "metadata.", PREFIX) == 0 &&
            ck_view_eq_nocase(ck_view_of(t->options.names[i] + PREFIX), ck_view_of(column)))
            return t->options.values[i];
    return NULL;
}

/* What stands behind the type: what a column is made of, its key, its time. */
static ck_status describe_column(const ck_table_def *t, uint32_t i, ck_bytes *text) {
    const ck_table_column *c = &t->columns[i];
    const char *from = beside(&t->decl, c->name);
    if (c->computed) CK_TRY(ck_bytes_printf(text, "  AS %s", c->computed_text));
    if (from) CK_TRY(ck_bytes_printf(text, "  METADATA FROM '%s'", from));
    if (in_key(&t->decl, c->physical)) CK_TRY(ck_bytes_str(text, "  PRIMARY KEY"));
    if (!t->time.expr || t->time.column != i) return CK_OK;
    CK_TRY(ck_bytes_printf(text, "  WATERMARK %s", c->name));
    if (t->time.lag_us == 0) return CK_OK;
    char lag[48];
    int n = snprintf(lag, sizeof lag, "%lld.%06lld", (long long)t->time.lag_us / 1000000,
                     (long long)t->time.lag_us % 1000000);
    while (n > 0 && (lag[n - 1] == '0' || lag[n - 1] == '.'))
        if (lag[--n] == '.') break;
    return ck_bytes_printf(text, " - INTERVAL '%.*s' SECOND", n, lag);
}

static ck_status describe_table(ck_script *s, const ck_catalog_entry *e) {
    const ck_table_def *t = &e->table;
    ck_bytes text;
    size_t width = 4;
    ck_status st = CK_OK;
    begin(s, &text);
    for (uint32_t i = 0; i < t->column_count; i++)
        if (strlen(t->columns[i].name) > width) width = strlen(t->columns[i].name);
    for (uint32_t i = 0; st == CK_OK && i < t->column_count; i++) {
        const ck_table_column *c = &t->columns[i];
        const char *type = type_text(s, c->type, c->nullable);
        if (!type) st = CK_NOMEM;
        if (st == CK_OK) st = ck_bytes_printf(&text, "%-*s  %s", (int)width, c->name, type);
        if (st == CK_OK) st = describe_column(t, i, &text);
        if (st == CK_OK) st = ck_bytes_char(&text, '\n');
    }
    return text_step(s, &text, st);
}

static ck_status describe_rows(ck_script *s, const ck_schema *schema) {
    ck_bytes text;
    size_t width = 4;
    ck_status st = CK_OK;
    begin(s, &text);
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (strlen(schema->fields[i].name) > width) width = strlen(schema->fields[i].name);
    for (uint32_t i = 0; st == CK_OK && i < schema->field_count; i++) {
        const ck_field *f = &schema->fields[i];
        const char *type = type_text(s, f->type, f->nullable);
        st = type ? ck_bytes_printf(&text, "%-*s  %s\n", (int)width, f->name, type) : CK_NOMEM;
    }
    return text_step(s, &text, st);
}

ck_status ck_script_describe(ck_script *s, const ck_ast_statement *st) {
    ck_catalog_entry *e;
    ck_output o;
    ck_plan_node *n;
    if (st->describe.query) {
        CK_TRY(ck_bind_root_query(&s->b, st->describe.query, &o));
        return describe_rows(s, o.node->schema);
    }
    CK_TRY(ck_bind_find_entry(&s->b, &st->describe.name, st->describe.name.first->ident.pos, &e));
    if (e->kind == CK_ENTRY_TABLE) return describe_table(s, e);
    ck_ast_from from = {.kind = CK_FROM_TABLE, .name = st->describe.name, .pos = st->pos};
    CK_TRY(ck_bind_table(&s->b, &from, &n));
    return describe_rows(s, n->schema);
}

/* ---- SHOW ---- */

/* LIKE with % and _, without escapes: for lists of names. */
static bool matches(ck_view name, ck_view pattern) {
    size_t n = 0, p = 0, star = SIZE_MAX, back = 0;
    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '%') {
            star = p++, back = n;
        } else if (p < pattern.n &&
                   (pattern.p[p] == '_' || ck_ascii_lower(pattern.p[p]) == ck_ascii_lower(name.p[n]))) {
            p++, n++;
        } else if (star != SIZE_MAX) {
            p = star + 1, n = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '%') p++;
    return p == pattern.n;
}

static ck_status line(ck_bytes *text, const char *name, ck_view like) {
    if (like.p && !matches(ck_view_of(name), like)) return CK_OK;
    return ck_bytes_printf(text, "%s\n", name);
}

static ck_status show_entries(ck_script *s, ck_entry_kind kind, bool both, ck_view like) {
    ck_bytes text;
    ck_status st = CK_OK;
    begin(s, &text);
    for (const ck_catalog_entry *e = s->b.catalog->entries; st == CK_OK && e; e = e->next)
        if (e->kind == kind || (both && e->kind != CK_ENTRY_FUNCTION)) st = line(&text, e->name, like);
    return text_step(s, &text, st);
}

static ck_status show_functions(ck_script *s, ck_view like) {
    ck_bytes text;
    ck_status st = CK_OK;
    begin(s, &text);
    for (const ck_catalog_entry *e = s->b.catalog->entries; st == CK_OK && e; e = e->next)
        if (e->kind == CK_ENTRY_FUNCTION) st = line(&text, e->name, like);
    for (size_t i = 0; st == CK_OK && i < ck_function_count(); i++)
        if (!(ck_function_at(i)->flags & CK_FN_INTERNAL)) st = line(&text, ck_function_at(i)->name, like);
    for (size_t i = 0; st == CK_OK && i < ck_aggregate_count(); i++) st = line(&text, ck_aggregate_at(i)->name, like);
    const ck_library *l = s->b.catalog->proc->library;
    for (const ck_library_item *i = l ? l->items : NULL; st == CK_OK && i; i = i->next) {
        if (i->function) st = line(&text, i->function->name, like);
        if (i->aggregate) st = line(&text, i->aggregate->name, like);
    }
    return text_step(s, &text, st);
}

ck_status ck_script_list_settings(ck_script *s) {
    ck_bytes text;
    ck_status st = CK_OK;
    char value[80];
    begin(s, &text);
    for (size_t i = 0; st == CK_OK && i < ck_setting_count(); i++) {
        const ck_setting_desc *d = ck_setting_at(i);
        st = ck_settings_get(&s->b.catalog->settings, ck_view_of(d->name), value, sizeof value, s->b.err);
        if (st == CK_OK) st = ck_bytes_printf(&text, "%-14s %-10s %s (%s)\n", d->name, value, d->help, d->values);
    }
    return text_step(s, &text, st);
}

static ck_status show_setting(ck_script *s, const ck_ast_ident *name) {
    ck_bytes text;
    char value[80];
    static const char *const lists[] = {"TABLES", "VIEWS", "FUNCTIONS", "SETTINGS", "COLUMNS"};
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    for (size_t i = 0; i < CK_ARRAY_COUNT(lists); i++) ck_suggest_offer(&near, ck_view_of(lists[i]));
    ck_status st = ck_settings_get(&s->b.catalog->settings, name->text, value, sizeof value, s->b.err);
    const char *advice = st == CK_OK ? NULL : ck_foreign_name(CK_FOREIGN_SHOW, name->text);
    if (advice)
        return ck_bind_fail(&s->b, name->pos, "SHOW shows no \"%.*s\"; %s", ck_cut(name->text), name->text.p, advice);
    if (st != CK_OK && near.best.n)
        return ck_bind_fail(&s->b, name->pos, "SHOW shows no \"%.*s\"; did you mean \"%.*s\"?", ck_cut(name->text),
                            name->text.p, (int)near.best.n, near.best.p);
    CK_TRY(ck_bind_at(&s->b, name->pos, st));
    begin(s, &text);
    return text_step(s, &text, ck_bytes_printf(&text, "%s\n", value));
}

static ck_status show_create(ck_script *s, const ck_ast_statement *st) {
    ck_catalog_entry *e;
    ck_bytes text;
    ck_pos at = st->show.name.first->ident.pos;
    if (st->show.object == CK_OBJECT_FUNCTION) {
        const ck_ast_ident *id = &st->show.name.first->ident;
        if (!(e = ck_catalog_find_function(s->b.catalog, id->text, id->quoted)))
            return ck_bind_no_own_function(&s->b, id);
        begin(s, &text);
        return text_step(s, &text, ck_bytes_printf(&text, "%s;\n", e->sql));
    }
    CK_TRY(ck_bind_find_entry(&s->b, &st->show.name, at, &e));
    bool view = st->show.object == CK_OBJECT_VIEW;
    if ((e->kind == CK_ENTRY_VIEW) != view)
        return ck_bind_fail(&s->b, at, "\"%s\" is a %s; SHOW CREATE %s shows it", e->name, view ? "table" : "view",
                            view ? "TABLE" : "VIEW");
    begin(s, &text);
    return text_step(s, &text, ck_bytes_printf(&text, "%s;\n", e->sql));
}

ck_status ck_script_show(ck_script *s, const ck_ast_statement *st) {
    switch (st->show.what) {
    case CK_SHOW_TABLES: return show_entries(s, CK_ENTRY_TABLE, true, st->show.like);
    case CK_SHOW_VIEWS: return show_entries(s, CK_ENTRY_VIEW, false, st->show.like);
    case CK_SHOW_FUNCTIONS: return show_functions(s, st->show.like);
    case CK_SHOW_SETTINGS: return ck_script_list_settings(s);
    case CK_SHOW_SETTING:
        if (st->show.like.p) return ck_bind_fail(&s->b, st->pos, "LIKE goes with TABLES, VIEWS and FUNCTIONS");
        return show_setting(s, &st->show.name.first->ident);
    case CK_SHOW_CREATE: return show_create(s, st);
    case CK_SHOW_COLUMNS: {
        ck_ast_statement describe = {.kind = CK_STATEMENT_DESCRIBE, .pos = st->pos};
        describe.describe.name = st->show.name;
        return ck_script_describe(s, &describe);
    }
    }
    ck_assert_failed(__FILE__, __LINE__, "every SHOW shows");
}
