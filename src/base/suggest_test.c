#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *nearest(const char *wanted, const char *const *names, size_t count) {
    ck_suggest s;
    ck_suggest_init(&s, ck_view_of(wanted));
    for (size_t i = 0; i < count; i++) ck_suggest_offer(&s, ck_view_of(names[i]));
    return s.best.n ? s.best.p : NULL;
}

static void test_the_nearest_is_found(void **state) {
    (void)state;
    static const char *const names[] = {"connector", "format", "path", "rate_limit", "header", "null_string"};
    static const struct {
        const char *wanted, *best;
    } cases[] = {
        {"conector", "connector"},  /* missing */
        {"formatt", "format"},      /* doubled */
        {"fromat", "format"},       /* swapped */
        {"PATH", "path"},           /* case */
        {"pth", "path"},            /* short: one edit */
        {"rate", "rate_limit"},     /* a prefix of three letters or more */
        {"nul_str", "null_string"}, /* such a prefix, misspelt */
        {"ra", NULL},               /* too short for one */
        {"headrs", "header"},       /* two edits of six */
        {"xyz", NULL},
        {"completely_different", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = nearest(cases[i].wanted, names, 6);
        if (!cases[i].best)
            assert_null(got);
        else
            assert_string_equal(got, cases[i].best);
    }
}

static void test_long_names_are_never_near(void **state) {
    (void)state;
    char at[65], over[66];
    memset(at, 'a', 64), at[64] = 0;
    memset(over, 'a', 65), over[65] = 0;
    const char *names[] = {at};
    assert_ptr_equal(nearest(at, names, 1), at);
    assert_null(nearest(over, names, 1));
    names[0] = over;
    assert_null(nearest(at, names, 1));
}

static void test_the_first_of_equals_wins(void **state) {
    (void)state;
    static const char *const names[] = {"cat", "bat"};
    assert_string_equal(nearest("hat", names, 2), "cat");
}

static void test_another_letter_is_another_name(void **state) {
    (void)state;
    static const char *const names[] = {"a", "bb"};
    assert_null(nearest("x", names, 1));
    assert_string_equal(nearest("b", names, 2), "bb");
    assert_string_equal(nearest("A", names, 2), "a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nearest_is_found),
        cmocka_unit_test(test_long_names_are_never_near),
        cmocka_unit_test(test_the_first_of_equals_wins),
        cmocka_unit_test(test_another_letter_is_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
