/* The `postgres` source, mode 'scan': a table read as it was when the job began. Each subtask has a connection whose
 * transaction took the job's snapshot, and copies out its ranges of pages one after the other, an I/O job filling a
 * chunk of rows ahead while the step makes columns of the one before. A split's position is the place (ctid) of its
 * last row. */
#include <stdio.h>
#include <stdlib.h>

#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/postgres/pg_int.h"

enum { CHUNK_BYTES = 256 << 10, PATIENCE_MS = 100, ROW_BYTES_MAX = 1 << 30 };

typedef struct split {
    char *id;
    ck_pg_split at;
    uint32_t clock;
} split;

/* Rows of COPY, a line each. */
typedef struct chunk {
    ck_buffer *buffer;
    size_t begin, end;
    uint32_t split; /* whose rows they are */
    bool last;      /* nothing of the split follows */
} chunk;

typedef struct pg_source {
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
    const bool *read; /* a table column each */
    ck_batch_builder rows;
    split *splits;
    uint32_t count, capacity;
    uint32_t finished; /* splits before it are */
    chunk now;         /* being made into columns */
    ck_op_ctx *ctx;
    /* the job's while one runs */
    ck_pg pg;
    ck_pg_table remote;
    chunk next;
    uint32_t reading; /* the split whose rows come */
    bool copying, looked;
    char *held; /* a row that was too long for its chunk */
    int held_bytes;
} pg_source;

/* ---- making ---- */

static void source_free(pg_source *s) {
    if (s->held) s->pg.lib->PQfreemem(s->held);
    ck_pg_close(&s->pg);
    ck_buffer_unref(&s->now.buffer);
    ck_buffer_unref(&s->next.buffer);
    ck_batch_builder_destroy(&s->rows);
    ck_pg_values_destroy(&s->values);
    ck_bytes_destroy(&s->unescaped);
    ck_dead_letters_destroy(&s->bad.letters);
    ck_event_time_destroy(&s->event_time);
    ck_free(s->mem, s->splits, s->capacity * sizeof *s->splits);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status source_init(pg_source *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_pg_options_read(&s->table.options, &s->options, err));
    CK_TRY(ck_event_time_init(&s->event_time, s->table.event_time, spec, &s->arena, s->mem, err));
    s->bad.on_error = s->options.on_error;
    s->bad.on_error_is_given = s->options.on_error_is_given;
    if (s->options.on_error == CK_ON_ERROR_DEAD_LETTER)
        CK_TRY(ck_dead_letters_init(&s->bad.letters, &s->arena, s->mem, spec->settings->batch_rows, err));
    if (!(s->read = ck_pg_columns_read(&s->arena, &s->table, &s->options))) return ck_nomem(err, s->arena.mem, 1);
    ck_status status = ck_batch_builder_init(&s->rows, s->mem, s->table.schema, spec->settings->batch_rows);
    return status == CK_OK ? CK_OK : ck_nomem(err, s->mem, spec->settings->batch_rows);
}

ck_status ck_pg_scan_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    mem = ck_mem_as(mem, CK_MEM_DECODE);
    pg_source *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mode = &ck_pg_scan_vtbl;
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_pg_values_init(&s->values, mem);
    ck_bytes_init(&s->unescaped, mem, ROW_BYTES_MAX);
    ck_status status = source_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        source_free(s);
    return status;
}

static ck_status source_open(void *self, ck_op_ctx *ctx) {
    ((pg_source *)self)->ctx = ctx;
    return CK_OK;
}

static ck_status source_add_split(void *self, const ck_split *given, ck_op_ctx *ctx) {
    pg_source *s = self;
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 8;
        void *p = ck_realloc(s->mem, s->splits, s->capacity * sizeof *s->splits, capacity * sizeof *s->splits);
        if (!p) return ck_nomem(ctx->error, s->mem, capacity * sizeof *s->splits);
        s->splits = p;
        s->capacity = capacity;
    }
    split *made = &s->splits[s->count];
    *made = (split){.id = ck_arena_strdup(&s->arena, given->id)};
    if (!made->id) return ck_nomem(ctx->error, s->arena.mem, strlen(given->id));
    CK_TRY(ck_pg_split_parse(&s->arena, given->spec, &made->at, ctx->error));
    CK_TRY(ck_event_time_add(&s->event_time, made->id, made->at.time_us, made->at.finished, &made->clock, ctx->error));
    s->count++;
    return CK_OK;
}

/* ---- the job: rows from the server ---- */

static ck_status take_snapshot(pg_source *s, const ck_pg_split *at) {
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(s->mem, CK_MEM_PLAN), 1 << 16);
    const char *id = ck_pg_literal(&a, at->snapshot);
    const char *sql =
        id ? ck_arena_printf(&a, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT %s", id)
           : NULL;
    ck_status status = sql ? ck_pg_run(&s->pg, sql, &s->call.error) : ck_nomem(&s->call.error, s->mem, 128);
    ck_arena_destroy(&a);
    if (status == CK_OK || s->call.error.retriable || !at->stored) return status;
    /* A job that goes on later: nobody holds the snapshot any more. */
    ck_log_line(s->pg.proc->log, CK_LOG_WARN,
                "warning: %s: the rest of the table is read as it is now, the snapshot the job began with is gone",
                s->table.table);
    ck_error_reset(&s->call.error);
    return ck_pg_run(&s->pg, "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &s->call.error);
}

static ck_status connect_source(pg_source *s) {
    CK_TRY(ck_pg_connect(&s->pg, s->ctx->proc, &s->options, false, &s->call.error));
    CK_TRY(take_snapshot(s, &s->splits[s->reading].at));
    /* Rows must come in the order of their places. */
    CK_TRY(ck_pg_run(&s->pg, "SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0",
                     &s->call.error));
    const char *name = s->options.table ? s->options.table : s->table.table;
    CK_TRY(ck_pg_table_read(&s->pg, &s->arena, name, s->table.schema, s->read, false, &s->remote, &s->call.error));
    CK_TRY(ck_pg_table_lock(&s->pg, &s->arena, &s->remote, &s->call.error));
    s->looked = true;
    return CK_OK;
}

/* COPY (SELECT ctid, columns FROM ONLY table WHERE ctid in the range and behind the last row) TO STDOUT */
static ck_status begin_split(pg_source *s) {
    const ck_pg_split *at = &s->splits[s->reading].at;
    ck_bytes sql;
    ck_bytes_init(&sql, s->mem, 1 << 20);
    ck_status status = ck_bytes_str(&sql, "COPY (SELECT ctid");
    for (uint32_t i = 0; status == CK_OK && i < s->table.schema->field_count; i++)
        if (s->read[i]) status = ck_bytes_printf(&sql, ", %s", s->remote.columns[i].ident);
    if (status == CK_OK)
        status = at->item ? ck_bytes_printf(&sql, " FROM ONLY %s WHERE ctid > '(%u,%u)'::tid", at->table, at->block,
                                            at->item)
                          : ck_bytes_printf(&sql, " FROM ONLY %s WHERE ctid >= '(%u,0)'::tid", at->table, at->from);
    if (status == CK_OK && at->to != UINT32_MAX) status = ck_bytes_printf(&sql, " AND ctid < '(%u,0)'::tid", at->to);
    if (status == CK_OK) status = ck_bytes_str(&sql, ") TO STDOUT");
    if (status == CK_OK) status = ck_bytes_terminate(&sql);
    status = status == CK_OK ? ck_pg_begin_copy(&s->pg, sql.p, PGRES_COPY_OUT, &s->call.error)
                             : ck_nomem(&s->call.error, s->mem, sql.n);
    ck_bytes_destroy(&sql);
    s->copying = status == CK_OK;
    return status;
}

/* A row goes into the chunk, or is held for the next. */
static ck_status put_row(pg_source *s, char *row, int n, bool *full) {
    chunk *to = &s->next;
    if (!to->buffer) {
        size_t bytes = n > CHUNK_BYTES ? (size_t)n : CHUNK_BYTES;
        if (!(to->buffer = ck_buffer_new(s->mem, bytes))) {
            s->pg.lib->PQfreemem(row);
            return ck_nomem(&s->call.error, s->mem, bytes);
        }
        to->begin = to->end = 0;
    }
    *full = (size_t)n > to->buffer->bytes - to->end;
    if (*full) {
        s->held = row;
        s->held_bytes = n;
        return CK_OK;
    }
    memcpy(to->buffer->p + to->end, row, (size_t)n);
    to->end += (size_t)n;
    s->pg.lib->PQfreemem(row);
    return CK_OK;
}

static ck_status end_split(pg_source *s) {
    CK_TRY(ck_pg_end_rows(&s->pg, &s->call.error));
    s->copying = false;
    s->next.last = true;
    return CK_OK;
}

static ck_status fill(pg_source *s) {
    bool full = false, waited = false;
    if (s->held) {
        char *row = s->held;
        s->held = NULL;
        CK_TRY(put_row(s, row, s->held_bytes, &full));
    }
    while (!full) {
        char *row = NULL;
        int n = s->pg.lib->PQgetCopyData(s->pg.conn, &row, 1);
        if (n > 0) {
            CK_TRY(put_row(s, row, n, &full));
        } else if (n == 0) {
            if (waited || s->next.end) return CK_OK; /* what there is goes; with nothing the job comes again */
            ck_pg_wait(&s->pg, PATIENCE_MS);
            waited = true;
            if (!s->pg.lib->PQconsumeInput(s->pg.conn)) return ck_pg_fail(&s->pg, NULL, "reading", &s->call.error);
        } else {
            return n == -1 ? end_split(s) : ck_pg_fail(&s->pg, NULL, "reading", &s->call.error);
        }
    }
    return CK_OK;
}

static ck_status read_on(pg_source *s) {
    if (!s->looked) CK_TRY(connect_source(s));
    if (!s->copying) CK_TRY(begin_split(s));
    s->next.split = s->reading;
    return fill(s);
}

static pg_source *of_job(ck_io_job *j) { return (pg_source *)(void *)((char *)j - offsetof(pg_source, call)); }

static void job_run(ck_io_job *j) {
    pg_source *s = of_job(j);
    s->call.status = read_on(s);
    if (s->call.status == CK_OK) return;
    ck_pg_close(&s->pg);
    ck_error_prefix(&s->call.error, "table %s: ", s->table.table);
}

/* ---- columns of a chunk ---- */

/* "(12,3)" */
static bool parse_place(ck_view v, uint32_t *block, uint32_t *item) {
    char text[32], *end;
    if (v.n < 5 || v.n >= sizeof text || v.p[0] != '(') return false;
    memcpy(text, v.p, v.n);
    text[v.n] = 0;
    *block = (uint32_t)strtoul(text + 1, &end, 10);
    if (*end != ',') return false;
    *item = (uint32_t)strtoul(end + 1, &end, 10);
    return *end == ')';
}

static ck_status bad_row(pg_source *s, const split *of, uint32_t block, uint32_t item, ck_view raw, const char *column,
                         ck_op_ctx *ctx) {
    char where[64];
    (void)snprintf(where, sizeof where, "row (%u,%u)", block, item);
    ck_batch_builder_undo(&s->rows);
    return ck_pg_bad_row(&s->bad, of->at.table, of->id, where, (uint64_t)block << 16 | item, raw, column, s->values.why,
                         ctx->error);
}

/* CK_FULL: the batch is. */
static ck_status build_rows(pg_source *s, ck_op_ctx *ctx) {
    split *of = &s->splits[s->now.split];
    while (s->now.begin < s->now.end) {
        if (s->rows.row_count == s->rows.capacity) return CK_FULL;
        const char *line = (const char *)s->now.buffer->p + s->now.begin, *column = "ctid";
        const char *newline = memchr(line, '\n', s->now.end - s->now.begin);
        size_t n = newline ? (size_t)(newline - line) : s->now.end - s->now.begin, at = 0;
        uint32_t block, item;
        ck_view place;
        bool in;
        CK_TRY(ck_pg_copy_field(&s->unescaped, line, n, &at, &place, &in));
        if (!parse_place(place, &block, &item))
            return ck_fail(ctx->error, CK_CORRUPT, "table %s: the server sent a row without its place", of->at.table);
        ck_pg_row_builder to = {&s->values, &s->unescaped, s->table.schema, s->read, s->now.buffer, &s->rows};
        ck_status status = ck_pg_copy_row(&to, line, n, at, &column);
        if (status == CK_DATA)
            status =
                bad_row(s, of, block, item, at < n ? (ck_view){line + at, n - at} : (ck_view){line, 0}, column, ctx);
        if (status == CK_NOMEM) return ck_nomem(ctx->error, s->mem, n);
        if (status != CK_OK) return status;
        of->at.block = block, of->at.item = item;
        s->now.begin += n + 1;
    }
    return CK_OK;
}

static ck_status emit(pg_source *s, ck_op_ctx *ctx) {
    CK_TRY(ck_pg_bad_rows_emit(&s->bad, ctx));
    uint32_t n = s->rows.row_count;
    if (n == 0) return CK_OK;
    ck_batch *b = ck_batch_builder_finish(&s->rows);
    return ck_source_emit(&s->table, &s->event_time, s->splits[s->now.split].clock, &b, n, ctx);
}

/* ---- a step ---- */

static ck_status make_rows(pg_source *s, ck_op_ctx *ctx) {
    size_t from = s->now.begin;
    ck_status status = build_rows(s, ctx);
    if (status != CK_OK && status != CK_FULL) return status;
    ck_op_count(ctx, "bytes_in", s->now.begin - from);
    CK_TRY(emit(s, ctx));
    if (s->now.begin < s->now.end) return CK_OK;
    ck_buffer_unref(&s->now.buffer);
    if (!s->now.last) return CK_OK;
    s->now.last = false;
    s->splits[s->now.split].at.finished = true;
    ck_event_time_finish(&s->event_time, s->splits[s->now.split].clock);
    return ck_event_time_say(&s->event_time, ctx);
}

static bool has_rows(const pg_source *s) { return s->now.begin < s->now.end || s->now.last; }

/* Takes the chunk a job has filled. */
static ck_status take_chunk(pg_source *s, ck_op_ctx *ctx) {
    if (has_rows(s) || !ck_background_ended(&s->call)) return CK_OK;
    if (s->call.status != CK_OK) {
        *ctx->error = s->call.error;
        return s->call.status;
    }
    s->now = s->next;
    s->next = (chunk){0};
    if (s->now.last) s->reading++;
    return CK_OK;
}

static void read_ahead(pg_source *s, ck_op_ctx *ctx) {
    if (s->call.running) return;
    while (s->reading < s->count && s->splits[s->reading].at.finished) s->reading++;
    if (s->reading == s->count) {
        ck_pg_close(&s->pg); /* the job may go on for long: its transaction would keep the server from clearing up */
        return;
    }
    ck_background_begin(&s->call, job_run, ctx);
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    pg_source *s = self;
    *until_us = INT64_MAX;
    *result = CK_POLL_MORE;
    CK_TRY(take_chunk(s, ctx));
    read_ahead(s, ctx);
    if (has_rows(s)) return make_rows(s, ctx);
    *result = s->call.running ? CK_POLL_IDLE : CK_POLL_END;
    return ck_event_time_say(&s->event_time, ctx);
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    pg_source *s = self;
    for (uint32_t i = 0; i < s->count; i++) {
        split *at = &s->splits[i];
        const char *spec;
        ck_pg_split stored = at->at;
        stored.stored = true;
        stored.time_us = ck_event_time_max(&s->event_time, at->clock);
        CK_TRY(ck_pg_split_print(ctx->arena, &stored, &spec, ctx->error));
        if (ck_split_list_add(out, at->id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, strlen(spec));
    }
    return CK_OK;
}

static void source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    source_free(self);
}

const ck_source_vtbl ck_pg_scan_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .open = source_open,
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
};
