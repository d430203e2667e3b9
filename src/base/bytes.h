/* A growing byte buffer with a ceiling given at init. Appends that would pass it return CK_FULL and change nothing. */
#ifndef CK_BASE_BYTES_H
#define CK_BASE_BYTES_H

#include "base/mem.h"
#include "base/view.h"

/* Owner frees with destroy. Zero is empty and may be destroyed. One thread at a time. */
typedef struct ck_bytes {
    ck_mem mem;
    char *p;
    size_t n;
    size_t capacity;
    size_t bytes_max;
} ck_bytes;

void ck_bytes_init(ck_bytes *b, ck_mem mem, size_t bytes_max);
void ck_bytes_destroy(ck_bytes *b);
/* Room for `add` more bytes, so that the next appends of that many in all cannot fail. */
CK_NODISCARD ck_status ck_bytes_reserve(ck_bytes *b, size_t add);
CK_NODISCARD ck_status ck_bytes_append(ck_bytes *b, const void *p, size_t n);
CK_NODISCARD ck_status ck_bytes_view(ck_bytes *b, ck_view v);
CK_NODISCARD ck_status ck_bytes_str(ck_bytes *b, const char *z);
CK_NODISCARD ck_status ck_bytes_char(ck_bytes *b, char c);
/* Wants room for a NUL that it does not count, as does ck_bytes_terminate. */
CK_NODISCARD ck_status ck_bytes_printf(ck_bytes *b, const char *fmt, ...) CK_PRINTF(2, 3);
CK_NODISCARD ck_status ck_bytes_u16le(ck_bytes *b, uint16_t v);
CK_NODISCARD ck_status ck_bytes_u32le(ck_bytes *b, uint32_t v);
CK_NODISCARD ck_status ck_bytes_u64le(ck_bytes *b, uint64_t v);
CK_NODISCARD ck_status ck_bytes_u16be(ck_bytes *b, uint16_t v);
CK_NODISCARD ck_status ck_bytes_u32be(ck_bytes *b, uint32_t v);
CK_NODISCARD ck_status ck_bytes_u64be(ck_bytes *b, uint64_t v);
/* A NUL behind the content (not counted), for C strings. */
CK_NODISCARD ck_status ck_bytes_terminate(ck_bytes *b);
static inline void ck_bytes_clear(ck_bytes *b) { b->n = 0; }
static inline ck_view ck_bytes_as_view(const ck_bytes *b) { return (ck_view){b->p, b->n}; }

#endif
