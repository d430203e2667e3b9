#include "base/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_uppers_are_cleared(void **state) {
    (void)state;
    ck_vector_uppers_clear();
    assert_false(ck_vector_uppers_in_use());
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx")) skip();
    __asm__ volatile("vxorps %ymm0, %ymm0, %ymm0; vcmptrueps %ymm0, %ymm0, %ymm0"); /* what the baseline never does */
    if (!ck_vector_uppers_in_use()) skip();                                         /* this processor does not say */
    ck_vector_uppers_clear();
    assert_false(ck_vector_uppers_in_use());
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_uppers_are_cleared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
