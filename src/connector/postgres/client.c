/* A connection: made from the table's options, with a deadline for everything, and what the server answers as one
 * sentence. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "connector/postgres/pg_int.h"
#include "connector/library_options.h"
#include "connector/secret.h"
#include "os/clock.h"

static const char *const function_names[] = {CK_MODULE_NAMES(CK_PG_FUNCTIONS)};
static const ck_module_desc pg_module = {.file = "libpq.so.5",
                                         .package = "libpq5",
                                         .for_what = "connector 'postgres'",
                                         .functions = function_names,
                                         .count = CK_ARRAY_COUNT(function_names)};

enum { SECRET_BYTES_MAX = 1 << 16, PROPERTIES_MAX = 64, SLICE_MS = 1000 };

/* ---- sentences ---- */

const char *ck_pg_where(const ck_pg_options *o) {
    if (o->host) return o->host;
    const char *host = getenv("PGHOST");
    return host ? host : "the local socket";
}

/* One line of what the library or server says, without the "ERROR:  " before it. */
static void one_line(const char *text, char *out, size_t room) {
    static const char *const labels[] = {"ERROR:", "FATAL:", "PANIC:", "error:"};
    size_t n = 0;
    for (size_t i = 0; i < CK_ARRAY_COUNT(labels); i++) {
        const char *at = strstr(text, labels[i]);
        if (at) text = at + strlen(labels[i]);
    }
    while (*text == ' ' || *text == '\n') text++;
    for (; *text && n + 1 < room; text++) {
        char c = *text == '\n' || *text == '\t' ? ' ' : *text;
        if (c == ' ' && n && out[n - 1] == ' ') continue;
        out[n++] = c;
    }
    while (n && out[n - 1] == ' ') n--;
    out[n] = 0;
}

/* SQLSTATE classes: appendix A of PostgreSQL's manual. */
static ck_status kind_of(const char *state, bool *retriable) {
    static const char *const waits[] = {"08", "53", "57", "58", "40001", "40P01", "55P03", "55006", "25006"};
    /* P0001: a trigger says no; 54000: a value that no index or page has room for. */
    static const char *const rows[] = {"21", "22", "23", "44", "P0001", "54000"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(waits); i++)
        if (strncmp(state, waits[i], strlen(waits[i])) == 0) {
            *retriable = true;
            return CK_IO;
        }
    for (size_t i = 0; i < CK_ARRAY_COUNT(rows); i++)
        if (strncmp(state, rows[i], strlen(rows[i])) == 0) return CK_DATA;
    if (strncmp(state, "28", 2) == 0 || strcmp(state, "42501") == 0) return CK_REFUSED;
    return CK_INVALID;
}

ck_status ck_pg_fail(ck_pg *c, const PGresult *r, const char *what, ck_error *err) {
    const ck_pg_lib *lib = c->lib;
    char text[400], detail[200] = "";
    const char *state = r ? lib->PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    if (!state) { /* nobody answered */
        one_line(c->conn ? lib->PQerrorMessage(c->conn) : "", text, sizeof text);
        ck_fail(err, CK_IO, "PostgreSQL at %s, %s: %s", ck_pg_where(c->options), what,
                text[0] ? text : "the connection is gone");
        if (err) err->retriable = true;
        return CK_IO;
    }
    const char *message = lib->PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *more = lib->PQresultErrorField(r, PG_DIAG_MESSAGE_DETAIL);
    const char *context = lib->PQresultErrorField(r, PG_DIAG_CONTEXT);
    bool retriable = false;
    ck_status s = kind_of(state, &retriable);
    one_line(message ? message : "no reason given", text, sizeof text);
    if (more || (context && s == CK_DATA)) one_line(more ? more : context, detail, sizeof detail);
    ck_fail(err, s, detail[0] ? "PostgreSQL at %s, %s: %s (%s)" : "PostgreSQL at %s, %s: %s", ck_pg_where(c->options),
            what, text, detail);
    if (err) {
        err->retriable = retriable;
        err->fatal = s == CK_DATA || s == CK_REFUSED;
    }
    return s;
}

/* ---- connecting ---- */

typedef struct pairs {
    const char *names[PROPERTIES_MAX + 1], *values[PROPERTIES_MAX + 1];
    size_t count;
} pairs;

/* value NULL: the library's own. */
static void add(pairs *p, const char *name, const char *value) {
    CK_ASSERT(p->count < PROPERTIES_MAX);
    if (!value) return;
    p->names[p->count] = name;
    p->values[p->count++] = value;
}

static ck_status make_pairs(ck_proc *proc, const ck_pg_options *o, bool replication, ck_arena *a, pairs *p,
                            ck_error *err) {
    static const char prefix[] = "properties.";
    const char *password = NULL;
    CK_TRY(ck_pg_host_check(proc, o->host, err));
    if (o->password) CK_TRY(ck_secret_resolve(proc, "password", o->password, SECRET_BYTES_MAX, a, &password, err));
    add(p, "application_name", "clink");
    add(p, "host", o->host);
    add(p, "port", o->port);
    add(p, "dbname", o->database);
    add(p, "user", o->user);
    add(p, "password", password);
    add(p, "client_encoding", "UTF8");
    /* How values are written: value.c reads exactly this. */
    add(p, "options",
        "-c datestyle=ISO,MDY -c timezone=UTC -c bytea_output=hex -c extra_float_digits=1 "
        "-c standard_conforming_strings=on -c intervalstyle=postgres");
    add(p, "keepalives_idle", "10");
    add(p, "keepalives_interval", "5");
    const char *timeout = ck_arena_printf(a, "%lld", (long long)o->timeout_ms);
    if (!timeout) return ck_nomem(err, a->mem, 24);
    add(p, "tcp_user_timeout", timeout);
    if (replication) add(p, "replication", "database");
    for (uint32_t i = 0; i < o->all->count; i++) {
        const char *value;
        if (strncmp(o->all->names[i], prefix, sizeof prefix - 1) != 0) continue;
        if (p->count == PROPERTIES_MAX)
            return ck_fail(err, CK_INVALID, "option '%s' is one too many: a connection has %d properties at most",
                           o->all->names[i], PROPERTIES_MAX);
        CK_TRY(ck_secret_resolve(proc, o->all->names[i], o->all->values[i], SECRET_BYTES_MAX, a, &value, err));
        CK_TRY(ck_pg_property_check(proc, o->all->names[i] + sizeof prefix - 1, o->all->names[i], value, err));
        add(p, o->all->names[i] + sizeof prefix - 1, value);
    }
    return CK_OK;
}

static void silent(void *arg, const char *message) { (void)arg, (void)message; }

static bool poll_socket(ck_pg *c, bool write, int64_t until_us) {
    int64_t left = (until_us - ck_mono_us(c->proc)) / 1000;
    struct pollfd fd = {.fd = c->lib->PQsocket(c->conn), .events = write ? POLLIN | POLLOUT : POLLIN};
    if (fd.fd < 0) return false;
    if (left < 0) return false;
    (void)poll(&fd, 1, left < SLICE_MS ? (int)left + 1 : SLICE_MS);
    return true;
}

static ck_status finish_connecting(ck_pg *c, ck_error *err) {
    const ck_pg_lib *lib = c->lib;
    int64_t until = ck_mono_us(c->proc) + c->options->timeout_ms * 1000;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (lib->PQstatus(c->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        if (!poll_socket(c, next == PGRES_POLLING_WRITING, until)) {
            ck_fail(err, CK_IO, "PostgreSQL at %s does not answer within %lld ms", ck_pg_where(c->options),
                    (long long)c->options->timeout_ms);
            if (err) err->retriable = true;
            return CK_IO;
        }
        next = lib->PQconnectPoll(c->conn);
    }
    if (lib->PQstatus(c->conn) == CONNECTION_OK) return CK_OK;
    const char *said = lib->PQerrorMessage(c->conn);
    /* What waiting does not cure is about who we are and what we asked for. */
    bool waits = !strstr(said, "authentication") && !strstr(said, "password") && !strstr(said, "does not exist") &&
                 !strstr(said, "pg_hba.conf") && !strstr(said, "certificate") && !strstr(said, "permission") &&
                 !strstr(said, "not permitted") && !strstr(said, "invalid") && !strstr(said, "does not support SSL");
    ck_pg_fail(c, NULL, "connecting", err);
    if (err) err->retriable = waits;
    return waits ? CK_IO : CK_REFUSED;
}

ck_status ck_pg_connect(ck_pg *c, ck_proc *proc, const ck_pg_options *o, bool replication, ck_error *err) {
    const void *table;
    CK_TRY(ck_module_open(proc, &pg_module, &table, err));
    *c = (ck_pg){.proc = proc, .lib = table, .options = o};
    ck_arena a;
    pairs p = {0};
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), 1 << 20);
    ck_status s = make_pairs(proc, o, replication, &a, &p, err);
    if (s == CK_OK && !(c->conn = c->lib->PQconnectStartParams(p.names, p.values, 0)))
        s = ck_nomem(err, a.mem, sizeof p);
    ck_arena_destroy(&a); /* the library has its copies */
    if (s != CK_OK) return s;
    c->lib->PQsetNoticeProcessor(c->conn, silent, NULL);
    s = finish_connecting(c, err);
    if (s == CK_OK) c->lib->PQsetnonblocking(c->conn, 1);
    if (s != CK_OK) ck_pg_close(c);
    return s;
}

void ck_pg_close(ck_pg *c) {
    if (c->conn) c->lib->PQfinish(c->conn);
    c->conn = NULL;
}

/* ---- commands ---- */

void ck_pg_wait(ck_pg *c, int64_t ms) { (void)poll_socket(c, false, ck_mono_us(c->proc) + ms * 1000); }

static ck_status too_late(ck_pg *c, ck_error *err) {
    char reason[256];
    PGcancel *cancel = c->lib->PQgetCancel(c->conn);
    if (cancel) {
        c->lib->PQcancel(cancel, reason, sizeof reason);
        c->lib->PQfreeCancel(cancel);
    }
    ck_pg_close(c);
    ck_fail(err, CK_IO, "PostgreSQL at %s does not answer within %lld ms (option 'timeout_ms')",
            ck_pg_where(c->options), (long long)c->options->timeout_ms);
    if (err) err->retriable = true;
    return CK_IO;
}

static ck_status lost(ck_pg *c, ck_error *err) {
    ck_status s = ck_pg_fail(c, NULL, "sending", err);
    ck_pg_close(c);
    return s;
}

/* What was sent leaves, and the next result is whole. */
static ck_status settle(ck_pg *c, ck_error *err) {
    const ck_pg_lib *lib = c->lib;
    int64_t until = ck_mono_us(c->proc) + c->options->timeout_ms * 1000;
    for (;;) {
        int flushed = lib->PQflush(c->conn);
        if (flushed < 0 || !lib->PQconsumeInput(c->conn)) return lost(c, err);
        if (flushed == 0 && !lib->PQisBusy(c->conn)) return CK_OK;
        if (!poll_socket(c, flushed > 0, until)) return too_late(c, err);
    }
}

static bool is_success(ExecStatusType s) {
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK || s == PGRES_EMPTY_QUERY;
}

/* Results up to the last (or up to COPY); keeps the last with rows, the first failure. */
static ck_status take_results(ck_pg *c, const char *what, ExecStatusType copy, PGresult **keep, ck_error *err) {
    const ck_pg_lib *lib = c->lib;
    ck_status s = CK_OK;
    bool copying = false;
    while (!copying) {
        ck_status settled = settle(c, err);
        if (settled != CK_OK) return settled;
        PGresult *r = lib->PQgetResult(c->conn);
        if (!r) break;
        ExecStatusType status = lib->PQresultStatus(r);
        copying = status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH;
        if (s == CK_OK && !is_success(status) && status != copy) s = ck_pg_fail(c, r, what, err);
        if (s == CK_OK && keep && status == PGRES_TUPLES_OK) {
            if (*keep) lib->PQclear(*keep);
            *keep = r;
        } else {
            lib->PQclear(r);
        }
    }
    if (s == CK_OK && copy != PGRES_EMPTY_QUERY && !copying) s = ck_pg_fail(c, NULL, what, err);
    if (s != CK_OK && lib->PQstatus(c->conn) == CONNECTION_BAD) ck_pg_close(c);
    return s;
}

/* The first words of a command, for a sentence. */
static const char *verb_of(const char *sql, char out[64]) {
    size_t n = 0;
    for (; n < 48 && sql[n] && sql[n] != '(' && sql[n] != ';' && sql[n] != '\n'; n++) out[n] = sql[n];
    while (n && out[n - 1] == ' ') n--;
    out[n] = 0;
    return out;
}

static ck_status none(ck_pg *c, ck_error *err) {
    ck_fail(err, CK_IO, "PostgreSQL at %s: the connection is gone", ck_pg_where(c->options));
    if (err) err->retriable = true;
    return CK_IO;
}

ck_status ck_pg_run(ck_pg *c, const char *sql, ck_error *err) {
    char what[64];
    if (!c->conn) return none(c, err);
    if (!c->lib->PQsendQuery(c->conn, sql)) return lost(c, err);
    return take_results(c, verb_of(sql, what), PGRES_EMPTY_QUERY, NULL, err);
}

ck_status ck_pg_query(ck_pg *c, const char *sql, int count, const char *const *values, PGresult **out, ck_error *err) {
    char what[64];
    *out = NULL;
    if (!c->conn) return none(c, err);
    int sent = count ? c->lib->PQsendQueryParams(c->conn, sql, count, NULL, values, NULL, NULL, 0)
                     : c->lib->PQsendQuery(c->conn, sql); /* a replication connection knows no other */
    if (!sent) return lost(c, err);
    ck_status s = take_results(c, verb_of(sql, what), PGRES_EMPTY_QUERY, out, err);
    if (s == CK_OK && !*out)
        s = ck_fail(err, CK_IO, "PostgreSQL at %s: %s gave no rows", ck_pg_where(c->options), what);
    if (s != CK_OK && *out) {
        c->lib->PQclear(*out);
        *out = NULL;
    }
    return s;
}

ck_status ck_pg_begin_copy(ck_pg *c, const char *sql, ExecStatusType status, ck_error *err) {
    char what[64];
    if (!c->conn) return none(c, err);
    if (!c->lib->PQsendQuery(c->conn, sql)) return lost(c, err);
    return take_results(c, verb_of(sql, what), status, NULL, err);
}

ck_status ck_pg_put_copy(ck_pg *c, const char *p, size_t n, ck_error *err) {
    enum { PIECE = 1 << 20 };
    if (!c->conn) return none(c, err);
    int64_t until = ck_mono_us(c->proc) + c->options->timeout_ms * 1000;
    while (n) {
        int piece = n < PIECE ? (int)n : PIECE;
        int r = c->lib->PQputCopyData(c->conn, p, piece);
        if (r < 0) return lost(c, err);
        if (r > 0) {
            p += piece;
            n -= (size_t)piece;
        }
        /* Nothing queues up here: a megabyte is gone before the next one goes. */
        for (int left = 1; left > 0;) {
            left = c->lib->PQflush(c->conn);
            if (left < 0 || !c->lib->PQconsumeInput(c->conn)) return lost(c, err);
            if (left > 0 && !poll_socket(c, true, until)) return too_late(c, err);
        }
    }
    return CK_OK;
}

ck_status ck_pg_end_copy(ck_pg *c, ck_error *err) {
    if (!c->conn) return none(c, err);
    if (c->lib->PQputCopyEnd(c->conn, NULL) < 0) return lost(c, err);
    return take_results(c, "COPY", PGRES_EMPTY_QUERY, NULL, err);
}

ck_status ck_pg_end_rows(ck_pg *c, ck_error *err) { return take_results(c, "reading", PGRES_EMPTY_QUERY, NULL, err); }

/* ---- names and texts ---- */

static const char *quoted(ck_arena *a, const char *text, char quote) {
    size_t n = strlen(text), at = 0;
    char *out = ck_arena_alloc(a, 2 * n + 3);
    if (!out) return NULL;
    out[at++] = quote;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == quote) out[at++] = quote;
        out[at++] = text[i];
    }
    out[at++] = quote;
    out[at] = 0;
    return out;
}

const char *ck_pg_ident(ck_arena *a, const char *name) { return quoted(a, name, '"'); }
const char *ck_pg_literal(ck_arena *a, const char *text) { return quoted(a, text, '\''); }
