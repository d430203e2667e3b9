/* Building, printing, comparing, folding; JSON there and back; what is refused and with which words. */
#include "expr/sample_int.h"

#include <yyjson.h>

#include "base/json.h"
#include "expr/aggregate.h"

static void columns(sample *s) {
    sample_column(s, "a", "BIGINT");
    sample_column(s, "i", "INTEGER");
    sample_column(s, "d", "DOUBLE");
    sample_column(s, "n", "DECIMAL(10,2)");
    sample_column(s, "t", "VARCHAR");
    sample_column(s, "day", "DATE");
    sample_column(s, "ts", "TIMESTAMP(3)");
    sample_column(s, "odd name", "BOOLEAN");
}

static const char *printed(sample *s, const ck_expr *e) {
    ck_bytes b;
    ck_bytes_init(&b, s->mem, 1 << 20);
    assert_int_equal(ck_expr_print(e, s->names, &b), CK_OK);
    const char *z = ck_arena_strndup(&s->arena, b.p, b.n);
    ck_bytes_destroy(&b);
    return z;
}

static const char *for_people(sample *s, const ck_expr *e) {
    ck_bytes b;
    ck_bytes_init(&b, s->mem, 1 << 20);
    assert_int_equal(ck_expr_print_for_people(e, s->names, &b), CK_OK);
    const char *z = ck_arena_strndup(&s->arena, b.p, b.n);
    ck_bytes_destroy(&b);
    return z;
}

/* Intervals in the largest unit that holds them; the canonical text beside it stays as it is. */
static void text_for_people(void **state) {
    sample *s = *state;
    columns(s);
    static const struct {
        int64_t us;
        const char *people, *canonical;
    } cases[] = {
        {0, "ts - INTERVAL '0' SECOND", "ts - INTERVAL '0.000000' SECOND"},
        {60000000, "ts - INTERVAL '1' MINUTE", "ts - INTERVAL '60.000000' SECOND"},
        {-7200000000, "ts - INTERVAL '-2' HOUR", "ts - INTERVAL '-7200.000000' SECOND"},
        {777600000000000000, "ts - INTERVAL '9000000' DAY", "ts - INTERVAL '777600000000.000000' SECOND"},
        {90500000, "ts - INTERVAL '90.5' SECOND", "ts - INTERVAL '90.500000' SECOND"},
        {1, "ts - INTERVAL '0.000001' SECOND", "ts - INTERVAL '0.000001' SECOND"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_expr *e = sample_expr(s, "(- ts ts)");
        e->args[1] = ck_expr_literal(&s->arena, ck_type_simple(CK_TYPE_INTERVAL_US), (ck_datum){.i64 = cases[i].us});
        assert_string_equal(for_people(s, e), cases[i].people);
        assert_string_equal(printed(s, e), cases[i].canonical);
    }
}

static void text(void **state) {
    sample *s = *state;
    columns(s);
    static const struct {
        const char *expr, *text, *type;
    } cases[] = {
        {"a", "a", "BIGINT"},
        {"(+ (* a i) 1)", "(a * i) + 1", "BIGINT"},
        {"(+ i 1)", "i + 1", "INTEGER"},
        {"(* a d)", "cast(a AS DOUBLE) * d", "DOUBLE"},
        {"(* 0.908 a)", "0.908 * a", "DECIMAL(23,3)"},
        {"(+ n 1)", "n + 1", "DECIMAL(13,2)"},
        {"(/ n 3)", "n / 3", "DECIMAL(21,13)"},
        {"(> n 5)", "n > 5.00", "BOOLEAN"},
        {"(= t 'it''s')", "t = 'it''s'", "BOOLEAN"},
        {"(> day '2024-02-29')", "day > DATE '2024-02-29'", "BOOLEAN"},
        {"(< ts '2024-02-29 01:02:03.5')", "ts < TIMESTAMP '2024-02-29 01:02:03.500'", "BOOLEAN"},
        {"(= a '12')", "a = 12", "BOOLEAN"},
        {"(and (> a 1) (not (is_null t)))", "(a > 1) AND (NOT (t IS NULL))", "BOOLEAN"},
        {"(case (> a 1) 'x' t)", "CASE WHEN a > 1 THEN 'x' ELSE t END", "VARCHAR"},
        {"(coalesce a 0)", "coalesce(a, 0)", "BIGINT"},
        {"(if (= a 1) n 0)", "if(a = 1, cast(n AS DECIMAL(12,2)), 0.00)", "DECIMAL(12,2)"},
        {"(like t 'a%')", "t LIKE 'a%'", "BOOLEAN"},
        {"(between a 1 2)", "a BETWEEN 1 AND 2", "BOOLEAN"},
        {"(in t 'a' 'b')", "t IN ('a', 'b')", "BOOLEAN"},
        {"(in i 1 3000000000)", "cast(i AS BIGINT) IN (1, 3000000000)", "BOOLEAN"},
        {"(cast VARCHAR a)", "cast(a AS VARCHAR)", "VARCHAR"},
        {"(try_cast INTEGER t)", "try_cast(t AS INTEGER)", "INTEGER"},
        {"(cast BIGINT i)", "cast(i AS BIGINT)", "BIGINT"},
        {"(neg a)", "-a", "BIGINT"},
        {"(- day 7)", "day - 7", "DATE"},
        {"(- ts ts)", "ts - ts", "INTERVAL DAY TO SECOND"},
        {"(mod a 123)", "a % 123", "BIGINT"},
        {"odd name", NULL, NULL},
        {"(+ 1e0 1)", "1.0e0 + 1.0e0", "DOUBLE"},
        {"(nvl t 'x')", "coalesce(t, 'x')", "VARCHAR"},
        {"(null TIMESTAMP(3))", "cast(NULL AS TIMESTAMP(3))", "TIMESTAMP(3)"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        if (!cases[i].text) continue;
        ck_expr *e = sample_expr(s, cases[i].expr);
        if (strcmp(printed(s, e), cases[i].text) != 0) fail_msg("%s prints as %s", cases[i].expr, printed(s, e));
        if (strcmp(ck_type_name(&s->arena, e->type), cases[i].type) != 0)
            fail_msg("%s is %s", cases[i].expr, ck_type_name(&s->arena, e->type));
    }
    assert_string_equal(printed(s, ck_expr_column(&s->arena, 7, s->fields[7].type, true)), "\"odd name\"");
}

static void refusals(void **state) {
    sample *s = *state;
    columns(s);
    static const sample_case cases[] = {
        {"(colesce a 1)", "no function colesce; did you mean coalesce?"},
        {"(xyzzy a)", "no function xyzzy"},
        {"(+ a t)", "no operator BIGINT + VARCHAR; || joins texts, CAST makes a number of one"},
        {"(+ day day)", "no operator DATE + DATE"},
        {"(> a t)", "cannot compare BIGINT with VARCHAR; cast one side"},
        {"(> a 'abc')", "'abc' is not a BIGINT"},
        {"(> day '2024-02-30')", "'2024-02-30' is not a DATE"},
        {"(and a (> a 1))", "a AND b takes BOOLEAN, not BIGINT"},
        {"(case a 1)", "a condition of CASE WHEN condition THEN value ... [ELSE value] END is BIGINT, not BOOLEAN"},
        {"(coalesce a day)", "COALESCE(a, b, ...) cannot mix BIGINT and DATE; cast one of them"},
        {"(cast DATE a)", "cannot cast BIGINT to DATE; TO_TIMESTAMP_LTZ(x, 3) makes a timestamp of epoch milliseconds"},
        {"(like a 'x')", "no function like(BIGINT, VARCHAR); like takes (VARCHAR, VARCHAR, VARCHAR optional)"},
        {"(like t 'a\\')", "the LIKE pattern 'a\\' ends with its escape character"},
        {"(nullif a)", "no function nullif(BIGINT); nullif takes NULLIF(a, b)"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_expr *e;
        assert_int_equal(sample_try(s, cases[i].expr, &e), CK_INVALID);
        if (strcmp(s->err.msg, cases[i].result) != 0) fail_msg("%s: %s", cases[i].expr, s->err.msg);
    }
}

static void equality(void **state) {
    sample *s = *state;
    columns(s);
    ck_expr *e = sample_expr(s, "(+ (* a 2) (case (> a 1) i 0))"),
            *same = sample_expr(s, "(+ (* a 2) (case (> a 1) i 0))");
    same->line = 7;
    assert_true(ck_expr_equal(e, same));
    assert_int_equal(e->hash, same->hash);
    assert_false(ck_expr_equal(e, sample_expr(s, "(+ (* a 2) (case (> a 1) i 1))")));
    assert_false(ck_expr_equal(sample_expr(s, "(= a 1)"), sample_expr(s, "(= a i)")));
    assert_false(ck_expr_equal(sample_expr(s, "0.0e0"), sample_expr(s, "-0.0e0")));
}

static void note(void *arg, uint32_t column) { *(uint32_t *)arg |= 1U << column; }

static void questions(void **state) {
    sample *s = *state;
    columns(s);
    uint32_t seen = 0;
    ck_expr_visit_columns(sample_expr(s, "(if (> a 1) i (+ a 1))"), note, &seen);
    assert_int_equal(seen, 3);
    assert_true(ck_expr_is_fallible(sample_expr(s, "(+ a 1)")));
    assert_true(ck_expr_is_fallible(sample_expr(s, "(is_null (/ a i))")));
    assert_false(ck_expr_is_fallible(sample_expr(s, "(% a 7)")));
    assert_false(ck_expr_is_fallible(sample_expr(s, "(* 0.5 a)")));
    assert_false(ck_expr_is_fallible(sample_expr(s, "(try_cast BIGINT t)")));
    assert_false(ck_expr_is_fallible(sample_expr(s, "(> a 1)")));
    assert_true(ck_expr_is_constant(sample_expr(s, "(+ 1 2)")));
    assert_false(ck_expr_is_constant(sample_expr(s, "(+ a 2)")));
    assert_false(sample_expr(s, "(coalesce a 1)")->nullable);
    assert_true(sample_expr(s, "(case (> a 1) 1)")->nullable);
    assert_false(sample_expr(s, "(case (> a 1) 1 2)")->nullable);
    assert_false(sample_expr(s, "(is_null a)")->nullable);
    assert_true(sample_expr(s, "(try_cast BIGINT 'x')")->nullable);
}

static void columns_of_a_schema(void **state) {
    sample *s = *state;
    columns(s);
    ck_schema schema = {s->fields, s->field_count};
    ck_expr *e = sample_expr(s, "(if (> a 1) i (+ i 1))");
    assert_int_equal(ck_expr_check_columns(e, &schema, &s->err), CK_OK);
    schema.field_count = 1;
    assert_int_equal(ck_expr_check_columns(e, &schema, &s->err), CK_INVALID);
    assert_string_equal(s->err.msg, "column 1 of 1 columns");
    schema.field_count = s->field_count;
    s->fields[1].type = ck_type_simple(CK_TYPE_BIGINT);
    assert_int_equal(ck_expr_check_columns(e, &schema, &s->err), CK_INVALID);
    assert_string_equal(s->err.msg, "column 1 (i) has another type");
}

static void substitution(void **state) {
    sample *s = *state;
    columns(s);
    ck_expr *map[8] = {sample_expr(s, "(+ a 5)"), sample_expr(s, "i")};
    for (int k = 2; k < 8; k++) map[k] = sample_expr(s, "a");
    ck_expr *e = sample_expr(s, "(* a (+ i a))");
    ck_expr *copy = ck_expr_substitute(&s->arena, e, map, 8);
    assert_string_equal(printed(s, copy), "(a + 5) * (i + (a + 5))");
    assert_string_equal(printed(s, e), "a * (i + a)");
    assert_int_equal(copy->hash, sample_expr(s, "(* (+ a 5) (+ i (+ a 5)))")->hash);
}

typedef struct shift {
    ck_arena *arena;
    uint32_t by;
} shift;

/* Columns move; a constant cannot be. */
static ck_status shifted(void *arg, const ck_expr *e, ck_expr **instead) {
    const shift *x = (const shift *)arg;
    if (e->kind == CK_EXPR_LITERAL) return CK_INVALID;
    if (e->kind != CK_EXPR_COLUMN) return CK_OK;
    *instead = ck_expr_column(x->arena, e->column + x->by, e->type, e->nullable);
    return *instead ? CK_OK : CK_NOMEM;
}

static ck_status unchanged(void *arg, const ck_expr *e, ck_expr **instead) {
    (void)arg, (void)e, (void)instead;
    return CK_OK;
}

/* All of it is rewritten, or the call says that it is not: what had no memory is never left as it was. */
static void rewriting(void **state) {
    sample *s = *state;
    for (int i = 0; i < 4; i++) sample_column(s, (const char *[]){"a", "b", "c", "d"}[i], "BIGINT");
    ck_expr *e = sample_expr(s, "(* a (+ b (coalesce a b)))"), *out = NULL;
    assert_int_equal(ck_expr_rewrite(&s->arena, e, unchanged, NULL, &out), CK_OK);
    assert_ptr_equal(out, e);
    shift failing = {&s->arena, 2};
    out = NULL;
    assert_int_equal(ck_expr_rewrite(&s->arena, sample_expr(s, "(+ a 1)"), shifted, &failing, &out), CK_INVALID);
    assert_null(out);
    ck_status st = CK_NOMEM;
    for (size_t bytes_max = 0; st != CK_OK; bytes_max += 64) {
        ck_arena a;
        ck_arena_init(&a, s->mem, bytes_max);
        shift x = {&a, 2};
        st = ck_expr_rewrite(&a, e, shifted, &x, &out);
        assert_true(st == CK_NOMEM || st == CK_OK);
        if (st == CK_OK) assert_string_equal(printed(s, out), "c * (d + coalesce(c, d))");
        ck_arena_destroy(&a);
    }
    assert_string_equal(printed(s, e), "a * (b + coalesce(a, b))");
}

static void folding(void **state) {
    sample *s = *state;
    columns(s);
    static const sample_case cases[] = {
        {"(+ 1 2)", "3"},
        {"(case (> 1 2) 'a' 'b')", "'b'"},
        {"(* 1.5 2)", "3.0"},
        {"(cast VARCHAR 12)", "'12'"},
        {"(cast TIMESTAMP(3) '2024-01-02 03:04:05.678')", "TIMESTAMP '2024-01-02 03:04:05.678'"},
        {"(= null 1)", "cast(NULL AS BOOLEAN)"},
        {"(cast TIMESTAMP_LTZ(3) '2024-01-02 03:04:05')", "cast('2024-01-02 03:04:05' AS TIMESTAMP_LTZ(3))"},
        {"(repeat 'ab' 600000)", "repeat('ab', 600000)"}, /* more than a plan is to carry */
        {"(+ a 2)", "a + 2"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_expr *e = sample_expr(s, cases[i].expr), *f;
        if (ck_expr_fold(&s->arena, e, &f, &s->err) != CK_OK) fail_msg("%s: %s", cases[i].expr, s->err.msg);
        if (strcmp(printed(s, f), cases[i].result) != 0) fail_msg("%s folds to %s", cases[i].expr, printed(s, f));
        assert_true(ck_type_eq(f->type, e->type));
    }
    ck_expr *f;
    assert_int_equal(ck_expr_fold(&s->arena, sample_expr(s, "(/ 1 0)"), &f, &s->err), CK_DATA);
    assert_string_equal(s->err.msg, "division by zero in 1 / 0");
    /* A cast that fails is left for the row that evaluates it. */
    assert_string_equal(printed(s, sample_expr(s, "(case (> a 1) (cast BIGINT 'x') 1)")),
                        "CASE WHEN a > 1 THEN cast('x' AS BIGINT) ELSE 1 END");
}

/* ---- JSON ---- */

static ck_status read_text(sample *s, const char *json, ck_expr **out) {
    yyjson_doc *doc;
    assert_int_equal(ck_json_read(&s->arena, ck_view_of(json), &doc, &s->err), CK_OK);
    return ck_expr_from_json(&s->arena, NULL, yyjson_doc_get_root(doc), out, &s->err);
}

static const char *to_text(sample *s, const ck_expr *e);

/* 1 / 0 is known not to be NULL, until what fails is NULL; then COALESCE must not drop what comes behind it, here or
 * when the document is read. */
static void what_fails_is_null(void **state) {
    sample *s = *state;
    columns(s);
    ck_expr *one = sample_expr(s, "1"), *pair[] = {one, sample_expr(s, "0")}, *quotient, *strict, *both, *back;
    assert_int_equal(ck_expr_call(&s->arena, "/", pair, 2, &quotient, &s->err), CK_OK);
    assert_false(quotient->nullable);
    ck_expr_fails_to_null(quotient, pair, 2);
    assert_true(quotient->nullable && quotient->fails_to_null);
    assert_false(one->nullable);
    assert_int_equal(ck_expr_call(&s->arena, "abs", &quotient, 1, &strict, &s->err), CK_OK);
    assert_true(strict->nullable);
    assert_int_equal(ck_expr_call(&s->arena, "coalesce", (ck_expr *[]){strict, one}, 2, &both, &s->err), CK_OK);
    assert_int_equal(both->arg_count, 2);
    assert_false(both->nullable);
    assert_int_equal(read_text(s, to_text(s, both), &back), CK_OK);
    assert_true(ck_expr_equal(both, back));
    assert_true(back->args[0]->args[0]->fails_to_null);
    ck_expr *copy = ck_expr_substitute(&s->arena, both, NULL, 0);
    assert_true(copy && ck_expr_equal(both, copy));
    ck_expr *text = sample_expr(s, "(|| 'x' 'y')"), *cast;
    assert_int_equal(ck_expr_cast(&s->arena, text, ck_type_simple(CK_TYPE_BIGINT), false, &cast, &s->err), CK_OK);
    ck_expr_fails_to_null(cast, &text, 1);
    assert_true(cast->nullable);
    ck_expr_fails_to_null(text, &text, 1); /* what binding gave back as it came */
    assert_false(text->nullable);
}

static const char *to_text(sample *s, const ck_expr *e) {
    yyjson_mut_doc *doc;
    yyjson_mut_val *v;
    ck_view out;
    assert_int_equal(ck_json_new(&s->arena, &doc, &s->err), CK_OK);
    assert_int_equal(ck_expr_to_json(e, doc, &v), CK_OK);
    yyjson_mut_doc_set_root(doc, v);
    assert_int_equal(ck_json_write(&s->arena, doc, &out, &s->err), CK_OK);
    return out.p;
}

/* A value on its way into a column knows its name, also when the document is read. */
static void assignments(void **state) {
    sample *s = *state;
    columns(s);
    ck_expr *text = sample_expr(s, "t"), *e, *back, *same;
    const ck_type *three = sample_type(s, "VARCHAR(3)");
    assert_int_equal(ck_expr_assign(&s->arena, text, three, "name", &e, &s->err), CK_OK);
    assert_true(ck_expr_is_fallible(e) && ck_type_eq(e->type, three));
    assert_int_equal(read_text(s, to_text(s, e), &back), CK_OK);
    assert_true(ck_expr_equal(e, back) && ck_expr_is_fallible(back));
    assert_int_equal(ck_expr_assign(&s->arena, e, sample_type(s, "VARCHAR(4)"), "name", &same, &s->err), CK_OK);
    assert_int_equal(same->arg_count, 1); /* a cast that cannot cut */
    assert_int_equal(ck_expr_assign(&s->arena, text, ck_type_simple(CK_TYPE_VARCHAR), "name", &same, &s->err), CK_OK);
    assert_ptr_equal(same, text);
    static const char *const bad[] = {
        "{\"fn\":\"assign\",\"args\":[{\"col\":1,\"type\":\"VARCHAR\"}],\"type\":\"VARCHAR(3)\"}",
        "{\"fn\":\"assign\",\"args\":[{\"col\":1,\"type\":\"VARCHAR\"},{\"lit\":7,\"type\":\"BIGINT\"}],\"type\":"
        "\"VARCHAR(3)\"}",
        "{\"fn\":\"assign\",\"args\":[{\"col\":1,\"type\":\"VARCHAR\"},{\"lit\":null,\"type\":\"VARCHAR\"}],\"type\":"
        "\"VARCHAR(3)\"}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) assert_int_equal(read_text(s, bad[i], &back), CK_CORRUPT);
}

/* An element was computed when the array was bound and is a constant when the document is read: the type stays. */
static void types_stay_as_they_were_bound(void **state) {
    sample *s = *state;
    columns(s);
    ck_expr *back;
    static const char *const good =
        "{\"fn\":\"array\",\"args\":[{\"lit\":\"x\",\"type\":\"VARCHAR\"}],\"type\":\"ARRAY<VARCHAR>\"}";
    assert_int_equal(read_text(s, good, &back), CK_OK);
    assert_true(ck_type_eq(back->type, sample_type(s, "ARRAY<VARCHAR>")));
    assert_false(ck_type_eq(back->type, sample_type(s, "ARRAY<VARCHAR NOT NULL>")));
    static const char *const bad[] = {
        "{\"fn\":\"array\",\"args\":[{\"lit\":\"x\",\"type\":\"VARCHAR\"}],\"type\":\"ARRAY<BIGINT>\"}",
        "{\"fn\":\"array\",\"args\":[{\"lit\":null,\"type\":\"VARCHAR\"}],\"type\":\"ARRAY<VARCHAR NOT NULL>\"}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) assert_int_equal(read_text(s, bad[i], &back), CK_CORRUPT);
}

static ck_expr *random_expr(sample *s, int depth, const char *type) {
    static const struct {
        const char *type, *pattern;
    } forms[] = {
        {"BIGINT", "(+ L L)"},        {"BIGINT", "(* L L)"},         {"BIGINT", "(case B L L)"},
        {"BIGINT", "(coalesce L L)"}, {"BIGINT", "(cast BIGINT S)"}, {"BIGINT", "(% L L)"},
        {"BOOLEAN", "(> L L)"},       {"BOOLEAN", "(and B B B)"},    {"BOOLEAN", "(or B B)"},
        {"BOOLEAN", "(not B)"},       {"BOOLEAN", "(= S S)"},        {"BOOLEAN", "(in L 1 2 3)"},
        {"BOOLEAN", "(is_null S)"},   {"BOOLEAN", "(like S S)"},     {"VARCHAR", "(cast VARCHAR L)"},
        {"VARCHAR", "(case B S S)"},  {"VARCHAR", "(nullif S S)"},   {"BOOLEAN", "(between L L L)"},
        {"BIGINT", "(neg L)"},
    };
    if (depth == 0) {
        static const char *const leaves[][4] = {{"BIGINT", "a", "17", "(null BIGINT)"},
                                                {"BOOLEAN", "(> a 0)", "true", "false"},
                                                {"VARCHAR", "t", "'x''y'", "''"}};
        for (size_t i = 0; i < 3; i++)
            if (strcmp(leaves[i][0], type) == 0) return sample_expr(s, leaves[i][1 + rand() % 3]);
    }
    for (;;) {
        size_t f = (size_t)rand() % CK_ARRAY_COUNT(forms);
        if (strcmp(forms[f].type, type) != 0) continue;
        char name[16];
        const char *p = forms[f].pattern + 1;
        size_t n = strcspn(p, " ");
        memcpy(name, p, n);
        name[n] = '\0';
        ck_expr *args[4], *out;
        uint32_t count = 0;
        for (p += n; *p != ')'; p++) {
            if (*p == 'L' && p[1] != 'I')
                args[count++] = random_expr(s, depth - 1, "BIGINT");
            else if (*p == 'B' && p[1] != 'I')
                args[count++] = random_expr(s, depth - 1, "BOOLEAN");
            else if (*p == 'S')
                args[count++] = random_expr(s, depth - 1, "VARCHAR");
            else if (*p >= '1' && *p <= '3')
                args[count++] = sample_expr(s, (char[]){*p, '\0'});
            else if (strncmp(p, "BIGINT", 6) == 0 || strncmp(p, "VARCHAR", 7) == 0)
                p += strcspn(p, " ");
        }
        ck_status st = strcmp(name, "cast") == 0
                           ? ck_expr_cast(&s->arena, args[0], sample_type(s, type), false, &out, &s->err)
                           : ck_expr_call(&s->arena, name, args, count, &out, &s->err);
        if (st == CK_OK) return out; /* otherwise a literal that does not convert: another draw */
    }
}

static void json_there_and_back(void **state) {
    sample *s = *state;
    columns(s);
    srand(11);
    for (int round = 0; round < 2000; round++) {
        ck_arena_mark m = ck_arena_mark_now(&s->arena);
        ck_expr *e = random_expr(s, 1 + round % 4, round % 3 ? "BIGINT" : "BOOLEAN"), *back;
        if (round % 2) e->line = 3, e->col = (uint32_t)round;
        const char *json = to_text(s, e);
        if (read_text(s, json, &back) != CK_OK) fail_msg("%s: %s", json, s->err.msg);
        if (!ck_expr_equal(e, back)) fail_msg("%s came back as %s", json, to_text(s, back));
        assert_int_equal(back->line, e->line);
        assert_string_equal(printed(s, e), printed(s, back));
        ck_arena_reset_to(&s->arena, m);
    }
    static const char *const literals[] = {
        "1e308",
        "-0.0e0",
        "1.50",
        "(lit DATE '2024-02-29')",
        "(lit TIMESTAMP(3) '2024-02-29 01:02:03.004')",
        "(cast BYTES '\x01z')",
        "(null DECIMAL(20,4))",
        "(lit INTERVAL_DAY_TO_SECOND '1 02:03:04')",
    };
    for (size_t i = 0; i + 1 < CK_ARRAY_COUNT(literals); i++) {
        ck_expr *e = sample_expr(s, literals[i]), *back;
        if (read_text(s, to_text(s, e), &back) != CK_OK) fail_msg("%s: %s", literals[i], s->err.msg);
        assert_true(ck_expr_equal(e, back));
    }
}

static void bad_documents(void **state) {
    sample *s = *state;
    static const char *const docs[] = {
        "[]",
        "{}",
        "{\"type\":\"BIGINT\"}",
        "{\"col\":-1,\"type\":\"BIGINT\"}",
        "{\"col\":1}",
        "{\"col\":1,\"type\":\"NUMBER\"}",
        "{\"lit\":\"x\",\"type\":\"BIGINT\"}",
        "{\"lit\":300,\"type\":\"TINYINT\"}",
        "{\"lit\":18446744073709551615,\"type\":\"BIGINT\"}",
        "{\"lit\":\"0g\",\"type\":\"BYTES\"}",
        "{\"lit\":1,\"type\":\"ARRAY<BIGINT>\"}",
        "{\"fn\":\"+\",\"type\":\"BIGINT\"}",
        "{\"fn\":\"nope\",\"args\":[],\"type\":\"BIGINT\"}",
        ("{\"fn\":\"+\",\"args\":[{\"lit\":1,\"type\":\"INTEGER\"},{\"lit\":1,\"type\":\"INTEGER\"}],\"type\":"
         "\"BIGINT\"}"),
        "{\"fn\":\"cast\",\"args\":[],\"type\":\"BIGINT\"}",
        "{\"fn\":\"cast\",\"args\":[{\"lit\":1,\"type\":\"INTEGER\"}],\"type\":\"DATE\"}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(docs); i++) {
        ck_expr *e;
        ck_status st = read_text(s, docs[i], &e);
        if (st != CK_CORRUPT) fail_msg("%s: %s", docs[i], ck_status_name(st));
    }
    char *deep = ck_arena_alloc(&s->arena, 100000), *p = deep;
    for (int i = 0; i < 1500; i++) p += sprintf(p, "{\"fn\":\"neg\",\"type\":\"BIGINT\",\"args\":[");
    p += sprintf(p, "{\"col\":0,\"type\":\"BIGINT\"}");
    for (int i = 0; i < 1500; i++) p += sprintf(p, "]}");
    ck_expr *e;
    assert_int_equal(read_text(s, deep, &e), CK_CORRUPT);
}

static void aggregates(void **state) {
    sample *s = *state;
    static const struct {
        const char *name, *arg, *type, *argument, *parts;
    } cases[] = {
        {"COUNT", NULL, "BIGINT", NULL, "count_star"},
        {"count", "VARCHAR", "BIGINT", "VARCHAR", "count"},
        {"sum", "INTEGER", "BIGINT", "BIGINT", "sum"},
        {"sum", "REAL", "DOUBLE", "DOUBLE", "sum"},
        {"sum", "DECIMAL(10,2)", "DECIMAL(38,2)", "DECIMAL(10,2)", "sum"},
        {"avg", "BIGINT", "DOUBLE", "BIGINT", "sum count"},
        {"avg", "DECIMAL(10,2)", "DECIMAL(38,6)", "DECIMAL(10,2)", "sum count"},
        {"avg", "DECIMAL(10,8)", "DECIMAL(38,8)", "DECIMAL(10,8)", "sum count"},
        {"min", "DATE", "DATE", "DATE", "min"},
        {"max", "VARCHAR", "VARCHAR", "VARCHAR", "max"},
        {"string_agg", "INTEGER", "VARCHAR", "VARCHAR", "ordered"},
        {"array_agg", "DATE", "ARRAY<DATE>", "DATE", "ordered"},
        {"median", "INTEGER", "DOUBLE", "DOUBLE", "ordered"},
        {"percentile_disc", "VARCHAR", "VARCHAR", "VARCHAR", "ordered"},
        {"approx_count_distinct", "VARCHAR", "BIGINT", "VARCHAR", "distinct_sketch"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_bound_aggregate b;
        const ck_aggregate *g = ck_aggregate_find(cases[i].name);
        const ck_type *arg = cases[i].arg ? sample_type(s, cases[i].arg) : NULL;
        assert_int_equal(g->bind(&s->arena, arg, true, &b, &s->err), CK_OK);
        assert_string_equal(ck_type_name(&s->arena, b.type), cases[i].type);
        assert_int_equal(b.argument_type != NULL, cases[i].argument != NULL);
        if (b.argument_type) assert_string_equal(ck_type_name(&s->arena, b.argument_type), cases[i].argument);
        char parts[64] = "";
        for (uint32_t k = 0; k < b.part_count; k++) {
            if (k) strcat(parts, " ");
            strcat(parts, b.parts[k].accumulator);
        }
        assert_string_equal(parts, cases[i].parts);
    }
    ck_bound_aggregate b;
    assert_int_equal(ck_aggregate_find("avg")->bind(&s->arena, ck_type_simple(CK_TYPE_VARCHAR), true, &b, &s->err),
                     CK_INVALID);
    assert_string_equal(s->err.msg, "no aggregate avg(VARCHAR); avg takes a number");
    assert_null(ck_aggregate_find("mode"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(text),
        SAMPLE_TEST(text_for_people),
        SAMPLE_TEST(refusals),
        SAMPLE_TEST(equality),
        SAMPLE_TEST(questions),
        SAMPLE_TEST(columns_of_a_schema),
        SAMPLE_TEST(substitution),
        SAMPLE_TEST(rewriting),
        SAMPLE_TEST(folding),
        SAMPLE_TEST(json_there_and_back),
        SAMPLE_TEST(what_fails_is_null),
        SAMPLE_TEST(assignments),
        SAMPLE_TEST(types_stay_as_they_were_bound),
        SAMPLE_TEST(bad_documents),
        SAMPLE_TEST(aggregates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
