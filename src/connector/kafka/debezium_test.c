/* Envelopes: where the rows are, and what is none. */
#include "connector/kafka/debezium.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

static void expect(const char *text, const char *before, const char *after) {
    ck_debezium d;
    assert_null(ck_debezium_read(ck_view_of(text), &d));
    assert_int_equal(d.before.n, strlen(before));
    assert_int_equal(d.after.n, strlen(after));
    if (d.before.n) assert_memory_equal(d.before.p, before, d.before.n);
    if (d.after.n) assert_memory_equal(d.after.p, after, d.after.n);
}

static void test_rows(void **state) {
    (void)state;
    expect("{\"before\":null,\"after\":{\"a\":1},\"op\":\"c\"}", "", "{\"a\":1}");
    expect(" { \"op\" : \"r\" , \"after\" : { \"a\" : [ 1 , {} ] } , \"source\":{\"x\":[[\"}\\\"]\"]]}, \"ts_ms\": 12 "
           "} \n",
           "", "{ \"a\" : [ 1 , {} ] }");
    expect("{\"before\":{\"a\":1},\"after\":{\"a\":2},\"op\":\"u\"}", "{\"a\":1}", "{\"a\":2}");
    expect("{\"before\":{\"a\":1},\"after\":null,\"op\":\"d\"}", "{\"a\":1}", "");
    expect("{\"schema\":{\"type\":\"struct\"},\"payload\":{\"before\":null,\"after\":{\"a\":\"}\"},\"op\":\"c\"}}", "",
           "{\"a\":\"}\"}");
    expect("{\"op\":\"d\",\"op\":\"c\",\"after\":{}}", "", "{}"); /* the last one wins */
}

static void test_what_is_none(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "no change"},
        {"{}", "no change"},
        {"[]", "no change"},
        {"{\"op\":\"c\"", "no change"},
        {"{\"op\":\"c\",\"after\":{\"a\":1}", "no change"},
        {"{\"op\":\"c\",\"after\":{\"a\":\"x}}", "no change"},
        {"{\"op\":\"c\",\"after\":{}}x", "no change"},
        {"{\"op\":\"c\",\"after\":]}", "no change"},
        {"{\"op\":\"c\" \"after\":{}}", "no change"},
        {"{\"op\":\"\\", "no change"},
        {"{\"op\":1,\"after\":{}}", "no change"},
        {"{\"op\":\"c\",\"after\":null}", "without the row after"},
        {"{\"op\":\"u\",\"after\":{},\"before\":null}", "REPLICA IDENTITY FULL"},
        {"{\"op\":\"u\",\"before\":{}}", "without the row after"},
        {"{\"op\":\"d\"}", "REPLICA IDENTITY FULL"},
        {"{\"op\":\"t\"}", "none of c, r, u, d"},
        {"{\"payload\":{\"op\":}}", "no change"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_debezium d;
        size_t n = strlen(bad[i].text);
        char *exact = malloc(n + 1); /* a byte behind it is another's */
        memcpy(exact, bad[i].text, n);
        const char *why = ck_debezium_read((ck_view){exact, n}, &d);
        free(exact);
        if (!why || !strstr(why, bad[i].why)) fail_msg("%s: %s", bad[i].text, why ? why : "taken");
    }
}

/* Any cut of a good one is refused, and nothing behind it is read. */
static void test_cuts(void **state) {
    (void)state;
    static const char whole[] = "{\"before\":{\"a\":1.5e3},\"after\":{\"a\":\"\\\"\"},\"op\":\"u\",\"source\":[true]}";
    for (size_t n = 0; n + 1 < sizeof whole; n++) {
        ck_debezium d;
        char *exact = malloc(n ? n : 1);
        memcpy(exact, whole, n);
        assert_non_null(ck_debezium_read((ck_view){exact, n}, &d));
        free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
