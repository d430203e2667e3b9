/* Looking up a batch of keys, for batch.c and lists.c. Rows go through in runs: for each row of a run prefetch its
 * index bucket, then compare tags and prefetch the first candidate row, then compare keys. So the cache misses of a run
 * overlap. What is inline here is instantiated per kind of key, chosen once a call. */
#ifndef CK_STATE_FIND_INT_H
#define CK_STATE_FIND_INT_H

#include "state/table_int.h"

enum { RUN = 64 };
#define NO_REF UINT32_MAX

/* What the specialised paths read, hoisted out of the loop. */
typedef struct fast_part {
    const ck_column *c;
    const uint64_t *valid;
    uint32_t offset, null_bit;
    bool is_text, nullable;
} fast_part;

typedef struct fast_key {
    const uint16_t *sel;
    fast_part part[2];
} fast_key;

static inline fast_key fast_key_of(const ck_key_source *s) {
    fast_key f = {.sel = s->keys->batch->sel};
    for (uint32_t i = 0; i < 2 && i < s->count; i++) {
        const ck_key_column *kc = &s->columns[i];
        f.part[i] = (fast_part){.c = kc->c,
                                .valid = kc->c->validity,
                                .offset = kc->f->offset,
                                .null_bit = kc->f->null_bit,
                                .is_text = kc->f->phys == CK_PHYS_VIEW,
                                .nullable = kc->nullable};
    }
    return f;
}

/* The path of the key, or the general one when a column is not held as its field is (all NULL). */
static inline ck_key_path path_of(const ck_key_source *s) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->columns[i].c->phys != s->columns[i].f->phys) return CK_PATH_ANY;
    return s->path;
}

/* Whether one of them is NULL; then *equal says whether both are. */
static inline bool null_decides(const fast_part *p, uint32_t b, const ck_row *row, bool *equal) {
    if (!p->nullable) return false;
    bool is_null = p->valid && !ck_bit_get(p->valid, b), row_null = ck_row_null(row, p->null_bit);
    *equal = is_null && row_null;
    return is_null || row_null;
}

static inline bool i64_equal(const fast_part *p, uint32_t b, const ck_row *row) {
    bool equal;
    if (null_decides(p, b, row, &equal)) return equal;
    return p->c->i64[b] == ck_row_i64(row, p->offset);
}

static inline bool str_equal(const ck_table *t, const fast_part *p, uint32_t b, const ck_row *row) {
    bool equal;
    if (null_decides(p, b, row, &equal)) return equal;
    const ck_strview *v = &p->c->views[b];
    uint64_t a[2], r[2];
    memcpy(a, v, 16);
    memcpy(r, row + p->offset, 16);
    if (a[0] != r[0]) return false; /* length and the first four bytes */
    if (v->length <= CK_STRVIEW_INLINE) return a[1] == r[1];
    return memcmp(ck_column_str(p->c, b).p, ck_var_get(t, row, p->offset).p, (size_t)v->length) == 0;
}

static inline bool part_equal(const ck_table *t, const fast_part *p, uint32_t b, const ck_row *row) {
    return p->is_text ? str_equal(t, p, b, row) : i64_equal(p, b, row);
}

static inline __attribute__((always_inline)) bool key_equal(const ck_table *t, const ck_key_source *s,
                                                            const fast_key *f, ck_key_path path, uint32_t k,
                                                            const ck_row *row) {
    uint32_t b = f->sel ? f->sel[k] : k;
    switch (path) {
    case CK_PATH_NONE: return true;
    case CK_PATH_I64: return i64_equal(&f->part[0], b, row);
    case CK_PATH_STR: return str_equal(t, &f->part[0], b, row);
    case CK_PATH_I64X2: return i64_equal(&f->part[0], b, row) && i64_equal(&f->part[1], b, row);
    case CK_PATH_PAIR: return part_equal(t, &f->part[1], b, row) && part_equal(t, &f->part[0], b, row);
    case CK_PATH_ANY: break;
    }
    return ck_key_equal_any(t, s, k, row);
}

/* Where pages and rows are, in locals: stores through row pointers may alias the table for all the compiler knows. */
typedef struct geometry {
    const ck_page_at *at;
    uint32_t slot_bits, slot_mask, row_bytes, epoch, changed_at;
} geometry;

static inline geometry geometry_of(const ck_table *t) {
    const ck_shape *s = t->shape;
    const ck_page_form *form = &s->forms[CK_SMALL_PAGES];
    return (geometry){.at = t->at,
                      .slot_bits = s->slot_bits,
                      .slot_mask = (1u << s->slot_bits) - 1,
                      .row_bytes = s->row_bytes,
                      .epoch = t->epochs->epoch,
                      .changed_at = form->head_at + (uint32_t)sizeof(ck_page_head) + form->words * 8};
}

/* From the row itself: an insertion of this run may have moved the list of pages, never a page. */
static inline uint64_t *changed_word(const ck_table *t, const geometry *g, uint32_t ref, ck_row *row) {
    uint32_t id = ref >> g->slot_bits, slot = ref & g->slot_mask;
    uint8_t *page = row - (size_t)slot * g->row_bytes;
    if (CK_LIKELY(id >= CK_SMALL_PAGES)) return (uint64_t *)(void *)(page + g->changed_at) + (slot >> 6);
    return ck_page_bits(t->shape, ck_head_of(t->shape, id, page), 1) + (slot >> 6);
}

/* Of a run: the first row whose tag fits, in the home bucket or the next; row NULL: none. */
typedef struct candidates {
    ck_row *row[RUN];
    uint32_t ref[RUN];
    bool unprepared; /* some page is not the owner's to write to yet */
} candidates;

static inline __attribute__((always_inline)) void take_candidate(const ck_table *t, const geometry *g,
                                                                 const ck_bucket *b, uint32_t match, bool changes,
                                                                 candidates *c, uint32_t i) {
    uint32_t ref = b->ref[__builtin_ctz(match)];
    const ck_page_at *at = &g->at[ref >> g->slot_bits];
    ck_row *row = at->rows + (size_t)(ref & g->slot_mask) * g->row_bytes;
    __builtin_prefetch(row);
    __builtin_prefetch(row + g->row_bytes - 1);
    c->ref[i] = ref;
    c->row[i] = row;
    c->unprepared |= at->prepared != g->epoch;
    if (changes) __builtin_prefetch(changed_word(t, g, ref, row), 1);
}

/* The entries of a bucket that may be the hash's, by tag and kept bits. */
static inline __attribute__((always_inline)) uint32_t matches_of(const ck_index *ix, const ck_index_slot *slot,
                                                                 const ck_bucket *b, uint64_t hash) {
    uint32_t m = ck_bucket_match(b, ck_index_tag(hash));
    if (ix->depth < 4) return m;
    ck_index_kept kept = ck_index_kept_of(hash, slot->depth);
    while (m && CK_UNLIKELY(!ck_index_may_be(b, (uint32_t)__builtin_ctz(m), kept))) m &= m - 1;
    return m;
}

/* Stages one and two. */
static inline __attribute__((always_inline)) void candidates_of(const ck_table *t, const ck_index *index,
                                                                const geometry *g, const uint64_t *hashes, uint32_t n,
                                                                bool changes, candidates *c) {
    const ck_index ix = *index;
    const ck_bucket *home[RUN];
    const ck_index_slot *slots[RUN];
    uint8_t later[RUN];
    uint32_t later_count = 0;
    c->unprepared = false;
    for (uint32_t i = 0; i < n; i++) {
        const ck_index_slot *slot = slots[i] = ck_index_slot_of(&ix, hashes[i]);
        home[i] = &slot->buckets[ck_index_home(hashes[i], slot->bucket_count)];
        __builtin_prefetch(home[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const ck_index_slot *slot = slots[i];
        uint32_t m = matches_of(&ix, slot, home[i], hashes[i]);
        if (CK_LIKELY(m != 0)) {
            take_candidate(t, g, home[i], m, changes, c, i);
            continue;
        }
        c->row[i] = NULL;
        if (!home[i]->passed) continue;
        home[i] = home[i] + 1 == slot->buckets + slot->bucket_count ? slot->buckets : home[i] + 1;
        __builtin_prefetch(home[i]);
        later[later_count++] = (uint8_t)i;
    }
    for (uint32_t k = 0; k < later_count; k++) {
        uint32_t i = later[k], m = matches_of(&ix, slots[i], home[i], hashes[i]);
        if (m) take_candidate(t, g, home[i], m, changes, c, i);
    }
}

static inline __attribute__((always_inline)) uint32_t search(const ck_table *t, const ck_key_source *s,
                                                             const fast_key *f, ck_key_path path, uint32_t k,
                                                             uint64_t hash) {
    ck_index_probe p = ck_index_probe_begin(s->index, hash);
    for (uint32_t ref; ck_index_probe_next(&p, &ref);)
        if (key_equal(t, s, f, path, k, ck_row_of(t, ref))) return ref;
    return NO_REF;
}

#endif
