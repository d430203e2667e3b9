/* See index_int.h. */
#include "state/index_int.h"

#include <string.h>

enum { SPLIT_BUCKETS = 91, HASH_RUN = 256 };

static ck_segment *segment_of(ck_bucket *buckets) { return (ck_segment *)(void *)buckets - 1; }
static ck_bucket *buckets_of(ck_segment *s) { return (ck_bucket *)(void *)(s + 1); }
static uint32_t capacity_of(uint32_t bucket_count) {
    return bucket_count * CK_BUCKET_ENTRIES - bucket_count * CK_BUCKET_ENTRIES / 16 - 1;
}

/* 64 more than needed, so that the segment can begin at a cache line. */
static size_t raw_bytes(uint32_t bucket_count) {
    return sizeof(ck_segment) + bucket_count * (sizeof(ck_bucket) + CK_BUCKET_ENTRIES * sizeof(uint16_t)) + 64;
}

static ck_segment *segment_new(ck_index *ix, uint32_t bucket_count, uint32_t depth, uint32_t id) {
    size_t bytes = raw_bytes(bucket_count);
    uint8_t *raw = ck_alloc(ix->mem, bytes);
    if (!raw) return NULL;
    uint32_t shift = (uint32_t)((64 - ((uintptr_t)raw & 63)) & 63);
    ck_segment *s = (ck_segment *)(void *)(raw + shift);
    *s = (ck_segment){.bucket_count = bucket_count, .id = id, .depth = depth, .raw_shift = shift};
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

static ck_index_slot slot_of(ck_segment *s) {
    uint32_t from = s->depth - s->depth % CK_KEPT_SPLITS;
    return (ck_index_slot){buckets_of(s), s->bucket_count, s->id & ((1u << 27) - 1), from & 31};
}

/* Room for one more segment's count. */
static ck_status reserve_segment(ck_index *ix) {
    if (ix->segment_count < ix->segment_capacity) return CK_OK;
    uint32_t capacity = ix->segment_capacity ? ix->segment_capacity * 2 : 1;
    uint32_t *more = ck_realloc(ix->mem, ix->entries_of, ix->segment_capacity * sizeof *more, capacity * sizeof *more);
    if (!more) return CK_NOMEM;
    ix->bytes += (capacity - ix->segment_capacity) * sizeof *more;
    ix->entries_of = more, ix->segment_capacity = capacity;
    return CK_OK;
}

ck_status ck_index_init(ck_index *ix, ck_mem mem, ck_index_hash_fn hash_fn, void *arg) {
    *ix = (ck_index){.mem = mem, .hash_fn = hash_fn, .arg = arg};
    ck_segment *s = segment_new(ix, 1, 0, 0);
    ix->slots = ck_alloc(mem, slots_bytes(0));
    if (!s || !ix->slots || reserve_segment(ix) != CK_OK) {
        segment_free(ix, s);
        ck_free(mem, ix->slots, slots_bytes(0));
        *ix = (ck_index){.mem = mem};
        return CK_NOMEM;
    }
    ix->bytes += slots_bytes(0);
    ix->slots[0] = slot_of(s);
    ix->entries_of[0] = 0;
    ix->segment_count = 1;
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
    ck_free(ix->mem, ix->entries_of, ix->segment_capacity * sizeof *ix->entries_of);
    *ix = (ck_index){.mem = ix->mem};
}

/* ---- placing entries ---- */

/* What is kept of a hash: where it belongs, and the bits of the directory from a depth on that is a multiple of
 * CK_KEPT_SPLITS. */
static uint16_t kept_bits(uint64_t hash, uint32_t from) {
    uint32_t splits = (uint32_t)(hash << from >> (64 - CK_KEPT_SPLITS));
    return (uint16_t)(ck_index_home_bits(hash) << CK_KEPT_SPLITS | splits);
}
/* The half an entry of a segment of this depth goes to. */
static uint32_t kept_side(uint16_t kept, uint32_t depth) {
    return (uint32_t)kept >> (CK_KEPT_SPLITS - 1 - depth % CK_KEPT_SPLITS) & 1;
}

static void place(const ck_index_slot *s, uint8_t tag, uint16_t kept, uint32_t ref) {
    ck_bucket *b = s->buckets;
    uint32_t at = (uint32_t)(kept >> CK_KEPT_SPLITS) * s->bucket_count >> CK_HOME_BITS;
    for (;;) {
        uint32_t vacant = ck_bucket_match(&b[at], 0);
        if (vacant) {
            uint32_t i = (uint32_t)__builtin_ctz(vacant);
            b[at].tag[i] = tag;
            b[at].ref[i] = ref;
            ck_index_kept(b, s->bucket_count)[at * CK_BUCKET_ENTRIES + i] = kept;
            return;
        }
        if (b[at].passed < UINT8_MAX) b[at].passed++;
        at = at + 1 == s->bucket_count ? 0 : at + 1;
    }
}

static uint32_t used_of(const ck_bucket *b) { return ~ck_bucket_match(b, 0) & ((1u << CK_BUCKET_ENTRIES) - 1); }

/* The entries of a segment into one, or by their next bit into two. */
static void move_entries(ck_segment *s, ck_segment *a, ck_segment *b) {
    const ck_index_slot to[2] = {slot_of(a), slot_of(b ? b : a)};
    ck_bucket *from = buckets_of(s);
    const uint16_t *kept = ck_index_kept(from, s->bucket_count);
    for (uint32_t i = 0; i < s->bucket_count; i++, kept += CK_BUCKET_ENTRIES) {
        for (uint32_t used = used_of(&from[i]); used; used &= used - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(used);
            place(&to[kept_side(kept[k], s->depth)], from[i].tag[k], kept[k], from[i].ref[k]);
        }
    }
}

/* How many entries go to the second half. */
static uint32_t count_second(ck_segment *s) {
    ck_bucket *buckets = buckets_of(s);
    const uint16_t *kept = ck_index_kept(buckets, s->bucket_count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->bucket_count; i++, kept += CK_BUCKET_ENTRIES)
        for (uint32_t used = used_of(&buckets[i]); used; used &= used - 1)
            n += kept_side(kept[__builtin_ctz(used)], s->depth);
    return n;
}

/* Before a segment's first split of a new lot of kept bits: most entries have those of the lot before. */
static void refresh_kept(const ck_index *ix, ck_segment *s) {
    uint32_t refs[HASH_RUN], n = 0;
    uint16_t *of[HASH_RUN];
    uint64_t hashes[HASH_RUN];
    ck_bucket *buckets = buckets_of(s);
    uint16_t *kept = ck_index_kept(buckets, s->bucket_count);
    for (uint32_t i = 0; i < s->bucket_count; i++, kept += CK_BUCKET_ENTRIES) {
        for (uint32_t used = used_of(&buckets[i]); used; used &= used - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(used);
            refs[n] = buckets[i].ref[k];
            of[n++] = &kept[k];
        }
        if (n + CK_BUCKET_ENTRIES <= HASH_RUN && i + 1 < s->bucket_count) continue;
        ix->hash_fn(ix->arg, refs, n, hashes);
        for (uint32_t k = 0; k < n; k++) *of[k] = kept_bits(hashes[k], s->depth);
        n = 0;
    }
}

/* ---- growing ---- */

/* By half up to the size of a fresh half, from there to the full size. */
static uint32_t grown(uint32_t buckets) {
    if (buckets >= CK_SEGMENT_BUCKETS) return buckets + buckets / 2; /* at the maximum depth */
    if (buckets >= SPLIT_BUCKETS) return CK_SEGMENT_BUCKETS;
    uint32_t more = buckets + (buckets + 1) / 2;
    return more < SPLIT_BUCKETS ? more : SPLIT_BUCKETS;
}

static void point_slots(ck_index *ix, uint64_t hash, ck_segment *a, ck_segment *b) {
    uint32_t depth = b ? a->depth - 1 : a->depth; /* of what is replaced */
    size_t span = (size_t)1 << (ix->depth - depth);
    size_t first = (size_t)((hash >> 1) >> (63 - ix->depth)) & ~(span - 1);
    for (size_t i = 0; i < span; i++) {
        ck_segment *s = b && i >= span / 2 ? b : a;
        ix->slots[first + i] = slot_of(s);
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
    ck_segment *more = segment_new(ix, grown(s->bucket_count), s->depth, s->id);
    if (!more) return CK_NOMEM;
    move_entries(s, more, NULL);
    point_slots(ix, hash, more, NULL);
    segment_free(ix, s);
    return CK_OK;
}

static ck_segment *half_new(ck_index *ix, uint32_t entries, uint32_t depth, uint32_t id) {
    uint32_t n = SPLIT_BUCKETS;
    while (capacity_of(n) <= entries) n = grown(n);
    return segment_new(ix, n, depth, id);
}

static ck_status split(ck_index *ix, uint64_t hash, ck_segment *s) {
    if (s->depth == ix->depth) CK_TRY(deepen(ix));
    CK_TRY(reserve_segment(ix));
    if (s->depth > 0 && s->depth % CK_KEPT_SPLITS == 0) refresh_kept(ix, s);
    uint32_t second = count_second(s), first = ix->entries_of[s->id] - second;
    ck_segment *a = half_new(ix, first, s->depth + 1, s->id);
    ck_segment *b = half_new(ix, second, s->depth + 1, ix->segment_count);
    if (!a || !b) {
        segment_free(ix, a);
        segment_free(ix, b);
        return CK_NOMEM;
    }
    move_entries(s, a, b);
    point_slots(ix, hash, a, b);
    ix->entries_of[a->id] = first;
    ix->entries_of[ix->segment_count++] = second;
    segment_free(ix, s);
    return CK_OK;
}

ck_status ck_index_insert(ck_index *ix, uint64_t hash, uint32_t ref) {
    const ck_index_slot *slot = ck_index_slot_of(ix, hash);
    while (CK_UNLIKELY(ix->entries_of[slot->segment] >= capacity_of(slot->bucket_count))) {
        ck_segment *s = segment_of(slot->buckets);
        bool can_split = s->bucket_count == CK_SEGMENT_BUCKETS && s->depth < CK_INDEX_DEPTH_MAX;
        CK_TRY(can_split ? split(ix, hash, s) : enlarge(ix, hash, s));
        slot = ck_index_slot_of(ix, hash);
    }
    place(slot, ck_index_tag(hash), kept_bits(hash, slot->kept_from), ref);
    ix->entries_of[slot->segment]++;
    ix->entries++;
    return CK_OK;
}

void ck_index_erase(ck_index *ix, uint64_t hash, uint32_t ref) {
    const ck_index_slot *s = ck_index_slot_of(ix, hash);
    ck_bucket *b = s->buckets;
    uint32_t home = ck_index_home(hash, s->bucket_count), at = home;
    for (uint32_t left = s->bucket_count; left > 0; left--) {
        for (uint32_t m = ck_bucket_match(&b[at], ck_index_tag(hash)); m; m &= m - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(m);
            if (b[at].ref[i] != ref) continue;
            b[at].tag[i] = 0;
            for (uint32_t p = home; p != at; p = p + 1 == s->bucket_count ? 0 : p + 1)
                if (b[p].passed < UINT8_MAX) b[p].passed--;
            ix->entries_of[s->segment]--;
            ix->entries--;
            return;
        }
        at = at + 1 == s->bucket_count ? 0 : at + 1;
    }
    ck_assert_failed(__FILE__, __LINE__, "the index entry is there");
}

void ck_index_replace(ck_index *ix, uint64_t hash, uint32_t ref, uint32_t by) {
    const ck_index_slot *s = ck_index_slot_of(ix, hash);
    ck_bucket *b = s->buckets;
    uint32_t at = ck_index_home(hash, s->bucket_count);
    for (uint32_t left = s->bucket_count; left > 0; left--) {
        for (uint32_t m = ck_bucket_match(&b[at], ck_index_tag(hash)); m; m &= m - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(m);
            if (b[at].ref[i] != ref) continue;
            b[at].ref[i] = by;
            return;
        }
        at = at + 1 == s->bucket_count ? 0 : at + 1;
    }
    ck_assert_failed(__FILE__, __LINE__, "the index entry is there");
}
