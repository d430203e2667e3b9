#include "data/sample_int.h"
#include "data/text.h"

static const char *printed(sample *s, const ck_type *t, const ck_column *c, uint32_t row) {
    static char text[1024];
    ck_bytes out;
    ck_bytes_init(&out, s->mem, sizeof text - 1);
    assert_int_equal(ck_print_value(t, c, row, &out), CK_OK);
    if (out.n) memcpy(text, out.p, out.n);
    text[out.n] = 0;
    ck_bytes_destroy(&out);
    return text;
}

static void i64_prints(sample *s, const ck_type *t, int64_t v, const char *want) {
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 1);
    c->i64[0] = v;
    assert_string_equal(printed(s, t, c, 0), want);
    ck_column_unref(&c);
}

static void simple_values(void **state) {
    sample *s = *state;
    i64_prints(s, ck_type_simple(CK_TYPE_TINYINT), -7, "-7");
    i64_prints(s, ck_type_simple(CK_TYPE_DATE), 19782, "2024-02-29");
    i64_prints(s, ck_type_simple(CK_TYPE_TIME), 3661000000, "01:01:01");
    i64_prints(s, ck_type_simple(CK_TYPE_TIMESTAMP), 1500000, "1970-01-01 00:00:01.500");
    i64_prints(s, ck_type_with_precision(&s->arena, CK_TYPE_TIMESTAMP, 0), 1500000, "1970-01-01 00:00:01");
    i64_prints(s, ck_type_simple(CK_TYPE_TIMESTAMP_LTZ), 0, "1970-01-01 00:00:00Z");
    i64_prints(s, ck_type_simple(CK_TYPE_INTERVAL_MONTH), 14, "1-02");
    i64_prints(s, ck_type_simple(CK_TYPE_INTERVAL_MONTH), -1, "-0-01");
    i64_prints(s, ck_type_simple(CK_TYPE_INTERVAL_MONTH), INT64_MIN, "-768614336404564650-08");
    i64_prints(s, ck_type_simple(CK_TYPE_INTERVAL_US), 93784500000, "1 02:03:04.500");
    i64_prints(s, ck_type_simple(CK_TYPE_INTERVAL_US), -1, "-0 00:00:00.000001");
    ck_column *c = ck_column_new(s->mem, CK_PHYS_F64, 2);
    c->f64[0] = (double)0.1f;
    c->f64[1] = 2;
    assert_string_equal(printed(s, ck_type_simple(CK_TYPE_REAL), c, 0), "0.1");
    assert_string_equal(printed(s, ck_type_simple(CK_TYPE_DOUBLE), c, 0), "0.10000000149011612");
    assert_string_equal(printed(s, ck_type_simple(CK_TYPE_DOUBLE), c, 1), "2.0");
    ck_column_unref(&c);
    c = ck_column_new(s->mem, CK_PHYS_I128, 1);
    c->i128[0] = -5;
    assert_string_equal(printed(s, ck_type_decimal(&s->arena, 5, 2), c, 0), "-0.05");
    ck_column_unref(&c);
    c = ck_column_new_null(s->mem, CK_PHYS_VIEW, 1);
    assert_string_equal(printed(s, ck_type_simple(CK_TYPE_VARCHAR), c, 0), "NULL");
    ck_column_unref(&c);
}

static void strings_and_bytes(void **state) {
    sample *s = *state;
    static const char *const base64[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t n = 0; n <= 6; n++) {
        ck_column *c = ck_column_new(s->mem, CK_PHYS_VIEW, 1);
        c->views[0] = ck_strview_inline("foobar", n);
        assert_string_equal(printed(s, ck_type_simple(CK_TYPE_BYTES), c, 0), base64[n]);
        assert_int_equal(strlen(printed(s, ck_type_simple(CK_TYPE_VARCHAR), c, 0)), n);
        ck_column_unref(&c);
    }
}

static void nested_values_are_json(void **state) {
    sample *s = *state;
    ck_arena *a = &s->arena;
    const ck_field fields[] = {{"x\"y", ck_type_simple(CK_TYPE_DOUBLE), true},
                               {"d", ck_type_simple(CK_TYPE_DATE), true}};
    const ck_type *t =
        ck_type_map(a, ck_type_simple(CK_TYPE_BIGINT),
                    ck_type_row(a,
                                (ck_field[]){{"l", ck_type_array(a, ck_type_simple(CK_TYPE_VARCHAR), true), true},
                                             {"r", ck_type_row(a, fields, 2), true}},
                                2),
                    true);
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, t, 3), CK_OK);
    ck_column_builder *entry = &b.children[0], *value = &entry->children[1], *list = &value->children[0],
                      *row = &value->children[1];
    ck_status st = ck_build_i64(&entry->children[0], 5);
    st |= ck_build_str(&list->children[0], "a\"\n\x01", 4);
    st |= ck_build_null(&list->children[0]);
    st |= ck_build_end(list);
    st |= ck_build_f64(&row->children[0], __builtin_inf());
    st |= ck_build_i64(&row->children[1], 0);
    st |= ck_build_end(row) | ck_build_end(value) | ck_build_end(entry);
    st |= ck_build_i64(&entry->children[0], 6);
    st |= ck_build_null(value) | ck_build_end(entry);
    st |= ck_build_end(&b) | ck_build_end(&b) | ck_build_null(&b);
    assert_int_equal(st, CK_OK);
    ck_column *c = ck_column_builder_finish(&b);
    assert_string_equal(printed(s, t, c, 0), "{\"5\":{\"l\":[\"a\\\"\\n\\u0001\",null],\"r\":{\"x\\\"y\":\"Infinity\","
                                             "\"d\":\"1970-01-01\"}},\"6\":null}");
    assert_string_equal(printed(s, t, c, 1), "{}");
    assert_string_equal(printed(s, t, c, 2), "NULL");
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
}

static void ceiling_and_memory(void **state) {
    sample *s = *state;
    for (int i = 0; i < 200; i++) { /* anything prints, or says that it is too long */
        const ck_type *t = sample_type(s, 3);
        ck_column *c = sample_column(s, t, true, 3);
        ck_bytes out;
        ck_bytes_init(&out, s->mem, i % 2 ? 1 << 20 : 16);
        ck_status st = ck_print_value(t, c, 2, &out);
        assert_true(st == CK_OK || (st == CK_FULL && i % 2 == 0));
        ck_bytes_destroy(&out);
        ck_column_unref(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(simple_values),
        SAMPLE_TEST(strings_and_bytes),
        SAMPLE_TEST(nested_values_are_json),
        SAMPLE_TEST(ceiling_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
