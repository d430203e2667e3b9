#include "base/mem.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_mem mem;
} fixture;

static void init(fixture *f, size_t limit) {
    assert_int_equal(ck_tracked_heap_new(&f->heap), CK_OK);
    ck_budget_init(&f->budget, ck_tracked_heap_base(f->heap), limit);
    f->mem = (ck_mem){&f->budget, CK_MEM_STATE};
}
static void destroy(fixture *f) {
    assert_int_equal(ck_tracked_heap_live_blocks(f->heap), 0);
    assert_int_equal(ck_budget_total(&f->budget), 0);
    ck_tracked_heap_free(f->heap);
}

static void test_what_is_given_back_is_counted(void **state) {
    (void)state;
    fixture f;
    init(&f, 0);
    void *a = ck_alloc(f.mem, 100), *b = ck_alloc(ck_mem_as(f.mem, CK_MEM_QUEUE), 50), *nothing = ck_alloc(f.mem, 0);
    assert_true(a && b && nothing);
    assert_int_equal((uintptr_t)a % 16, 0);
    assert_int_equal(ck_budget_used(&f.budget, CK_MEM_STATE), 100);
    assert_int_equal(ck_budget_used(&f.budget, CK_MEM_QUEUE), 50);
    assert_int_equal(ck_budget_total(&f.budget), 150);
    assert_int_equal(ck_tracked_heap_live_bytes(f.heap), 150);
    a = ck_realloc(f.mem, a, 100, 400);
    assert_int_equal(ck_budget_total(&f.budget), 450);
    a = ck_realloc(f.mem, a, 400, 40);
    assert_int_equal(ck_budget_total(&f.budget), 90);
    ck_free(f.mem, a, 40), ck_free(ck_mem_as(f.mem, CK_MEM_QUEUE), b, 50), ck_free(f.mem, nothing, 0);
    ck_free(f.mem, NULL, 77);
    assert_int_equal(f.budget.peak, 450);
    unsigned char *z = ck_alloc_zero(f.mem, 64);
    for (int i = 0; i < 64; i++) assert_int_equal(z[i], 0);
    ck_free(f.mem, z, 64);
    destroy(&f);
}

static void test_realloc_keeps_the_bytes(void **state) {
    (void)state;
    fixture f;
    init(&f, 0);
    char *p = ck_realloc(f.mem, NULL, 0, 10); /* as alloc */
    memcpy(p, "123456789", 10);
    p = ck_realloc(f.mem, p, 10, 1000);
    assert_string_equal(p, "123456789");
    ck_tracked_heap_fail_nth(f.heap, 1);
    assert_null(ck_realloc(f.mem, p, 1000, 2000));
    assert_string_equal(p, "123456789"); /* untouched */
    assert_int_equal(ck_budget_total(&f.budget), 1000);
    ck_free(f.mem, p, 1000);
    destroy(&f);
}

static void test_the_limit_is_over_all_categories(void **state) {
    (void)state;
    fixture f;
    init(&f, 100);
    void *a = ck_alloc(f.mem, 60), *b = ck_alloc(ck_mem_as(f.mem, CK_MEM_PLAN), 40);
    assert_true(a && b); /* exactly the limit */
    assert_null(ck_alloc(f.mem, 1));
    assert_null(ck_realloc(f.mem, a, 60, 61));
    assert_null(ck_alloc(f.mem, SIZE_MAX));
    assert_false(ck_mem_take(f.mem, SIZE_MAX)); /* does not wrap around to a small sum */
    assert_false(ck_mem_take(f.mem, SIZE_MAX - 99));
    assert_int_equal(ck_budget_total(&f.budget), 100);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_nomem(&err, f.mem, 1), CK_NOMEM);
    assert_non_null(strstr(err.msg, "state"));
    assert_non_null(strstr(err.msg, "limit of 100"));
    ck_free(f.mem, a, 60);
    assert_true(ck_mem_take(f.mem, 60)); /* bytes from elsewhere count the same */
    assert_null(ck_alloc(f.mem, 1));
    ck_mem_give(f.mem, 60);
    ck_free(ck_mem_as(f.mem, CK_MEM_PLAN), b, 40);
    destroy(&f);
}

static void test_arrays_do_not_overflow(void **state) {
    (void)state;
    fixture f;
    init(&f, 0);
    assert_null(ck_alloc_array(f.mem, SIZE_MAX / 2, 3));
    void *p = ck_alloc_array(f.mem, 10, 8);
    assert_int_equal(ck_budget_total(&f.budget), 80);
    ck_free(f.mem, p, 80);
    destroy(&f);
}

/* Three blocks that belong together: the pattern every init of the engine follows. */
static ck_status build(fixture *f) {
    void *p[3] = {0};
    ck_status s = CK_OK;
    for (int i = 0; i < 3 && s == CK_OK; i++)
        if (!(p[i] = ck_alloc(f->mem, 10 + (size_t)i))) s = CK_NOMEM;
    for (int i = 0; i < 3; i++) ck_free(f->mem, p[i], 10 + (size_t)i);
    return s;
}

static void test_failing_the_nth_allocation(void **state) {
    (void)state;
    fixture f;
    init(&f, 0);
    uint64_t n = 1;
    for (;; n++) {
        ck_tracked_heap_fail_nth(f.heap, n);
        ck_status s = build(&f);
        assert_int_equal(ck_tracked_heap_live_blocks(f.heap), 0);
        assert_int_equal(ck_budget_total(&f.budget), 0);
        if (!ck_tracked_heap_fired(f.heap)) {
            assert_int_equal(s, CK_OK);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
    }
    assert_int_equal(n, 4); /* each of three failed once */
    ck_tracked_heap_fail_nth(f.heap, 0);
    destroy(&f);
}

static void test_a_crash_drops_every_block(void **state) {
    (void)state;
    fixture f;
    init(&f, 0);
    for (size_t i = 0; i < 100; i++) assert_non_null(ck_alloc(f.mem, i));
    assert_int_equal(ck_tracked_heap_live_blocks(f.heap), 100);
    ck_tracked_heap_drop_all(f.heap);
    assert_int_equal(ck_tracked_heap_live_blocks(f.heap), 0);
    assert_int_equal(ck_tracked_heap_live_bytes(f.heap), 0);
    assert_non_null(ck_alloc(f.mem, 1));
    ck_tracked_heap_free(f.heap); /* drops what is left */
    ck_tracked_heap_free(NULL);
}

static void *allocate_much(void *arg) {
    fixture *f = arg;
    for (size_t i = 1; i < 2000; i++) {
        void *p = ck_alloc(f->mem, i % 100);
        if (p) ck_free(f->mem, p, i % 100);
    }
    return NULL;
}

static void test_any_thread_may_allocate(void **state) {
    (void)state;
    fixture f;
    init(&f, 150); /* at times over the limit */
    pthread_t t[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, allocate_much, &f), 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    destroy(&f);
}

static void test_category_names(void **state) {
    (void)state;
    for (int i = 0; i < CK_MEM_CATEGORY_COUNT; i++)
        assert_string_not_equal(ck_mem_category_name((ck_mem_category)i), "unknown");
    assert_string_equal(ck_mem_category_name(CK_MEM_CATEGORY_COUNT), "unknown");
}

static void test_the_system_heap(void **state) {
    (void)state;
    ck_heap *h = ck_heap_system();
    void *p = h->alloc(h, 0);
    assert_non_null(p);
    p = h->realloc(h, p, 0, 100);
    assert_non_null(p);
    h->free(h, p, 100);
}

static void uncounted_counts_nothing(void **state) {
    (void)state;
    ck_mem m = {ck_budget_uncounted(), CK_MEM_QUEUE};
    void *p = ck_alloc(m, 1000);
    assert_non_null(p);
    p = ck_realloc(m, p, 1000, 5000);
    assert_non_null(p);
    assert_int_equal(ck_budget_total(m.budget), 0);
    ck_free(m, p, 5000);
    assert_int_equal(ck_budget_total(m.budget), 0);
    assert_true(ck_mem_take(m, SIZE_MAX));
    ck_mem_give(m, SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uncounted_counts_nothing),
        cmocka_unit_test(test_what_is_given_back_is_counted),
        cmocka_unit_test(test_realloc_keeps_the_bytes),
        cmocka_unit_test(test_the_limit_is_over_all_categories),
        cmocka_unit_test(test_arrays_do_not_overflow),
        cmocka_unit_test(test_failing_the_nth_allocation),
        cmocka_unit_test(test_a_crash_drops_every_block),
        cmocka_unit_test(test_any_thread_may_allocate),
        cmocka_unit_test(test_category_names),
        cmocka_unit_test(test_the_system_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
