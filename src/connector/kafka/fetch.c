/* See fetch.h. */
#include "connector/kafka/fetch.h"

enum { FETCH = 1, VERSION = 10, COMMITTED_ONLY = 1, LENGTH_BYTES = 4 };

/* ---- the request ---- */

static ck_status put_text(ck_bytes *out, const char *text) {
    CK_TRY(ck_bytes_u16be(out, (uint16_t)strlen(text)));
    return ck_bytes_str(out, text);
}

ck_status ck_kafka_fetch_begin(ck_bytes *out, uint32_t number, const ck_kafka_fetch_limits *l, const char *topic,
                               uint32_t partitions) {
    ck_bytes_clear(out);
    CK_TRY(ck_bytes_u32be(out, 0)); /* ck_kafka_fetch_end knows */
    CK_TRY(ck_bytes_u16be(out, FETCH));
    CK_TRY(ck_bytes_u16be(out, VERSION));
    CK_TRY(ck_bytes_u32be(out, number));
    CK_TRY(put_text(out, "clink"));
    CK_TRY(ck_bytes_u32be(out, UINT32_MAX)); /* we are no replica */
    CK_TRY(ck_bytes_u32be(out, l->wait_ms));
    CK_TRY(ck_bytes_u32be(out, 1)); /* byte is enough for an answer */
    CK_TRY(ck_bytes_u32be(out, l->bytes_max));
    CK_TRY(ck_bytes_char(out, COMMITTED_ONLY));
    CK_TRY(ck_bytes_u32be(out, 0)); /* no session: each request says all it wants */
    CK_TRY(ck_bytes_u32be(out, UINT32_MAX));
    CK_TRY(ck_bytes_u32be(out, 1)); /* topic */
    CK_TRY(put_text(out, topic));
    return ck_bytes_u32be(out, partitions);
}

ck_status ck_kafka_fetch_partition(ck_bytes *out, const ck_kafka_fetch_limits *l, int32_t partition, int64_t offset) {
    CK_TRY(ck_bytes_u32be(out, (uint32_t)partition));
    CK_TRY(ck_bytes_u32be(out, UINT32_MAX)); /* whatever epoch its leader is of */
    CK_TRY(ck_bytes_u64be(out, (uint64_t)offset));
    CK_TRY(ck_bytes_u64be(out, UINT64_MAX)); /* we keep no log */
    return ck_bytes_u32be(out, l->partition_bytes_max);
}

ck_status ck_kafka_fetch_end(ck_bytes *out) {
    CK_TRY(ck_bytes_u32be(out, 0)); /* nothing is forgotten */
    size_t bytes = out->n - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) out->p[i] = (char)(unsigned char)(bytes >> (24 - 8 * i));
    return CK_OK;
}

/* ---- the answer ---- */

bool ck_kafka_answer_open(ck_kafka_answer *a, ck_view bytes, uint32_t number, int16_t *error) {
    *a = (ck_kafka_answer){.left = ck_cursor_of(bytes.p, bytes.n)};
    uint32_t to, throttled, session;
    uint16_t code;
    bool ok = ck_cursor_u32be(&a->left, &to) && ck_cursor_u32be(&a->left, &throttled) &&
              ck_cursor_u16be(&a->left, &code) && ck_cursor_u32be(&a->left, &session) &&
              ck_cursor_u32be(&a->left, &a->topics) && to == number;
    if (ok) *error = (int16_t)code;
    return ok;
}

static bool next_topic(ck_kafka_answer *a) {
    uint16_t bytes;
    ck_view name;
    a->topics--;
    return ck_cursor_u16be(&a->left, &bytes) && ck_cursor_take(&a->left, bytes, &name) &&
           ck_cursor_u32be(&a->left, &a->partitions);
}

static bool skip_aborted(ck_cursor *c, bool *any) {
    uint32_t count;
    ck_view list;
    if (!ck_cursor_u32be(c, &count)) return false;
    *any = count != 0 && count != UINT32_MAX;
    return !*any || ck_cursor_take(c, (size_t)count * 16, &list);
}

ck_status ck_kafka_answer_next(ck_kafka_answer *a, ck_kafka_answer_part *out) {
    while (a->partitions == 0) {
        if (a->topics == 0) return CK_NOTFOUND;
        if (!next_topic(a)) return CK_CORRUPT;
    }
    a->partitions--;
    uint32_t partition = 0, bytes;
    uint16_t error = 0;
    uint64_t high = 0, stable = 0, first;
    *out = (ck_kafka_answer_part){0};
    bool ok = ck_cursor_u32be(&a->left, &partition) && ck_cursor_u16be(&a->left, &error) &&
              ck_cursor_u64be(&a->left, &high) && ck_cursor_u64be(&a->left, &stable) &&
              ck_cursor_u64be(&a->left, &first) && skip_aborted(&a->left, &out->aborted) &&
              ck_cursor_u32be(&a->left, &bytes) &&
              (bytes == UINT32_MAX || ck_cursor_take(&a->left, bytes, &out->batches));
    out->partition = (int32_t)partition;
    out->error = (int16_t)error;
    out->high = (int64_t)high;
    out->stable = (int64_t)stable;
    return ok ? CK_OK : CK_CORRUPT;
}
