/* Upsert with keys that stand in rows of another table: a group of one bucket in another bucket of its slot. Nothing is
 * made per call, so that putting few groups from bucket to bucket costs what it costs per group. */
#include "state/find_int.h"

bool ck_table_takes_rows(const ck_table *t, const ck_table *from) {
    const ck_shape *a = t->shape, *b = from->shape;
    if (t->out_rows || a->ordered || a->listed || b->listed) return false;
    if (a == b) return true;
    bool same = a->key_count == b->key_count && t->seed == from->seed;
    for (uint32_t i = 0; same && i < a->key_count; i++) {
        const ck_shape_field *f = &a->fields[a->key_fields[i]], *g = &b->fields[b->key_fields[i]];
        same = f->offset == g->offset && f->null_bit == g->null_bit && ck_type_eq(f->type, g->type);
    }
    return same;
}

/* Length and the first four bytes stand in front, short strings whole. */
static inline bool same_text(const ck_table *t, const ck_row *row, const ck_table *from, const ck_row *key,
                             uint32_t offset) {
    if (memcmp(row + offset, key + offset, 8) != 0) return false;
    if (ck_row_ref(row, offset).length <= CK_STRVIEW_INLINE) return memcmp(row + offset, key + offset, 16) == 0;
    return ck_view_eq(ck_var_get(t, row, offset), ck_var_get(from, key, offset));
}

/* Stored keys are canonical: bytes decide. */
static bool same_fields(const ck_table *t, const ck_row *row, const ck_table *from, const ck_row *key) {
    const ck_shape *s = t->shape;
    for (uint32_t i = 0; i < s->key_count; i++) {
        const ck_shape_field *f = &s->fields[s->key_fields[i]];
        bool null = ck_row_null(row, f->null_bit);
        if (null != ck_row_null(key, f->null_bit)) return false;
        if (null) continue;
        if (ck_phys_is_var(f->phys) ? !same_text(t, row, from, key, f->offset)
                                    : memcmp(row + f->offset, key + f->offset, f->width) != 0)
            return false;
    }
    return true;
}

static inline bool same_key(const ck_table *t, const ck_row *row, const ck_table *from, const ck_row *key) {
    const ck_shape *s = t->shape;
    if (s->path != CK_PATH_I64) return same_fields(t, row, from, key);
    const ck_shape_field *f = &s->fields[s->key_fields[0]];
    return ck_row_i64(row, f->offset) == ck_row_i64(key, f->offset) &&
           ck_row_null(row, f->null_bit) == ck_row_null(key, f->null_bit);
}

static ck_status set_key(ck_table *t, ck_row *row, const ck_table *from, const ck_row *key) {
    const ck_shape *s = t->shape;
    if (t->is_bucket) ck_row_set_i64(row, s->fields[s->partition_count].offset, t->bucket);
    for (uint32_t i = 0; i < s->key_count; i++) {
        const ck_shape_field *f = &s->fields[s->key_fields[i]];
        if (ck_row_null(key, f->null_bit))
            ck_row_set_null(row, f->null_bit, true);
        else if (ck_phys_is_var(f->phys))
            CK_TRY(ck_var_set(t, row, f, ck_var_get(from, key, f->offset)));
        else
            memcpy(row + f->offset, key + f->offset, f->width);
    }
    return CK_OK;
}

static __attribute__((noinline)) ck_status insert(ck_table *t, const ck_table *from, const ck_row *key, uint64_t hash,
                                                  uint32_t *ref) {
    ck_row *row;
    CK_TRY(ck_row_add(t, ref, &row));
    ck_status st = set_key(t, row, from, key);
    if (st == CK_OK) st = ck_index_insert(&t->index, hash, *ref);
    if (st != CK_OK) ck_row_drop(t, *ref);
    return st;
}

static void hash_keys(const ck_table *from, ck_row *const *keys, uint32_t n, uint64_t *hashes) {
    const ck_shape *s = from->shape;
    if (s->path != CK_PATH_I64) {
        for (uint32_t i = 0; i < n; i++) hashes[i] = ck_row_hash(from, keys[i]);
        return;
    }
    const ck_shape_field *f = &s->fields[s->key_fields[0]];
    for (uint32_t i = 0; i < n; i++)
        hashes[i] = ck_row_null(keys[i], f->null_bit) ? ck_value_hash_null(from->seed)
                                                      : ck_value_hash_i64(from->seed, ck_row_i64(keys[i], f->offset));
}

static uint32_t search_row(const ck_table *t, const ck_table *from, const ck_row *key, uint64_t hash) {
    ck_index_probe p = ck_index_probe_begin(&t->index, hash);
    for (uint32_t ref; ck_index_probe_next(&p, &ref);)
        if (same_key(t, ck_row_of(t, ref), from, key)) return ref;
    return NO_REF;
}

/* A run of at most RUN. Pages that are written to are private from then on: no row of this call moves any more. */
static ck_status upsert_run(ck_table *t, const ck_table *from, ck_row *const *keys, uint32_t n, ck_row **rows,
                            uint8_t *fresh, uint32_t *done) {
    uint64_t hashes[RUN];
    candidates c;
    const geometry g = geometry_of(t);
    hash_keys(from, keys, n, hashes);
    candidates_of(t, &t->index, &g, hashes, n, false, &c);
    for (uint32_t i = 0; i < n; i++, ++*done) {
        uint32_t ref = c.ref[i];
        if (!c.row[i] || !same_key(t, ck_row_of(t, ref), from, keys[i])) ref = search_row(t, from, keys[i], hashes[i]);
        if (ref == NO_REF) {
            CK_TRY(insert(t, from, keys[i], hashes[i], &ref));
            fresh[i] = 1;
        }
        CK_TRY(ck_row_writable(t, ref, &rows[i]));
    }
    return CK_OK;
}

ck_status ck_table_upsert_rows(ck_table *t, const ck_table *from, ck_row *const *keys, uint32_t n, ck_row **rows,
                               uint8_t *fresh, ck_error *err) {
    uint8_t own_fresh[CK_BATCH_ROWS_MAX];
    uint32_t done = 0;
    ck_status s = CK_OK;
    CK_ASSERT(t != from && n <= CK_BATCH_ROWS_MAX && ck_table_takes_rows(t, from));
    if (!fresh) fresh = own_fresh;
    memset(fresh, 0, n);
    ck_table_tidy(t);
    for (uint32_t first = 0; s == CK_OK && first < n; first += RUN) {
        uint32_t run = n - first < RUN ? n - first : RUN;
        s = upsert_run(t, from, keys + first, run, rows + first, fresh + first, &done);
    }
    if (s == CK_OK) return CK_OK;
    ck_table_undo_fresh(t, rows, fresh, done);
    return ck_upsert_failed(t, s, NULL, 0, err); /* the keys were in state before */
}
