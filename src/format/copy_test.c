/* Copies with a stop at every place of texts of every length around the steps. */
#include "format/expect_int.h"

#include <stdlib.h>

#include "format/copy_int.h"

static void test_every_place(void **state) {
    (void)state;
    static const ck_stops stops = {'"', '\\', ';', 0x20};
    static const char special[] = {'"', '\\', ';', 0x1F, 0, '\n'};
    static const char ordinary[] = {'a', ' ', '!', '#', 0x7F, (char)0x80, (char)0xFF, (char)0xA2};
    for (size_t n = 0; n < 70; n++) {
        char *text = malloc(n ? n : 1), *out = malloc(n + CK_COPY_SLACK); /* of exact sizes, for the sanitizer */
        for (size_t i = 0; i < n; i++) text[i] = ordinary[(i * 7 + n) % sizeof ordinary];
        assert_int_equal(ck_copy_until(out, text, n, stops), n);
        assert_memory_equal(out, text, n);
        for (size_t at = 0; at < n; at++)
            for (size_t k = 0; k < sizeof special; k++) {
                char was = text[at];
                text[at] = special[k];
                assert_int_equal(ck_copy_until(out, text, n, stops), at);
                assert_memory_equal(out, text, at);
                text[at] = was;
            }
        free(text);
        free(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
