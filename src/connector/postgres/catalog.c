/* What a table is on the server, asked before anything runs: which columns are there, and whether their types and the
 * declared ones fit together without losing anything. */
#include <stdio.h>
#include <stdlib.h>

#include "connector/postgres/pg_int.h"

/* Of one column; a domain counts as what it is made of, an array has its element's type. */
static const char columns_sql[] =
    "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
    " CASE WHEN t.typcategory = 'A' THEN e.typname ELSE t.typname END,"
    " t.typcategory = 'A', a.attnotnull, a.attgenerated <> '' OR a.attidentity = 'a',"
    " CASE WHEN d.typtype = 'd' THEN d.typtypmod ELSE a.atttypmod END, a.atttypid,"
    " CASE WHEN a.atttypid = 1042 THEN "
    "'bpchar' ELSE pg_catalog.format_type(a.atttypid, NULL) END"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type d ON d.oid = a.atttypid"
    " JOIN pg_catalog.pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END"
    " LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem"
    " WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped";

static const char table_sql[] =
    "SELECT c.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), c.relkind,"
    " c.relreplident, CASE WHEN c.relkind IN ('r', 'm', 't') THEN pg_catalog.pg_relation_size(c.oid) ELSE 0 END,"
    " n.nspname, c.relname"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.oid = pg_catalog.to_regclass($1)";

/* ---- types ---- */

static int digits_of(const char *base) { /* an integer's, 0: none */
    return strcmp(base, "int2") == 0 ? 5 : strcmp(base, "int4") == 0 ? 10 : strcmp(base, "int8") == 0 ? 19 : 0;
}
static int width_of(const char *base) {
    return strcmp(base, "int2") == 0 ? 2 : strcmp(base, "int4") == 0 ? 4 : strcmp(base, "int8") == 0 ? 8 : 0;
}
static int width_of_kind(ck_kind k) {
    return k <= CK_TYPE_SMALLINT ? 2 : k == CK_TYPE_INTEGER ? 4 : 8; /* TINYINT: values are checked */
}

static bool decimal_reads(const ck_type *t, const ck_pg_column *c) {
    if (digits_of(c->base)) return t->precision - t->scale >= digits_of(c->base);
    if (strcmp(c->base, "numeric") != 0) return false;
    return c->precision < 0 || (t->scale >= c->scale && t->precision - t->scale >= c->precision - c->scale);
}

static bool decimal_writes(const ck_type *t, const ck_pg_column *c) {
    if (strcmp(c->base, "numeric") != 0) return false;
    return c->precision < 0 || (c->scale >= t->scale && c->precision - c->scale >= t->precision - t->scale);
}

static bool fits(const ck_type *t, const ck_pg_column *c, bool writing) {
    const char *base = c->base;
    if (t->kind == CK_TYPE_VARCHAR) return true; /* anything has its text; the server judges what is written */
    if (t->kind == CK_TYPE_ARRAY) {
        if (!c->array || t->fields[0].type->kind == CK_TYPE_ARRAY) return false;
        ck_pg_column element = *c;
        element.array = false;
        return fits(t->fields[0].type, &element, writing);
    }
    if (c->array) return false;
    switch (t->kind) {
    case CK_TYPE_BOOLEAN: return strcmp(base, "bool") == 0;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT:
        if (writing && strcmp(base, "numeric") == 0) return c->precision < 0 || c->precision - c->scale >= 19;
        if (!width_of(base)) return false;
        return writing ? width_of(base) >= width_of_kind(t->kind) : width_of(base) <= width_of_kind(t->kind);
    case CK_TYPE_REAL: return strcmp(base, "float4") == 0 || (writing && strcmp(base, "float8") == 0);
    case CK_TYPE_DOUBLE: return strcmp(base, "float8") == 0 || (!writing && strcmp(base, "float4") == 0);
    case CK_TYPE_DECIMAL: return writing ? decimal_writes(t, c) : decimal_reads(t, c);
    case CK_TYPE_BYTES: return strcmp(base, "bytea") == 0;
    case CK_TYPE_DATE: return strcmp(base, "date") == 0;
    case CK_TYPE_TIME: return strcmp(base, "time") == 0;
    case CK_TYPE_TIMESTAMP: return strcmp(base, "timestamp") == 0;
    case CK_TYPE_TIMESTAMP_LTZ: return strcmp(base, "timestamptz") == 0;
    default: return false;
    }
}

/* What to declare for a column of the server; NULL: VARCHAR. */
static const char *suggestion(ck_arena *a, const ck_pg_column *c) {
    static const char *const names[][2] = {{"bool", "BOOLEAN"},
                                           {"int2", "SMALLINT"},
                                           {"int4", "INTEGER"},
                                           {"int8", "BIGINT"},
                                           {"float4", "REAL"},
                                           {"float8", "DOUBLE"},
                                           {"bytea", "BYTES"},
                                           {"date", "DATE"},
                                           {"time", "TIME"},
                                           {"timestamp", "TIMESTAMP(6)"},
                                           {"timestamptz", "TIMESTAMP_LTZ(6)"}};
    const char *name = "VARCHAR";
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++)
        if (strcmp(c->base, names[i][0]) == 0) name = names[i][1];
    int scale = c->scale < 0 ? 0 : c->scale, digits = c->precision - (c->scale < 0 ? c->scale : 0);
    if (digits < scale) digits = scale; /* numeric(2,4): 0.0012 */
    if (strcmp(c->base, "numeric") == 0)
        name = digits > 38        ? "VARCHAR"
               : c->precision > 0 ? ck_arena_printf(a, "DECIMAL(%d,%d)", digits, scale)
                                  : "DECIMAL(38,s) with as many digits behind the point as its values have";
    if (name && c->array) name = ck_arena_printf(a, "ARRAY<%s>", name);
    return name ? name : "VARCHAR";
}

static ck_status check_type(ck_arena *a, const ck_pg_table *t, const ck_field *f, const ck_pg_column *c, bool writing,
                            ck_error *err) {
    if (!ck_pg_has_type(f->type))
        return ck_fail(err, CK_INVALID,
                       "column \"%s\" is %s, which connector 'postgres' does not %s; declare it VARCHAR, the text the "
                       "server has for it",
                       f->name, ck_type_name(a, f->type), writing ? "write" : "read");
    if (writing && c->generated)
        return ck_fail(err, CK_INVALID, "column \"%s\" of %s is generated by the server and cannot be written", f->name,
                       t->shown);
    if (!fits(f->type, c, writing))
        return ck_fail(err, CK_INVALID,
                       "column \"%s\" of %s is %s on the server and %s in the table here; declare it %s", f->name,
                       t->shown, c->type, ck_type_name(a, f->type), suggestion(a, c));
    return CK_OK;
}

/* ---- asking ---- */

static ck_status find_table(ck_pg *c, ck_arena *a, const char *name, ck_pg_table *t, ck_error *err) {
    PGresult *r;
    CK_TRY(ck_pg_query(c, table_sql, 1, &name, &r, err));
    const ck_pg_lib *lib = c->lib;
    bool found = lib->PQntuples(r) == 1;
    if (found) {
        t->oid = (uint32_t)strtoul(lib->PQgetvalue(r, 0, 0), NULL, 10);
        t->name = ck_arena_strdup(a, lib->PQgetvalue(r, 0, 1));
        t->kind = lib->PQgetvalue(r, 0, 2)[0];
        t->replica_identity = lib->PQgetvalue(r, 0, 3)[0];
        t->bytes = strtoll(lib->PQgetvalue(r, 0, 4), NULL, 10);
        t->schema_bare = ck_arena_strdup(a, lib->PQgetvalue(r, 0, 5));
        t->name_bare = ck_arena_strdup(a, lib->PQgetvalue(r, 0, 6));
    }
    lib->PQclear(r);
    t->shown = t->name;
    if (found) return t->name && t->schema_bare && t->name_bare ? CK_OK : ck_nomem(err, a->mem, 256);
    return ck_fail(err, CK_NOTFOUND, "PostgreSQL at %s has no table %s that this user sees (option 'table')",
                   ck_pg_where(c->options), name);
}

static void read_modifier(ck_pg_column *c, int32_t modifier) {
    c->precision = c->scale = -1;
    if (strcmp(c->base, "numeric") == 0 && modifier >= 4) {
        c->precision = (modifier - 4) >> 16 & 0xffff;
        c->scale = ((modifier - 4) & 0x7ff) - ((modifier - 4) & 0x400 ? 0x800 : 0);
    }
}

static ck_status read_column(const ck_pg_lib *lib, const PGresult *r, int row, ck_arena *a, ck_pg_column *c,
                             ck_error *err) {
    c->ident = ck_pg_ident(a, lib->PQgetvalue(r, row, 0));
    c->type = ck_arena_strdup(a, lib->PQgetvalue(r, row, 1));
    c->base = ck_arena_strdup(a, lib->PQgetvalue(r, row, 2));
    c->array = lib->PQgetvalue(r, row, 3)[0] == 't';
    c->not_null = lib->PQgetvalue(r, row, 4)[0] == 't';
    c->generated = lib->PQgetvalue(r, row, 5)[0] == 't';
    c->bare = ck_arena_strdup(a, lib->PQgetvalue(r, row, 8));
    if (!c->ident || !c->type || !c->base || !c->bare) return ck_nomem(err, a->mem, 256);
    c->type_oid = (uint32_t)strtoul(lib->PQgetvalue(r, row, 7), NULL, 10);
    read_modifier(c, (int32_t)strtol(lib->PQgetvalue(r, row, 6), NULL, 10));
    return CK_OK;
}

/* A declared name is the server's, letter for letter; where none is, one that differs in case only. */
static int row_of(const ck_pg_lib *lib, const PGresult *r, const char *name) {
    int near = -1;
    for (int i = 0; i < lib->PQntuples(r); i++) {
        const char *has = lib->PQgetvalue(r, i, 0);
        if (strcmp(has, name) == 0) return i;
        if (ck_view_eq_nocase(ck_view_of(has), ck_view_of(name))) near = near == -1 ? i : -2;
    }
    return near;
}

static ck_status read_columns(ck_pg *c, ck_arena *a, const PGresult *r, const ck_schema *schema, const bool *wanted,
                              bool writing, ck_pg_table *t, ck_error *err) {
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (wanted && !wanted[i]) continue;
        int row = row_of(c->lib, r, schema->fields[i].name);
        if (row < 0)
            return ck_fail(err, CK_NOTFOUND, "table %s on the server has no column \"%s\"", t->shown,
                           schema->fields[i].name);
        CK_TRY(read_column(c->lib, r, row, a, &t->columns[i], err));
        CK_TRY(check_type(a, t, &schema->fields[i], &t->columns[i], writing, err));
    }
    return CK_OK;
}

ck_status ck_pg_table_read(ck_pg *c, ck_arena *a, const char *table, const ck_schema *schema, const bool *wanted,
                           bool for_writing, ck_pg_table *out, ck_error *err) {
    char oid[16];
    const char *value = oid;
    PGresult *r;
    *out = (ck_pg_table){0};
    CK_TRY(find_table(c, a, table, out, err));
    out->columns = ck_arena_array(a, schema->field_count + 1u, sizeof *out->columns);
    if (!out->columns) return ck_nomem(err, a->mem, schema->field_count * sizeof *out->columns);
    (void)snprintf(oid, sizeof oid, "%u", out->oid);
    CK_TRY(ck_pg_query(c, columns_sql, 1, &value, &r, err));
    ck_status s = read_columns(c, a, r, schema, wanted, for_writing, out, err);
    c->lib->PQclear(r);
    return s;
}

ck_status ck_pg_key_is_unique(ck_pg *c, ck_arena *a, const ck_pg_table *t, const uint32_t *key, uint32_t count,
                              bool *unique, ck_error *err) {
    static const char sql[] =
        "SELECT (SELECT array_agg(pg_catalog.quote_ident(a.attname) ORDER BY 1) FROM pg_catalog.pg_attribute a"
        " WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0 : i.indnkeyatts - 1]))::text ="
        " (SELECT array_agg(pg_catalog.quote_ident(k) ORDER BY 1) FROM unnest($2::text[]) k)::text"
        " FROM pg_catalog.pg_index i WHERE i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indimmediate"
        " AND i.indpred IS NULL AND i.indexprs IS NULL";
    ck_bytes list;
    char oid[16];
    (void)snprintf(oid, sizeof oid, "%u", t->oid);
    ck_bytes_init(&list, a->mem, 1 << 20);
    ck_status s = ck_bytes_char(&list, '{');
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        /* An identifier's quotes are doubled, an array's are escaped: the names go without the former. */
        const char *p = t->columns[key[i]].ident + 1, *end = t->columns[key[i]].ident + strlen(p);
        if (i) s = ck_bytes_char(&list, ',');
        if (s == CK_OK) s = ck_bytes_char(&list, '"');
        for (; s == CK_OK && p < end; p++) {
            if (*p == '"' && p[1] == '"') p++;
            if (*p == '"' || *p == '\\') s = ck_bytes_char(&list, '\\');
            if (s == CK_OK) s = ck_bytes_char(&list, *p);
        }
        if (s == CK_OK) s = ck_bytes_char(&list, '"');
    }
    if (s == CK_OK) s = ck_bytes_char(&list, '}');
    if (s == CK_OK) s = ck_bytes_terminate(&list);
    PGresult *r = NULL;
    if (s != CK_OK) s = ck_nomem(err, a->mem, list.n);
    const char *values[] = {oid, list.p};
    if (s == CK_OK) s = ck_pg_query(c, sql, 2, values, &r, err);
    *unique = false;
    for (int i = 0; s == CK_OK && i < c->lib->PQntuples(r); i++) *unique |= c->lib->PQgetvalue(r, i, 0)[0] == 't';
    if (r) c->lib->PQclear(r);
    ck_bytes_destroy(&list);
    return s;
}
