/* One partition: what is fetched of it is taken without waiting, and its values are put one after the other into a
 * buffer, a line or a frame each. */
#include "connector/kafka/debezium.h"
#include "connector/kafka/source_int.h"

enum {
    FETCH_BYTES = 256 << 10, /* copied into one buffer, or one record */
    NO_VALUE = 1,            /* a byte that is none in JSON */
};

/* ---- its beginning and end ---- */

ck_status ck_kafka_partition_start(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    p->ends = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->ends);
    p->offsets = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->offsets);
    if (s->metadata.any) p->beside = ck_alloc(s->mem, CK_KAFKA_LINES * sizeof *p->beside);
    if (s->options.changelog) p->weights = ck_alloc(s->mem, CK_KAFKA_LINES);
    ck_bytes_init(&p->beside_text, s->mem, UINT32_MAX);
    ck_kafka_unfit_init(&p->unfit, s->mem);
    bool have = p->ends && p->offsets && (p->beside || !s->metadata.any) && (p->weights || !s->options.changelog);
    if (!have) return ck_nomem(ctx->error, s->mem, CK_KAFKA_LINES * sizeof *p->ends);
    return ck_kafka_records_start(s, p, ctx);
}

void ck_kafka_partition_free(ck_kafka_source *s, ck_kafka_partition *p) {
    ck_kafka_records_stop(s, p);
    ck_buffer_unref(&p->buffer);
    if (p->ends) ck_free(s->mem, p->ends, CK_KAFKA_LINES * sizeof *p->ends);
    if (p->offsets) ck_free(s->mem, p->offsets, CK_KAFKA_LINES * sizeof *p->offsets);
    if (p->beside) ck_free(s->mem, p->beside, CK_KAFKA_LINES * sizeof *p->beside);
    if (p->weights) ck_free(s->mem, p->weights, CK_KAFKA_LINES);
    ck_bytes_destroy(&p->beside_text);
    ck_kafka_unfit_destroy(&p->unfit);
}

bool ck_kafka_partition_is_empty(const ck_kafka_partition *p) {
    return !p->held && !p->chunk && p->message_at == p->message_count;
}

bool ck_kafka_partition_high(const ck_kafka_source *s, const ck_kafka_partition *p, int64_t *high) {
    int64_t low;
    *high = p->high;
    if (p->fetched) return p->high >= 0;
    return s->client.lib->rd_kafka_get_watermark_offsets(s->client.rk, p->split.topic, p->split.partition, &low,
                                                         high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
           *high >= 0;
}

/* ---- its records ---- */

static bool is_blank(const ck_kafka_source *s, const ck_kafka_record *r) {
    const char *text = r->value.p;
    if (s->options.registry.url) return r->value.n == 0;
    for (size_t i = 0; i < r->value.n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

/* What no decoder need look at to know that the record is no row. */
static const char *unfit(const ck_kafka_source *s, const ck_kafka_record *r, ck_view *text) {
    *text = r->value;
    if (is_blank(s, r)) {
        text->n = 0;
        return "the record is empty";
    }
    if (!ck_kafka_key_is_text(&s->metadata, r)) return "the key is no UTF-8 (a column for it can be BYTES)";
    if (!ck_kafka_time_is_one(&s->metadata, r))
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
static ck_status added(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, int weight,
                       ck_op_ctx *ctx) {
    if (p->beside &&
        ck_kafka_beside_take(&s->metadata, s->client.lib, r, &p->beside_text, &p->beside[p->copied]) != CK_OK)
        return ck_nomem(ctx->error, s->mem, p->beside_text.n);
    if (p->weights) p->weights[p->copied] = (int8_t)weight;
    p->ends[p->copied] = p->end;
    p->offsets[p->copied++] = r->offset;
    return CK_OK;
}

/* One line of the buffer. */
static ck_status add_line(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, ck_view text, int weight,
                          ck_op_ctx *ctx) {
    copy_value(p->buffer->p + p->end, text, !s->is_csv);
    p->end += text.n + 1;
    return added(s, p, r, weight, ctx);
}

/* One frame. CK_AGAIN: its schema is being asked for, and nothing is added. */
static ck_status add_message(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, ck_view record,
                             ck_op_ctx *ctx) {
    ck_message_frame f;
    CK_TRY(ck_kafka_schemas_frame(&s->schemas, record, &f, ctx));
    memcpy(p->buffer->p + p->end, &f, sizeof f);
    if (record.n) memcpy(p->buffer->p + p->end + sizeof f, record.p, record.n);
    p->end += sizeof f + record.n;
    return added(s, p, r, 1, ctx);
}

/* What stands in for a record that is no row: the decoder refuses it, whatever the columns are. */
static ck_status add_unfit(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, const char *why,
                           ck_view record, ck_op_ctx *ctx) {
    static const char json[] = {NO_VALUE, 0}, csv[] = "\"\"x";
    if (ck_kafka_unfit_add(&p->unfit, p->copied, why, record) != CK_OK) return ck_nomem(ctx->error, s->mem, record.n);
    if (s->options.registry.url) return add_message(s, p, r, (ck_view){0}, ctx);
    return add_line(s, p, r, ck_view_of(s->is_csv ? csv : json), 1, ctx);
}

/* An update is two lines, the row before it and the row after it; of the record a restart begins with, the first may
 * have been emitted. */
static ck_status add_change(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, ck_op_ctx *ctx) {
    ck_debezium change;
    ck_view text = r->value;
    bool half = p->split.half && r->offset == p->split.position;
    const char *why = ck_debezium_read(text, &change);
    if (why) return add_unfit(s, p, r, why, text, ctx);
    if (change.before.n && !half) CK_TRY(add_line(s, p, r, change.before, -1, ctx));
    return change.after.n ? add_line(s, p, r, change.after, 1, ctx) : CK_OK;
}

static ck_status add_record(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, ck_op_ctx *ctx) {
    ck_view text;
    const char *why = unfit(s, r, &text);
    if (why) return add_unfit(s, p, r, why, text, ctx);
    if (s->options.registry.url) return add_message(s, p, r, text, ctx);
    if (s->options.changelog) return add_change(s, p, r, ctx);
    return add_line(s, p, r, text, 1, ctx);
}

enum { BESIDE = sizeof(ck_message_frame) }; /* room beside a value: its frame, the ends of two lines, or a stand-in */

/* One record into the buffer. CK_FULL: it does not fit any more. CK_AGAIN: its schema is being asked for. */
static ck_status copy_record(ck_kafka_source *s, ck_kafka_partition *p, const ck_kafka_record *r, ck_op_ctx *ctx) {
    if (r->offset < p->split.position || !r->value.p) return CK_OK; /* a tombstone is no row */
    if (p->buffer->bytes - p->end < r->value.n + BESIDE || CK_KAFKA_LINES - p->copied < 2) return CK_FULL;
    return add_record(s, p, r, ctx);
}

static void note_taken(ck_kafka_partition *p, const ck_kafka_record *r) {
    if (r->offset >= p->behind) p->behind = r->offset + 1;
    /* A time that is none says nothing of how old the record is. */
    if (r->time_ms != -1 && r->time_ms <= CK_EVENT_TIME_MAX / 1000) p->read_ms = r->time_ms;
}

static ck_status new_buffer(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    size_t room = FETCH_BYTES, need = p->record.value.n + BESIDE;
    if (room < need) room = need;
    ck_buffer_unref(&p->buffer);
    p->begin = p->end = p->copied = p->decoded = p->taken = 0;
    ck_bytes_clear(&p->beside_text);
    ck_kafka_unfit_clear(&p->unfit);
    p->buffer = ck_buffer_new(s->mem, room);
    return p->buffer ? CK_OK : ck_nomem(ctx->error, s->mem, room);
}

/* Values of records into a new buffer, as many as fit. */
ck_status ck_kafka_partition_fetch(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    ck_status status = CK_OK;
    for (bool begun = false; status == CK_OK; begun = true) {
        if ((status = ck_kafka_records_next(s, p, ctx)) != CK_OK) break;
        if (!begun) CK_TRY(new_buffer(s, p, ctx));
        if (p->record.offset >= p->split.end) {
            p->finished = true;
            ck_kafka_records_let_go(s, p);
            continue;
        }
        if ((status = copy_record(s, p, &p->record, ctx)) != CK_OK) break;
        note_taken(p, &p->record);
        ck_kafka_records_let_go(s, p);
    }
    return status == CK_NOTFOUND || status == CK_FULL || status == CK_AGAIN ? CK_OK : status;
}
