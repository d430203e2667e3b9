/* Ranges of pages as splits of a scan. All are read in one snapshot, which a transaction of its own holds open until
 * their owners have taken it. */
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json.h"
#include "connector/postgres/pg_int.h"

enum { PAGES_MIN = 64, SPLITS_A_SUBTASK = 4, TABLES_MAX = 100000 };

/* ---- JSON ---- */

ck_status ck_pg_split_print(ck_arena *a, const ck_pg_split *s, const char **out, ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "table", s->table) &&
              yyjson_mut_obj_add_str(doc, root, "snapshot", s->snapshot) &&
              yyjson_mut_obj_add_uint(doc, root, "from", s->from) && yyjson_mut_obj_add_uint(doc, root, "to", s->to) &&
              yyjson_mut_obj_add_uint(doc, root, "page", s->block) &&
              yyjson_mut_obj_add_uint(doc, root, "item", s->item) &&
              (!s->finished || yyjson_mut_obj_add_bool(doc, root, "finished", true)) &&
              (!s->stored || yyjson_mut_obj_add_bool(doc, root, "stored", true)) &&
              (s->time_us == INT64_MIN || yyjson_mut_obj_add_sint(doc, root, "time", s->time_us));
    if (!ok) return ck_nomem(err, a->mem, strlen(s->table));
    ck_view text;
    CK_TRY(ck_json_write(a, doc, &text, err));
    *out = text.p;
    return CK_OK;
}

static bool number(yyjson_val *root, const char *name, uint32_t *out) {
    yyjson_val *v = yyjson_obj_get(root, name);
    *out = (uint32_t)yyjson_get_uint(v);
    return yyjson_is_uint(v) && yyjson_get_uint(v) <= UINT32_MAX;
}

ck_status ck_pg_split_parse(ck_arena *a, const char *spec, ck_pg_split *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *table = yyjson_obj_get(root, "table"),
               *snapshot = yyjson_obj_get(root, "snapshot"), *time = yyjson_obj_get(root, "time");
    bool ok = yyjson_is_str(table) && yyjson_is_str(snapshot) && number(root, "from", &out->from) &&
              number(root, "to", &out->to) && number(root, "page", &out->block) && number(root, "item", &out->item) &&
              (!time || yyjson_is_int(time));
    if (!ok) return ck_fail(err, CK_CORRUPT, "this is no split of a PostgreSQL table: %.200s", spec);
    out->table = yyjson_get_str(table);
    out->snapshot = yyjson_get_str(snapshot);
    out->finished = yyjson_get_bool(yyjson_obj_get(root, "finished"));
    out->stored = yyjson_get_bool(yyjson_obj_get(root, "stored"));
    out->time_us = time ? yyjson_get_sint(time) : INT64_MIN;
    return CK_OK;
}

/* ---- the snapshot's holder ---- */

typedef struct holder {
    ck_mem mem;
    ck_pg pg;
} holder;

static void release(void *held) {
    holder *h = held;
    ck_pg_close(&h->pg);
    ck_free(h->mem, h, sizeof *h);
}

ck_status ck_pg_table_lock(ck_pg *c, ck_arena *a, const ck_pg_table *t, ck_error *err) {
    bool lockable = t->kind == 'r' || t->kind == 'p';
    const char *sql =
        ck_arena_printf(a, lockable ? "LOCK TABLE %s IN ACCESS SHARE MODE" : "SELECT 1 FROM %s LIMIT 0", t->name);
    return sql ? ck_pg_run(c, sql, err) : ck_nomem(err, a->mem, strlen(t->name));
}

/* The table is locked before the snapshot is taken, which is taken by the first query. */
static ck_status export(ck_pg *c, ck_arena *a, const ck_pg_table *t, const char **snapshot, ck_error *err) {
    PGresult *r;
    /* Whoever reads takes it at once; the server ends the transaction when nobody needs it any more. */
    CK_TRY(ck_pg_run(c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err));
    CK_TRY(ck_pg_table_lock(c, a, t, err));
    CK_TRY(ck_pg_run(c, "SET LOCAL idle_in_transaction_session_timeout = '60s'", err));
    CK_TRY(ck_pg_query(c, "SELECT pg_catalog.pg_export_snapshot()", 0, NULL, &r, err));
    *snapshot = ck_arena_strdup(a, c->lib->PQgetvalue(r, 0, 0));
    c->lib->PQclear(r);
    return *snapshot ? CK_OK : ck_nomem(err, a->mem, 64);
}

/* ---- cutting ---- */

static ck_status cut(const ck_pg_split *whole, const char *shown, uint64_t pages, uint64_t piece, ck_arena *a,
                     ck_split_list *out, ck_error *err) {
    for (uint64_t from = 0; from == 0 || from < pages; from += piece) {
        ck_pg_split s = *whole;
        s.from = (uint32_t)from;
        s.to = from + piece < pages ? (uint32_t)(from + piece) : UINT32_MAX;
        const char *id = ck_arena_printf(a, "%s@%llu", shown, (unsigned long long)from), *text;
        CK_TRY(ck_pg_split_print(a, &s, &text, err));
        if (!id || ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(err, a->mem, strlen(text));
    }
    return CK_OK;
}

/* The table and what inherits from it, a row each: name, kind, pages. */
static ck_status family(ck_pg *c, const ck_pg_table *t, PGresult **out, ck_error *err) {
    static const char sql[] =
        "WITH RECURSIVE x(oid) AS (SELECT $1::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN x ON "
        "i.inhparent = x.oid) SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), "
        "c.relkind, CASE WHEN c.relkind IN ('r', 'm') THEN pg_catalog.pg_relation_size(c.oid) / "
        "pg_catalog.current_setting('block_size')::bigint ELSE 0 END FROM x JOIN pg_catalog.pg_class c ON c.oid = "
        "x.oid "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid";
    char oid[16];
    const char *value = oid;
    (void)snprintf(oid, sizeof oid, "%u", t->oid);
    return ck_pg_query(c, sql, 1, &value, out, err);
}

static ck_status cut_all(ck_pg *c, const PGresult *r, const char *snapshot, uint32_t parallelism, ck_arena *a,
                         ck_split_list *out, ck_error *err) {
    const ck_pg_lib *lib = c->lib;
    uint64_t pages = 0;
    int n = lib->PQntuples(r);
    if (n > TABLES_MAX) return ck_fail(err, CK_FULL, "the table has %d parts, more than %d", n, TABLES_MAX);
    for (int i = 0; i < n; i++) pages += strtoull(lib->PQgetvalue(r, i, 2), NULL, 10);
    uint64_t piece = pages / ((uint64_t)parallelism * SPLITS_A_SUBTASK) + 1;
    if (piece < PAGES_MIN) piece = PAGES_MIN;
    for (int i = 0; i < n; i++) {
        char kind = lib->PQgetvalue(r, i, 1)[0];
        const char *name = ck_arena_strdup(a, lib->PQgetvalue(r, i, 0));
        if (!name) return ck_nomem(err, a->mem, 256);
        if (kind == 'p') continue; /* its rows are in its parts */
        if (kind != 'r' && kind != 'm')
            return ck_fail(err, CK_REFUSED,
                           "%s is no table but a %s, and its rows have no place to go on from; read the tables behind "
                           "it, or make a materialized view",
                           name,
                           kind == 'v'   ? "view"
                           : kind == 'f' ? "foreign table"
                                         : "relation of another kind");
        ck_pg_split whole = {.table = name, .snapshot = snapshot, .time_us = INT64_MIN};
        CK_TRY(cut(&whole, name, strtoull(lib->PQgetvalue(r, i, 2), NULL, 10), piece, a, out, err));
    }
    return CK_OK;
}

const bool *ck_pg_columns_read(ck_arena *a, const ck_source_table *t, const ck_pg_options *o) {
    bool *read = ck_arena_array(a, t->schema->field_count + 1u, sizeof *read);
    /* What is skipped does not depend on the query. */
    bool all = o->strict || o->on_error != CK_ON_ERROR_FAIL;
    for (uint32_t i = 0; read && i < t->schema->field_count; i++)
        read[i] = all || t->wanted[i] || (t->checked && t->checked[i]);
    return read;
}

static ck_status enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_pg *c, ck_arena *a, ck_split_list *out,
                           ck_error *err) {
    ck_source_table table;
    ck_pg_options o;
    ck_pg_table t;
    const char *snapshot;
    PGresult *r;
    CK_TRY(ck_source_table_read(a, spec, &table, err));
    CK_TRY(ck_pg_options_read(&table.options, &o, err));
    const bool *read = ck_pg_columns_read(a, &table, &o);
    if (!read) return ck_nomem(err, a->mem, table.schema->field_count);
    CK_TRY(ck_pg_connect(c, spec->proc, &o, false, err));
    CK_TRY(ck_pg_table_read(c, a, o.table ? o.table : table.table, table.schema, read, false, &t, err));
    CK_TRY(export(c, a, &t, &snapshot, err));
    CK_TRY(family(c, &t, &r, err));
    ck_status s = cut_all(c, r, snapshot, parallelism, a, out, err);
    c->lib->PQclear(r);
    return s;
}

ck_status ck_pg_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    ck_mem mem = ck_proc_mem(spec->proc, CK_MEM_PLAN);
    ck_arena a;
    holder *h = ck_alloc_zero(mem, sizeof *h);
    if (!h) return ck_nomem(err, mem, sizeof *h);
    h->mem = mem;
    ck_arena_init(&a, mem, CK_PARAMS_BYTES_MAX);
    ck_status s = enumerate(spec, parallelism, &h->pg, &a, out, err);
    h->pg.options = NULL;
    ck_arena_destroy(&a);
    if (s != CK_OK) {
        release(h);
        return s;
    }
    out->held = h;
    out->release = release;
    return CK_OK;
}
