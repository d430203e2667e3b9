/* See utf8.h. The vector form judges every byte by the one before it: three tables, indexed by the high and low nibble
 * of the earlier byte and the high nibble of the later, give the sets of faults that each nibble permits; a fault is
 * real when all three permit it. What needs more than a pair - the second and third continuation of long characters -
 * is compared with where continuations stand. */
#include "format/utf8.h"

#include "format/swar_int.h"

/* Length of the character at p, 0 when it is none. The common shapes first. */
static inline size_t character(const uint8_t *p, size_t n) {
    uint8_t a = p[0];
    if (a < 0x80) return 1;
    if (a < 0xC2) return 0;
    if (n < 2 || (p[1] & 0xC0) != 0x80) return 0;
    if (a < 0xE0) return 2;
    if (n < 3 || (p[2] & 0xC0) != 0x80) return 0;
    if (a < 0xF0) {
        if (a == 0xE0 && p[1] < 0xA0) return 0;  /* longer than needed */
        if (a == 0xED && p[1] >= 0xA0) return 0; /* surrogate */
        return 3;
    }
    if (n < 4 || (p[3] & 0xC0) != 0x80) return 0;
    if (a == 0xF0 && p[1] < 0x90) return 0;
    if (a > 0xF4 || (a == 0xF4 && p[1] >= 0x90)) return 0;
    return 4;
}

size_t ck_utf8_valid_prefix(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        while (n - i >= 8 && !(ck_load64(p + i) & CK_SWAR_HIGH)) i += 8;
        if (i == n) break;
        size_t c = character(p + i, n - i);
        if (c == 0) break;
        i += c;
    }
    return i;
}

bool ck_utf8_valid_scalar(const uint8_t *p, size_t n) { return ck_utf8_valid_prefix(p, n) == n; }

size_t ck_utf8_length(const uint8_t *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += (p[i] & 0xC0) != 0x80;
    return count;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Faults of a pair (earlier byte, later byte), one bit each. */
enum {
    SHORT = 1 << 0,     /* lead, then no continuation */
    LONG = 1 << 1,      /* ASCII, then a continuation */
    OVER2 = 1 << 2,     /* C0 or C1: two bytes for one */
    OVER3 = 1 << 3,     /* E0 8x, E0 9x */
    SURROGATE = 1 << 4, /* ED Ax, ED Bx */
    LARGE = 1 << 5,     /* F4 9x and up, F5..FF with 9x, Ax, Bx */
    EDGE4 = 1 << 6,     /* F0 8x is longer than needed; F5..FF 8x is too large */
    TWO = 1 << 7,       /* continuation after continuation: right only inside three and four bytes */
    ANY = SHORT | LONG | TWO
};

/* sc: faults permitted by the pair; where the second or third byte of a longer character stands, exactly TWO is right.
 */
AVX2 static inline __m256i pair_faults(__m256i x, __m256i prev1) {
    const __m256i earlier_high =
        _mm256_setr_epi8(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, (char)TWO, (char)TWO, (char)TWO, (char)TWO,
                         SHORT | OVER2, SHORT, SHORT | OVER3 | SURROGATE, SHORT | LARGE | EDGE4, LONG, LONG, LONG, LONG,
                         LONG, LONG, LONG, LONG, (char)TWO, (char)TWO, (char)TWO, (char)TWO, SHORT | OVER2, SHORT,
                         SHORT | OVER3 | SURROGATE, SHORT | LARGE | EDGE4);
    const char low0 = (char)(ANY | OVER3 | OVER2 | EDGE4), low1 = (char)(ANY | OVER2), low4 = (char)(ANY | LARGE),
               low5 = (char)(ANY | LARGE | EDGE4), lowd = (char)(ANY | LARGE | EDGE4 | SURROGATE), any = (char)ANY;
    const __m256i earlier_low =
        _mm256_setr_epi8(low0, low1, any, any, low4, low5, low5, low5, low5, low5, low5, low5, low5, lowd, low5, low5,
                         low0, low1, any, any, low4, low5, low5, low5, low5, low5, low5, low5, low5, lowd, low5, low5);
    const char c8 = (char)(LONG | OVER2 | TWO | OVER3 | EDGE4), c9 = (char)(LONG | OVER2 | TWO | OVER3 | LARGE),
               cab = (char)(LONG | OVER2 | TWO | SURROGATE | LARGE);
    const __m256i later_high = _mm256_setr_epi8(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, c8, c9, cab,
                                                cab, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
                                                SHORT, SHORT, SHORT, c8, c9, cab, cab, SHORT, SHORT, SHORT, SHORT);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i a = _mm256_shuffle_epi8(earlier_high, _mm256_and_si256(_mm256_srli_epi16(prev1, 4), nibble));
    __m256i b = _mm256_shuffle_epi8(earlier_low, _mm256_and_si256(prev1, nibble));
    __m256i c = _mm256_shuffle_epi8(later_high, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
    return _mm256_and_si256(_mm256_and_si256(a, b), c);
}

/* Bytes of x shifted up by k, the last k of `before` coming in. */
#define SHIFTED(x, before, k) _mm256_alignr_epi8(x, _mm256_permute2x128_si256(before, x, 0x21), 16 - (k))

AVX2 static inline __m256i faults(__m256i x, __m256i before) {
    __m256i sc = pair_faults(x, SHIFTED(x, before, 1));
    __m256i third = _mm256_subs_epu8(SHIFTED(x, before, 2), _mm256_set1_epi8((char)(0xE0 - 0x80)));
    __m256i fourth = _mm256_subs_epu8(SHIFTED(x, before, 3), _mm256_set1_epi8((char)(0xF0 - 0x80)));
    __m256i inside = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(inside, sc);
}

AVX2 bool ck_utf8_valid_avx2(const uint8_t *p, size_t n) {
    __m256i before = _mm256_setzero_si256(), bad = before;
    bool open = false; /* before may end inside a character */
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        if (_mm256_movemask_epi8(x) == 0 && !open) {
            before = x;
            continue;
        }
        bad = _mm256_or_si256(bad, faults(x, before));
        before = x;
        open = p[i + 31] >= 0xC0 || p[i + 30] >= 0xE0 || p[i + 29] >= 0xF0;
    }
    if (i < n || open) { /* zeros behind the end make an unfinished character a fault */
        uint8_t tail[32] = {0};
        for (size_t k = 0; k < n - i; k++) tail[k] = p[i + k];
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)tail);
        bad = _mm256_or_si256(bad, faults(x, before));
        if (n - i > 29) bad = _mm256_or_si256(bad, faults(_mm256_setzero_si256(), x));
    }
    return _mm256_testz_si256(bad, bad) != 0;
}
#else
bool ck_utf8_valid_avx2(const uint8_t *p, size_t n) { return ck_utf8_valid_scalar(p, n); }
#endif

ck_utf8_fn ck_utf8_valid_for(ck_cpu cpu) {
#if defined(__x86_64__)
    if (cpu.avx2) return ck_utf8_valid_avx2;
#endif
    (void)cpu;
    return ck_utf8_valid_scalar;
}
