/* Every sequence of up to three bytes and the borders of four, and long texts in both forms. */
#include "format/expect_int.h"

#include <stdlib.h>

#include "format/utf8.h"

/* RFC 3629's table, written out once more and slower. */
static bool one_character(const uint8_t *p, size_t n) {
    uint32_t c;
    size_t bytes = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (bytes != n) return false;
    c = bytes == 1 ? p[0] : p[0] & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2) return false;
        c = c << 6 | (p[i] & 63u);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return c >= least[bytes] && c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
}

static size_t prefix(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        size_t k = 1;
        while (k <= 4 && k <= n - i && !one_character(p + i, k)) k++;
        if (k > 4 || k > n - i) break;
        i += k;
    }
    return i;
}

static void check(const uint8_t *p, size_t n) {
    size_t expected = prefix(p, n);
    assert_int_equal(ck_utf8_valid_prefix(p, n), expected);
    assert_int_equal(ck_utf8_valid_scalar(p, n), expected == n);
    assert_int_equal(ck_utf8_valid_for(ck_cpu_detect())(p, n), expected == n);
}

static void test_short_sequences(void **state) {
    (void)state;
    static const uint8_t edges[] = {0,    0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                                    0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
    enum { N = sizeof edges };
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) check((uint8_t[]){(uint8_t)a, (uint8_t)b}, 2);
    for (unsigned i = 0; i < N * N * N * N; i++) {
        uint8_t p[4] = {edges[i % N], edges[i / N % N], edges[i / N / N % N], edges[i / N / N / N]};
        check(p, 4);
        if (i / N / N / N == 0) check(p, 3);
    }
    check((const uint8_t *)"", 0);
}

/* A fault at every place of texts of every length up to four vectors. */
static void test_long_texts(void **state) {
    (void)state;
    static const char pattern[] =
        "ascii \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and ascii for more than one whole vector of them";
    uint8_t text[130];
    for (size_t n = 0; n <= sizeof text; n++) {
        for (size_t start = 0; start < 20; start++) {
            for (size_t i = 0; i < n; i++) text[i] = (uint8_t)pattern[(start + i) % (sizeof pattern - 1)];
            check(text, n);
        }
        for (size_t i = 0; i < n; i++) {
            uint8_t was = text[i];
            text[i] = 0xED;
            check(text, n);
            text[i] = 0x80;
            check(text, n);
            text[i] = was;
        }
    }
}

static void test_length(void **state) {
    (void)state;
    assert_int_equal(ck_utf8_length((const uint8_t *)"a\xc3\xa9\xf0\x9f\x98\x80", 7), 3);
    assert_int_equal(ck_utf8_length((const uint8_t *)"", 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_sequences), cmocka_unit_test(test_long_texts),
                                       cmocka_unit_test(test_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
