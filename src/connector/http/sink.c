/* The `http` sink: rows as JSON in requests, some of them under way at once, in an I/O job that comes back after a
 * slice. Before a checkpoint counts every request is answered; what is refused, or not taken after all tries, is
 * rejected.
 *
 * A request says who it is in the header Idempotency-Key:
 *
 *   <job uuid>-<op>-<subtask>-<checkpoint before it>-<number since then>-<hash of its body>
 *
 * A restart that goes on from the checkpoint and meets the same rows in the same order repeats it; other rows never do.
 *
 * With a PRIMARY KEY, whose columns are in the address, rows change: what a key's row is now is put, a row that is gone
 * is deleted. A window is answered as a whole before the next one begins, and has each address once, so that requests
 * of one key follow each other. */
#include <stdio.h>
#include "base/hash.h"

#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/http/http_int.h"
#include "format/encoder.h"
#include "state/state.h"
#include "state/table.h"

enum { WINDOW = 256, SLICE_MS = 100, TEXT_BYTES_MAX = 1 << 30, KEY_BYTES = 160, SAID_BYTES = 320 };

/* One request of the window. */
typedef struct question {
    size_t url_at, url_end, body_at, body_end;
    uint64_t url_hash;
    bool gone; /* the row is deleted: what it was is in the body, which is not sent */
    char key[KEY_BYTES];
} question;

typedef struct http_sink {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena, job_arena;
    ck_sink_table table;
    ck_http_table options;
    ck_http_address address;
    ck_encoder *encoder;
    ck_sink_rejects rejects;
    ck_op_ctx *ctx;
    uint64_t epoch, number; /* the checkpoint before what is sent now; requests since then */
    /* the batch in hand */
    uint32_t at; /* live rows of it that are in a window already */
    bool begun;
    uint8_t *kinds; /* of the batch's rows: CK_BATCH_ROWS_MAX; NULL: rows do not change */
    size_t *ends;   /* of rows in text: CK_BATCH_ROWS_MAX */
    ck_bytes text;  /* rows, a line each */
    /* the window; the job's while one runs */
    ck_http_client client;
    bool is_open;
    ck_http_request *requests;    /* WINDOW */
    question *questions;          /* WINDOW */
    uint32_t count, settled;      /* settled: of them, those that are looked at */
    ck_bytes body, urls, scratch; /* arrays of rows; addresses with a zero behind each */
} http_sink;

/* ---- making ---- */

static void sink_free(http_sink *s) {
    if (s->requests) {
        ck_http_client_destroy(&s->client, s->requests, WINDOW);
        for (uint32_t i = 0; i < WINDOW; i++) ck_http_request_destroy(&s->requests[i]);
        ck_free(s->mem, s->requests, WINDOW * sizeof *s->requests);
    }
    if (s->questions) ck_free(s->mem, s->questions, WINDOW * sizeof *s->questions);
    if (s->kinds) ck_free(s->mem, s->kinds, CK_BATCH_ROWS_MAX);
    if (s->ends) ck_free(s->mem, s->ends, CK_BATCH_ROWS_MAX * sizeof *s->ends);
    ck_encoder_free(s->encoder);
    ck_sink_rejects_destroy(&s->rejects);
    ck_bytes_destroy(&s->text);
    ck_bytes_destroy(&s->body);
    ck_bytes_destroy(&s->urls);
    ck_bytes_destroy(&s->scratch);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->job_arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status sink_init(http_sink *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_sink_table_read(&s->arena, spec, &s->table, NULL, err));
    CK_TRY(ck_http_table_read(&s->table.options, &s->options, err));
    CK_TRY(ck_http_address_parse(&s->arena, s->options.url, s->table.schema, &s->address, err));
    s->requests = ck_alloc_zero(s->mem, WINDOW * sizeof *s->requests);
    s->questions = ck_alloc(s->mem, WINDOW * sizeof *s->questions);
    s->ends = ck_alloc(s->mem, CK_BATCH_ROWS_MAX * sizeof *s->ends);
    const char *where = ck_arena_printf(&s->arena, "table \"%s\"", s->table.table ? s->table.table : "");
    if (!s->requests || !s->questions || !s->ends || !where) return ck_nomem(err, s->mem, WINDOW * sizeof *s->requests);
    for (uint32_t i = 0; i < WINDOW; i++) ck_http_request_init(&s->requests[i], s->mem);
    if (spec->inputs[0].mode != CK_MODE_APPEND || s->table.key_count) {
        if (s->table.key_count == 0)
            return ck_fail(err, CK_INVALID, "%s (%s): changes need a PRIMARY KEY", spec->type, spec->uid);
        if (!(s->kinds = ck_alloc(s->mem, CK_BATCH_ROWS_MAX))) return ck_nomem(err, s->mem, CK_BATCH_ROWS_MAX);
    }
    CK_TRY(ck_sink_rejects_init(&s->rejects, s->options.on_error, where, &s->arena, s->mem, spec->settings->batch_rows,
                                err));
    ck_encoder_spec e = {.format = "json", .schema = s->table.schema};
    return ck_encoder_new(&e, s->mem, &s->encoder, err);
}

static ck_status sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    http_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&s->job_arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->text, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&s->body, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&s->urls, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&s->scratch, mem, TEXT_BYTES_MAX);
    ck_status status = sink_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        sink_free(s);
    return status;
}

/* Before anything runs: the library, and what secrets stand for. Whether somebody answers, a request says. */
static ck_status sink_look(const ck_op_spec *spec, ck_error *err) {
    ck_arena a;
    ck_sink_table table;
    ck_http_table o;
    ck_http_client c = {0};
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&a, spec, &table, NULL, err);
    if (s == CK_OK) s = ck_http_table_read(&table.options, &o, err);
    if (s == CK_OK) s = ck_http_table_open(&o, spec->proc, &a, &c, err);
    ck_http_client_destroy(&c, NULL, 0);
    ck_arena_destroy(&a);
    return s;
}

/* ---- the checkpoint before, in state: the same in every subtask ---- */

static const ck_slot_schema *epoch_slot(void) {
    static const ck_type varchar = {.kind = CK_TYPE_VARCHAR}, bigint = {.kind = CK_TYPE_BIGINT};
    static const ck_field key = {"name", &varchar, false}, value = {"checkpoint", &bigint, false};
    static const ck_slot_schema schema = {.slot = "http.epoch",
                                          .state_type = "http.epoch",
                                          .version = 1,
                                          .mode = CK_SLOT_BROADCAST,
                                          .partition = &key,
                                          .partition_count = 1,
                                          .values = &value,
                                          .value_count = 1};
    return &schema;
}

static ck_status sink_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                            ck_error *err) {
    (void)spec, (void)a, (void)err;
    *slots = epoch_slot();
    *count = 1;
    return CK_OK;
}

static ck_status load_epoch(http_sink *s, ck_op_ctx *ctx) {
    ck_table *t;
    ck_table_scan scan = {0};
    ck_row *row;
    CK_TRY(ck_state_table(ctx->state, epoch_slot(), &t, ctx->error));
    while (ck_table_scan_next(t, &scan, &row, 1))
        s->epoch = (uint64_t)ck_row_i64(row, ck_table_layout(t)->fields[1].offset);
    return CK_OK;
}

static ck_status store_epoch(http_sink *s, uint64_t checkpoint, ck_op_ctx *ctx) {
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 1);
    if (!c) return ck_nomem(ctx->error, s->mem, sizeof *c);
    c->i64[0] = (int64_t)checkpoint;
    const ck_column *values[] = {c};
    ck_status status = ck_state_row_put(ctx->state, epoch_slot(), "epoch", values, 0, ctx->error);
    ck_column_unref(&c);
    s->epoch = checkpoint;
    s->number = 0;
    return status;
}

static ck_status sink_open(void *self, ck_op_ctx *ctx) {
    http_sink *s = self;
    s->ctx = ctx;
    return ctx->settings->checkpoints ? load_epoch(s, ctx) : CK_OK;
}

/* ---- the job ---- */

static void job_run(ck_io_job *j) {
    http_sink *s = (http_sink *)j;
    s->call.status = CK_OK;
    if (!s->is_open)
        s->call.status = ck_http_table_open(&s->options, s->ctx->proc, &s->job_arena, &s->client, &s->call.error);
    s->is_open = s->call.status == CK_OK;
    if (s->is_open) s->call.status = ck_http_run(&s->client, s->requests, s->count, SLICE_MS, &s->call.error);
}

static void submit(http_sink *s, ck_op_ctx *ctx) { ck_background_begin(&s->call, job_run, ctx); }

static ck_view body_of(const http_sink *s, const question *q) {
    return (ck_view){s->body.p + q->body_at, q->body_end - q->body_at};
}

static ck_status look_at(http_sink *s, uint32_t i, ck_op_ctx *ctx) {
    const ck_http_request *r = &s->requests[i];
    const question *q = &s->questions[i];
    char said[SAID_BYTES], reason[2 * SAID_BYTES];
    if (r->status >= 200 && r->status <= 299) return CK_OK;
    if (q->gone && (r->status == 404 || r->status == 410)) return CK_OK; /* it is not there: deleted before */
    snprintf(reason, sizeof reason, "%s %.200s: %s", r->method, r->url, ck_http_said(r, said, sizeof said));
    ck_status status = ck_sink_reject(&s->rejects, body_of(s, q), reason, ctx);
    if (status != CK_FULL) return status;
    CK_TRY(ck_sink_rejects_emit(&s->rejects, ctx));
    return ck_sink_reject(&s->rejects, body_of(s, q), reason, ctx);
}

/* CK_OK: nothing is under way, and everything is answered or rejected. */
static ck_status settle(http_sink *s, ck_op_ctx *ctx) {
    if (s->call.running) {
        if (!ck_background_ended(&s->call)) return CK_AGAIN;
        if (s->call.status == CK_AGAIN) {
            submit(s, ctx);
            return CK_AGAIN;
        }
        if (s->call.status != CK_OK) {
            *ctx->error = s->call.error;
            return s->call.status;
        }
    }
    for (; s->settled < s->count; s->settled++) CK_TRY(look_at(s, s->settled, ctx));
    if (s->client.tried_again) ck_op_count(ctx, "requests_tried_again", s->client.tried_again);
    s->client.tried_again = 0;
    s->count = s->settled = 0;
    return CK_OK;
}

/* ---- windows of a batch ---- */

static ck_view row_text(const http_sink *s, uint32_t k) {
    size_t from = k ? s->ends[k - 1] : 0;
    return (ck_view){s->text.p + from, s->ends[k] - from - 1}; /* the line's end */
}

static ck_status put_body(http_sink *s, uint32_t k, uint32_t rows) {
    if (s->options.request_rows == 1) return ck_bytes_view(&s->body, row_text(s, k));
    CK_TRY(ck_bytes_char(&s->body, '['));
    for (uint32_t i = 0; i < rows; i++) {
        if (i) CK_TRY(ck_bytes_char(&s->body, ','));
        CK_TRY(ck_bytes_view(&s->body, row_text(s, k + i)));
    }
    return ck_bytes_char(&s->body, ']');
}

/* Another request of the window goes to the address the last one of urls is. */
static bool is_under_way(const http_sink *s, const question *q) {
    for (uint32_t i = 0; i < s->count; i++) {
        const question *o = &s->questions[i];
        if (o->url_hash == q->url_hash && o->url_end - o->url_at == q->url_end - q->url_at &&
            memcmp(s->urls.p + o->url_at, s->urls.p + q->url_at, q->url_end - q->url_at) == 0)
            return true;
    }
    return false;
}

/* Addresses and bodies move while they grow: pointers are set when all are there. CK_FULL: the row waits for the next
 * window. */
static ck_status put_question(http_sink *s, const ck_batch *b, uint32_t rows) {
    question *q = &s->questions[s->count];
    q->url_at = s->urls.n;
    q->body_at = s->body.n;
    q->gone = s->kinds && s->kinds[s->at] == CK_CHANGE_DELETE;
    CK_TRY(
        ck_http_address_print(&s->address, s->table.schema, b->columns, ck_batch_row(b, s->at), &s->scratch, &s->urls));
    q->url_end = s->urls.n;
    q->url_hash = ck_hash_bytes(0, s->urls.p + q->url_at, q->url_end - q->url_at);
    if (s->kinds && is_under_way(s, q)) {
        s->urls.n = q->url_at;
        return CK_FULL;
    }
    CK_TRY(ck_bytes_char(&s->urls, 0));
    CK_TRY(put_body(s, s->at, rows));
    q->body_end = s->body.n;
    uint64_t hash = ck_hash_bytes(q->gone, s->body.p + q->body_at, q->body_end - q->body_at);
    const ck_job_settings *set = s->ctx->settings;
    snprintf(q->key, sizeof q->key, "Idempotency-Key: %.40s-%016llx-%u-%llu-%llu-%016llx",
             set->job_uuid ? set->job_uuid : "", (unsigned long long)s->ctx->op_id, s->ctx->subtask,
             (unsigned long long)s->epoch, (unsigned long long)s->number++, (unsigned long long)hash);
    s->count++;
    s->at += rows;
    return CK_OK;
}

static void set_requests(http_sink *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        const question *q = &s->questions[i];
        ck_http_request *r = &s->requests[i];
        r->method = q->gone ? "DELETE" : s->options.method;
        r->url = s->urls.p + q->url_at;
        r->header = q->key;
        r->body = q->gone ? (ck_view){0} : body_of(s, q);
        r->done = false;
        r->status = 0;
        r->tries = 0;
        r->again_us = 0;
    }
}

static ck_status next_window(http_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    ck_bytes_clear(&s->body);
    ck_bytes_clear(&s->urls);
    while (s->at < b->sel_count && s->count < WINDOW) {
        uint32_t left = b->sel_count - s->at, rows = (uint32_t)s->options.request_rows;
        if (s->kinds && s->kinds[s->at] == CK_CHANGE_UPDATE_BEFORE) { /* the row behind it replaces it */
            s->at++;
            continue;
        }
        ck_status status = put_question(s, b, rows < left ? rows : left);
        if (status == CK_FULL) break;
        if (status != CK_OK) return ck_nomem(ctx->error, s->mem, s->body.n);
    }
    set_requests(s);
    if (s->count) submit(s, ctx);
    return CK_OK;
}

static ck_status begin(http_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    CK_TRY(ck_sink_check_nulls(&s->table, b, ctx->error));
    ck_bytes_clear(&s->text);
    if (s->kinds) CK_TRY(ck_change_kinds(b, s->table.key, s->table.key_count, s->kinds));
    if (ck_encoder_rows(s->encoder, b, s->kinds, &s->text, s->ends) != CK_OK)
        return ck_nomem(ctx->error, s->mem, s->text.n);
    s->at = 0;
    s->begun = true;
    ck_op_count(ctx, "rows_out", b->sel_count);
    return CK_OK;
}

/* The last window of a batch is under way while the next one is made. */
static ck_status take(http_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(settle(s, ctx));
    CK_TRY(ck_sink_rejects_emit(&s->rejects, ctx));
    if (!s->begun) CK_TRY(begin(s, b, ctx));
    CK_TRY(next_window(s, b, ctx));
    if (s->at < b->sel_count) return CK_AGAIN;
    s->begun = false;
    return CK_OK;
}

static ck_status flush(http_sink *s, ck_op_ctx *ctx) {
    CK_TRY(settle(s, ctx));
    return ck_sink_rejects_emit(&s->rejects, ctx);
}

/* ---- events ---- */

static ck_status sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    http_sink *s = self;
    if (ev->kind == CK_EVENT_BATCH) return take(s, ev->batch, ctx);
    return ev->kind == CK_EVENT_END ? flush(s, ctx) : CK_OK;
}

static ck_status sink_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    http_sink *s = self;
    CK_TRY(flush(s, ctx));
    return store_epoch(s, checkpoint, ctx);
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
    .close = sink_close,
};

const ck_op_desc ck_op_sink_http = {
    .type = "sink.http", .op = &sink_vtbl, .create = sink_create, .slots = sink_slots, .look = sink_look};
