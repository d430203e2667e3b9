/* Numbers in text: the grammar, exact integers, and doubles that equal the C library's. */
#include "base/base64.h"
#include "format/expect_int.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/number_int.h"
#include "format/value_int.h"

static const uint8_t *scan(const char *text, ck_number *n) { /* with the readable bytes it may look at */
    static char padded[256];
    const uint8_t *at;
    memset(padded, 0, sizeof padded);
    memcpy(padded, text, strlen(text));
    const uint8_t *end = ck_number_scan((const uint8_t *)padded, n, &at);
    return end ? (const uint8_t *)text + (end - (const uint8_t *)padded) : NULL;
}

static void test_grammar(void **state) {
    (void)state;
    static const char *const good[] = {"0",    "-0",  "5",    "10",    "-123", "0.5",
                                       "1.25", "1e5", "1E+5", "1e-05", "0e0",  "123456789012345678901234567890"};
    static const char *const bad[] = {"",   "-",    "+1", "01",  "-01", "00", ".5",
                                      "1.", "1.e5", "1e", "1e+", "e5",  "-a", "1.-5"};
    ck_number n;
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++) {
        const uint8_t *end = scan(good[i], &n);
        assert_ptr_equal(end, good[i] + strlen(good[i]));
    }
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        const uint8_t *end = scan(bad[i], &n);
        if (end) fail_msg("%s", bad[i]);
    }
    assert_non_null(scan("12abc", &n)); /* what follows is the caller's to judge */
    assert_int_equal(n.digits, 12);
}

static void expect_i64(const char *text, bool whole, bool range, int64_t value) {
    ck_number n;
    int64_t v = 0;
    bool r;
    assert_non_null(scan(text, &n));
    if (ck_number_i64(&n, &v, &r) != whole || (whole && v != value) || (!whole && r != range))
        fail_msg("%s: %lld %d", text, (long long)v, r);
}

static void test_integers(void **state) {
    (void)state;
    expect_i64("9223372036854775807", true, false, INT64_MAX);
    expect_i64("-9223372036854775808", true, false, INT64_MIN);
    expect_i64("9223372036854775808", false, true, 0);
    expect_i64("-9223372036854775809", false, true, 0);
    expect_i64("18446744073709551616", false, true, 0);
    expect_i64("99999999999999999999999999", false, true, 0);
    expect_i64("1.000000000000000000000000", true, false, 1);
    expect_i64("1.000000000000000000000001", false, false, 0);
    expect_i64("1234567890123456789.5", false, false, 0);
    expect_i64("12345678901234567890.5e-1", false, false, 0);
    expect_i64("0.00000000000000000000000000012e29", true, false, 12);
    expect_i64("120e-1", true, false, 12);
    expect_i64("1e18", true, false, 1000000000000000000);
    expect_i64("1e19", false, true, 0);
    expect_i64("0e99999999999999999999", true, false, 0);
    expect_i64("5e-99999999999999999999", false, false, 0);
    expect_i64("0.0", true, false, 0);
}

static void test_doubles(void **state) {
    (void)state;
    uint64_t seed = 1;
    int taken = 0;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        char text[64];
        uint64_t digits = (seed >> 1) % (i & 1 ? 100000000000ULL : 20000000000000000ULL);
        int point = (int)(seed >> 60), exponent = (int)(seed >> 50 & 63) - 32;
        char d[32];
        int n = snprintf(d, sizeof d, "%llu", (unsigned long long)digits);
        if (point > 0 && point < n)
            (void)snprintf(text, sizeof text, "%.*s.%se%d", n - point, d, d + n - point, exponent);
        else
            (void)snprintf(text, sizeof text, "-%s", d);
        ck_number num;
        double v, expected = strtod(text, NULL);
        assert_non_null(scan(text, &num));
        bool easy = ck_number_f64(&num, &v);
        if (!easy) {
            size_t len = strlen(text);
            assert_true(ck_number_f64_exact((const uint8_t *)text, (const uint8_t *)text + len, &v));
        }
        taken += easy;
        if (v != expected) fail_msg("%s: %.17g, not %.17g", text, v, expected);
    }
    assert_true(taken > (LDBL_MANT_DIG == 64 ? 150000 : 50000));
    ck_number num;
    double v;
    assert_non_null(scan("-0.0", &num));
    assert_true(ck_number_f64(&num, &v) && v == 0 && signbit(v));
    assert_non_null(scan("9007199254740993", &num));
    assert_false(ck_number_f64(&num, &v));
}

static void test_base64(void **state) {
    (void)state;
    uint8_t out[16];
    size_t n;
    assert_true(ck_base64_decode(CK_VIEW("+/9a"), out, &n) && n == 3);
    assert_memory_equal(out, "\xfb\xff\x5a", 3);
    static const char *const bad[] = {"A",    "AA",   "AAA",  "A===",     "====", "AA=A",
                                      "AB==", "AAB=", "AA-_", "AAAA====", "A\nAA"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_base64_decode(ck_view_of(bad[i]), out, &n)) fail_msg("%s", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grammar), cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_doubles), cmocka_unit_test(test_base64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
