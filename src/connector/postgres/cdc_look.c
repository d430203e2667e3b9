/* What following a table needs of the server, asked before anything runs, a sentence for each thing that is missing. */
#include <poll.h>
#include <stdio.h>

#include "base/hash.h"
#include "connector/postgres/cdc_int.h"

enum { TRIES = 100, PAUSE_MS = 50 };

static ck_status text_of(ck_pg *c, ck_arena *a, const char *sql, int count, const char *const *values, const char **out,
                         ck_error *err) {
    PGresult *r;
    *out = NULL;
    CK_TRY(ck_pg_query(c, sql, count, values, &r, err));
    if (c->lib->PQntuples(r) && !c->lib->PQgetisnull(r, 0, 0)) *out = ck_arena_strdup(a, c->lib->PQgetvalue(r, 0, 0));
    bool lost = c->lib->PQntuples(r) && !c->lib->PQgetisnull(r, 0, 0) && !*out;
    c->lib->PQclear(r);
    return lost ? ck_nomem(err, a->mem, 64) : CK_OK;
}

static ck_status check_server(ck_pg *c, ck_arena *a, ck_error *err) {
    const char *level, *may;
    CK_TRY(text_of(c, a, "SHOW wal_level", 0, NULL, &level, err));
    if (!level || strcmp(level, "logical") != 0)
        return ck_fail(
            err, CK_REFUSED,
            "PostgreSQL at %s has wal_level = %s, and changes can only be followed with wal_level = logical (in "
            "postgresql.conf; the server must be started again)",
            ck_pg_where(c->options), level ? level : "?");
    CK_TRY(text_of(c, a, "SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user", 0,
                   NULL, &may, err));
    if (may && may[0] == 't') return CK_OK;
    return ck_fail(err, CK_REFUSED, "this user may not follow changes: ALTER ROLE ... REPLICATION on the server at %s",
                   ck_pg_where(c->options));
}

/* A publication may send some of the rows, which the first reading does not know; before version 15 there is no such
 * thing, and no such column. values: its name, the table's oid. */
static ck_status check_rows(ck_pg *c, ck_arena *a, const ck_pg_table *t, const char *const *values, ck_error *err) {
    const char *filter;
    CK_TRY(text_of(c, a,
                   "SELECT to_jsonb(p) ->> 'rowfilter' FROM pg_catalog.pg_publication_tables p, pg_catalog.pg_class c, "
                   "pg_catalog.pg_namespace n WHERE p.pubname = $1 AND c.oid = $2::oid AND n.oid = c.relnamespace AND "
                   "p.schemaname = n.nspname AND p.tablename = c.relname",
                   2, values, &filter, err));
    if (!filter) return CK_OK;
    return ck_fail(
        err, CK_REFUSED,
        "publication \"%s\" has only the rows of %s WHERE %.300s, and a table is followed with all its rows: a "
        "publication of its own without WHERE, and the condition in the query",
        values[0], t->shown, filter);
}

/* The columns it sends: those of its list, and generated ones from version 18 on where it says so. */
static ck_status check_columns(ck_pg *c, ck_arena *a, const ck_source_table *table, const bool *read,
                               const ck_pg_table *t, ck_error *err) {
    static const char sql[] =
        "SELECT a.attname, a.attgenerated <> '' FROM pg_catalog.pg_publication_tables p, pg_catalog.pg_class c, "
        "pg_catalog.pg_namespace n, pg_catalog.pg_attribute a WHERE p.pubname = $1 AND c.oid = $2::oid AND n.oid = "
        "c.relnamespace AND p.schemaname = n.nspname AND p.tablename = c.relname AND a.attrelid = c.oid AND a.attnum > "
        "0 "
        "AND NOT a.attisdropped AND (CASE WHEN to_jsonb(p) -> 'attnames' IS NULL THEN false ELSE NOT (to_jsonb(p) -> "
        "'attnames') ? a.attname END OR (a.attgenerated <> '' AND current_setting('server_version_num')::int < "
        "180000))";
    char oid[16];
    const char *values[] = {c->options->publication, oid};
    PGresult *r;
    ck_status s = CK_OK;
    (void)snprintf(oid, sizeof oid, "%u", t->oid);
    CK_TRY(ck_pg_query(c, sql, 2, values, &r, err));
    for (int i = 0; s == CK_OK && i < c->lib->PQntuples(r); i++) {
        const char *ident = ck_pg_ident(a, c->lib->PQgetvalue(r, i, 0));
        if (!ident) s = ck_nomem(err, a->mem, 64);
        for (uint32_t k = 0; s == CK_OK && k < table->schema->field_count; k++)
            if (read[k] && strcmp(ident, t->columns[k].ident) == 0)
                s = ck_fail(err, CK_REFUSED, "publication \"%s\" does not send column \"%s\" of %s: %s",
                            c->options->publication, table->schema->fields[k].name, t->shown,
                            c->lib->PQgetvalue(r, i, 1)[0] == 't' ? "the server generates it; compute it in the query"
                                                                  : "its list of columns leaves it out");
    }
    c->lib->PQclear(r);
    return s;
}

static ck_status check_publication(ck_pg *c, ck_arena *a, const ck_pg_table *t, ck_error *err) {
    const char *name = c->options->publication, *found;
    char oid[16];
    (void)snprintf(oid, sizeof oid, "%u", t->oid);
    CK_TRY(text_of(c, a,
                   "SELECT pubinsert AND pubupdate AND pubdelete FROM pg_catalog.pg_publication WHERE pubname = $1", 1,
                   &name, &found, err));
    if (!found)
        return ck_fail(err, CK_REFUSED,
                       "there is no publication \"%s\" on the server at %s: CREATE PUBLICATION %s FOR TABLE %s", name,
                       ck_pg_where(c->options), name, t->shown);
    if (found[0] != 't')
        return ck_fail(err, CK_REFUSED,
                       "publication \"%s\" leaves inserts, updates or deletes out: ALTER PUBLICATION %s SET "
                       "(publish = 'insert, update, delete, truncate')",
                       name, name);
    const char *values[] = {name, oid};
    CK_TRY(text_of(
        c, a,
        "SELECT 1 FROM pg_catalog.pg_publication_tables p, pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE "
        "p.pubname = $1 AND c.oid = $2::oid AND n.oid = c.relnamespace AND p.schemaname = n.nspname AND "
        "p.tablename = c.relname",
        2, values, &found, err));
    if (found) return check_rows(c, a, t, values, err);
    return ck_fail(err, CK_REFUSED, "publication \"%s\" does not have %s: ALTER PUBLICATION %s ADD TABLE %s%s", name,
                   t->shown, name, t->shown,
                   t->kind == 'p' ? " (of a partitioned table it must publish_via_partition_root)" : "");
}

static ck_status check_table(const ck_pg_table *t, ck_error *err) {
    if (t->kind != 'r' && t->kind != 'p')
        return ck_fail(err, CK_REFUSED, "%s is no table whose changes can be followed", t->shown);
    if (t->replica_identity == 'f') return CK_OK;
    return ck_fail(
        err, CK_REFUSED,
        "an update and a delete of %s must tell the whole row it was, so that it can be taken back: ALTER TABLE %s "
        "REPLICA IDENTITY FULL",
        t->shown, t->shown);
}

/* The slot of a run of this job that died before its first checkpoint: what it would have read is read anew. Its server
 * process may take a moment to notice. */
static ck_status drop_own(ck_pg *c, const char *slot, ck_error *err) {
    PGresult *r;
    ck_status s = CK_OK;
    for (int i = 0; i < TRIES; i++) {
        ck_error_reset(err);
        s = ck_pg_query(c, "SELECT pg_catalog.pg_drop_replication_slot($1)", 1, &slot, &r, err);
        if (s == CK_OK) c->lib->PQclear(r);
        if (s == CK_OK || !err) return s;
        /* It was still being made when its maker died, and has gone by itself. */
        if (strstr(err->msg, "does not exist")) {
            ck_error_reset(err);
            return CK_OK;
        }
        if (!err->retriable) return s;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return s;
}

/* 0: there is none. */
static ck_status state_of_slot(ck_pg *c, ck_arena *a, const char *slot, const char **what, const char **confirmed,
                               ck_error *err) {
    CK_TRY(text_of(
        c, a,
        "SELECT CASE WHEN plugin IS DISTINCT FROM 'pgoutput' OR database <> current_database() THEN 'foreign' WHEN "
        "wal_status = 'lost' THEN 'lost' ELSE 'there' END FROM pg_catalog.pg_replication_slots WHERE slot_name = $1",
        1, &slot, what, err));
    return text_of(c, a, "SELECT confirmed_flush_lsn FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", 1,
                   &slot, confirmed, err);
}

ck_status ck_pg_slot_clear(ck_pg *c, ck_arena *a, const char *slot, bool own, ck_error *err) {
    const char *what, *confirmed;
    CK_TRY(state_of_slot(c, a, slot, &what, &confirmed, err));
    if (!what) return CK_OK;
    if (own) return drop_own(c, slot, err);
    return ck_fail(
        err, CK_REFUSED,
        "slot \"%s\" is there already, and a table is read and followed from one place only with a new one: SELECT "
        "pg_drop_replication_slot('%s') if nobody needs it, or another name (option 'slot')",
        slot, slot);
}

ck_status ck_pg_slot_check(ck_pg *c, ck_arena *a, const char *slot, uint64_t lsn, ck_error *err) {
    const char *what, *text;
    uint64_t confirmed = 0;
    CK_TRY(state_of_slot(c, a, slot, &what, &text, err));
    if (!what)
        return ck_fail(err, CK_REFUSED,
                       "slot \"%s\" is gone from the server at %s, and with it what was changed since the checkpoint; "
                       "--fresh reads "
                       "the table anew",
                       slot, ck_pg_where(c->options));
    if (strcmp(what, "lost") == 0)
        return ck_fail(
            err, CK_REFUSED,
            "slot \"%s\" has lost changes: the server kept no more of them (max_slot_wal_keep_size); --fresh reads the "
            "table anew",
            slot);
    if (strcmp(what, "there") != 0)
        return ck_fail(err, CK_REFUSED, "slot \"%s\" is not of this database or not of the plugin pgoutput", slot);
    if (lsn && text && ck_pg_lsn_parse(text, &confirmed) && confirmed > lsn) {
        char at[CK_PG_LSN_BYTES];
        return ck_fail(
            err, CK_REFUSED,
            "slot \"%s\" was confirmed up to %s by a later checkpoint, and the server has forgotten the changes "
            "from %s on, where this one would go on",
            slot, text, ck_pg_lsn_print(at, lsn));
    }
    return CK_OK;
}

static ck_status look(const ck_op_spec *spec, ck_pg *c, ck_arena *a, ck_split_list *out, ck_error *err) {
    ck_source_table table;
    ck_pg_options o;
    ck_pg_table t;
    ck_pg_key key;
    CK_TRY(ck_source_table_read(a, spec, &table, err));
    CK_TRY(ck_pg_options_read(&table.options, &o, err));
    const bool *read = ck_pg_columns_read(a, &table, &o);
    const char *uuid = spec->settings->job_uuid ? spec->settings->job_uuid : "0";
    const char *slot =
        o.slot ? o.slot
               : ck_arena_printf(a, "clink_%.8s_%08x", uuid, (uint32_t)ck_hash_bytes(0, spec->uid, strlen(spec->uid)));
    if (!read || !slot) return ck_nomem(err, a->mem, 64);
    CK_TRY(ck_pg_connect(c, spec->proc, &o, false, err));
    CK_TRY(check_server(c, a, err));
    CK_TRY(ck_pg_table_read(c, a, o.table ? o.table : table.table, table.schema, read, false, &t, err));
    CK_TRY(check_table(&t, err));
    CK_TRY(check_publication(c, a, &t, err));
    CK_TRY(check_columns(c, a, &table, read, &t, err));
    if (spec->continues) return CK_OK; /* the slot it has is looked at where it goes on */
    CK_TRY(ck_pg_slot_clear(c, a, slot, !o.slot, err));
    CK_TRY(ck_pg_key_read(c, a, t.oid, &key, err));
    out->now = true; /* from here on the slot keeps what is changed */
    ck_pg_cdc_position p = {
        .slot = slot, .table = t.oid, .reading = !o.no_snapshot, .key_count = key.count, .time_us = INT64_MIN};
    const char *text;
    CK_TRY(ck_pg_cdc_print(a, &p, &text, err));
    return ck_split_list_add(out, "changes", text) == CK_OK ? CK_OK : ck_nomem(err, a->mem, strlen(text));
}

ck_status ck_pg_cdc_enumerate(const ck_op_spec *spec, ck_split_list *out, ck_error *err) {
    ck_arena a;
    ck_pg c = {0};
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = look(spec, &c, &a, out, err);
    ck_pg_close(&c);
    ck_arena_destroy(&a);
    return s;
}
