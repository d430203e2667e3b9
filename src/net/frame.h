/* Frames: [u32 BE length][u8 kind][payload], the length counting kind and payload. The same for control and data; what
 * a kind means is its user's matter. A longer frame than the reader's ceiling is refused before anything is allocated
 * for it, and memory grows with what has arrived, never with what was announced. */
#ifndef CK_NET_FRAME_H
#define CK_NET_FRAME_H

#include "base/limits.h"
#include "base/mem.h"

enum {
    CK_FRAME_HEADER_BYTES = 5,
    CK_FRAME_CONTROL_BYTES_MAX = 16 << 20, /* ceilings for the length field; data: CK_FRAME_BYTES_MAX */
    CK_FRAME_PADDING = 64,                 /* zero bytes readable behind every payload made or read here */
};

/* One frame, whole. One owner at a time, who frees it or hands it on; thread: the owner's. */
typedef struct ck_frame ck_frame;
struct ck_frame {
    ck_frame *next; /* for the owner's lists */
    uint8_t kind;
    uint8_t header[CK_FRAME_HEADER_BYTES]; /* the connection's */
    uint8_t *p;                            /* payload, 16-aligned */
    size_t n;
    ck_mem mem;
    size_t alloc_bytes;
};

/* A frame with room for n payload bytes, uninitialised, padding zeroed. NULL without memory. */
ck_frame *ck_frame_new(ck_mem mem, uint8_t kind, size_t n);
void ck_frame_free(ck_frame **f); /* sets NULL; NULL is fine */
/* The header for kind and n payload bytes; n must be under the ceiling of 2^32 - 2. */
void ck_frame_header(uint8_t out[CK_FRAME_HEADER_BYTES], uint8_t kind, size_t n);

/* Cuts a stream of bytes into frames. Small frames share one buffer of 64 KiB, long ones are read straight into their
 * own memory. Zero may be destroyed. One thread at a time. */
typedef struct ck_frame_reader {
    ck_mem mem;
    size_t length_max; /* of the length field */
    uint8_t *buffer;   /* begin..end: arrived, not yet cut */
    size_t begin, end;
    ck_frame *frame; /* being assembled: header seen, `have` payload bytes of its n there, room for `room` */
    size_t have, room;
} ck_frame_reader;

void ck_frame_reader_init(ck_frame_reader *r, ck_mem mem, size_t length_max);
void ck_frame_reader_destroy(ck_frame_reader *r);
/* Where the next bytes of the stream go: *n >= 1 bytes at *p. Call next until CK_AGAIN before. */
CK_NODISCARD ck_status ck_frame_reader_space(ck_frame_reader *r, void **p, size_t *n, ck_error *err);
void ck_frame_reader_filled(ck_frame_reader *r, size_t n); /* n bytes were put there */
/* The next whole frame, the caller's. CK_AGAIN: more bytes are needed. CK_CORRUPT: a length of 0. CK_FULL: longer than
 * the ceiling. CK_NOMEM. After any of the last three the stream cannot be read on. */
CK_NODISCARD ck_status ck_frame_reader_next(ck_frame_reader *r, ck_frame **out, ck_error *err);
bool ck_frame_reader_between(const ck_frame_reader *r); /* no frame has begun: a fine place for the stream to end */

#endif
