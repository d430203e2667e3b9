/* WITH ('k' = 'v'): names and single values against what the connector says it takes. */
#include <stdio.h>

#include "base/suggest.h"
#include "sql/bind/bind_int.h"
#include "sql/bind/create_int.h"
#include "sql/foreign.h"

/* "fields.*.kind" takes any one part for the star. */
static bool name_matches(const char *pattern, ck_view name) {
    const char *star = strchr(pattern, '*');
    if (!star) return ck_view_is(name, pattern);
    size_t head = (size_t)(star - pattern), tail = strlen(star + 1);
    if (name.n <= head + tail || memcmp(name.p, pattern, head) != 0) return false;
    return memcmp(name.p + name.n - tail, star + 1, tail) == 0;
}

const ck_option_desc *ck_bind_option_named(const ck_connector_desc *d, ck_view name) {
    uint32_t count;
    for (uint32_t i = 0; i < d->option_count; i++)
        if (name_matches(d->options[i].name, name)) return &d->options[i];
    const ck_option_desc *time = ck_bind_time_options(&count);
    for (uint32_t i = 0; i < count; i++)
        if (ck_view_is(name, time[i].name)) return &time[i];
    return NULL;
}

static ck_status unknown(ck_binder *b, const ck_connector_desc *d, const ck_ast_option *o, ck_view name) {
    ck_suggest near;
    const char *advice = ck_foreign_name(CK_FOREIGN_OPTION, name);
    if (advice)
        return ck_bind_fail(b, o->pos, "connector '%s' has no option '%.*s'; %s", d->name, ck_cut(name), name.p,
                            advice);
    ck_suggest_init(&near, name);
    ck_suggest_offer(&near, CK_VIEW("connector"));
    for (uint32_t i = 0; i < d->option_count; i++) ck_suggest_offer(&near, ck_view_of(d->options[i].name));
    uint32_t count;
    const ck_option_desc *time = ck_bind_time_options(&count);
    for (uint32_t i = 0; i < count; i++) ck_suggest_offer(&near, ck_view_of(time[i].name));
    if (near.best.n)
        return ck_bind_fail(b, o->pos, "connector '%s' has no option '%.*s'; did you mean '%.*s'?", d->name,
                            ck_cut(name), name.p, ck_cut(near.best), near.best.p);
    return ck_bind_fail(b, o->pos, "connector '%s' has no option '%.*s'", d->name, ck_cut(name), name.p);
}

static bool is_integer(ck_view v) {
    size_t i = v.n && (v.p[0] == '-' || v.p[0] == '+') ? 1 : 0;
    if (i == v.n || v.n - i > 19) return false;
    for (; i < v.n; i++)
        if (v.p[i] < '0' || v.p[i] > '9') return false;
    return true;
}

static bool is_one_of(const char *values, ck_view v) {
    for (const char *at = values; *at;) {
        const char *bar = strchrnul(at, '|');
        if (ck_view_eq_nocase(v, (ck_view){at, (size_t)(bar - at)})) return true;
        at = *bar ? bar + 1 : bar;
    }
    return false;
}

static bool is_secret(ck_view v) { return v.n > 3 && v.p[0] == '$' && v.p[1] == '{' && v.p[v.n - 1] == '}'; }

static ck_status check_value(ck_binder *b, const ck_option_desc *d, const ck_ast_option *o) {
    ck_view v = o->value;
    if (is_secret(v)) return CK_OK; /* known only where the task runs */
    if (strcmp(d->values, "integer") == 0 && !is_integer(v))
        return ck_bind_fail(b, o->value_pos, "option '%.*s' takes a whole number, not '%.*s'", ck_cut(o->key), o->key.p,
                            ck_cut(v), v.p);
    if (strcmp(d->values, "boolean") == 0 && !is_one_of("true|false", v))
        return ck_bind_fail(b, o->value_pos, "option '%.*s' is true or false, not '%.*s'", ck_cut(o->key), o->key.p,
                            ck_cut(v), v.p);
    if (strchr(d->values, '|') && !is_one_of(d->values, v)) {
        ck_suggest near;
        ck_suggest_init(&near, v);
        for (const char *at = d->values; *at;) {
            const char *bar = strchrnul(at, '|');
            ck_suggest_offer(&near, (ck_view){at, (size_t)(bar - at)});
            at = *bar ? bar + 1 : bar;
        }
        if (near.best.n)
            return ck_bind_fail(b, o->value_pos, "option '%.*s' is one of %s, not '%.*s'; did you mean '%.*s'?",
                                ck_cut(o->key), o->key.p, d->values, ck_cut(v), v.p, (int)near.best.n, near.best.p);
        return ck_bind_fail(b, o->value_pos, "option '%.*s' is one of %s, not '%.*s'", ck_cut(o->key), o->key.p,
                            d->values, ck_cut(v), v.p);
    }
    return CK_OK;
}

static char *lower_copy(ck_arena *a, ck_view v) {
    char *copy = ck_arena_strndup(a, v.p, v.n);
    for (char *c = copy; c && *c; c++) *c = ck_ascii_lower(*c);
    return copy;
}

ck_status ck_bind_same_instance(ck_binder *b, ck_catalog_entry *e, const char *instance) {
    ck_table_options *o = &e->table.decl.options;
    const char **values = ck_arena_array(&e->arena, o->count, sizeof *values);
    if (!values || !(e->table.instance = ck_arena_strdup(&e->arena, instance))) return ck_bind_nomem(b);
    for (uint32_t i = 0; i < o->count; i++)
        values[i] = strcmp(o->names[i], ".instance") == 0 ? e->table.instance : o->values[i];
    o->values = values;
    return CK_OK;
}

static ck_status find_connector(ck_binder *b, const ck_ast_options *list, const char *table, ck_pos at,
                                const ck_connector_desc **out) {
    char name[64];
    for (const ck_ast_option *o = list->first; o; o = o->next) {
        if (!ck_view_eq_nocase(o->key, CK_VIEW("connector"))) continue;
        snprintf(name, sizeof name, "%.*s", (int)(o->value.n < 63 ? o->value.n : 63), o->value.p);
        const char *advice = ck_foreign_name(CK_FOREIGN_CONNECTOR, ck_view_of(name));
        ck_status s = ck_registry_connector(b->catalog->registry, name, out, b->err);
        if (s == CK_OK || s == CK_NOMEM || !advice) return ck_bind_at(b, o->value_pos, s);
        return ck_bind_fail(b, o->value_pos, "unknown connector %s; %s", name, advice);
    }
    if (list->first)
        return ck_bind_fail(b, at, "table \"%s\" has options and no connector: WITH (connector='file', ...)", table);
    return ck_bind_at(b, at, ck_registry_connector(b->catalog->registry, "memory", out, b->err));
}

/* A table in memory is told apart from one that had its name before. */
static ck_status add_instance(ck_binder *b, ck_catalog_entry *e, const char **name, const char **value) {
    e->table.instance = ck_arena_printf(&e->arena, "%llu", (unsigned long long)b->catalog->next_instance++);
    *name = ".instance";
    *value = e->table.instance;
    return *value ? CK_OK : ck_bind_nomem(b);
}

/* Of a catalog that outlives the process: a relative path is kept as the absolute one it was meant as. */
static bool is_relative_path(const ck_binder *b, const ck_option_desc *d, const char *value) {
    return b->catalog->base_dir && strcmp(d->values, "path") == 0 && *value && *value != '/' &&
           strcmp(value, "-") != 0 && !is_secret(ck_view_of(value));
}

/* The statement with an option's value replaced: what the catalog keeps is what the table is. */
static ck_status replace_value(ck_binder *b, ck_catalog_entry *e, const ck_ast_option *o, ck_pos statement,
                               const char *value) {
    const char *text = b->source->text.p;
    size_t behind = statement.end - o->value_pos.end, kept = strlen(e->sql);
    CK_ASSERT(o->value_pos.begin >= statement.begin && behind <= kept);
    /* From the end: an option before it may have been replaced. */
    size_t head = kept - behind - (o->value_pos.end - o->value_pos.begin);
    ck_bytes out;
    ck_bytes_init(&out, e->arena.mem, CK_SQL_BYTES_MAX);
    ck_status s = ck_bytes_append(&out, e->sql, head);
    if (s == CK_OK) s = ck_bytes_char(&out, '\'');
    for (const char *c = value; s == CK_OK && *c; c++) s = ck_bytes_str(&out, *c == '\'' ? "''" : (char[]){*c, 0});
    if (s == CK_OK) s = ck_bytes_char(&out, '\'');
    if (s == CK_OK) s = ck_bytes_append(&out, text + o->value_pos.end, behind);
    if (s == CK_OK && !(e->sql = ck_arena_strndup(&e->arena, out.p, out.n))) s = CK_NOMEM;
    ck_bytes_destroy(&out);
    return s == CK_OK ? CK_OK : ck_bind_nomem(b);
}

/* Where options stand, for what is found wrong with them later, when the script may be gone. */
static ck_status keep_places(ck_binder *b, const ck_ast_options *list, ck_catalog_entry *e, ck_pos statement) {
    ck_table_def *t = &e->table;
    ck_view text = ck_source_slice(b->source, statement);
    ck_pos *at = ck_arena_array(&e->arena, list->count + 1u, sizeof *at); /* one more: the engine's own */
    const char *name = ck_arena_strdup(&e->arena, b->source->name ? b->source->name : "sql");
    const char *copy = e->sql ? e->sql : ck_arena_strndup(&e->arena, text.p, text.n);
    uint32_t n = 0;
    if (!at || !name || !copy) return ck_bind_nomem(b);
    for (const ck_ast_option *o = list->first; o; o = o->next, n++) {
        at[n] = o->value_pos;
        at[n].begin -= statement.begin, at[n].end -= statement.begin;
    }
    t->source = (ck_source_text){.name = name, .text = {copy, text.n}};
    t->option_at = at;
    return CK_OK;
}

ck_status ck_bind_check_table(ck_binder *b, const ck_table_def *t, bool as_sink) {
    if (!t->connector->check) return CK_OK;
    ck_status s = t->connector->check(&t->decl, as_sink, b->err);
    if (s != CK_OK && s != CK_NOMEM && b->err) ck_error_prefix(b->err, "table \"%s\": ", t->decl.name);
    return ck_table_place(t, NULL, s, b->err);
}

ck_status ck_bind_check_options(ck_binder *b, const ck_ast_options *list, const ck_catalog_entry *e, ck_pos at) {
    const ck_table_def *t = &e->table;
    const ck_connector_desc *c = t->connector;
    if (!c->check || b->loading) return CK_OK;
    ck_status s = c->check(&t->decl, !c->source_type, b->err);
    if (s == CK_OK || s == CK_NOMEM || (c->source_type && c->sink_type && c->check(&t->decl, true, NULL) == CK_OK)) {
        if (s != CK_NOMEM) s = CK_OK;
        return s;
    }
    const char *name = b->err ? ck_table_option_said(&t->decl.options, b->err->msg) : NULL;
    for (const ck_ast_option *o = list->first; o; o = o->next)
        if (ck_view_eq_nocase(o->key, ck_view_of(name ? name : "connector"))) at = o->value_pos;
    if (b->err) ck_error_prefix(b->err, "table \"%s\": ", e->name);
    return ck_bind_at(b, at, s);
}

ck_status ck_bind_options(ck_binder *b, const ck_ast_options *list, ck_catalog_entry *e, ck_pos at, ck_pos statement) {
    ck_table_def *t = &e->table;
    const char **names = ck_arena_array(&e->arena, list->count + 1u, sizeof *names);
    const char **values = ck_arena_array(&e->arena, list->count + 1, sizeof *values);
    uint32_t n = 0;
    if (!names || !values) return ck_bind_nomem(b);
    CK_TRY(find_connector(b, list, e->name, at, &t->connector));
    t->decl.connector = t->connector;
    CK_TRY(keep_places(b, list, e, statement));
    for (const ck_ast_option *o = list->first; o; o = o->next) {
        names[n] = lower_copy(&e->arena, o->key);
        values[n] = ck_arena_strndup(&e->arena, o->value.p, o->value.n);
        if (!names[n] || !values[n]) return ck_bind_nomem(b);
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(names[k], names[n]) == 0) return ck_bind_fail(b, o->pos, "option '%s' is given twice", names[n]);
        n++;
        if (strcmp(names[n - 1], "connector") == 0) continue;
        const ck_option_desc *d = ck_bind_option_named(t->connector, ck_view_of(names[n - 1]));
        if (!d) return unknown(b, t->connector, o, ck_view_of(names[n - 1]));
        CK_TRY(check_value(b, d, o));
        if (is_relative_path(b, d, values[n - 1])) {
            values[n - 1] = ck_arena_printf(&e->arena, "%s/%s", b->catalog->base_dir, values[n - 1]);
            if (!values[n - 1]) return ck_bind_nomem(b);
            if (e->sql) CK_TRY(replace_value(b, e, o, statement, values[n - 1]));
        }
        bool one_of_some = strcmp(d->values, "boolean") == 0 || strchr(d->values, '|');
        if (one_of_some && !(values[n - 1] = lower_copy(&e->arena, o->value))) return ck_bind_nomem(b);
    }
    if (strcmp(t->connector->name, "memory") == 0) {
        CK_TRY(add_instance(b, e, &names[n], &values[n]));
        n++;
    }
    t->decl.options = (ck_table_options){names, values, n};
    return CK_OK;
}

static ck_status metadata_option(ck_binder *b, ck_catalog_entry *e, const ck_ast_column *c, const char **name,
                                 const char **value) {
    ck_view from = c->metadata.text.n ? c->metadata.text : c->name.text;
    char *lower = lower_copy(&e->arena, c->name.text);
    *name = lower ? ck_arena_printf(&e->arena, "metadata.%s", lower) : NULL;
    *value = lower_copy(&e->arena, from);
    if (!*name || !*value) return ck_bind_nomem(b);
    const ck_option_desc *d = ck_bind_option_named(e->table.connector, ck_view_of(*name));
    if (!d)
        return ck_bind_refuse(b, c->metadata_pos, "records of connector '%s' have no metadata",
                              e->table.connector->name);
    if (is_one_of(d->values, from)) return CK_OK;
    return ck_bind_fail(b, c->metadata_pos, "there is no metadata '%.*s': it is one of %s (METADATA FROM '...')",
                        ck_cut(from), from.p, d->values);
}

ck_status ck_bind_metadata(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t) {
    ck_table_options *o = &e->table.decl.options;
    uint32_t more = 0;
    for (const ck_ast_column *c = t->columns; c; c = c->next) more += c->metadata_pos.line != 0;
    if (more == 0) return CK_OK;
    const char **names = ck_arena_array(&e->arena, o->count + more, sizeof *names);
    const char **values = ck_arena_array(&e->arena, o->count + more, sizeof *values);
    if (!names || !values) return ck_bind_nomem(b);
    memcpy(names, o->names, o->count * sizeof *names);
    memcpy(values, o->values, o->count * sizeof *values);
    uint32_t n = o->count;
    for (const ck_ast_column *c = t->columns; c; c = c->next) {
        if (!c->metadata_pos.line) continue;
        CK_TRY(metadata_option(b, e, c, &names[n], &values[n]));
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(names[k], names[n]) == 0)
                return ck_bind_fail(b, c->metadata_pos, "option '%s' says it, too", names[n]);
        n++;
    }
    *o = (ck_table_options){names, values, n};
    return CK_OK;
}
