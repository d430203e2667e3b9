/* What the server sends of a table that is followed: first its rows in the snapshot the slot was made with, on the
 * slot's own connection, then the changes from there on, so that there is neither gap nor double.
 *
 *   fresh     BEGIN; CREATE_REPLICATION_SLOT ... USE_SNAPSHOT; COPY the rows in the order of their key; COMMIT
 *   resumed   the same with a temporary slot, whose snapshot says as of when the rest is read
 *   then      START_REPLICATION at the step's position
 *
 * Thread: an I/O job at a time. */
#include <stdio.h>

#include "connector/postgres/cdc_int.h"
#include "os/clock.h"

enum { CHUNK_BYTES = 256 << 10, PATIENCE_MS = 100, TELL_US = 5000000, STATUS_BYTES = 34, LENGTH_BYTES = 4 };
#define EPOCH_2000_US 946684800000000LL

void ck_pg_feed_close(ck_pg_feed *f) {
    if (f->held) f->pg.lib->PQfreemem(f->held);
    f->held = NULL;
    f->streaming = f->copying = false;
    ck_pg_close(&f->pg);
}

void ck_pg_feed_destroy(ck_pg_feed *f) {
    ck_pg_feed_close(f);
    ck_buffer_unref(&f->chunk.buffer);
    if (f->arena.mem.budget) ck_arena_destroy(&f->arena);
}

/* ---- connecting ---- */

/* What the replication connection cannot be asked is asked on one of its own. */
static ck_status look(ck_pg_feed *f, ck_pg *c, const ck_pg_cdc_position *at, ck_error *err) {
    CK_TRY(ck_pg_connect(c, f->proc, f->options, false, err));
    const char *name = f->options->table ? f->options->table : f->table;
    CK_TRY(ck_pg_table_read(c, &f->arena, name, f->schema, f->read, false, &f->remote, err));
    CK_TRY(ck_pg_key_read(c, &f->arena, f->remote.oid, &f->key, err));
    if (at->table && at->table != f->remote.oid)
        return ck_fail(
            err, CK_REFUSED,
            "%s is another table than the one the job has followed, which was dropped or renamed on the server; "
            "--fresh reads it anew",
            f->remote.shown);
    if (f->created) {
        if (f->temporary)
            return ck_fail(
                err, CK_IO,
                "the connection is lost, and with it the temporary slot; with a checkpoint directory the job "
                "has a slot that stays");
        return ck_pg_slot_check(c, &f->arena, f->slot, at->reading ? 0 : at->lsn, err);
    }
    if (at->reading && at->range_count == 0) return ck_pg_slot_clear(c, &f->arena, f->slot, true, err);
    if (at->key_count != f->key.count)
        return ck_fail(err, CK_REFUSED,
                       "the PRIMARY KEY of %s was altered on the server since the checkpoint; --fresh reads the "
                       "table anew",
                       f->remote.shown);
    if (at->lsn || at->reading) return ck_pg_slot_check(c, &f->arena, f->slot, at->reading ? 0 : at->lsn, err);
    return CK_OK;
}

static ck_status create_slot(ck_pg_feed *f, const char *name, bool temporary, const char *snapshot, ck_error *err) {
    char sql[256];
    PGresult *r;
    (void)snprintf(sql, sizeof sql, "CREATE_REPLICATION_SLOT \"%s\"%s LOGICAL pgoutput %s", name,
                   temporary ? " TEMPORARY" : "", snapshot);
    ck_status s = ck_pg_query(&f->pg, sql, 0, NULL, &r, err);
    if (s != CK_OK && err && strstr(err->msg, "does not answer within"))
        return ck_error_prefix(
            err, "a slot is made when every transaction that is writing now has ended, and one may still be "
                 "open (pg_stat_activity on the server says which): ");
    CK_TRY(s);
    bool ok = ck_pg_lsn_parse(f->pg.lib->PQgetvalue(r, 0, 1), &f->consistent);
    f->pg.lib->PQclear(r);
    return ok ? CK_OK
              : ck_fail(err, CK_CORRUPT, "PostgreSQL at %s made a slot without a place", ck_pg_where(f->options));
}

/* ---- the first reading ---- */

static ck_status say_key(ck_pg_feed *f, ck_bytes *sql, const char *const *values) {
    for (uint32_t i = 0; i < f->key.count; i++) {
        if (i) CK_TRY(ck_bytes_str(sql, ", "));
        if (values) {
            const char *text = ck_pg_literal(&f->arena, values[i]);
            if (!text) return CK_NOMEM;
            CK_TRY(ck_bytes_str(sql, text));
            CK_TRY(ck_bytes_str(sql, f->key.integer[i] ? "::bigint" : " COLLATE \"C\""));
        } else {
            CK_TRY(f->key.integer[i] ? ck_bytes_str(sql, f->key.idents[i])
                                     : ck_bytes_printf(sql, "(pg_catalog.format('%%s', %s) COLLATE \"C\")",
                                                       f->key.idents[i])); /* as COPY has it; a cast is another text */
        }
    }
    return CK_OK;
}

static ck_status say_copy(ck_pg_feed *f, const char *const *from, ck_bytes *sql) {
    bool first = true;
    CK_TRY(ck_bytes_str(sql, "COPY (SELECT "));
    for (uint32_t i = 0; i < f->key.count; i++, first = false)
        CK_TRY(ck_bytes_printf(sql, "%s%s", first ? "" : ", ", f->key.idents[i]));
    for (uint32_t i = 0; i < f->schema->field_count; i++) {
        if (!f->read[i]) continue;
        CK_TRY(ck_bytes_printf(sql, "%s%s", first ? "" : ", ", f->remote.columns[i].ident));
        first = false;
    }
    CK_TRY(
        ck_bytes_printf(sql, "%s FROM %s%s", first ? "1" : "", f->remote.kind == 'p' ? "" : "ONLY ", f->remote.name));
    if (from) {
        CK_TRY(ck_bytes_str(sql, " WHERE ("));
        CK_TRY(say_key(f, sql, NULL));
        CK_TRY(ck_bytes_str(sql, ") > ("));
        CK_TRY(say_key(f, sql, from));
        CK_TRY(ck_bytes_str(sql, ")"));
    }
    if (f->key.count) {
        CK_TRY(ck_bytes_str(sql, " ORDER BY "));
        CK_TRY(say_key(f, sql, NULL));
    }
    CK_TRY(ck_bytes_str(sql, ") TO STDOUT"));
    return ck_bytes_terminate(sql);
}

static ck_status begin_reading(ck_pg_feed *f, const ck_pg_cdc_position *at, ck_error *err) {
    char again[80];
    const char *const *from = at->range_count ? at->ranges[at->range_count - 1].upto : NULL;
    if (at->range_count && at->key_count == 0)
        return ck_fail(
            err, CK_REFUSED,
            "the job was stopped while it read %s the first time, and without a PRIMARY KEY there is no place to go on "
            "from; --fresh reads it anew",
            f->remote.shown);
    if (at->range_count >= CK_PG_RANGES_MAX - 1)
        return ck_fail(err, CK_FULL, "the first reading of %s was interrupted %u times", f->remote.shown,
                       at->range_count);
    CK_TRY(ck_pg_run(&f->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err));
    (void)snprintf(again, sizeof again, "%.50s_again", f->slot);
    CK_TRY(create_slot(f, at->range_count ? again : f->slot, at->range_count || f->temporary, "USE_SNAPSHOT", err));
    f->created = true;
    CK_FAULT(f->proc, POSTGRES_SLOT);
    ck_bytes sql;
    ck_bytes_init(&sql, f->mem, 1 << 20);
    ck_status s = say_copy(f, from, &sql);
    s = s == CK_OK ? ck_pg_begin_copy(&f->pg, sql.p, PGRES_COPY_OUT, err) : ck_nomem(err, f->mem, sql.n);
    ck_bytes_destroy(&sql);
    f->copying = s == CK_OK;
    return s;
}

/* ---- streaming ---- */

static ck_status begin_streaming(ck_pg_feed *f, const ck_pg_cdc_position *at, ck_error *err) {
    char lsn[CK_PG_LSN_BYTES];
    ck_arena_mark m = ck_arena_mark_now(&f->arena);
    uint64_t from = at->lsn ? at->lsn : f->consistent;
    const char *name = ck_pg_ident(&f->arena, f->options->publication);
    const char *list = name ? ck_pg_literal(&f->arena, name) : NULL;
    const char *sql =
        list ? ck_arena_printf(&f->arena,
                               "START_REPLICATION SLOT \"%s\" LOGICAL %s (proto_version '1', publication_names %s)",
                               f->slot, ck_pg_lsn_print(lsn, from), list)
             : NULL;
    ck_status s = sql ? ck_pg_begin_copy(&f->pg, sql, PGRES_COPY_BOTH, err) : ck_nomem(err, f->mem, 256);
    ck_arena_reset_to(&f->arena, m);
    f->streaming = s == CK_OK;
    f->told_us = f->looked_us = ck_mono_us(f->proc);
    f->asked = true;
    return s;
}

static ck_status connect_feed(ck_pg_feed *f, const ck_pg_cdc_position *at, ck_error *err) {
    ck_pg c = {0};
    ck_arena_reset_to(&f->arena, (ck_arena_mark){0});
    ck_status s = look(f, &c, at, err);
    ck_pg_close(&c);
    if (s != CK_OK) return s;
    CK_TRY(ck_pg_connect(&f->pg, f->proc, f->options, true, err));
    if (at->reading) return CK_OK;
    if (at->lsn == 0 && !f->created) { /* only changes from now on, unless an earlier life has made it */
        s = create_slot(f, f->slot, f->temporary, "NOEXPORT_SNAPSHOT", err);
        if (s != CK_OK && err && strstr(err->msg, "already exists")) {
            ck_error_reset(err);
            s = CK_OK;
        }
        if (s != CK_OK) return s;
    }
    f->created = true;
    return CK_OK;
}

static void put_be(char *to, uint64_t v) {
    for (int i = 0; i < 8; i++) to[i] = (char)(v >> (56 - 8 * i));
}

/* What need not be sent again. Also a sign of life. */
static ck_status tell(ck_pg_feed *f, uint64_t confirmed, ck_error *err) {
    int64_t now = ck_mono_us(f->proc);
    char text[STATUS_BYTES] = {'r'};
    bool urgent = f->gone_lsn && now - f->told_us >= PATIENCE_MS * 1000; /* how far it is, is waited for */
    if (!f->asked && !urgent && now - f->told_us < TELL_US) return CK_OK;
    put_be(text + 1, confirmed);
    put_be(text + 9, confirmed);
    put_be(text + 17, confirmed);
    put_be(text + 25, (uint64_t)(ck_wall_us(f->proc) - EPOCH_2000_US));
    text[STATUS_BYTES - 1] = urgent; /* it answers with a keepalive */
    f->asked = false;
    f->told_us = now;
    return ck_pg_put_copy(&f->pg, text, sizeof text, err);
}

/* ---- reading ---- */

/* A line, or a message with its length, goes into the chunk, or is held for the next. Takes row. */
static ck_status put(ck_pg_feed *f, char *row, size_t n, bool *full, ck_error *err) {
    ck_pg_chunk *to = &f->chunk;
    size_t head = to->lines ? 0 : LENGTH_BYTES;
    if (!to->buffer) {
        size_t bytes = n + head > CHUNK_BYTES ? n + head : CHUNK_BYTES;
        if (!(to->buffer = ck_buffer_new(f->mem, bytes))) {
            f->pg.lib->PQfreemem(row);
            return ck_nomem(err, f->mem, bytes);
        }
        to->begin = to->end = 0;
    }
    *full = n + head > to->buffer->bytes - to->end;
    if (*full) {
        f->held = row;
        f->held_bytes = n;
        return CK_OK;
    }
    for (size_t i = 0; i < head; i++) to->buffer->p[to->end + i] = (uint8_t)(n >> (8 * i));
    memcpy(to->buffer->p + to->end + head, row, n);
    to->end += n + head;
    /* A keepalive that wants an answer. */
    if (head && n == 18 && row[0] == 'k' && row[17]) f->asked = true;
    f->pg.lib->PQfreemem(row);
    return CK_OK;
}

/* The server has nothing more to say: of changes because it stops. */
static ck_status end_of_copy(ck_pg_feed *f, ck_error *err) {
    if (f->streaming) {
        PGresult *r = f->pg.lib->PQgetResult(f->pg.conn);
        ck_status s = ck_pg_fail(&f->pg, r, "following changes", err);
        f->pg.lib->PQclear(r);
        return s;
    }
    CK_TRY(ck_pg_end_rows(&f->pg, err));
    f->copying = false;
    f->chunk.last = true;
    return ck_pg_run(&f->pg, "COMMIT", err);
}

static ck_status fill(ck_pg_feed *f, ck_error *err) {
    const ck_pg_lib *lib = f->pg.lib;
    bool full = false, waited = false;
    if (f->held) {
        char *row = f->held;
        f->held = NULL;
        CK_TRY(put(f, row, f->held_bytes, &full, err));
    }
    while (!full) {
        char *row = NULL;
        int n = lib->PQgetCopyData(f->pg.conn, &row, 1);
        if (n > 0) {
            CK_TRY(put(f, row, (size_t)n, &full, err));
        } else if (n == 0) {
            if (waited || f->chunk.end) return CK_OK;
            ck_pg_wait(&f->pg, PATIENCE_MS);
            waited = true;
            if (!lib->PQconsumeInput(f->pg.conn)) return ck_pg_fail(&f->pg, NULL, "following changes", err);
        } else {
            return n == -1 ? end_of_copy(f, err) : ck_pg_fail(&f->pg, NULL, "following changes", err);
        }
    }
    return CK_OK;
}

ck_status ck_pg_feed_read(ck_pg_feed *f, const ck_pg_cdc_position *at, uint64_t confirmed, ck_error *err) {
    if (!ck_pg_is_open(&f->pg)) CK_TRY(connect_feed(f, at, err));
    if (at->reading && !f->copying) CK_TRY(begin_reading(f, at, err));
    if (!at->reading && !f->streaming) CK_TRY(begin_streaming(f, at, err));
    if (f->streaming) {
        CK_TRY(ck_pg_feed_watch(f, confirmed, err));
        CK_TRY(tell(f, confirmed, err));
    }
    f->chunk.lines = at->reading;
    return fill(f, err);
}
