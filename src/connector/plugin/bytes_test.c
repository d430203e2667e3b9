/* Positions and committables of plugins in JSON: any bytes come back as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <yyjson.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/json.h"
#include "connector/plugin/plugin_int.h"

static ck_arena arena;

static int setup(void **state) {
    (void)state;
    ck_arena_init(&arena, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, 64 << 20);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    ck_arena_destroy(&arena);
    return 0;
}

static bool read_back(const char *object, ck_view *out) {
    struct yyjson_doc *doc;
    assert_int_equal(ck_json_read(&arena, ck_view_of(object), &doc, NULL), CK_OK);
    return ck_plugin_bytes_read(&arena, yyjson_doc_get_root(doc), out);
}

static const char *written(ck_view bytes) {
    const char *text;
    assert_int_equal(ck_plugin_bytes_write(&arena, bytes, &text), CK_OK);
    return ck_arena_printf(&arena, "{%s}", text);
}

static void text_is_seen_as_it_is(void **state) {
    (void)state;
    assert_string_equal(written(CK_VIEW("4711")), "{\"text\":\"4711\"}");
    assert_string_equal(written(CK_VIEW("")), "{\"text\":\"\"}");
    assert_string_equal(written(CK_VIEW("a \"b\" \\ \xc3\x9f")), "{\"text\":\"a \\\"b\\\" \\\\ \xc3\x9f\"}");
    assert_string_equal(written((ck_view){"\0\x1f", 2}), "{\"hex\":\"001f\"}");
    assert_string_equal(written(CK_VIEW("\xff")), "{\"hex\":\"ff\"}");
}

static void any_bytes_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        char bytes[64];
        uint64_t r = ck_mix64(seed);
        size_t n = r % sizeof bytes;
        bool tame = r >> 8 & 1; /* most of it text */
        for (size_t i = 0; i < n; i++) bytes[i] = (char)(tame ? ' ' + (r = ck_mix64(r)) % 95 : (r = ck_mix64(r)));
        ck_view back;
        assert_true(read_back(written((ck_view){bytes, n}), &back));
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, bytes, n);
    }
}

static void what_is_none_is_refused(void **state) {
    (void)state;
    static const char *const none[] = {"{}",
                                       "{\"hex\":\"0\"}",
                                       "{\"hex\":\"0g\"}",
                                       "{\"hex\":\"0A\"}",
                                       "{\"hex\":12}",
                                       "{\"text\":12}",
                                       "{\"text\":null,\"hex\":[]}",
                                       "[]",
                                       "12"};
    ck_view out;
    for (size_t i = 0; i < CK_ARRAY_COUNT(none); i++) assert_false(read_back(none[i], &out));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(text_is_seen_as_it_is, setup, teardown),
                                       cmocka_unit_test_setup_teardown(any_bytes_come_back, setup, teardown),
                                       cmocka_unit_test_setup_teardown(what_is_none_is_refused, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
