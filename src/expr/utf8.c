/* See utf8.h. Whole words first: most text is ASCII. */
#include "expr/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define HIGH_BITS 0x8080808080808080ULL
#define LOW_BITS  0x0101010101010101ULL

static inline uint64_t word_at(const char *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

/* Bytes that do not start a character: the top bit set and the next one clear; summed up by a multiplication. */
static inline size_t continuations(uint64_t w) { return (size_t)(((w >> 7 & ~(w >> 6)) & LOW_BITS) * LOW_BITS >> 56); }

#if defined(__SSE2__)
static inline __m128i block_at(const char *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }

bool ck_utf8_is_ascii(ck_view v) {
    __m128i high = _mm_setzero_si128();
    uint64_t rest = 0;
    size_t i = 0;
    for (; i + 16 <= v.n; i += 16) high = _mm_or_si128(high, block_at(v.p + i));
    if (i + 8 <= v.n) rest |= word_at(v.p + i), i += 8;
    for (; i < v.n; i++) rest |= (uint64_t)(unsigned char)v.p[i];
    return !_mm_movemask_epi8(high) && !(rest & HIGH_BITS);
}

/* Continuation bytes are -128 to -65 as signed numbers. */
size_t ck_utf8_count(ck_view v) {
    const __m128i least = _mm_set1_epi8(-64), zero = _mm_setzero_si128();
    __m128i sums = zero;
    size_t i = 0, rest = 0;
    for (; i + 16 <= v.n; i += 16) {
        __m128i ones = _mm_sub_epi8(zero, _mm_cmplt_epi8(block_at(v.p + i), least));
        sums = _mm_add_epi64(sums, _mm_sad_epu8(ones, zero));
    }
    if (i + 8 <= v.n) rest += continuations(word_at(v.p + i)), i += 8;
    for (; i < v.n; i++) rest += !ck_utf8_starts(v.p[i]);
    rest += (size_t)_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
    return v.n - rest;
}
#else
bool ck_utf8_is_ascii(ck_view v) {
    uint64_t high = 0;
    size_t i = 0;
    for (; i + 8 <= v.n; i += 8) high |= word_at(v.p + i);
    for (; i < v.n; i++) high |= (uint64_t)(unsigned char)v.p[i];
    return (high & HIGH_BITS) == 0;
}

size_t ck_utf8_count(ck_view v) {
    size_t i = 0, rest = 0;
    for (; i + 8 <= v.n; i += 8) rest += continuations(word_at(v.p + i));
    for (; i < v.n; i++) rest += !ck_utf8_starts(v.p[i]);
    return v.n - rest;
}
#endif

size_t ck_utf8_prefix(ck_view v, size_t chars) {
    size_t i = 0;
    while (i + 8 <= v.n) {
        size_t starts = 8 - continuations(word_at(v.p + i));
        if (starts > chars) break; /* the character wanted ends in this word */
        chars -= starts;
        i += 8;
    }
    for (; i < v.n; i++) {
        if (!ck_utf8_starts(v.p[i])) continue;
        if (chars == 0) break;
        chars--;
    }
    return i;
}

uint32_t ck_utf8_decode(const char *p, size_t n, size_t *bytes) {
    const unsigned char *b = (const unsigned char *)p;
    size_t len = b[0] < 0x80 ? 1 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    if (len > n) len = n;
    *bytes = len;
    switch (len) {
    case 1: return b[0];
    case 2: return (uint32_t)(b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    case 3: return (uint32_t)(b[0] & 0x0F) << 12 | (uint32_t)(b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    default:
        return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3F) << 12 | (uint32_t)(b[2] & 0x3F) << 6 |
               (b[3] & 0x3F);
    }
}

size_t ck_utf8_encode(uint32_t c, char p[4]) {
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (char)(0xC0 | c >> 6), p[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c >= 0xD800 && c < 0xE000) return 0;
    if (c < 0x10000) {
        p[0] = (char)(0xE0 | c >> 12), p[1] = (char)(0x80 | (c >> 6 & 0x3F)), p[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    if (c > 0x10FFFF) return 0;
    p[0] = (char)(0xF0 | c >> 18), p[1] = (char)(0x80 | (c >> 12 & 0x3F)), p[2] = (char)(0x80 | (c >> 6 & 0x3F)),
    p[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

static size_t sequence_length(unsigned char b) {
    if (b < 0x80) return 1;
    if (b >= 0xC2 && b < 0xE0) return 2;
    if (b >= 0xE0 && b < 0xF0) return 3;
    return b >= 0xF0 && b < 0xF5 ? 4 : 0;
}

bool ck_utf8_valid(ck_view v) {
    for (size_t i = 0; i < v.n;) {
        if (i + 8 <= v.n && !(word_at(v.p + i) & HIGH_BITS)) {
            i += 8;
            continue;
        }
        size_t len = sequence_length((unsigned char)v.p[i]), got;
        if (len == 0 || len > v.n - i) return false;
        for (size_t k = 1; k < len; k++)
            if (ck_utf8_starts(v.p[i + k])) return false;
        uint32_t c = ck_utf8_decode(v.p + i, len, &got);
        if ((len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10FFFF)) || (c >= 0xD800 && c < 0xE000))
            return false;
        i += len;
    }
    return true;
}
