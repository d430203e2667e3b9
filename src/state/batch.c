/* Upsert and find of a batch of keys. Rows go through in runs: for each row of a run prefetch its index bucket, then
 * compare tags and prefetch the first candidate row, then compare keys. So the cache misses of a run overlap. The loop
 * is instantiated per kind of key (shape's path), chosen once a call. */
#include "state/table_int.h"

enum { RUN = 64 };
#define NO_REF UINT32_MAX

/* What the specialised paths read, hoisted out of the loop. */
typedef struct fast_key {
    const uint16_t *sel;
    const ck_column *c0, *c1;
    const uint64_t *valid0, *valid1;
    uint32_t off0, off1, null0, null1;
    bool nullable; /* some key field may be NULL */
} fast_key;

static fast_key fast_key_of(const ck_key_source *s) {
    fast_key f = {.sel = s->keys->batch->sel};
    if (s->count > 0) {
        f.c0 = s->columns[0].c, f.valid0 = f.c0->validity;
        f.off0 = s->columns[0].f->offset, f.null0 = s->columns[0].f->null_bit;
        f.nullable = s->columns[0].nullable;
    }
    if (s->count > 1) {
        f.c1 = s->columns[1].c, f.valid1 = f.c1->validity;
        f.off1 = s->columns[1].f->offset, f.null1 = s->columns[1].f->null_bit;
        f.nullable |= s->columns[1].nullable;
    }
    return f;
}

/* The path of the table, or the general one when a column is not held as its field is (all NULL). */
static ck_key_path path_of(const ck_table *t, const ck_key_source *s) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->columns[i].c->phys != s->columns[i].f->phys) return CK_PATH_ANY;
    return t->shape->path;
}

static inline bool i64_equal(const ck_column *c, const uint64_t *valid, uint32_t b, const ck_row *row, uint32_t offset,
                             uint32_t null_bit, bool nullable) {
    if (nullable) {
        bool is_null = valid && !ck_bit_get(valid, b), row_null = ck_row_null(row, null_bit);
        if (is_null || row_null) return is_null && row_null;
    }
    return c->i64[b] == ck_row_i64(row, offset);
}

static inline bool str_equal(const ck_table *t, const fast_key *f, uint32_t b, const ck_row *row) {
    if (f->nullable) {
        bool is_null = f->valid0 && !ck_bit_get(f->valid0, b), row_null = ck_row_null(row, f->null0);
        if (is_null || row_null) return is_null && row_null;
    }
    const ck_strview *v = &f->c0->views[b];
    uint64_t a[2], r[2];
    memcpy(a, v, 16);
    memcpy(r, row + f->off0, 16);
    if (a[0] != r[0]) return false; /* length and the first four bytes */
    if (v->length <= CK_STRVIEW_INLINE) return a[1] == r[1];
    return memcmp(ck_column_str(f->c0, b).p, ck_var_get(t, row, f->off0).p, (size_t)v->length) == 0;
}

static inline __attribute__((always_inline)) bool key_equal(const ck_table *t, const ck_key_source *s,
                                                            const fast_key *f, ck_key_path path, uint32_t k,
                                                            const ck_row *row) {
    uint32_t b = f->sel ? f->sel[k] : k;
    switch (path) {
    case CK_PATH_NONE: return true;
    case CK_PATH_I64: return i64_equal(f->c0, f->valid0, b, row, f->off0, f->null0, f->nullable);
    case CK_PATH_STR: return str_equal(t, f, b, row);
    case CK_PATH_I64X2:
        return i64_equal(f->c0, f->valid0, b, row, f->off0, f->null0, f->nullable && f->null0 != UINT32_MAX) &&
               i64_equal(f->c1, f->valid1, b, row, f->off1, f->null1, f->nullable && f->null1 != UINT32_MAX);
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

static inline uint64_t *changed_word(const ck_table *t, const geometry *g, uint32_t ref) {
    uint32_t id = ref >> g->slot_bits, slot = ref & g->slot_mask;
    if (CK_LIKELY(id >= CK_SMALL_PAGES)) return (uint64_t *)(void *)(g->at[id].rows + g->changed_at) + (slot >> 6);
    return ck_page_bits(t->shape, ck_head_of(t->shape, id, g->at[id].rows), 1) + (slot >> 6);
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
    if (changes) __builtin_prefetch(changed_word(t, g, ref), 1);
}

/* Stages one and two. */
static inline __attribute__((always_inline)) void find_candidates(const ck_table *t, const geometry *g,
                                                                  const uint64_t *hashes, uint32_t n, bool changes,
                                                                  candidates *c) {
    const ck_index ix = t->index;
    const ck_bucket *home[RUN];
    uint8_t later[RUN];
    uint32_t later_count = 0;
    c->unprepared = false;
    for (uint32_t i = 0; i < n; i++) {
        const ck_index_slot *slot = ck_index_slot_of(&ix, hashes[i]);
        home[i] = &slot->buckets[ck_index_home(hashes[i], slot->bucket_count)];
        __builtin_prefetch(home[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = ck_bucket_match(home[i], ck_index_tag(hashes[i]));
        if (CK_LIKELY(m != 0)) {
            take_candidate(t, g, home[i], m, changes, c, i);
            continue;
        }
        c->row[i] = NULL;
        if (!home[i]->passed) continue;
        const ck_index_slot *slot = ck_index_slot_of(&ix, hashes[i]);
        home[i] = home[i] + 1 == slot->buckets + slot->bucket_count ? slot->buckets : home[i] + 1;
        __builtin_prefetch(home[i]);
        later[later_count++] = (uint8_t)i;
    }
    for (uint32_t k = 0; k < later_count; k++) {
        uint32_t i = later[k], m = ck_bucket_match(home[i], ck_index_tag(hashes[i]));
        if (m) take_candidate(t, g, home[i], m, changes, c, i);
    }
}

static inline __attribute__((always_inline)) uint32_t search(const ck_table *t, const ck_key_source *s,
                                                             const fast_key *f, ck_key_path path, uint32_t k,
                                                             uint64_t hash) {
    ck_index_probe p = ck_index_probe_begin(&t->index, hash);
    for (uint32_t ref; ck_index_probe_next(&p, &ref);)
        if (key_equal(t, s, f, path, k, ck_row_of(t, ref))) return ref;
    return NO_REF;
}

static __attribute__((noinline)) ck_status insert(ck_table *t, const ck_key_source *s, uint32_t k, uint64_t hash,
                                                  uint32_t *ref) {
    ck_row *row;
    CK_TRY(ck_row_add(t, ref, &row));
    ck_status st = ck_key_set(t, s, k, row);
    if (st == CK_OK) st = ck_index_insert(&t->index, hash, *ref);
    if (st != CK_OK) ck_row_drop(t, *ref);
    return st;
}

/* A key whose candidate is not it: searched to the end, inserted where it is missing. */
static inline __attribute__((always_inline)) ck_status search_or_insert(ck_table *t, const ck_key_source *s,
                                                                        const fast_key *f, ck_key_path path, uint32_t k,
                                                                        ck_row **row, uint8_t *fresh) {
    uint64_t hash = s->keys->hashes[k];
    uint32_t ref = search(t, s, f, path, k, hash);
    if (ref == NO_REF) {
        CK_TRY(insert(t, s, k, hash, &ref));
        fresh[k] = 1;
    }
    return ck_row_writable(t, ref, row);
}

/* Stage three where pages may have to be copied first: pointers are taken anew. */
static inline __attribute__((always_inline)) ck_status finish_run_slowly(ck_table *t, const ck_key_source *s,
                                                                         const fast_key *f, ck_key_path path,
                                                                         uint32_t first, uint32_t n,
                                                                         const candidates *c, ck_row **rows,
                                                                         uint8_t *fresh, uint32_t *done) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = first + i;
        *done = k;
        if (c->row[i] && key_equal(t, s, f, path, k, ck_row_of(t, c->ref[i])))
            CK_TRY(ck_row_writable(t, c->ref[i], &rows[k]));
        else
            CK_TRY(search_or_insert(t, s, f, path, k, &rows[k], fresh));
    }
    return CK_OK;
}

static inline __attribute__((always_inline)) ck_status finish_run(ck_table *t, const ck_key_source *s,
                                                                  const fast_key *f, ck_key_path path, uint32_t first,
                                                                  uint32_t n, bool changes, const geometry *g,
                                                                  const candidates *c, ck_row **rows, uint8_t *fresh,
                                                                  uint32_t *done) {
    uint64_t changed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = first + i;
        ck_row *row = c->row[i];
        if (CK_UNLIKELY(!row || !key_equal(t, s, f, path, k, row))) {
            *done = k;
            CK_TRY(search_or_insert(t, s, f, path, k, &rows[k], fresh)); /* never moves a page: see upsert_loop */
            continue;
        }
        rows[k] = row;
        if (!changes) continue;
        uint64_t *w = changed_word(t, g, c->ref[i]), bit = 1ULL << (c->ref[i] & g->slot_mask & 63);
        changed += (*w & bit) == 0;
        *w |= bit;
    }
    t->changed_now += changed;
    return CK_OK;
}

static inline __attribute__((always_inline)) ck_status upsert_loop(ck_table *t, const ck_key_source *s,
                                                                   ck_key_path path, ck_row **rows, uint8_t *fresh,
                                                                   uint32_t *done) {
    const fast_key f = fast_key_of(s);
    uint32_t n = s->keys->n;
    bool changes = t->epochs->tracking;
    memset(fresh, 0, n);
    candidates c;
    for (uint32_t first = 0; first < n; first += RUN) {
        uint32_t run = n - first < RUN ? n - first : RUN;
        geometry g = geometry_of(t);
        find_candidates(t, &g, s->keys->hashes + first, run, changes, &c);
        /* A search may end at a row of any page, so pages only stay where they are when none is older than the newest
         * live mark: then there is none to copy. */
        if (c.unprepared || t->epochs->live)
            CK_TRY(finish_run_slowly(t, s, &f, path, first, run, &c, rows, fresh, done));
        else
            CK_TRY(finish_run(t, s, &f, path, first, run, changes, &g, &c, rows, fresh, done));
    }
    *done = n;
    return CK_OK;
}

static inline __attribute__((always_inline)) void find_loop(const ck_table *t, const ck_key_source *s, ck_key_path path,
                                                            const ck_row **rows) {
    const fast_key f = fast_key_of(s);
    const uint64_t *hashes = s->keys->hashes;
    const geometry g = geometry_of(t);
    uint32_t n = s->keys->n;
    candidates c;
    for (uint32_t first = 0; first < n; first += RUN) {
        uint32_t run = n - first < RUN ? n - first : RUN;
        find_candidates(t, &g, hashes + first, run, false, &c);
        for (uint32_t i = 0; i < run; i++) {
            uint32_t k = first + i;
            rows[k] = c.row[i];
            if (CK_LIKELY(c.row[i] && key_equal(t, s, &f, path, k, c.row[i]))) continue;
            uint32_t ref = search(t, s, &f, path, k, hashes[k]);
            rows[k] = ref == NO_REF ? NULL : ck_row_of(t, ref);
        }
    }
}

/* The loops, one a path. */
static ck_status upsert_path(ck_table *t, const ck_key_source *s, ck_row **rows, uint8_t *fresh, uint32_t *done) {
    switch (path_of(t, s)) {
    case CK_PATH_NONE: return upsert_loop(t, s, CK_PATH_NONE, rows, fresh, done);
    case CK_PATH_I64: return upsert_loop(t, s, CK_PATH_I64, rows, fresh, done);
    case CK_PATH_STR: return upsert_loop(t, s, CK_PATH_STR, rows, fresh, done);
    case CK_PATH_I64X2: return upsert_loop(t, s, CK_PATH_I64X2, rows, fresh, done);
    case CK_PATH_ANY: break;
    }
    return upsert_loop(t, s, CK_PATH_ANY, rows, fresh, done);
}

static void find_path(const ck_table *t, const ck_key_source *s, const ck_row **rows) {
    switch (path_of(t, s)) {
    case CK_PATH_NONE: find_loop(t, s, CK_PATH_NONE, rows); return;
    case CK_PATH_I64: find_loop(t, s, CK_PATH_I64, rows); return;
    case CK_PATH_STR: find_loop(t, s, CK_PATH_STR, rows); return;
    case CK_PATH_I64X2: find_loop(t, s, CK_PATH_I64X2, rows); return;
    case CK_PATH_ANY: break;
    }
    find_loop(t, s, CK_PATH_ANY, rows);
}

/* Rows this call inserted go again, so that a caller may repeat it. They are in pages of this epoch: nothing is copied.
 */
static void undo_fresh(ck_table *t, ck_row *const *rows, const uint8_t *fresh, uint32_t done) {
    for (uint32_t k = 0; k < done; k++) {
        if (!fresh[k]) continue;
        uint32_t ref = ck_ref_of(t, rows[k]);
        ck_index_erase(&t->index, ck_row_hash(t, rows[k]), ref);
        ck_row_drop(t, ref);
    }
}

static ck_status upsert_failed(ck_table *t, ck_status st, ck_error *err) {
    if (st == CK_FULL)
        return ck_fail(err, CK_FULL,
                       "slot \"%s\": full at %llu rows of %u bytes in one subtask; more parallelism helps",
                       t->shape->schema->slot, (unsigned long long)t->rows, t->shape->row_bytes);
    return ck_nomem(err, t->mem, t->shape->forms[CK_SMALL_PAGES].bytes);
}

ck_status ck_table_upsert(ck_table *t, const ck_keys *keys, ck_row **rows, uint8_t *fresh, ck_error *err) {
    CK_ASSERT(!t->shape->ordered && (t->is_bucket || !t->shape->schema->bucketed));
    ck_table_tidy(t);
    uint8_t own_fresh[CK_BATCH_ROWS_MAX];
    if (!fresh) fresh = own_fresh;
    ck_key_source s;
    uint32_t done = 0;
    ck_status st = ck_key_source_init(&s, t, keys, err);
    if (st == CK_OK) {
        st = upsert_path(t, &s, rows, fresh, &done);
        if (st != CK_OK) {
            undo_fresh(t, rows, fresh, done);
            st = upsert_failed(t, st, err);
        }
    }
    ck_key_source_destroy(&s, t);
    return st;
}

ck_status ck_table_find(ck_table *t, const ck_keys *keys, const ck_row **rows, ck_error *err) {
    CK_ASSERT(!t->shape->ordered && (t->is_bucket || !t->shape->schema->bucketed));
    ck_key_source s;
    ck_status st = ck_key_source_init(&s, t, keys, err);
    if (st == CK_OK) find_path(t, &s, rows);
    ck_key_source_destroy(&s, t);
    return st;
}

ck_status ck_table_touch(ck_table *t, ck_row **row, ck_error *err) {
    return ck_row_writable(t, ck_ref_of(t, *row), row) == CK_OK
               ? CK_OK
               : ck_nomem(err, t->mem, t->shape->forms[CK_SMALL_PAGES].bytes);
}

ck_status ck_table_erase(ck_table *t, ck_row *const *rows, uint32_t n, ck_error *err) {
    CK_ASSERT(!t->shape->ordered);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t ref = ck_ref_of(t, rows[i]);
        if (ck_row_drop_prepare(t, ref) != CK_OK) return ck_nomem(err, t->mem, t->shape->forms[CK_SMALL_PAGES].bytes);
        const ck_row *row = ck_row_of(t, ref);
        ck_log_erase(t, row);
        ck_index_erase(&t->index, ck_row_hash(t, row), ref);
        ck_row_drop(t, ref);
    }
    return CK_OK;
}

ck_status ck_table_single(ck_table *t, bool create, ck_row **row, bool *fresh, ck_error *err) {
    CK_ASSERT(t->shape->key_count == 0 && !t->shape->ordered);
    uint64_t hash = ck_hash_u64(t->seed, 0);
    uint32_t ref;
    if (fresh) *fresh = false;
    if (t->single == 0) {
        ck_index_probe p = ck_index_probe_begin(&t->index, hash);
        if (ck_index_probe_next(&p, &ref)) {
            t->single = ref + 1;
        } else {
            *row = NULL;
            if (!create) return CK_OK;
            ck_status st = ck_row_add(t, &ref, row);
            if (st == CK_OK) {
                st = ck_index_insert(&t->index, hash, ref);
                if (st != CK_OK) ck_row_drop(t, ref);
            }
            if (st != CK_OK) return upsert_failed(t, st, err);
            t->single = ref + 1;
            if (fresh) *fresh = true;
        }
    }
    return ck_row_writable(t, t->single - 1, row) == CK_OK ? CK_OK : ck_nomem(err, t->mem, t->shape->forms[0].bytes);
}
