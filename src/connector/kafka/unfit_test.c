/* Records that are no rows: found by their line; csv that is one record by itself and that is not. */
#include "connector/kafka/unfit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/test_proc.h"

static void test_lines(void **state) {
    (void)state;
    ck_kafka_unfit u;
    ck_view record;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_kafka_unfit_init(&u, ck_proc_mem(&t.proc, CK_MEM_DECODE));
    for (int round = 0; round < 2; round++) {
        ck_kafka_unfit_clear(&u);
        assert_null(ck_kafka_unfit_of(&u, 0, &record));
        for (size_t line = 3; line < 1000; line += 3) {
            char text[8];
            size_t n = (size_t)snprintf(text, sizeof text, "%zu", line);
            assert_int_equal(ck_kafka_unfit_add(&u, line, line % 2 ? "odd" : "even", (ck_view){text, n}), CK_OK);
        }
        for (size_t line = 0; line < 1002; line++) {
            const char *why = ck_kafka_unfit_of(&u, line, &record);
            if (line % 3 || line == 0 || line > 999) {
                assert_null(why);
                continue;
            }
            assert_string_equal(why, line % 2 ? "odd" : "even");
            char text[8];
            assert_int_equal(snprintf(text, sizeof text, "%zu", line), record.n);
            assert_memory_equal(text, record.p, record.n);
        }
    }
    ck_kafka_unfit_destroy(&u);
    ck_test_proc_destroy(&t);
}

static void test_csv(void **state) {
    (void)state;
    static const char *const one[] = {"",    "a",      "a,b", ",", "\"\"", "\"a\"\"b\",c", "\"a\nb\",\"c,d\"",
                                      "a\r", "\"a\"\r"};
    static const char *const none[] = {"\"",      "a\nb",    "\"a",          "\"a\"b", "a\"b",
                                       "\"a\"\"", "a,\"b\n", "\"a\"\n\"b\"", "a\n",    "\"a\" ,b"};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) assert_null(ck_kafka_csv_unfit(ck_view_of(one[i])));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_non_null(ck_kafka_csv_unfit(ck_view_of(none[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_csv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
