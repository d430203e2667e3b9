/* Parts and beginnings of times in columns, block by block, against what the units and the zone say of each row: in
 * order of time and at random, over changes of the clock, with every table of kernels, all rows and some. */
#include "expr/sample_int.h"

#include "base/hash.h"
#include "expr/time_int.h"
#include "expr/time_unit.h"
#include "os/fs.h"

enum { ROWS = 1500 };

static uint64_t next(uint64_t *seed) { return ck_mix64(*seed += 0x9E3779B97F4A7C15ULL); }

/* Three years by some ten minutes and back: blocks of one day, of some, and of all at random. */
static ck_column *times(sample *s, uint64_t seed, int64_t step_us) {
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_TIMESTAMP_LTZ), ROWS), CK_OK);
    int64_t t = 1704067200 * CK_SECOND_US; /* 2024 */
    for (int i = 0; i < ROWS; i++) {
        t += step_us ? (int64_t)(next(&seed) % (uint64_t)step_us) : 0;
        int64_t v = step_us ? t : (int64_t)(next(&seed) % (uint64_t)(3000 * CK_DAY_US)) - 1500 * CK_DAY_US;
        assert_int_equal(next(&seed) % 31 ? ck_build_i64(&b, v) : ck_build_null(&b), CK_OK);
    }
    ck_column *c = ck_column_builder_finish(&b);
    ck_column_builder_destroy(&b);
    return c;
}

static int64_t wanted(ck_unit u, bool cuts, const ck_timezone *zone, int64_t utc) {
    int64_t local = ck_timezone_local(zone, utc);
    if (cuts) return ck_timezone_utc(zone, ck_unit_floor(u, local));
    return ck_unit_part(u, u == CK_UNIT_EPOCH ? utc : local);
}

static void check(sample *s, ck_unit u, const char *unit, bool cuts, const char *zone_name, const ck_batch *b) {
    ck_arena_mark mark = ck_arena_mark_now(&s->arena);
    ck_expr *e = sample_expr(s, ck_arena_printf(&s->arena, "(%s '%s' t)", cuts ? "date_trunc" : "extract", unit));
    const ck_timezone *zone;
    assert_int_equal(ck_timezone_load(&s->proc, &s->arena, zone_name, &zone, &s->err), CK_OK);
    ck_column *c = NULL;
    if (sample_eval_on(s, e, b, false, zone_name, &c) != CK_OK) fail_msg("%s: %s", unit, s->err.msg);
    const ck_column *from = b->columns[0];
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t i = ck_batch_row(b, k);
        assert_int_equal(ck_column_is_null(c, i), ck_column_is_null(from, i));
        if (ck_column_is_null(from, i)) continue;
        int64_t want = wanted(u, cuts, zone, from->i64[i]);
        if (c->i64[i] != want)
            fail_msg("%s of %lld in %s: %lld, not %lld", unit, (long long)from->i64[i], zone_name, (long long)c->i64[i],
                     (long long)want);
    }
    ck_column_unref(&c);
    ck_arena_reset_to(&s->arena, mark);
}

static const char *const units[] = {"microsecond", "millisecond", "second",  "minute", "hour",    "day",
                                    "week",        "month",       "quarter", "year",   "decade",  "dow",
                                    "doy",         "isodow",      "isoyear", "epoch",  "century", "millennium"};

static void check_units(sample *s, const char *zone, const ck_batch *b) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(units); i++) {
        ck_unit u;
        assert_true(ck_unit_find(ck_view_of(units[i]), &u));
        check(s, u, units[i], false, zone, b);
        if (ck_unit_can_floor(u)) check(s, u, units[i], true, zone, b);
    }
}

static void columns_of_times(void **state) {
    sample *s = *state;
    static const char *const zones[] = {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "+05:30"};
    static const int64_t steps[] = {0, CK_SECOND_US, 20 * CK_MINUTE_US, 2 * CK_DAY_US};
    s->proc.fs = ck_fs_system();
    sample_column(s, "t", "TIMESTAMP_LTZ(6)");
    for (int simd = 0; simd < 2; simd++)
        for (size_t z = 0; z < CK_ARRAY_COUNT(zones); z++)
            for (size_t step = 0; step < CK_ARRAY_COUNT(steps); step++) {
                s->proc.cpu = simd ? ck_cpu_detect() : (ck_cpu){0};
                ck_batch *b = ck_batch_new(s->mem, 1, ROWS, false, false);
                ck_column *c = times(s, z + 10 * step, steps[step]);
                ck_batch_set_column(b, 0, &c);
                check_units(s, zones[z], b);
                uint16_t sel[ROWS];
                uint32_t n = 0;
                for (uint32_t i = 0; i < ROWS; i++)
                    if (ck_mix64(i) % 3 == 0) sel[n++] = (uint16_t)i;
                ck_batch *some = ck_batch_select(b, sel, n);
                check_units(s, zones[z], some);
                ck_batch_unref(&some);
                ck_batch_unref(&b);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(columns_of_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
