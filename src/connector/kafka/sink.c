/* The `kafka` sink. A batch is encoded in the step. With a PRIMARY KEY the key's latest record counts: a deletion is a
 * record without a value.
 *
 * Exactly once: the records are written ahead, and the committer sends them when the checkpoint is complete.
 *
 * At least once: an I/O job hands the records to the library and comes back when they are taken, so that the step never
 * waits. At a barrier and at the end everything sent must have been acknowledged by the brokers. */
#include <stdio.h>

#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/kafka/kafka_int.h"
#include "connector/sink_rejects.h"
#include "connector/write_ahead.h"
#include "format/encoder.h"

enum { JOB_MS = 100, TEXT_BYTES_MAX = 1 << 30 };

typedef struct kafka_sink {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena;
    ck_sink_table table;
    ck_kafka_options options;
    ck_kafka_client client;
    rd_kafka_topic_t *topic;
    ck_op_ctx *ctx;
    ck_kafka_key key;
    ck_encoder *encoder;
    const ck_message_writer *writer; /* avro, protobuf: instead of encoder; NULL: the registry has not been asked yet */
    ck_view head;                    /* before each of their records */
    uint8_t *kinds;                  /* CK_BATCH_ROWS_MAX; NULL: append */
    bool commits;                    /* exactly once */
    ck_write_ahead ahead;
    bool prepared;           /* it is known how rows are written, and how large: */
    size_t record_bytes_max; /* what the client takes */
    size_t topic_bytes_max;  /* what the topic takes, in a batch */
    ck_sink_rejects rejects;
    ck_encoder *row_encoder; /* avro, protobuf: rows that are rejected */
    bool *dropped;           /* CK_BATCH_ROWS_MAX: rejected rows of the batch */
    /* the batch in hand; the job's while one runs */
    ck_bytes values;
    size_t *value_ends; /* CK_BATCH_ROWS_MAX */
    uint32_t count, sent;
    bool encoded_kinds;
    /* the job */
    bool flush;
    int unacknowledged; /* as of the last job */
    rd_kafka_resp_err_t undelivered;
} kafka_sink;

ck_status ck_kafka_sink_check(const ck_table_decl *t, const ck_kafka_options *o, ck_error *err) {
    for (uint32_t i = 0; i < t->options.count; i++)
        if (strncmp(t->options.names[i], "metadata.", 9) == 0)
            return ck_fail(err, CK_REFUSED,
                           "a table with METADATA columns is read, not written; declare the topic again without them");
    if (o->changelog)
        return ck_fail(err, CK_REFUSED,
                       "format 'debezium-json' is read, not written; with a PRIMARY KEY, json writes the latest row of "
                       "each key");
    return ck_kafka_key_check(t, o, err);
}

/* ---- making ---- */

static void sink_free(kafka_sink *s) {
    if (s->client.rk) s->client.lib->rd_kafka_purge(s->client.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    if (s->topic) s->client.lib->rd_kafka_topic_destroy(s->topic);
    ck_kafka_client_destroy(&s->client);
    ck_encoder_free(s->encoder);
    ck_kafka_key_destroy(&s->key);
    ck_encoder_free(s->row_encoder);
    ck_sink_rejects_destroy(&s->rejects);
    if (s->dropped) ck_free(s->mem, s->dropped, CK_BATCH_ROWS_MAX * sizeof *s->dropped);
    ck_write_ahead_destroy(&s->ahead);
    ck_bytes_destroy(&s->values);
    if (s->value_ends) ck_free(s->mem, s->value_ends, CK_BATCH_ROWS_MAX * sizeof *s->value_ends);
    if (s->kinds) ck_free(s->mem, s->kinds, CK_BATCH_ROWS_MAX);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status sink_init(kafka_sink *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_sink_table_read(&s->arena, spec, &s->table, NULL, err));
    CK_TRY(ck_kafka_options_read(&s->table.options, &s->options, err));
    ck_encoder_spec e = {.format = s->options.format, .schema = s->table.schema, .delimiter = ','};
    s->commits = spec->settings->checkpoints && s->options.exactly_once;
    CK_TRY(ck_kafka_record_bytes_max(&s->table.options, &s->record_bytes_max, err));
    s->value_ends = ck_alloc(s->mem, CK_BATCH_ROWS_MAX * sizeof *s->value_ends);
    if (spec->inputs[0].mode != CK_MODE_APPEND) s->kinds = ck_alloc(s->mem, CK_BATCH_ROWS_MAX);
    if (!s->value_ends || (!s->kinds && spec->inputs[0].mode != CK_MODE_APPEND))
        return ck_nomem(err, s->mem, CK_BATCH_ROWS_MAX * sizeof *s->value_ends);
    CK_TRY(ck_kafka_key_init(&s->key, &s->options, &s->table, &s->arena, s->mem, err));
    if (s->kinds && s->key.count == 0)
        return ck_fail(err, CK_INVALID, "%s (%s): changes need a PRIMARY KEY", spec->type, spec->uid);
    const char *where = ck_arena_printf(&s->arena, "topic %s", s->options.topic);
    s->dropped = ck_alloc_array(s->mem, CK_BATCH_ROWS_MAX, sizeof *s->dropped);
    if (!where || !s->dropped) return ck_nomem(err, s->mem, CK_BATCH_ROWS_MAX);
    CK_TRY(ck_sink_rejects_init(&s->rejects, s->options.on_error, where, &s->arena, s->mem, spec->settings->batch_rows,
                                err));
    if (!s->options.registry.url) return ck_encoder_new(&e, s->mem, &s->encoder, err);
    e.format = "json";
    return ck_encoder_new(&e, s->mem, &s->row_encoder, err);
}

static ck_status sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    kafka_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->values, mem, TEXT_BYTES_MAX);
    ck_status status = sink_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        sink_free(s);
    return status;
}

static void delivered(void *opaque, const rd_kafka_message_t *m) { /* thread: the job's */
    kafka_sink *s = opaque;
    if (m->err && !s->undelivered) s->undelivered = m->err;
}

/* Keys go to the partition they go to with Kafka's own clients. */
static const char *const producer_pairs[] = {
    "enable.idempotence",         "true",  "partitioner", "murmur2_random", "linger.ms", "5",
    "queue.buffering.max.kbytes", "65536", NULL};

static ck_status sink_open(void *self, ck_op_ctx *ctx) {
    kafka_sink *s = self;
    s->ctx = ctx;
    return s->commits ? ck_write_ahead_init(&s->ahead, ctx, s->mem) : CK_OK;
}

static ck_status open_client(kafka_sink *s) {
    char batch[24];
    const char *pairs[CK_ARRAY_COUNT(producer_pairs) + 2];
    memcpy(pairs, producer_pairs, sizeof producer_pairs);
    pairs[CK_ARRAY_COUNT(producer_pairs) - 1] = "batch.size";
    pairs[CK_ARRAY_COUNT(producer_pairs)] = ck_kafka_batch_size(s->topic_bytes_max, batch);
    pairs[CK_ARRAY_COUNT(producer_pairs) + 1] = NULL;
    s->client.opaque = s;
    s->client.delivered = delivered;
    CK_TRY(ck_kafka_client_new(s->ctx->proc, &s->options, RD_KAFKA_PRODUCER, pairs, &s->arena, &s->client,
                               &s->call.error));
    s->topic = s->client.lib->rd_kafka_topic_new(s->client.rk, s->options.topic, NULL);
    if (s->topic) return CK_OK;
    return ck_kafka_fail(&s->client, s->client.lib->rd_kafka_last_error(), &s->call.error, "topic %s",
                         s->options.topic);
}

/* Before anything runs: whether somebody answers, has the topic, and a schema for the rows. */
static ck_status sink_look(const ck_op_spec *spec, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_sink_table table;
    ck_kafka_options o;
    ck_kafka_client c = {0};
    int32_t partitions;
    ck_status s = ck_sink_table_read(&a, spec, &table, NULL, err);
    if (s == CK_OK) s = ck_kafka_options_read(&table.options, &o, err);
    if (s == CK_OK) s = ck_kafka_client_new(spec->proc, &o, RD_KAFKA_PRODUCER, producer_pairs, &a, &c, err);
    if (s == CK_OK) s = ck_kafka_partitions(&c, &o, &partitions, err);
    if (s == CK_OK && o.registry.url) {
        const ck_message_writer *writer;
        ck_view head;
        s = ck_registry_writer(spec->proc, &o.registry, table.schema, &a, &writer, &head, err);
    }
    ck_kafka_client_destroy(&c);
    ck_arena_destroy(&a);
    return s;
}

/* ---- the batch in hand ---- */

static ck_view value_of(const kafka_sink *s, uint32_t i) {
    size_t from = i ? s->value_ends[i - 1] : 0, n = s->value_ends[i] - from;
    if (s->encoded_kinds && s->kinds[i] == CK_CHANGE_DELETE) return (ck_view){0};
    return (ck_view){s->values.p + from, n && s->encoder ? n - 1 : n}; /* the line's end */
}

/* The record behind an UPDATE_BEFORE replaces its row; a rejected row has none. */
static bool has_no_record(const kafka_sink *s, uint32_t i) {
    return s->dropped[i] || (s->encoded_kinds && s->kinds[i] == CK_CHANGE_UPDATE_BEFORE);
}

/* ---- the job: records to the library ---- */

static rd_kafka_resp_err_t send_one(kafka_sink *s, uint32_t i) {
    const ck_kafka_lib *lib = s->client.lib;
    ck_view key = ck_kafka_key_of(&s->key, i), value = value_of(s, i);
    rd_kafka_vu_t vus[4] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = s->topic},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)value.p, value.n}},
    };
    size_t count = 3;
    if (key.p) vus[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)key.p, key.n}};
    rd_kafka_error_t *e = lib->rd_kafka_produceva(s->client.rk, vus, count);
    if (!e) return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = lib->rd_kafka_error_code(e);
    lib->rd_kafka_error_destroy(e);
    return code;
}

static ck_status send_all(kafka_sink *s) {
    const ck_kafka_lib *lib = s->client.lib;
    bool waited = false;
    while (s->sent < s->count) {
        if (has_no_record(s, s->sent)) {
            s->sent++;
            continue;
        }
        rd_kafka_resp_err_t code = send_one(s, s->sent);
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            if (waited) return CK_OK; /* comes again */
            waited = true;
            lib->rd_kafka_poll(s->client.rk, JOB_MS);
        } else if (code) {
            return ck_kafka_fail(&s->client, code, &s->call.error, "sending to topic %s", s->options.topic);
        } else {
            s->sent++;
        }
    }
    return CK_OK;
}

static void job_run(ck_io_job *j) {
    kafka_sink *s = (kafka_sink *)j;
    const ck_kafka_lib *lib = s->client.lib;
    s->call.status = send_all(s);
    if (s->call.status == CK_OK && s->flush && s->sent == s->count)
        lib->rd_kafka_flush(s->client.rk, JOB_MS);
    else
        lib->rd_kafka_poll(s->client.rk, 0);
    s->unacknowledged = lib->rd_kafka_outq_len(s->client.rk);
    if (s->call.status == CK_OK) s->call.status = ck_kafka_hopeless(&s->client, &s->options, &s->call.error);
    if (s->call.status == CK_OK && s->undelivered)
        s->call.status =
            ck_kafka_fail(&s->client, s->undelivered, &s->call.error, "sending to topic %s", s->options.topic);
}

static void submit(kafka_sink *s, void (*run)(ck_io_job *), bool flush, ck_op_ctx *ctx) {
    s->flush = flush;
    ck_background_begin(&s->call, run, ctx);
}

/* CK_OK: no job runs, and none has failed. */
static ck_status settle(kafka_sink *s, ck_op_ctx *ctx) {
    if (!s->call.running) return CK_OK;
    if (!ck_background_ended(&s->call)) return CK_AGAIN;
    if (s->call.status != CK_OK) *ctx->error = s->call.error;
    return s->call.status;
}

static void prepare_run(ck_io_job *j) {
    kafka_sink *s = (kafka_sink *)j;
    ck_proc *proc = s->ctx->proc;
    s->call.status = ck_kafka_topic_bytes_max(proc, &s->options, &s->arena, &s->topic_bytes_max, &s->call.error);
    if (s->call.status == CK_OK && !s->commits) s->call.status = open_client(s);
    if (s->call.status == CK_OK && s->options.registry.url)
        s->call.status = ck_registry_writer(proc, &s->options.registry, s->table.schema, &s->arena, &s->writer,
                                            &s->head, &s->call.error);
}

/* CK_OK: it is known how rows are written. */
static ck_status prepare(kafka_sink *s, ck_op_ctx *ctx) {
    if (s->prepared) return CK_OK;
    if (s->call.running) {
        CK_TRY(settle(s, ctx));
        s->prepared = true;
        return CK_OK;
    }
    submit(s, prepare_run, false, ctx);
    return CK_AGAIN;
}

/* Everything so far is with the brokers. */
static ck_status flush(kafka_sink *s, ck_op_ctx *ctx) {
    CK_TRY(settle(s, ctx));
    if (s->sent == s->count && s->unacknowledged == 0) return CK_OK;
    submit(s, job_run, true, ctx);
    return CK_AGAIN;
}

/* ---- events ---- */

/* The k-th live row will not be written. */
static ck_status reject(kafka_sink *s, const ck_batch *b, uint32_t k, ck_view raw, const char *why, ck_op_ctx *ctx) {
    ck_bytes row;
    ck_bytes_init(&row, s->mem, TEXT_BYTES_MAX);
    if (s->row_encoder) {
        uint16_t at = (uint16_t)ck_batch_row(b, k);
        ck_batch *one = ck_batch_select(b, &at, 1);
        uint8_t kind = CK_CHANGE_INSERT;
        ck_status status = one ? ck_encoder_rows(s->row_encoder, one, &kind, &row, NULL) : CK_NOMEM;
        ck_batch_unref(&one);
        if (status != CK_OK) {
            ck_bytes_destroy(&row);
            return ck_nomem(ctx->error, s->mem, row.n);
        }
        raw = (ck_view){row.p, row.n - 1}; /* the line's end */
    }
    ck_status status = ck_sink_reject(&s->rejects, raw, why, ctx);
    if (status == CK_FULL) {
        status = ck_sink_rejects_emit(&s->rejects, ctx);
        if (status == CK_OK) status = ck_sink_reject(&s->rejects, raw, why, ctx);
    }
    ck_bytes_destroy(&row);
    s->dropped[k] = true;
    return status;
}

/* Before it is on its way: a record that no broker will take would stop the commit for good. */
static ck_status check_size(kafka_sink *s, const ck_batch *b, uint32_t i, ck_op_ctx *ctx) {
    ck_view key = ck_kafka_key_of(&s->key, i), value = value_of(s, i);
    size_t bytes = key.n + value.n, whole = ck_kafka_batch_bytes(key, value);
    char why[240];
    if (bytes > s->record_bytes_max)
        snprintf(
            why, sizeof why,
            "a record of %zu bytes is larger than the %zu that are taken (properties.message.max.bytes; the topic's "
            "max.message.bytes must allow it too)",
            bytes, s->record_bytes_max);
    else if (whole > s->topic_bytes_max)
        snprintf(
            why, sizeof why,
            "a record of %zu bytes is larger than the topic's max.message.bytes, %zu; the job goes on where it is when "
            "that is raised",
            whole, s->topic_bytes_max);
    else
        return CK_OK;
    return reject(s, b, i, value, why, ctx);
}

/* A row that is deleted or replaced has no value. */
static ck_status encode_messages(kafka_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    for (uint32_t k = 0; k < b->sel_count; k++) {
        bool gone = s->kinds && (s->kinds[k] == CK_CHANGE_DELETE || s->kinds[k] == CK_CHANGE_UPDATE_BEFORE);
        size_t before = s->values.n;
        ck_error why = CK_ERROR_INIT;
        ck_status status = gone ? CK_OK : ck_bytes_view(&s->values, s->head);
        if (status == CK_OK && !gone) status = ck_message_write(s->writer, b, ck_batch_row(b, k), &s->values, &why);
        if (status == CK_DATA) {
            s->values.n = before;
            status = reject(s, b, k, (ck_view){0}, why.msg, ctx);
            if (status != CK_OK) return status;
        } else if (status != CK_OK) {
            return ck_nomem(ctx->error, s->mem, s->values.n);
        }
        s->value_ends[k] = s->values.n;
    }
    return CK_OK;
}

static ck_status encode_values(kafka_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    if (s->writer) return encode_messages(s, b, ctx);
    ck_status status = ck_encoder_rows(s->encoder, b, s->kinds, &s->values, s->value_ends);
    return status == CK_OK ? CK_OK : ck_nomem(ctx->error, s->mem, s->values.n);
}

static ck_status encode(kafka_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    ck_bytes_clear(&s->values);
    s->sent = s->count = 0;
    memset(s->dropped, 0, b->sel_count * sizeof *s->dropped);
    s->encoded_kinds = s->kinds != NULL;
    if (s->kinds) CK_TRY(ck_change_kinds(b, s->key.columns, s->key.count, s->kinds));
    CK_TRY(encode_values(s, b, ctx));
    if (ck_kafka_key_encode(&s->key, b, s->kinds) != CK_OK) return ck_nomem(ctx->error, s->mem, s->key.text.n);
    s->count = b->sel_count;
    for (uint32_t i = 0; i < s->count; i++)
        if (!has_no_record(s, i)) CK_TRY(check_size(s, b, i, ctx));
    return ck_sink_rejects_emit(&s->rejects, ctx);
}

static ck_status write_ahead(kafka_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    CK_TRY(ck_write_ahead_room(&s->ahead));
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&s->table, b, ctx->error));
    CK_TRY(encode(s, b, ctx));
    for (uint32_t i = 0; i < s->count; i++) {
        if (has_no_record(s, i)) continue;
        CK_TRY(ck_write_ahead_add(&s->ahead, ck_kafka_key_of(&s->key, i), value_of(s, i), ctx));
    }
    ck_op_count(ctx, "rows_out", b->sel_count);
    return ck_write_ahead_flush(&s->ahead, ctx);
}

static ck_status take(kafka_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    CK_TRY(prepare(s, ctx));
    if (s->commits) return write_ahead(s, b, ctx);
    CK_TRY(settle(s, ctx));
    if (s->sent < s->count) { /* the library's queue was full */
        submit(s, job_run, false, ctx);
        return CK_AGAIN;
    }
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&s->table, b, ctx->error));
    CK_TRY(encode(s, b, ctx));
    ck_op_count(ctx, "rows_out", b->sel_count);
    s->unacknowledged = 1;
    submit(s, job_run, false, ctx);
    return CK_OK;
}

static ck_status sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    kafka_sink *s = self;
    if (ev->kind == CK_EVENT_BATCH) return take(s, ev->batch, ctx);
    if (ev->kind == CK_EVENT_END && !s->commits) return flush(s, ctx);
    return CK_OK;
}

static ck_status sink_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    kafka_sink *s = self;
    return s->commits ? ck_write_ahead_prepare(&s->ahead, checkpoint, ctx) : flush(s, ctx);
}

static ck_status sink_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    kafka_sink *s = self;
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

const ck_op_desc ck_op_sink_kafka = {
    .type = "sink.kafka",
    .op = &sink_vtbl,
    .committer = &ck_kafka_committer_vtbl,
    .create = sink_create,
    .create_committer = ck_kafka_committer_create,
    .slots = ck_write_ahead_slots,
    .look = sink_look,
};
