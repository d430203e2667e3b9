/* The hash index of a table: from a key's hash to 32-bit references of rows. It knows neither keys nor rows.
 *
 * Extendible: a directory over the top bits of the hash points to segments, each a run of 64-byte buckets of 12 entries
 * (8-bit tag, 32-bit reference) found by further bits and probed linearly. A segment that is 15/16 full
 * grows from 91 buckets to 128, from there it splits in two of 91, so that large indexes stay at least 2/3 full and
 * never double as a whole. At the directory's maximum depth segments grow on: entries of
 * equal hashes then chain through the buckets behind their own.
 *
 * Behind its buckets a segment keeps 16 more bits of each entry's hash: those that say where it belongs, and the next
 * few the directory will look at. They are read only when a segment grows or splits, which so needs no row, except
 * every CK_KEPT_SPLITS-th time, when the bits have been used up and every row is hashed again.
 *
 * A bucket counts the entries that passed it on their way from home (saturating, then sticky), so that a search for
 * what is not there ends early and erasing needs no markers.
 *
 * Thread: the owner. Marks do not see it: it is rebuilt on restore. */
#ifndef CK_STATE_INDEX_INT_H
#define CK_STATE_INDEX_INT_H

#include "base/mem.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { CK_BUCKET_ENTRIES = 12, CK_SEGMENT_BUCKETS = 128, CK_INDEX_DEPTH_MAX = 22 };
enum { CK_HOME_BITS = 10, CK_KEPT_SPLITS = 6 }; /* together the kept bits */

typedef struct ck_bucket {
    uint8_t tag[CK_BUCKET_ENTRIES]; /* 0 = free */
    uint8_t passed;
    uint8_t unused[3];
    uint32_t ref[CK_BUCKET_ENTRIES];
} ck_bucket;
_Static_assert(sizeof(ck_bucket) == 64, "a bucket is a cache line");

/* In front of its buckets, in one allocation aligned to 64; behind them, uint16_t[bucket_count * CK_BUCKET_ENTRIES] of
 * kept bits. */
typedef struct ck_segment {
    uint32_t bucket_count, id;
    uint32_t depth; /* local */
    uint32_t raw_shift;
    uint8_t unused[48];
} ck_segment;
_Static_assert(sizeof(ck_segment) == 64, "buckets stay aligned");

typedef struct ck_index_slot {
    ck_bucket *buckets;
    uint32_t bucket_count;
    uint32_t segment : 27;  /* id */
    uint32_t kept_from : 5; /* first depth the kept bits are of */
} ck_index_slot;

/* Hashes of the keys of rows that are in the index: for moving entries. */
typedef void (*ck_index_hash_fn)(void *arg, const uint32_t *refs, uint32_t n, uint64_t *hashes);

typedef struct ck_index {
    ck_mem mem;
    ck_index_hash_fn hash_fn;
    void *arg;
    ck_index_slot *slots; /* 2^depth */
    uint32_t depth;
    uint32_t *entries_of; /* by segment id: dense, so that inserting does not read the segment's head */
    uint32_t segment_count, segment_capacity;
    uint64_t entries;
    size_t bytes;
} ck_index;

CK_NODISCARD ck_status ck_index_init(ck_index *ix, ck_mem mem, ck_index_hash_fn hash_fn, void *arg);
void ck_index_destroy(ck_index *ix); /* safe on zero and twice */
/* The entry must not be there. CK_NOMEM changes nothing. */
CK_NODISCARD ck_status ck_index_insert(ck_index *ix, uint64_t hash, uint32_t ref);
/* The entry must be there. */
void ck_index_erase(ck_index *ix, uint64_t hash, uint32_t ref);
/* The entry of `hash`, which must be there, leads to another row of the same key from now on. */
void ck_index_replace(ck_index *ix, uint64_t hash, uint32_t ref, uint32_t by);

static inline uint16_t *ck_index_kept(ck_bucket *buckets, uint32_t bucket_count) {
    return (uint16_t *)(void *)(buckets + bucket_count);
}
static inline uint8_t ck_index_tag(uint64_t hash) { return (uint8_t)((uint8_t)hash + ((uint8_t)hash == 0)); }
static inline const ck_index_slot *ck_index_slot_of(const ck_index *ix, uint64_t hash) {
    return &ix->slots[(hash >> 1) >> (63 - ix->depth)];
}
static inline uint32_t ck_index_home_bits(uint64_t hash) { return (uint32_t)(hash >> 10) & ((1u << CK_HOME_BITS) - 1); }
static inline uint32_t ck_index_home(uint64_t hash, uint32_t bucket_count) {
    return ck_index_home_bits(hash) * bucket_count >> CK_HOME_BITS;
}
/* Bit i set: entry i has this tag. */
static inline uint32_t ck_bucket_match(const ck_bucket *b, uint8_t tag) {
#if defined(__SSE2__)
    __m128i v = _mm_load_si128((const __m128i *)(const void *)b->tag);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)tag))) & 0xfffu;
#else
    uint32_t m = 0;
    for (uint32_t i = 0; i < CK_BUCKET_ENTRIES; i++) m |= (uint32_t)(b->tag[i] == tag) << i;
    return m;
#endif
}

/* A search: call next until it says false or the reference is the wanted one. */
typedef struct ck_index_probe {
    const ck_bucket *buckets;
    uint32_t at, left, bucket_count;
    uint32_t mask; /* matches not yet given out of the bucket at `at` */
    uint8_t tag;
} ck_index_probe;

static inline ck_index_probe ck_index_probe_begin(const ck_index *ix, uint64_t hash) {
    const ck_index_slot *s = ck_index_slot_of(ix, hash);
    ck_index_probe p = {.buckets = s->buckets, .left = s->bucket_count, .bucket_count = s->bucket_count};
    p.tag = ck_index_tag(hash);
    p.at = ck_index_home(hash, s->bucket_count);
    p.mask = ck_bucket_match(&p.buckets[p.at], p.tag);
    return p;
}
static inline bool ck_index_probe_next(ck_index_probe *p, uint32_t *ref) {
    while (p->mask == 0) {
        if (p->buckets[p->at].passed == 0 || --p->left == 0) return false;
        p->at = p->at + 1 == p->bucket_count ? 0 : p->at + 1;
        p->mask = ck_bucket_match(&p->buckets[p->at], p->tag);
    }
    *ref = p->buckets[p->at].ref[__builtin_ctz(p->mask)];
    p->mask &= p->mask - 1;
    return true;
}

#endif
