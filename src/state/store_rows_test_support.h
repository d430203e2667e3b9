/* For store_test.c and conformance_test.c: random operations on slots of single rows, ordered rows and buckets, each held against the model.
 */
#ifndef CK_STATE_STORE_ROWS_TEST_SUPPORT_H
#define CK_STATE_STORE_ROWS_TEST_SUPPORT_H

#include "state/store_world_test_support.h"

typedef struct key_set { /* keys of a batch for the hash calls */
    uint32_t columns[8];
    const ck_type *types[8];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_key_spec spec;
    ck_keys keys;
} key_set;

static const ck_type *type_of(const ck_slot_schema *s, uint32_t i) {
    return i < s->partition_count ? s->partition[i].type : s->order[i - s->partition_count].field.type;
}

static void keys_of(world *w, const ck_slot_schema *s, const ck_batch *b, key_set *k) {
    uint32_t n = 0, all = s->partition_count + (s->hashed || s->bucketed ? s->order_count : 0);
    for (uint32_t i = 0; i < all; i++)
        if (!(s->bucketed && i == s->partition_count)) k->columns[n] = i, k->types[n++] = type_of(s, i);
    k->spec = (ck_key_spec){k->columns, k->types, n};
    ck_key_hash(&k->spec, b, ck_table_seed(w->tables[0]), k->hashes);
    k->keys = (ck_keys){&k->spec, b, k->hashes, b->sel_count};
}

static void set_values(world *w, ck_table *t, uint32_t slot, ck_row *row, const ck_batch *b, uint32_t r) {
    const ck_slot_schema *s = &w->slots[slot];
    uint32_t first = s->partition_count + s->order_count;
    for (uint32_t i = 0; i < s->value_count; i++)
        assert_int_equal(ck_table_set_field(t, row, first + i, b->columns[first + i], r), CK_OK);
}

static void remember(world *w, uint32_t slot, const ck_batch *b, uint32_t r, bool *had) {
    ck_bytes key, value;
    ck_bytes_init(&key, w->own, SIZE_MAX);
    ck_bytes_init(&value, w->own, SIZE_MAX);
    prefixed(w, slot, b, r, &key);
    model_value(&w->slots[slot], b, r, &value);
    *had = model_has(&w->now, ck_bytes_as_view(&key));
    model_put(&w->now, ck_bytes_as_view(&key), ck_bytes_as_view(&value));
    ck_bytes_destroy(&key);
    ck_bytes_destroy(&value);
}

static bool forget(world *w, uint32_t slot, const ck_batch *b, uint32_t r) {
    ck_bytes key;
    ck_bytes_init(&key, w->own, SIZE_MAX);
    prefixed(w, slot, b, r, &key);
    bool had = model_has(&w->now, ck_bytes_as_view(&key));
    model_erase(&w->now, ck_bytes_as_view(&key));
    ck_bytes_destroy(&key);
    return had;
}

/* In a hash table all keys go in one call; the values of a repeated key are those of its last row. */
static void upsert_hash(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    key_set k;
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
    keys_of(w, &w->slots[slot], b, &k);
    assert_int_equal(ck_table_upsert(t, &k.keys, rows, fresh, &err), CK_OK);
    for (uint32_t i = 0; i < b->sel_count; i++) {
        bool had;
        remember(w, slot, b, ck_batch_row(b, i), &had);
        assert_int_equal(fresh[i], !had);
        set_values(w, t, slot, rows[i], b, ck_batch_row(b, i));
    }
}

static int by_pointer(const void *a, const void *b) {
    const ck_row *x = *(ck_row *const *)a, *y = *(ck_row *const *)b;
    return (x > y) - (x < y);
}

static void erase_hash(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    key_set k;
    const ck_row *found[CK_BATCH_ROWS_MAX];
    ck_row *gone[CK_BATCH_ROWS_MAX];
    uint32_t n = 0;
    keys_of(w, &w->slots[slot], b, &k);
    assert_int_equal(ck_table_find(t, &k.keys, found, &err), CK_OK);
    for (uint32_t i = 0; i < b->sel_count; i++)
        if (found[i]) gone[n++] = (ck_row *)(uintptr_t)found[i];
    qsort(gone, n, sizeof *gone, by_pointer);
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < n; i++)
        if (distinct == 0 || gone[i] != gone[distinct - 1]) gone[distinct++] = gone[i];
    uint32_t had = 0;
    for (uint32_t i = 0; i < b->sel_count; i++) had += forget(w, slot, b, ck_batch_row(b, i));
    assert_int_equal(had, distinct);
    assert_int_equal(ck_table_erase(t, gone, distinct, &err), CK_OK);
}

/* Rows are read, some touched and changed through pointers that other touches of the batch made stale. */
static void find_and_touch(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    key_set k;
    const ck_row *found[CK_BATCH_ROWS_MAX];
    keys_of(w, &w->slots[slot], b, &k);
    assert_int_equal(ck_table_find(t, &k.keys, found, &err), CK_OK);
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t r = ck_batch_row(b, i);
        ck_bytes key;
        ck_bytes_init(&key, w->own, SIZE_MAX);
        prefixed(w, slot, b, r, &key);
        assert_int_equal(found[i] != NULL, model_has(&w->now, ck_bytes_as_view(&key)));
        ck_bytes_destroy(&key);
        if (!found[i] || i % 2) continue;
        ck_row *row = (ck_row *)(uintptr_t)found[i];
        bool had;
        assert_int_equal(ck_table_touch(t, &row, &err), CK_OK);
        remember(w, slot, b, r, &had);
        set_values(w, t, slot, row, b, r);
    }
}

static void on_hash(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    uint64_t what = model_below(&w->seed, 10);
    if (what < 6)
        upsert_hash(w, t, slot, b);
    else if (what < 8)
        erase_hash(w, t, slot, b);
    else
        find_and_touch(w, t, slot, b);
}

static void check_order(world *w, ck_table *t, ck_partition p) {
    ck_bytes last, key;
    ck_bytes_init(&last, w->own, SIZE_MAX);
    ck_bytes_init(&key, w->own, SIZE_MAX);
    ck_range r;
    ck_row *row, *first_row = NULL, *last_row = NULL;
    uint64_t n = 0;
    ck_range_open(&r, t, p, (ck_view){0}, (ck_view){0});
    while (ck_range_next(&r, &row)) {
        ck_bytes_clear(&key);
        assert_int_equal(ck_row_order_key(t, row, &key), CK_OK);
        if (n) assert_true(ck_view_cmp(ck_bytes_as_view(&last), ck_bytes_as_view(&key)) < 0);
        ck_bytes_clear(&last);
        assert_int_equal(ck_bytes_view(&last, ck_bytes_as_view(&key)), CK_OK);
        if (!first_row) first_row = row;
        last_row = row;
        n++;
    }
    assert_int_equal(n, ck_partition_rows(t, p));
    assert_true(ck_partition_first(t, p, &row) == (n > 0) && (n == 0 || row == first_row));
    assert_true(ck_partition_last(t, p, &row) == (n > 0) && (n == 0 || row == last_row));
    ck_bytes_destroy(&last);
    ck_bytes_destroy(&key);
}

/* Erases [lo, hi) and the same from the model: the rows of one user key lie side by side there. */
static void erase_range(world *w, ck_table *t, uint32_t slot, ck_partition p, const ck_batch *b, uint32_t r) {
    ck_error err = CK_ERROR_INIT;
    ck_bytes lo, hi;
    ck_bytes_init(&lo, w->own, SIZE_MAX);
    ck_bytes_init(&hi, w->own, SIZE_MAX);
    prefixed(w, slot, b, r, &lo);
    size_t order_at;
    ck_bytes order;
    ck_bytes_init(&order, w->own, SIZE_MAX);
    model_order_key(&w->slots[slot], b, r, &order);
    order_at = lo.n - order.n;
    assert_int_equal(ck_bytes_append(&hi, lo.p, order_at), CK_OK);
    model_order_key(&w->slots[slot], b, (r + 1) % b->row_count, &hi);
    ck_view from = {lo.p + order_at, order.n}, to = {hi.p + order_at, hi.n - order_at};
    uint64_t expected = 0, erased;
    size_t i = model_lower(&w->now, ck_bytes_as_view(&lo));
    while (i < w->now.n) {
        ck_view key = {w->now.e[i].key, w->now.e[i].key_n};
        if (key.n < order_at || memcmp(key.p, lo.p, order_at) != 0 || ck_view_cmp(key, ck_bytes_as_view(&hi)) >= 0)
            break;
        char *copy = model_copy(key);
        model_erase(&w->now, (ck_view){copy, key.n});
        free(copy);
        expected++;
    }
    assert_int_equal(ck_partition_erase_range(t, p, from, to, &erased, &err), CK_OK);
    assert_int_equal(erased, expected);
    ck_bytes_destroy(&lo);
    ck_bytes_destroy(&hi);
    ck_bytes_destroy(&order);
}

/* Erases the last row of the partition of b's row r, and the same from the model. */
static void erase_last(world *w, ck_table *t, uint32_t slot, ck_partition p, const ck_batch *b, uint32_t r) {
    ck_error err = CK_ERROR_INIT;
    ck_row *row;
    ck_bytes key, order;
    ck_bytes_init(&key, w->own, SIZE_MAX);
    ck_bytes_init(&order, w->own, SIZE_MAX);
    prefixed(w, slot, b, r, &key);
    model_order_key(&w->slots[slot], b, r, &order);
    key.n -= order.n;
    assert_true(ck_partition_last(t, p, &row));
    assert_int_equal(ck_row_order_key(t, row, &key), CK_OK);
    assert_true(model_has(&w->now, ck_bytes_as_view(&key)));
    model_erase(&w->now, ck_bytes_as_view(&key));
    assert_int_equal(ck_partition_erase_last(t, p, &err), CK_OK);
    ck_bytes_destroy(&key);
    ck_bytes_destroy(&order);
}

typedef struct waiting_key { /* of a row whose order key is asked for only when it is needed */
    ck_table *table;
    const ck_slot_schema *schema;
    const ck_batch *batch;
    uint32_t row;
    ck_bytes *order;
    int asked;
} waiting_key;

static ck_status whole_key(void *arg, ck_view *key) {
    waiting_key *k = arg;
    assert_int_equal(k->asked++, 0);
    *key = ck_bytes_as_view(k->order);
    return CK_OK;
}

static ck_status fill_row(void *arg, ck_row *row) {
    const waiting_key *k = arg;
    uint32_t first = k->schema->partition_count;
    for (uint32_t i = first; i < first + k->schema->order_count; i++)
        assert_int_equal(ck_table_set_field(k->table, row, i, k->batch->columns[i], k->row), CK_OK);
    return CK_OK;
}

static ck_status upsert_ordered(ck_table *t, ck_partition p, const ck_slot_schema *s, const ck_batch *b, uint32_t r,
                                ck_bytes *order, ck_row **row, bool *fresh) {
    ck_error err = CK_ERROR_INIT;
    waiting_key k = {t, s, b, r, order, 0};
    ck_order_source from = {{order->p, 8}, whole_key, fill_row, &k};
    if (order->n >= 8 && r % 2) return ck_partition_upsert_from(t, p, &from, row, fresh, &err);
    return ck_partition_upsert(t, p, ck_bytes_as_view(order), row, fresh, &err);
}

static void on_ordered(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    key_set k;
    ck_partition p[CK_BATCH_ROWS_MAX];
    ck_bytes order;
    ck_bytes_init(&order, w->own, SIZE_MAX);
    keys_of(w, &w->slots[slot], b, &k);
    bool insert = model_below(&w->seed, 10) < 6;
    assert_int_equal(ck_table_partitions(t, &k.keys, insert, p, &err), CK_OK);
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t r = ck_batch_row(b, i);
        ck_bytes_clear(&order);
        model_order_key(&w->slots[slot], b, r, &order);
        ck_row *row;
        bool fresh, had;
        if (insert) {
            assert_int_equal(upsert_ordered(t, p[i], &w->slots[slot], b, r, &order, &row, &fresh), CK_OK);
            remember(w, slot, b, r, &had);
            assert_int_equal(fresh, !had);
            set_values(w, t, slot, row, b, r);
            if (i == 0) check_order(w, t, p[i]);
            continue;
        }
        /* partitions end with their last row: ask again for each */
        key_set one = k;
        ck_batch *sel = ck_batch_select(b, (const uint16_t[]){(uint16_t)r}, 1);
        keys_of(w, &w->slots[slot], sel, &one);
        assert_int_equal(ck_table_partitions(t, &one.keys, false, p, &err), CK_OK);
        ck_batch_unref(&sel);
        if (!p[0]) {
            assert_false(forget(w, slot, b, r));
        } else if (i % 8 == 7) {
            erase_range(w, t, slot, p[0], b, r);
        } else if (i % 8 == 3) {
            erase_last(w, t, slot, p[0], b, r);
        } else {
            ck_status s = ck_partition_find(t, p[0], ck_bytes_as_view(&order), &row);
            assert_int_equal(s, forget(w, slot, b, r) ? CK_OK : CK_NOTFOUND);
            assert_int_equal(ck_partition_erase(t, p[0], ck_bytes_as_view(&order), &err), CK_OK);
        }
    }
    ck_bytes_destroy(&order);
}

static void assert_same_key(const ck_table *t, const ck_row *row, const ck_table *u, const ck_row *other) {
    const ck_row_layout *l = ck_table_layout(t);
    uint32_t bucket = ck_table_schema(t)->partition_count;
    for (uint32_t i = 0; i < l->value_first; i++) {
        const ck_row_field *f = &l->fields[i];
        bool var = f->phys == CK_PHYS_VIEW || f->phys == CK_PHYS_LIST || f->phys == CK_PHYS_STRUCT;
        if (i == bucket || f->phys == CK_PHYS_NULL) continue;
        assert_int_equal(ck_row_null(row, f->null_bit), ck_row_null(other, f->null_bit));
        if (ck_row_null(row, f->null_bit)) continue;
        size_t width = f->phys == CK_PHYS_BOOL ? 1 : f->phys == CK_PHYS_I128 ? 16 : 8;
        if (var)
            assert_true(ck_view_eq(ck_table_str(t, row, i), ck_table_str(u, other, i)));
        else
            assert_memory_equal(row + f->offset, other + f->offset, width);
    }
}

/* What a bucket has, into one that no mark sees: each key once, and found again. */
static void copy_bucket(ck_table *t, ck_table *one) {
    enum { NOBODYS = 1000 };
    static ck_row *rows[CK_BATCH_ROWS_MAX], *there[CK_BATCH_ROWS_MAX], *again[CK_BATCH_ROWS_MAX];
    static uint8_t fresh[CK_BATCH_ROWS_MAX];
    ck_error err = CK_ERROR_INIT;
    ck_table *copy;
    ck_table_scan scan = {0};
    uint64_t all = 0;
    assert_int_equal(ck_table_bucket(t, NOBODYS, true, &copy, &err), CK_OK);
    for (uint32_t n; (n = ck_table_scan_next(one, &scan, rows, CK_BATCH_ROWS_MAX)) > 0; all += n) {
        assert_true(ck_table_takes_rows(copy, one));
        assert_int_equal(ck_table_upsert_rows(copy, one, rows, n, there, fresh, &err), CK_OK);
        for (uint32_t i = 0; i < n; i++) assert_true(fresh[i]);
        assert_int_equal(ck_table_upsert_rows(copy, one, rows, n, again, fresh, &err), CK_OK);
        for (uint32_t i = 0; i < n; i++) {
            assert_false(fresh[i]);
            assert_ptr_equal(there[i], again[i]);
            assert_same_key(one, rows[i], copy, there[i]);
        }
    }
    assert_int_equal(ck_table_row_count(copy), all);
    assert_int_equal(ck_table_drop_bucket(t, NOBODYS, &err), CK_OK);
}

/* Rows of one bucket at a time; now and then a bucket fires and is dropped. */
static void on_bucketed(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    const ck_column *bucket = b->columns[w->slots[slot].partition_count];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    for (uint32_t r = 0; r < b->row_count;) {
        uint32_t n = 0;
        int64_t at = bucket->i64[r] % 5;
        for (; r < b->row_count && bucket->i64[r] % 5 == at; r++)
            if (bucket->i64[r] == at) sel[n++] = (uint16_t)r; /* the domain has few of these: runs are short */
        ck_table *one;
        if (n == 0) continue;
        assert_int_equal(ck_table_bucket(t, at, true, &one, &err), CK_OK);
        ck_batch *part = ck_batch_select(b, sel, n);
        on_hash(w, one, slot, part);
        ck_batch_unref(&part);
        copy_bucket(t, one);
    }
    int64_t first;
    if (model_below(&w->seed, 6) != 0 || !ck_table_first_bucket(t, INT64_MIN, &first)) return;
    for (size_t i = 0; i < w->now.n;) { /* the bucket stands behind the user key, big-endian, sign flipped */
        const model_entry *e = &w->now.e[i];
        size_t head = 8 + (w->groups <= 128 ? 1 : 2);
        bool mine = e->key_n > head + 11 && memcmp(e->key + head, "slices|", 7) == 0;
        if (mine) {
            const uint8_t *p = (const uint8_t *)e->key + head + 7;
            uint32_t user = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
            uint64_t v = 0;
            for (int j = 0; j < 8; j++) v = v << 8 | p[4 + user + (uint32_t)j];
            mine = (int64_t)(v ^ 1ULL << 63) == first;
        }
        if (!mine) {
            i++;
            continue;
        }
        char *copy = model_copy((ck_view){e->key, e->key_n});
        model_erase(&w->now, (ck_view){copy, e->key_n});
        free(copy);
    }
    assert_int_equal(ck_table_drop_bucket(t, first, &err), CK_OK);
}

#endif
