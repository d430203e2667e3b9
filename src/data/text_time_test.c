#include <time.h>

#include "data/sample_int.h"
#include "data/text.h"

static const int64_t day_us = 86400000000;

static void calendar(void **state) {
    sample *s = *state;
    assert_int_equal(ck_days_from_civil(1970, 1, 1), 0);
    assert_int_equal(ck_days_from_civil(1, 1, 1), -719162);
    assert_int_equal(ck_days_from_civil(2000, 3, 1), 11017);
    assert_int_equal(ck_days_from_civil(9999, 12, 31), 2932896);
    int64_t want = -719162;
    for (int64_t y = 1; y <= 9999; y++) /* every day, counted */
        for (unsigned m = 1; m <= 12; m++) {
            bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
            unsigned last = m == 2 ? (leap ? 29 : 28) : m == 4 || m == 6 || m == 9 || m == 11 ? 30 : 31;
            for (unsigned d = 1; d <= last; d++, want++) {
                int64_t year;
                unsigned month, day;
                ck_civil_from_days(want, &year, &month, &day);
                if (ck_days_from_civil(y, m, d) != want || year != y || month != m || day != d)
                    fail_msg("%04d-%02u-%02u", (int)y, m, d);
            }
        }
    assert_int_equal(want, 2932897);
    for (int i = 0; i < 2000; i++) { /* far outside too */
        int64_t days = (int64_t)sample_u64(s) >> sample_below(s, 60), year;
        unsigned month, day;
        char p[32];
        ck_civil_from_days(days, &year, &month, &day);
        assert_int_equal(ck_days_from_civil(year, month, day), days);
        assert_true(ck_print_date(p, days) <= 32);
    }
}

static void dates(void **state) {
    sample *s = *state;
    int64_t days = 0;
    assert_true(ck_parse_date(ck_view_of("2024-02-29"), &days));
    assert_int_equal(days, 19782);
    static const char *const bad[] = {"",
                                      "2023-02-29",
                                      "2024-13-01",
                                      "2024-00-01",
                                      "2024-01-00",
                                      "2024-04-31",
                                      "0000-01-01",
                                      "24-01-01",
                                      "2024-1-1",
                                      "2024/01/01",
                                      "20240101",
                                      "2024-01-01 ",
                                      "+2024-01-01",
                                      "2024-01-0a",
                                      "12024-01-01",
                                      "2024-01-01T00:00",
                                      "1900-02-29"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_parse_date(ck_view_of(bad[i]), &days)) fail_msg("accepted \"%s\"", bad[i]);
    for (int i = 0; i < 20000; i++) {
        int64_t want = sample_i64(s, CK_TYPE_DATE);
        char p[32];
        size_t n = ck_print_date(p, want);
        assert_int_equal(n, 10);
        assert_true(ck_parse_date((ck_view){p, n}, &days) && days == want);
    }
}

static void times(void **state) {
    sample *s = *state;
    int64_t us = 0;
    assert_true(ck_parse_time(ck_view_of("12:34"), &us) && us == 45240000000);
    assert_true(ck_parse_time(ck_view_of("23:59:59.999999999"), &us) && us == day_us - 1);
    assert_true(ck_parse_time(ck_view_of("00:00:00.5"), &us) && us == 500000);
    static const char *const bad[] = {
        "",       "24:00",   "12:60",     "12:00:60",    "1:00",       "12",
        "12:",    "12:00:",  "12:00:00.", "12:00.5",     "12:00:00,5", "12:00:00.0000000001",
        "12:00Z", "12:00:0", " 12:00",    "12:00:00.5x", "-1:00"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        if (ck_parse_time(ck_view_of(bad[i]), &us)) fail_msg("accepted \"%s\"", bad[i]);
    for (int i = 0; i < 20000; i++) {
        int64_t want = sample_i64(s, CK_TYPE_TIME);
        char p[32];
        size_t n = ck_print_time(p, want, 6);
        assert_true(ck_parse_time((ck_view){p, n}, &us) && us == want);
    }
}

static void timestamps(void **state) {
    sample *s = *state;
    static const struct {
        const char *text;
        const char *utc; /* NULL: refused */
        bool zoned;
    } cases[] = {
        {"2013-01-01T10:00:00Z", "2013-01-01T10:00:00", true},
        {"2013-01-01 10:00:00", "2013-01-01T10:00:00", false},
        {"2013-01-01T10:00", "2013-01-01T10:00:00", false},
        {"2013-01-01", "2013-01-01T00:00:00", false},
        {"2013-01-01T10:00:00.123Z", "2013-01-01T10:00:00.123", true},
        {"2013-01-01T10:00:00.123456789", "2013-01-01T10:00:00.123456", false},
        {"2013-01-01T10:00:00+05:30", "2013-01-01T04:30:00", true},
        {"2013-01-01T10:00:00-0800", "2013-01-01T18:00:00", true},
        {"2013-01-01T10:00+02", "2013-01-01T08:00:00", true},
        {"1969-12-31T23:59:59.5", "1969-12-31T23:59:59.500", false},
        {"0001-01-01T00:00:00", "0001-01-01T00:00:00", false},
        {"9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999", false},
        {"0001-01-01T00:00:00+00:01", NULL, false},
        {"9999-12-31T23:59:59-00:01", NULL, false},
        {"2013-13-01T10:00:00Z", NULL, false},
        {"2013-00-01T10:00:00Z", NULL, false},
        {"2013-01-00T10:00:00Z", NULL, false},
        {"2013-01-32T10:00:00Z", NULL, false},
        {"0000-01-01T10:00:00Z", NULL, false},
        {"2013-01-01T10:60:00Z", NULL, false},
        {"2013-01-01T10:00:60Z", NULL, false},
        {"2013-01-01T10:00:0xZ", NULL, false},
        {"201/-01-01T10:00:00Z", NULL, false},
        {"2013-01-01T1::00:00Z", NULL, false},
        {"2013-01-01T10:00:00.1234567890", NULL, false},
        {"2000-02-29T00:00:00.5+00:00", "2000-02-29T00:00:00.500", true},
        {"1900-02-29T00:00:00", NULL, false},
        {"2013-01-01T24:00:00Z", NULL, false},
        {"2013-02-30T10:00:00Z", NULL, false},
        {"2013-01-01T10:00:00Zx", NULL, false},
        {"2013-01-01T10:00:00 Z", NULL, false},
        {"2013-01-01t10:00:00", NULL, false},
        {"2013-01-01  10:00:00", NULL, false},
        {"2013-01-01T", NULL, false},
        {"2013-01-01T10", NULL, false},
        {"2013-01-01T10:00:00.", NULL, false},
        {"2013-01-01T10:00:00+", NULL, false},
        {"2013-01-01T10:00:00+5", NULL, false},
        {"2013-01-01T10:00:00+05:", NULL, false},
        {"2013-01-01T10:00:00+05:3", NULL, false},
        {"2013-01-01T10:00:00+19:00", NULL, false},
        {"2013-01-01T10:00:00+18:01", NULL, false},
        {"2013-01-01T10:00:00+05:60", NULL, false},
        {"1357034400", NULL, false},
        {"", NULL, false},
    };
    int64_t us = 0;
    bool zoned = false;
    char p[40];
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        bool ok = ck_parse_timestamp(ck_view_of(cases[i].text), &us, &zoned);
        if (ok != (cases[i].utc != NULL)) fail_msg("\"%s\"", cases[i].text);
        if (!ok) continue;
        assert_int_equal(zoned, cases[i].zoned);
        p[ck_print_timestamp(p, us, 6, 'T', false)] = 0;
        assert_string_equal(p, cases[i].utc);
    }
    for (int i = 0; i < 20000; i++) {
        int64_t want = sample_i64(s, CK_TYPE_TIMESTAMP);
        bool z = sample_one_in(s, 2);
        size_t n = ck_print_timestamp(p, want, 6, sample_one_in(s, 2) ? ' ' : 'T', z);
        assert_true(n <= 32);
        assert_true(ck_parse_timestamp((ck_view){p, n}, &us, &zoned) && us == want && zoned == z);
    }
}

static void agrees_with_libc(void **state) {
    sample *s = *state;
    for (int i = 0; i < 5000; i++) {
        int64_t us = sample_i64(s, CK_TYPE_TIMESTAMP);
        us -= ((us % 1000000) + 1000000) % 1000000;
        time_t seconds = (time_t)(us / 1000000);
        struct tm tm;
        char p[40], c[40];
        gmtime_r(&seconds, &tm);
        snprintf(c, sizeof c, "%04d-%02d-%02d %02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
        p[ck_print_timestamp(p, us, 6, ' ', true)] = 0;
        assert_string_equal(p, c);
    }
}

static void fractions(void **state) {
    (void)state;
    static const struct {
        int64_t us;
        int precision;
        const char *text;
    } cases[] = {
        {0, 6, "00:00:00"},           {1, 6, "00:00:00.000001"},      {1000, 6, "00:00:00.001"},
        {100000, 6, "00:00:00.100"},  {120300, 6, "00:00:00.120300"}, {123456, 3, "00:00:00.123"},
        {456, 3, "00:00:00"},         {123456, 0, "00:00:00"},        {123456, 1, "00:00:00.1"},
        {123456, 4, "00:00:00.1234"}, {123000, 5, "00:00:00.123"},    {86399999999, 6, "23:59:59.999999"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        char p[32];
        p[ck_print_time(p, cases[i].us, cases[i].precision)] = 0;
        assert_string_equal(p, cases[i].text);
    }
    char p[40];
    p[ck_print_timestamp(p, -1, 3, ' ', false)] = 0; /* cut towards the past */
    assert_string_equal(p, "1969-12-31 23:59:59.999");
    p[ck_print_date(p, INT64_MIN)] = 0;
    assert_int_equal(strlen(p), 24);
    p[ck_print_timestamp(p, INT64_MIN, 6, ' ', true)] = 0;
    assert_string_equal(p, "-290308-12-21 19:59:05.224192Z");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(calendar),         SAMPLE_TEST(dates),     SAMPLE_TEST(times), SAMPLE_TEST(timestamps),
        SAMPLE_TEST(agrees_with_libc), SAMPLE_TEST(fractions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
