/* Upsert and find of a batch of keys; the search itself is in find_int.h. The loops are instantiated per kind of key,
 * chosen once a call. */
#include "state/cold_int.h"
#include "state/find_int.h"

/* Into an empty table: the run's keys have no candidates, but those behind it may be the same few. */
enum { FIRST_RUN = 8 };

static __attribute__((noinline)) ck_status insert(ck_table *t, const ck_key_source *s, uint32_t k, uint64_t hash,
                                                  uint32_t *ref) {
    ck_row *row;
    CK_TRY(ck_row_add(t, ref, &row));
    ck_status st = ck_key_set(t, s, k, row);
    if (st == CK_OK) st = ck_key_check(t, row);
    if (st == CK_OK) st = ck_index_insert(&t->index, hash, *ref);
    if (st == CK_OK && t->shape->listed) {
        st = ck_list_link_row(t, *ref);
        if (st != CK_OK) ck_index_erase(&t->index, hash, *ref);
    }
    if (st != CK_OK) ck_row_drop(t, *ref);
    return st;
}

void ck_table_leave_indexes(ck_table *t, uint32_t ref, const ck_row *row) {
    if (t->shape->listed) ck_list_unlink_row(t, ref);
    if (!t->shape->listed || t->shape->schema->hashed || !t->lists_ready)
        ck_index_erase(&t->index, ck_row_hash(t, row), ref);
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
            ck_status st =
                search_or_insert(t, s, f, path, k, &rows[k], fresh); /* never moves a page: see upsert_loop */
            if (CK_LIKELY(st == CK_OK)) continue;
            t->changed_now += changed;
            return st;
        }
        rows[k] = row;
        if (!changes) continue;
        uint64_t *w = changed_word(t, g, c->ref[i], row), bit = 1ULL << (c->ref[i] & g->slot_mask & 63);
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
    for (uint32_t first = 0, run; first < n; first += run) {
        uint32_t most = t->rows ? RUN : FIRST_RUN;
        run = n - first < most ? n - first : most;
        geometry g = geometry_of(t);
        candidates_of(t, s->index, &g, s->keys->hashes + first, run, changes, &c);
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
        candidates_of(t, s->index, &g, hashes + first, run, false, &c);
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
    switch (path_of(s)) {
    case CK_PATH_NONE: return upsert_loop(t, s, CK_PATH_NONE, rows, fresh, done);
    case CK_PATH_I64: return upsert_loop(t, s, CK_PATH_I64, rows, fresh, done);
    case CK_PATH_STR: return upsert_loop(t, s, CK_PATH_STR, rows, fresh, done);
    case CK_PATH_I64X2: return upsert_loop(t, s, CK_PATH_I64X2, rows, fresh, done);
    case CK_PATH_PAIR: return upsert_loop(t, s, CK_PATH_PAIR, rows, fresh, done);
    case CK_PATH_ANY: break;
    }
    return upsert_loop(t, s, CK_PATH_ANY, rows, fresh, done);
}

void ck_table_find_keys(const ck_table *t, const ck_key_source *s, const ck_row **rows) {
    switch (path_of(s)) {
    case CK_PATH_NONE: find_loop(t, s, CK_PATH_NONE, rows); return;
    case CK_PATH_I64: find_loop(t, s, CK_PATH_I64, rows); return;
    case CK_PATH_STR: find_loop(t, s, CK_PATH_STR, rows); return;
    case CK_PATH_I64X2: find_loop(t, s, CK_PATH_I64X2, rows); return;
    case CK_PATH_PAIR: find_loop(t, s, CK_PATH_PAIR, rows); return;
    case CK_PATH_ANY: break;
    }
    find_loop(t, s, CK_PATH_ANY, rows);
}

/* They are in pages of this epoch: nothing is copied. */
void ck_table_undo_fresh(ck_table *t, ck_row *const *rows, const uint8_t *fresh, uint32_t done) {
    for (uint32_t k = 0; k < done; k++) {
        if (!fresh[k]) continue;
        uint32_t ref = ck_ref_of(t, rows[k]);
        ck_table_leave_indexes(t, ref, rows[k]);
        ck_row_drop(t, ref);
    }
}

ck_status ck_upsert_failed(ck_table *t, ck_status st, const ck_keys *keys, uint32_t k, ck_error *err) {
    if (st == CK_DATA) {
        ck_fail(err, st, "slot \"%s\": a key of over %d bytes, and no checkpoint holds one", t->shape->schema->slot,
                CK_KEY_BYTES_MAX);
        ck_batch_place(keys->batch, ck_batch_row(keys->batch, k), err);
        return st;
    }
    if (t->cold && ck_cold_check(t->cold, NULL) != CK_OK) return ck_cold_check(t->cold, err);
    if (st == CK_FULL)
        return ck_fail(err, CK_FULL,
                       "slot \"%s\": full at %llu rows of %u bytes in one subtask; more parallelism helps",
                       t->shape->schema->slot, (unsigned long long)t->rows, t->shape->row_bytes);
    return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
}

ck_status ck_table_upsert(ck_table *t, const ck_keys *keys, ck_row **rows, uint8_t *fresh, ck_error *err) {
    CK_ASSERT(!t->shape->ordered && (t->is_bucket || !t->shape->schema->bucketed));
    CK_ASSERT(!t->shape->listed || t->shape->schema->hashed);
    if (t->shape->listed && ck_lists_resume(t) != CK_OK) return ck_upsert_failed(t, CK_NOMEM, NULL, 0, err);
    if (CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring(t, keys, false, err));
    ck_table_tidy(t);
    uint8_t own_fresh[CK_BATCH_ROWS_MAX];
    if (!fresh) fresh = own_fresh;
    ck_key_source s;
    uint32_t done = 0;
    ck_status st = ck_key_source_init(&s, t, keys, false, err);
    if (st == CK_OK) {
        st = upsert_path(t, &s, rows, fresh, &done);
        if (st != CK_OK) {
            ck_table_undo_fresh(t, rows, fresh, done);
            st = ck_upsert_failed(t, st, keys, done, err);
        } else {
            ck_ttl_written(t, rows, keys->n);
        }
    }
    ck_key_source_destroy(&s, t);
    return st;
}

ck_status ck_table_find(ck_table *t, const ck_keys *keys, const ck_row **rows, ck_error *err) {
    CK_ASSERT(!t->shape->ordered && (t->is_bucket || !t->shape->schema->bucketed));
    CK_ASSERT(!t->shape->listed || t->shape->schema->hashed);
    if (CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring(t, keys, false, err));
    ck_key_source s;
    ck_status st = ck_key_source_init(&s, t, keys, false, err);
    if (st == CK_OK) ck_table_find_keys(t, &s, rows);
    ck_key_source_destroy(&s, t);
    return st;
}

ck_status ck_table_touch(ck_table *t, ck_row **row, ck_error *err) {
    if (ck_row_writable(t, ck_ref_of(t, *row), row) != CK_OK)
        return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
    ck_ttl_written(t, row, 1);
    return CK_OK;
}

ck_status ck_table_touch_rows(ck_table *t, ck_row **rows, uint32_t n, ck_error *err) {
    uint32_t refs[CK_BATCH_ROWS_MAX];
    CK_ASSERT(n <= CK_BATCH_ROWS_MAX);
    for (uint32_t i = 0; i < n; i++) refs[i] = ck_ref_of(t, rows[i]);
    for (uint32_t i = 0; i < n; i++)
        if (ck_row_writable(t, refs[i], &rows[i]) != CK_OK)
            return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = ck_row_of(t, refs[i]); /* a later one may have moved an earlier one's page */
    ck_ttl_written(t, rows, n);
    return CK_OK;
}

ck_status ck_table_erase(ck_table *t, ck_row *const *rows, uint32_t n, ck_error *err) {
    CK_ASSERT(!t->shape->ordered);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t ref = ck_ref_of(t, rows[i]);
        if (ck_row_drop_prepare(t, ref) != CK_OK) return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
        const ck_row *row = ck_row_of(t, ref);
        ck_log_erase(t, row);
        ck_table_leave_indexes(t, ref, row);
        ck_row_drop(t, ref);
    }
    return CK_OK;
}

ck_status ck_table_single(ck_table *t, bool create, ck_row **row, bool *fresh, ck_error *err) {
    CK_ASSERT(t->shape->key_count == 0 && !t->shape->ordered);
    uint64_t hash = ck_hash_u64(t->seed, 0);
    uint32_t ref;
    if (fresh) *fresh = false;
    if (t->single == 0 && CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring_single(t, err));
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
            if (st != CK_OK) return ck_upsert_failed(t, st, NULL, 0, err);
            t->single = ref + 1;
            if (fresh) *fresh = true;
        }
    }
    if (ck_row_writable(t, t->single - 1, row) != CK_OK) return ck_table_nomem(t, t->shape->forms[0].bytes, err);
    ck_ttl_written(t, row, 1);
    return CK_OK;
}
