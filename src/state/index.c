/* See index_int.h. */
#include "state/index_int.h"

#include <string.h>

enum { SPLIT_BUCKETS = 80, HASH_RUN = 256 };

static ck_segment *segment_of(ck_bucket *buckets) { return (ck_segment *)(void *)buckets - 1; }
static ck_bucket *buckets_of(ck_segment *s) { return (ck_bucket *)(void *)(s + 1); }
static uint32_t capacity_of(uint32_t bucket_count) {
    return bucket_count * CK_BUCKET_ENTRIES - bucket_count * CK_BUCKET_ENTRIES / 16 - 1;
}

/* 64 more than needed, so that the segment can begin at a cache line. */
static size_t raw_bytes(uint32_t bucket_count) {
    return sizeof(ck_segment) + (size_t)bucket_count * sizeof(ck_bucket) + 64;
}

static ck_segment *segment_new(ck_index *ix, uint32_t bucket_count, uint32_t depth) {
    size_t bytes = raw_bytes(bucket_count);
    uint8_t *raw = ck_alloc(ix->mem, bytes);
    if (!raw) return NULL;
    uint32_t shift = (uint32_t)((64 - ((uintptr_t)raw & 63)) & 63);
    ck_segment *s = (ck_segment *)(void *)(raw + shift);
    *s = (ck_segment){.bucket_count = bucket_count, .depth = depth, .raw_shift = shift};
    ck_bucket *b = buckets_of(s);
    for (uint32_t i = 0; i < bucket_count; i++) memset(&b[i], 0, 16);
    ix->bytes += bytes;
    return s;
}

static void segment_free(ck_index *ix, ck_segment *s) {
    if (!s) return;
    size_t bytes = raw_bytes(s->bucket_count);
    ix->bytes -= bytes;
    ck_free(ix->mem, (uint8_t *)s - s->raw_shift, bytes);
}

static size_t slots_bytes(uint32_t depth) { return sizeof(ck_index_slot) << depth; }

ck_status ck_index_init(ck_index *ix, ck_mem mem, ck_index_hash_fn hash_fn, void *arg) {
    *ix = (ck_index){.mem = mem, .hash_fn = hash_fn, .arg = arg};
    ix->slots = ck_alloc(mem, slots_bytes(0));
    if (!ix->slots) return CK_NOMEM;
    ck_segment *s = segment_new(ix, 1, 0);
    if (!s) {
        ck_free(mem, ix->slots, slots_bytes(0));
        ix->slots = NULL;
        return CK_NOMEM;
    }
    ix->bytes += slots_bytes(0);
    ix->slots[0] = (ck_index_slot){buckets_of(s), 1};
    return CK_OK;
}

void ck_index_destroy(ck_index *ix) {
    if (!ix->slots) return;
    size_t count = (size_t)1 << ix->depth;
    for (size_t i = 0; i < count;) {
        ck_segment *s = segment_of(ix->slots[i].buckets);
        i += (size_t)1 << (ix->depth - s->depth);
        segment_free(ix, s);
    }
    ck_free(ix->mem, ix->slots, slots_bytes(ix->depth));
    *ix = (ck_index){.mem = ix->mem};
}

/* ---- placing entries ---- */

static void place(ck_segment *s, uint64_t hash, uint32_t ref) {
    ck_bucket *b = buckets_of(s);
    uint32_t at = ck_index_home(hash, s->bucket_count);
    for (;;) {
        uint32_t vacant = ck_bucket_match(&b[at], 0);
        if (vacant) {
            uint32_t i = (uint32_t)__builtin_ctz(vacant);
            b[at].tag[i] = ck_index_tag(hash);
            b[at].ref[i] = ref;
            s->entries++;
            return;
        }
        if (b[at].passed < UINT8_MAX) b[at].passed++;
        at = at + 1 == s->bucket_count ? 0 : at + 1;
    }
}

/* Moves all entries of `from` to a, or by the hash bit under its depth to a and b. */
static void move_entries(ck_index *ix, ck_segment *from, ck_segment *a, ck_segment *b) {
    uint32_t refs[HASH_RUN], n = 0;
    uint64_t hashes[HASH_RUN];
    ck_bucket *buckets = buckets_of(from);
    for (uint32_t i = 0; i <= from->bucket_count; i++) {
        bool last = i == from->bucket_count;
        for (uint32_t e = 0; !last && e < CK_BUCKET_ENTRIES; e++)
            if (buckets[i].tag[e]) refs[n++] = buckets[i].ref[e];
        if (n + CK_BUCKET_ENTRIES <= HASH_RUN && !last) continue;
        ix->hash_fn(ix->arg, refs, n, hashes);
        for (uint32_t k = 0; k < n; k++) place(b && (hashes[k] >> (63 - from->depth) & 1) ? b : a, hashes[k], refs[k]);
        n = 0;
    }
}

/* How many of a segment's entries have the bit that splits it. */
static uint32_t upper_count(ck_index *ix, ck_segment *s) {
    uint32_t refs[HASH_RUN], n = 0, upper = 0;
    uint64_t hashes[HASH_RUN];
    ck_bucket *buckets = buckets_of(s);
    for (uint32_t i = 0; i <= s->bucket_count; i++) {
        bool last = i == s->bucket_count;
        for (uint32_t e = 0; !last && e < CK_BUCKET_ENTRIES; e++)
            if (buckets[i].tag[e]) refs[n++] = buckets[i].ref[e];
        if (n + CK_BUCKET_ENTRIES <= HASH_RUN && !last) continue;
        ix->hash_fn(ix->arg, refs, n, hashes);
        for (uint32_t k = 0; k < n; k++) upper += (uint32_t)(hashes[k] >> (63 - s->depth) & 1);
        n = 0;
    }
    return upper;
}

/* ---- growing ---- */

static uint32_t grown(uint32_t buckets) {
    uint32_t pow2 = 1; /* steps of a quarter of the last power of two */
    while (pow2 * 2 <= buckets) pow2 *= 2;
    uint32_t step = pow2 / 4 ? pow2 / 4 : 1;
    return buckets + step;
}

static void point_slots(ck_index *ix, uint64_t hash, ck_segment *a, ck_segment *b) {
    uint32_t depth = b ? a->depth - 1 : a->depth; /* of what is replaced */
    size_t span = (size_t)1 << (ix->depth - depth);
    size_t first = (size_t)((hash >> 1) >> (63 - ix->depth)) & ~(span - 1);
    for (size_t i = 0; i < span; i++) {
        ck_segment *s = b && i >= span / 2 ? b : a;
        ix->slots[first + i] = (ck_index_slot){buckets_of(s), s->bucket_count};
    }
}

static ck_status deepen(ck_index *ix) {
    ck_index_slot *slots = ck_alloc(ix->mem, slots_bytes(ix->depth + 1));
    if (!slots) return CK_NOMEM;
    for (size_t i = 0; i < (size_t)1 << ix->depth; i++) slots[2 * i] = slots[2 * i + 1] = ix->slots[i];
    ck_free(ix->mem, ix->slots, slots_bytes(ix->depth));
    ix->bytes += slots_bytes(ix->depth);
    ix->slots = slots;
    ix->depth++;
    return CK_OK;
}

static ck_status enlarge(ck_index *ix, uint64_t hash, ck_segment *s) {
    ck_segment *more = segment_new(ix, grown(s->bucket_count), s->depth);
    if (!more) return CK_NOMEM;
    move_entries(ix, s, more, NULL);
    point_slots(ix, hash, more, NULL);
    segment_free(ix, s);
    return CK_OK;
}

static uint32_t buckets_for(uint32_t entries) {
    uint32_t n = SPLIT_BUCKETS;
    while (capacity_of(n) <= entries) n = grown(n);
    return n;
}

static ck_status split(ck_index *ix, uint64_t hash, ck_segment *s) {
    if (s->depth == ix->depth) CK_TRY(deepen(ix));
    uint32_t upper = upper_count(ix, s);
    ck_segment *a = segment_new(ix, buckets_for(s->entries - upper), s->depth + 1);
    ck_segment *b = segment_new(ix, buckets_for(upper), s->depth + 1);
    if (!a || !b) {
        segment_free(ix, a);
        segment_free(ix, b);
        return CK_NOMEM;
    }
    move_entries(ix, s, a, b);
    point_slots(ix, hash, a, b);
    segment_free(ix, s);
    return CK_OK;
}

ck_status ck_index_insert(ck_index *ix, uint64_t hash, uint32_t ref) {
    ck_segment *s = segment_of(ck_index_slot_of(ix, hash)->buckets);
    while (CK_UNLIKELY(s->entries >= capacity_of(s->bucket_count))) {
        bool can_split = s->bucket_count >= CK_SEGMENT_BUCKETS && s->depth < CK_INDEX_DEPTH_MAX;
        CK_TRY(can_split ? split(ix, hash, s) : enlarge(ix, hash, s));
        s = segment_of(ck_index_slot_of(ix, hash)->buckets);
    }
    place(s, hash, ref);
    ix->entries++;
    return CK_OK;
}

void ck_index_erase(ck_index *ix, uint64_t hash, uint32_t ref) {
    ck_segment *s = segment_of(ck_index_slot_of(ix, hash)->buckets);
    ck_bucket *b = buckets_of(s);
    uint32_t home = ck_index_home(hash, s->bucket_count), at = home;
    for (uint32_t left = s->bucket_count; left > 0; left--) {
        for (uint32_t m = ck_bucket_match(&b[at], ck_index_tag(hash)); m; m &= m - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(m);
            if (b[at].ref[i] != ref) continue;
            b[at].tag[i] = 0;
            for (uint32_t p = home; p != at; p = p + 1 == s->bucket_count ? 0 : p + 1)
                if (b[p].passed < UINT8_MAX) b[p].passed--;
            s->entries--;
            ix->entries--;
            return;
        }
        at = at + 1 == s->bucket_count ? 0 : at + 1;
    }
    ck_assert_failed(__FILE__, __LINE__, "the index entry is there");
}
