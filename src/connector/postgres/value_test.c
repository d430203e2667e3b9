/* Values as the server writes them: there and back, and what is refused for which reason. */
#include "connector/postgres/pg_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct sample {
    ck_budget budget;
    ck_mem mem;
    ck_arena arena; /* for types */
} sample;

static int sample_setup(void **state) {
    sample *s = calloc(1, sizeof *s);
    if (!s) return -1;
    ck_budget_init(&s->budget, ck_heap_system(), 0);
    s->mem = (ck_mem){&s->budget, CK_MEM_QUEUE};
    ck_arena_init(&s->arena, s->mem, 1 << 20);
    *state = s;
    return 0;
}

static int sample_teardown(void **state) {
    sample *s = *state;
    ck_arena_destroy(&s->arena);
    size_t left = ck_budget_total(&s->budget);
    free(s);
    return left ? -1 : 0; /* every byte was given back */
}

typedef struct values {
    ck_pg_values v;
    ck_column_builder b;
    ck_field f;
} values;

static void begin(sample *s, values *x, const ck_type *t) {
    *x = (values){.f = {"c", t, true}};
    ck_pg_values_init(&x->v, s->mem);
    assert_int_equal(ck_column_builder_init(&x->b, s->mem, t, 64), CK_OK);
}

static void end(values *x) {
    ck_column_builder_destroy(&x->b);
    ck_pg_values_destroy(&x->v);
}

/* The text becomes a value that is written as `want`. */
static void goes_round(sample *s, const ck_type *t, const char *text, const char *want) {
    values x;
    ck_bytes out;
    begin(s, &x, t);
    ck_bytes_init(&out, s->mem, 1 << 16);
    ck_buffer *in = ck_buffer_new(s->mem, strlen(text) + 1);
    memcpy(in->p, text, strlen(text) + 1);
    assert_int_equal(ck_pg_build(&x.v, &x.f, (ck_view){(const char *)in->p, strlen(text)}, in, &x.b), CK_OK);
    assert_int_equal(ck_pg_build(&x.v, &x.f, (ck_view){0}, NULL, &x.b), CK_OK);
    ck_column *c = ck_column_builder_finish(&x.b);
    assert_int_equal(ck_pg_print_copy(&x.v, t, c, 0, &out), CK_OK);
    assert_int_equal(ck_bytes_char(&out, '|'), CK_OK);
    assert_int_equal(ck_pg_print_copy(&x.v, t, c, 1, &out), CK_OK);
    assert_int_equal(ck_bytes_terminate(&out), CK_OK);
    char both[1024];
    (void)snprintf(both, sizeof both, "%s|\\N", want);
    assert_string_equal(out.p, both);
    ck_column_unref(&c);
    ck_buffer_unref(&in);
    ck_bytes_destroy(&out);
    end(&x);
}

static void is_refused(sample *s, const ck_type *t, const char *text, const char *why) {
    values x;
    begin(s, &x, t);
    assert_int_equal(ck_pg_build(&x.v, &x.f, ck_view_of(text), NULL, &x.b), CK_DATA);
    if (!strstr(x.v.why, why)) fail_msg("\"%s\" lacks \"%s\"", x.v.why, why);
    end(&x);
}

static void scalars(void **state) {
    sample *s = *state;
    goes_round(s, ck_type_simple(CK_TYPE_BOOLEAN), "t", "t");
    goes_round(s, ck_type_simple(CK_TYPE_BIGINT), "-9223372036854775808", "-9223372036854775808");
    goes_round(s, ck_type_simple(CK_TYPE_DOUBLE), "-Infinity", "-Infinity");
    goes_round(s, ck_type_simple(CK_TYPE_REAL), "0.3", "0.3");
    goes_round(s, ck_type_decimal(&s->arena, 6, 3), "-123.400", "-123.400");
    goes_round(s, ck_type_decimal(&s->arena, 6, 3), "1.50000", "1.500");
    goes_round(s, ck_type_simple(CK_TYPE_BYTES), "\\x00ff", "\\\\x00ff");
    goes_round(s, ck_type_simple(CK_TYPE_DATE), "0001-01-01", "0001-01-01");
    goes_round(s, ck_type_with_precision(&s->arena, CK_TYPE_TIMESTAMP, 6), "2024-02-29 23:59:59.000001",
               "2024-02-29 23:59:59.000001");
    goes_round(s, ck_type_with_precision(&s->arena, CK_TYPE_TIMESTAMP_LTZ, 6), "2024-02-29 01:00:00+01",
               "2024-02-29 00:00:00Z");
    goes_round(s, ck_type_simple(CK_TYPE_VARCHAR), "a\tb\\c\nd\"\r", "a\\tb\\\\c\\nd\"\\r");
    is_refused(s, ck_type_simple(CK_TYPE_SMALLINT), "32768", "out of the column's range");
    is_refused(s, ck_type_decimal(&s->arena, 6, 3), "1.2345", "more digits behind the point");
    is_refused(s, ck_type_decimal(&s->arena, 6, 3), "1234.5", "more digits than");
    is_refused(s, ck_type_decimal(&s->arena, 6, 3), "NaN", "no decimal number");
    is_refused(s, ck_type_simple(CK_TYPE_DATE), "infinity", "no time from the year");
    is_refused(s, ck_type_with_precision(&s->arena, CK_TYPE_TIMESTAMP, 3), "2024-02-29 00:00:00.0001",
               "digits of a second");
    is_refused(s, ck_type_simple(CK_TYPE_TIME), "24:00:01", "no time of a day");
    is_refused(s, ck_type_simple(CK_TYPE_BYTES), "\\x0", "no bytea");
    is_refused(s, ck_type_with_precision(&s->arena, CK_TYPE_VARCHAR, 2), "\xc3\xa9\xc3\xa9\xc3\xa9", "longer");
}

static void arrays(void **state) {
    sample *s = *state;
    const ck_type *texts = ck_type_array(&s->arena, ck_type_simple(CK_TYPE_VARCHAR), true);
    const ck_type *numbers = ck_type_array(&s->arena, ck_type_simple(CK_TYPE_INTEGER), false);
    goes_round(s, numbers, "{1,-2,3}", "{1,-2,3}");
    goes_round(s, numbers, "{}", "{}");
    goes_round(s, numbers, "[3:4]={5,6}", "{5,6}");
    goes_round(s, texts, "{a,\"b c\",NULL,\"NULL\",\"\",\"q\\\"\\\\\"}",
               "{\"a\",\"b c\",NULL,\"NULL\",\"\",\"q\\\\\"\\\\\\\\\"}");
    is_refused(s, numbers, "{1,NULL}", "NOT NULL");
    is_refused(s, numbers, "{{1,2},{3,4}}", "more than one dimension");
    static const char *const broken[] = {"",       "{",    "{1", "{1,",   "{1,}", "{\"a}",
                                         "{\"a\\", "{1}x", "1",  "[1:2]", "{a{}", "{\"a\"b}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(broken); i++) {
        values x;
        begin(s, &x, numbers);
        assert_int_equal(ck_pg_build(&x.v, &x.f, ck_view_of(broken[i]), NULL, &x.b), CK_DATA);
        end(&x);
    }
}

static void nulls(void **state) {
    sample *s = *state;
    values x;
    begin(s, &x, ck_type_simple(CK_TYPE_BIGINT));
    x.f.nullable = false;
    assert_int_equal(ck_pg_build(&x.v, &x.f, (ck_view){0}, NULL, &x.b), CK_DATA);
    assert_non_null(strstr(x.v.why, "NOT NULL"));
    end(&x);
}

static void options(void **state) {
    sample *s = *state;
    static const char *const names[] = {"host", "password", "properties.sslmode"};
    const char *values_[] = {"db", "geheim", "require"};
    ck_table_options o = {names, values_, 3};
    ck_pg_options out;
    ck_error err = CK_ERROR_INIT;
    (void)s;
    assert_int_equal(ck_pg_options_read(&o, &out, &err), CK_INVALID);
    assert_null(strstr(err.msg, "geheim"));
    values_[1] = "${env:PW}";
    assert_int_equal(ck_pg_options_read(&o, &out, &err), CK_OK);
    assert_string_equal(out.password, "${env:PW}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scalars, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(arrays, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(nulls, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(options, sample_setup, sample_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
