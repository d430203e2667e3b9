#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_arena arena;
    ck_map map;
} fixture;

static void init(fixture *f, bool nocase) {
    assert_int_equal(ck_tracked_heap_new(&f->heap), CK_OK);
    ck_budget_init(&f->budget, ck_tracked_heap_base(f->heap), 0);
    ck_arena_init(&f->arena, (ck_mem){&f->budget, CK_MEM_PLAN}, 16 << 20);
    ck_map_init(&f->map, &f->arena, nocase);
}
static void destroy(fixture *f) {
    ck_arena_destroy(&f->arena);
    ck_tracked_heap_free(f->heap);
}

static void test_many_names_in_their_order(void **state) {
    (void)state;
    fixture f;
    init(&f, false);
    int values[2000];
    char key[32];
    assert_null(ck_map_find(&f.map, CK_VIEW("none"))); /* empty */
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        void *was = &values[0];
        assert_int_equal(ck_map_put(&f.map, ck_view_of(key), &values[i], &was), CK_OK);
        assert_null(was);
    }
    memset(key, 0, sizeof key); /* keys are copied */
    assert_int_equal(f.map.count, 2000);
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        assert_ptr_equal(ck_map_get(&f.map, ck_view_of(key)), &values[i]);
        assert_true(ck_view_is(f.map.entries[i].key, key));
    }
    assert_null(ck_map_get(&f.map, CK_VIEW("key-2000")));
    assert_null(ck_map_get(&f.map, CK_VIEW("KEY-1")));
    destroy(&f);
}

static void test_replacing_keeps_the_place(void **state) {
    (void)state;
    fixture f;
    init(&f, true);
    int a, b, c;
    void *was;
    assert_int_equal(ck_map_put(&f.map, CK_VIEW("Name"), &a, NULL), CK_OK);
    assert_int_equal(ck_map_put(&f.map, CK_VIEW(""), &b, NULL), CK_OK); /* a name like any other */
    assert_int_equal(ck_map_put(&f.map, CK_VIEW("NAME"), &c, &was), CK_OK);
    assert_ptr_equal(was, &a);
    assert_int_equal(f.map.count, 2);
    assert_ptr_equal(ck_map_get(&f.map, CK_VIEW("nAmE")), &c);
    assert_ptr_equal(ck_map_get(&f.map, (ck_view){NULL, 0}), &b);
    assert_true(ck_view_is(f.map.entries[0].key, "Name")); /* as first written */
    destroy(&f);
}

static void test_allocation_failures(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        fixture f;
        init(&f, false);
        ck_tracked_heap_fail_nth(f.heap, n);
        ck_status s = CK_OK;
        int put = 0;
        char key[300];
        for (; put < 300 && s == CK_OK; put++) {
            snprintf(key, sizeof key, "%0250d", put);
            s = ck_map_put(&f.map, ck_view_of(key), &put, NULL);
        }
        bool fired = ck_tracked_heap_fired(f.heap);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        int there = fired ? put - 1 : put; /* what was put stays found */
        for (int i = 0; i < there; i++) {
            snprintf(key, sizeof key, "%0250d", i);
            assert_non_null(ck_map_find(&f.map, ck_view_of(key)));
        }
        assert_int_equal(f.map.count, there);
        destroy(&f);
        if (!fired) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_names_in_their_order),
        cmocka_unit_test(test_replacing_keeps_the_place),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
