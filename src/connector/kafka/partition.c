/* One partition: the library fetches ahead on threads of its own; what is ready is taken without waiting, and its
 * values are put one after the other into a buffer, a line or a frame each. */
#include "connector/kafka/debezium.h"
#include "connector/kafka/source_int.h"

enum {
    FETCH_BYTES = 256 << 10, /* copied into one buffer, or one record */
    NO_VALUE = 1,            /* a byte that is none in JSON */
};

/* ---- its beginning and end ---- */

static void has_records(rd_kafka_t *rk, void *opaque) { /* thread: the library's */
    (void)rk;
    ck_kafka_partition *p = opaque;
    ck_op_ctx *ctx = p->of->ctx;
    if (!atomic_exchange(&p->woken, true)) ck_op_wake(ctx, ctx->rt);
}

ck_status ck_kafka_partition_start(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    const ck_kafka_lib *lib = s->client.lib;
    p->records = ck_alloc(s->mem, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
    p->ends = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->ends);
    p->offsets = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->offsets);
    if (s->metadata.any) p->beside = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->beside);
    if (s->options.changelog) p->weights = ck_alloc(s->mem, CK_KAFKA_LINES);
    ck_bytes_init(&p->beside_text, s->mem, UINT32_MAX);
    ck_kafka_unfit_init(&p->unfit, s->mem);
    bool have =
        p->records && p->ends && p->offsets && (p->beside || !s->metadata.any) && (p->weights || !s->options.changelog);
    if (!have) return ck_nomem(ctx->error, s->mem, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
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

void ck_kafka_partition_free(ck_kafka_source *s, ck_kafka_partition *p) {
    const ck_kafka_lib *lib = s->client.lib;
    /* It is not stopped first: librdkafka 2.0 waits for ever where a topic that is gone was. */
    for (size_t i = p->record_at; i < p->record_count; i++) lib->rd_kafka_message_destroy(p->records[i]);
    ck_buffer_unref(&p->buffer);
    if (p->records) ck_free(s->mem, p->records, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
    if (p->ends) ck_free(s->mem, p->ends, CK_KAFKA_LINES * sizeof *p->ends);
    if (p->offsets) ck_free(s->mem, p->offsets, CK_KAFKA_LINES * sizeof *p->offsets);
    if (p->beside) ck_free(s->mem, p->beside, CK_KAFKA_LINES * sizeof *p->beside);
    if (p->weights) ck_free(s->mem, p->weights, CK_KAFKA_LINES);
    ck_bytes_destroy(&p->beside_text);
    ck_kafka_unfit_destroy(&p->unfit);
}

/* ---- its records ---- */

/* What the library says in place of a record. */
static ck_status take_event(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
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
                           ? "; records it had not read are gone, or the topic was made anew under its name (--fresh begins "
                             "with what is there)"
                           : "";
    return ck_kafka_fail(&s->client, m->err, ctx->error, "topic %s, partition %d, offset %lld%s", p->split.topic,
                         p->split.partition, (long long)p->split.position, more);
}

static bool is_blank(const ck_kafka_source *s, const rd_kafka_message_t *m) {
    const char *text = m->payload;
    if (s->options.registry.url) return m->len == 0;
    for (size_t i = 0; i < m->len; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

/* What no decoder need look at to know that the record is no row. */
static const char *unfit(const ck_kafka_source *s, const rd_kafka_message_t *m, ck_view *text) {
    *text = (ck_view){m->payload, m->len};
    if (is_blank(s, m)) {
        text->n = 0;
        return "the record is empty";
    }
    if (!ck_kafka_key_is_text(&s->metadata, m)) return "the key is no UTF-8 (a column for it can be BYTES)";
    if (!ck_kafka_time_is_one(&s->metadata, s->client.lib, m))
        return "the record's timestamp is behind the year 9999 (a column for it can be BIGINT, its milliseconds)";
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
static ck_status added(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, int weight,
                       ck_op_ctx *ctx) {
    if (p->beside &&
        ck_kafka_beside_take(&s->metadata, s->client.lib, m, &p->beside_text, &p->beside[p->copied]) != CK_OK)
        return ck_nomem(ctx->error, s->mem, p->beside_text.n);
    if (p->weights) p->weights[p->copied] = (int8_t)weight;
    p->ends[p->copied] = p->end;
    p->offsets[p->copied++] = m->offset;
    return CK_OK;
}

/* One line of the buffer. */
static ck_status add_line(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_view text,
                          int weight, ck_op_ctx *ctx) {
    copy_value(p->buffer->p + p->end, text, !s->is_csv);
    p->end += text.n + 1;
    return added(s, p, m, weight, ctx);
}

/* One frame. CK_AGAIN: its schema is being asked for, and nothing is added. */
static ck_status add_message(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_view record,
                             ck_op_ctx *ctx) {
    ck_message_frame f;
    CK_TRY(ck_kafka_schemas_frame(&s->schemas, record, &f, ctx));
    memcpy(p->buffer->p + p->end, &f, sizeof f);
    if (record.n) memcpy(p->buffer->p + p->end + sizeof f, record.p, record.n);
    p->end += sizeof f + record.n;
    return added(s, p, m, 1, ctx);
}

/* What stands in for a record that is no row: the decoder refuses it, whatever the columns are. */
static ck_status add_unfit(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, const char *why,
                           ck_view record, ck_op_ctx *ctx) {
    static const char json[] = {NO_VALUE, 0}, csv[] = "\"\"x";
    if (ck_kafka_unfit_add(&p->unfit, p->copied, why, record) != CK_OK) return ck_nomem(ctx->error, s->mem, record.n);
    if (s->options.registry.url) return add_message(s, p, m, (ck_view){0}, ctx);
    return add_line(s, p, m, ck_view_of(s->is_csv ? csv : json), 1, ctx);
}

/* An update is two lines, the row before it and the row after it; of the record a restart begins with, the first may
 * have been emitted. */
static ck_status add_change(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    ck_debezium change;
    ck_view text = {m->payload, m->len};
    bool half = p->split.half && m->offset == p->split.position;
    const char *why = ck_debezium_read(text, &change);
    if (why) return add_unfit(s, p, m, why, text, ctx);
    if (change.before.n && !half) CK_TRY(add_line(s, p, m, change.before, -1, ctx));
    return change.after.n ? add_line(s, p, m, change.after, 1, ctx) : CK_OK;
}

static ck_status add_record(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    ck_view text;
    const char *why = unfit(s, m, &text);
    if (why) return add_unfit(s, p, m, why, text, ctx);
    if (s->options.registry.url) return add_message(s, p, m, text, ctx);
    if (s->options.changelog) return add_change(s, p, m, ctx);
    return add_line(s, p, m, text, 1, ctx);
}

enum { BESIDE = sizeof(ck_message_frame) }; /* room beside a value: its frame, the ends of two lines, or a stand-in */

/* Values of taken records into a new buffer, as many as fit. */
static ck_status copy_records(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
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

static void note_time(ck_kafka_source *s, ck_kafka_partition *p) {
    rd_kafka_timestamp_type_t type;
    for (size_t i = p->record_count; i > 0; i--) {
        if (p->records[i - 1]->err) continue;
        int64_t ms = s->client.lib->rd_kafka_message_timestamp(p->records[i - 1], &type);
        /* One that is no time says nothing of how old the record is. */
        if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && ms <= CK_EVENT_TIME_MAX / 1000) p->read_ms = ms;
        return;
    }
}

ck_status ck_kafka_partition_fetch(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    if (p->record_at == p->record_count && !p->finished) {
        atomic_store(&p->woken, false); /* before the look: what comes behind it wakes again */
        ssize_t n =
            s->client.lib->rd_kafka_consume_batch(s->topic, p->split.partition, 0, p->records, CK_KAFKA_FETCH_RECORDS);
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
