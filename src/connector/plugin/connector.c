/* What SQL may say of a plugin's connector, and its table as the plugin sees it. */
#include "connector/plugin/plugin.h"
#include "connector/plugin/plugin_int.h"
#include "connector/secret.h"
#include "expr/plugin_column.h"

enum { SECRET_BYTES_MAX = 64 << 10, TABLE_BYTES_MAX = 64 << 20 };

/* Found from a table's declaration. */
typedef struct described {
    ck_connector_desc base; /* first */
    const ck_plugin_connector *of;
} described;

static const ck_plugin_connector *connector_of(const ck_table_decl *t) {
    return ((const described *)(const void *)t->connector)->of;
}

ck_status ck_plugin_connector_of(const ck_op_spec *spec, const ck_plugin_connector **out, ck_error *err) {
    const char *dot = strchr(spec->type, '.');
    *out = dot ? ck_library_connector(ck_spec_library(spec), dot + 1) : NULL;
    return *out ? CK_OK
                : ck_fail(err, CK_INVALID, "%s: there is no connector of %s in the plugins that are loaded (--plugin)",
                          spec->uid, spec->type);
}

ck_status ck_plugin_said(const ck_plugin_connector *c, const char *table, const char *what, clink_status s,
                         const clink_error *said, ck_error *err) {
    if (s == CLINK_OK) return CK_OK;
    ck_status st =
        ck_fail(err, ck_plugin_status(s), "table \"%s\", connector %s of plugin %s, %s: %s", table, c->face->name,
                c->plugin, what, said->message[0] ? said->message : "it failed and did not say why");
    if (err) err->fatal = st == CK_DATA || st == CK_INVALID, err->retriable = st == CK_IO;
    return st;
}

/* ---- the table ---- */

static ck_status put_columns(const ck_schema *s, ck_arena *a, clink_table *out, ck_error *err) {
    clink_field *columns = ck_arena_array(a, s->field_count + 1u, sizeof *columns);
    if (!columns) return ck_nomem(err, a->mem, s->field_count * sizeof *columns);
    for (uint32_t i = 0; i < s->field_count; i++) {
        const char *type = ck_type_name(a, s->fields[i].type);
        columns[i].name = ck_arena_strdup(a, s->fields[i].name);
        columns[i].type = !type || s->fields[i].nullable ? type : ck_arena_printf(a, "%s NOT NULL", type);
        if (!columns[i].name || !columns[i].type) return ck_nomem(err, a->mem, sizeof *columns);
    }
    out->columns = columns;
    out->column_count = s->field_count;
    return CK_OK;
}

static ck_status put_options(const ck_plugin_connector *c, const ck_table_options *o, ck_proc *resolve, ck_arena *a,
                             clink_table *out, ck_error *err) {
    uint32_t most = o->count + c->option_count, n = 0;
    const char **names = ck_arena_array(a, most + 1u, sizeof *names),
               **values = ck_arena_array(a, most + 1u, sizeof *values);
    if (!names || !values) return ck_nomem(err, a->mem, most * sizeof *names);
    for (uint32_t i = 0; i < o->count; i++) {
        const char *value = o->values[i];
        if (strcmp(o->names[i], "connector") == 0) continue;
        if (resolve) CK_TRY(ck_secret_resolve(resolve, o->names[i], value, SECRET_BYTES_MAX, a, &value, err));
        names[n] = ck_arena_strdup(a, o->names[i]);
        values[n] = ck_arena_strdup(a, value);
        if (!names[n] || !values[n]) return ck_nomem(err, a->mem, strlen(value));
        n++;
    }
    for (uint32_t i = 0; i < c->option_count; i++) {
        const clink_option *d = &c->face->options[i];
        if (!d->fallback || ck_option_text(o, d->name, NULL)) continue;
        names[n] = d->name;
        values[n++] = d->fallback;
    }
    out->option_names = names;
    out->option_values = values;
    out->option_count = n;
    return CK_OK;
}

ck_status ck_plugin_table_make(const ck_plugin_connector *c, const char *name, const ck_schema *schema,
                               const uint32_t *key, uint32_t key_count, const ck_table_options *options,
                               ck_proc *resolve, ck_arena *a, clink_table *out, ck_error *err) {
    uint32_t *columns = ck_arena_array(a, key_count + 1u, sizeof *columns);
    *out = (clink_table){.struct_bytes = sizeof *out, .key_count = key_count, .key = columns};
    out->name = ck_arena_strdup(a, name ? name : "");
    if (!columns || !out->name) return ck_nomem(err, a->mem, sizeof *columns);
    if (key_count) memcpy(columns, key, key_count * sizeof *columns);
    CK_TRY(put_columns(schema, a, out, err));
    return put_options(c, options, resolve, a, out, err);
}

/* ---- what is asked when a table is made and a query is planned ---- */

static ck_status check_columns(const ck_plugin_connector *c, const ck_table_decl *t, ck_error *err) {
    for (uint32_t i = 0; i < t->schema->field_count; i++) {
        const ck_field *f = &t->schema->fields[i];
        if (ck_plugin_layout(ck_type_phys(f->type)) == CLINK_LAYOUT_OTHER)
            return ck_fail(
                err, CK_INVALID,
                "column \"%s\" is an ARRAY, MAP or ROW, and the tables of connector %s of plugin %s have none", f->name,
                c->face->name, c->plugin);
    }
    return CK_OK;
}

static ck_status ask_plugin(const ck_plugin_connector *c, const ck_table_decl *t, bool as_sink, ck_arena *a,
                            ck_error *err) {
    clink_table table;
    clink_error said = {0};
    CK_TRY(ck_plugin_table_make(c, t->name, t->schema, t->primary_key, t->primary_key_count, &t->options, NULL, a,
                                &table, err));
    clink_status s = c->face->check(&table, as_sink, &said);
    if (s == CLINK_OK) return CK_OK;
    return ck_fail(err, CK_INVALID, "%s",
                   said.message[0] ? said.message : "its connector refuses it and does not say why");
}

static ck_status check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    const ck_plugin_connector *c = connector_of(t);
    if (as_sink ? !c->face->sink : !c->face->source) return CK_OK; /* the planner says it */
    CK_TRY(check_columns(c, t, err));
    if (!c->face->check) return CK_OK;
    ck_arena a;
    ck_arena_init(&a, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, TABLE_BYTES_MAX);
    ck_status s = ask_plugin(c, t, as_sink, &a, err);
    ck_arena_destroy(&a);
    return s;
}

static bool bounded(const ck_table_decl *t) {
    const ck_plugin_connector *c = connector_of(t);
    clink_table table;
    ck_arena a;
    if (!c->face->source || !c->face->source->endless) return true;
    ck_arena_init(&a, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, TABLE_BYTES_MAX);
    ck_status s = ck_plugin_table_make(c, t->name, t->schema, t->primary_key, t->primary_key_count, &t->options, NULL,
                                       &a, &table, NULL);
    bool ends = s == CK_OK && !c->face->source->endless(&table);
    ck_arena_destroy(&a);
    return ends;
}

static bool takes_changes(const ck_table_decl *t) { return connector_of(t)->face->sink->flags & CLINK_TAKES_CHANGES; }

static bool takes_upserts(const ck_table_decl *t) {
    return connector_of(t)->face->sink->flags & CLINK_TAKES_UPSERTS && t->primary_key_count;
}

static ck_guarantee guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    *why = NULL;
    if (!checkpoints || connector_of(t)->face->sink->prepare) return CK_EXACTLY_ONCE;
    *why = "its connector has no commit, so that rows written before a crash are written again after it";
    return CK_AT_LEAST_ONCE;
}

/* ---- descriptors ---- */

static ck_status describe_options(const ck_plugin_connector *c, ck_arena *a, const ck_option_desc **out) {
    ck_option_desc *options = ck_arena_array(a, c->option_count + 1u, sizeof *options);
    if (!options) return CK_NOMEM;
    for (uint32_t i = 0; i < c->option_count; i++) {
        const clink_option *o = &c->face->options[i];
        options[i] = (ck_option_desc){.name = o->name, .values = o->values, .deflt = o->fallback, .help = o->help};
    }
    *out = options;
    return CK_OK;
}

static ck_status describe_source(const ck_plugin_connector *c, ck_arena *a, const ck_op_desc **out) {
    if (!c->face->source) return CK_OK;
    ck_op_desc *d = CK_ARENA_NEW(a, ck_op_desc);
    const char *type = ck_arena_printf(a, "source.%s", c->face->name);
    if (!d || !type) return CK_NOMEM;
    *d = (ck_op_desc){.type = type,
                      .source = &ck_plugin_source_vtbl,
                      .create = ck_plugin_source_create,
                      .enumerate = ck_plugin_source_enumerate};
    *out = d;
    return CK_OK;
}

static ck_status describe_sink(const ck_plugin_connector *c, ck_arena *a, const ck_op_desc **out) {
    if (!c->face->sink) return CK_OK;
    bool commits = c->face->sink->prepare;
    ck_op_desc *d = CK_ARENA_NEW(a, ck_op_desc);
    const char *type = ck_arena_printf(a, "sink.%s", c->face->name);
    if (!d || !type) return CK_NOMEM;
    *d = (ck_op_desc){.type = type,
                      .op = &ck_plugin_sink_vtbl,
                      .create = ck_plugin_sink_create,
                      .committer = commits ? &ck_plugin_committer_vtbl : NULL,
                      .create_committer = commits ? ck_plugin_committer_create : NULL,
                      .slots = commits ? ck_plugin_sink_slots : NULL};
    *out = d;
    return CK_OK;
}

ck_status ck_plugin_connector_describe(const ck_plugin_connector *c, ck_arena *a, ck_plugin_described *out) {
    described *d = CK_ARENA_NEW(a, described);
    const ck_option_desc *options;
    *out = (ck_plugin_described){0};
    if (!d) return CK_NOMEM;
    CK_TRY(describe_options(c, a, &options));
    CK_TRY(describe_source(c, a, &out->source));
    CK_TRY(describe_sink(c, a, &out->sink));
    *d = (described){.of = c,
                     .base = {.name = c->face->name,
                              .options = options,
                              .option_count = c->option_count,
                              .source_type = out->source ? out->source->type : NULL,
                              .sink_type = out->sink ? out->sink->type : NULL,
                              .check = check,
                              .bounded = bounded,
                              .accepts_changes = takes_changes,
                              .accepts_upserts = takes_upserts,
                              .guarantee = guarantee}};
    out->connector = &d->base;
    return CK_OK;
}

const ck_plugin_connector *ck_plugin_connector_described(const ck_connector_desc *d) {
    return d->check == check ? ((const described *)(const void *)d)->of : NULL;
}
