/* ALTER TABLE SET and RESET; and what options say about columns. */
#include "sql/bind/alter_int.h"

static uint32_t find_option(const ck_table_options *o, ck_view key) {
    uint32_t i = 0;
    while (i < o->count && !ck_view_eq_nocase(key, ck_view_of(o->names[i]))) i++;
    return i;
}

static ck_status copy(ck_binder *b, const ck_table_options *old, uint32_t extra, ck_table_options *out,
                      const char ***names, const char ***values) {
    *names = CK_BIND_ARRAY(b, old->count + extra, const char *);
    *values = CK_BIND_ARRAY(b, old->count + extra, const char *);
    if (!*names || !*values) return CK_NOMEM;
    for (uint32_t i = 0; i < old->count; i++) (*names)[i] = old->names[i], (*values)[i] = old->values[i];
    *out = (ck_table_options){*names, *values, old->count};
    return CK_OK;
}

ck_status ck_alter_set_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    ck_table_options now;
    const char **names, **values;
    CK_TRY(ck_alter_begin(b, e, 0, a));
    CK_TRY(copy(b, &e->table.decl.options, s->alter.options.count, &now, &names, &values));
    a->at = s->alter.options.first->pos;
    for (const ck_ast_option *o = s->alter.options.first; o; o = o->next) {
        if (ck_view_eq_nocase(o->key, CK_VIEW("connector")))
            return ck_bind_refuse(b, o->pos, "the connector of a table stays; DROP and CREATE the table");
        for (const ck_ast_option *k = s->alter.options.first; k != o; k = k->next)
            if (ck_view_eq_nocase(k->key, o->key))
                return ck_bind_fail(b, o->pos, "option '%.*s' is given twice", ck_cut(o->key), o->key.p);
        uint32_t at = find_option(&now, o->key);
        if (at == now.count) now.count++;
        names[at] = ck_arena_strndup(b->plan.arena, o->key.p, o->key.n);
        values[at] = ck_arena_strndup(b->plan.arena, o->value.p, o->value.n);
        if (!names[at] || !values[at]) return ck_bind_nomem(b);
    }
    a->entry.table.decl.options = now;
    return CK_OK;
}

ck_status ck_alter_reset_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e, ck_altered *a) {
    const ck_table_options *old = &e->table.decl.options;
    ck_table_options now;
    const char **names, **values;
    CK_TRY(ck_alter_begin(b, e, 0, a));
    CK_TRY(copy(b, old, 0, &now, &names, &values));
    a->at = s->alter.options.first->pos;
    for (const ck_ast_option *o = s->alter.options.first; o; o = o->next) {
        uint32_t at = find_option(&now, o->key);
        if (at == now.count || ck_view_eq_nocase(o->key, CK_VIEW("connector")))
            return ck_bind_fail(b, o->pos, "table \"%s\" sets no option '%.*s' that could be reset", e->name,
                                ck_cut(o->key), o->key.p);
        uint32_t behind = --now.count - at;
        memmove(&names[at], &names[at + 1], behind * sizeof *names);
        memmove(&values[at], &values[at + 1], behind * sizeof *values);
    }
    a->entry.table.decl.options = now;
    return CK_OK;
}

/* ---- options about columns ---- */

/* Whether the option's name has the column in the place of its pattern's star: fields.amount.kind. */
static bool is_about(const ck_option_desc *d, const char *name, const char *column) {
    const char *star = strchr(d->name, '*');
    if (!star || strcmp(d->values, "property") == 0) return false;
    size_t head = (size_t)(star - d->name), tail = strlen(star + 1), n = strlen(name);
    if (n <= head + tail) return false;
    return ck_view_eq_nocase((ck_view){name + head, n - head - tail}, ck_view_of(column));
}

static const char *renamed_option(ck_arena *arena, const ck_option_desc *d, const char *to) {
    const char *star = strchr(d->name, '*');
    return ck_arena_printf(arena, "%.*s%s%s", (int)(star - d->name), d->name, to, star + 1);
}

/* The value, a list of columns, with one of them called otherwise; `to` NULL: as it is. *found: it is among them. */
static const char *renamed_value(ck_arena *arena, const char *value, const char *column, const char *to, bool *found) {
    const char *out = "";
    *found = false;
    for (const char *at = value; out && *at;) {
        const char *end = strchrnul(at, ',');
        ck_view one = {at, (size_t)(end - at)};
        while (one.n && one.p[0] == ' ') one.p++, one.n--;
        while (one.n && one.p[one.n - 1] == ' ') one.n--;
        bool same = ck_view_eq_nocase(one, ck_view_of(column));
        *found |= same;
        if (same && to) one = ck_view_of(to);
        out = ck_arena_printf(arena, "%s%s%.*s", out, *out ? "," : "", (int)one.n, one.p);
        at = *end ? end + 1 : end;
    }
    return out;
}

static bool names_columns(const ck_option_desc *d) {
    return strcmp(d->values, "column") == 0 || strcmp(d->values, "columns") == 0;
}

ck_status ck_alter_options_of_column(ck_binder *b, ck_altered *a, const char *column, const char *to,
                                     const char **named) {
    ck_table_options now;
    const char **names, **values;
    CK_TRY(copy(b, &a->entry.table.decl.options, 0, &now, &names, &values));
    *named = NULL;
    now.count = 0;
    for (uint32_t i = 0; i < a->entry.table.decl.options.count; i++) {
        const ck_option_desc *d = ck_bind_option_named(a->entry.table.connector, ck_view_of(names[i]));
        const char *name = names[i], *value = values[i];
        bool found = false;
        if (d && is_about(d, name, column)) {
            if (!to) continue;
            name = renamed_option(b->plan.arena, d, to);
        }
        if (d && names_columns(d)) value = renamed_value(b->plan.arena, value, column, to, &found);
        if (!name || !value) return ck_bind_nomem(b);
        if (found) *named = name;
        names[now.count] = name;
        values[now.count++] = value;
    }
    a->entry.table.decl.options = now;
    return CK_OK;
}
