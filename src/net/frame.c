/* See frame.h. */
#include "net/frame.h"

#include <string.h>

#include "base/cursor.h"

enum {
    BUFFER_BYTES = 64 << 10,
    DIRECT_BYTES = 16 << 10,    /* a payload with so much missing is read into its own memory */
    FIRST_ROOM_BYTES = 1 << 20, /* of a long frame; then doubled as bytes arrive */
    HEAD_BYTES = (sizeof(ck_frame) + 15) / 16 * 16,
};

static uint8_t *payload_of(ck_frame *f) { return (uint8_t *)f + HEAD_BYTES; }

ck_frame *ck_frame_new(ck_mem mem, uint8_t kind, size_t n) {
    if (n > SIZE_MAX - HEAD_BYTES - CK_FRAME_PADDING) return NULL;
    size_t alloc_bytes = HEAD_BYTES + n + CK_FRAME_PADDING;
    ck_frame *f = ck_alloc(mem, alloc_bytes);
    if (!f) return NULL;
    *f = (ck_frame){.kind = kind, .p = payload_of(f), .n = n, .mem = mem, .alloc_bytes = alloc_bytes};
    memset(f->p + n, 0, CK_FRAME_PADDING);
    return f;
}

void ck_frame_free(ck_frame **pf) {
    ck_frame *f = *pf;
    *pf = NULL;
    if (!f) return;
    ck_free(f->mem, f, f->alloc_bytes);
}

void ck_frame_header(uint8_t out[CK_FRAME_HEADER_BYTES], uint8_t kind, size_t n) {
    CK_ASSERT(n < UINT32_MAX);
    uint32_t length = (uint32_t)n + 1;
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(length >> (24 - 8 * i));
    out[4] = kind;
}

/* ---- reading ---- */

void ck_frame_reader_init(ck_frame_reader *r, ck_mem mem, size_t length_max) {
    *r = (ck_frame_reader){.mem = mem, .length_max = length_max};
}

void ck_frame_reader_destroy(ck_frame_reader *r) {
    ck_frame_free(&r->frame);
    if (r->buffer) ck_free(r->mem, r->buffer, BUFFER_BYTES);
    r->buffer = NULL;
    r->begin = r->end = r->have = r->room = 0;
}

bool ck_frame_reader_between(const ck_frame_reader *r) { return !r->frame && r->begin == r->end; }

/* More memory for the frame that is assembled, never more than twice what has arrived of it. */
static ck_status grow_frame(ck_frame_reader *r, ck_error *err) {
    size_t room = r->room < r->frame->n / 2 ? r->room * 2 : r->frame->n;
    size_t alloc_bytes = HEAD_BYTES + room + CK_FRAME_PADDING;
    ck_frame *f = ck_realloc(r->mem, r->frame, r->frame->alloc_bytes, alloc_bytes);
    if (!f) return ck_nomem(err, r->mem, alloc_bytes);
    f->p = payload_of(f);
    f->alloc_bytes = alloc_bytes;
    r->frame = f, r->room = room;
    return CK_OK;
}

ck_status ck_frame_reader_space(ck_frame_reader *r, void **p, size_t *n, ck_error *err) {
    if (r->frame && r->begin == r->end && r->frame->n - r->have >= DIRECT_BYTES) {
        if (r->have == r->room) CK_TRY(grow_frame(r, err));
        *p = r->frame->p + r->have;
        *n = r->room - r->have;
        return CK_OK;
    }
    if (!r->buffer) {
        r->buffer = ck_alloc(r->mem, BUFFER_BYTES);
        if (!r->buffer) return ck_nomem(err, r->mem, BUFFER_BYTES);
    }
    if (r->begin > 0) memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
    r->end -= r->begin, r->begin = 0;
    CK_ASSERT(r->end < BUFFER_BYTES); /* next was called: less than a header is left */
    *p = r->buffer + r->end;
    *n = BUFFER_BYTES - r->end;
    return CK_OK;
}

void ck_frame_reader_filled(ck_frame_reader *r, size_t n) {
    bool direct = r->frame && r->begin == r->end && r->frame->n - r->have >= DIRECT_BYTES;
    if (direct) {
        CK_ASSERT(n <= r->room - r->have);
        r->have += n;
    } else {
        CK_ASSERT(r->buffer && n <= BUFFER_BYTES - r->end);
        r->end += n;
    }
}

static ck_status begin_frame(ck_frame_reader *r, ck_error *err) {
    ck_cursor c = ck_cursor_of(r->buffer + r->begin, r->end - r->begin);
    uint32_t length;
    uint8_t kind;
    if (!ck_cursor_u32be(&c, &length)) return CK_AGAIN;
    if (length == 0) return ck_fail(err, CK_CORRUPT, "a frame of length 0: the peer does not speak this protocol");
    if (length > r->length_max)
        return ck_fail(err, CK_FULL, "a frame of %u bytes, and %zu are allowed", length, r->length_max);
    if (!ck_cursor_u8(&c, &kind)) return CK_AGAIN;
    size_t n = length - 1, room = n < FIRST_ROOM_BYTES ? n : FIRST_ROOM_BYTES;
    r->frame = ck_frame_new(r->mem, kind, room);
    if (!r->frame) return ck_nomem(err, r->mem, room);
    r->frame->n = n;
    r->have = 0, r->room = room;
    r->begin += CK_FRAME_HEADER_BYTES;
    return CK_OK;
}

static ck_status fill_from_buffer(ck_frame_reader *r, ck_error *err) {
    while (r->begin < r->end && r->have < r->frame->n) {
        if (r->have == r->room) CK_TRY(grow_frame(r, err));
        size_t left = r->end - r->begin, room = r->room - r->have, n = left < room ? left : room;
        memcpy(r->frame->p + r->have, r->buffer + r->begin, n);
        r->begin += n, r->have += n;
    }
    return CK_OK;
}

ck_status ck_frame_reader_next(ck_frame_reader *r, ck_frame **out, ck_error *err) {
    *out = NULL;
    if (!r->frame) {
        if (r->begin == r->end) return CK_AGAIN;
        CK_TRY(begin_frame(r, err));
    }
    CK_TRY(fill_from_buffer(r, err));
    if (r->have < r->frame->n) return CK_AGAIN;
    memset(r->frame->p + r->frame->n, 0, CK_FRAME_PADDING);
    *out = r->frame;
    r->frame = NULL;
    r->have = r->room = 0;
    return CK_OK;
}
