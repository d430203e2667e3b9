#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_bytes b;
} fixture;

static void init(fixture *f, size_t bytes_max) {
    assert_int_equal(ck_tracked_heap_new(&f->heap), CK_OK);
    ck_budget_init(&f->budget, ck_tracked_heap_base(f->heap), 0);
    ck_bytes_init(&f->b, (ck_mem){&f->budget, CK_MEM_PLAN}, bytes_max);
}
static void destroy(fixture *f) {
    ck_bytes_destroy(&f->b);
    ck_bytes_destroy(&f->b);
    assert_int_equal(ck_tracked_heap_live_blocks(f->heap), 0);
    ck_tracked_heap_free(f->heap);
}
#define OK(call) assert_int_equal((call), CK_OK)

static void test_appends(void **state) {
    (void)state;
    fixture f;
    init(&f, 1000);
    OK(ck_bytes_str(&f.b, "ab"));
    OK(ck_bytes_char(&f.b, 'c'));
    OK(ck_bytes_view(&f.b, CK_VIEW("de")));
    OK(ck_bytes_append(&f.b, NULL, 0));
    OK(ck_bytes_printf(&f.b, "<%d>", 42));
    OK(ck_bytes_terminate(&f.b));
    assert_int_equal(f.b.n, 9); /* the NUL is not counted */
    assert_string_equal(f.b.p, "abcde<42>");
    ck_bytes_clear(&f.b);
    assert_int_equal(ck_bytes_as_view(&f.b).n, 0);
    for (int i = 0; i < 300; i++) OK(ck_bytes_char(&f.b, (char)i));
    for (int i = 0; i < 300; i++) assert_int_equal(f.b.p[i], (char)i);
    destroy(&f);
}

static void test_integers_in_both_orders(void **state) {
    (void)state;
    fixture f;
    init(&f, 1000);
    OK(ck_bytes_u16le(&f.b, 0x0102));
    OK(ck_bytes_u32le(&f.b, 0x03040506));
    OK(ck_bytes_u64le(&f.b, 0x0708090A0B0C0D0EULL));
    OK(ck_bytes_u16be(&f.b, 0x0102));
    OK(ck_bytes_u32be(&f.b, 0x03040506));
    OK(ck_bytes_u64be(&f.b, 0x0708090A0B0C0D0EULL));
    static const unsigned char wanted[] = {2, 1, 6, 5, 4, 3, 14, 13, 12, 11, 10, 9,  8,  7,
                                           1, 2, 3, 4, 5, 6, 7,  8,  9,  10, 11, 12, 13, 14};
    assert_int_equal(f.b.n, sizeof wanted);
    assert_memory_equal(f.b.p, wanted, sizeof wanted);
    destroy(&f);
}

static void test_at_and_over_the_ceiling(void **state) {
    (void)state;
    fixture f;
    init(&f, 100);
    char block[101] = {0};
    OK(ck_bytes_append(&f.b, block, 99));
    assert_int_equal(ck_bytes_append(&f.b, block, 2), CK_FULL);
    assert_int_equal(f.b.n, 99); /* changed nothing */
    OK(ck_bytes_append(&f.b, block, 1));
    assert_int_equal(ck_bytes_char(&f.b, 'x'), CK_FULL);
    assert_int_equal(ck_bytes_u16le(&f.b, 1), CK_FULL);
    assert_int_equal(ck_bytes_u64be(&f.b, 1), CK_FULL);
    assert_int_equal(ck_bytes_printf(&f.b, "x"), CK_FULL);
    assert_int_equal(ck_bytes_terminate(&f.b), CK_FULL);
    assert_int_equal(ck_bytes_reserve(&f.b, SIZE_MAX), CK_FULL); /* no wrap */
    OK(ck_bytes_reserve(&f.b, 0));
    assert_true(f.b.capacity <= 100);
    ck_bytes_clear(&f.b);
    assert_int_equal(ck_bytes_append(&f.b, block, 101), CK_FULL);
    OK(ck_bytes_append(&f.b, block, 100));
    destroy(&f);
}

static void test_reserve_makes_the_next_appends_sure(void **state) {
    (void)state;
    fixture f;
    init(&f, 1000);
    OK(ck_bytes_reserve(&f.b, 500));
    ck_tracked_heap_fail_nth(f.heap, 1);
    for (int i = 0; i < 500; i++) OK(ck_bytes_char(&f.b, 'x'));
    assert_int_equal(ck_bytes_append(&f.b, f.b.p, 500), CK_NOMEM);
    assert_int_equal(f.b.n, 500);
    destroy(&f);
}

static void test_zero_is_empty(void **state) {
    (void)state;
    ck_bytes b = {0};
    ck_bytes_destroy(&b);
    assert_int_equal(ck_bytes_append(&b, "x", 1), CK_FULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_integers_in_both_orders),
        cmocka_unit_test(test_at_and_over_the_ceiling),
        cmocka_unit_test(test_reserve_makes_the_next_appends_sure),
        cmocka_unit_test(test_zero_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
