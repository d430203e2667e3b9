/* Addresses of brokers: those that are none are refused, and nothing else is. */
#include "connector/kafka/kafka_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ck_status read_brokers(const char *brokers, ck_error *err) {
    const char *names[] = {"brokers", "topic"}, *values[] = {brokers, "t"};
    ck_table_options o = {.names = names, .values = values, .count = 2};
    ck_kafka_options out;
    return ck_kafka_options_read(&o, &out, err);
}

static void test_good_ports(void **state) {
    (void)state;
    static const char *const good[] = {
        "a:1",
        "a:65535",
        "a:9092,b:09093",
        "a",
        "a,b:2",
        "a:9092 , b:9093",
        "[::1]:9092",
        "[::1]",
        "::1",
        "fe80::70000",
        "PLAINTEXT://a:9092,SSL://[::1]:9093",
        "SSL://a",
        "a:1,",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++) {
        ck_error err = CK_ERROR_INIT;
        if (read_brokers(good[i], &err) != CK_OK) fail_msg("%s: %s", good[i], err.msg);
    }
}

static void test_bad_ports(void **state) {
    (void)state;
    static const struct {
        const char *brokers, *named;
    } bad[] = {
        {"a:65536", "'a:65536'"},
        {"a:0", "'a:0'"},
        {"a:9092,b:80000000000000000000,c:1", "'b:80000000000000000000'"},
        {"a:", "'a:'"},
        {"a:x", "'a:x'"},
        {"a:-1", "'a:-1'"},
        {"a:90 92", "'a:90 92'"},
        {"[::1]:65536", "'[::1]:65536'"},
        {"SSL://a:70000", "'SSL://a:70000'"},
        {":0", "':0'"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(read_brokers(bad[i].brokers, &err), CK_INVALID);
        if (!strstr(err.msg, bad[i].named) || !strstr(err.msg, "1 to 65535"))
            fail_msg("%s: %s", bad[i].brokers, err.msg);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_ports),
        cmocka_unit_test(test_bad_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
