/* Makes rows written ahead appear, each file's in one transaction together with its token:
 *
 *   clink_tokens (job, sink, writer) -> checkpoint, life
 *
 *   a life begins   all tokens of the sink get its name: whoever committed before finds another one there, and is over
 *   commit(N)       BEGIN; UPDATE the token to N where it is below N and the life is ours
 *                     1 row:  the file's rows, COMMIT
 *                     0 rows: the token is at N or above: done before. Another life: refused. No token: an error, since
 *                             what the table has cannot be told any more
 *
 * The UPDATE holds the token's row, so that two lives follow each other. What is committed is decided by the token
 * alone: the server's answer may be lost. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "connector/postgres/pg_int.h"
#include "connector/write_ahead.h"
#include "os/clock.h"
#include "os/random.h"

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000 };

typedef struct pg_committer {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    bool on; /* exactly once */
    ck_sink_table table;
    ck_pg_options options;
    ck_pg_writer writer;
    const char *checkpoint_dir, *job, *job_name, *uid;
    const char *name;   /* of its sessions: those of one sink of one job have one */
    const char *tokens; /* the table's name, quoted where the user did */
    char sink[24];      /* op id: a name of any length */
    char life[17];
    uint32_t parallelism;
    char began[96]; /* "job/sink" whose tokens have our life; "": none */
    ck_bytes lines; /* of a file, up to batch_bytes */
    /* on_error is dead_letter */
    ck_pg_letter_table letters;
    ck_bytes rows;    /* the lines as JSON */
    ck_bytes refused; /* of them: ck_pg_refused_add */
    uint64_t put_aside;
} pg_committer;

/* ---- making ---- */

static void print_sink(char out[24], uint64_t op_id) { (void)snprintf(out, 24, "%016llx", (unsigned long long)op_id); }

static ck_status init(pg_committer *c, const ck_op_spec *spec, ck_error *err) {
    ck_arena *a = &c->arena;
    struct yyjson_val *params;
    CK_TRY(ck_sink_table_read(a, spec, &c->table, &params, err));
    CK_TRY(ck_pg_options_read(&c->table.options, &c->options, err));
    c->on = spec->settings->checkpoints && c->options.exactly_once;
    if (!c->on) return CK_OK;
    ck_pg_writer_init(&c->writer, spec->proc, c->mem, &c->options, &c->table);
    ck_bytes_init(&c->lines, c->mem, SIZE_MAX);
    ck_bytes_init(&c->rows, c->mem, SIZE_MAX);
    ck_bytes_init(&c->refused, c->mem, SIZE_MAX);
    CK_TRY(ck_pg_letter_table_read(a, params, c->table.table, &c->letters, err));
    if (c->letters.name) c->writer.refused = &c->refused;
    c->checkpoint_dir = ck_arena_strdup(a, spec->settings->checkpoint_dir);
    c->job = ck_arena_strdup(a, spec->settings->job_uuid);
    c->job_name = ck_arena_strdup(a, spec->settings->job_name ? spec->settings->job_name : "");
    c->uid = ck_arena_strdup(a, spec->uid);
    c->tokens = ck_arena_strdup(a, c->options.token_table);
    c->parallelism = spec->parallelism;
    c->name = ck_arena_printf(a, "clink %016llx %s", (unsigned long long)ck_op_id(spec->uid), c->job ? c->job : "");
    /* A life that has stopped in the middle of a transaction does not keep the next one out for ever. */
    c->writer.on_connect =
        ck_arena_printf(a, "SET application_name = '%s'; SET idle_in_transaction_session_timeout = %lld",
                        c->name ? c->name : "", (long long)c->options.timeout_ms);
    if (!c->name || !c->writer.on_connect) return ck_nomem(err, a->mem, strlen(spec->uid));
    if (!c->checkpoint_dir || !c->job || !c->job_name || !c->uid || !c->tokens)
        return ck_nomem(err, a->mem, strlen(spec->uid));
    print_sink(c->sink, ck_op_id(spec->uid));
    (void)snprintf(c->life, sizeof c->life, "%016llx", (unsigned long long)ck_random_u64(spec->proc));
    return CK_OK;
}

static void committer_close(void *self) {
    pg_committer *c = self;
    ck_pg_writer_destroy(&c->writer);
    ck_bytes_destroy(&c->lines);
    ck_bytes_destroy(&c->rows);
    ck_bytes_destroy(&c->refused);
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}

ck_status ck_pg_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    pg_committer *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->proc = spec->proc;
    c->mem = mem;
    ck_arena_init(&c->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = init(c, spec, err);
    if (s == CK_OK)
        *self = c;
    else
        committer_close(c);
    return s;
}

/* ---- tokens ---- */

/* sql has one %s, the table of tokens. *out is the caller's to clear. */
static ck_status ask(pg_committer *c, const char *sql, int count, const char *const *values, PGresult **out,
                     ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), 1 << 16);
    char *text = ck_arena_alloc(&a, strlen(sql) + strlen(c->tokens) + 1);
    ck_status s = text ? CK_OK : ck_nomem(err, a.mem, strlen(sql));
    if (s == CK_OK) {
        const char *at = strstr(sql, "%s");
        size_t head = (size_t)(at - sql), n = strlen(c->tokens);
        memcpy(text, sql, head);
        memcpy(text + head, c->tokens, n);
        memcpy(text + head + n, at + 2, strlen(at + 2) + 1);
        s = ck_pg_query(&c->writer.pg, text, count, values, out, err);
    }
    ck_arena_destroy(&a);
    return s;
}

static ck_status make_tokens(pg_committer *c, ck_error *err) {
    PGresult *r;
    const char *name = c->tokens;
    CK_TRY(ck_pg_query(&c->writer.pg, "SELECT pg_catalog.to_regclass($1)", 1, &name, &r, err));
    bool there = !c->writer.pg.lib->PQgetisnull(r, 0, 0);
    c->writer.pg.lib->PQclear(r);
    if (there) return CK_OK;
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), 1 << 16);
    const char *sql =
        ck_arena_printf(&a,
                        "CREATE TABLE IF NOT EXISTS %s (job text, sink text, writer int, checkpoint bigint "
                        "NOT NULL, life text NOT NULL, job_name text, sink_uid text, at timestamptz NOT "
                        "NULL DEFAULT now(), PRIMARY KEY (job, sink, writer))",
                        c->tokens);
    ck_status s = sql ? ck_pg_run(&c->writer.pg, sql, err) : ck_nomem(err, a.mem, strlen(c->tokens));
    ck_arena_destroy(&a);
    if (s != CK_OK) ck_error_prefix(err, "the table of tokens %s (option 'token_table') cannot be made: ", c->tokens);
    return s;
}

/* What another life has open is undone: it may have stopped for good. Without the right to it, or behind a pool of
 * connections, its own timeout does it. */
static void end_others(pg_committer *c) {
    PGresult *r;
    ck_error ignored = CK_ERROR_INIT;
    if (ck_pg_query(
            &c->writer.pg,
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE application_name = "
            "$1 AND usename = current_user AND pid <> pg_catalog.pg_backend_pid()",
            1, &c->name, &r, &ignored) == CK_OK)
        c->writer.pg.lib->PQclear(r);
}

/* The tokens of a sink get our name: our own, or those of the job, or the name of the table, that it goes on from. */
static ck_status begin_life(pg_committer *c, const char *job, const char *sink, ck_error *err) {
    char who[sizeof c->began];
    (void)snprintf(who, sizeof who, "%s/%s", job, sink);
    if (strcmp(c->began, who) == 0) return CK_OK;
    PGresult *r;
    const char *values[] = {job, sink, c->life};
    CK_TRY(ask(c,
               "WITH u AS (UPDATE %s SET life = $3, at = now() WHERE job = $1 AND sink = $2 RETURNING 1) SELECT "
               "count(*) FROM u",
               3, values, &r, err));
    c->writer.pg.lib->PQclear(r);
    memcpy(c->began, who, sizeof who);
    return CK_OK;
}

typedef enum standing { BEHIND, DONE } standing;

static ck_status why_not(pg_committer *c, const char *const *key, standing *out, ck_error *err) {
    PGresult *r;
    CK_TRY(ask(c, "SELECT checkpoint, life FROM %s WHERE job = $1 AND sink = $2 AND writer = $3", 3, key, &r, err));
    const ck_pg_lib *lib = c->writer.pg.lib;
    bool there = lib->PQntuples(r) == 1, ours = there && strcmp(lib->PQgetvalue(r, 0, 1), c->life) == 0;
    lib->PQclear(r);
    *out = DONE;
    if (ours) return CK_OK;
    if (there) {
        ck_fail(
            err, CK_REFUSED,
            "another run of this job has taken over: it writes to %s now, and what this one has not committed is left "
            "to it",
            c->writer.remote.shown ? c->writer.remote.shown : c->table.table);
        if (err) err->fatal = true;
        return CK_REFUSED;
    }
    return ck_fail(
        err, CK_CORRUPT,
        "the table %s has no token of this job, whose checkpoint says that it had: it was removed, and what is "
        "in %s cannot be told (--fresh starts anew)",
        c->tokens, c->table.table);
}

/* In a transaction: the token goes to this checkpoint, or it is there. */
static ck_status move_token(pg_committer *c, const ck_write_ahead_file *f, uint64_t checkpoint, standing *out,
                            ck_error *err) {
    char sink[24], writer[16], number[24];
    PGresult *r;
    print_sink(sink, f->op_id);
    (void)snprintf(writer, sizeof writer, "%u", f->writer);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)checkpoint);
    const char *values[] = {f->job, sink, writer, number, c->life};
    CK_TRY(ask(
        c,
        "WITH u AS (UPDATE %s SET checkpoint = $4::bigint, at = now() WHERE job = $1 AND sink = $2 AND writer = $3 AND "
        "checkpoint < $4::bigint AND life = $5 RETURNING 1) SELECT count(*) FROM u",
        5, values, &r, err));
    *out = BEHIND;
    bool moved = strcmp(c->writer.pg.lib->PQgetvalue(r, 0, 0), "1") == 0;
    c->writer.pg.lib->PQclear(r);
    return moved ? CK_OK : why_not(c, values, out, err);
}

/* ---- committing ---- */

static void clear_gathered(pg_committer *c) {
    ck_bytes_clear(&c->lines);
    ck_bytes_clear(&c->rows);
    ck_bytes_clear(&c->refused);
}

static ck_status put_gathered(pg_committer *c, ck_error *err) {
    uint64_t letters = 0;
    ck_status s = ck_pg_writer_put(&c->writer, ck_bytes_as_view(&c->lines), err);
    if (s == CK_OK && c->refused.n)
        s = ck_pg_letter_table_put(&c->writer.pg, c->mem, &c->letters, &c->refused, ck_bytes_as_view(&c->rows),
                                   &letters, err);
    c->put_aside += letters;
    clear_gathered(c);
    return s;
}

/* The key is the row as JSON and the line's end; rows that were written ahead before the table had letters have none. */
static ck_status take_line(void *arg, ck_view key, ck_view value, ck_error *err) {
    pg_committer *c = arg;
    ck_status s = ck_bytes_view(&c->lines, value);
    if (s == CK_OK && c->letters.name) s = key.n ? ck_bytes_view(&c->rows, key) : ck_bytes_char(&c->rows, '\n');
    if (s != CK_OK) return ck_nomem(err, c->mem, value.n);
    return c->lines.n >= (size_t)c->options.batch_bytes ? put_gathered(c, err) : CK_OK;
}

static ck_status commit_once(pg_committer *c, const ck_write_ahead_file *f, uint64_t checkpoint, ck_error *err) {
    standing at;
    char sink[24];
    print_sink(sink, f->op_id);
    clear_gathered(c);
    c->writer.skipped = c->put_aside = 0;
    CK_TRY(ck_pg_writer_open(&c->writer, err));
    if (!c->began[0]) end_others(c);
    CK_TRY(begin_life(c, f->job, sink, err)); /* not in the transaction, which may be undone */
    CK_TRY(ck_pg_letter_table_open(&c->writer.pg, &c->arena, &c->letters, err));
    CK_TRY(ck_pg_writer_begin(&c->writer, err));
    CK_TRY(move_token(c, f, checkpoint, &at, err));
    if (at == DONE) return ck_pg_run(&c->writer.pg, "COMMIT", err);
    CK_FAULT(c->proc, POSTGRES_TOKEN);
    CK_TRY(ck_write_ahead_read(c->proc, c->mem, f, take_line, c, err));
    CK_TRY(put_gathered(c, err));
    CK_TRY(ck_pg_writer_commit(&c->writer, err));
    if (c->put_aside)
        ck_log_line(c->proc->log, CK_LOG_WARN, "warning: %s: %llu row%s of checkpoint %llu did not fit and went to %s",
                    c->table.table, (unsigned long long)c->put_aside, c->put_aside == 1 ? "" : "s",
                    (unsigned long long)checkpoint, c->letters.name);
    return CK_OK;
}

typedef struct task {
    const ck_write_ahead_file *file; /* NULL: a life begins */
    const char *other, *other_sink;  /* another job is asked about, in place of both */
    uint64_t checkpoint;             /* of the file, or restored from */
    bool allow_duplicates;
} task;

static ck_status begin(pg_committer *c, uint64_t restored, bool allow_duplicates, ck_error *err);
static ck_status look_behind(pg_committer *c, const task *t, ck_error *err);

static ck_status once(pg_committer *c, const task *t, ck_error *err) {
    if (t->other) return look_behind(c, t, err);
    return t->file ? commit_once(c, t->file, t->checkpoint, err) : begin(c, t->checkpoint, t->allow_duplicates, err);
}

/* Nobody knows how far a try that failed has come: the next one finds out by the token. */
static ck_status carry_out(pg_committer *c, const task *t, ck_error *err) {
    int64_t since = ck_mono_us(c->proc), pause_ms = PAUSE_FIRST_MS;
    for (bool told = false;; told = true) {
        ck_error failed = CK_ERROR_INIT;
        ck_status s = once(c, t, &failed);
        if (s == CK_OK) return CK_OK;
        ck_pg_writer_abort(&c->writer);
        if (!t->file && !t->other) c->began[0] = 0; /* it may have been undone */
        if (!failed.retriable || ck_mono_us(c->proc) - since >= c->options.retry_ms * 1000) {
            if (err) *err = failed;
            ck_error_prefix(err, "table \"%s\": ", c->table.table);
            return s;
        }
        if (!told)
            ck_log_line(c->proc->log, CK_LOG_WARN, "warning: %s: %.700s; trying again", c->table.table, failed.msg);
        (void)poll(NULL, 0, (int)pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
}

static ck_status commit(pg_committer *c, const ck_write_ahead_file *f, uint64_t checkpoint, ck_error *err) {
    CK_TRY(carry_out(c, &(task){.file = f, .checkpoint = checkpoint}, err));
    return ck_write_ahead_drop(c->proc, f, err);
}

static ck_status committer_commit(void *self, const ck_committable *committable, ck_error *err) {
    pg_committer *c = self;
    ck_arena a;
    ck_write_ahead_file f;
    if (!c->on) return CK_OK;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = ck_write_ahead_parse(&a, c->checkpoint_dir, committable, &f, err);
    if (s == CK_OK) s = commit(c, &f, committable->checkpoint, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- a life begins ---- */

static ck_status check_newer(pg_committer *c, const char *job, const char *sink, uint64_t restored, ck_error *err) {
    PGresult *r;
    const char *values[] = {job, sink};
    CK_TRY(ask(c, "SELECT coalesce(max(checkpoint), 0) FROM %s WHERE job = $1 AND sink = $2", 2, values, &r, err));
    uint64_t newest = strtoull(c->writer.pg.lib->PQgetvalue(r, 0, 0), NULL, 10);
    c->writer.pg.lib->PQclear(r);
    if (newest <= restored) return CK_OK;
    return ck_fail(
        err, CK_REFUSED,
        "%s has what checkpoint %llu committed, after the restored %llu: going back would write its rows again "
        "(--allow-duplicates does it)",
        c->writer.remote.shown, (unsigned long long)newest, (unsigned long long)restored);
}

/* A token for each writer that may come; those that are there keep what they say. */
static ck_status add_tokens(pg_committer *c, uint64_t restored, ck_error *err) {
    char last[16], number[24];
    PGresult *r;
    (void)snprintf(last, sizeof last, "%u", c->parallelism - 1);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)restored);
    const char *values[] = {c->job, c->sink, last, number, c->life, c->job_name, c->uid};
    CK_TRY(ask(
        c,
        "WITH i AS (INSERT INTO %s (job, sink, writer, checkpoint, life, job_name, sink_uid) SELECT $1, $2, w, "
        "$4::bigint, $5, $6, $7 FROM generate_series(0, $3::int) w ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) "
        "FROM i",
        7, values, &r, err));
    c->writer.pg.lib->PQclear(r);
    return CK_OK;
}

static ck_status begin(pg_committer *c, uint64_t restored, bool allow_duplicates, ck_error *err) {
    CK_TRY(ck_pg_writer_open(&c->writer, err));
    CK_TRY(make_tokens(c, err));
    end_others(c); /* outside the transaction: a failure in it would end it */
    CK_TRY(ck_pg_run(&c->writer.pg, "BEGIN", err));
    if (!allow_duplicates) CK_TRY(check_newer(c, c->job, c->sink, restored, err));
    CK_TRY(begin_life(c, c->job, c->sink, err));
    CK_TRY(add_tokens(c, restored, err));
    return ck_pg_run(&c->writer.pg, "COMMIT", err);
}

static ck_status look_behind(pg_committer *c, const task *t, ck_error *err) {
    CK_TRY(ck_pg_writer_open(&c->writer, err));
    CK_TRY(make_tokens(c, err));
    return check_newer(c, t->other, t->other_sink, t->checkpoint, err);
}

static ck_status committer_check_behind(void *self, const char *job_uuid, const char *sink_uid, uint64_t restored,
                                        ck_error *err) {
    pg_committer *c = self;
    char sink[24];
    if (!c->on) return CK_OK;
    print_sink(sink, ck_op_id(sink_uid));
    return carry_out(c, &(task){.other = job_uuid, .other_sink = sink, .checkpoint = restored}, err);
}

static ck_status committer_abort_others(void *self, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                                        size_t keep_count, bool allow_duplicates, ck_error *err) {
    pg_committer *c = self;
    if (!c->on) return CK_OK;
    CK_TRY(carry_out(c, &(task){.checkpoint = restored, .allow_duplicates = allow_duplicates}, err));
    return ck_write_ahead_drop_others(c->proc, c->mem, c->checkpoint_dir, job_uuid, ck_op_id(c->uid), keep, keep_count,
                                      err);
}

const ck_committer_vtbl ck_pg_committer_vtbl = {
    .struct_bytes = sizeof(ck_committer_vtbl),
    .commit = committer_commit,
    .abort_others = committer_abort_others,
    .check_behind = committer_check_behind,
    .close = committer_close,
};
