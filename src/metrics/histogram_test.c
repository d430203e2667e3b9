#include "metrics/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "os/thread.h"

static void test_buckets_cover_every_value_once(void **state) {
    (void)state;
    for (size_t b = 0; b < CK_HISTOGRAM_BUCKETS; b++) {
        uint64_t max = ck_histogram_bucket_max(b);
        assert_int_equal(ck_histogram_bucket(max), b);
        if (b + 1 < CK_HISTOGRAM_BUCKETS) assert_int_equal(ck_histogram_bucket(max + 1), b + 1);
        uint64_t min = b ? ck_histogram_bucket_max(b - 1) + 1 : 0;
        assert_true(max - min <= min / 32); /* so near is a quantile */
    }
    assert_true(ck_histogram_bucket_max(CK_HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
    assert_int_equal(ck_histogram_bucket(UINT64_MAX), CK_HISTOGRAM_BUCKETS - 1);
}

static void test_quantiles(void **state) {
    (void)state;
    ck_histogram *h = calloc(1, sizeof *h);
    ck_histogram_view v;
    ck_histogram_look(h, &v);
    assert_true(v.count == 0 && v.p50 == 0 && v.p999 == 0 && v.max == 0);
    ck_histogram_record(h, 7);
    ck_histogram_look(h, &v);
    assert_true(v.count == 1 && v.p50 == 7 && v.p999 == 7 && v.max == 7 && v.sum == 7);
    for (uint64_t i = 1; i <= 100000; i++)
        if (i != 7) ck_histogram_record(h, i);
    ck_histogram_look(h, &v);
    assert_int_equal(v.count, 100000);
    assert_true(v.sum == 100000ULL * 100001 / 2);
    assert_int_equal(v.max, 100000);
    assert_in_range(v.p50, 50000, 51600);
    assert_in_range(v.p90, 90000, 92900);
    assert_in_range(v.p99, 99000, 100000);
    assert_in_range(v.p999, 99900, 100000); /* never over the max */
    ck_histogram_record(h, UINT64_MAX);
    ck_histogram_look(h, &v);
    assert_true(v.max == UINT64_MAX);
    free(h);
}

static void test_two_values(void **state) { /* ranks are rounded up */
    (void)state;
    ck_histogram *h = calloc(1, sizeof *h);
    ck_histogram_view v;
    ck_histogram_record(h, 10), ck_histogram_record(h, 20);
    ck_histogram_look(h, &v);
    assert_int_equal(v.p50, 10);
    assert_int_equal(v.p90, 20);
    free(h);
}

static void *record_many(void *arg) {
    ck_histogram *h = arg;
    for (uint64_t i = 0; i < 20000; i++) ck_histogram_record(h, i);
    return NULL;
}

static void test_any_thread_may_record(void **state) {
    (void)state;
    ck_histogram *h = calloc(1, sizeof *h);
    pthread_t t[2];
    ck_histogram_view v;
    for (int i = 0; i < 2; i++) assert_int_equal(ck_thread_start(&t[i], "record", record_many, h, NULL), CK_OK);
    ck_histogram_look(h, &v); /* at the same time */
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    ck_histogram_look(h, &v);
    assert_int_equal(v.count, 40000);
    assert_int_equal(v.max, 19999);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_cover_every_value_once),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_two_values),
        cmocka_unit_test(test_any_thread_may_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
