/* Finding where JSON strings end, compiled once per instruction set as lane_int.h says. */
#ifndef CK_FORMAT_JSON_SCAN_INT_H
#define CK_FORMAT_JSON_SCAN_INT_H

#include "format/lane_int.h"

#if CK_SIMD
/* A bit for each of 32 bytes that is a quote, a backslash, a control character or not ASCII: signed, the last two are
 * one comparison. */
CK_TARGET static inline uint32_t CK_NAME(special)(const uint8_t *p) {
    __m256i x = CK_NAME(load)(p);
    __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')), slash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
    __m256i odd = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), odd));
}
/* The same without the bytes over 0x7F. */
CK_TARGET static inline uint32_t CK_NAME(special_text)(const uint8_t *p) {
    __m256i x = CK_NAME(load)(p);
    __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')), slash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8(0x1F)), x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), control));
}
/* 64 bytes a step: where a string ends varies, and one step more of straight code is cheaper than a wrong guess. */
CK_TARGET static inline const uint8_t *CK_NAME(find_plain)(const uint8_t *p) {
    for (;; p += 64) {
        uint64_t m = CK_NAME(special)(p) | (uint64_t)CK_NAME(special)(p + 32) << 32;
        if (CK_LIKELY(m)) return p + __builtin_ctzll(m);
    }
}
CK_TARGET static const uint8_t *CK_NAME(text)(const uint8_t *p) {
    for (;; p += 32) {
        uint32_t m = CK_NAME(special_text)(p);
        if (m) return p + __builtin_ctz(m);
    }
}
#else
static inline const uint8_t *CK_NAME(find_plain)(const uint8_t *p) {
    for (;; p += 8) {
        uint64_t x = ck_load64(p);
        uint64_t m = (ck_swar_eq(x, '"') | ck_swar_eq(x, '\\') | ck_swar_below(x, 0x20) | x) & CK_SWAR_HIGH;
        if (m) return p + ck_swar_index(m);
    }
}
static const uint8_t *CK_NAME(text)(const uint8_t *p) {
    for (;; p += 8) {
        uint64_t x = ck_load64(p);
        uint64_t m = ck_swar_eq(x, '"') | ck_swar_eq(x, '\\') | ck_swar_below(x, 0x20);
        if (m) return p + ck_swar_index(m);
    }
}
#endif

#endif
