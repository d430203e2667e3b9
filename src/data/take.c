/* See take_int.h. AVX2 gathers four words or the words of eight bits at once. */
#include "data/take_int.h"

#include "data/column.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void words_base(uint64_t *restrict to, const uint64_t *restrict from, const uint16_t *rows, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = from[rows[i]];
}

static uint64_t bits_base(const uint64_t *from, const uint16_t *rows, size_t n) {
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) bits |= (uint64_t)ck_bit_get(from, rows[i]) << i;
    return bits;
}

const ck_take ck_take_base = {words_base, bits_base};

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

AVX2 static void words_avx2(uint64_t *restrict to, const uint64_t *restrict from, const uint16_t *rows, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m128i at = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(rows + i)));
        __m256i v = _mm256_i32gather_epi64((const long long *)(const void *)from, at, 8);
        _mm256_storeu_si256((__m256i *)(void *)(to + i), v);
    }
    for (; i < n; i++) to[i] = from[rows[i]];
}

/* Each row's half word is shifted until its bit is the sign. */
AVX2 static uint64_t bits_avx2(const uint64_t *from, const uint16_t *rows, size_t n) {
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i at = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(rows + i)));
        __m256i halves = _mm256_i32gather_epi32((const int *)(const void *)from, _mm256_srli_epi32(at, 5), 4);
        __m256i signs = _mm256_sllv_epi32(halves, _mm256_andnot_si256(at, _mm256_set1_epi32(31)));
        bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(signs)) << i;
    }
    for (; i < n; i++) bits |= (uint64_t)ck_bit_get(from, rows[i]) << i;
    return bits;
}

static const ck_take take_avx2 = {words_avx2, bits_avx2};
#endif

const ck_take *ck_take_for(ck_cpu cpu) {
#if defined(__x86_64__)
    if (cpu.avx2) return &take_avx2;
#endif
    (void)cpu;
    return &ck_take_base;
}
