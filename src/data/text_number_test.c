#include <locale.h>
#include <math.h>

#include "data/sample_int.h"
#include "data/text.h"

static ck_view view(const char *z) { return ck_view_of(z); }

static void integers(void **state) {
    sample *s = *state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+7", 7},
                {"007", 7},
                {"000000000000000000000000000012", 12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++) {
        int64_t v = 99;
        assert_true(ck_parse_i64(view(good[i].text), &v));
        assert_true(v == good[i].value);
    }
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "--1",
                                      " 1",
                                      "1 ",
                                      "1.",
                                      "1e",
                                      "0x1",
                                      "1_00",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999",
                                      "18446744073709551617",
                                      "NULL"};
    int64_t v = 0;
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_parse_i64(view(bad[i]), &v)) fail_msg("accepted \"%s\"", bad[i]);
    assert_false(ck_parse_i64((ck_view){"1\0", 2}, &v));
    for (int i = 0; i < 20000; i++) {
        int64_t want = (int64_t)(sample_u64(s) >> sample_below(s, 64)) * (sample_one_in(s, 2) ? 1 : -1);
        char p[24], c[24];
        size_t n = ck_print_i64(p, want);
        assert_int_equal(n, snprintf(c, sizeof c, "%lld", (long long)want));
        assert_memory_equal(p, c, n);
        assert_true(ck_parse_i64((ck_view){p, n}, &v) && v == want);
    }
    char p[24];
    assert_int_equal(ck_print_i64(p, INT64_MIN), 20);
    assert_memory_equal(p, "-9223372036854775808", 20);
}

static void booleans(void **state) {
    (void)state;
    bool b = false;
    assert_true(ck_parse_bool(view("TRUE"), &b) && b);
    assert_true(ck_parse_bool(view("No"), &b) && !b);
    assert_true(ck_parse_bool(view("1"), &b) && b);
    assert_true(ck_parse_bool(view("f"), &b) && !b);
    assert_false(ck_parse_bool(view(""), &b));
    assert_false(ck_parse_bool(view("tru"), &b));
    assert_false(ck_parse_bool(view("true "), &b));
    assert_false(ck_parse_bool(view("2"), &b));
}

static uint64_t bits_of(double d) {
    uint64_t b;
    memcpy(&b, &d, 8);
    return b;
}

static void parses_as_strtod(const char *text) {
    double got = 0, want = strtod(text, NULL);
    bool ok = ck_parse_f64(view(text), &got);
    if (isinf(want)) {
        if (ok) fail_msg("%.60s is beyond a double, got %g", text, got);
    } else if (!ok || bits_of(got) != bits_of(want)) {
        fail_msg("%.60s: got %a, strtod says %a", text, got, want);
    }
}

static void doubles_parse_as_strtod(void **state) {
    sample *s = *state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "1.",
                                        ".5",
                                        "-.5",
                                        "+.5e1",
                                        "007.50",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "9007199254740993.0000000000000000000000000000000000001",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "1e309",
                                        "1e-400",
                                        "1e999999999999999999999",
                                        "0e999999999999999999999",
                                        "1e-999999999999999999999",
                                        "4.9e-324",
                                        "2.4e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "2.2250738585072011e-308",
                                        "6929495644600919.5",
                                        "0.1e-5"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++) parses_as_strtod(texts[i]);
    char text[1600];
    for (int i = 0; i < 40000; i++) { /* random digits, point and exponent anywhere */
        size_t n = 0, digits = 1 + sample_below(s, sample_one_in(s, 10) ? 60 : 19), point = sample_below(s, 20);
        if (sample_one_in(s, 2)) text[n++] = '-';
        for (size_t k = 0; k < digits; k++) {
            if (k == point) text[n++] = '.';
            text[n++] = (char)('0' + sample_below(s, 10));
        }
        if (sample_one_in(s, 2)) n += (size_t)sprintf(text + n, "e%d", (int)sample_below(s, 640) - 320);
        text[n] = 0;
        parses_as_strtod(text);
    }
    for (int i = 0; i < 1500; i++) { /* halfway between two doubles, and a hair beside it */
        uint64_t b = sample_u64(s) & 0x7fffffffffffffffULL;
        if (i % 3 == 0) b &= 0x000fffffffffffffULL; /* subnormal: the most digits */
        if (i % 3 == 1) b = (b & 0x000fffffffffffffULL) | (uint64_t)(1023 + sample_below(s, 60)) << 52;
        double lo, hi;
        memcpy(&lo, &b, 8);
        b++;
        memcpy(&hi, &b, 8);
        if (!isfinite(lo) || !isfinite(hi)) continue;
        long double mid = ((long double)lo + (long double)hi) / 2;
        int n = snprintf(text, sizeof text, "%.1150Lf", mid);
        parses_as_strtod(text);
        text[n - 1] = '1'; /* the last of many zeros */
        parses_as_strtod(text);
    }
}

static void doubles_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",      " ",     ".",     "-",   "+",    "e5",     "1e", "1e+",
                                      "1.5.2", "1,5",   "0x1p3", "inf", "+nan", "nanx",   "1 ", " 1",
                                      "--1",   "1e5.0", "-nan",  "in",  "1d",   "infinit"};
    double d;
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_parse_f64(view(bad[i]), &d)) fail_msg("accepted \"%s\"", bad[i]);
    assert_false(ck_parse_f64((ck_view){"1\0", 2}, &d));
    assert_true(ck_parse_f64(view("NaN"), &d) && isnan(d));
    assert_true(ck_parse_f64(view("-infinity"), &d) && d < 0 && isinf(d));
    assert_true(ck_parse_f64(view("INFINITY"), &d) && d > 0 && isinf(d));
    assert_true(ck_parse_f64(view("-0"), &d) && d == 0 && signbit(d));
}

static int significant(const char *p) {
    int count = 0, zeros = 0;
    for (; *p && *p != 'e'; p++) {
        if (*p < '0' || *p > '9' || (*p == '0' && count == 0)) continue;
        zeros = *p == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

static void reads_back_and_is_shortest(double d) {
    char p[40], c[60];
    size_t n = ck_print_f64(p, d);
    assert_true(n <= 32);
    p[n] = 0;
    double back = 0;
    assert_true(ck_parse_f64((ck_view){p, n}, &back));
    if (isnan(d)) {
        assert_true(isnan(back));
        return;
    }
    if (bits_of(back) != bits_of(d) || (isfinite(d) && bits_of(strtod(p, NULL)) != bits_of(d)))
        fail_msg("%a prints as %s", d, p);
    int digits = significant(p);
    if (digits <= 1 || !isfinite(d)) return;
    snprintf(c, sizeof c, "%.*e", digits - 2, d);
    if (strtod(c, NULL) == d) fail_msg("%s is shorter than %s", c, p);
}

static void doubles_print_shortest(void **state) {
    sample *s = *state;
    static const struct {
        double value;
        const char *text;
    } known[] = {{0.0, "0.0"},
                 {-0.0, "-0.0"},
                 {1.0, "1.0"},
                 {-17.25, "-17.25"},
                 {0.1, "0.1"},
                 {0.001, "0.001"},
                 {12.3456, "12.3456"},
                 {100.05, "100.05"},
                 {1e10, "10000000000.0"},
                 {123456789012345.0, "123456789012345.0"},
                 {1e15, "1000000000000000.0"},
                 {9007199254740993.0, "9007199254740992.0"},
                 {1e20, "100000000000000000000.0"},
                 {1e21, "1e21"},
                 {1.5e300, "1.5e300"},
                 {1e-7, "1e-7"},
                 {0.000001, "0.000001"},
                 {5e-324, "5e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e308"},
                 {2.0 / 3, "0.6666666666666666"},
                 {NAN, "NaN"},
                 {-NAN, "NaN"},
                 {INFINITY, "Infinity"},
                 {-INFINITY, "-Infinity"}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(known); i++) {
        char p[40];
        p[ck_print_f64(p, known[i].value)] = 0;
        assert_string_equal(p, known[i].text);
    }
    for (int i = 0; i < 30000; i++) {
        uint64_t b = sample_u64(s);
        double d;
        memcpy(&d, &b, 8);
        reads_back_and_is_shortest(d);
        reads_back_and_is_shortest((double)(int64_t)(b >> sample_below(s, 64)));
        reads_back_and_is_shortest((double)(int64_t)(b % 200000001) / 10000 - 10000);
        reads_back_and_is_shortest(nextafter((double)(int64_t)(b % 200000001) / 1000, 0));
        reads_back_and_is_shortest((double)(b % 1000000000000000ULL) / 100);
    }
}

static void floats_print_shortest(void **state) {
    sample *s = *state;
    char p[40];
    p[ck_print_f32(p, 0.1f)] = 0;
    assert_string_equal(p, "0.1");
    p[ck_print_f32(p, 16777216.0f)] = 0;
    assert_string_equal(p, "16777216.0");
    p[ck_print_f32(p, -INFINITY)] = 0;
    assert_string_equal(p, "-Infinity");
    for (int i = 0; i < 30000; i++) {
        uint32_t b = (uint32_t)sample_u64(s);
        float f;
        memcpy(&f, &b, 4);
        if (!isfinite(f)) continue;
        p[ck_print_f32(p, f)] = 0;
        float back = strtof(p, NULL);
        assert_memory_equal(&back, &f, 4);
        int digits = significant(p);
        char c[60];
        if (digits > 1) {
            snprintf(c, sizeof c, "%.*e", digits - 2, (double)f);
            if (strtof(c, NULL) == f) fail_msg("%s is shorter than %s", c, p);
        }
    }
}

static const char *decimal_text(ck_i128 v, int scale) {
    static char p[64];
    p[ck_print_decimal(p, v, scale)] = 0;
    return p;
}

static void decimals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int precision, scale;
        const char *want; /* NULL: overflow */
    } cases[] = {
        {"0", 1, 0, "0"},
        {"-0.00", 3, 2, "0.00"},
        {"1.005", 10, 2, "1.01"},
        {"-1.005", 10, 2, "-1.01"},
        {"1.0049999999999999999999999999999999999999999", 10, 2, "1.00"},
        {"0.5", 1, 0, "1"},
        {"0.49", 1, 0, "0"},
        {".05", 5, 1, "0.1"},
        {"5.", 5, 1, "5.0"},
        {"0.004", 5, 2, "0.00"},
        {"9.995", 3, 2, NULL},
        {"9.994", 3, 2, "9.99"},
        {"999.99", 5, 2, "999.99"},
        {"1000", 5, 2, NULL},
        {"12345e-2", 5, 2, "123.45"},
        {"1.2345E+2", 5, 2, "123.45"},
        {"1e37", 38, 0, "10000000000000000000000000000000000000"},
        {"1e38", 38, 0, NULL},
        {"1e-500", 38, 10, "0.0000000000"},
        {"1e999999999999999", 38, 0, NULL},
        {"0e999999999999999", 38, 0, "0"},
        {"1e-999999999999999", 38, 38, "0.00000000000000000000000000000000000000"},
        {"99999999999999999999999999999999999999", 38, 0, "99999999999999999999999999999999999999"},
        {"-99999999999999999999999999999999999999.4", 38, 0, "-99999999999999999999999999999999999999"},
        {"99999999999999999999999999999999999999.5", 38, 0, NULL},
        {"0.99999999999999999999999999999999999999", 38, 38, "0.99999999999999999999999999999999999999"},
        {"0.999999999999999999999999999999999999995", 38, 38, NULL},
        {"000000000000000000000000000000000000000000000000001.5", 2, 1, "1.5"},
        {"0.000000000000000000000000000000000000000000000000015", 38, 38, "0.00000000000000000000000000000000000000"},
        {"123456789012345678901234567890.12345678", 38, 8, "123456789012345678901234567890.12345678"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_i128 v = 0;
        bool overflow = false;
        bool ok = ck_parse_decimal(view(cases[i].text), cases[i].precision, cases[i].scale, &v, &overflow);
        if (ok != (cases[i].want != NULL) || overflow == ok) fail_msg("%s: %d %d", cases[i].text, ok, overflow);
        if (ok) assert_string_equal(decimal_text(v, cases[i].scale), cases[i].want);
    }
    static const char *const bad[] = {"",    ".",        "-",  "e1", "1e",    "1.2.3",
                                      "NaN", "Infinity", " 1", "1 ", "1,000", "0x10"};
    ck_i128 v;
    bool overflow;
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_parse_decimal(view(bad[i]), 38, 2, &v, &overflow) || overflow) fail_msg("accepted \"%s\"", bad[i]);
}

static void decimals_read_back(void **state) {
    sample *s = *state;
    for (int i = 0; i < 20000; i++) {
        int precision = 1 + (int)sample_below(s, 38), scale = (int)sample_below(s, (uint32_t)precision + 1);
        ck_i128 want = sample_decimal(s, precision), got = 0;
        bool overflow;
        const char *text = decimal_text(want, scale);
        assert_true(strlen(text) < 48);
        if (!ck_parse_decimal(view(text), precision, scale, &got, &overflow) || got != want)
            fail_msg("%s does not read back", text);
    }
}

/* Rounding against exact integers: v over 10^drop, half away from zero. */
static void decimals_round_half_up(void **state) {
    sample *s = *state;
    for (int i = 0; i < 20000; i++) {
        int64_t v = (int64_t)(sample_u64(s) % 2000000000001) - 1000000000000;
        int scale = 6, keep = (int)sample_below(s, 7);
        int64_t unit = 1;
        for (int k = keep; k < scale; k++) unit *= 10;
        int64_t a = v < 0 ? -v : v, want = (a + unit / 2) / unit;
        ck_i128 got = 0;
        bool overflow;
        assert_true(ck_parse_decimal(view(decimal_text(v, scale)), 38, keep, &got, &overflow));
        assert_true(got == (v < 0 ? -want : want));
    }
}

static void locale_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++)
        if (setlocale(LC_ALL, names[i])) break; /* where there is one with a decimal comma */
    double d;
    assert_true(ck_parse_f64(view("1234567890.123456789e-3"), &d) && d == 1234567.890123456789);
    char p[40];
    p[ck_print_f64(p, 1.0 / 3)] = 0;
    assert_string_equal(p, "0.3333333333333333");
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(integers),
        SAMPLE_TEST(booleans),
        SAMPLE_TEST(doubles_parse_as_strtod),
        SAMPLE_TEST(doubles_refused),
        SAMPLE_TEST(doubles_print_shortest),
        SAMPLE_TEST(floats_print_shortest),
        SAMPLE_TEST(decimals),
        SAMPLE_TEST(decimals_read_back),
        SAMPLE_TEST(decimals_round_half_up),
        SAMPLE_TEST(locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
