/* A table that is dropped, or taken out of its publication, sends nothing more, and the stream does not say so: it is
 * asked for now and then, on a connection of its own. What was changed before still comes: the job ends when a
 * completed checkpoint has all of it. Thread: the feed's job. */
#include <stdio.h>

#include "connector/postgres/cdc_int.h"
#include "os/clock.h"

enum { LOOK_US = 5000000 };

/* The columns: how far the server is, whether the table is there, whether the publication has it. */
static const char question[] =
    "SELECT pg_catalog.pg_current_wal_flush_lsn(), EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = $2::oid), "
    "EXISTS (SELECT FROM pg_catalog.pg_publication_tables p, pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE "
    "p.pubname = $1 AND c.oid = $2::oid AND n.oid = c.relnamespace AND p.schemaname = n.nspname AND p.tablename = "
    "c.relname)";

static ck_status ask(ck_pg_feed *f, ck_pg *c, ck_error *err) {
    char oid[16];
    const char *values[] = {f->options->publication, oid};
    PGresult *r;
    (void)snprintf(oid, sizeof oid, "%u", f->remote.oid);
    CK_TRY(ck_pg_connect(c, f->proc, f->options, false, err));
    CK_TRY(ck_pg_query(c, question, 2, values, &r, err));
    bool there = c->lib->PQgetvalue(r, 0, 1)[0] == 't', sent = c->lib->PQgetvalue(r, 0, 2)[0] == 't';
    uint64_t lsn = 0;
    if ((!there || !sent) && ck_pg_lsn_parse(c->lib->PQgetvalue(r, 0, 0), &lsn)) {
        f->gone_lsn = lsn;
        f->dropped = !there;
    }
    c->lib->PQclear(r);
    return CK_OK;
}

static ck_status say(const ck_pg_feed *f, ck_error *err) {
    if (f->dropped)
        return ck_fail(err, CK_REFUSED, "%s was dropped on the server: all that was changed before is read",
                       f->remote.shown);
    return ck_fail(err, CK_REFUSED,
                   "publication \"%s\" does not have %s any more: what is changed since does not come, "
                   "and --fresh reads the table anew",
                   f->options->publication, f->remote.shown);
}

ck_status ck_pg_feed_watch(ck_pg_feed *f, uint64_t confirmed, ck_error *err) {
    int64_t now = ck_mono_us(f->proc);
    if (!f->gone_lsn && now - f->looked_us >= LOOK_US) {
        ck_pg c = {0};
        ck_error ignored = CK_ERROR_INIT; /* a server that does not answer is the stream's to notice */
        f->looked_us = now;
        ck_status asked = ask(f, &c, &ignored);
        ck_pg_close(&c);
        (void)asked;
    }
    return f->gone_lsn && confirmed >= f->gone_lsn ? say(f, err) : CK_OK;
}
