/* See bytes.h. */
#include "base/bytes.h"

#include <stdio.h>

void ck_bytes_init(ck_bytes *b, ck_mem mem, size_t bytes_max) { *b = (ck_bytes){.mem = mem, .bytes_max = bytes_max}; }

void ck_bytes_destroy(ck_bytes *b) {
    ck_free(b->mem, b->p, b->capacity);
    b->p = NULL;
    b->n = b->capacity = 0;
}

ck_status ck_bytes_reserve(ck_bytes *b, size_t add) {
    if (add <= b->capacity - b->n) return CK_OK;
    if (b->n > b->bytes_max || add > b->bytes_max - b->n) return CK_FULL;
    size_t want = b->capacity < 64 ? 64 : b->capacity + b->capacity / 2;
    if (want < b->n + add) want = b->n + add;
    if (want > b->bytes_max) want = b->bytes_max;
    char *p = ck_realloc(b->mem, b->p, b->capacity, want);
    if (!p) return CK_NOMEM;
    b->p = p;
    b->capacity = want;
    return CK_OK;
}

ck_status ck_bytes_append(ck_bytes *b, const void *p, size_t n) {
    CK_TRY(ck_bytes_reserve(b, n));
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
    return CK_OK;
}

ck_status ck_bytes_view(ck_bytes *b, ck_view v) { return ck_bytes_append(b, v.p, v.n); }
ck_status ck_bytes_str(ck_bytes *b, const char *z) { return ck_bytes_append(b, z, strlen(z)); }
ck_status ck_bytes_char(ck_bytes *b, char c) { return ck_bytes_append(b, &c, 1); }

ck_status ck_bytes_printf(ck_bytes *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ck_status s = n < 0 ? CK_INVALID : ck_bytes_reserve(b, (size_t)n + 1); /* vsnprintf writes a NUL too */
    if (s == CK_OK) {
        vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    return s;
}

static ck_status append_le(ck_bytes *b, uint64_t v, size_t n) {
    CK_TRY(ck_bytes_reserve(b, n));
    for (size_t i = 0; i < n; i++) b->p[b->n + i] = (char)(unsigned char)(v >> (8 * i));
    b->n += n;
    return CK_OK;
}
static ck_status append_be(ck_bytes *b, uint64_t v, size_t n) {
    CK_TRY(ck_bytes_reserve(b, n));
    for (size_t i = 0; i < n; i++) b->p[b->n + i] = (char)(unsigned char)(v >> (8 * (n - 1 - i)));
    b->n += n;
    return CK_OK;
}
ck_status ck_bytes_u16le(ck_bytes *b, uint16_t v) { return append_le(b, v, 2); }
ck_status ck_bytes_u32le(ck_bytes *b, uint32_t v) { return append_le(b, v, 4); }
ck_status ck_bytes_u64le(ck_bytes *b, uint64_t v) { return append_le(b, v, 8); }
ck_status ck_bytes_u16be(ck_bytes *b, uint16_t v) { return append_be(b, v, 2); }
ck_status ck_bytes_u32be(ck_bytes *b, uint32_t v) { return append_be(b, v, 4); }
ck_status ck_bytes_u64be(ck_bytes *b, uint64_t v) { return append_be(b, v, 8); }

ck_status ck_bytes_terminate(ck_bytes *b) {
    CK_TRY(ck_bytes_reserve(b, 1));
    b->p[b->n] = 0;
    return CK_OK;
}
