#include "os/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "os/thread.h"

static void test_same_seed_same_draws(void **state) {
    (void)state;
    ck_seeded_random a, b, c;
    ck_seeded_random_init(&a, 7), ck_seeded_random_init(&b, 7), ck_seeded_random_init(&c, 8);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = a.base.next(&a.base);
        assert_true(x == b.base.next(&b.base));
        same += x == c.base.next(&c.base);
    }
    assert_int_equal(same, 0);
}

static void test_splitmix_known_values(void **state) {
    (void)state;
    ck_seeded_random r;
    ck_seeded_random_init(&r, 1234567);
    assert_true(r.base.next(&r.base) == 6457827717110365317ULL);
    assert_true(r.base.next(&r.base) == 3203168211198807973ULL);
}

static void test_below_is_in_range_and_even(void **state) {
    (void)state;
    ck_seeded_random r;
    ck_seeded_random_init(&r, 1);
    ck_proc p = {.random = &r.base};
    assert_int_equal(ck_random_below(&p, 0), 0);
    assert_int_equal(ck_random_below(&p, 1), 0);
    int hits[3] = {0};
    for (int i = 0; i < 30000; i++) {
        uint64_t v = ck_random_below(&p, 3);
        assert_true(v < 3);
        hits[v]++;
    }
    for (int i = 0; i < 3; i++) assert_in_range(hits[i], 9500, 10500);
    /* Just over half of the range: half of all words must be drawn again, or small results come twice as often. */
    uint64_t bound = (1ULL << 63) + 1;
    int low = 0;
    for (int i = 0; i < 10000; i++) low += ck_random_below(&p, bound) < bound / 2;
    assert_in_range(low, 4800, 5200);
}

static void test_uuid_has_version_and_variant(void **state) {
    (void)state;
    ck_proc p = {.random = ck_random_system()};
    char a[37], b[37];
    ck_random_uuid(&p, a);
    ck_random_uuid(&p, b);
    assert_int_equal(strlen(a), 36);
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    for (int i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            assert_int_equal(a[i], '-');
        else
            assert_non_null(strchr("0123456789abcdef", a[i]));
    }
}

static void *draw_many(void *arg) {
    ck_random *r = arg;
    for (int i = 0; i < 10000; i++) r->next(r);
    return NULL;
}

static void test_any_thread_may_draw(void **state) {
    (void)state;
    ck_seeded_random r, alone;
    ck_seeded_random_init(&r, 3), ck_seeded_random_init(&alone, 3);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) assert_int_equal(ck_thread_start(&t[i], "draw", draw_many, &r.base, NULL), CK_OK);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 20000; i++) alone.base.next(&alone.base);
    assert_true(r.base.next(&r.base) == alone.base.next(&alone.base)); /* no draw was lost */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_draws),       cmocka_unit_test(test_splitmix_known_values),
        cmocka_unit_test(test_below_is_in_range_and_even), cmocka_unit_test(test_uuid_has_version_and_variant),
        cmocka_unit_test(test_any_thread_may_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
