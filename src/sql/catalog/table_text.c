/* A table as the CREATE TABLE that makes it, for one that was not written so. */
#include "sql/catalog/catalog.h"
#include "sql/parse/parse.h"

static ck_status quoted(ck_bytes *out, const char *text, char quote) {
    CK_TRY(ck_bytes_char(out, quote));
    for (const char *c = text; *c; c++) {
        if (*c == quote) CK_TRY(ck_bytes_char(out, quote));
        CK_TRY(ck_bytes_char(out, *c));
    }
    return ck_bytes_char(out, quote);
}

static ck_status name(ck_bytes *out, const char *text) {
    return ck_parse_name_needs_quotes(ck_view_of(text)) ? quoted(out, text, '"') : ck_bytes_str(out, text);
}

/* As ck_type_print, with the quotes that SQL wants around a field's name. */
static ck_status type(ck_bytes *out, const ck_type *t) {
    static const char *const words[] = {[CK_TYPE_ARRAY] = "ARRAY<", [CK_TYPE_MAP] = "MAP<", [CK_TYPE_ROW] = "ROW<"};
    if (t->kind != CK_TYPE_ARRAY && t->kind != CK_TYPE_MAP && t->kind != CK_TYPE_ROW) return ck_type_print(t, out);
    CK_TRY(ck_bytes_str(out, words[t->kind]));
    for (uint32_t i = 0; i < t->field_count; i++) {
        const ck_field *f = &t->fields[i];
        if (i) CK_TRY(ck_bytes_str(out, ", "));
        if (t->kind == CK_TYPE_ROW) {
            CK_TRY(name(out, f->name));
            CK_TRY(ck_bytes_char(out, ' '));
        }
        CK_TRY(type(out, f->type));
        bool key_of_map = t->kind == CK_TYPE_MAP && i == 0; /* never NULL anyway */
        if (!f->nullable && !key_of_map) CK_TRY(ck_bytes_str(out, " NOT NULL"));
    }
    return ck_bytes_char(out, '>');
}

static ck_status column(ck_bytes *out, const ck_table_column *c) {
    CK_TRY(name(out, c->name));
    if (c->computed) {
        CK_TRY(ck_bytes_printf(out, " AS %s", c->computed_text));
    } else {
        CK_TRY(ck_bytes_char(out, ' '));
        CK_TRY(type(out, c->type));
        if (!c->nullable) CK_TRY(ck_bytes_str(out, " NOT NULL"));
        if (c->renamed_from) CK_TRY(ck_bytes_str(out, " RENAMED FROM "));
        if (c->renamed_from) CK_TRY(name(out, c->renamed_from));
    }
    if (!c->comment) return CK_OK;
    CK_TRY(ck_bytes_str(out, " COMMENT "));
    return quoted(out, c->comment, '\'');
}

/* Where options say the time, they are printed as what they are. */
static ck_status watermark(ck_bytes *out, const ck_table_def *t) {
    const ck_table_time *time = &t->time;
    if (!time->clause) return CK_OK;
    CK_TRY(ck_bytes_str(out, ",\n  WATERMARK FOR "));
    CK_TRY(name(out, t->columns[time->column].name));
    CK_TRY(ck_bytes_str(out, " AS "));
    CK_TRY(name(out, t->columns[time->column].name));
    if (time->lag_us == 0) return CK_OK;
    CK_TRY(ck_bytes_printf(out, " - INTERVAL '%lld", (long long)(time->lag_us / 1000000)));
    if (time->lag_us % 1000000) CK_TRY(ck_bytes_printf(out, ".%06lld", (long long)(time->lag_us % 1000000)));
    return ck_bytes_str(out, "' SECOND");
}

static ck_status key(ck_bytes *out, const ck_table_decl *t) {
    if (!t->primary_key_count) return CK_OK;
    CK_TRY(ck_bytes_str(out, ",\n  PRIMARY KEY ("));
    for (uint32_t i = 0; i < t->primary_key_count; i++) {
        if (i) CK_TRY(ck_bytes_str(out, ", "));
        CK_TRY(name(out, t->schema->fields[t->primary_key[i]].name));
    }
    return ck_bytes_str(out, ") NOT ENFORCED");
}

/* Names with a dot in front are the engine's own. */
static ck_status options(ck_bytes *out, const ck_table_options *o) {
    bool first = true;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->names[i][0] == '.') continue;
        CK_TRY(ck_bytes_str(out, first ? " WITH (" : ", "));
        CK_TRY(quoted(out, o->names[i], '\''));
        CK_TRY(ck_bytes_str(out, " = "));
        CK_TRY(quoted(out, o->values[i], '\''));
        first = false;
    }
    return first ? CK_OK : ck_bytes_char(out, ')');
}

ck_status ck_table_text(const ck_catalog_entry *e, ck_bytes *out) {
    const ck_table_def *t = &e->table;
    CK_TRY(ck_bytes_str(out, e->temporary ? "CREATE TEMPORARY TABLE " : "CREATE TABLE "));
    CK_TRY(name(out, e->name));
    CK_TRY(ck_bytes_str(out, " (\n"));
    for (uint32_t i = 0; i < t->column_count; i++) {
        CK_TRY(ck_bytes_str(out, i ? ",\n  " : "  "));
        CK_TRY(column(out, &t->columns[i]));
    }
    CK_TRY(watermark(out, t));
    CK_TRY(key(out, &t->decl));
    CK_TRY(ck_bytes_str(out, "\n)"));
    if (*t->comment) {
        CK_TRY(ck_bytes_str(out, " COMMENT "));
        CK_TRY(quoted(out, t->comment, '\''));
    }
    return options(out, &t->decl.options);
}
