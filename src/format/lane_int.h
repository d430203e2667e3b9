/* What the fast ways of both formats share, compiled once per instruction set: the includer defines CK_SIMD (0: plain
 * registers, 1: AVX2), CK_TARGET (the function attribute) and CK_NAME(x). All of it reads up to 64 bytes from p on. */
#ifndef CK_FORMAT_LANE_INT_H
#define CK_FORMAT_LANE_INT_H

#include "data/column.h"
#include "format/swar_int.h"

#ifndef CK_NAME /* so that the header compiles alone */
#define CK_SIMD 0
#define CK_TARGET
#define CK_NAME(x) x##_alone
#endif

#if CK_SIMD
#include <immintrin.h>

CK_TARGET static inline __m256i CK_NAME(load)(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
#endif

/* How many digits stand at p, any number. */
CK_TARGET static inline size_t CK_NAME(count_digits)(const uint8_t *p) {
    for (size_t n = 0;; n += 16) {
#if CK_SIMD
        __m128i x = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + n)), _mm_set1_epi8('0'));
        __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(9)), x);
        unsigned k = (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(digit));
        if (CK_LIKELY(k < 16)) return n + k;
#else
        uint64_t stop = ck_swar_no_digit(ck_load64(p + n));
        if (CK_LIKELY(stop)) return n + ck_swar_index(stop);
        stop = ck_swar_no_digit(ck_load64(p + n + 8));
        if (CK_LIKELY(stop)) return n + 8 + ck_swar_index(stop);
#endif
    }
}

/* The digits at p: their number (16: that many or more) and the value of so many. */
CK_TARGET static inline unsigned CK_NAME(digits)(const uint8_t *p, uint64_t *value) {
#if CK_SIMD
    static const uint8_t align[32] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,    2,    3,    4,    5,
                                      6,    7,    8,    9,    10,   11,   12,   13,   14,   15};
    __m128i x = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8('0'));
    __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(9)), x);
    unsigned n = (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(digit));
    /* to the right end, zeros in front; then pairs, fours and eights */
    x = _mm_shuffle_epi8(x, _mm_loadu_si128((const __m128i *)(const void *)(align + n)));
    x = _mm_maddubs_epi16(x, _mm_set_epi8(1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10));
    x = _mm_madd_epi16(x, _mm_set_epi16(1, 100, 1, 100, 1, 100, 1, 100));
    x = _mm_packus_epi32(x, x);
    x = _mm_madd_epi16(x, _mm_set_epi16(1, 10000, 1, 10000, 1, 10000, 1, 10000));
    uint64_t halves = (uint64_t)_mm_cvtsi128_si64(x);
    *value = (halves & 0xFFFFFFFF) * 100000000 + (halves >> 32);
    return n;
#else
    uint64_t x = ck_load64(p), stop = ck_swar_no_digit(x);
    unsigned n = stop ? ck_swar_index(stop) : 8;
    *value = n ? ck_swar_number(x, n) : 0;
    if (n < 8) return n;
    x = ck_load64(p + 8);
    stop = ck_swar_no_digit(x);
    unsigned more = stop ? ck_swar_index(stop) : 8;
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    if (more) *value = *value * power[more] + ck_swar_number(x, more);
    return 8 + more;
#endif
}

/* The same for digits of which there are 16 or more, whose first 16 have this value: up to 19; 0: there are more. */
CK_TARGET static inline unsigned CK_NAME(more_digits)(const uint8_t *p, uint64_t *value) {
    static const uint64_t power[] = {1, 10, 100, 1000};
    uint64_t x = ck_load64(p + 16), stop = ck_swar_no_digit(x);
    unsigned more = stop ? ck_swar_index(stop) : 8;
    if (more > 3) return 0;
    if (more) *value = *value * power[more] + ck_swar_number(x, more);
    return 16 + more;
}

/* The view of a string at p; offset: of p in the heap `buffer`. */
CK_TARGET static inline void CK_NAME(put_view)(ck_strview *to, const uint8_t *p, size_t n, uint32_t buffer,
                                               size_t offset) {
    if (n <= CK_STRVIEW_INLINE) {
        uint64_t a = ck_load64(p);
        uint32_t b = ck_load32(p + 8);
        /* bytes behind the string go: shifts by 0 to 63 only */
        uint64_t low = n >= 8 ? ~0ULL : ~(~0ULL << (8 * n)), high = n <= 8 ? 0 : ~(~0ULL << (8 * (n - 8)));
        a &= low;
        b &= (uint32_t)high;
        to->length = (int32_t)n;
        memcpy(to->inlined, &a, 8);
        memcpy(to->inlined + 8, &b, 4);
    } else {
        *to = ck_strview_ref((const char *)p, n, buffer, (uint32_t)offset);
    }
}

#endif
