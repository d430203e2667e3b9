/* Two hashes with two jobs. FNV-1a 64 is the public one: key groups and operator ids, fixed by the formats. The mixing
 * hashes index in-memory tables and partition work; they are seeded, fast, and never leave the process. */
#ifndef CK_BASE_HASH_H
#define CK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CK_FNV_OFFSET 0xcbf29ce484222325ULL
#define CK_FNV_PRIME  0x100000001b3ULL

static inline uint64_t ck_fnv1a_more(uint64_t h, const void *p, size_t n) {
    const uint8_t *b = (const uint8_t *)p;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * CK_FNV_PRIME;
    return h;
}
static inline uint64_t ck_fnv1a(const void *p, size_t n) { return ck_fnv1a_more(CK_FNV_OFFSET, p, n); }

/* Full-avalanche mix of one word (murmur3 finaliser constants) and the combination of two. */
static inline uint64_t ck_mix64(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}
static inline uint64_t ck_hash_u64(uint64_t seed, uint64_t x) { return ck_mix64(x ^ seed); }
static inline uint64_t ck_hash_combine(uint64_t a, uint64_t b) { return ck_mix64(a * 0x9E3779B97F4A7C15ULL + b); }
/* xxh3 with a seed. */
uint64_t ck_hash_bytes(uint64_t seed, const void *p, size_t n);

#endif
