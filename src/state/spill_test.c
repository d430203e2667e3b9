/* A job whose state outgrows its account: it goes on in a file, and where it cannot, a sentence names slot and reason.
 */
#include "state/model_int.h"
#include "state/state_int.h"

#include <signal.h>
#include <sys/resource.h>

enum { LIMIT = 4 << 20, ROWS = 200 * 1000 };

typedef struct world {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_arena arena;
    ck_proc proc;
    ck_state_store *store;
    ck_table *t;
} world;

static ck_mem own(void) { return (ck_mem){ck_budget_uncounted(), CK_MEM_QUEUE}; }

static void world_open(world *w, size_t limit, const char *dir) {
    *w = (world){0};
    assert_int_equal(ck_tracked_heap_new(&w->heap), CK_OK);
    ck_budget_init(&w->budget, ck_tracked_heap_base(w->heap), limit);
    ck_arena_init(&w->arena, own(), SIZE_MAX);
    const ck_state_config cfg = {
        .proc = &w->proc, .mem = {&w->budget, CK_MEM_STATE}, .key_groups = 128, .range = {0, 127}, .hash_seed = 4711};
    ck_error err = CK_ERROR_INIT;
    ck_state *st;
    assert_int_equal(ck_state_store_new(&cfg, &w->store, &err), CK_OK);
    if (dir) assert_int_equal(ck_state_spill_to(w->store, dir, &err), CK_OK);
    assert_int_equal(ck_state_of(w->store, "agg(a)<-t", "group_agg", &st, &err), CK_OK);
    assert_int_equal(ck_state_table(st, &model_slots(&w->arena)[0], &w->t, &err), CK_OK);
}

static void world_close(world *w) {
    ck_state_store_free(w->store);
    ck_arena_destroy(&w->arena);
    assert_int_equal(ck_budget_total(&w->budget), 0);
    assert_int_equal(ck_tracked_heap_live_bytes(w->heap), 0);
    ck_tracked_heap_free(w->heap);
}

/* Adds one to the counts of keys [first, first + n). */
static ck_status count_keys(world *w, int64_t first, uint32_t n, ck_error *err) {
    ck_column_builder cb;
    assert_int_equal(ck_column_builder_init(&cb, own(), ck_type_simple(CK_TYPE_BIGINT), n), CK_OK);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(ck_build_i64(&cb, first + i), CK_OK);
    ck_column *c = ck_column_builder_finish(&cb);
    ck_column_builder_destroy(&cb);
    ck_batch *b = ck_batch_new(own(), 1, n, false, false);
    assert_true(b && c);
    ck_batch_set_column(b, 0, &c);
    const uint32_t column = 0;
    const ck_type *type = ck_type_simple(CK_TYPE_BIGINT);
    const ck_key_spec spec = {&column, &type, 1};
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_row *rows[CK_BATCH_ROWS_MAX];
    ck_key_hash(&spec, b, ck_table_seed(w->t), hashes);
    ck_status s = ck_table_upsert(w->t, &(ck_keys){&spec, b, hashes, n}, rows, NULL, err);
    uint32_t at = ck_table_layout(w->t)->fields[2].offset;
    for (uint32_t i = 0; s == CK_OK && i < n; i++) ck_row_set_i64(rows[i], at, ck_row_i64(rows[i], at) + 1);
    ck_batch_unref(&b);
    return s;
}

static void state_outgrows_the_account(void **state) {
    (void)state;
    world w;
    world_open(&w, LIMIT, "/tmp");
    ck_error err = CK_ERROR_INIT;
    ck_state_mark *mark = NULL;
    for (int round = 0; round < 3; round++) {
        for (int64_t k = 0; k < ROWS; k += 1000) assert_int_equal(count_keys(&w, k, 1000, &err), CK_OK);
        if (round == 1) { /* all pages are copied in the third round: the copies spill too */
            assert_int_equal(ck_state_mark_take(w.store, 1, &mark, &err), CK_OK);
            assert_false(ck_state_must_wait(w.store));
        }
    }
    assert_int_equal(ck_table_row_count(w.t), ROWS);
    assert_true(ck_budget_total(&w.budget) <= LIMIT);
    assert_true(ck_state_spilled_bytes(w.store) > LIMIT);
    uint32_t at = ck_table_layout(w.t)->fields[2].offset;
    ck_table_scan scan = {0};
    ck_row *rows[256];
    for (uint32_t n; (n = ck_table_scan_next(w.t, &scan, rows, 256)) > 0;)
        for (uint32_t i = 0; i < n; i++) assert_int_equal(ck_row_i64(rows[i], at), 3);
    uint64_t seen = 0;
    ck_mark_scan *reader;
    const ck_mark_row *marked;
    assert_int_equal(ck_mark_scan_new(mark, CK_MARK_BASE, &reader, &err), CK_OK);
    for (uint32_t n = 1; n > 0; seen += n) {
        assert_int_equal(ck_mark_scan_next(reader, &marked, &n, &err), CK_OK);
        for (uint32_t i = 0; i < n; i++) assert_int_equal(marked[i].value.p[8], 2); /* as it was */
    }
    assert_int_equal(seen, ROWS);
    ck_mark_scan_free(reader);
    size_t with_mark = ck_state_spilled_bytes(w.store);
    ck_state_mark_release(mark);
    assert_true(ck_state_spilled_bytes(w.store) < with_mark);
    world_close(&w);
}

static ck_status fill(world *w, ck_error *err) {
    ck_status s = CK_OK;
    for (int64_t k = 0; s == CK_OK && k < ROWS; k += 1000) s = count_keys(w, k, 1000, err);
    return s;
}

static void what_cannot_be_kept_is_refused_by_name(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w, LIMIT, NULL);
    assert_int_equal(fill(&w, &err), CK_NOMEM);
    assert_non_null(strstr(err.msg, "slot \"agg\" at "));
    assert_non_null(strstr(err.msg, "--state-backend file:DIR"));
    world_close(&w);
    world_open(&w, LIMIT, NULL);
    assert_int_equal(ck_state_spill_to(w.store, "/proc/no/such", &err), CK_IO);
    assert_non_null(strstr(err.msg, "/proc/no/such: could not make the folder of a file of working memory"));
    world_close(&w);
    world_open(&w, LIMIT, "/tmp"); /* a disk that has 64 KiB */
    struct rlimit was, is;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    is = (struct rlimit){64 << 10, was.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &is), 0);
    assert_int_equal(fill(&w, &err), CK_NOMEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, handler);
    assert_non_null(strstr(err.msg, "slot \"agg\" at "));
    assert_non_null(strstr(err.msg, "; and /tmp: could not reserve space for a file of working memory: "));
    assert_true(ck_budget_total(&w.budget) > w.store->pool.spill_above); /* the rest of the account was used first */
    assert_int_equal(count_keys(&w, 0, 1000, &err), CK_OK);              /* what was there stays */
    world_close(&w);
}

static void failing_allocations(void **state) {
    (void)state;
    bool fired = true;
    for (uint64_t n = 1; fired; n += 1 + n / 16) {
        world w;
        ck_error err = CK_ERROR_INIT;
        world_open(&w, LIMIT, "/tmp");
        w.store->pool.spill_above = 0;
        ck_tracked_heap_fail_nth(w.heap, n);
        ck_status s = CK_OK;
        for (int64_t k = 0; s == CK_OK && k < 20 * 1000; k += 500) s = count_keys(&w, k, 500, &err);
        fired = ck_tracked_heap_fired(w.heap);
        assert_true(fired || s == CK_OK);
        ck_tracked_heap_fail_nth(w.heap, 0);
        assert_int_equal(count_keys(&w, 0, 500, &err), CK_OK); /* and it goes on */
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_outgrows_the_account),
        cmocka_unit_test(what_cannot_be_kept_is_refused_by_name),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
