/* The `kafka` source. The library fetches ahead on threads of its own; a step takes what one partition has ready, puts
 * the values one after the other into a buffer, a line or a frame each, and lets the decoder make columns of them. A
 * split's position is the offset of the next record not yet emitted; the group's offsets are never written. */
#include <stdio.h>

#include "connector/background.h"
#include "connector/bad_hint.h"
#include "connector/connectors.h"
#include "connector/dead_letters.h"
#include "connector/kafka/debezium.h"
#include "connector/kafka/kafka_int.h"
#include "connector/kafka/metadata_int.h"
#include "connector/kafka/schemas_int.h"
#include "connector/kafka/unfit.h"
#include "connector/keys_met.h"
#include "connector/show_raw.h"
#include "os/clock.h"

enum {
    FETCH_RECORDS = 4096,      /* taken from the library at once */
    LINES = 2 * FETCH_RECORDS, /* they become: a change has a row before it and one after */
    FETCH_BYTES = 256 << 10,   /* copied into one buffer, or one record */
    LAG_EVERY_US = 250000,
    NO_VALUE = 1, /* a byte that is none in JSON */
};

/* One owned partition. */
typedef struct partition {
    struct kafka_source *of;
    char *id;
    ck_kafka_split split;
    uint32_t clock; /* in event_time */
    bool finished, started, at_end;
    int64_t read_ms; /* when the newest record taken was written; -1: not known */
    _Atomic bool woken;
    /* taken and not copied yet */
    rd_kafka_message_t **records;
    size_t record_count, record_at;
    int64_t behind; /* offset behind the last that was copied or is no row: markers and tombstones, too */
    /* copied and not decoded yet: line i of the buffer ends at ends[i] and is of the record at offset offsets[i] */
    ck_buffer *buffer;
    size_t begin, end;
    size_t *ends;
    int64_t *offsets;
    size_t copied, decoded, taken; /* taken: of them in earlier batches */
    ck_kafka_beside *beside;       /* LINES; NULL: nobody wants it */
    int8_t *weights;               /* LINES; NULL: no changes */
    ck_bytes beside_text;
    ck_kafka_unfit unfit; /* lines of which no row can be made */
} partition;

/* A look at how many partitions there are, on an I/O thread. */
typedef struct discovery {
    ck_background call; /* first */
    struct kafka_source *of;
    bool on;
    ck_kafka_share share;
    int64_t next_us;
    int32_t found; /* the call's while it runs */
} discovery;

typedef struct kafka_source {
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    ck_kafka_options options;
    bool is_csv;
    ck_decoder *decoder;
    ck_kafka_metadata metadata;
    ck_event_time event_time;
    ck_dead_letters letters;
    ck_kafka_client client;
    rd_kafka_topic_t *topic;
    partition **partitions; /* in the arena */
    uint32_t count, capacity, turn;
    partition *decoding;
    int64_t lag_next_us;
    discovery discovery;
    ck_kafka_schemas schemas; /* avro, protobuf */
    ck_op_ctx *ctx;           /* also read by the library's threads, to wake */
    uint64_t bad_rows;
} kafka_source;

/* ---- making ---- */

static size_t record_of(const partition *p, size_t at) {
    size_t i = p->decoded;
    while (i < p->copied && p->ends[i] <= at) i++;
    return i;
}

static ck_status on_bad_record(void *arg, const ck_bad_record *given, ck_error *err) {
    kafka_source *s = arg;
    const partition *p = s->decoding;
    size_t line = record_of(p, (size_t)given->offset);
    int64_t offset = p->offsets[line];
    ck_bad_record at = *given;
    const ck_bad_record *bad = &at;
    ck_view record;
    const char *why = ck_kafka_unfit_of(&p->unfit, line, &record);
    if (why) at = (ck_bad_record){.raw = record, .reason = why};
    at.offset = (uint64_t)offset;
    if (s->letters.on) {
        if (ck_dead_letters_is_full(&s->letters)) return CK_FULL; /* comes again when they are sent */
        CK_TRY(ck_dead_letters_add(&s->letters, p->id, &at, err));
    }
    if (s->options.on_error != CK_ON_ERROR_FAIL) {
        s->bad_rows++;
        return CK_OK;
    }
    char column[32] = "", field[160] = "", raw[160];
    if (bad->column) snprintf(column, sizeof column, ", column %lld", (long long)bad->column);
    if (bad->field) snprintf(field, sizeof field, " (%.120s)", bad->field);
    ck_show_raw(raw, sizeof raw, bad->raw);
    ck_bad_hint of = {.format = s->options.format, .on_error_is_given = s->options.on_error_is_given};
    ck_fail(err, CK_DATA, "topic %s, partition %d, offset %lld%s: %s%s%s; the record is: %s", p->split.topic,
            p->split.partition, (long long)offset, column, bad->reason, field, ck_bad_hint_for(&of, bad), raw);
    if (err) {
        err->fatal = true;
        snprintf(err->place.object, sizeof err->place.object, "%s", p->id);
        err->place.byte_offset = offset;
    }
    return CK_DATA;
}

static void partition_free(kafka_source *s, partition *p) {
    const ck_kafka_lib *lib = s->client.lib;
    /* It is not stopped first: librdkafka 2.0 waits for ever where a topic that is gone was. */
    for (size_t i = p->record_at; i < p->record_count; i++) lib->rd_kafka_message_destroy(p->records[i]);
    ck_buffer_unref(&p->buffer);
    if (p->records) ck_free(s->mem, p->records, FETCH_RECORDS * sizeof(void *));
    if (p->ends) ck_free(s->mem, p->ends, LINES * sizeof *p->ends);
    if (p->offsets) ck_free(s->mem, p->offsets, LINES * sizeof *p->offsets);
    if (p->beside) ck_free(s->mem, p->beside, LINES * sizeof *p->beside);
    if (p->weights) ck_free(s->mem, p->weights, LINES);
    ck_bytes_destroy(&p->beside_text);
    ck_kafka_unfit_destroy(&p->unfit);
}

static void source_free(kafka_source *s) {
    for (uint32_t i = 0; i < s->count; i++) partition_free(s, s->partitions[i]);
    if (s->topic) s->client.lib->rd_kafka_topic_destroy(s->topic);
    ck_kafka_client_destroy(&s->client);
    ck_kafka_schemas_destroy(&s->schemas);
    ck_free(s->mem, s->partitions, s->capacity * sizeof *s->partitions);
    ck_decoder_free(s->decoder);
    ck_event_time_destroy(&s->event_time);
    ck_dead_letters_destroy(&s->letters);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status source_init(kafka_source *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_kafka_options_read(&s->table.options, &s->options, err));
    CK_TRY(ck_event_time_init(&s->event_time, s->table.event_time, spec, &s->arena, s->mem, err));
    const ck_kafka_options *o = &s->options;
    s->is_csv = strcmp(o->format, "csv") == 0;
    CK_TRY(ck_kafka_metadata_read(&s->arena, &s->table, &s->metadata, err));
    ck_decoder_spec d = {
        .format = o->format,
        .schema = s->metadata.values,
        .wanted = s->metadata.wanted,
        .checked = s->metadata.checked,
        .origins = s->metadata.any || o->changelog,
        .strict = o->strict || o->on_error != CK_ON_ERROR_FAIL, /* what is skipped does not depend on the query */
        .batch_rows = spec->settings->batch_rows,
    };
    if (o->on_error == CK_ON_ERROR_DEAD_LETTER)
        CK_TRY(ck_dead_letters_init(&s->letters, &s->arena, s->mem, spec->settings->batch_rows, err));
    CK_TRY(ck_decoder_new(spec->proc, &d, s->mem, on_bad_record, s, &s->decoder, err));
    if (!o->registry.url) return CK_OK;
    return ck_kafka_schemas_init(&s->schemas, spec->proc, s->mem, &o->registry, s->metadata.values, s->decoder, err);
}

static ck_status source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    mem = ck_mem_as(mem, CK_MEM_DECODE);
    kafka_source *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status status = source_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        source_free(s);
    return status;
}

static ck_status source_open(void *self, ck_op_ctx *ctx) {
    kafka_source *s = self;
    s->ctx = ctx;
    /* The library's default would keep 64 MiB a partition. */
    static const char *const pairs[] = {"enable.partition.eof",
                                        "true",
                                        "auto.offset.reset",
                                        "error",
                                        "queued.max.messages.kbytes",
                                        "8192",
                                        "fetch.wait.max.ms",
                                        "50",
                                        "isolation.level",
                                        "read_committed",
                                        NULL};
    CK_TRY(ck_kafka_client_new(ctx->proc, &s->options, RD_KAFKA_CONSUMER, pairs, &s->arena, &s->client, ctx->error));
    s->topic = s->client.lib->rd_kafka_topic_new(s->client.rk, s->options.topic, NULL);
    if (s->topic) return CK_OK;
    return ck_kafka_fail(&s->client, s->client.lib->rd_kafka_last_error(), ctx->error, "topic %s", s->options.topic);
}

/* ---- partitions ---- */

static void has_records(rd_kafka_t *rk, void *opaque) { /* thread: the library's */
    (void)rk;
    partition *p = opaque;
    ck_op_ctx *ctx = p->of->ctx;
    if (!atomic_exchange(&p->woken, true)) ck_op_wake(ctx, ctx->rt);
}

static ck_status start(kafka_source *s, partition *p, ck_op_ctx *ctx) {
    const ck_kafka_lib *lib = s->client.lib;
    p->records = ck_alloc(s->mem, FETCH_RECORDS * sizeof(void *));
    p->ends = ck_alloc(s->mem, LINES * sizeof *p->ends);
    p->offsets = ck_alloc(s->mem, LINES * sizeof *p->offsets);
    if (s->metadata.any) p->beside = ck_alloc(s->mem, LINES * sizeof *p->beside);
    if (s->options.changelog) p->weights = ck_alloc(s->mem, LINES);
    ck_bytes_init(&p->beside_text, s->mem, UINT32_MAX);
    ck_kafka_unfit_init(&p->unfit, s->mem);
    bool have =
        p->records && p->ends && p->offsets && (p->beside || !s->metadata.any) && (p->weights || !s->options.changelog);
    if (!have) return ck_nomem(ctx->error, s->mem, FETCH_RECORDS * sizeof(void *));
    if (lib->rd_kafka_consume_start(s->topic, p->split.partition, p->split.position) != 0)
        return ck_kafka_fail(&s->client, lib->rd_kafka_last_error(), ctx->error, "reading partition %d of topic %s",
                             p->split.partition, p->split.topic);
    p->started = true;
    rd_kafka_queue_t *q = lib->rd_kafka_queue_get_partition(s->client.rk, p->split.topic, p->split.partition);
    if (!q) return ck_kafka_fail(&s->client, lib->rd_kafka_last_error(), ctx->error, "topic %s", p->split.topic);
    lib->rd_kafka_queue_cb_event_enable(q, has_records, p);
    lib->rd_kafka_queue_destroy(q); /* our reference to it */
    return CK_OK;
}

static ck_status add_partition(kafka_source *s, const char *id, const ck_kafka_split *split, ck_op_ctx *ctx) {
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 8;
        void *list =
            ck_realloc(s->mem, s->partitions, s->capacity * sizeof *s->partitions, capacity * sizeof *s->partitions);
        if (!list) return ck_nomem(ctx->error, s->mem, capacity * sizeof *s->partitions);
        s->partitions = list;
        s->capacity = capacity;
    }
    partition *p = CK_ARENA_NEW(&s->arena, partition);
    if (!p || !(p->id = ck_arena_strdup(&s->arena, id))) return ck_nomem(ctx->error, s->arena.mem, sizeof *p);
    p->of = s;
    p->split = *split;
    p->read_ms = -1;
    p->finished = split->position >= split->end;
    CK_TRY(ck_event_time_add(&s->event_time, p->id, split->time_us, p->finished, &p->clock, ctx->error));
    s->partitions[s->count++] = p;
    return p->finished ? CK_OK : start(s, p, ctx);
}

static ck_status source_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    kafka_source *s = self;
    discovery *d = &s->discovery;
    ck_status status = ck_kafka_share_parse(&s->arena, split->spec, &d->share, ctx->error);
    if (status == CK_OK) {
        d->on = true;
        d->of = s;
        d->next_us = ck_mono_us(ctx->proc) + s->options.discover_ms * 1000;
    }
    if (status != CK_NOTFOUND) return status;
    ck_kafka_split parsed;
    CK_TRY(ck_kafka_split_parse(&s->arena, split->spec, &parsed, ctx->error));
    return add_partition(s, split->id, &parsed, ctx);
}

/* ---- partitions that come later ---- */

static void discovery_run(ck_io_job *j) {
    discovery *d = (discovery *)j;
    d->call.status = ck_kafka_partitions(&d->of->client, &d->of->options, &d->found, &d->call.error);
}

/* A server that does not answer is no reason to fail: reading goes on when it is back. A topic that has gone is. */
static ck_status discovered(kafka_source *s, ck_op_ctx *ctx) {
    discovery *d = &s->discovery;
    if (d->call.status == CK_NOTFOUND) {
        *ctx->error = d->call.error;
        return d->call.status;
    }
    if (d->call.status != CK_OK) return CK_OK;
    for (int32_t i = d->share.known; i < d->found; i++) {
        if ((uint32_t)i % d->share.of != d->share.turn) continue;
        /* All that is in it came after the job began. */
        ck_kafka_split split = {
            .topic = s->options.topic, .partition = i, .position = 0, .end = INT64_MAX, .time_us = INT64_MIN};
        const char *id = ck_arena_printf(ctx->arena, "%s-%d", split.topic, i);
        if (!id) return ck_nomem(ctx->error, ctx->mem, 64);
        CK_TRY(add_partition(s, id, &split, ctx));
    }
    if (d->found > d->share.known) d->share.known = d->found;
    return CK_OK;
}

static ck_status discover(kafka_source *s, int64_t now, int64_t *until_us, ck_op_ctx *ctx) {
    discovery *d = &s->discovery;
    if (!d->on) return CK_OK;
    if (d->call.running) {
        if (!ck_background_ended(&d->call)) return CK_OK;
        CK_TRY(discovered(s, ctx));
        d->next_us = now + s->options.discover_ms * 1000;
    } else if (now >= d->next_us) {
        ck_background_begin(&d->call, discovery_run, ctx);
        return CK_OK;
    }
    if (d->next_us < *until_us) *until_us = d->next_us;
    return CK_OK;
}

/* ---- records of one partition ---- */

/* What the library says in place of a record. */
static ck_status take_event(kafka_source *s, partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        p->at_end = true;
        if (m->offset > p->behind) p->behind = m->offset;
        if (m->offset >= p->split.end) p->finished = true; /* behind the last one there may be only markers */
        return CK_OK;
    }
    if (m->err == RD_KAFKA_RESP_ERR__TRANSPORT || m->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
        m->err == RD_KAFKA_RESP_ERR__TIMED_OUT)
        return CK_OK; /* the library tries again by itself */
    const char *more = m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || m->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE
                           ? "; records it had not read are gone"
                           : "";
    return ck_kafka_fail(&s->client, m->err, ctx->error, "topic %s, partition %d, offset %lld%s", p->split.topic,
                         p->split.partition, (long long)p->split.position, more);
}

static bool is_blank(const kafka_source *s, const rd_kafka_message_t *m) {
    const char *text = m->payload;
    if (s->options.registry.url) return m->len == 0;
    for (size_t i = 0; i < m->len; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

/* What no decoder need look at to know that the record is no row. */
static const char *unfit(const kafka_source *s, const rd_kafka_message_t *m, ck_view *text) {
    *text = (ck_view){m->payload, m->len};
    if (is_blank(s, m)) {
        text->n = 0;
        return "the record is empty";
    }
    if (!ck_kafka_key_is_text(&s->metadata, m)) return "the key is no UTF-8 (a column for it can be BYTES)";
    if (!s->is_csv) return NULL;
    if (text->p[text->n - 1] == '\n') text->n--; /* a line's end that came with it */
    if (text->n && text->p[text->n - 1] == '\r') text->n--;
    return ck_kafka_csv_unfit(*text);
}

/* A line break cannot be in a record of NDJSON or, outside quotes, of csv: between values of JSON it is a space, in a
 * text it is an error and stays one. */
static void copy_value(uint8_t *to, ck_view text, bool json) {
    if (text.n) memcpy(to, text.p, text.n);
    to[text.n] = '\n';
    if (!json || !memchr(to, '\n', text.n)) return;
    bool quoted = false;
    for (size_t i = 0; i < text.n; i++) {
        if (to[i] == '"') quoted = !quoted;
        if (to[i] == '\\' && quoted)
            i++;
        else if (to[i] == '\n')
            to[i] = quoted ? NO_VALUE : ' ';
    }
}

/* What the decoder makes a row of ends where the buffer does now. */
static ck_status added(kafka_source *s, partition *p, const rd_kafka_message_t *m, int weight, ck_op_ctx *ctx) {
    if (p->beside &&
        ck_kafka_beside_take(&s->metadata, s->client.lib, m, &p->beside_text, &p->beside[p->copied]) != CK_OK)
        return ck_nomem(ctx->error, s->mem, p->beside_text.n);
    if (p->weights) p->weights[p->copied] = (int8_t)weight;
    p->ends[p->copied] = p->end;
    p->offsets[p->copied++] = m->offset;
    return CK_OK;
}

/* One line of the buffer. */
static ck_status add_line(kafka_source *s, partition *p, const rd_kafka_message_t *m, ck_view text, int weight,
                          ck_op_ctx *ctx) {
    copy_value(p->buffer->p + p->end, text, !s->is_csv);
    p->end += text.n + 1;
    return added(s, p, m, weight, ctx);
}

/* One frame. CK_AGAIN: its schema is being asked for, and nothing is added. */
static ck_status add_message(kafka_source *s, partition *p, const rd_kafka_message_t *m, ck_view record,
                             ck_op_ctx *ctx) {
    ck_message_frame f;
    CK_TRY(ck_kafka_schemas_frame(&s->schemas, record, &f, ctx));
    memcpy(p->buffer->p + p->end, &f, sizeof f);
    if (record.n) memcpy(p->buffer->p + p->end + sizeof f, record.p, record.n);
    p->end += sizeof f + record.n;
    return added(s, p, m, 1, ctx);
}

/* What stands in for a record that is no row: the decoder refuses it, whatever the columns are. */
static ck_status add_unfit(kafka_source *s, partition *p, const rd_kafka_message_t *m, const char *why, ck_view record,
                           ck_op_ctx *ctx) {
    static const char json[] = {NO_VALUE, 0}, csv[] = "\"\"x";
    if (ck_kafka_unfit_add(&p->unfit, p->copied, why, record) != CK_OK) return ck_nomem(ctx->error, s->mem, record.n);
    if (s->options.registry.url) return add_message(s, p, m, (ck_view){0}, ctx);
    return add_line(s, p, m, ck_view_of(s->is_csv ? csv : json), 1, ctx);
}

/* An update is two lines, the row before it and the row after it; of the record a restart begins with, the first may
 * have been emitted. */
static ck_status add_change(kafka_source *s, partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    ck_debezium change;
    ck_view text = {m->payload, m->len};
    bool half = p->split.half && m->offset == p->split.position;
    const char *why = ck_debezium_read(text, &change);
    if (why) return add_unfit(s, p, m, why, text, ctx);
    if (change.before.n && !half) CK_TRY(add_line(s, p, m, change.before, -1, ctx));
    return change.after.n ? add_line(s, p, m, change.after, 1, ctx) : CK_OK;
}

static ck_status add_record(kafka_source *s, partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    ck_view text;
    const char *why = unfit(s, m, &text);
    if (why) return add_unfit(s, p, m, why, text, ctx);
    if (s->options.registry.url) return add_message(s, p, m, text, ctx);
    if (s->options.changelog) return add_change(s, p, m, ctx);
    return add_line(s, p, m, text, 1, ctx);
}

enum { BESIDE = sizeof(ck_message_frame) }; /* room beside a value: its frame, the ends of two lines, or a stand-in */

/* Values of taken records into a new buffer, as many as fit. */
static ck_status copy_records(kafka_source *s, partition *p, ck_op_ctx *ctx) {
    size_t room = FETCH_BYTES, need = p->records[p->record_at]->len + BESIDE;
    if (room < need) room = need;
    ck_buffer_unref(&p->buffer);
    p->begin = p->end = p->copied = p->decoded = p->taken = 0;
    ck_bytes_clear(&p->beside_text);
    ck_kafka_unfit_clear(&p->unfit);
    if (!(p->buffer = ck_buffer_new(s->mem, room))) return ck_nomem(ctx->error, s->mem, room);
    for (; p->record_at < p->record_count; p->record_at++) {
        rd_kafka_message_t *m = p->records[p->record_at];
        if (m->err) {
            ck_status status = take_event(s, p, m, ctx);
            if (status != CK_OK) return status;
        } else if (m->offset >= p->split.end) {
            p->finished = true;
        } else if (m->offset >= p->split.position && m->payload) { /* a tombstone is no row */
            if (room - p->end < m->len + BESIDE) break;
            ck_status status = add_record(s, p, m, ctx);
            if (status == CK_AGAIN) break;
            CK_TRY(status);
        }
        if (!m->err && !p->finished && m->offset >= p->behind) p->behind = m->offset + 1;
        s->client.lib->rd_kafka_message_destroy(m);
    }
    return CK_OK;
}

static void note_time(kafka_source *s, partition *p) {
    rd_kafka_timestamp_type_t type;
    for (size_t i = p->record_count; i > 0; i--) {
        if (p->records[i - 1]->err) continue;
        int64_t ms = s->client.lib->rd_kafka_message_timestamp(p->records[i - 1], &type);
        if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) p->read_ms = ms;
        return;
    }
}

static ck_status fetch(kafka_source *s, partition *p, ck_op_ctx *ctx) {
    if (p->record_at == p->record_count && !p->finished) {
        atomic_store(&p->woken, false); /* before the look: what comes behind it wakes again */
        ssize_t n = s->client.lib->rd_kafka_consume_batch(s->topic, p->split.partition, 0, p->records, FETCH_RECORDS);
        if (n < 0)
            return ck_kafka_fail(&s->client, s->client.lib->rd_kafka_last_error(), ctx->error,
                                 "reading partition %d of topic %s", p->split.partition, p->split.topic);
        p->record_at = 0;
        p->record_count = (size_t)n;
        if (n) p->at_end = false;
        note_time(s, p);
    }
    return p->record_at < p->record_count ? copy_records(s, p, ctx) : CK_OK;
}

/* CK_OK: nothing is left. CK_FULL: the batch is full. */
static ck_status decode(kafka_source *s, partition *p, ck_op_ctx *ctx) {
    if (s->decoding != p) {
        s->decoding = p;
        CK_TRY(ck_decoder_begin(s->decoder, p->id, true, ctx->error));
    }
    size_t consumed = 0;
    ck_status status = ck_decoder_feed(s->decoder, p->buffer, p->begin, p->end, p->begin, true, &consumed, ctx->error);
    p->begin += consumed;
    while (p->decoded < p->copied && p->ends[p->decoded] <= p->begin) p->decoded++;
    return status;
}

/* What is beside the records of the batch's rows goes in: metadata, and which way a row goes. */
static ck_status complete(kafka_source *s, partition *p, ck_batch **b, ck_op_ctx *ctx) {
    if (!s->metadata.any && !p->weights) return CK_OK;
    const ck_batch *values = *b;
    const ck_kafka_beside **rows = ck_arena_array(ctx->arena, values->row_count, sizeof *rows);
    int8_t *weights = ck_arena_array(ctx->arena, values->row_count, sizeof *weights);
    if (!rows || !weights) return ck_nomem(ctx->error, ctx->mem, values->row_count * sizeof *rows);
    size_t line = p->taken;
    for (uint32_t i = 0; i < values->row_count; i++) {
        uint64_t at = values->origin->base_offset + values->origin->row_offset[i];
        while (p->ends[line] <= at) line++;
        if (s->metadata.any) rows[i] = &p->beside[line];
        if (p->weights) weights[i] = p->weights[line];
    }
    ck_batch *whole;
    CK_TRY(ck_kafka_metadata_add(&s->metadata, &s->table, &p->split, values, rows, p->weights ? weights : NULL,
                                 &p->beside_text, s->mem, &whole, ctx->error));
    ck_batch_unref(b);
    *b = whole;
    return CK_OK;
}

/* Behind the last line that is decoded; behind all of them also what is no row, whose records may be gone when the job
 * goes on: the marks of transactions are never read, and old tombstones are removed. */
static void move_on(partition *p) {
    if (p->decoded) {
        int64_t last = p->offsets[p->decoded - 1];
        p->split.half = p->decoded < p->copied && p->offsets[p->decoded] == last; /* an update is emitted by halves */
        p->split.position = last + !p->split.half;
    }
    if (p->begin == p->end && p->split.position < p->behind) {
        p->split.position = p->behind;
        p->split.half = false;
    }
}

static ck_status emit(kafka_source *s, partition *p, ck_op_ctx *ctx) {
    move_on(p);
    if (s->bad_rows) ck_op_count(ctx, "bad_rows", s->bad_rows);
    if (s->bad_rows && s->letters.on) ck_op_count(ctx, "dead_letters", s->bad_rows);
    s->bad_rows = 0;
    CK_TRY(ck_dead_letters_emit(&s->letters, ctx));
    uint32_t rows = ck_decoder_rows(s->decoder);
    if (rows == 0) return CK_OK;
    ck_keys_met_note(s->decoder, s->metadata.values, s->table.schema, ctx);
    ck_batch *b = ck_decoder_take(s->decoder);
    ck_status status = b ? complete(s, p, &b, ctx) : CK_OK;
    p->taken = p->decoded;
    if (status == CK_OK) return ck_source_emit(&s->table, &s->event_time, p->clock, &b, rows, ctx);
    ck_batch_unref(&b);
    return status;
}

/* ---- a step ---- */

static bool is_done(const partition *p) { return p->finished && p->record_at == p->record_count && p->begin == p->end; }

/* The partition's next rows. *some: there were any. */
static ck_status advance(kafka_source *s, partition *p, bool *some, ck_op_ctx *ctx) {
    if (p->begin == p->end) CK_TRY(fetch(s, p, ctx));
    *some = p->begin < p->end;
    if (*some) {
        size_t from = p->begin;
        ck_status status = decode(s, p, ctx);
        if (status != CK_OK && status != CK_FULL) return status;
        ck_op_count(ctx, "bytes_in", p->begin - from);
        CK_TRY(emit(s, p, ctx));
    } else {
        move_on(p);
    }
    if (!is_done(p)) return CK_OK;
    if (p->split.position < p->split.end) p->split.position = p->split.end;
    ck_event_time_finish(&s->event_time, p->clock);
    return ck_event_time_say(&s->event_time, ctx);
}

/* How far each partition goes is what the library saw when it fetched last: nobody is asked. */
static void note_lag(kafka_source *s, int64_t now, ck_op_ctx *ctx) {
    uint64_t records = 0;
    int64_t oldest_us = 0;
    bool known = false;
    if (now < s->lag_next_us) return;
    for (uint32_t i = 0; i < s->count; i++) {
        const partition *p = s->partitions[i];
        int64_t low, high;
        if (!p->started ||
            s->client.lib->rd_kafka_get_watermark_offsets(s->client.rk, p->split.topic, p->split.partition, &low,
                                                          &high) != RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        if (high < 0 || (p->read_ms < 0 && high > p->split.position)) continue; /* nothing has been fetched yet */
        known = true;
        if (high > p->split.end) high = p->split.end;
        if (p->finished || p->at_end || high <= p->split.position) continue;
        records += (uint64_t)(high - p->split.position);
        int64_t us = ck_wall_us(ctx->proc) - p->read_ms * 1000;
        if (us > oldest_us) oldest_us = us;
    }
    if (!known) return;
    s->lag_next_us = now + LAG_EVERY_US;
    ck_op_note_lag(ctx, records, oldest_us);
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    kafka_source *s = self;
    int64_t now = ck_mono_us(ctx->proc);
    *until_us = INT64_MAX;
    *result = s->discovery.on ? CK_POLL_IDLE : CK_POLL_END;
    s->client.lib->rd_kafka_poll(s->client.rk, 0);
    CK_TRY(ck_kafka_hopeless(&s->client, &s->options, ctx->error));
    CK_TRY(discover(s, now, until_us, ctx));
    note_lag(s, now, ctx);
    for (uint32_t i = 0; i < s->count; i++) {
        partition *p = s->partitions[(s->turn + i) % s->count];
        if (is_done(p)) continue;
        bool some;
        *result = CK_POLL_IDLE;
        CK_TRY(advance(s, p, &some, ctx));
        if (some || is_done(p)) {
            s->turn = (s->turn + i + 1) % s->count;
            *result = CK_POLL_MORE;
            return CK_OK;
        }
        if (p->record_at == p->record_count) ck_event_time_empty(&s->event_time, p->clock, now, until_us);
    }
    if (*result == CK_POLL_IDLE) {
        /* Errors of connections are told when asked for. */
        if (now + 1000000 < *until_us) *until_us = now + 1000000;
        return ck_event_time_say(&s->event_time, ctx);
    }
    return CK_OK;
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    kafka_source *s = self;
    for (uint32_t i = 0; i < s->count; i++) {
        partition *p = s->partitions[i];
        const char *spec;
        p->split.time_us = ck_event_time_max(&s->event_time, p->clock);
        CK_TRY(ck_kafka_split_print(ctx->arena, &p->split, &spec, ctx->error));
        if (ck_split_list_add(out, p->id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, strlen(spec));
    }
    return CK_OK;
}

static void source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    source_free(self);
}

static const ck_source_vtbl source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .open = source_open,
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
};

const ck_op_desc ck_op_source_kafka = {
    .type = "source.kafka", .source = &source_vtbl, .create = source_create, .enumerate = ck_kafka_enumerate};
