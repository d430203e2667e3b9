/* The `postgres` sink. Rows become lines of COPY in the step.
 *
 * Exactly once: the lines are written ahead, and the committer sends them when the checkpoint is complete.
 *
 * At least once: an I/O job sends what has come together in one transaction while the step gathers the next; at a
 * barrier and at the end all of it must be committed. A server that is away, and a transaction the server gave up for
 * another one's sake, is tried again for retry_ms. */
#include <poll.h>

#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/postgres/pg_int.h"
#include "connector/write_ahead.h"
#include "format/encoder.h"
#include "os/clock.h"

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000, LINES_BYTES_MAX = 1 << 30 };

typedef struct pg_sink {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena;
    ck_sink_table table;
    ck_pg_options options;
    ck_pg_values values;
    ck_pg_letters letters;
    bool commits; /* exactly once */
    ck_write_ahead ahead;
    uint8_t *kinds; /* CK_BATCH_ROWS_MAX; NULL: append */
    ck_op_ctx *ctx;
    ck_bytes lines; /* gathered */
    /* the job's while one runs */
    ck_bytes sending; /* not committed yet */
    ck_pg_writer writer;
    int64_t failing_since_us; /* monotonic; INT64_MIN: the last try went well */
    int64_t pause_ms;
} pg_sink;

/* ---- making ---- */

static void sink_free(pg_sink *s) {
    ck_pg_writer_destroy(&s->writer);
    ck_write_ahead_destroy(&s->ahead);
    ck_bytes_destroy(&s->lines);
    ck_bytes_destroy(&s->sending);
    ck_pg_values_destroy(&s->values);
    ck_pg_letters_destroy(&s->letters);
    if (s->kinds) ck_free(s->mem, s->kinds, CK_BATCH_ROWS_MAX);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status sink_init(pg_sink *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_sink_table_read(&s->arena, spec, &s->table, NULL, err));
    CK_TRY(ck_pg_options_read(&s->table.options, &s->options, err));
    s->commits = spec->settings->checkpoints && s->options.exactly_once;
    ck_pg_writer_init(&s->writer, spec->proc, s->mem, &s->options, &s->table);
    CK_TRY(ck_pg_letters_init(&s->letters, &s->options, &s->table, &s->arena, s->mem, spec->settings->batch_rows, err));
    if (s->letters.on) s->writer.refused = &s->letters.refused;
    if (spec->inputs[0].mode == CK_MODE_APPEND) return CK_OK;
    if (s->table.key_count == 0)
        return ck_fail(err, CK_INVALID, "%s (%s): changes need a PRIMARY KEY", spec->type, spec->uid);
    s->kinds = ck_alloc(s->mem, CK_BATCH_ROWS_MAX);
    return s->kinds ? CK_OK : ck_nomem(err, s->mem, CK_BATCH_ROWS_MAX);
}

static ck_status sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    pg_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    s->failing_since_us = INT64_MIN;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->lines, mem, LINES_BYTES_MAX);
    ck_bytes_init(&s->sending, mem, LINES_BYTES_MAX);
    ck_pg_values_init(&s->values, mem);
    ck_status status = sink_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        sink_free(s);
    return status;
}

static ck_status sink_open(void *self, ck_op_ctx *ctx) {
    pg_sink *s = self;
    s->ctx = ctx;
    return s->commits ? ck_write_ahead_init(&s->ahead, ctx, s->mem) : CK_OK;
}

/* Before anything runs: whether the server answers, has the table, and its types and key fit. */
static ck_status sink_look(const ck_op_spec *spec, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_sink_table table;
    ck_pg_options o;
    ck_pg_writer w = {0};
    ck_pg_letter_table letters;
    struct yyjson_val *params;
    ck_status s = ck_sink_table_read(&a, spec, &table, &params, err);
    if (s == CK_OK) s = ck_pg_options_read(&table.options, &o, err);
    if (s == CK_OK) {
        ck_pg_writer_init(&w, spec->proc, a.mem, &o, &table);
        s = ck_pg_writer_open(&w, err);
    }
    if (s == CK_OK) s = ck_pg_letter_table_read(&a, params, table.table, &letters, err);
    if (s == CK_OK) s = ck_pg_letter_table_open(&w.pg, &a, &letters, err);
    if (s != CK_OK && table.table) ck_error_prefix(err, "table \"%s\": ", table.table);
    ck_pg_writer_destroy(&w);
    ck_arena_destroy(&a);
    return s;
}

/* ---- the job ---- */

static ck_status send_lines(pg_sink *s) {
    CK_TRY(ck_pg_writer_begin(&s->writer, &s->call.error));
    CK_TRY(ck_pg_writer_put(&s->writer, ck_bytes_as_view(&s->sending), &s->call.error));
    return ck_pg_writer_commit(&s->writer, &s->call.error);
}

/* CK_AGAIN: it failed, and is worth another try. */
static ck_status try_again(pg_sink *s, ck_status failed) {
    ck_pg_writer_abort(&s->writer);
    if (!s->call.error.retriable) {
        ck_error_prefix(&s->call.error, "table \"%s\": ", s->table.table);
        return failed;
    }
    int64_t now = ck_mono_us(s->ctx->proc);
    if (s->failing_since_us == INT64_MIN) {
        s->failing_since_us = now;
        s->pause_ms = PAUSE_FIRST_MS;
        ck_log_line(s->ctx->proc->log, CK_LOG_WARN, "warning: %s: %.700s; trying again", s->table.table,
                    s->call.error.msg);
    }
    if (now - s->failing_since_us >= s->options.retry_ms * 1000) {
        ck_error_prefix(&s->call.error, "given up after %lld ms: ", (long long)s->options.retry_ms);
        return failed;
    }
    (void)poll(NULL, 0, (int)s->pause_ms);
    s->pause_ms = s->pause_ms * 2 < PAUSE_MAX_MS ? s->pause_ms * 2 : PAUSE_MAX_MS;
    return CK_AGAIN;
}

static void job_run(ck_io_job *j) {
    pg_sink *s = (pg_sink *)j;
    s->writer.skipped = 0;
    if (s->letters.on) ck_bytes_clear(&s->letters.refused);
    s->call.status = send_lines(s);
    if (s->call.status != CK_OK) {
        s->call.status = try_again(s, s->call.status);
        return;
    }
    if (s->failing_since_us != INT64_MIN)
        ck_log_line(s->ctx->proc->log, CK_LOG_WARN, "%s: the server takes rows again", s->table.table);
    s->failing_since_us = INT64_MIN;
    ck_bytes_clear(&s->sending);
}

static void submit(pg_sink *s, ck_op_ctx *ctx) { ck_background_begin(&s->call, job_run, ctx); }

/* Takes the end of a job, and begins the next where there is enough to send (any: where there is something). */
static ck_status pump(pg_sink *s, bool any, ck_op_ctx *ctx) {
    if (s->call.running) {
        if (!ck_background_ended(&s->call)) return CK_OK;
        if (s->call.status != CK_OK && s->call.status != CK_AGAIN) {
            *ctx->error = s->call.error;
            return s->call.status;
        }
        if (s->writer.skipped && s->call.status == CK_OK) ck_op_count(ctx, "bad_rows", s->writer.skipped);
        if (s->call.status == CK_OK) CK_TRY(ck_pg_letters_sent(&s->letters, ctx));
    }
    if (s->sending.n == 0 && s->lines.n && (any || s->lines.n >= (size_t)s->options.batch_bytes)) {
        ck_bytes empty = s->sending;
        s->sending = s->lines;
        s->lines = empty;
        ck_pg_letters_send(&s->letters);
    }
    if (s->sending.n) submit(s, ctx);
    return CK_OK;
}

/* Everything so far is committed, and the letters of what is not are on their way. */
static ck_status flush(pg_sink *s, ck_op_ctx *ctx) {
    CK_TRY(pump(s, true, ctx));
    return s->call.running ? CK_AGAIN : ck_sink_rejects_emit(&s->letters.rejects, ctx);
}

/* ---- events ---- */

/* A row the server has no text for. */
static ck_status bad_value(pg_sink *s, uint32_t k, ck_op_ctx *ctx) {
    if (s->options.on_error == CK_ON_ERROR_FAIL) {
        ck_fail(ctx->error, CK_DATA, "table \"%s\": %s", s->table.table, s->values.why);
        ctx->error->fatal = true;
        return CK_DATA;
    }
    return ck_pg_letters_reject(&s->letters, k, s->values.why, ctx);
}

static ck_status encode(pg_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    if (s->kinds) CK_TRY(ck_change_kinds(b, s->table.key, s->table.key_count, s->kinds));
    if (ck_pg_letters_begin(&s->letters, b, s->kinds) != CK_OK) return ck_nomem(ctx->error, s->mem, s->letters.batch.n);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint8_t kind = s->kinds ? s->kinds[k] : CK_CHANGE_INSERT;
        if (kind == CK_CHANGE_UPDATE_BEFORE) continue; /* the row behind it replaces it */
        size_t from = s->lines.n;
        ck_status status =
            ck_pg_line(&s->values, &s->table, b, ck_batch_row(b, k), kind == CK_CHANGE_DELETE, &s->lines);
        if (status == CK_DATA) {
            s->lines.n = from;
            status = bad_value(s, k, ctx);
            if (status != CK_OK) return status;
            continue;
        }
        if (status == CK_OK && !s->commits) status = ck_pg_letters_keep(&s->letters, k);
        if (status != CK_OK) return ck_nomem(ctx->error, s->mem, s->lines.n);
        if (!s->commits) continue;
        CK_TRY(ck_write_ahead_add(&s->ahead, ck_pg_letters_row(&s->letters, k), ck_bytes_as_view(&s->lines), ctx));
        ck_bytes_clear(&s->lines);
    }
    ck_op_count(ctx, "rows_out", b->sel_count);
    return CK_OK;
}

static ck_status take(pg_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    if (s->commits)
        CK_TRY(ck_write_ahead_room(&s->ahead));
    else
        CK_TRY(pump(s, false, ctx));
    if (s->lines.n >= (size_t)s->options.batch_bytes) return CK_AGAIN; /* both are full */
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&s->table, b, ctx->error));
    CK_TRY(encode(s, b, ctx));
    if (!s->commits) return pump(s, false, ctx);
    CK_TRY(ck_write_ahead_flush(&s->ahead, ctx));
    return ck_sink_rejects_emit(&s->letters.rejects, ctx); /* of what the server has no text for */
}

static ck_status sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    pg_sink *s = self;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return take(s, ev->batch, ctx);
    if (s->commits) return CK_OK;
    if (ev->kind == CK_EVENT_FLUSH) return pump(s, true, ctx);
    return ev->kind == CK_EVENT_END ? flush(s, ctx) : CK_OK;
}

static ck_status sink_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    pg_sink *s = self;
    return s->commits ? ck_write_ahead_prepare(&s->ahead, checkpoint, ctx) : flush(s, ctx);
}

static ck_status sink_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    pg_sink *s = self;
    return s->commits ? ck_commits_forget(ctx->state, checkpoint, ctx->error) : CK_OK;
}

static void sink_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    sink_free(self);
}

static const ck_operator_vtbl sink_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = sink_open,
    .on_event = sink_on_event,
    .pre_snapshot = sink_pre_snapshot,
    .on_committed = sink_on_committed,
    .close = sink_close,
};

const ck_op_desc ck_op_sink_postgres = {.type = "sink.postgres",
                                        .op = &sink_vtbl,
                                        .committer = &ck_pg_committer_vtbl,
                                        .create = sink_create,
                                        .create_committer = ck_pg_committer_create,
                                        .slots = ck_write_ahead_slots,
                                        .look = sink_look};
