#include "base/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_equality_and_order(void **state) {
    (void)state;
    ck_view none = {NULL, 0};
    assert_true(ck_view_eq(none, CK_VIEW("")));
    assert_true(ck_view_is(CK_VIEW("abc"), "abc"));
    assert_false(ck_view_is(CK_VIEW("abc"), "ab"));
    assert_true(ck_view_cmp(CK_VIEW("a"), CK_VIEW("b")) < 0);
    assert_true(ck_view_cmp(CK_VIEW("a"), CK_VIEW("ab")) < 0);
    assert_true(ck_view_cmp(CK_VIEW("\xff"), CK_VIEW("a")) > 0); /* unsigned */
    assert_int_equal(ck_view_cmp(none, CK_VIEW("")), 0);
    assert_int_equal(ck_view_of(NULL).n, 0);
}

static void test_nocase_is_ascii_only(void **state) {
    (void)state;
    assert_true(ck_view_eq_nocase(CK_VIEW("SeLeCt"), CK_VIEW("select")));
    assert_false(ck_view_eq_nocase(CK_VIEW("select"), CK_VIEW("selec")));
    assert_false(ck_view_eq_nocase(CK_VIEW("\xc3\x84"), CK_VIEW("\xc3\xa4"))); /* no letter of ours */
    assert_false(ck_view_eq_nocase(CK_VIEW("@"), CK_VIEW("`")));               /* 32 apart and no letters */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equality_and_order),
        cmocka_unit_test(test_nocase_is_ascii_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
