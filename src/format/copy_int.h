/* Copying text while looking for the few bytes that need more than copying: sixteen bytes a step in what every x86-64
 * has, eight elsewhere. Nothing outside the text is read; up to CK_COPY_SLACK bytes behind the copy are written. */
#ifndef CK_FORMAT_COPY_INT_H
#define CK_FORMAT_COPY_INT_H

#include "format/swar_int.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { CK_COPY_SLACK = 16 };

/* Which bytes stop a copy: three of them, and all below `low`. */
typedef struct ck_stops {
    char a, b, c;
    uint8_t low; /* at most 0x80 */
} ck_stops;

/* Copies 8 bytes; how many stand before the first stop. */
static inline unsigned ck_copy_8(char *out, const char *p, ck_stops s) {
    uint64_t x = ck_load64(p);
    memcpy(out, &x, 8);
    uint64_t m = ck_swar_eq(x, (uint8_t)s.a) | ck_swar_eq(x, (uint8_t)s.b) | ck_swar_eq(x, (uint8_t)s.c) |
                 ck_swar_below(x, s.low);
    return m ? ck_swar_index(m) : 8;
}

static inline unsigned ck_copy_16(char *out, const char *p, ck_stops s) {
#if defined(__SSE2__)
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    _mm_storeu_si128((__m128i *)(void *)out, x);
    __m128i low = _mm_set1_epi8((char)(s.low - 1));
    __m128i m = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(s.a)), _mm_cmpeq_epi8(x, _mm_set1_epi8(s.b)));
    m = _mm_or_si128(m, _mm_cmpeq_epi8(x, _mm_set1_epi8(s.c)));
    m = _mm_or_si128(m, _mm_cmpeq_epi8(_mm_min_epu8(x, low), x));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(m) | 0x10000);
#else
    unsigned n = ck_copy_8(out, p, s);
    return n < 8 ? n : 8 + ck_copy_8(out + 8, p + 8, s);
#endif
}

/* Copies p[0, n) up to the first stop; how many bytes. */
static inline size_t ck_copy_until(char *out, const char *p, size_t n, ck_stops s) {
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        unsigned k = ck_copy_16(out + i, p + i, s);
        if (k < 16) return i + k;
    }
    if (n - i >= 8) {
        unsigned k = ck_copy_8(out + i, p + i, s);
        if (k < 8) return i + k;
        i += 8;
    }
    if (i == n) return n;
    if (n >= 8) { /* the last eight, some of them once more */
        unsigned k = ck_copy_8(out + n - 8, p + n - 8, s);
        return n - 8 + k;
    }
    for (; i < n; i++) {
        char c = p[i];
        if (c == s.a || c == s.b || c == s.c || (uint8_t)c < s.low) return i;
        out[i] = c;
    }
    return n;
}

#endif
