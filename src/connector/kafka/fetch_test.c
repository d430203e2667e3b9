/* The request, byte for byte, and answers: whole, with errors, cut anywhere. */
#include "connector/kafka/fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/test_proc.h"

static const ck_kafka_fetch_limits limits = {.wait_ms = 500, .bytes_max = 0x100000, .partition_bytes_max = 0x200000};

static void test_request(void **state) {
    (void)state;
    static const char want[] = "\0\0\0\x71"                         /* bytes behind this */
                               "\0\1\0\x0a\0\0\0\5\0\5clink"        /* Fetch 10, number 5, who asks */
                               "\xff\xff\xff\xff\0\0\1\xf4\0\0\0\1" /* no replica; 500 ms, 1 byte */
                               "\0\x10\0\0\1"                       /* 1 MiB, committed */
                               "\0\0\0\0\xff\xff\xff\xff"           /* no session */
                               "\0\0\0\1\0\3bid\0\0\0\2"            /* a topic, two partitions */
                               "\0\0\0\7\xff\xff\xff\xff\0\0\0\1\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xff\0\x20\0\0"
                               "\0\0\0\x0b\xff\xff\xff\xff\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x20\0\0"
                               "\0\0\0"; /* nothing is forgotten */
    ck_test_proc t;
    ck_test_proc_init(&t);
    for (size_t max = 0; max <= sizeof want; max++) {
        ck_bytes out;
        ck_bytes_init(&out, ck_proc_mem(&t.proc, CK_MEM_DECODE), max);
        ck_status s = ck_kafka_fetch_begin(&out, 5, &limits, "bid", 2);
        if (s == CK_OK) s = ck_kafka_fetch_partition(&out, &limits, 7, (1LL << 32) + 2);
        if (s == CK_OK) s = ck_kafka_fetch_partition(&out, &limits, 11, 0);
        if (s == CK_OK) s = ck_kafka_fetch_end(&out);
        assert_int_equal(s, max < sizeof want ? CK_FULL : CK_OK);
        if (s == CK_OK) assert_int_equal(out.n, sizeof want);
        if (s == CK_OK) assert_memory_equal(out.p, want, sizeof want);
        ck_bytes_destroy(&out);
    }
    ck_test_proc_destroy(&t);
}

/* Two topics: one of two partitions, one with records and one with an error; one without any. */
static const char answer[] = "\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
                             "\0\3bid\0\0\0\2"
                             "\0\0\0\7\0\0\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\x13\0\0\0\0\0\0\0\0"
                             "\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\3abc"
                             "\0\0\0\x0b\0\6\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                             "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
                             "\0\1x\0\0\0"; /* and a zero */

static ck_status read_all(const char *p, size_t n, uint32_t number, ck_kafka_answer_part parts[3], size_t *count) {
    ck_kafka_answer a;
    int16_t error = -1;
    *count = 0;
    if (!ck_kafka_answer_open(&a, (ck_view){p, n}, number, &error)) return CK_INVALID;
    assert_int_equal(error, 0);
    ck_status s;
    while ((s = ck_kafka_answer_next(&a, &parts[*count])) == CK_OK) assert_true(++*count < 3);
    return s;
}

static void test_answer(void **state) {
    (void)state;
    ck_kafka_answer_part parts[3];
    size_t count;
    assert_int_equal(read_all(answer, sizeof answer, 6, parts, &count), CK_INVALID); /* another's */
    assert_int_equal(read_all(answer, sizeof answer, 5, parts, &count), CK_NOTFOUND);
    assert_int_equal(count, 2);
    assert_int_equal(parts[0].partition, 7);
    assert_int_equal(parts[0].error, 0);
    assert_int_equal(parts[0].high, 20);
    assert_int_equal(parts[0].stable, 19);
    assert_true(parts[0].aborted);
    assert_true(ck_view_is(parts[0].batches, "abc"));
    assert_int_equal(parts[1].partition, 11);
    assert_int_equal(parts[1].error, 6);
    assert_int_equal(parts[1].high, -1);
    assert_false(parts[1].aborted);
    assert_int_equal(parts[1].batches.n, 0);
}

static void test_cuts(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof answer; n++) {
        ck_kafka_answer_part parts[3];
        size_t count;
        char *exact = malloc(n ? n : 1); /* a byte behind it is another's */
        memcpy(exact, answer, n);
        ck_status s = read_all(exact, n, 5, parts, &count);
        assert_int_equal(s, n < 18 ? CK_INVALID : CK_CORRUPT);
        free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
