#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_fnv_known_values(void **state) {
    (void)state;
    assert_true(ck_fnv1a("", 0) == 0xcbf29ce484222325ULL);
    assert_true(ck_fnv1a("a", 1) == 0xaf63dc4c8601ec8cULL);
    assert_true(ck_fnv1a("foobar", 6) == 0x85944171f73967e8ULL);
    assert_true(ck_fnv1a_more(ck_fnv1a("foo", 3), "bar", 3) == ck_fnv1a("foobar", 6));
    assert_true(ck_fnv1a("\xff", 1) != ck_fnv1a("\x7f", 1)); /* bytes are unsigned */
}

static void test_mixing_spreads_every_bit(void **state) {
    (void)state;
    for (int bit = 0; bit < 64; bit++) { /* each input bit changes about half of the output */
        int changed = 0;
        for (uint64_t x = 1; x <= 100; x++)
            changed += __builtin_popcountll(ck_mix64(x * 0x9E3779B97F4A7C15ULL) ^
                                            ck_mix64(x * 0x9E3779B97F4A7C15ULL ^ 1ULL << bit));
        assert_in_range(changed, 2800, 3600);
    }
}

static void test_seeds_matter(void **state) {
    (void)state;
    assert_true(ck_hash_u64(1, 5) != ck_hash_u64(2, 5));
    assert_true(ck_hash_bytes(1, "abc", 3) != ck_hash_bytes(2, "abc", 3));
    assert_true(ck_hash_bytes(1, "abc", 3) == ck_hash_bytes(1, "abc", 3));
    assert_true(ck_hash_bytes(1, "abc", 3) != ck_hash_bytes(1, "abd", 3));
    assert_true(ck_hash_combine(1, 2) != ck_hash_combine(2, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fnv_known_values),
        cmocka_unit_test(test_mixing_spreads_every_bit),
        cmocka_unit_test(test_seeds_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
