/* See index_int.h. */
#include "state/index_int.h"

#include <string.h>

enum { HASH_RUN = 256 };

/* Of 256 first bytes, class i has 256 * 2^(i/8) / (2^(1/8) + 2^(2/8) + ... + 2^(8/8)). */
#define OF(first, last, class) [first... last] = class
const uint8_t ck_index_class[256] = {OF(0, 22, 0),    OF(23, 47, 1),   OF(48, 75, 2),   OF(76, 105, 3),
                                     OF(106, 138, 4), OF(139, 174, 5), OF(175, 213, 6), OF(214, 255, 7)};
#undef OF

static uint32_t capacity_of(uint32_t bucket_count) {
    return bucket_count * CK_BUCKET_ENTRIES - bucket_count * CK_BUCKET_ENTRIES / 8 - 1;
}

/* ---- memory: full segments are pages of the pool, others come from the heap ---- */

/* 64 more than needed, so that the buckets can begin at a cache line. */
static size_t raw_bytes(uint32_t bucket_count) { return bucket_count * sizeof(ck_bucket) + 64; }

static void clear(ck_bucket *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) memset(&b[i], 0, 16);
}

static bool buckets_new(ck_index *ix, uint32_t n, ck_segment *out) {
    *out = (ck_segment){.bucket_count = n};
    if (n == CK_SEGMENT_BUCKETS) {
        out->buckets = ck_page_alloc(ix->pool, n * sizeof(ck_bucket), CK_MEM_STATE);
        if (!out->buckets) return false;
        ix->bytes += n * sizeof(ck_bucket);
    } else {
        uint8_t *raw = ck_alloc(ix->mem, raw_bytes(n));
        if (!raw) return false;
        out->raw_shift = (uint32_t)((64 - ((uintptr_t)raw & 63)) & 63);
        out->buckets = (ck_bucket *)(void *)(raw + out->raw_shift);
        ix->bytes += raw_bytes(n);
    }
    clear(out->buckets, n);
    return true;
}

static void buckets_free(ck_index *ix, const ck_segment *s) {
    if (!s->buckets) return;
    if (s->bucket_count == CK_SEGMENT_BUCKETS) {
        ck_page_free(ix->pool, s->buckets, s->bucket_count * sizeof(ck_bucket), CK_MEM_STATE);
        ix->bytes -= s->bucket_count * sizeof(ck_bucket);
    } else {
        ck_free(ix->mem, (uint8_t *)s->buckets - s->raw_shift, raw_bytes(s->bucket_count));
        ix->bytes -= raw_bytes(s->bucket_count);
    }
}

static size_t slots_bytes(uint32_t depth) { return sizeof(ck_index_slot) << depth; }

static ck_index_slot slot_of(const ck_segment *s, uint32_t number) {
    return (ck_index_slot){s->buckets, s->bucket_count, number & ((1u << 27) - 1), s->depth & 31};
}

/* Room for one more segment. */
static ck_status reserve_segment(ck_index *ix) {
    if (ix->segment_count < ix->segment_capacity) return CK_OK;
    uint32_t capacity = ix->segment_capacity ? ix->segment_capacity * 2 : 1;
    ck_segment *more = ck_realloc(ix->mem, ix->segments, ix->segment_capacity * sizeof *more, capacity * sizeof *more);
    if (!more) return CK_NOMEM;
    ix->bytes += (capacity - ix->segment_capacity) * sizeof *more;
    ix->segments = more, ix->segment_capacity = capacity;
    return CK_OK;
}

ck_status ck_index_init(ck_index *ix, ck_page_pool *pool, ck_mem mem, ck_index_hash_fn hash_fn, void *arg) {
    *ix = (ck_index){.pool = pool, .mem = mem, .hash_fn = hash_fn, .arg = arg};
    ck_segment s = {0};
    ix->slots = ck_alloc(mem, slots_bytes(0));
    if (!ix->slots || reserve_segment(ix) != CK_OK || !buckets_new(ix, 1, &s)) {
        ck_free(mem, ix->slots, slots_bytes(0));
        ck_free(mem, ix->segments, ix->segment_capacity * sizeof *ix->segments);
        *ix = (ck_index){.mem = mem};
        return CK_NOMEM;
    }
    ix->bytes += slots_bytes(0);
    ix->segments[0] = s;
    ix->slots[0] = slot_of(&s, 0);
    ix->segment_count = 1;
    return CK_OK;
}

void ck_index_destroy(ck_index *ix) {
    if (!ix->slots) return;
    for (uint32_t i = 0; i < ix->segment_count; i++) buckets_free(ix, &ix->segments[i]);
    ck_free(ix->mem, ix->slots, slots_bytes(ix->depth));
    ck_free(ix->mem, ix->segments, ix->segment_capacity * sizeof *ix->segments);
    *ix = (ck_index){.mem = ix->mem};
}

void ck_index_clear(ck_index *ix) {
    CK_ASSERT(ck_index_is_small(ix));
    clear(ix->segments[0].buckets, ix->segments[0].bucket_count);
    ix->segments[0].entries = 0;
    ix->entries = 0;
}

/* ---- placing entries ---- */

/* The depth from which on directory bits are kept in a segment of this depth. */
static uint32_t kept_from(uint32_t depth) {
    return depth < 3 ? 0 : depth < 3 + CK_KEPT_SPLITS ? 3 : 3 + CK_KEPT_SPLITS;
}
static bool uses_new_bits(uint32_t depth) { return depth > 0 && kept_from(depth) != kept_from(depth - 1); }

static uint32_t kept_splits(uint64_t hash, uint32_t depth) {
    return (uint32_t)(ck_index_bits(hash) << kept_from(depth) >> (64 - CK_KEPT_SPLITS));
}

static uint32_t way_of(uint16_t kept) { return (uint32_t)kept >> CK_KEPT_SPLITS; }
/* The half an entry of a segment of this depth goes to. */
static uint32_t kept_side(uint32_t kept, uint32_t depth) {
    return kept >> (CK_KEPT_SPLITS - 1 - (depth - kept_from(depth))) & 1;
}

/* An entry where it belongs or in the next bucket with room; *way: how many it passed. */
static inline uint16_t *place(ck_bucket *b, uint32_t bucket_count, uint32_t home, uint8_t tag, uint32_t ref,
                              uint32_t *way) {
    uint32_t at = home * bucket_count >> CK_HOME_BITS;
    for (*way = 0;; ++*way) {
        uint32_t vacant = ck_bucket_match(&b[at], 0);
        if (CK_LIKELY(vacant)) {
            uint32_t i = (uint32_t)__builtin_ctz(vacant);
            b[at].tag[i] = tag;
            b[at].ref[i] = ref;
            return &b[at].kept[i];
        }
        if (b[at].passed < UINT8_MAX) b[at].passed++;
        at = at + 1 == bucket_count ? 0 : at + 1;
    }
}

/* splits: of the entry's hash. */
static inline void place_kept(ck_bucket *b, uint32_t bucket_count, uint32_t home, uint8_t tag, uint32_t splits,
                              uint32_t ref) {
    uint32_t way;
    uint16_t *kept = place(b, bucket_count, home, tag, ref, &way);
    if (way > CK_WAY_FAR) way = CK_WAY_FAR;
    *kept = (uint16_t)(bucket_count < CK_SEGMENT_BUCKETS ? home : way << CK_KEPT_SPLITS | splits);
}

static uint32_t used_of(const ck_bucket *b) { return ~ck_bucket_match(b, 0) & ((1u << CK_BUCKET_ENTRIES) - 1); }

/* The entries of a small segment into a larger one that is small, too. */
static void move_small(const ck_segment *from, const ck_segment *to) {
    const ck_bucket *b = from->buckets;
    for (uint32_t i = 0; i < from->bucket_count; i++)
        for (uint32_t used = used_of(&b[i]); used; used &= used - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(used);
            place_kept(to->buckets, to->bucket_count, b[i].kept[k], b[i].tag[k], 0, b[i].ref[k]);
        }
}

/* Entries with their hashes, from the rows. */
typedef struct hashed {
    uint32_t n;
    uint32_t refs[HASH_RUN];
    uint16_t *kept[HASH_RUN];
    uint64_t hashes[HASH_RUN];
} hashed;

/* The next entries from bucket *at on. */
static bool hash_next(const ck_index *ix, const ck_segment *s, uint32_t *at, hashed *h) {
    for (h->n = 0; *at < s->bucket_count && h->n + CK_BUCKET_ENTRIES <= HASH_RUN; ++*at) {
        ck_bucket *b = &s->buckets[*at];
        for (uint32_t used = used_of(b); used; used &= used - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(used);
            h->refs[h->n] = b->ref[k];
            h->kept[h->n++] = &b->kept[k];
        }
    }
    if (h->n) ix->hash_fn(ix->arg, h->refs, h->n, h->hashes);
    return h->n > 0;
}

/* Into a segment that is not small, and may be one already. */
static void move_hashed(const ck_index *ix, const ck_segment *from, const ck_segment *to) {
    hashed h;
    for (uint32_t at = 0; hash_next(ix, from, &at, &h);)
        for (uint32_t i = 0; i < h.n; i++)
            place_kept(to->buckets, to->bucket_count, ck_index_home_bits(h.hashes[i]), ck_index_tag(h.hashes[i]),
                       kept_splits(h.hashes[i], to->depth), h.refs[i]);
}

/* Before a segment's first split by bits that are not kept yet. */
static void refresh_kept(const ck_index *ix, const ck_segment *s) {
    hashed h;
    for (uint32_t at = 0; hash_next(ix, s, &at, &h);)
        for (uint32_t i = 0; i < h.n; i++)
            *h.kept[i] = (uint16_t)(way_of(*h.kept[i]) << CK_KEPT_SPLITS | kept_splits(h.hashes[i], s->depth));
}

static uint32_t home_of(const ck_index *ix, const ck_bucket *b, uint32_t at, uint32_t k) {
    uint32_t way = way_of(b->kept[k]);
    if (CK_LIKELY(way < CK_WAY_FAR)) return (at - way) & (CK_SEGMENT_BUCKETS - 1);
    uint64_t hash;
    ix->hash_fn(ix->arg, &b->ref[k], 1, &hash);
    return ck_index_home_bits(hash);
}

/* Entries of a full segment whose next bit is set go to `second`; the others are placed anew in the segment itself. */
static uint32_t move_half(const ck_index *ix, ck_segment *s, ck_bucket *second) {
    ck_bucket was[CK_SEGMENT_BUCKETS];
    ck_bucket *const to[2] = {s->buckets, second};
    uint32_t moved = 0, depth = s->depth, mask = (1u << CK_KEPT_SPLITS) - 1;
    memcpy(was, s->buckets, sizeof was);
    clear(s->buckets, CK_SEGMENT_BUCKETS);
    for (uint32_t i = 0; i < CK_SEGMENT_BUCKETS; i++)
        for (uint32_t used = used_of(&was[i]); used; used &= used - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(used), side = kept_side(was[i].kept[k], depth);
            place_kept(to[side], CK_SEGMENT_BUCKETS, home_of(ix, &was[i], i, k), was[i].tag[k], was[i].kept[k] & mask,
                       was[i].ref[k]);
            moved += side;
        }
    return moved;
}

/* ---- growing ---- */

static uint32_t grown(uint32_t buckets) {
    uint32_t more = buckets + (buckets + 1) / 2;
    return buckets < CK_SEGMENT_BUCKETS && more > CK_SEGMENT_BUCKETS ? CK_SEGMENT_BUCKETS : more;
}

/* The slots that lead to segments a and b, two halves; or to a alone (b = a). */
static void point_slots(ck_index *ix, uint64_t hash, uint32_t a, uint32_t b) {
    uint32_t depth = ix->segments[a].depth - (a != b); /* of what is replaced */
    size_t span = (size_t)1 << (ix->depth - depth);
    size_t first = (size_t)((ck_index_bits(hash) >> 1) >> (63 - ix->depth)) & ~(span - 1);
    for (size_t i = 0; i < span; i++) {
        uint32_t number = i >= span / 2 ? b : a;
        ix->slots[first + i] = slot_of(&ix->segments[number], number);
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

static ck_status enlarge(ck_index *ix, uint64_t hash, uint32_t number) {
    ck_segment *s = &ix->segments[number], more;
    if (!buckets_new(ix, grown(s->bucket_count), &more)) return CK_NOMEM;
    more.depth = s->depth, more.entries = s->entries;
    if (more.bucket_count < CK_SEGMENT_BUCKETS)
        move_small(s, &more);
    else
        move_hashed(ix, s, &more);
    buckets_free(ix, s);
    *s = more;
    point_slots(ix, hash, number, number);
    return CK_OK;
}

static ck_status split(ck_index *ix, uint64_t hash, uint32_t number) {
    ck_segment half;
    if (ix->segments[number].depth == ix->depth) CK_TRY(deepen(ix));
    CK_TRY(reserve_segment(ix));
    if (!buckets_new(ix, CK_SEGMENT_BUCKETS, &half)) return CK_NOMEM;
    ck_segment *s = &ix->segments[number];
    if (uses_new_bits(s->depth)) refresh_kept(ix, s);
    half.entries = move_half(ix, s, half.buckets);
    half.depth = ++s->depth;
    s->entries -= half.entries;
    ix->segments[ix->segment_count] = half;
    point_slots(ix, hash, number, ix->segment_count++);
    return CK_OK;
}

static __attribute__((noinline)) ck_status make_room(ck_index *ix, uint64_t hash) {
    for (;;) {
        uint32_t number = ck_index_slot_of(ix, hash)->segment;
        const ck_segment *s = &ix->segments[number];
        if (s->entries < capacity_of(s->bucket_count)) return CK_OK;
        bool can_split = s->bucket_count == CK_SEGMENT_BUCKETS && s->depth < CK_INDEX_DEPTH_MAX;
        CK_TRY(can_split ? split(ix, hash, number) : enlarge(ix, hash, number));
    }
}

ck_status ck_index_insert(ck_index *ix, uint64_t hash, uint32_t ref) {
    const ck_index_slot *slot = ck_index_slot_of(ix, hash);
    if (CK_UNLIKELY(ix->segments[slot->segment].entries >= capacity_of(slot->bucket_count))) {
        CK_TRY(make_room(ix, hash));
        slot = ck_index_slot_of(ix, hash);
    }
    place_kept(slot->buckets, slot->bucket_count, ck_index_home_bits(hash), ck_index_tag(hash),
               kept_splits(hash, slot->depth), ref);
    ix->segments[slot->segment].entries++;
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
            ix->segments[s->segment].entries--;
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
