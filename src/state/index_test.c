/* The index against an array of hashes: every entry is found, erased ones are not, growth keeps the load. */
#include "state/index_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/hash.h"

typedef struct world {
    ck_budget budget;
    ck_mem mem;
    ck_page_pool pool;
    uint64_t *hashes; /* by reference */
    size_t count;
    size_t hashed_again;
    ck_index ix;
} world;

static void hash_refs(void *arg, const uint32_t *refs, uint32_t n, uint64_t *hashes) {
    world *w = arg;
    for (uint32_t i = 0; i < n; i++) hashes[i] = w->hashes[refs[i]];
    w->hashed_again += n;
}

static void world_open(world *w, ck_heap *heap, size_t count) {
    ck_budget_init(&w->budget, heap, 0);
    w->mem = (ck_mem){&w->budget, CK_MEM_STATE};
    w->count = count, w->hashed_again = 0;
    w->hashes = ck_alloc_array((ck_mem){&w->budget, CK_MEM_PLAN}, count, sizeof *w->hashes);
    assert_non_null(w->hashes);
    for (size_t i = 0; i < count; i++) w->hashes[i] = ck_mix64(i + 12345);
    ck_page_pool_init(&w->pool, w->mem);
    assert_int_equal(ck_index_init(&w->ix, &w->pool, w->mem, hash_refs, w), CK_OK);
}

static void world_close(world *w) {
    ck_index_destroy(&w->ix);
    ck_index_destroy(&w->ix);
    ck_page_pool_destroy(&w->pool);
    ck_free((ck_mem){&w->budget, CK_MEM_PLAN}, w->hashes, w->count * sizeof *w->hashes);
    assert_int_equal(ck_budget_total(&w->budget), 0);
}

static bool has(const world *w, uint32_t ref) {
    ck_index_probe p = ck_index_probe_begin(&w->ix, w->hashes[ref]);
    for (uint32_t r; ck_index_probe_next(&p, &r);)
        if (r == ref) return true;
    return false;
}

static void finds_what_was_inserted(void **state) {
    (void)state;
    world w;
    world_open(&w, ck_heap_system(), 300000);
    for (uint32_t i = 0; i < w.count; i++) {
        assert_int_equal(ck_index_insert(&w.ix, w.hashes[i], i), CK_OK);
        if (i % 4096 == 4095) {
            assert_true(has(&w, i) && has(&w, i / 2) && !has(&w, i + 1));
            double per_entry = (double)w.ix.bytes / (double)w.ix.entries;
            if (i > 20000)
                assert_true(per_entry < 12.6); /* 64 bytes for nine entries, about 0.63 full, and what leads there */
        }
    }
    assert_in_range(w.hashed_again, 1000, 20000); /* growing from the first thousands on reads few rows */
    for (uint32_t i = 0; i < w.count; i++) assert_true(has(&w, i));
    for (uint32_t i = 0; i < w.count; i += 3) ck_index_erase(&w.ix, w.hashes[i], i);
    for (uint32_t i = 0; i < w.count; i++) assert_int_equal(has(&w, i), i % 3 != 0);
    for (uint32_t i = 0; i < w.count; i += 3) assert_int_equal(ck_index_insert(&w.ix, w.hashes[i], i), CK_OK);
    for (uint32_t i = 0; i < w.count; i++) assert_true(has(&w, i));
    assert_int_equal(w.ix.entries, w.count);
    world_close(&w);
}

/* Hashes that begin alike split to depths whose kept bits are new, where entries of before and after stand together. */
static void deep_segments_find_all(void **state) {
    (void)state;
    for (unsigned same = 11; same <= 13; same++) { /* bits behind the class, which the first byte decides */
        world w;
        world_open(&w, ck_heap_system(), 8000);
        for (uint32_t i = 0; i < w.count; i++)
            w.hashes[i] = 0x1055550000000000ULL | w.hashes[i] << (8 + same) >> (8 + same);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_int_equal(ck_index_insert(&w.ix, w.hashes[i], i), CK_OK);
            for (uint32_t k = i & 255; k <= i && i % 32 == 0; k += 256) assert_true(has(&w, k));
        }
        assert_in_range(w.ix.depth, 3 + same + 3, CK_INDEX_DEPTH_MAX);
        for (uint32_t i = 0; i < w.count; i++) assert_true(has(&w, i));
        world_close(&w);
    }
}

/* Entries of other hashes that a search comes upon, each of which costs the caller a look at a row. */
static void searches_meet_few_others(void **state) {
    (void)state;
    world w;
    size_t others = 0, searches = 100000;
    world_open(&w, ck_heap_system(), 300000);
    for (uint32_t i = 0; i < w.count; i++) assert_int_equal(ck_index_insert(&w.ix, w.hashes[i], i), CK_OK);
    for (size_t i = 0; i < searches; i++) {
        ck_index_probe p = ck_index_probe_begin(&w.ix, ck_mix64(i + w.count + 12345));
        for (uint32_t r; ck_index_probe_next(&p, &r);) others++;
    }
    assert_in_range(others, 1, searches / 500); /* by the tag alone they would be one in thirty */
    world_close(&w);
}

/* Splitting never tells these apart: they chain through the buckets of one segment. */
static void equal_hashes_chain(void **state) {
    (void)state;
    world w;
    world_open(&w, ck_heap_system(), 5000);
    for (uint32_t i = 0; i < w.count; i++) w.hashes[i] = i < 4000 ? 0xabcdef0123456789ULL : ck_mix64(i);
    for (uint32_t i = 0; i < w.count; i++) assert_int_equal(ck_index_insert(&w.ix, w.hashes[i], i), CK_OK);
    for (uint32_t i = 0; i < w.count; i++) assert_true(has(&w, i));
    for (uint32_t i = 0; i < 4000; i++) ck_index_erase(&w.ix, w.hashes[i], i);
    for (uint32_t i = 0; i < w.count; i++) assert_int_equal(has(&w, i), i >= 4000);
    world_close(&w);
}

static void failed_allocations_change_nothing(void **state) {
    (void)state;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    for (unsigned nth = 1;; nth++) {
        world w;
        world_open(&w, ck_tracked_heap_base(heap), 6000);
        ck_tracked_heap_fail_nth(heap, nth);
        uint32_t i = 0;
        while (i < w.count) {
            ck_status s = ck_index_insert(&w.ix, w.hashes[i], i);
            if (s == CK_OK) {
                i++;
                continue;
            }
            assert_int_equal(s, CK_NOMEM);
            assert_int_equal(w.ix.entries, i);
            assert_false(has(&w, i));
        }
        bool fired = ck_tracked_heap_fired(heap);
        ck_tracked_heap_fail_nth(heap, 0);
        for (i = 0; i < w.count; i++) assert_true(has(&w, i));
        world_close(&w);
        assert_int_equal(ck_tracked_heap_live_bytes(heap), 0);
        if (!fired) break;
    }
    ck_tracked_heap_free(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_inserted),           cmocka_unit_test(deep_segments_find_all),
        cmocka_unit_test(searches_meet_few_others),          cmocka_unit_test(equal_hashes_chain),
        cmocka_unit_test(failed_allocations_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
