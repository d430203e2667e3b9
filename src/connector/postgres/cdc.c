/* The `postgres` source, mode 'cdc': a table's rows, then its changes, each as the row it was taken back and the row it
 * is. One split, one subtask: changes have an order. An I/O job reads ahead (cdc_feed.c); the step makes columns.
 *
 * A position is where the stream goes on - behind the last whole transaction - and how many changes of the next one
 * have gone out: the server sends a transaction again from its beginning, and its changes come in the same order. So
 * nothing is gathered by transaction, however large it is. What the server may forget is told when a checkpoint that
 * has it is complete. */
#include <poll.h>
#include <stdio.h>

#include "connector/background.h"
#include "connector/postgres/cdc_int.h"
#include "os/clock.h"

enum { COLUMNS_MAX = 1664, NOTES_MAX = 64, PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000, HEADER_BYTES = 25 };

typedef struct note { /* what a checkpoint that is under way has */
    uint64_t checkpoint, lsn;
} note;

typedef struct pg_cdc {
    const ck_source_vtbl *mode; /* first */
    ck_background call;
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    ck_pg_options options;
    ck_event_time event_time;
    ck_pg_bad_rows bad;
    ck_pg_values values;
    ck_bytes unescaped;
    const bool *read;
    ck_batch_builder rows;
    char *id;
    uint32_t clock;
    bool owned; /* the split is ours */
    ck_op_ctx *ctx;
    /* where it is */
    ck_pg_cdc_position at;
    bool range_open;   /* the last range is of this life's reading */
    ck_bytes last_key; /* of the row of the first reading that went out last: values with a NUL behind each */
    bool has_last;
    uint64_t seen_upto;          /* the greatest lsn of ranges: transactions before it are looked at by key */
    uint64_t commit, seen, skip; /* of the transaction under way; commit 0: none */
    uint32_t *place;             /* a table column each: in the server's row */
    bool placed;                 /* a relation message has come on this connection */
    uint32_t key_place[CK_PG_KEY_MAX], width;
    ck_pg_chunk now;
    note notes[NOTES_MAX];
    uint32_t note_count;
    uint64_t confirmed;
    /* the job's while one runs */
    ck_pg_feed feed;
    ck_pg_cdc_position job_at; /* as of its submission; ranges are not changed while it runs */
    uint64_t job_confirmed;
    int64_t failing_since_us, pause_ms; /* INT64_MIN: the last try went well */
    ck_pgo_value old_values[COLUMNS_MAX], new_values[COLUMNS_MAX];
} pg_cdc;

/* ---- making ---- */

static void cdc_free(pg_cdc *s) {
    ck_pg_feed_destroy(&s->feed);
    ck_buffer_unref(&s->now.buffer);
    ck_batch_builder_destroy(&s->rows);
    ck_pg_values_destroy(&s->values);
    ck_bytes_destroy(&s->unescaped);
    ck_bytes_destroy(&s->last_key);
    ck_dead_letters_destroy(&s->bad.letters);
    ck_event_time_destroy(&s->event_time);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status cdc_init(pg_cdc *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_pg_options_read(&s->table.options, &s->options, err));
    CK_TRY(ck_event_time_init(&s->event_time, s->table.event_time, spec, &s->arena, s->mem, err));
    s->bad.on_error = s->options.on_error;
    s->bad.on_error_is_given = s->options.on_error_is_given;
    if (s->options.on_error == CK_ON_ERROR_DEAD_LETTER)
        CK_TRY(ck_dead_letters_init(&s->bad.letters, &s->arena, s->mem, spec->settings->batch_rows, err));
    s->read = ck_pg_columns_read(&s->arena, &s->table, &s->options);
    s->place = ck_arena_array(&s->arena, s->table.schema->field_count + 1u, sizeof *s->place);
    if (!s->read || !s->place) return ck_nomem(err, s->arena.mem, 1);
    s->feed.proc = spec->proc;
    s->feed.mem = s->mem;
    s->feed.options = &s->options;
    s->feed.schema = s->table.schema;
    s->feed.read = s->read;
    s->feed.table = s->table.table;
    s->feed.temporary = !spec->settings->checkpoints;
    ck_arena_init(&s->feed.arena, s->arena.mem, CK_PARAMS_BYTES_MAX);
    uint32_t rows = spec->settings->batch_rows < 2 ? 2 : spec->settings->batch_rows; /* an update is two */
    return ck_batch_builder_init(&s->rows, s->mem, s->table.schema, rows) == CK_OK ? CK_OK
                                                                                   : ck_nomem(err, s->mem, rows);
}

static ck_status cdc_open(void *self, ck_op_ctx *ctx) {
    ((pg_cdc *)self)->ctx = ctx;
    return CK_OK;
}

static void note_ranges(pg_cdc *s) {
    s->seen_upto = 0;
    for (uint32_t i = 0; i < s->at.range_count; i++)
        if (s->at.ranges[i].lsn > s->seen_upto) s->seen_upto = s->at.ranges[i].lsn;
}

static ck_status cdc_add_split(void *self, const ck_split *given, ck_op_ctx *ctx) {
    pg_cdc *s = self;
    CK_TRY(ck_pg_cdc_parse(&s->arena, given->spec, &s->at, ctx->error));
    if (!(s->id = ck_arena_strdup(&s->arena, given->id))) return ck_nomem(ctx->error, s->arena.mem, strlen(given->id));
    s->feed.slot = s->at.slot;
    s->owned = true;
    s->confirmed = 0;
    note_ranges(s);
    return ck_event_time_add(&s->event_time, s->id, s->at.time_us, false, &s->clock, ctx->error);
}

/* ---- the job ---- */

static pg_cdc *of_job(ck_io_job *j) { return (pg_cdc *)(void *)((char *)j - offsetof(pg_cdc, call)); }

/* CK_AGAIN: it failed, and is worth another try from where the step is by then. */
static ck_status try_again(pg_cdc *s, ck_status failed) {
    bool worth = s->call.error.retriable && !s->job_at.reading && !s->feed.temporary;
    int64_t now = ck_mono_us(s->feed.proc);
    ck_pg_feed_close(&s->feed);
    if (worth && s->failing_since_us == INT64_MIN) {
        s->failing_since_us = now;
        s->pause_ms = PAUSE_FIRST_MS;
        ck_log_line(s->feed.proc->log, CK_LOG_WARN, "warning: %s: %.700s; trying again", s->table.table,
                    s->call.error.msg);
    }
    if (!worth || now - s->failing_since_us >= s->options.retry_ms * 1000) {
        ck_error_prefix(&s->call.error, "table \"%s\": ", s->table.table);
        return failed;
    }
    return CK_AGAIN;
}

static void job_run(ck_io_job *j) {
    pg_cdc *s = of_job(j);
    if (s->failing_since_us != INT64_MIN) {
        (void)poll(NULL, 0, (int)s->pause_ms);
        s->pause_ms = s->pause_ms * 2 < PAUSE_MAX_MS ? s->pause_ms * 2 : PAUSE_MAX_MS;
    }
    s->call.status = ck_pg_feed_read(&s->feed, &s->job_at, s->job_confirmed, &s->call.error);
    if (s->call.status != CK_OK) {
        s->call.status = try_again(s, s->call.status);
    } else if (s->failing_since_us != INT64_MIN) {
        s->failing_since_us = INT64_MIN;
        ck_log_line(s->feed.proc->log, CK_LOG_WARN, "%s: the server answers again", s->table.table);
    }
}

static bool has_rows(const pg_cdc *s) { return s->now.begin < s->now.end || s->now.last; }

/* The snapshot of a first reading is as of here; where it began anew, what came before is a range of its own. */
static ck_status open_range(pg_cdc *s, ck_op_ctx *ctx) {
    if (!s->at.reading || s->range_open) return CK_OK;
    if (s->at.range_count == 0) s->at.lsn = s->feed.consistent;
    CK_ASSERT(s->at.range_count < CK_PG_RANGES_MAX);
    s->at.ranges[s->at.range_count++] = (ck_pg_range){NULL, s->feed.consistent};
    s->at.key_count = s->feed.key.count;
    s->range_open = true;
    note_ranges(s);
    (void)ctx;
    return CK_OK;
}

static ck_status take_chunk(pg_cdc *s, ck_op_ctx *ctx) {
    if (has_rows(s) || !ck_background_ended(&s->call)) return CK_OK;
    if (s->call.status != CK_OK && s->call.status != CK_AGAIN) {
        *ctx->error = s->call.error;
        return s->call.status;
    }
    if (s->call.status == CK_OK) CK_TRY(open_range(s, ctx));
    if (s->at.lsn == 0) s->at.lsn = s->feed.consistent;
    s->now = s->feed.chunk;
    s->feed.chunk = (ck_pg_chunk){0};
    return CK_OK;
}

static void read_ahead(pg_cdc *s, ck_op_ctx *ctx) {
    /* A new connection goes on where the step is: that must be the end of what it has. */
    if (s->call.running || !s->owned) return;
    if (has_rows(s) && (!ck_pg_is_open(&s->feed.pg) || s->now.last)) return;
    s->job_at = s->at;
    s->job_confirmed = s->feed.temporary ? s->at.lsn : s->confirmed;
    if (!ck_pg_is_open(&s->feed.pg)) { /* the server will begin that transaction anew */
        s->commit = 0;
        s->placed = false;
    }
    ck_background_begin(&s->call, job_run, ctx);
}

/* ---- rows ---- */

/* One row of the server's; value(arg, i) for a table column. CK_DATA: it does not fit; s->values.why and *column. */
static ck_status build(pg_cdc *s, const ck_pgo_value *values, const ck_pgo_value *old, int weight,
                       const char **column) {
    for (uint32_t i = 0; i < s->table.schema->field_count; i++) {
        if (!s->read[i]) continue;
        const ck_field *f = &s->table.schema->fields[i];
        const ck_pgo_value *v = &values[s->place[i]];
        *column = f->name;
        if (v->unchanged && old) v = &old[s->place[i]];
        if (v->unchanged) {
            (void)snprintf(s->values.why, sizeof s->values.why, "the server did not send its value");
            return CK_DATA;
        }
        CK_TRY(ck_pg_build(&s->values, f, v->text, s->now.buffer, &s->rows.columns[i]));
    }
    ck_batch_builder_row(&s->rows, weight);
    if (weight < 0) s->rows.has_weights = true;
    return CK_OK;
}

/* Whether the first reading has this row's change already. */
static bool is_seen(const pg_cdc *s, const ck_pgo_value *values) {
    ck_view key[CK_PG_KEY_MAX];
    if (s->commit >= s->seen_upto) return false;
    for (uint32_t i = 0; i < s->feed.key.count; i++) key[i] = values[s->key_place[i]].text;
    return ck_pg_is_seen(&s->feed.key, s->at.ranges, s->at.range_count, key, s->commit);
}

static ck_status one_side(pg_cdc *s, const ck_pgo_value *values, const ck_pgo_value *old, int weight, ck_view raw,
                          ck_op_ctx *ctx) {
    const char *column = "";
    char where[64], lsn[CK_PG_LSN_BYTES];
    if (is_seen(s, values)) return CK_OK;
    ck_status status = build(s, values, old, weight, &column);
    if (status == CK_NOMEM) return ck_nomem(ctx->error, s->mem, raw.n);
    if (status != CK_DATA) return status;
    ck_batch_builder_undo(&s->rows);
    if (weight < 0 && s->bad.on_error != CK_ON_ERROR_FAIL) return CK_OK; /* it never went out */
    (void)snprintf(where, sizeof where, "change at %s", ck_pg_lsn_print(lsn, s->commit));
    return ck_pg_bad_row(&s->bad, s->feed.remote.shown, s->id, where, s->commit, raw, column, s->values.why,
                         ctx->error);
}

static ck_status values_of(pg_cdc *s, ck_cursor row, uint32_t count, ck_pgo_value *out, ck_op_ctx *ctx) {
    if (!s->placed || count != s->width)
        return ck_fail(ctx->error, CK_CORRUPT, "table %s: the server sent a row that is not as it said",
                       s->feed.remote.shown);
    for (uint32_t i = 0; i < count; i++)
        if (!ck_pgo_next_value(&row, &out[i])) return ck_fail(ctx->error, CK_CORRUPT, "a row of the server is cut");
    return CK_OK;
}

static ck_status change(pg_cdc *s, const ck_pgo_message *m, ck_view raw, ck_op_ctx *ctx) {
    bool old = m->kind != CK_PGO_INSERT;
    if (old && m->old_kind != 'O')
        return ck_fail(
            ctx->error, CK_REFUSED,
            "a change of %s does not tell the whole row it was: ALTER TABLE %s REPLICA IDENTITY FULL, and --fresh",
            s->feed.remote.shown, s->feed.remote.shown);
    if (s->rows.capacity - s->rows.row_count < 2) return CK_FULL;
    if (s->bad.letters.on && ck_dead_letters_is_full(&s->bad.letters)) return CK_FULL;
    if (s->seen < s->skip) {
        s->seen++;
        return CK_OK;
    }
    if (old) CK_TRY(values_of(s, m->old_row, m->old_count, s->old_values, ctx));
    if (m->kind != CK_PGO_DELETE) CK_TRY(values_of(s, m->new_row, m->new_count, s->new_values, ctx));
    /* A key is never unchanged out of line: a new row's is its own. */
    if (old) CK_TRY(one_side(s, s->old_values, NULL, -1, raw, ctx));
    if (m->kind != CK_PGO_DELETE) CK_TRY(one_side(s, s->new_values, old ? s->old_values : NULL, 1, raw, ctx));
    s->seen++;
    s->at.tx = s->commit;
    s->at.skip = s->seen;
    return CK_OK;
}

/* ---- what the table is, as the stream says ---- */

static ck_status altered(pg_cdc *s, const char *column, const char *how, ck_op_ctx *ctx) {
    return ck_fail(
        ctx->error, CK_REFUSED,
        "%s was altered on the server: column \"%s\" %s; bring the table here in line with it and start anew with "
        "--fresh",
        s->feed.remote.shown, column, how);
}

static ck_status relation(pg_cdc *s, const ck_pgo_message *m, ck_op_ctx *ctx) {
    uint32_t n = s->table.schema->field_count;
    if (m->new_count > COLUMNS_MAX) return ck_fail(ctx->error, CK_CORRUPT, "a relation of %u columns", m->new_count);
    for (uint32_t i = 0; i < n; i++) s->place[i] = UINT32_MAX;
    for (uint32_t k = 0; k < s->feed.key.count; k++) s->key_place[k] = UINT32_MAX;
    ck_cursor c = m->new_row;
    for (uint32_t at = 0; at < m->new_count; at++) {
        ck_pgo_column column;
        if (!ck_pgo_next_column(&c, &column)) return ck_fail(ctx->error, CK_CORRUPT, "a relation is cut");
        for (uint32_t k = 0; k < s->feed.key.count; k++)
            if (ck_view_is(column.name, s->feed.key.names[k])) s->key_place[k] = at;
        const char *name = ck_arena_strndup(ctx->arena, column.name.p, column.name.n);
        const char *quoted = name ? ck_pg_ident(ctx->arena, name) : NULL;
        if (!quoted) return ck_nomem(ctx->error, ctx->mem, column.name.n);
        for (uint32_t i = 0; i < n; i++) {
            if (!s->read[i] || strcmp(quoted, s->feed.remote.columns[i].ident) != 0) continue;
            if (column.type != s->feed.remote.columns[i].type_oid)
                return altered(s, s->table.schema->fields[i].name, "has another type", ctx);
            s->place[i] = at;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->read[i] && s->place[i] == UINT32_MAX) return altered(s, s->table.schema->fields[i].name, "is gone", ctx);
    for (uint32_t k = 0; k < s->feed.key.count; k++)
        if (s->key_place[k] == UINT32_MAX) return altered(s, s->feed.key.names[k], "of its key is gone", ctx);
    s->placed = true;
    s->width = m->new_count;
    return CK_OK;
}

/* Another table's changes are nothing to us, unless it has taken the name. */
static ck_status stranger(pg_cdc *s, const ck_pgo_message *m, ck_op_ctx *ctx) {
    const ck_pg_table *t = &s->feed.remote;
    if (!ck_view_is(m->schema, t->schema_bare) || !ck_view_is(m->name, t->name_bare)) return CK_OK;
    return ck_fail(
        ctx->error, CK_REFUSED,
        "%s is another table on the server now: the one that was followed was dropped or renamed; --fresh reads "
        "the new one",
        t->shown);
}

static ck_status truncated(pg_cdc *s, const ck_pgo_message *m, ck_op_ctx *ctx) {
    ck_cursor c = m->new_row;
    uint32_t number;
    for (uint32_t i = 0; i < m->count; i++)
        if (ck_cursor_u32be(&c, &number) && number == s->feed.remote.oid)
            return ck_fail(ctx->error, CK_REFUSED,
                           "%s was truncated on the server, which does not tell the rows it had: --fresh reads it anew",
                           s->feed.remote.shown);
    return CK_OK;
}

/* ---- messages ---- */

static ck_status message(pg_cdc *s, ck_view bytes, ck_op_ctx *ctx) {
    ck_pgo_message m;
    CK_TRY(ck_pgo_parse(bytes, &m, ctx->error));
    switch (m.kind) {
    case CK_PGO_BEGIN:
        s->commit = m.lsn;
        s->seen = 0;
        s->skip = s->at.tx == m.lsn ? s->at.skip : 0;
        return CK_OK;
    case CK_PGO_COMMIT:
        s->commit = 0;
        s->at.lsn = m.lsn;
        s->at.tx = s->at.skip = 0;
        return CK_OK;
    case CK_PGO_RELATION: return m.relation == s->feed.remote.oid ? relation(s, &m, ctx) : stranger(s, &m, ctx);
    case CK_PGO_INSERT:
    case CK_PGO_UPDATE:
    case CK_PGO_DELETE: return m.relation == s->feed.remote.oid ? change(s, &m, bytes, ctx) : CK_OK;
    case CK_PGO_TRUNCATE: return truncated(s, &m, ctx);
    default: return CK_OK;
    }
}

/* 'k': how far the server has come; with no transaction under way there is nothing of ours before that. */
static void keepalive(pg_cdc *s, ck_cursor c) {
    uint64_t end;
    if (ck_cursor_u64be(&c, &end) && s->commit == 0 && s->at.tx == 0 && end > s->at.lsn) s->at.lsn = end;
}

/* CK_FULL: the batch is. */
static ck_status take_messages(pg_cdc *s, ck_op_ctx *ctx) {
    while (s->now.begin < s->now.end) {
        ck_cursor c = ck_cursor_of(s->now.buffer->p + s->now.begin, s->now.end - s->now.begin);
        uint32_t n;
        ck_view bytes;
        if (!ck_cursor_u32le(&c, &n) || !ck_cursor_take(&c, n, &bytes) || n == 0)
            return ck_fail(ctx->error, CK_CORRUPT, "a message of the server is cut");
        if (bytes.p[0] == 'w' && n > HEADER_BYTES)
            CK_TRY(message(s, (ck_view){bytes.p + HEADER_BYTES, n - HEADER_BYTES}, ctx));
        else if (bytes.p[0] == 'k')
            keepalive(s, ck_cursor_of(bytes.p + 1, n - 1));
        s->now.begin += n + 4;
    }
    return CK_OK;
}

/* ---- lines of the first reading ---- */

static ck_status line(pg_cdc *s, const char *text, size_t n, ck_op_ctx *ctx) {
    size_t at = 0;
    ck_view v, rest;
    bool in;
    const char *column = "";
    ck_bytes_clear(&s->last_key);
    for (uint32_t i = 0; i < s->feed.key.count; i++) {
        CK_TRY(ck_pg_copy_field(&s->unescaped, text, n, &at, &v, &in));
        if (ck_bytes_view(&s->last_key, v) != CK_OK || ck_bytes_char(&s->last_key, 0) != CK_OK)
            return ck_nomem(ctx->error, s->mem, v.n);
    }
    s->has_last = true;
    rest = (ck_view){text + (at < n ? at : n), at < n ? n - at : 0};
    ck_pg_row_builder to = {&s->values, &s->unescaped, s->table.schema, s->read, s->now.buffer, &s->rows};
    ck_status status = ck_pg_copy_row(&to, text, n, at, &column);
    if (status == CK_NOMEM) return ck_nomem(ctx->error, s->mem, n);
    if (status != CK_DATA) return status;
    ck_batch_builder_undo(&s->rows);
    return ck_pg_bad_row(&s->bad, s->feed.remote.shown, s->id, "first reading", s->at.lsn, rest, column, s->values.why,
                         ctx->error);
}

static ck_status take_lines(pg_cdc *s, ck_op_ctx *ctx) {
    while (s->now.begin < s->now.end) {
        if (s->rows.row_count == s->rows.capacity) return CK_FULL;
        if (s->bad.letters.on && ck_dead_letters_is_full(&s->bad.letters)) return CK_FULL;
        const char *text = (const char *)s->now.buffer->p + s->now.begin;
        const char *newline = memchr(text, '\n', s->now.end - s->now.begin);
        size_t n = newline ? (size_t)(newline - text) : s->now.end - s->now.begin;
        CK_TRY(line(s, text, n, ctx));
        s->now.begin += n + 1;
    }
    return CK_OK;
}

/* ---- a step ---- */

static ck_status emit(pg_cdc *s, ck_op_ctx *ctx) {
    CK_TRY(ck_pg_bad_rows_emit(&s->bad, ctx));
    uint32_t n = s->rows.row_count;
    if (n == 0) return CK_OK;
    ck_batch *b = ck_batch_builder_finish(&s->rows);
    return ck_source_emit(&s->table, &s->event_time, s->clock, &b, n, ctx);
}

static ck_status make_rows(pg_cdc *s, ck_op_ctx *ctx) {
    size_t from = s->now.begin;
    ck_status status = s->now.lines ? take_lines(s, ctx) : take_messages(s, ctx);
    if (status != CK_OK && status != CK_FULL) return status;
    ck_op_count(ctx, "bytes_in", s->now.begin - from);
    CK_TRY(emit(s, ctx));
    if (s->now.begin < s->now.end) return CK_OK;
    ck_buffer_unref(&s->now.buffer);
    if (s->now.last) s->at.reading = s->range_open = false;
    s->now.last = false;
    return CK_OK;
}

static ck_status cdc_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    pg_cdc *s = self;
    *until_us = INT64_MAX;
    *result = CK_POLL_MORE;
    CK_TRY(take_chunk(s, ctx));
    read_ahead(s, ctx);
    if (has_rows(s)) return make_rows(s, ctx);
    *result = s->owned ? CK_POLL_IDLE : CK_POLL_END;
    if (s->owned) ck_event_time_empty(&s->event_time, s->clock, ck_mono_us(ctx->proc), until_us);
    return ck_event_time_say(&s->event_time, ctx);
}

/* The range under way ends, for whoever goes on from here, behind the row that went out last. */
static ck_status close_range(pg_cdc *s, ck_pg_cdc_position *p, ck_op_ctx *ctx) {
    if (!s->at.reading || !s->range_open) return CK_OK;
    p->ranges = ck_arena_array(ctx->arena, p->range_count + 1u, sizeof *p->ranges);
    const char **upto = ck_arena_array(ctx->arena, p->key_count + 1u, sizeof *upto);
    if (!p->ranges || !upto) return ck_nomem(ctx->error, ctx->mem, p->range_count * sizeof *p->ranges);
    memcpy(p->ranges, s->at.ranges, p->range_count * sizeof *p->ranges);
    if (!s->has_last) { /* nothing of it has gone out */
        p->range_count--;
        return CK_OK;
    }
    const char *at = s->last_key.p;
    for (uint32_t i = 0; i < p->key_count; i++) {
        upto[i] = at;
        at += strlen(at) + 1;
    }
    p->ranges[p->range_count - 1].upto = upto;
    return CK_OK;
}

static void take_note(pg_cdc *s, uint64_t checkpoint) {
    if (checkpoint == 0 || s->at.reading) return;
    if (s->note_count == NOTES_MAX) {
        memmove(s->notes, s->notes + 1, (NOTES_MAX - 1) * sizeof *s->notes);
        s->note_count--;
    }
    s->notes[s->note_count++] = (note){checkpoint, s->at.lsn};
}

static ck_status cdc_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    pg_cdc *s = self;
    const char *spec;
    if (!s->owned) return CK_OK;
    ck_pg_cdc_position p = s->at;
    p.time_us = ck_event_time_max(&s->event_time, s->clock);
    CK_TRY(close_range(s, &p, ctx));
    if (p.lsn >= s->seen_upto && !p.reading) p.range_count = 0; /* nothing before it comes again */
    CK_TRY(ck_pg_cdc_print(ctx->arena, &p, &spec, ctx->error));
    if (ck_split_list_add(out, s->id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, strlen(spec));
    take_note(s, out->checkpoint);
    return CK_OK;
}

static void cdc_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    pg_cdc *s = self;
    uint32_t kept = 0;
    (void)ctx;
    for (uint32_t i = 0; i < s->note_count; i++) {
        if (s->notes[i].checkpoint > checkpoint)
            s->notes[kept++] = s->notes[i];
        else if (s->notes[i].lsn > s->confirmed)
            s->confirmed = s->notes[i].lsn;
    }
    s->note_count = kept;
}

static void cdc_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    cdc_free(self);
}

static const ck_source_vtbl cdc_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .open = cdc_open,
    .add_split = cdc_add_split,
    .poll = cdc_poll,
    .snapshot = cdc_snapshot,
    .close = cdc_close,
    .on_committed = cdc_on_committed,
};

ck_status ck_pg_cdc_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    mem = ck_mem_as(mem, CK_MEM_DECODE);
    pg_cdc *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mode = &cdc_vtbl;
    s->mem = mem;
    s->failing_since_us = INT64_MIN;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_pg_values_init(&s->values, mem);
    ck_bytes_init(&s->unescaped, mem, 1 << 30);
    ck_bytes_init(&s->last_key, mem, 1 << 30);
    ck_status status = cdc_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        cdc_free(s);
    return status;
}
