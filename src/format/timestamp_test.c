/* The short way to timestamps against the whole one. */
#include "format/expect_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/value_int.h"

/* What the short way takes, the whole one takes with the same value. */
static bool check(const char *text) {
    char padded[96] = {0};
    int64_t a = 0, b = 0;
    bool zoned;
    (void)snprintf(padded, sizeof padded, "%s\"", text);
    const uint8_t *end = ck_timestamp_scan((const uint8_t *)padded, &a);
    bool taken = end && *end == '"' && (size_t)(end - (const uint8_t *)padded) == strlen(text);
    if (taken && (!ck_parse_timestamp(ck_view_of(text), &b, &zoned) || a != b))
        fail_msg("%s: %lld, not %lld", text, (long long)a, (long long)b);
    return taken;
}

static void test_common_shapes(void **state) {
    (void)state;
    static const char *const good[] = {"2024-02-29T23:59:59",         "2000-02-29 00:00:00Z",
                                       "0001-01-01T00:00:00.1",       "9999-12-31T23:59:59.999999",
                                       "1969-12-31T23:59:59.9999999", "2024-01-02T03:04:05.123456789Z"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++) assert_true(check(good[i]));
    static const char *const other[] = {
        "2023-02-29T00:00:00",       "1900-02-29T00:00:00",  "2024-13-01T00:00:00",
        "2024-00-01T00:00:00",       "2024-01-00T00:00:00",  "2024-01-32T00:00:00",
        "2024-01-01T24:00:00",       "2024-01-01T00:60:00",  "2024-01-01T00:00:60",
        "0000-01-01T00:00:00",       "2024-01-01",           "2024-01-01T00:00",
        "2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00.", "2024-01-01T00:00:00.1234567890",
        "2024/01/01T00:00:00",       "2024-01-01x00:00:00",  ""};
    for (size_t i = 0; i < CK_ARRAY_COUNT(other); i++) assert_false(check(other[i]));
}

/* Every byte at every place of a good one. */
static void test_every_byte(void **state) {
    (void)state;
    int taken = 0;
    for (int i = 0; i < 24; i++)
        for (int c = 1; c < 256; c++) {
            char text[] = "2024-02-28T12:34:56.789Z";
            text[i] = (char)c;
            taken += check(text);
        }
    assert_true(taken > 100 && taken < 250);
}

static void test_every_day(void **state) {
    (void)state;
    for (int64_t day = -719162; day < 2932897; day += 13) {
        char text[64];
        size_t n = ck_print_timestamp(text, day * 86400000000 + day % 86400 * 1000000 + 43200000000, 6, 'T', false);
        text[n] = 0;
        assert_true(check(text));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_common_shapes), cmocka_unit_test(test_every_byte),
                                       cmocka_unit_test(test_every_day)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
