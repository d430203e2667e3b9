/* The hash index of a table: from a key's hash to 32-bit references of rows. It knows neither keys nor rows.
 *
 * Extendible: a directory over bits of the hash points to segments, each a run of 64-byte buckets of nine entries
 * (8-bit tag, 16 kept bits of the hash, 32-bit reference) found by further bits and probed linearly. A segment of 128
 * buckets, a block of the store's pages, splits in two when it is 7/8 full; the only segment of a small index grows by
 * halves up to that. So no index ever doubles as a whole, and one insertion moves at most a thousand entries.
 *
 * Equal shares of the hashes would fill all segments at the same time, and half of everything would be empty after they
 * split. So the directory's first three bits are not the hash's: they divide the hashes into eight classes whose shares
 * grow by an eighth root of two, of which one doubles with each ninth more entries: an index is 0.6 to 0.66 full at any
 * size. At the directory's maximum depth segments grow on: entries of equal hashes then chain through the buckets
 * behind their own.
 *
 * The kept bits say how far an entry stands from where it belongs, and the next bits the directory will look at. They
 * are read when a segment splits, which so needs no row but of entries that are far off, except at two depths, when the
 * bits have been used up and the segment's rows are hashed again. In a small index they say where an entry belongs.
 * To a search they are a longer tag: a row whose key is not the wanted one is read in few searches of a thousand.
 *
 * A bucket counts the entries that passed it on their way from home (saturating, then sticky), so that a search for
 * what is not there ends early and erasing needs no markers.
 *
 * Thread: the owner. Marks do not see it: it is rebuilt on restore. */
#ifndef CK_STATE_INDEX_INT_H
#define CK_STATE_INDEX_INT_H

#include "state/pages_int.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { CK_BUCKET_ENTRIES = 9, CK_SEGMENT_BUCKETS = 128, CK_INDEX_DEPTH_MAX = 22 };
enum { CK_HOME_BITS = 7, CK_WAY_FAR = 7, CK_KEPT_SPLITS = 13 }; /* 3 bits of the way and 13 of the directory are kept */

typedef struct ck_bucket {
    uint8_t tag[CK_BUCKET_ENTRIES]; /* 0 = free */
    uint8_t passed;
    uint16_t kept[CK_BUCKET_ENTRIES];
    uint32_t ref[CK_BUCKET_ENTRIES];
} ck_bucket;
_Static_assert(sizeof(ck_bucket) == 64, "a bucket is a cache line");

typedef struct ck_segment {
    ck_bucket *buckets;
    uint32_t bucket_count;
    uint32_t raw_shift; /* of the only segment of a small index: where its memory begins */
    uint32_t depth;     /* local */
    uint32_t entries;
} ck_segment;

typedef struct ck_index_slot {
    ck_bucket *buckets;
    uint32_t bucket_count;
    uint32_t segment : 27; /* number */
    uint32_t depth : 5;    /* the segment's */
} ck_index_slot;

/* Hashes of the keys of rows that are in the index: for moving entries. */
typedef void (*ck_index_hash_fn)(void *arg, const uint32_t *refs, uint32_t n, uint64_t *hashes);

typedef struct ck_index {
    ck_page_pool *pool;
    ck_mem mem;
    ck_index_hash_fn hash_fn;
    void *arg;
    ck_index_slot *slots; /* 2^depth */
    uint32_t depth;
    ck_segment *segments;
    uint32_t segment_count, segment_capacity;
    uint64_t entries;
    size_t bytes;
} ck_index;

extern const uint8_t ck_index_class[256]; /* of a hash's first byte */

CK_NODISCARD ck_status ck_index_init(ck_index *ix, ck_page_pool *pool, ck_mem mem, ck_index_hash_fn hash_fn, void *arg);
void ck_index_destroy(ck_index *ix); /* safe on zero and twice */
/* One segment that does not come from the pool. */
static inline bool ck_index_is_small(const ck_index *ix) {
    return ix->segment_count == 1 && ix->segments[0].bucket_count < CK_SEGMENT_BUCKETS;
}
void ck_index_clear(ck_index *ix); /* of a small one; what it has grown to stays */
/* The entry must not be there. CK_NOMEM changes nothing. */
CK_NODISCARD ck_status ck_index_insert(ck_index *ix, uint64_t hash, uint32_t ref);
/* The entry must be there. */
void ck_index_erase(ck_index *ix, uint64_t hash, uint32_t ref);
/* The entry of `hash`, which must be there, leads to another row of the same key from now on. */
void ck_index_replace(ck_index *ix, uint64_t hash, uint32_t ref, uint32_t by);

static inline uint8_t ck_index_tag(uint64_t hash) { return (uint8_t)((uint8_t)hash + ((uint8_t)hash == 0)); }
/* The bits the directory looks at, from the top: the class, then the hash's from its second byte on. */
static inline uint64_t ck_index_bits(uint64_t hash) {
    return (uint64_t)ck_index_class[hash >> 56] << 61 | hash << 8 >> 3;
}
static inline const ck_index_slot *ck_index_slot_of(const ck_index *ix, uint64_t hash) {
    return &ix->slots[(ck_index_bits(hash) >> 1) >> (63 - ix->depth)];
}
static inline uint32_t ck_index_home_bits(uint64_t hash) { return (uint32_t)(hash >> 10) & ((1u << CK_HOME_BITS) - 1); }
static inline uint32_t ck_index_home(uint64_t hash, uint32_t bucket_count) {
    return ck_index_home_bits(hash) * bucket_count >> CK_HOME_BITS;
}
/* Bit i set: entry i has this tag. */
static inline uint32_t ck_bucket_match(const ck_bucket *b, uint8_t tag) {
#if defined(__SSE2__)
    __m128i v = _mm_load_si128((const __m128i *)(const void *)b);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)tag))) & 0x1ffu;
#else
    uint32_t m = 0;
    for (uint32_t i = 0; i < CK_BUCKET_ENTRIES; i++) m |= (uint32_t)(b->tag[i] == tag) << i;
    return m;
#endif
}

/* Which kept bits of an entry tell a search that it is another hash's: mask 0 in small and shallow indexes, and at the
 * depths where some entries still keep the bits of a shallower segment. */
typedef struct ck_index_kept {
    uint32_t splits, mask;
} ck_index_kept;
static inline ck_index_kept ck_index_kept_of(uint64_t hash, uint32_t depth) {
    const uint32_t depths = ~0u << 4 & ~(1u << (3 + CK_KEPT_SPLITS)); /* below the class has a part in the bits */
    uint32_t from = depth < 3 + CK_KEPT_SPLITS ? 0 : CK_KEPT_SPLITS;
    return (ck_index_kept){(uint32_t)(hash << 8 << from >> (64 - CK_KEPT_SPLITS)),
                           (0 - (depths >> depth & 1)) & ((1u << CK_KEPT_SPLITS) - 1)};
}
static inline bool ck_index_may_be(const ck_bucket *b, uint32_t i, ck_index_kept k) {
    return ((b->kept[i] ^ k.splits) & k.mask) == 0;
}

/* A search: call next until it says false or the reference is the wanted one. */
typedef struct ck_index_probe {
    ck_index_kept kept;
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
    p.kept = ck_index_kept_of(hash, s->depth);
    return p;
}
static inline bool ck_index_probe_next(ck_index_probe *p, uint32_t *ref) {
    for (;;) {
        const ck_bucket *b = &p->buckets[p->at];
        while (p->mask) {
            uint32_t i = (uint32_t)__builtin_ctz(p->mask);
            p->mask &= p->mask - 1;
            *ref = b->ref[i];
            if (ck_index_may_be(b, i, p->kept)) return true;
        }
        if (b->passed == 0 || --p->left == 0) return false;
        p->at = p->at + 1 == p->bucket_count ? 0 : p->at + 1;
        p->mask = ck_bucket_match(&p->buckets[p->at], p->tag);
    }
}

#endif
