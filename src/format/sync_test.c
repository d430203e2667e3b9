/* Where records begin in the middle of a file. */
#include "format/expect_int.h"

#include <stdlib.h>

static void test_json(void **state) {
    (void)state;
    bool quotes = false;
    size_t skip;
    assert_int_equal(ck_format_sync("json", "tail}\n{\"a\":1}\n", 14, &quotes, &skip), CK_OK);
    assert_int_equal(skip, 6);
    assert_int_equal(ck_format_sync("json", "no end", 6, &quotes, &skip), CK_MORE);
    assert_int_equal(skip, 6);
    assert_int_equal(ck_format_sync("json", "", 0, &quotes, &skip), CK_MORE);
    assert_int_equal(skip, 0);
}

/* From every byte of a text, whole or in pieces, to the next record by parity. */
static void test_csv(void **state) {
    (void)state;
    static const char text[] = "1,\"a\nb\"\n2,\"\"\"\n\"\"\"\n3,x\n\"4\",\"\n\"\n5,y";
    enum { N = sizeof text - 1 };
    for (size_t start = 0; start < N; start++) {
        bool inside = ck_format_quotes(text, start, false);
        bool parity = inside;
        size_t expected = start;
        while (expected < N && !(text[expected] == '\n' && !parity)) parity ^= text[expected++] == '"';
        for (size_t piece = 1; piece <= N; piece++) {
            bool quotes = inside;
            ck_status s = CK_MORE;
            size_t at = start;
            while (s == CK_MORE && at < N) {
                size_t n = N - at < piece ? N - at : piece, skip;
                s = ck_format_sync("csv", text + at, n, &quotes, &skip);
                at += skip;
            }
            assert_int_equal(s, expected < N ? CK_OK : CK_MORE);
            assert_int_equal(at, expected < N ? expected + 1 : N);
        }
    }
    bool quotes = true;
    size_t skip;
    assert_int_equal(ck_format_sync("csv", "", 0, &quotes, &skip), CK_MORE);
    assert_true(quotes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_csv)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
