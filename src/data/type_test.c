#include "data/sample_int.h"

static void kinds(void **state) {
    (void)state;
    assert_int_equal(ck_type_phys(ck_type_simple(CK_TYPE_DATE)), CK_PHYS_I64);
    assert_int_equal(ck_type_phys(ck_type_simple(CK_TYPE_REAL)), CK_PHYS_F64);
    assert_int_equal(ck_type_phys(ck_type_simple(CK_TYPE_BYTES)), CK_PHYS_VIEW);
    assert_int_equal(ck_type_simple(CK_TYPE_TIMESTAMP)->precision, 6);
    assert_int_equal(ck_type_simple(CK_TYPE_VARCHAR)->precision, 0);
    int64_t lo, hi;
    ck_kind_int_range(CK_TYPE_SMALLINT, &lo, &hi);
    assert_true(lo == -32768 && hi == 32767);
    ck_kind_int_range(CK_TYPE_BIGINT, &lo, &hi);
    assert_true(lo == INT64_MIN && hi == INT64_MAX);
}

static void equality(void **state) {
    sample *s = *state;
    ck_arena *a = &s->arena;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT);
    assert_true(ck_type_eq(ck_type_decimal(a, 10, 2), ck_type_decimal(a, 10, 2)));
    assert_false(ck_type_eq(ck_type_decimal(a, 10, 2), ck_type_decimal(a, 10, 3)));
    assert_false(ck_type_eq(ck_type_decimal(a, 10, 2), ck_type_decimal(a, 11, 2)));
    assert_false(ck_type_eq(ck_type_array(a, big, true), ck_type_array(a, big, false)));
    ck_field x = {"x", big, true}, y = {"y", big, true};
    assert_true(ck_type_eq(ck_type_row(a, &x, 1), ck_type_row(a, &x, 1)));
    assert_false(ck_type_eq(ck_type_row(a, &x, 1), ck_type_row(a, &y, 1)));
    assert_false(ck_type_eq(ck_type_row(a, &x, 1), ck_type_row(a, &x, 0)));
    assert_ptr_equal(ck_type_with_precision(a, CK_TYPE_TIMESTAMP, 6), ck_type_simple(CK_TYPE_TIMESTAMP));
    assert_int_equal(ck_type_with_precision(a, CK_TYPE_TIMESTAMP, 3)->precision, 3);
}

static void texts(void **state) {
    sample *s = *state;
    static const char *const same[] = {
        "NULL",
        "BOOLEAN",
        "BIGINT",
        "DECIMAL(10,2)",
        "DECIMAL(38,0)",
        "VARCHAR",
        "VARCHAR(255)",
        "BYTES(16)",
        "TIME(0)",
        "TIMESTAMP(3)",
        "TIMESTAMP_LTZ(6)",
        "INTERVAL YEAR TO MONTH",
        "INTERVAL DAY TO SECOND",
        "ARRAY<BIGINT NOT NULL>",
        "ARRAY<ARRAY<VARCHAR> NOT NULL>",
        "MAP<VARCHAR, BIGINT>",
        "MAP<VARCHAR, ROW<> NOT NULL>",
        "ROW<a BIGINT NOT NULL, b VARCHAR>",
        "ROW<\"a b\" BIGINT, \"q\"\"\" DATE, \"\" REAL, NOT BOOLEAN NOT NULL, \"9\" BYTES>",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(same); i++) {
        const ck_type *t;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_type_parse(&s->arena, ck_view_of(same[i]), &t, &err), CK_OK);
        assert_string_equal(ck_type_name(&s->arena, t), same[i]);
    }
}

static void refused_texts(void **state) {
    sample *s = *state;
    static const char *const bad[] = {
        "",
        "INT",
        "bigint",
        "BIGINT ",
        " BIGINT",
        "BIGINTX",
        "DECIMAL",
        "DECIMAL(10)",
        "DECIMAL(10, 2)",
        "DECIMAL(010,2)",
        "DECIMAL(39,0)",
        "DECIMAL(0,0)",
        "DECIMAL(4,5)",
        "DECIMAL(99999999999,0)",
        "VARCHAR(0)",
        "VARCHAR()",
        "VARCHAR(2147483648)",
        "TIMESTAMP",
        "TIMESTAMP(7)",
        "TIMESTAMP(-1)",
        "TIMESTAMP(3",
        "ARRAY",
        "ARRAY<>",
        "ARRAY<BIGINT",
        "ARRAY<BIGINT NULL>",
        "ARRAY<BIGINT NOT NULL NOT NULL>",
        "MAP<VARCHAR>",
        "MAP<VARCHAR NOT NULL, BIGINT>",
        "ROW<a>",
        "ROW<a BIGINT,b BIGINT>",
        "ROW<a BIGINT, >",
        "ROW<a  BIGINT>",
        "ROW<\"a\" BIGINT>",
        "ROW<\"a BIGINT>",
        "ROW<9 BIGINT>",
        "ROW<a BIGINT>>",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        const ck_type *t;
        ck_error err = CK_ERROR_INIT;
        if (ck_type_parse(&s->arena, ck_view_of(bad[i]), &t, &err) != CK_INVALID) fail_msg("accepted: %s", bad[i]);
        assert_true(strstr(err.msg, "byte ") != NULL);
    }
}

static void random_types_copy_and_read_back(void **state) {
    sample *s = *state;
    for (int i = 0; i < 500; i++) {
        const ck_type *t = sample_type(s, 3), *back;
        const char *text = ck_type_name(&s->arena, t);
        ck_error err = CK_ERROR_INIT;
        if (ck_type_parse(&s->arena, ck_view_of(text), &back, &err) != CK_OK) fail_msg("%s", err.msg);
        assert_true(ck_type_eq(t, back));
        assert_true(ck_type_eq(ck_type_copy(&s->arena, t), t));
    }
}

static void deep_types_have_a_ceiling(void **state) {
    sample *s = *state;
    char text[8 * (CK_SQL_DEPTH_MAX + 2)];
    for (int depth = CK_SQL_DEPTH_MAX; depth <= CK_SQL_DEPTH_MAX + 1; depth++) {
        size_t n = 0;
        for (int i = 0; i < depth; i++, n += 6) memcpy(text + n, "ARRAY<", 6);
        memcpy(text + n, "DATE", 4), n += 4;
        for (int i = 0; i < depth; i++) text[n++] = '>';
        const ck_type *t;
        ck_error err = CK_ERROR_INIT;
        ck_status status = ck_type_parse(&s->arena, (ck_view){text, n}, &t, &err);
        assert_int_equal(status, depth > CK_SQL_DEPTH_MAX ? CK_INVALID : CK_OK);
    }
}

static void no_memory(void **state) {
    sample *s = *state;
    ck_view text =
        CK_VIEW("ROW<a MAP<VARCHAR(3), ARRAY<DECIMAL(3,1)>>, b TIMESTAMP(3), c BIGINT, d BIGINT, e BIGINT, f "
                "BIGINT, g BIGINT, h BIGINT, i BIGINT>");
    for (size_t limit = 0;; limit += 4096) {
        ck_arena a;
        const ck_type *t = NULL;
        ck_error err = CK_ERROR_INIT;
        ck_arena_init(&a, s->mem, limit);
        ck_status status = ck_type_parse(&a, text, &t, &err);
        if (status == CK_OK)
            assert_string_equal(ck_type_name(&s->arena, t), text.p);
        else
            assert_int_equal(status, CK_NOMEM);
        ck_arena_destroy(&a);
        if (status == CK_OK) break;
        assert_true(limit < 1 << 20);
    }
}

static void schemas(void **state) {
    sample *s = *state;
    ck_field f[] = {{"a", ck_type_simple(CK_TYPE_BIGINT), false}, {"A", ck_type_simple(CK_TYPE_DATE), true}};
    const ck_schema *c = ck_schema_copy(&s->arena, &(ck_schema){f, 2});
    assert_ptr_not_equal(c->fields, f);
    assert_int_equal(ck_schema_find(c, CK_VIEW("A")), 1);
    assert_int_equal(ck_schema_find(c, CK_VIEW("a")), 0);
    assert_int_equal(ck_schema_find(c, CK_VIEW("aa")), -1);
    assert_false(c->fields[0].nullable);
    assert_int_equal(ck_schema_copy(&s->arena, &(ck_schema){NULL, 0})->field_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(kinds),
        SAMPLE_TEST(equality),
        SAMPLE_TEST(texts),
        SAMPLE_TEST(refused_texts),
        SAMPLE_TEST(random_types_copy_and_read_back),
        SAMPLE_TEST(deep_types_have_a_ceiling),
        SAMPLE_TEST(no_memory),
        SAMPLE_TEST(schemas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
