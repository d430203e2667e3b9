#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_the_cpu_can_be_lowered_and_never_raised(void **state) {
    (void)state;
    unsetenv("CLINK_CPU");
    ck_cpu real = ck_cpu_detect();
    setenv("CLINK_CPU", "scalar", 1);
    ck_cpu none = ck_cpu_detect();
    assert_false(none.avx2 || none.bmi2 || none.avx512);
    setenv("CLINK_CPU", "avx2", 1);
    ck_cpu some = ck_cpu_detect();
    assert_false(some.avx512);
    assert_int_equal(some.avx2, real.avx2);
    setenv("CLINK_CPU", "nonsense", 1);
    ck_cpu all = ck_cpu_detect();
    assert_int_equal(all.avx2, real.avx2);
    assert_int_equal(all.avx512, real.avx512);
    unsetenv("CLINK_CPU");
}

static void test_proc_memory_is_the_procs_budget(void **state) {
    (void)state;
    ck_proc p = {.heap = ck_heap_system()};
    ck_budget_init(&p.budget, p.heap, 0);
    ck_mem m = ck_proc_mem(&p, CK_MEM_DECODE);
    void *x = ck_alloc(m, 10);
    assert_int_equal(ck_budget_used(&p.budget, CK_MEM_DECODE), 10);
    ck_free(m, x, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cpu_can_be_lowered_and_never_raised),
        cmocka_unit_test(test_proc_memory_is_the_procs_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
