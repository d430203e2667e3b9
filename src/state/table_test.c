/* Tables one thing at a time: bytes a group, budgets, failing allocations, fields, scans, what is refused. The
 * operations themselves are in store_test.c against a model. */
#include "state/model_int.h"
#include "state/state_int.h"

typedef struct world {
    ck_tracked_heap *heap;
    ck_budget budget, own_budget;
    ck_mem mem, own;
    ck_arena arena;
    ck_proc proc;
    ck_state_store *store;
    ck_state *op;
} world;

static ck_error err;

static void open_world_for(world *w, ck_heap *heap, size_t limit, bool snapshots) {
    *w = (world){0};
    ck_budget_init(&w->budget, heap, limit);
    ck_budget_init(&w->own_budget, ck_heap_system(), 0);
    w->mem = (ck_mem){&w->budget, CK_MEM_STATE};
    w->own = (ck_mem){&w->own_budget, CK_MEM_QUEUE};
    ck_arena_init(&w->arena, w->own, SIZE_MAX);
    const ck_state_config cfg = {&w->proc, w->mem, 128, {0, 127}, 4711, snapshots};
    assert_int_equal(ck_state_store_new(&cfg, &w->store, &err), CK_OK);
    assert_int_equal(ck_state_of(w->store, "op", "test", &w->op, &err), CK_OK);
}
static void open_world(world *w, ck_heap *heap, size_t limit) { open_world_for(w, heap, limit, false); }

static void close_world(world *w) {
    ck_state_store_free(w->store);
    ck_arena_destroy(&w->arena);
    assert_int_equal(ck_budget_total(&w->own_budget), 0);
    assert_int_equal(ck_budget_total(&w->budget), 0);
}

static ck_slot_schema schema_of(const char *slot, const ck_field *partition, uint32_t partitions,
                                const ck_field *values, uint32_t value_count) {
    return (ck_slot_schema){.slot = slot,
                            .state_type = "t",
                            .version = 1,
                            .partition = partition,
                            .partition_count = partitions,
                            .values = values,
                            .value_count = value_count};
}

static const ck_type bigint = {.kind = CK_TYPE_BIGINT}, varchar = {.kind = CK_TYPE_VARCHAR};

/* Rows [first, first + n) as a batch of one BIGINT or, with text, VARCHAR key column. */
static ck_batch *key_batch(world *w, int64_t first, uint32_t n, bool text) {
    ck_batch *b = ck_batch_new(w->own, 1, n, false, false);
    ck_column_builder cb;
    assert_int_equal(ck_column_builder_init(&cb, w->own, text ? &varchar : &bigint, n), CK_OK);
    for (uint32_t i = 0; i < n; i++) {
        char z[64];
        int len = snprintf(z, sizeof z, "key-%lld-%s", (long long)first + i, (first + i) % 2 ? "" : "a-longer-one");
        assert_int_equal(text ? ck_build_str(&cb, z, (size_t)len) : ck_build_i64(&cb, first + i), CK_OK);
    }
    ck_column *c = ck_column_builder_finish(&cb);
    ck_batch_set_column(b, 0, &c);
    ck_column_builder_destroy(&cb);
    return b;
}

typedef struct call {
    ck_batch *b;
    uint32_t column;
    const ck_type *type;
    ck_key_spec spec;
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_keys keys;
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
} call;

static void prepare(world *w, call *c, ck_table *t, int64_t first, uint32_t n, bool text) {
    c->b = key_batch(w, first, n, text);
    c->column = 0, c->type = text ? &varchar : &bigint;
    c->spec = (ck_key_spec){&c->column, &c->type, 1};
    ck_key_hash(&c->spec, c->b, ck_table_seed(t), c->hashes);
    c->keys = (ck_keys){&c->spec, c->b, c->hashes, n};
}

static ck_status upsert(world *w, ck_table *t, int64_t first, uint32_t n, bool text, call *c) {
    prepare(w, c, t, first, n, text);
    ck_status s = ck_table_upsert(t, &c->keys, c->rows, c->fresh, &err);
    ck_batch_unref(&c->b);
    return s;
}

static uint32_t found(world *w, ck_table *t, int64_t first, uint32_t n, bool text, call *c) {
    prepare(w, c, t, first, n, text);
    assert_int_equal(ck_table_find(t, &c->keys, (const ck_row **)c->rows, &err), CK_OK);
    ck_batch_unref(&c->b);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) k += c->rows[i] != NULL;
    return k;
}

static const ck_field one_key[] = {{"k", &bigint, false}}, text_key[] = {{"k", &varchar, false}};
static const ck_field sum_count[] = {{"sum", &bigint, false}, {"count", &bigint, false}};
static call c;

/* "An int64 key with SUM and COUNT costs at most 40 bytes, everything included": at every size, not only at good ones.
 */
static void forty_bytes_a_group(void **state) {
    (void)state;
    world w;
    open_world(&w, ck_heap_system(), 0);
    ck_slot_schema s = schema_of("agg", one_key, 1, sum_count, 2);
    ck_table *t;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    double worst = 0;
    for (int64_t at = 0; at < 2200000; at += CK_BATCH_ROWS_MAX) {
        assert_int_equal(upsert(&w, t, at * 7, CK_BATCH_ROWS_MAX, false, &c), CK_OK);
        double rows = (double)ck_table_row_count(t), bytes = (double)ck_budget_total(&w.budget) / rows;
        if (rows > 1000000 && bytes > worst) worst = bytes;
        if (rows > 1000000 && bytes > 40) fail_msg("%.1f bytes a group at %.0f groups", bytes, rows);
    }
    assert_true(ck_table_bytes(t) <= ck_budget_total(&w.budget));
    assert_true(worst > 30); /* it is measured */
    ck_table_scan scan = {0};
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, c.rows, CK_BATCH_ROWS_MAX)) > 0;)
        assert_int_equal(ck_table_erase(t, c.rows, n, &err), CK_OK);
    assert_int_equal(ck_table_row_count(t), 0);
    assert_true(ck_budget_total(&w.budget) < 32 << 20); /* pages go back; the index stays */
    close_world(&w);
}

/* A spent budget is refused by name, and what was there before stays as it was. */
static void a_spent_budget(void **state) {
    (void)state;
    for (int text = 0; text < 2; text++) {
        world w;
        open_world(&w, ck_heap_system(), 3 << 20);
        ck_slot_schema s = schema_of("agg", text ? text_key : one_key, 1, sum_count, 2);
        ck_table *t;
        assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
        int64_t at = 0;
        ck_status st;
        while ((st = upsert(&w, t, at, 1000, text, &c)) == CK_OK) {
            for (uint32_t i = 0; i < 1000; i++) ck_row_set_i64(c.rows[i], t->shape->fields[1].offset, at + i);
            at += 1000;
        }
        assert_int_equal(st, CK_NOMEM);
        assert_non_null(strstr(err.msg, "state"));
        assert_non_null(strstr(err.msg, "limit"));
        assert_int_equal(ck_table_row_count(t), at);
        assert_int_equal(found(&w, t, at, 1000, text, &c), 0); /* nothing of the refused call is left */
        for (int64_t k = 0; k < at; k += 1000) {
            assert_int_equal(found(&w, t, k, 1000, text, &c), 1000);
            for (uint32_t i = 0; i < 1000; i++)
                assert_int_equal(ck_row_i64(c.rows[i], t->shape->fields[1].offset), k + i);
        }
        for (int64_t k = 0; k < 3000; k += 1000) {
            assert_int_equal(found(&w, t, k, 1000, text, &c), 1000);
            assert_int_equal(ck_table_erase(t, c.rows, 1000, &err), CK_OK); /* room again */
        }
        assert_int_equal(upsert(&w, t, at, 500, text, &c), CK_OK);
        close_world(&w);
    }
}

/* Copies of a marked table pass the limit: refused, and possible again once the mark is released. */
static void a_mark_and_a_small_budget(void **state) {
    (void)state;
    world w;
    open_world(&w, ck_heap_system(), 8 << 20);
    ck_slot_schema s = schema_of("agg", one_key, 1, sum_count, 2);
    ck_table *t;
    ck_state_mark *m;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    for (int64_t at = 0; at < 150000; at += 1000) assert_int_equal(upsert(&w, t, at, 1000, false, &c), CK_OK);
    assert_false(ck_state_must_wait(w.store));
    assert_int_equal(ck_state_mark_take(w.store, 1, &m, &err), CK_OK);
    ck_status st = CK_OK;
    bool waited = false;
    for (int64_t at = 0; at < 150000 && st == CK_OK; at += 1000) {
        waited |= ck_state_must_wait(w.store); /* asked between steps, it comes before the refusal */
        st = upsert(&w, t, at, 1000, false, &c);
    }
    assert_int_equal(st, CK_NOMEM);
    assert_true(waited);
    assert_true(ck_budget_used(&w.budget, CK_MEM_SNAPSHOT) > 1 << 20);
    ck_state_mark_release(m);
    assert_int_equal(ck_budget_used(&w.budget, CK_MEM_SNAPSHOT), 0);
    assert_false(ck_state_must_wait(w.store));
    for (int64_t at = 0; at < 150000; at += 1000) assert_int_equal(upsert(&w, t, at, 1000, false, &c), CK_OK);
    for (int k = 0; k < CK_MARKS_LIVE_MAX; k++) assert_int_equal(ck_state_mark_take(w.store, 2, &m, &err), CK_OK);
    ck_state_mark *one_more;
    assert_int_equal(ck_state_mark_take(w.store, 9, &one_more, &err), CK_FULL);
    while (w.store->marks) ck_state_mark_release(w.store->marks);
    close_world(&w);
}

/* ---- failing allocations ---- */

typedef struct rows_of {
    int64_t text, number, order, bucket;
} rows_of;

static rows_of count_rows(ck_table *const *t) {
    return (rows_of){(int64_t)ck_table_row_count(t[0]), (int64_t)ck_table_row_count(t[1]),
                     (int64_t)ck_table_row_count(t[2]), (int64_t)ck_table_row_count(t[3])};
}

/* Work over all kinds of tables under a mark; every call either does its work or nothing. */
static ck_status work(world *w, ck_table *const *t) {
    ck_state_mark *m = NULL;
    ck_status s = CK_OK;
    for (int round = 0; round < 4 && s == CK_OK; round++) {
        rows_of before = count_rows(t);
        s = upsert(w, t[0], round * 100, 200, true, &c);
        for (uint32_t i = 0; i < 200 && s == CK_OK; i++)
            s = ck_table_set_str(t[0], c.rows[i], 1, ck_view_of("a value that is longer than twelve bytes"));
        if (s != CK_OK) break;
        assert_true(count_rows(t).text >= before.text);
        s = upsert(w, t[1], round * 100, 200, false, &c);
        if (s == CK_OK) s = ck_table_erase(t[1], c.rows, 50, &err);
        if (s != CK_OK) break;
        ck_partition p[4];
        prepare(w, &c, t[2], 0, 4, false);
        s = ck_table_partitions(t[2], &c.keys, true, p, &err);
        ck_batch_unref(&c.b);
        for (int i = 0; i < 300 && s == CK_OK; i++) {
            uint64_t key = __builtin_bswap64((uint64_t)((int64_t)i * 37 % 300 + round) | 1ULL << 63);
            ck_row *row;
            bool fresh;
            uint64_t rows = ck_partition_rows(t[2], p[i % 4]);
            s = ck_partition_upsert(t[2], p[i % 4], (ck_view){(const char *)&key, 8}, &row, &fresh, &err);
            assert_int_equal(ck_partition_rows(t[2], p[i % 4]), rows + (s == CK_OK && fresh));
        }
        ck_table *bucket = NULL;
        if (s == CK_OK) s = ck_table_bucket(t[3], round % 3, true, &bucket, &err);
        if (s == CK_OK) s = upsert(w, bucket, 0, 100, false, &c);
        if (s == CK_OK && round == 3) s = ck_table_drop_bucket(t[3], 1, &err);
        if (s == CK_OK && round == 0) s = ck_state_mark_take(w->store, 1, &m, &err);
        if (s == CK_OK && round == 1) ck_state_completed(w->store, 1);
    }
    if (m) ck_state_mark_release(m);
    return s;
}

static void open_tables(world *w, ck_table **t, ck_status *s) {
    static const ck_field value[] = {{"v", &varchar, true}};
    static const ck_order_field order[] = {{{"ts", &bigint, false}, false, false}};
    ck_slot_schema slots[4] = {schema_of("text", text_key, 1, value, 1), schema_of("number", one_key, 1, sum_count, 2),
                               schema_of("order", one_key, 1, value, 1), schema_of("bucket", one_key, 1, sum_count, 2)};
    slots[2].order = slots[3].order = order;
    slots[2].order_count = slots[3].order_count = 1;
    slots[3].bucketed = true;
    for (int i = 0; i < 4 && *s == CK_OK; i++) *s = ck_state_table(w->op, &slots[i], &t[i], &err);
}

static void scan_all(ck_table *t) { /* the count is what a scan finds, and every row is found by its own key */
    ck_table_scan scan = {0};
    uint64_t n = 0;
    for (uint32_t k; (k = ck_table_scan_next(t, &scan, c.rows, 1000)) > 0;) n += k;
    assert_int_equal(n, ck_table_row_count(t));
}

static void failing_allocations(void **state) {
    (void)state;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    for (uint64_t nth = 1;; nth++) {
        world w;
        ck_table *t[4] = {0};
        ck_status s = CK_OK;
        open_world(&w, ck_tracked_heap_base(heap), 0);
        ck_tracked_heap_fail_nth(heap, nth);
        open_tables(&w, t, &s);
        if (s == CK_OK) s = work(&w, t);
        bool fired = ck_tracked_heap_fired(heap);
        ck_tracked_heap_fail_nth(heap, 0);
        assert_true(s == CK_OK || s == CK_NOMEM);
        for (int i = 0; i < 4; i++)
            if (t[i]) scan_all(t[i]);
        if (t[3]) { /* and everything still works */
            s = work(&w, t);
            if (s != CK_OK) fail_msg("after the %llu-th: %s", (unsigned long long)nth, err.msg);
            assert_int_equal(found(&w, t[0], 0, 500, true, &c), 500);
        }
        close_world(&w);
        assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
        if (!fired) break;
    }
    ck_tracked_heap_free(heap);
}

/* ---- fields ---- */

static void fields_come_back(void **state) {
    (void)state;
    world w;
    open_world(&w, ck_heap_system(), 0);
    const ck_slot_schema *slots = model_slots(&w.arena);
    uint64_t seed = 3;
    for (uint32_t k = 0; k < MODEL_SLOTS; k++) {
        const ck_slot_schema *s = &slots[k];
        if (s->order_count || s->partition_count == 0) continue;
        ck_table *t;
        assert_int_equal(ck_state_table(w.op, s, &t, &err), CK_OK);
        ck_batch *b = model_batch(w.own, s, 300, 1000000, &seed);
        uint32_t columns[8];
        const ck_type *types[8];
        for (uint32_t i = 0; i < s->partition_count; i++) columns[i] = i, types[i] = s->partition[i].type;
        const ck_key_spec spec = {columns, types, s->partition_count};
        ck_key_hash(&spec, b, ck_table_seed(t), c.hashes);
        const ck_keys keys = {&spec, b, c.hashes, 300};
        assert_int_equal(ck_table_upsert(t, &keys, c.rows, c.fresh, &err), CK_OK);
        for (uint32_t r = 0; r < 300; r++)
            for (uint32_t f = 0; f < s->value_count; f++) {
                uint32_t field = s->partition_count + f;
                assert_int_equal(ck_table_set_field(t, c.rows[r], field, b->columns[field], r), CK_OK);
            }
        for (uint32_t f = 0; f < s->partition_count + s->value_count; f++) {
            ck_column_builder cb;
            const ck_type *type = f < s->partition_count ? types[f] : s->values[f - s->partition_count].type;
            assert_int_equal(ck_column_builder_init(&cb, w.own, type, 300), CK_OK);
            assert_int_equal(ck_table_gather_field(t, (const ck_row *const *)c.rows, 300, f, &cb), CK_OK);
            ck_column *col = ck_column_builder_finish(&cb);
            for (uint32_t r = 0; r < 300; r++) { /* rows of equal keys hold the last one's values */
                uint32_t last = r;
                for (uint32_t q = r; q < 300; q++)
                    if (c.rows[q] == c.rows[r]) last = q;
                assert_true(ck_column_rows_equal(col, r, b->columns[f], last));
                if (f < s->partition_count)
                    assert_int_equal(ck_table_same_field(t, f, c.rows[0], c.rows[r]),
                                     ck_column_rows_equal(col, 0, col, r));
            }
            ck_column_unref(&col);
            ck_column_builder_destroy(&cb);
        }
        ck_batch_unref(&b);
    }
    ck_field strict[] = {{"v", &bigint, false}};
    ck_slot_schema s = schema_of("strict", one_key, 1, strict, 1);
    ck_table *t;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    assert_int_equal(upsert(&w, t, 1, 1, false, &c), CK_OK);
    ck_column *null = ck_column_new_null(w.own, CK_PHYS_I64, 1);
    assert_int_equal(ck_table_set_field(t, c.rows[0], 1, null, 0), CK_INVALID);
    ck_batch *b = ck_batch_new(w.own, 1, 1, false, false);
    ck_batch_set_column(b, 0, &null);
    const ck_keys keys = {&c.spec, b, c.hashes, 1};
    assert_int_equal(ck_table_upsert(t, &keys, c.rows, NULL, &err), CK_INVALID); /* NULL in a NOT NULL key */
    assert_non_null(strstr(err.msg, "\"k\""));
    ck_batch_unref(&b);
    close_world(&w);
}

/* A string field rewritten for ever does not grow without bound. */
static void garbage_is_collected(void **state) {
    (void)state;
    world w;
    open_world(&w, ck_heap_system(), 0);
    static const ck_field value[] = {{"v", &varchar, true}};
    ck_slot_schema s = schema_of("text", text_key, 1, value, 1);
    ck_table *t;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    size_t early = 0;
    for (int round = 0; round < 300; round++) {
        assert_int_equal(upsert(&w, t, 0, 2000, true, &c), CK_OK);
        for (uint32_t i = 0; i < 2000; i++) {
            char text[100];
            int n = snprintf(text, sizeof text, "the value of row %u in round %d, at some length", i, round);
            if (i % 7 != (uint32_t)round % 7)
                assert_int_equal(ck_table_set_str(t, c.rows[i], 1, (ck_view){text, (size_t)n}), CK_OK);
        }
        if (round == 20) early = ck_table_bytes(t);
    }
    assert_true(ck_table_bytes(t) < 2 * early);
    for (uint32_t i = 0; i < 2000; i++) {
        char text[100];
        int n = snprintf(text, sizeof text, "the value of row %u in round %d, at some length", i,
                         i % 7 != 299 % 7 ? 299 : 298);
        assert_true(ck_view_eq(ck_table_str(t, c.rows[i], 1), (ck_view){text, (size_t)n}));
    }
    close_world(&w);
}

/* ---- refusals ---- */

static void refused(world *w, const ck_slot_schema *s, const char *word) {
    ck_table *t;
    assert_int_equal(ck_state_table(w->op, s, &t, &err), CK_REFUSED);
    if (!strstr(err.msg, word)) fail_msg("'%s' does not say '%s'", err.msg, word);
}

static void schemas_that_no_table_can_hold(void **state) {
    (void)state;
    world w;
    open_world(&w, ck_heap_system(), 0);
    ck_slot_schema s = schema_of("a|b", one_key, 1, sum_count, 2);
    refused(&w, &s, "a|b");
    s.slot = "";
    refused(&w, &s, "slot name");
    s.slot = "ttl";
    s.ttl_us = -1000;
    refused(&w, &s, "expires");
    s.ttl_us = 0, s.mode = CK_SLOT_SPLIT;
    refused(&w, &s, "VARCHAR NOT NULL");
    s.mode = CK_SLOT_KEYED, s.bucketed = true;
    refused(&w, &s, "bucket");
    ck_table *t;
    s.bucketed = false;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    s.version = 2;
    refused(&w, &s, "version 1, this job has 2");
    s.version = 1, s.state_type = "other";
    refused(&w, &s, "'other'");
    s.state_type = "t", s.value_count = 1;
    refused(&w, &s, "2 value fields, this job has 1");
    ck_state *other;
    assert_int_equal(ck_state_of(w.store, "op", "test", &other, &err), CK_OK);
    assert_ptr_equal(other, w.op);
    close_world(&w);
}

/* A run of known and new keys: new ones make pages and move the list of pages, and changes of the known ones that come
 * behind them are recorded where they are. */
static void known_keys_behind_new_ones(void **state) {
    (void)state;
    world w;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    open_world(&w, ck_tracked_heap_base(heap), 0);
    ck_slot_schema s = schema_of("agg", one_key, 1, sum_count, 2);
    ck_table *t;
    assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
    assert_int_equal(upsert(&w, t, 0, 1, false, &c), CK_OK);
    uint32_t known = 1;
    for (uint64_t checkpoint = 1; known < CK_BATCH_ROWS_MAX / 2; checkpoint++) {
        ck_state_mark *m;
        assert_int_equal(ck_state_mark_take(w.store, checkpoint, &m, &err), CK_OK);
        if (checkpoint > 1) assert_int_equal(ck_state_mark_changed_rows(m), known);
        ck_state_mark_release(m);
        ck_state_completed(w.store, checkpoint);
        assert_int_equal(upsert(&w, t, 0, known, false, &c), CK_OK); /* every page is this epoch's now */
        prepare(&w, &c, t, 0, 2 * known, false);
        for (uint32_t i = 0; i < known; i++)
            c.b->columns[0]->i64[2 * i] = known + i, c.b->columns[0]->i64[2 * i + 1] = i;
        ck_key_hash(&c.spec, c.b, ck_table_seed(t), c.hashes);
        assert_int_equal(ck_table_upsert(t, &c.keys, c.rows, c.fresh, &err), CK_OK);
        for (uint32_t i = 0; i < 2 * known; i++) assert_int_equal(c.fresh[i], i % 2 == 0);
        ck_batch_unref(&c.b);
        known *= 2;
    }
    close_world(&w);
    ck_tracked_heap_free(heap);
}

/* One key that is too long among others: nothing of the batch stays, and its record is named. */
static ck_batch *long_key_batch(world *w, size_t bytes) {
    static char text[CK_KEY_BYTES_MAX + 1];
    ck_batch *b = ck_batch_new(w->own, 1, 3, false, false);
    ck_column_builder cb;
    memset(text, 'x', sizeof text);
    assert_int_equal(ck_column_builder_init(&cb, w->own, &varchar, 3), CK_OK);
    assert_int_equal(ck_build_str(&cb, "a", 1), CK_OK);
    assert_int_equal(ck_build_str(&cb, text, bytes), CK_OK);
    assert_int_equal(ck_build_str(&cb, "b", 1), CK_OK);
    ck_column *column = ck_column_builder_finish(&cb);
    ck_batch_set_column(b, 0, &column);
    ck_column_builder_destroy(&cb);
    assert_non_null(b->origin = ck_origin_new(w->own, "in.ndjson", 1000, 3));
    for (uint32_t i = 0; i < 3; i++) b->origin->row_offset[i] = 10 * i;
    return b;
}

static void keys_that_no_checkpoint_holds(void **state) {
    (void)state;
    for (int snapshots = 0; snapshots < 2; snapshots++)
        for (size_t over = 0; over < 2; over++) {
            world w;
            open_world_for(&w, ck_heap_system(), 0, snapshots);
            ck_slot_schema s = schema_of("agg", text_key, 1, sum_count, 2);
            ck_table *t;
            assert_int_equal(ck_state_table(w.op, &s, &t, &err), CK_OK);
            prepare(&w, &c, t, 0, 3, true);
            ck_batch_unref(&c.b);
            c.keys.batch = c.b = long_key_batch(&w, CK_KEY_BYTES_MAX + over);
            ck_key_hash(&c.spec, c.b, ck_table_seed(t), c.hashes);
            err = CK_ERROR_INIT;
            bool refused = snapshots && over;
            assert_int_equal(ck_table_upsert(t, &c.keys, c.rows, c.fresh, &err), refused ? CK_DATA : CK_OK);
            assert_int_equal(ck_table_row_count(t), refused ? 0 : 3);
            if (refused) {
                assert_non_null(strstr(err.msg, "slot \"agg\": a key of over 1048576 bytes"));
                assert_string_equal(err.place.object, "in.ndjson");
                assert_int_equal(err.place.byte_offset, 1010);
                assert_true(err.fatal);
            }
            ck_batch_unref(&c.b);
            close_world(&w);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_no_checkpoint_holds),
        cmocka_unit_test(known_keys_behind_new_ones),
        cmocka_unit_test(forty_bytes_a_group),
        cmocka_unit_test(a_spent_budget),
        cmocka_unit_test(a_mark_and_a_small_budget),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(fields_come_back),
        cmocka_unit_test(garbage_is_collected),
        cmocka_unit_test(schemas_that_no_table_can_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
