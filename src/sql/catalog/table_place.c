/* Where in its CREATE TABLE a table is wrong. */
#include "sql/catalog/catalog.h"

/* Where the message says an option: 'name', or name = 'value'. */
static const char *said(const char *message, const char *name) {
    size_t n = strlen(name);
    for (const char *at = strcasestr(message, name); at; at = strcasestr(at + 1, name)) {
        bool quoted = at > message && at[-1] == '\'' && at[n] == '\'';
        bool with_value = (at == message || at[-1] == ' ') && strncmp(at + n, " = '", 4) == 0;
        if (quoted || with_value) return at;
    }
    return NULL;
}

const char *ck_table_option_said(const ck_table_options *o, const char *message) {
    const char *first = NULL, *name = NULL;
    for (uint32_t i = 0; i < o->count; i++) {
        const char *at = said(message, o->names[i]);
        if (at && (!first || at < first)) first = at, name = o->names[i];
    }
    return name;
}

ck_status ck_table_place(const ck_table_def *t, const char *option, ck_status s, ck_error *err) {
    const ck_table_options *o = &t->decl.options;
    if (s == CK_OK || s == CK_NOMEM || !err || !t->option_at) return s;
    if (!option) option = ck_table_option_said(o, err->msg);
    for (uint32_t i = 0; i < o->count; i++)
        if (strcmp(o->names[i], option ? option : "connector") == 0)
            return ck_source_place(&t->source, t->option_at[i], s, err);
    return s;
}
