/* For store_test.c: random operations on lists, walks over whole tables, and which operation comes next. */
#ifndef CK_STATE_STORE_LISTS_TEST_SUPPORT_H
#define CK_STATE_STORE_LISTS_TEST_SUPPORT_H

#include "state/store_rows_test_support.h"

/* ---- lists ---- */

typedef struct list_rows {
    key_set keys;
    ck_list heads[CK_BATCH_ROWS_MAX];
    uint16_t key_of[CK_BATCH_ROWS_MAX];
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint32_t n;
} list_rows;

/* All rows of the lists of the batch's keys, in small pieces. */
static void walk(world *w, ck_table *t, uint32_t slot, const ck_batch *b, list_rows *l) {
    ck_error err = CK_ERROR_INIT;
    ck_slot_schema partition = w->slots[slot];
    partition.order_count = 0;
    keys_of(w, &partition, b, &l->keys);
    assert_int_equal(ck_table_lists(t, &l->keys.keys, l->heads, &err), CK_OK);
    ck_list_walk at = {0};
    l->n = 0;
    for (uint32_t n, most = 1; l->n + most < CK_BATCH_ROWS_MAX; l->n += n, most = most % 7 + 1)
        if ((n = ck_table_walk_lists(t, l->heads, b->sel_count, &at, l->key_of + l->n, l->rows + l->n, most)) == 0)
            return;
    l->n = 0; /* too many to be looked at */
}

/* The rows as a batch of the slot's columns. */
static ck_batch *rows_batch(world *w, ck_table *t, uint32_t slot, ck_row *const *rows, uint32_t n) {
    const ck_slot_schema *s = &w->slots[slot];
    uint32_t width = s->partition_count + s->order_count + s->value_count;
    ck_batch *b = ck_batch_new(w->own, width, n, false, false);
    for (uint32_t i = 0; i < width; i++) {
        const ck_type *type = i < s->partition_count + s->order_count
                                  ? type_of(s, i)
                                  : s->values[i - s->partition_count - s->order_count].type;
        ck_column_builder cb;
        assert_int_equal(ck_column_builder_init(&cb, w->own, type, n), CK_OK);
        assert_int_equal(ck_table_gather_field(t, (const ck_row *const *)rows, n, i, &cb), CK_OK);
        ck_column *c = ck_column_builder_finish(&cb);
        ck_batch_set_column(b, i, &c);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

static size_t model_rows_of_list(world *w, uint32_t slot, const ck_batch *b, uint32_t row) {
    const ck_slot_schema *s = &w->slots[slot];
    ck_bytes key, user;
    ck_bytes_init(&key, w->own, SIZE_MAX);
    ck_bytes_init(&user, w->own, SIZE_MAX);
    prefixed(w, slot, b, row, &key);
    model_user_key(s, b, row, &user);
    ck_view list = {key.p, 8 + (w->groups <= 128 ? 1u : 2u) + strlen(s->slot) + 1 + 4 + user.n};
    size_t first = model_lower(&w->now, list), n = 0;
    while (first + n < w->now.n && w->now.e[first + n].key_n >= list.n &&
           memcmp(w->now.e[first + n].key, list.p, list.n) == 0)
        n++;
    ck_bytes_destroy(&key);
    ck_bytes_destroy(&user);
    return n;
}

static void check_lists(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    static list_rows l;
    walk(w, t, slot, b, &l);
    if (l.n == 0) return;
    ck_batch *found = rows_batch(w, t, slot, l.rows, l.n);
    for (uint32_t k = 0, i = 0; k < b->sel_count; k++) {
        size_t n = 0;
        for (; i < l.n && l.key_of[i] == k; i++, n++)
            for (uint32_t c = 0; c < w->slots[slot].partition_count; c++)
                assert_true(ck_column_rows_equal(found->columns[c], i, b->columns[c], ck_batch_row(b, k)));
        assert_int_equal(n, model_rows_of_list(w, slot, b, ck_batch_row(b, k)));
    }
    ck_batch_unref(&found);
}

static void list_add(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    static list_rows l;
    ck_error err = CK_ERROR_INIT;
    ck_slot_schema partition = w->slots[slot];
    partition.order_count = 0;
    keys_of(w, &partition, b, &l.keys);
    assert_int_equal(ck_table_list_add(t, &l.keys.keys, l.rows, &err), CK_OK);
    uint32_t number = w->slots[slot].partition_count, at = ck_table_layout(t)->fields[number].offset;
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t r = ck_batch_row(b, i);
        bool had;
        b->columns[number]->i64[r] = ck_row_i64(l.rows[i], at);
        remember(w, slot, b, r, &had);
        assert_false(had);
        set_values(w, t, slot, l.rows[i], b, r);
    }
}

static void list_change(world *w, ck_table *t, uint32_t slot, const ck_batch *b, bool erase) {
    static list_rows l;
    ck_error err = CK_ERROR_INIT;
    walk(w, t, slot, b, &l);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l.n; i += 2) l.rows[n++] = l.rows[i];
    qsort(l.rows, n, sizeof *l.rows, by_pointer);
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < n; i++)
        if (distinct == 0 || l.rows[i] != l.rows[distinct - 1]) l.rows[distinct++] = l.rows[i];
    if (distinct == 0) return;
    ck_batch *rows = rows_batch(w, t, slot, l.rows, distinct);
    if (erase) {
        for (uint32_t i = 0; i < distinct; i++) assert_true(forget(w, slot, rows, i));
        assert_int_equal(ck_table_erase(t, l.rows, distinct, &err), CK_OK);
    } else {
        assert_int_equal(ck_table_touch_rows(t, l.rows, distinct, &err), CK_OK);
        uint32_t value = w->slots[slot].partition_count + w->slots[slot].order_count;
        for (uint32_t i = 0; i < distinct; i++) {
            for (uint32_t c = value; c < rows->column_count; c++) ck_column_unref(&rows->columns[c]);
            for (uint32_t c = value; c < rows->column_count; c++) rows->columns[c] = ck_column_ref(b->columns[c]);
        }
        for (uint32_t i = 0; i < distinct && i < b->row_count; i++) {
            bool had;
            remember(w, slot, rows, i, &had);
            assert_true(had);
            set_values(w, t, slot, l.rows[i], rows, i);
        }
    }
    ck_batch_unref(&rows);
}

static void on_numbered(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    uint64_t what = model_below(&w->seed, 10);
    if (what < 5)
        list_add(w, t, slot, b);
    else
        list_change(w, t, slot, b, what < 8);
}

/* ---- walks ---- */

/* Some of a piece's rows are erased (not of ordered slots), some get the values of other rows. */
static void change_piece(world *w, ck_table *t, uint32_t slot, ck_row **rows, ck_batch *b, uint32_t n) {
    const ck_slot_schema *s = &w->slots[slot];
    ck_error err = CK_ERROR_INIT;
    ck_row *gone[64];
    uint32_t gone_count = 0;
    ck_batch *other = model_batch(w->own, s, n, w->domain, &w->seed);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t what = model_below(&w->seed, 8);
        bool had;
        if (what == 0 && (!s->order_count || s->hashed || s->listed || s->bucketed)) {
            gone[gone_count++] = rows[i];
            assert_true(forget(w, slot, b, i));
        } else if (what == 1) {
            for (uint32_t c = s->partition_count + s->order_count; c < b->column_count; c++) {
                ck_column_unref(&b->columns[c]);
                b->columns[c] = ck_column_ref(other->columns[c]);
            }
            remember(w, slot, b, i, &had);
            assert_true(had);
            assert_int_equal(ck_table_touch_rows(t, &rows[i], 1, &err), CK_OK);
            set_values(w, t, slot, rows[i], b, i);
        }
    }
    if (gone_count) assert_int_equal(ck_table_erase(t, gone, gone_count, &err), CK_OK);
    ck_batch_unref(&other);
}

/* Every row comes once, whatever is done to those that came. */
static void walk_table(world *w, ck_table *t, uint32_t slot) {
    const ck_slot_schema *s = &w->slots[slot];
    uint64_t count = ck_table_row_count(t);
    bool ordered = s->order_count && !s->hashed && !s->listed && !s->bucketed;
    uint32_t most = 1 + (uint32_t)model_below(&w->seed, 40);
    ck_table_scan scan = {0};
    ck_row *rows[64];
    model seen = {0};
    ck_bytes key;
    ck_bytes_init(&key, w->own, SIZE_MAX);
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, most)) > 0;) {
        ck_batch *b = rows_batch(w, t, slot, rows, n);
        for (uint32_t i = 0; i < n; i++) {
            prefixed(w, slot, b, i, &key);
            assert_true(model_has(&w->now, ck_bytes_as_view(&key)));
            assert_false(model_has(&seen, ck_bytes_as_view(&key)));
            model_put(&seen, ck_bytes_as_view(&key), (ck_view){"", 0});
        }
        change_piece(w, t, slot, rows, b, n);
        ck_batch_unref(&b);
        if (model_below(&w->seed, 30) == 0) break; /* given up in the middle */
    }
    if (ck_table_scan_next(t, &scan, rows, 1) == 0) assert_int_equal(seen.n, count);
    if (ordered) {
        ck_table_scan partitions = {0};
        ck_partition p[16];
        uint64_t all = 0;
        for (uint32_t n; (n = ck_table_partition_scan(t, &partitions, p, 16)) > 0;)
            for (uint32_t i = 0; i < n; i++) {
                check_order(w, t, p[i]);
                all += ck_partition_rows(t, p[i]);
            }
        assert_int_equal(all, count);
    }
    model_clear(&seen);
    ck_bytes_destroy(&key);
}

static void walk_all(world *w, ck_table *t, uint32_t slot) {
    ck_error err = CK_ERROR_INIT;
    if (!w->slots[slot].bucketed) {
        walk_table(w, t, slot);
        return;
    }
    int64_t at = INT64_MIN; /* rows of a bucket are its own table's */
    for (ck_table *bucket; ck_table_first_bucket(t, at, &at); at++) {
        assert_int_equal(ck_table_bucket(t, at, false, &bucket, &err), CK_OK);
        walk_table(w, bucket, slot);
    }
}

static void on_global(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    ck_row *row;
    bool fresh, had;
    assert_int_equal(ck_table_single(t, true, &row, &fresh, &err), CK_OK);
    remember(w, slot, b, 0, &had);
    assert_int_equal(fresh, !had);
    set_values(w, t, slot, row, b, 0);
}

static void step(world *w) {
    uint32_t slot = (uint32_t)model_below(&w->seed, MODEL_SLOTS);
    const ck_slot_schema *s = &w->slots[slot];
    uint32_t rows = 1 + (uint32_t)model_below(&w->seed, w->rows_max);
    ck_batch *b = model_batch(w->own, s, rows, s->bucketed ? 16 : w->domain, &w->seed);
    ck_table *t = w->tables[slot];
    if (s->bucketed)
        on_bucketed(w, t, slot, b);
    else if (s->listed && !s->hashed)
        on_numbered(w, t, slot, b);
    else if (s->order_count && !s->hashed)
        on_ordered(w, t, slot, b);
    else if (s->partition_count == 0)
        on_global(w, t, slot, b);
    else
        on_hash(w, t, slot, b);
    if (s->listed) check_lists(w, t, slot, b);
    if (s->mode == CK_SLOT_KEYED && model_below(&w->seed, 12) == 0) walk_all(w, t, slot);
    ck_batch_unref(&b);
    between_inputs(w);
}

#endif
