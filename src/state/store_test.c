/* What every backend must do alike. Stores against the model: random operations on slots of every shape, with marks
 * read by another thread while work goes on, checkpoints completed and aborted, deltas on top of bases, restores; the
 * same seeds on each backend. */
#include "state/model_int.h"
#include "state/state_int.h"

#include "os/modules.h"
#include "state/rocks.h"

enum { GROUPS = 128 };

typedef struct backend {
    const char *name;
    bool spills;
    size_t above;   /* bytes in the account */
    unsigned often; /* rows leave for RocksDB after one step of so many; 0: never */
    size_t aim_at;  /* so many bytes stay, if that is not more than what is needed */
} backend;
static const backend backends[] = {
    {.name = "memory"},
    {.name = "all in a file", .spills = true},
    {.name = "some in a file", .spills = true, .above = 96 << 10},
    {.name = "all in RocksDB after each step", .often = 1},
    {.name = "all in RocksDB now and then", .often = 7},
    {.name = "some in RocksDB", .often = 2, .aim_at = 400 << 10},
    {.name = "some in RocksDB, some in a file", .spills = true, .above = 96 << 10, .often = 3, .aim_at = 300 << 10}};

typedef struct live_mark {
    ck_state_mark *mark;
    model want, base, delta_puts, delta_erases; /* what it must hold; what the reader found */
    uint64_t checkpoint, parent;
    bool has_delta;
    pthread_t reader;
    ck_status status;
} live_mark;

typedef struct world {
    const backend *backend;
    ck_tracked_heap *heap;
    ck_budget budget, own_budget;
    ck_mem mem, own;
    ck_arena arena;
    ck_proc proc;
    ck_state_store *store;
    const ck_slot_schema *slots;
    ck_table *tables[MODEL_SLOTS];
    model now;
    model stored; /* of the last completed checkpoint, from base and deltas */
    uint64_t seed, domain;
    uint64_t next_checkpoint, completed;
    uint32_t groups, rows_max;
    size_t most_cold; /* rows in RocksDB at one time */
} world;

/* One database for the stores of all tests, as it is for those of a job. */
typedef struct one_rocks {
    ck_budget budget;
    ck_proc proc;
    ck_rocks *db;
} one_rocks;
static one_rocks rocks;

static int make_rocks(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    ck_budget_init(&rocks.budget, ck_heap_system(), 0);
    if (ck_modules_new(ck_heap_system(), &rocks.proc.modules, &err) != CK_OK) return -1;
    if (ck_rocks_new(&rocks.proc, (ck_mem){&rocks.budget, CK_MEM_STATE}, "/tmp", &rocks.db, &err) == CK_OK) return 0;
    print_error("%s\n", err.msg);
    return -1;
}

static int free_rocks(void **state) {
    (void)state;
    ck_rocks_free(rocks.db);
    ck_modules_free(rocks.proc.modules);
    return ck_budget_total(&rocks.budget) ? -1 : 0;
}

static ck_state *op_of(world *w, uint32_t slot, ck_error *err) {
    ck_state *st;
    assert_int_equal(ck_state_of(w->store, slot % 3 ? "agg(a)<-t" : "join(b)<-t", "group_agg", &st, err), CK_OK);
    return st;
}

static void open_store(world *w, ck_key_group_range range, uint64_t hash_seed) {
    ck_error err = CK_ERROR_INIT;
    const ck_state_config cfg = {
        .proc = &w->proc, .mem = w->mem, .key_groups = w->groups, .range = range, .hash_seed = hash_seed};
    assert_int_equal(ck_state_store_new(&cfg, &w->store, &err), CK_OK);
    if (w->backend->spills) {
        assert_int_equal(ck_state_spill_to(w->store, "/tmp", &err), CK_OK);
        w->store->pool.spill_above = w->backend->above;
    }
    if (!w->backend->often) return;
    assert_int_equal(ck_state_evict_to(w->store, rocks.db, &err), CK_OK);
    w->store->cold->least = 0;
}

/* As the runtime does between two inputs. */
static void between_inputs(world *w) {
    ck_error err = CK_ERROR_INIT;
    if (!w->store->cold) return;
    w->store->cold->evict_above = model_below(&w->seed, w->backend->often) == 0 ? 2 * w->backend->aim_at : SIZE_MAX;
    if (ck_state_trim(w->store, &err) != CK_OK) fail_msg("%s", err.msg);
    if (ck_state_cold_rows(w->store) > w->most_cold) w->most_cold = ck_state_cold_rows(w->store);
}

static void open_tables(world *w) {
    ck_error err = CK_ERROR_INIT;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        ck_status s = ck_state_table(op_of(w, i, &err), &w->slots[i], &w->tables[i], &err);
        if (s != CK_OK) fail_msg("%s", err.msg);
    }
}

static void world_open(world *w, const backend *b, uint64_t seed, uint64_t domain, uint32_t groups) {
    *w = (world){.backend = b, .seed = seed, .domain = domain, .next_checkpoint = 1, .groups = groups, .rows_max = 40};
    assert_int_equal(ck_tracked_heap_new(&w->heap), CK_OK);
    ck_budget_init(&w->budget, ck_tracked_heap_base(w->heap), 0);
    ck_budget_init(&w->own_budget, ck_heap_system(), 0);
    w->mem = (ck_mem){&w->budget, CK_MEM_STATE};
    w->own = (ck_mem){&w->own_budget, CK_MEM_QUEUE};
    ck_arena_init(&w->arena, w->own, SIZE_MAX);
    w->slots = model_slots(&w->arena);
    open_store(w, (ck_key_group_range){0, groups - 1}, seed * 31);
}

static void world_close(world *w) {
    ck_state_store_free(w->store);
    model_clear(&w->now);
    model_clear(&w->stored);
    ck_arena_destroy(&w->arena);
    assert_int_equal(ck_budget_total(&w->own_budget), 0);
    assert_int_equal(ck_budget_total(&w->budget), 0);
    assert_int_equal(ck_tracked_heap_live_bytes(w->heap), 0);
    ck_tracked_heap_free(w->heap);
}

/* Stored keys of two operators must not mix in the model: the operator's number stands in front. */
static void prefixed(world *w, uint32_t slot, const ck_batch *b, uint32_t row, ck_bytes *key) {
    ck_bytes_clear(key);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_bytes_u64le(key, op_of(w, slot, &err)->op_id), CK_OK);
    model_key(&w->slots[slot], w->groups, b, row, key, w->own);
}

/* ---- operations ---- */

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

/* ---- marks ---- */

static ck_status read_scan(live_mark *m, ck_mark_scan_kind kind) {
    ck_mark_scan *scan;
    CK_TRY(ck_mark_scan_new(m->mark, kind, &scan, NULL));
    const ck_mark_row *rows;
    uint32_t n;
    ck_status s;
    char key[8 + 4096];
    while ((s = ck_mark_scan_next(scan, &rows, &n, NULL)) == CK_OK && n > 0)
        for (uint32_t i = 0; i < n; i++) {
            memcpy(key, &rows[i].op_id, 8);
            memcpy(key + 8, rows[i].key.p, rows[i].key.n);
            ck_view k = {key, rows[i].key.n + 8};
            if (kind == CK_MARK_BASE)
                model_put(&m->base, k, rows[i].value);
            else if (rows[i].kind == 2)
                model_put(&m->delta_erases, k, (ck_view){"", 0});
            else
                model_put(&m->delta_puts, k, rows[i].value);
        }
    ck_mark_scan_free(scan);
    return s;
}

static void *read_mark(void *arg) {
    live_mark *m = arg;
    m->status = read_scan(m, CK_MARK_BASE);
    if (m->status == CK_OK && m->has_delta) m->status = read_scan(m, CK_MARK_DELTA);
    return NULL;
}

static void take_mark(world *w, live_mark *m) {
    ck_error err = CK_ERROR_INIT;
    *m = (live_mark){.checkpoint = w->next_checkpoint++};
    assert_int_equal(ck_state_mark_take(w->store, m->checkpoint, &m->mark, &err), CK_OK);
    m->want = model_clone(&w->now);
    m->parent = ck_state_mark_parent(m->mark);
    m->has_delta = m->parent != 0;
    assert_true(m->parent == 0 || m->parent == w->completed);
    assert_int_equal(ck_state_mark_rows(m->mark), w->now.n);
    assert_int_equal(pthread_create(&m->reader, NULL, read_mark, m), 0);
}

static void end_mark(world *w, live_mark *m, bool complete, bool settle_first) {
    bool last_parent = m->parent == w->completed;
    if (settle_first && !complete) ck_state_aborted(w->store, m->checkpoint);
    pthread_join(m->reader, NULL);
    assert_int_equal(m->status, CK_OK);
    model_assert_equal(&m->base, &m->want);
    if (m->has_delta && last_parent) { /* the parent's file with the delta on top is the mark */
        model sum = model_clone(&w->stored);
        for (size_t i = 0; i < m->delta_erases.n; i++)
            model_erase(&sum, (ck_view){m->delta_erases.e[i].key, m->delta_erases.e[i].key_n});
        for (size_t i = 0; i < m->delta_puts.n; i++)
            model_put(&sum, (ck_view){m->delta_puts.e[i].key, m->delta_puts.e[i].key_n},
                      (ck_view){m->delta_puts.e[i].value, m->delta_puts.e[i].value_n});
        model_assert_equal(&sum, &m->want);
        model_clear(&sum);
        assert_true(m->delta_puts.n + m->delta_erases.n <= ck_state_mark_changed_rows(m->mark) ||
                    ck_state_mark_changed_rows(m->mark) >= m->delta_puts.n);
        if (!ck_state_mark_changed(m->mark)) assert_int_equal(m->delta_puts.n + m->delta_erases.n, 0);
    }
    if (complete) {
        ck_state_completed(w->store, m->checkpoint);
        w->completed = m->checkpoint;
        model_clear(&w->stored);
        w->stored = model_clone(&m->want);
    } else if (!settle_first) {
        ck_state_aborted(w->store, m->checkpoint);
    }
    ck_state_mark_release(m->mark);
    model_clear(&m->want);
    model_clear(&m->base);
    model_clear(&m->delta_puts);
    model_clear(&m->delta_erases);
}

/* ---- whole runs ---- */

static void check_tables(world *w) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) rows += ck_table_row_count(w->tables[i]);
    assert_int_equal(rows, w->now.n);
    live_mark m;
    take_mark(w, &m);
    end_mark(w, &m, false, false);
}

static void random_run(const backend *b, uint64_t seed, uint64_t domain, uint32_t groups, uint32_t rows_max,
                       int steps) {
    world w;
    world_open(&w, b, seed, domain, groups);
    w.rows_max = rows_max;
    open_tables(&w);
    live_mark room[3], *marks[3] = {&room[0], &room[1], &room[2]}; /* live ones first; readers hold the addresses */
    uint32_t live = 0;
    for (int i = 0; i < steps; i++) {
        step(&w);
        uint64_t r = model_below(&w.seed, 60);
        if (r < 3 && live < 3) {
            take_mark(&w, marks[live++]);
        } else if (r < 6 && live > 0) { /* in any order of release; an older one is only ever aborted after a newer */
            uint32_t k = (uint32_t)model_below(&w.seed, live);
            bool complete = model_below(&w.seed, 3) > 0 && marks[k]->checkpoint > w.completed;
            end_mark(&w, marks[k], complete, r == 5);
            live_mark *ended = marks[k];
            marks[k] = marks[--live];
            marks[live] = ended;
        }
    }
    while (live > 0) end_mark(&w, marks[--live], false, false);
    check_tables(&w);
    if (b->spills && b->aim_at == 0) assert_true(ck_state_spilled_bytes(w.store) > 0);
    if (b->often && !b->aim_at) assert_true(w.most_cold > 0);
    world_close(&w);
}

static void random_runs(void **state) {
    const backend *b = *state;
    print_message("    %s\n", b->name);
    for (uint64_t seed = 1; seed <= (b->often ? 6 : 12); seed++)
        random_run(b, seed, seed % 3 ? 40 : 2000, seed % 4 ? GROUPS : 1000, 40, 500);
    random_run(b, 100, 8000, GROUPS, 1000, 40); /* many pages */
}

/* ---- restore ---- */

static void restore_into(world *to, const model *rows, ck_key_group_range range) {
    ck_error err = CK_ERROR_INIT;
    ck_state_store_free(to->store);
    to->backend = &backends[((size_t)(to->backend - backends) + 1) %
                            CK_ARRAY_COUNT(backends)]; /* what one wrote, another reads */
    open_store(to, range, 99);
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        const char *uid = i % 3 ? "agg(a)<-t" : "join(b)<-t";
        if (i != 4 && i != 7 && i != 9) /* these come as bytes: nobody said what they are */
            assert_int_equal(ck_state_restore_slot(to->store, ck_op_id(uid), uid, "group_agg", &to->slots[i], &err),
                             CK_OK);
    }
    uint64_t seed = range.first + 1;
    for (size_t i = 0, n = 0; i < rows->n; i += n) { /* any number at once */
        enum { AT_ONCE = 200 };
        ck_stored_row some[AT_ONCE];
        uint64_t op, other, most = model_below(&seed, 4) ? 1 + model_below(&seed, AT_ONCE) : 1;
        memcpy(&op, rows->e[i].key, 8);
        for (n = 0; n < most && i + n < rows->n; n++) {
            const model_entry *e = &rows->e[i + n];
            memcpy(&other, e->key, 8);
            if (other != op) break;
            some[n] = (ck_stored_row){{e->key + 8, e->key_n - 8}, {e->value, e->value_n}};
        }
        bool twice = n < AT_ONCE; /* is once */
        if (twice) some[n] = some[n - 1];
        ck_status s = ck_state_restore_puts(to->store, op, some, (uint32_t)n + twice, &err);
        if (s != CK_OK) fail_msg("%s", err.msg);
    }
    assert_int_equal(ck_state_restore_end(to->store, &err), CK_OK);
    open_tables(to);
}

static void restores(void **state) {
    world w;
    world_open(&w, *state, 77, 300, GROUPS);
    open_tables(&w);
    for (int i = 0; i < 300; i++) step(&w);
    model all = model_clone(&w.now);
    size_t kept = 0;
    for (uint32_t part = 0; part < 3; part++) { /* three subtasks: each keeps its groups, together they have all */
        ck_key_group_range range = ck_key_group_range_for_subtask(part, 3, GROUPS);
        restore_into(&w, &all, range);
        model_clear(&w.now);
        for (size_t i = 0; i < all.n; i++)
            if (ck_key_group_in(range, (uint8_t)all.e[i].key[8]))
                model_put(&w.now, (ck_view){all.e[i].key, all.e[i].key_n}, (ck_view){all.e[i].value, all.e[i].value_n});
        kept += w.now.n;
        check_tables(&w);
    }
    assert_int_equal(kept, all.n);
    restore_into(&w, &all, (ck_key_group_range){0, GROUPS - 1});
    model_clear(&w.now);
    w.now = model_clone(&all);
    for (int i = 0; i < 200; i++) step(&w); /* and it goes on */
    check_tables(&w);
    ck_error err = CK_ERROR_INIT;
    for (size_t i = 0; i < w.now.n; i++) { /* every row again as an erase */
        uint64_t op;
        memcpy(&op, w.now.e[i].key, 8);
        ck_view key = {w.now.e[i].key + 8, w.now.e[i].key_n - 8};
        assert_int_equal(ck_state_restore_erase(w.store, op, key, &err), CK_OK);
        assert_int_equal(ck_state_restore_erase(w.store, op, key, &err), CK_OK); /* missing is fine */
    }
    model_clear(&w.now);
    check_tables(&w);
    model_clear(&all);
    world_close(&w);
}

static void damaged_rows_are_refused(void **state) {
    world w;
    world_open(&w, *state, 5, 300, GROUPS);
    open_tables(&w);
    for (int i = 0; i < 200; i++) step(&w);
    model all = model_clone(&w.now);
    uint64_t seed = 1;
    for (size_t i = 0; i < all.n; i++) { /* any bytes: refused or taken, never a crash */
        model_entry *e = &all.e[i];
        uint64_t op;
        memcpy(&op, e->key, 8);
        ck_error err = CK_ERROR_INIT;
        size_t key_n = e->key_n - 8, value_n = e->value_n;
        if (model_below(&seed, 2)) key_n = model_below(&seed, key_n + 1);
        if (model_below(&seed, 2)) value_n = model_below(&seed, value_n + 1);
        if (key_n > 1) e->key[8 + model_below(&seed, key_n)] ^= (char)model_below(&seed, 256);
        if (value_n) e->value[model_below(&seed, value_n)] ^= (char)model_below(&seed, 256);
        ck_stored_row row = {{e->key + 8, key_n}, {e->value, value_n}};
        ck_status s = ck_state_restore_put(w.store, op, row, &err);
        if (s != CK_OK && s != CK_CORRUPT) fail_msg("%s: %s", ck_status_name(s), err.msg);
        s = ck_state_restore_erase(w.store, op, row.key, &err);
        assert_true(s == CK_OK || s == CK_CORRUPT);
    }
    model_clear(&all);
    world_close(&w);
}

#define ON_BACKEND(f, i)                                                                                               \
    { #f, f, NULL, NULL, (void *)(uintptr_t)&backends[i] }
#define EACH_BACKEND(f)                                                                                                \
    ON_BACKEND(f, 0), ON_BACKEND(f, 1), ON_BACKEND(f, 2), ON_BACKEND(f, 3), ON_BACKEND(f, 4), ON_BACKEND(f, 5),        \
        ON_BACKEND(f, 6)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_BACKEND(random_runs),
        EACH_BACKEND(restores),
        EACH_BACKEND(damaged_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, make_rocks, free_rocks);
}
