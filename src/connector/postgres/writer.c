/* Rows to the server, many at once. Without a key they are copied into the table. With one they go through a temporary
 * table, whose latest row of each key is put (INSERT ... ON CONFLICT DO UPDATE) or taken away, keys in order, so that
 * two writers do not wait for each other crosswise. */
#include "connector/postgres/pg_int.h"

enum { STATEMENT_BYTES_MAX = 4 << 20, NAMED_MAX = 5, SERVER_COLUMNS_MAX = 1600 };

/* ---- statements ---- */

typedef struct sql {
    ck_bytes text;
    ck_status status;
} sql;

static void say(sql *s, const char *text) {
    if (s->status == CK_OK) s->status = ck_bytes_str(&s->text, text);
}

typedef enum shape { NAMES, KEYS, EXCLUDED, STAGED_KEYS, JOINED } shape;

/* The columns, or those of the key, with what belongs between them. */
static void say_columns(sql *s, const ck_pg_writer *w, shape how) {
    bool keys = how == KEYS || how == STAGED_KEYS || how == JOINED, first = true;
    uint32_t n = keys ? w->key_count : w->schema->field_count;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = w->remote.columns[keys ? w->key[i] : i].ident;
        bool is_key = false;
        for (uint32_t k = 0; k < w->key_count; k++) is_key |= w->key[k] == i;
        if (how == EXCLUDED && is_key) continue;
        if (!first) say(s, how == JOINED ? " AND " : ", ");
        first = false;
        if (how == JOINED) say(s, "t.");
        if (how == STAGED_KEYS) say(s, "s.");
        say(s, name);
        if (how == EXCLUDED) say(s, " = EXCLUDED."), say(s, name);
        if (how == JOINED) say(s, " = s."), say(s, name);
    }
}

static const char *finish(sql *s, ck_pg_writer *w, ck_error *err) {
    if (s->status == CK_OK) s->status = ck_bytes_terminate(&s->text);
    const char *out = s->status == CK_OK ? ck_arena_strdup(&w->arena, s->text.p) : NULL;
    if (!out) ck_nomem(err, w->mem, s->text.n);
    s->status = CK_OK;
    ck_bytes_clear(&s->text);
    return out;
}

static const char latest[] = "(SELECT DISTINCT ON (";

static void say_latest(sql *s, const ck_pg_writer *w) {
    say(s, latest);
    say_columns(s, w, KEYS);
    say(s, ") * FROM pg_temp.clink_stage ORDER BY ");
    say_columns(s, w, KEYS);
    say(s, ", clink_n DESC) s");
}

static ck_status make_keyed(ck_pg_writer *w, sql *s, ck_error *err) {
    if (w->schema->field_count > SERVER_COLUMNS_MAX - 2)
        return ck_fail(
            err, CK_REFUSED,
            "\"%s\" has %u columns, and a table with a PRIMARY KEY has %d at most: its rows go through one with "
            "two more on the server",
            w->table, w->schema->field_count, SERVER_COLUMNS_MAX - 2);
    say(s, "DROP TABLE IF EXISTS pg_temp.clink_stage; CREATE TEMPORARY TABLE clink_stage ON COMMIT DELETE ROWS AS "
           "SELECT ");
    say_columns(s, w, NAMES);
    say(s, ", false AS clink_gone FROM "), say(s, w->remote.name);
    say(s, " WITH NO DATA; ALTER TABLE pg_temp.clink_stage ADD clink_n bigint GENERATED ALWAYS AS IDENTITY");
    if (!(w->make_stage = finish(s, w, err))) return CK_NOMEM;
    say(s, "COPY pg_temp.clink_stage (");
    say_columns(s, w, NAMES);
    say(s, ", clink_gone) FROM STDIN");
    if (!(w->copy = finish(s, w, err))) return CK_NOMEM;
    say(s, "DELETE FROM "), say(s, w->remote.name), say(s, " t USING ");
    say_latest(s, w);
    say(s, " WHERE s.clink_gone AND ");
    say_columns(s, w, JOINED);
    if (!(w->erase = finish(s, w, err))) return CK_NOMEM;
    say(s, "INSERT INTO "), say(s, w->remote.name), say(s, " (");
    say_columns(s, w, NAMES);
    say(s, ") SELECT ");
    say_columns(s, w, NAMES);
    say(s, " FROM ");
    say_latest(s, w);
    say(s, " WHERE NOT s.clink_gone ORDER BY ");
    say_columns(s, w, STAGED_KEYS);
    say(s, " ON CONFLICT (");
    say_columns(s, w, KEYS);
    say(s, w->key_count < w->schema->field_count ? ") DO UPDATE SET " : ") DO NOTHING");
    say_columns(s, w, EXCLUDED);
    return (w->put = finish(s, w, err)) ? CK_OK : CK_NOMEM;
}

static ck_status make_statements(ck_pg_writer *w, ck_error *err) {
    sql s = {.status = CK_OK};
    ck_status status = CK_OK;
    ck_bytes_init(&s.text, w->mem, STATEMENT_BYTES_MAX);
    if (w->key_count) {
        status = make_keyed(w, &s, err);
    } else {
        say(&s, "COPY "), say(&s, w->remote.name), say(&s, " (");
        say_columns(&s, w, NAMES);
        say(&s, ") FROM STDIN");
        if (!(w->copy = finish(&s, w, err))) status = CK_NOMEM;
    }
    ck_bytes_destroy(&s.text);
    return status;
}

/* ---- a connection ---- */

void ck_pg_writer_init(ck_pg_writer *w, ck_proc *proc, ck_mem mem, const ck_pg_options *o, const ck_sink_table *t) {
    *w = (ck_pg_writer){.pg = {.proc = proc},
                        .mem = mem,
                        .options = o,
                        .schema = t->schema,
                        .key = t->key,
                        .key_count = t->key_count,
                        .table = t->table,
                        .skips = o->on_error != CK_ON_ERROR_FAIL};
    ck_arena_init(&w->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
}

void ck_pg_writer_destroy(ck_pg_writer *w) {
    ck_pg_close(&w->pg);
    if (w->arena.mem.budget) ck_arena_destroy(&w->arena);
}

static ck_status check_key(ck_pg_writer *w, ck_error *err) {
    bool unique = true;
    if (w->key_count) CK_TRY(ck_pg_key_is_unique(&w->pg, &w->arena, &w->remote, w->key, w->key_count, &unique, err));
    if (unique) return CK_OK;
    return ck_fail(
        err, CK_REFUSED,
        "the PRIMARY KEY of \"%s\" is no key of %s on the server: rows are put by it, which needs a PRIMARY KEY "
        "or UNIQUE constraint on just these columns",
        w->table, w->remote.shown);
}

static ck_status check_rights(ck_pg_writer *w, ck_error *err) {
    const char *right = w->key_count ? "INSERT and UPDATE and DELETE and SELECT" : "INSERT";
    const char *query = w->key_count
                            ? "SELECT has_table_privilege($1, 'INSERT') AND has_table_privilege($1, 'UPDATE') AND "
                              "has_table_privilege($1, 'DELETE') AND has_table_privilege($1, 'SELECT')"
                            : "SELECT has_table_privilege($1, 'INSERT')";
    PGresult *r;
    CK_TRY(ck_pg_query(&w->pg, query, 1, &w->remote.name, &r, err));
    bool yes = w->pg.lib->PQgetvalue(r, 0, 0)[0] == 't';
    w->pg.lib->PQclear(r);
    if (yes) return CK_OK;
    ck_fail(err, CK_REFUSED, "this user may not write %s on the server: it needs %s", w->remote.shown, right);
    return CK_REFUSED;
}

ck_status ck_pg_writer_open(ck_pg_writer *w, ck_error *err) {
    if (w->ready && ck_pg_is_open(&w->pg)) return CK_OK;
    w->ready = false;
    ck_arena_reset_to(&w->arena, (ck_arena_mark){0});
    if (!ck_pg_is_open(&w->pg)) {
        CK_TRY(ck_pg_connect(&w->pg, w->pg.proc, w->options, false, err));
        if (w->on_connect) CK_TRY(ck_pg_run(&w->pg, w->on_connect, err));
    }
    const char *name = w->options->table ? w->options->table : w->table;
    CK_TRY(ck_pg_table_read(&w->pg, &w->arena, name, w->schema, NULL, true, &w->remote, err));
    if (w->remote.kind != 'r' && w->remote.kind != 'p' && w->remote.kind != 'v' && w->remote.kind != 'f')
        return ck_fail(err, CK_REFUSED, "%s is no table that takes rows", w->remote.shown);
    CK_TRY(check_rights(w, err));
    CK_TRY(check_key(w, err));
    CK_TRY(make_statements(w, err));
    if (w->make_stage) CK_TRY(ck_pg_run(&w->pg, w->make_stage, err));
    w->ready = true;
    return CK_OK;
}

ck_status ck_pg_writer_begin(ck_pg_writer *w, ck_error *err) {
    CK_TRY(ck_pg_writer_open(w, err));
    w->stage_at = 0;
    return ck_pg_run(&w->pg, "BEGIN", err);
}

void ck_pg_writer_abort(ck_pg_writer *w) {
    if (!ck_pg_is_open(&w->pg)) return;
    if (w->pg.lib->PQtransactionStatus(w->pg.conn) == PQTRANS_IDLE) return;
    if (ck_pg_run(&w->pg, "ROLLBACK", NULL) != CK_OK) ck_pg_close(&w->pg);
}

/* ---- putting ---- */

static ck_status put_lines(ck_pg_writer *w, ck_view lines, ck_error *err) {
    if (w->key_count && w->stage_at) CK_TRY(ck_pg_run(&w->pg, "TRUNCATE pg_temp.clink_stage", err));
    CK_TRY(ck_pg_begin_copy(&w->pg, w->copy, PGRES_COPY_IN, err));
    CK_TRY(ck_pg_put_copy(&w->pg, lines.p, lines.n, err));
    CK_TRY(ck_pg_end_copy(&w->pg, err));
    w->stage_at++;
    if (!w->key_count) return CK_OK;
    CK_TRY(ck_pg_run(&w->pg, w->erase, err));
    return ck_pg_run(&w->pg, w->put, err);
}

static ck_status note_skipped(ck_pg_writer *w, uint32_t line, const ck_error *why, ck_error *err) {
    if (w->refused) {
        if (ck_pg_refused_add(w->refused, line, why->msg) == CK_OK) return CK_OK;
        return ck_nomem(err, w->mem, w->refused->n);
    }
    if (w->skipped++ < NAMED_MAX)
        ck_log_line(w->pg.proc->log, CK_LOG_WARN, "warning: %s: a row is left out: %.700s", w->table, why->msg);
    return CK_OK;
}

static uint32_t count_lines(const char *p, size_t n) {
    uint32_t lines = 0;
    for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))); p++) lines++;
    return lines;
}

/* The end of the line in the middle of lines; their number matters not. */
static size_t middle_of(ck_view lines) {
    const char *p = memchr(lines.p + lines.n / 2, '\n', lines.n - lines.n / 2);
    size_t at = p ? (size_t)(p - lines.p) + 1 : lines.n;
    if (at < lines.n) return at;
    for (at = lines.n / 2; at > 0 && lines.p[at - 1] != '\n';) at--;
    return at;
}

/* What the server does not take is found by halves: the row alone is left out. first: the number of the first line. */
static ck_status put_or_skip(ck_pg_writer *w, ck_view lines, uint32_t first, ck_error *err) {
    CK_TRY(ck_pg_run(&w->pg, "SAVEPOINT clink", err));
    ck_error failed = CK_ERROR_INIT;
    ck_status s = put_lines(w, lines, &failed);
    if (s == CK_OK) return ck_pg_run(&w->pg, "RELEASE SAVEPOINT clink", err);
    if (s != CK_DATA) {
        if (err) *err = failed;
        return s;
    }
    CK_TRY(ck_pg_run(&w->pg, "ROLLBACK TO SAVEPOINT clink; RELEASE SAVEPOINT clink", err));
    size_t middle = middle_of(lines);
    if (middle == 0) return note_skipped(w, first, &failed, err);
    CK_TRY(put_or_skip(w, (ck_view){lines.p, middle}, first, err));
    return put_or_skip(w, (ck_view){lines.p + middle, lines.n - middle}, first + count_lines(lines.p, middle), err);
}

ck_status ck_pg_writer_put(ck_pg_writer *w, ck_view lines, ck_error *err) {
    if (lines.n == 0) return CK_OK;
    return w->skips ? put_or_skip(w, lines, 0, err) : put_lines(w, lines, err);
}

ck_status ck_pg_writer_commit(ck_pg_writer *w, ck_error *err) {
    CK_FAULT(w->pg.proc, POSTGRES_SENT);
    CK_TRY(ck_pg_run(&w->pg, "COMMIT", err));
    CK_FAULT(w->pg.proc, POSTGRES_COMMITTED);
    return CK_OK;
}

/* ---- lines ---- */

ck_status ck_pg_line(ck_pg_values *v, const ck_sink_table *t, const ck_batch *b, uint32_t row, bool gone,
                     ck_bytes *out) {
    for (uint32_t c = 0; c < t->schema->field_count; c++) {
        if (c) CK_TRY(ck_bytes_char(out, '\t'));
        CK_TRY(ck_pg_print_copy(v, t->schema->fields[c].type, b->columns[c], row, out));
    }
    return t->key_count ? ck_bytes_str(out, gone ? "\tt\n" : "\tf\n") : ck_bytes_char(out, '\n');
}
