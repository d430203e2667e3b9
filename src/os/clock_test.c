#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"

static void test_system_clock_goes_forward(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    int64_t a = ck_mono_us(&t.proc), b = ck_mono_us(&t.proc);
    assert_true(b >= a);
    assert_true(ck_wall_us(&t.proc) > 1600000000LL * 1000000); /* later than 2020: the unit is right */
    ck_test_proc_destroy(&t);
}

static void test_manual_clock_stands_until_moved(void **state) {
    (void)state;
    ck_manual_clock c;
    ck_manual_clock_init(&c, 5, 1000);
    ck_proc p = {.clock = &c.base};
    assert_int_equal(ck_mono_us(&p), 5);
    assert_int_equal(ck_wall_us(&p), 1000);
    ck_manual_clock_advance(&c, 7);
    assert_int_equal(ck_mono_us(&p), 12);
    assert_int_equal(ck_wall_us(&p), 1007);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_clock_goes_forward),
        cmocka_unit_test(test_manual_clock_stands_until_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
