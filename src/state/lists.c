/* Slots with `listed`: the rows of a partition in a list, found through an index of lists by the partition fields. The
 * links stand in the extra bytes of the rows. Marks never read them, so they are written in place whatever page a row
 * is in: a copy of the page takes them along.
 *
 * A restore finds rows by their whole key. Meanwhile lists are suspended; the first who asks has them made again. */
#include "state/cold_int.h"
#include "state/find_int.h"

enum { SCAN_ROWS = 256 };

static ck_list_link link_load(const ck_table *t, uint32_t ref) {
    ck_list_link l;
    memcpy(&l, ck_row_of(t, ref) + t->shape->extra_at, sizeof l);
    return l;
}

static void link_store(const ck_table *t, uint32_t ref, ck_list_link l) {
    memcpy(ck_row_of(t, ref) + t->shape->extra_at, &l, sizeof l);
}

static void set_prev(const ck_table *t, uint32_t ref, uint32_t prev) {
    memcpy(ck_row_of(t, ref) + t->shape->extra_at + offsetof(ck_list_link, prev), &prev, sizeof prev);
}

static void set_next(const ck_table *t, uint32_t ref, uint32_t next) {
    memcpy(ck_row_of(t, ref) + t->shape->extra_at + offsetof(ck_list_link, next), &next, sizeof next);
}

/* The first row stays first, so that neither the index nor whoever has just looked it up learns of the new one. */
static inline void link_behind(const ck_table *t, uint32_t head, uint32_t ref) {
    uint32_t next = link_load(t, head).next;
    link_store(t, ref, (ck_list_link){next, head + 1});
    if (next) set_prev(t, next - 1, ref + 1);
    set_next(t, head, ref + 1);
}

static bool same_list(const ck_table *t, const ck_row *a, const ck_row *b) {
    for (uint32_t i = 0; i < t->shape->partition_count; i++) {
        const ck_shape_field *f = &t->shape->fields[i];
        bool x = ck_row_null(a, f->null_bit), y = ck_row_null(b, f->null_bit);
        if (x != y) return false;
        if (x) continue;
        bool same = ck_phys_is_var(f->phys) ? ck_view_eq(ck_var_get(t, a, f->offset), ck_var_get(t, b, f->offset))
                                            : memcmp(a + f->offset, b + f->offset, f->width) == 0;
        if (!same) return false;
    }
    return true;
}

static ck_status link_row(ck_table *t, uint32_t ref) {
    const ck_row *row = ck_row_of(t, ref);
    uint64_t hash = ck_row_list_hash(t, row);
    ck_index_probe p = ck_index_probe_begin(&t->lists, hash);
    for (uint32_t head; ck_index_probe_next(&p, &head);) {
        if (!same_list(t, row, ck_row_of(t, head))) continue;
        link_behind(t, head, ref);
        return CK_OK;
    }
    return ck_index_insert(&t->lists, hash, ref);
}

uint32_t ck_list_of_loose(ck_table *t, const ck_loose_row *l) {
    if (!t->lists_ready) return 0;
    ck_index_probe p = ck_index_probe_begin(&t->lists, ck_loose_list_hash(t, l));
    for (uint32_t head; ck_index_probe_next(&p, &head);)
        if (ck_loose_list_equal(t, l, ck_row_of(t, head))) return head + 1;
    return 0;
}

ck_status ck_list_link_row(ck_table *t, uint32_t ref) { return t->lists_ready ? link_row(t, ref) : CK_OK; }

void ck_list_unlink_row(ck_table *t, uint32_t ref) {
    if (!t->lists_ready) return;
    ck_list_link l = link_load(t, ref);
    if (l.next) set_prev(t, l.next - 1, l.prev);
    if (l.prev) {
        set_next(t, l.prev - 1, l.next);
        return;
    }
    uint64_t hash = ck_row_list_hash(t, ck_row_of(t, ref));
    if (l.next)
        ck_index_replace(&t->lists, hash, ref, l.next - 1);
    else
        ck_index_erase(&t->lists, hash, ref);
}

/* ---- suspended, and made again ---- */

static void clear_links(ck_table *t) {
    uint64_t at_row = 0;
    ck_row *rows[SCAN_ROWS];
    for (uint32_t n; (n = ck_table_scan_pages(t, &at_row, rows, SCAN_ROWS)) > 0;)
        for (uint32_t i = 0; i < n; i++) memset(rows[i] + t->shape->extra_at, 0, sizeof(ck_list_link));
}

static ck_status index_all(ck_table *t) {
    CK_TRY(ck_index_init(&t->index, t->epochs->pool, t->mem, ck_table_hash_refs, t));
    uint64_t at_row = 0;
    ck_row *rows[SCAN_ROWS];
    for (uint32_t n; (n = ck_table_scan_pages(t, &at_row, rows, SCAN_ROWS)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            CK_TRY(ck_index_insert(&t->index, ck_row_hash(t, rows[i]), ck_ref_of(t, rows[i])));
    return CK_OK;
}

ck_status ck_lists_suspend(ck_table *t) {
    if (!t->lists_ready) return CK_OK;
    if (t->borrowed) CK_TRY(ck_cold_settle(t));
    if (!t->shape->schema->hashed && index_all(t) != CK_OK) {
        ck_index_destroy(&t->index);
        return CK_NOMEM;
    }
    clear_links(t);
    ck_index_destroy(&t->lists);
    t->lists_ready = false;
    return CK_OK;
}

static ck_status link_all(ck_table *t) {
    CK_TRY(ck_index_init(&t->lists, t->epochs->pool, t->mem, ck_table_list_hash_refs, t));
    bool numbered = !t->shape->schema->hashed;
    uint32_t at = t->shape->fields[t->shape->partition_count].offset;
    uint64_t at_row = 0;
    ck_row *rows[SCAN_ROWS];
    for (uint32_t n; (n = ck_table_scan_pages(t, &at_row, rows, SCAN_ROWS)) > 0;)
        for (uint32_t i = 0; i < n; i++) {
            CK_TRY(link_row(t, ck_ref_of(t, rows[i])));
            if (numbered && ck_row_i64(rows[i], at) >= t->next_number) t->next_number = ck_row_i64(rows[i], at) + 1;
        }
    return CK_OK;
}

ck_status ck_lists_resume(ck_table *t) {
    if (t->lists_ready) return CK_OK;
    if (t->out_rows) CK_TRY(ck_cold_evict_all(t)); /* a list is in memory whole, or not at all */
    if (link_all(t) != CK_OK) {
        ck_index_destroy(&t->lists);
        clear_links(t);
        return CK_NOMEM;
    }
    if (!t->shape->schema->hashed) ck_index_destroy(&t->index);
    t->lists_ready = true;
    return CK_OK;
}

/* ---- a batch ---- */

static ck_status add_one(ck_table *t, const ck_key_source *s, uint32_t k, uint32_t head, ck_row **out) {
    uint32_t ref;
    CK_TRY(ck_row_add(t, &ref, out));
    ck_status st = ck_key_set(t, s, k, *out);
    if (st == CK_OK) st = ck_key_check(t, *out);
    if (st == CK_OK && head == NO_REF) st = ck_index_insert(&t->lists, s->keys->hashes[k], ref);
    if (st != CK_OK) {
        ck_row_drop(t, ref);
        return st;
    }
    if (head != NO_REF) link_behind(t, head, ref);
    ck_row_set_i64(*out, t->shape->fields[t->shape->partition_count].offset, t->next_number++);
    return CK_OK;
}

static inline __attribute__((always_inline)) uint32_t head_of(const ck_table *t, const ck_key_source *s,
                                                              const fast_key *f, ck_key_path path, uint32_t k,
                                                              const candidates *c, uint32_t i) {
    if (CK_LIKELY(c->row[i] && key_equal(t, s, f, path, k, c->row[i]))) return c->ref[i];
    return search(t, s, f, path, k, s->keys->hashes[k]);
}

static inline __attribute__((always_inline)) ck_status add_loop(ck_table *t, const ck_key_source *s, ck_key_path path,
                                                                ck_row **rows, uint32_t *done) {
    const fast_key f = fast_key_of(s);
    candidates c;
    for (uint32_t first = 0; first < s->keys->n; first += RUN) {
        uint32_t run = s->keys->n - first < RUN ? s->keys->n - first : RUN;
        geometry g = geometry_of(t);
        candidates_of(t, s->index, &g, s->keys->hashes + first, run, false, &c);
        for (uint32_t i = 0; i < run; i++) {
            *done = first + i;
            CK_TRY(add_one(t, s, first + i, head_of(t, s, &f, path, first + i, &c, i), &rows[first + i]));
        }
    }
    *done = s->keys->n;
    return CK_OK;
}

static inline __attribute__((always_inline)) void heads_loop(const ck_table *t, const ck_key_source *s,
                                                             ck_key_path path, ck_list *heads) {
    const fast_key f = fast_key_of(s);
    const geometry g = geometry_of(t);
    candidates c;
    for (uint32_t first = 0; first < s->keys->n; first += RUN) {
        uint32_t run = s->keys->n - first < RUN ? s->keys->n - first : RUN;
        candidates_of(t, s->index, &g, s->keys->hashes + first, run, false, &c);
        for (uint32_t i = 0; i < run; i++)
            heads[first + i] = head_of(t, s, &f, path, first + i, &c, i) + 1; /* NO_REF + 1 is 0 */
    }
}

static ck_status add_path(ck_table *t, const ck_key_source *s, ck_row **rows, uint32_t *done) {
    switch (path_of(s)) {
    case CK_PATH_NONE: return add_loop(t, s, CK_PATH_NONE, rows, done);
    case CK_PATH_I64: return add_loop(t, s, CK_PATH_I64, rows, done);
    case CK_PATH_STR: return add_loop(t, s, CK_PATH_STR, rows, done);
    case CK_PATH_I64X2: return add_loop(t, s, CK_PATH_I64X2, rows, done);
    case CK_PATH_PAIR: return add_loop(t, s, CK_PATH_PAIR, rows, done);
    case CK_PATH_ANY: break;
    }
    return add_loop(t, s, CK_PATH_ANY, rows, done);
}

static void heads_path(const ck_table *t, const ck_key_source *s, ck_list *heads) {
    switch (path_of(s)) {
    case CK_PATH_NONE: heads_loop(t, s, CK_PATH_NONE, heads); return;
    case CK_PATH_I64: heads_loop(t, s, CK_PATH_I64, heads); return;
    case CK_PATH_STR: heads_loop(t, s, CK_PATH_STR, heads); return;
    case CK_PATH_I64X2: heads_loop(t, s, CK_PATH_I64X2, heads); return;
    case CK_PATH_PAIR: heads_loop(t, s, CK_PATH_PAIR, heads); return;
    case CK_PATH_ANY: break;
    }
    heads_loop(t, s, CK_PATH_ANY, heads);
}

ck_status ck_table_list_add(ck_table *t, const ck_keys *keys, ck_row **rows, ck_error *err) {
    CK_ASSERT(t->shape->listed && !t->shape->schema->hashed);
    ck_key_source s;
    uint32_t done = 0;
    ck_status st = ck_lists_resume(t);
    if (st != CK_OK) return ck_upsert_failed(t, st, NULL, 0, err);
    if (CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring(t, keys, true, err));
    ck_table_tidy(t);
    st = ck_key_source_init(&s, t, keys, true, err);
    if (st == CK_OK) {
        st = add_path(t, &s, rows, &done);
        if (st != CK_OK) {
            for (uint32_t k = 0; k < done; k++) {
                uint32_t ref = ck_ref_of(t, rows[k]);
                ck_list_unlink_row(t, ref);
                ck_row_drop(t, ref);
            }
            st = ck_upsert_failed(t, st, keys, done, err);
        } else {
            ck_ttl_written(t, rows, keys->n);
        }
    }
    ck_key_source_destroy(&s, t);
    return st;
}

ck_status ck_table_lists(ck_table *t, const ck_keys *keys, ck_list *heads, ck_error *err) {
    CK_ASSERT(t->shape->listed);
    ck_key_source s;
    ck_status st = ck_lists_resume(t);
    if (st != CK_OK) return ck_upsert_failed(t, st, NULL, 0, err);
    if (CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring(t, keys, true, err));
    st = ck_key_source_init(&s, t, keys, true, err);
    if (st == CK_OK) heads_path(t, &s, heads);
    ck_key_source_destroy(&s, t);
    return st;
}

uint32_t ck_table_walk_lists(const ck_table *t, const ck_list *heads, uint32_t n, ck_list_walk *w, uint16_t *key_of,
                             ck_row **rows, uint32_t max) {
    uint32_t count = 0, link_at = t->shape->extra_at;
    while (w->key < n && count < max) {
        ck_list at = w->next ? w->next : heads[w->key];
        while (at && count < max) {
            ck_row *row = ck_row_of(t, at - 1);
            memcpy(&at, row + link_at, sizeof at);
            if (at) __builtin_prefetch(ck_row_of(t, at - 1));
            rows[count] = row;
            key_of[count++] = (uint16_t)w->key;
        }
        w->next = at;
        w->key += at == 0;
    }
    return count;
}
