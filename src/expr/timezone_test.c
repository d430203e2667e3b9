/* Zones against the C library, which reads the same files; local time and back; files that are damaged. */
#include "expr/timezone.h"

#include <time.h>

#include "base/hash.h"
#include "expr/sample_int.h"
#include "expr/time_int.h"
#include "expr/timezone_int.h"
#include "os/fs.h"

static const char *const zones[] = {"Europe/Berlin",     "America/New_York",  "Asia/Kolkata",     "Australia/Lord_Howe",
                                    "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia",     "Asia/Tehran",
                                    "Europe/Dublin",     "Antarctica/Troll",  "America/St_Johns", "Etc/GMT+5"};

static uint64_t next(uint64_t *seed) { return ck_mix64(*seed += 0x9E3779B97F4A7C15ULL); }

static const ck_timezone *load(sample *s, const char *name) {
    const ck_timezone *z;
    s->proc.fs = ck_fs_system();
    s->proc.heap = ck_tracked_heap_base(s->heap);
    if (ck_timezone_load(&s->proc, &s->arena, name, &z, &s->err) != CK_OK) fail_msg("%s: %s", name, s->err.msg);
    return z;
}

static void offsets(void **state) {
    sample *s = *state;
    uint64_t seed = 1;
    for (size_t i = 0; i < CK_ARRAY_COUNT(zones); i++) {
        const ck_timezone *z = load(s, zones[i]);
        setenv("TZ", zones[i], 1);
        tzset();
        for (int k = 0; k < 3000; k++) {
            time_t t = (time_t)(next(&seed) % 18000000000ULL) - 2000000000; /* 1906 to 2477 */
            struct tm tm;
            assert_non_null(localtime_r(&t, &tm));
            int64_t from, until, got = ck_timezone_offset(z, t * CK_SECOND_US, &from, &until);
            if (got != tm.tm_gmtoff * CK_SECOND_US)
                fail_msg("%s at %lld: %lld, not %ld", zones[i], (long long)t, (long long)(got / CK_SECOND_US),
                         tm.tm_gmtoff);
            assert_true(from <= t * CK_SECOND_US && t * CK_SECOND_US < until);
            assert_int_equal(ck_timezone_offset(z, until - 1, NULL, NULL), got);
            if (from != INT64_MIN) assert_int_equal(ck_timezone_offset(z, from, NULL, NULL), got);
        }
    }
    unsetenv("TZ");
}

/* A wall clock reading that exists comes back; one in a gap is moved on by the gap; of two the first is taken. */
static void local_and_back(void **state) {
    sample *s = *state;
    uint64_t seed = 2;
    for (size_t i = 0; i < CK_ARRAY_COUNT(zones); i++) {
        const ck_timezone *z = load(s, zones[i]);
        for (int k = 0; k < 3000; k++) {
            int64_t t = ((int64_t)(next(&seed) % 4000000000ULL) - 500000000) * CK_SECOND_US;
            int64_t local = ck_timezone_local(z, t), back = ck_timezone_utc(z, local);
            assert_true(back <= t);
            assert_int_equal(ck_timezone_local(z, back), local);
        }
    }
    const ck_timezone *ny = load(s, "America/New_York");
    int64_t gap = 1710037800 * CK_SECOND_US; /* 2024-03-10 02:30 as if it were UTC */
    assert_int_equal(ck_timezone_local(ny, ck_timezone_utc(ny, gap)), gap + CK_HOUR_US);
}

static void names(void **state) {
    sample *s = *state;
    const ck_timezone *z = load(s, "+05:30");
    assert_int_equal(ck_timezone_offset(z, 0, NULL, NULL), 19800 * CK_SECOND_US);
    z = load(s, "-0330");
    assert_int_equal(ck_timezone_offset(z, 0, NULL, NULL), -12600 * CK_SECOND_US);
    assert_int_equal(ck_timezone_offset(load(s, "utc"), 0, NULL, NULL), 0);
    static const char *const bad[] = {"", "/etc/passwd", "../x", "Europe/Nowhere", "+25:00", "+1", "a b", "Europe"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_status st = ck_timezone_load(&s->proc, &s->arena, bad[i], &z, &s->err);
        if (st != CK_INVALID) fail_msg("'%s': %s", bad[i], ck_status_name(st));
    }
    assert_int_equal(ck_timezone_load(NULL, &s->arena, "Europe/Berlin", &z, &s->err), CK_INVALID);
}

static void rules(void **state) {
    (void)state;
    ck_tz_rule r;
    int64_t start, end;
    assert_true(ck_tz_rule_parse(CK_VIEW("CET-1CEST,M3.5.0,M10.5.0/3"), &r));
    ck_tz_rule_year(&r, 2024, &start, &end);
    assert_int_equal(start, 1711846800); /* 2024-03-31T01:00Z */
    assert_int_equal(end, 1729990800);   /* 2024-10-27T01:00Z */
    assert_true(ck_tz_rule_parse(CK_VIEW("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1"), &r));
    assert_int_equal(r.dst_offset, -7200);
    assert_true(ck_tz_rule_parse(CK_VIEW("IST-5:30"), &r) && !r.has_dst && r.std_offset == 19800);
    assert_true(ck_tz_rule_parse(CK_VIEW("XXX3YYY2:30,J60/0,300"), &r));
    static const char *const bad[] = {"",      "C", "CET", "CET-1CEST", "CET-1CEST,M13.1.0,M1.1.0", "CET-1CEST,M3.5.0",
                                      "CET-1X"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) assert_false(ck_tz_rule_parse(ck_view_of(bad[i]), &r));
}

/* Cut short at every byte, and with bytes changed: refused or read, never more. */
static void damaged_files(void **state) {
    sample *s = *state;
    ck_view file;
    const ck_timezone *z;
    (void)load(s, "UTC");
    assert_int_equal(ck_fs_read_all(&s->proc, "/usr/share/zoneinfo/Europe/Berlin", 1 << 20, &s->arena, &file, &s->err),
                     CK_OK);
    char *copy = ck_arena_alloc(&s->arena, file.n);
    uint64_t seed = 3;
    for (size_t n = 0; n < file.n; n++) {
        ck_arena_mark m = ck_arena_mark_now(&s->arena);
        assert_int_equal(ck_timezone_parse(&s->arena, (ck_view){file.p, n}, "x", &z, &s->err), CK_CORRUPT);
        memcpy(copy, file.p, file.n);
        for (int k = 0; k < 3; k++) copy[next(&seed) % file.n] = (char)next(&seed);
        if (ck_timezone_parse(&s->arena, (ck_view){copy, file.n}, "x", &z, &s->err) == CK_OK)
            (void)ck_timezone_utc(z, (int64_t)(next(&seed) % 4000000000ULL) * CK_SECOND_US);
        ck_arena_reset_to(&s->arena, m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(offsets), SAMPLE_TEST(local_and_back), SAMPLE_TEST(names),
                                       SAMPLE_TEST(rules), SAMPLE_TEST(damaged_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
