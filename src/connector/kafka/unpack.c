/* See unpack.h. lz4 is what producers mostly use: its frame is taken in one call where out is large enough, which it is
 * from the second batch on. */
#include "connector/kafka/unpack.h"

#include <lz4frame.h>

#include "format/compression.h"

enum { GZIP = 1, LZ4 = 3, ZSTD = 4, ROOM_BYTES = 64 << 10, GROWS = 4, SPARE_BYTES_MAX = 8 << 20 };

void ck_kafka_unpacker_destroy(ck_kafka_unpacker *u) {
    if (u->lz4) LZ4F_freeDecompressionContext(u->lz4);
    u->lz4 = NULL;
    ck_bytes_destroy(&u->spare);
}

void ck_kafka_unpacker_give_back(ck_kafka_unpacker *u, ck_bytes *room) {
    if (room->capacity > u->spare.capacity && room->capacity <= SPARE_BYTES_MAX) {
        ck_bytes less = u->spare;
        u->spare = *room;
        ck_bytes_destroy(&less);
        room->p = NULL;
        room->capacity = 0;
    } else {
        ck_bytes_destroy(room);
    }
    room->n = 0;
}

static void take_spare(ck_kafka_unpacker *u, ck_bytes *room) {
    if (room->p || !u->spare.p) return;
    room->p = u->spare.p;
    room->capacity = u->spare.capacity;
    u->spare = (ck_bytes){0};
}

/* Room for what is likely to come: at first several times what there is, then as much again. */
static ck_status make_room(ck_bytes *out, size_t in_bytes) {
    size_t want = out->n ? out->n : in_bytes * GROWS;
    if (want < ROOM_BYTES) want = ROOM_BYTES;
    if (out->capacity - out->n >= (out->n ? ROOM_BYTES : want)) return CK_OK;
    size_t left = out->bytes_max - out->n;
    if (left == 0) return CK_FULL;
    return ck_bytes_reserve(out, want < left ? want : left);
}

static ck_status unpack_lz4(ck_kafka_unpacker *u, ck_view in, ck_bytes *out) {
    if (!u->lz4 && LZ4F_isError(LZ4F_createDecompressionContext(&u->lz4, LZ4F_VERSION))) {
        u->lz4 = NULL;
        return CK_NOMEM;
    }
    LZ4F_resetDecompressionContext(u->lz4);
    for (size_t at = 0;;) {
        CK_TRY(make_room(out, in.n));
        size_t made = out->capacity - out->n, taken = in.n - at;
        size_t more = LZ4F_decompress(u->lz4, out->p + out->n, &made, in.p + at, &taken, NULL);
        if (LZ4F_isError(more)) return CK_CORRUPT;
        at += taken;
        out->n += made;
        if (more == 0) return at == in.n ? CK_OK : CK_CORRUPT; /* one frame, and nothing behind it */
        if (made == 0 && taken == 0) return CK_CORRUPT;
    }
}

static ck_status unpack_stream(ck_compression kind, ck_view in, ck_bytes *out) {
    ck_inflater *i;
    CK_TRY(ck_inflater_new(kind, out->mem, &i, NULL));
    ck_status s = CK_MORE;
    for (size_t at = 0; s == CK_MORE;) {
        if ((s = make_room(out, in.n)) != CK_OK) break;
        size_t taken = 0, made = 0;
        s = ck_inflater_run(i, (const uint8_t *)in.p + at, in.n - at, &taken, (uint8_t *)out->p + out->n,
                            out->capacity - out->n, &made, NULL);
        at += taken;
        out->n += made;
    }
    if (s == CK_OK) s = ck_inflater_end(i, NULL);
    ck_inflater_free(i);
    return s == CK_REFUSED ? CK_FULL : s;
}

ck_status ck_kafka_unpack(ck_kafka_unpacker *u, unsigned codec, ck_view in, ck_bytes *out) {
    take_spare(u, out);
    ck_bytes_clear(out);
    switch (codec) {
    case GZIP: return unpack_stream(CK_COMPRESSION_GZIP, in, out);
    case LZ4: return unpack_lz4(u, in, out);
    case ZSTD: return unpack_stream(CK_COMPRESSION_ZSTD, in, out);
    default: return CK_REFUSED;
    }
}
