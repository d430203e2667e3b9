/* ck_key_fnv16 for x86-64 with AVX2: the same text, with vectors twice as long. */
#include "data/key_block_int.h"
#include "data/row_int.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif
void ck_key_fnv16_avx2(const ck_key_spec *k, const ck_batch *b, uint16_t *out);
#define FNV_KEYS     ck_key_fnv16_avx2
#define VECTOR_BYTES 32
#include "data/key_fnv16_impl.inc"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int ck_no_avx2_here;
#endif
