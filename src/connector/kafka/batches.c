/* See batches.h. */
#include "connector/kafka/batches.h"

enum {
    BYTES_AT = 8,      /* of the head: where the number of bytes is */
    COUNTED_FROM = 12, /* and from where it counts */
    FORMAT_AT = 16,    /* also in the older formats */
    LAST_OFFSET_AT = 23,
    FORMAT = 2,
    CODEC_BITS = 7,
    BROKER_TIME_BIT = 8,
    MARK_BIT = 32,
};

void ck_kafka_batches_init(ck_kafka_batches *b, ck_mem mem) {
    *b = (ck_kafka_batches){0};
    ck_bytes_init(&b->unpacked, mem, CK_KAFKA_UNPACKED_BYTES_MAX);
}

void ck_kafka_batches_destroy(ck_kafka_batches *b) { ck_bytes_destroy(&b->unpacked); }

void ck_kafka_batches_give(ck_kafka_batches *b, ck_view bytes) {
    b->left = ck_cursor_of(bytes.p, bytes.n);
    b->record_count = 0;
}

/* ---- numbers ---- */

static inline bool read_number(ck_cursor *c, int64_t *out) {
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && i < c->left; i++) {
        v |= (uint64_t)(c->p[i] & 127) << (7 * i);
        if (c->p[i] > 127) continue;
        c->p += i + 1, c->left -= i + 1;
        *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
        return true;
    }
    return false;
}

/* Its bytes behind their number; -1: none. */
static inline bool read_text(ck_cursor *c, ck_view *out) {
    int64_t n;
    if (!read_number(c, &n) || n < -1) return false;
    *out = (ck_view){0};
    return n < 0 || ck_cursor_take(c, (size_t)n, out);
}

static int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); } /* whatever was written */

bool ck_kafka_header_next(ck_cursor *left, ck_view *name, ck_view *value) {
    return read_text(left, name) && name->p && read_text(left, value);
}

/* ---- batches ---- */

/* CK_NOTFOUND: there is no whole one. */
static ck_status take_batch(ck_cursor *left, ck_view *out) {
    ck_cursor c = *left;
    ck_view first_offset;
    uint32_t bytes;
    if (!ck_cursor_take(&c, BYTES_AT, &first_offset) || !ck_cursor_u32be(&c, &bytes)) return CK_NOTFOUND;
    if (c.left > FORMAT_AT - COUNTED_FROM && c.p[FORMAT_AT - COUNTED_FROM] != FORMAT) return CK_REFUSED;
    if (bytes < CK_KAFKA_BATCH_HEAD_BYTES - COUNTED_FROM) return CK_CORRUPT;
    return ck_cursor_take(left, (size_t)bytes + COUNTED_FROM, out) ? CK_OK : CK_NOTFOUND;
}

int64_t ck_kafka_batches_end(ck_view bytes, int64_t begin) {
    ck_cursor left = ck_cursor_of(bytes.p, bytes.n);
    ck_view batch;
    int64_t end = begin;
    while (take_batch(&left, &batch) == CK_OK) {
        ck_cursor c = ck_cursor_of(batch.p, batch.n);
        uint64_t first, last;
        ck_view between;
        if (!ck_cursor_be(&c, 8, &first) || !ck_cursor_take(&c, LAST_OFFSET_AT - 8, &between) ||
            !ck_cursor_be(&c, 4, &last))
            break;
        if (first > INT64_MAX - UINT32_MAX - 1ull) break;
        if ((int64_t)(first + last + 1) > end) end = (int64_t)(first + last + 1);
    }
    return end;
}

typedef struct batch_head {
    uint64_t attributes, first_ms, greatest_ms, first_offset, records;
} batch_head;

static bool read_head(ck_cursor *c, batch_head *h) {
    ck_view skipped;
    return ck_cursor_be(c, 8, &h->first_offset) && ck_cursor_take(c, 13, &skipped) &&
           ck_cursor_be(c, 2, &h->attributes) && ck_cursor_take(c, 4, &skipped) && ck_cursor_be(c, 8, &h->first_ms) &&
           ck_cursor_be(c, 8, &h->greatest_ms) && ck_cursor_take(c, 14, &skipped) && ck_cursor_be(c, 4, &h->records);
}

static ck_status begin_batch(ck_kafka_batches *b, ck_kafka_unpacker *u) {
    ck_view batch;
    batch_head h;
    CK_TRY(take_batch(&b->left, &batch));
    b->records = ck_cursor_of(batch.p, batch.n);
    if (!read_head(&b->records, &h) || h.records > INT32_MAX) return CK_CORRUPT;
    b->record_count = h.attributes & MARK_BIT ? 0 : (uint32_t)h.records;
    b->first_offset = (int64_t)h.first_offset;
    b->first_ms = (int64_t)h.first_ms;
    b->broker_ms = (int64_t)h.greatest_ms;
    b->broker_time = (h.attributes & BROKER_TIME_BIT) != 0;
    if (b->record_count == 0 || (h.attributes & CODEC_BITS) == 0) return CK_OK;
    ck_view packed = {(const char *)b->records.p, b->records.left};
    ck_status s = ck_kafka_unpack(u, (unsigned)(h.attributes & CODEC_BITS), packed, &b->unpacked);
    if (s != CK_OK) b->record_count = 0;
    b->records = ck_cursor_of(b->unpacked.p, b->unpacked.n);
    return s;
}

ck_status ck_kafka_batches_next(ck_kafka_batches *b, ck_kafka_unpacker *u, ck_kafka_record *out) {
    while (b->record_count == 0) {
        ck_kafka_unpacker_give_back(u, &b->unpacked);
        CK_TRY(begin_batch(b, u));
    }
    int64_t bytes, time, offset;
    ck_view whole;
    uint8_t attributes;
    bool ok = read_number(&b->records, &bytes) && bytes >= 0 && ck_cursor_take(&b->records, (size_t)bytes, &whole);
    if (!ok) return CK_CORRUPT;
    ck_cursor c = ck_cursor_of(whole.p, whole.n);
    *out = (ck_kafka_record){0};
    ok = ck_cursor_u8(&c, &attributes) && read_number(&c, &time) && read_number(&c, &offset) &&
         read_text(&c, &out->key) && read_text(&c, &out->value) && read_number(&c, &out->header_count);
    if (!ok || offset < 0 || out->header_count < 0) return CK_CORRUPT;
    out->offset = plus(b->first_offset, offset);
    out->time_ms = b->broker_time ? b->broker_ms : plus(b->first_ms, time);
    out->headers = (ck_view){(const char *)c.p, c.left};
    b->record_count--;
    return CK_OK;
}
