/* Compiling and running: laziness, sharing, marks and guards, filters, messages. */
#include "expr/sample_int.h"

static const char *run_rows(sample *s, const char *text, const ck_batch *b, bool error_null) {
    ck_expr *e = sample_expr(s, text);
    ck_column *c = NULL;
    if (sample_eval_on(s, e, b, error_null, "UTC", &c) != CK_OK) return s->err.msg;
    char *all = "";
    for (uint32_t k = 0; k < b->sel_count; k++)
        all = ck_arena_printf(&s->arena, "%s%s%s", all, k ? "," : "", sample_value(s, e->type, c, ck_batch_row(b, k)));
    ck_column_unref(&c);
    return all;
}

static const char *filter_rows(sample *s, const char *const *texts, uint32_t count, const ck_batch *b) {
    ck_expr *e[8];
    for (uint32_t i = 0; i < count; i++) e[i] = sample_expr(s, texts[i]);
    ck_program *p;
    ck_eval *ev;
    ck_eval_options o = {.proc = &s->proc, .mem = s->mem, .column_names = s->names};
    assert_int_equal(ck_program_compile(&s->arena, e, count, &p, &s->err), CK_OK);
    assert_int_equal(ck_eval_new(p, &o, &ev, &s->err), CK_OK);
    uint16_t sel[64];
    uint32_t n = 0;
    ck_status st = ck_eval_filter(ev, b, sel, &n, &s->err);
    ck_eval_free(ev);
    if (st != CK_OK) return s->err.msg;
    char *all = "";
    for (uint32_t k = 0; k < n; k++) all = ck_arena_printf(&s->arena, "%s%s%u", all, k ? "," : "", sel[k]);
    return all;
}

/* a: 0 1 2 3 4 NULL, b: 10 0 5 NULL 2 7, t: strings */
static ck_batch *numbers(sample *s) {
    static const char *const cells[] = {"0", "10", "zero", "1", "0", "one",  "2",  "5", "two",
                                        "3", NULL, NULL,   "4", "2", "four", NULL, "7", "a text that is longer"};
    sample_column(s, "a", "BIGINT");
    sample_column(s, "b", "BIGINT");
    sample_column(s, "t", "VARCHAR");
    return sample_batch(s, 6, cells);
}

static void values(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    static const sample_case cases[] = {
        {"(+ a b)", "10,1,7,NULL,6,NULL"},
        {"(+ a 1)", "1,2,3,4,5,NULL"},
        {"(- 1 a)", "1,0,-1,-2,-3,NULL"},
        {"(* a a)", "0,1,4,9,16,NULL"},
        {"(> a 1)", "false,false,true,true,true,NULL"},
        {"(< 1 a)", "false,false,true,true,true,NULL"},
        {"(and (> a 1) (> b 4))", "false,false,true,NULL,false,NULL"},
        {"(or (> a 1) (> b 4))", "true,false,true,true,true,true"},
        {"(not (> a 1))", "true,true,false,false,false,NULL"},
        {"(is_null b)", "false,false,false,true,false,false"},
        {"(is_not_true (> a 1))", "true,true,false,false,false,true"},
        {"(case (> a 2) 'big' (> a 0) 'small')", "NULL,small,small,big,big,NULL"},
        {"(case (> a 2) t (> a 0) 'a constant of many bytes' 'none')",
         "none,a constant of many bytes,a constant of many bytes,NULL,four,none"},
        {"(coalesce b a)", "10,0,5,3,2,7"},
        {"(coalesce t 'nothing')", "zero,one,two,nothing,four,a text that is longer"},
        {"(if (is_null a) 1.5 a)", "0.0,1.0,2.0,3.0,4.0,1.5"},
        {"(nullif a 2)", "0,1,NULL,3,4,NULL"},
        {"(between a 1 3)", "false,true,true,true,false,NULL"},
        {"(in a 1 3)", "false,true,false,true,false,NULL"},
        {"(in a 1 null)", "NULL,true,NULL,NULL,NULL,NULL"},
        {"(in a b 2)", "false,false,true,NULL,false,NULL"},
        {"(in a 9 8 7 6 5 4 3 2)", "false,false,true,true,true,NULL"},
        {"(in t 'two' 'four')", "false,false,true,NULL,true,false"},
        {"(in t 'x1' 'x2' 'x3' 'x4' 'x5' 'x6' 'a text that is longer')", "false,false,false,NULL,false,true"},
        {"(= t 'two')", "false,false,true,NULL,false,false"},
        {"(< t 'one')", "false,false,false,NULL,true,true"},
        {"(= t 'a text that is longer')", "false,false,false,NULL,false,true"},
        {"(cast VARCHAR a)", "0,1,2,3,4,NULL"},
        {"(cast DOUBLE a)", "0.0,1.0,2.0,3.0,4.0,NULL"},
        {"(* 0.5 a)", "0.0,0.5,1.0,1.5,2.0,NULL"},
        {"(greatest a b 3)", "10,3,5,3,4,7"},
        {"(least a b 3)", "0,0,2,3,2,3"},
        {"(is_distinct_from a b)", "true,true,true,true,true,true"},
        {"(is_not_distinct_from b 5)", "false,false,true,false,false,false"},
        {"'x'", "x,x,x,x,x,x"},
        {"null", "NULL,NULL,NULL,NULL,NULL,NULL"},
        {"a", "0,1,2,3,4,NULL"},
        {"(try_cast BIGINT t)", "NULL,NULL,NULL,NULL,NULL,NULL"},
    };
    static const uint16_t odd[] = {1, 3, 5};
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *got = run_rows(s, cases[i].expr, b, false);
        if (strcmp(got, cases[i].result) != 0) fail_msg("%s: %s, not %s", cases[i].expr, got, cases[i].result);
        /* The same over a selection: every other value of the list. */
        ck_batch *half = ck_batch_select(b, odd, 3);
        got = run_rows(s, cases[i].expr, half, false);
        ck_batch_unref(&half);
        char want[256] = "";
        const char *p = cases[i].result;
        for (int k = 0; k < 6; k++) {
            size_t n = strcspn(p, ",");
            if (k % 2) snprintf(want + strlen(want), sizeof want - strlen(want), "%s%.*s", k > 1 ? "," : "", (int)n, p);
            p += n + (p[n] == ',');
        }
        if (strcmp(got, want) != 0) fail_msg("%s over a selection: %s, not %s", cases[i].expr, got, want);
    }
    ck_batch_unref(&b);
}

static void marks_and_guards(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    static const sample_case cases[] = {
        {"(/ a b)", "division by zero in a / b"},
        {"(case (<> b 0) (/ a b))", "0,NULL,0,NULL,2,NULL"},
        {"(and (<> b 0) (> (/ a b) 0))", "false,false,false,NULL,true,NULL"},
        {"(or (= b 0) (>= (/ a b) 0))", "true,true,true,NULL,true,NULL"},
        {"(and (> (/ a b) 0) (<> b 0))", "division by zero in a / b"},
        {"(coalesce (/ a b) 1)", "division by zero in a / b"},
        {"(coalesce 1 (/ a b))", "1,1,1,1,1,1"},
        {"(if (= b 0) 0 (% a b))", "0,0,2,NULL,0,NULL"},
        {"(case (= a 1) 7 (> (/ 10 b) 1) 8 9)", "9,7,8,9,8,9"},
        {"(case (> (/ 10 b) 1) 8 9)", "division by zero in 10 / b"},
        {"(+ (case (<> b 0) (/ a b) 0) (/ a (+ b 1)))", "0,1,0,NULL,3,NULL"},
        /* One division, guarded and not: the unguarded place fails, the guard does not hide it. */
        {"(coalesce (case (<> b 0) (/ a b)) (/ a b))", "division by zero in a / b"},
        {"(cast BIGINT t)", "'zero' is not a BIGINT in cast(t AS BIGINT)"},
        {"(cast TINYINT (* b 100))", "1000 is out of range for TINYINT in cast(b * 100 AS TINYINT)"},
        {"(* (+ a 9223372036854775800) 2)", "(a + 9223372036854775800) * 2 is out of range for BIGINT"},
        {"(is_null (/ a b))", "division by zero in a / b"},
        {"(is_distinct_from (/ a b) 1)", "division by zero in a / b"},
        {"(greatest (/ a b) 1)", "division by zero in a / b"},
        {"(/ 1 0)", "division by zero in 1 / 0"},
        {"(case (< a 0) (/ 1 0) 5)", "5,5,5,5,5,5"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *got = run_rows(s, cases[i].expr, b, false);
        if (strcmp(got, cases[i].result) != 0) fail_msg("%s: %s, not %s", cases[i].expr, got, cases[i].result);
    }
    static const sample_case nulls[] = {
        {"(/ a b)", "0,NULL,0,NULL,2,NULL"},
        {"(coalesce (/ a b) -1)", "0,-1,0,-1,2,-1"},
        {"(cast BIGINT t)", "NULL,NULL,NULL,NULL,NULL,NULL"},
        {"(/ 1 0)", "NULL,NULL,NULL,NULL,NULL,NULL"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(nulls); i++) {
        const char *got = run_rows(s, nulls[i].expr, b, true);
        if (strcmp(got, nulls[i].result) != 0) fail_msg("%s: %s, not %s", nulls[i].expr, got, nulls[i].result);
    }
    ck_batch_unref(&b);
}

/* A row that is not live raises nothing, also where all rows are computed at once. */
static void marks_of_dead_rows(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    static const uint16_t live[] = {0, 2, 3, 4, 5};
    ck_batch *some = ck_batch_select(b, live, 5);
    assert_string_equal(run_rows(s, "(/ a b)", some, false), "0,0,NULL,2,NULL");
    assert_string_equal(run_rows(s, "(+ (* b 1000) (/ a b))", some, false), "10000,5000,NULL,2002,NULL");
    ck_batch_unref(&some);
    static const char *const big[] = {"9223372036854775807", "1", "x", "1", "1", "x"};
    ck_batch *c = sample_batch(s, 2, big);
    static const uint16_t second[] = {1};
    some = ck_batch_select(c, second, 1);
    assert_string_equal(run_rows(s, "(+ a b)", some, false), "2");
    assert_string_equal(run_rows(s, "(+ a b)", c, false), "a + b is out of range for BIGINT");
    ck_batch_unref(&some);
    ck_batch_unref(&c);
    ck_batch_unref(&b);
}

static void filters(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    static const struct {
        const char *conjuncts[3];
        const char *rows;
    } cases[] = {
        {{"(> a 1)"}, "2,3,4"},
        {{"(> a 1)", "(> b 1)"}, "2,4"},
        {{"(< 1 a)", "(is_not_null t)", "(< b 5)"}, "4"},
        {{"(or (= a 0) (= b 7))"}, "0,5"},
        {{"(or (= t 'zero') (= t 'a text that is longer'))"}, "0,5"},
        {{"(or (< t 'p') (= t 'nothing') (= a 2))"}, "1,2,4,5"}, /* as many rows left as found, and not the same */
        {{"(or (= t 'one') (= t 'two') (= t 'zero') (= a 3))"}, "0,1,2,3"},
        {{"(not (= a 2))"}, "0,1,3,4"},
        {{"(not (or (= a 2) (= a 3)))"}, "0,1,4"},
        {{"(is_null a)"}, "5"},
        {{"(in t 'one' 'two' 'three')"}, "1,2"},
        {{"(not (in t 'one' 'two' null))"}, ""},
        {{"(between a 1 2)", "(<> t 'two')"}, "1"},
        {{"true"}, "0,1,2,3,4,5"},
        {{"false"}, ""},
        {{"null"}, ""},
        {{"(<> b 0)", "(>= (/ a b) 0)"}, "0,2,4"},
        {{"(and (<> b 0) (>= (/ a b) 0))"}, "0,2,4"},
        {{"(case (= b 0) true (> (/ 10 b) 1))"}, "1,2,4"},
        {{"(>= (/ a b) 0)", "(<> b 0)"}, "division by zero in a / b"},
        {{"(and (null BOOLEAN) (= (/ a b) 1))"}, ""},
        {{"(< t 'p')"}, "1,4,5"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        uint32_t n = 0;
        while (n < 3 && cases[i].conjuncts[n]) n++;
        const char *got = filter_rows(s, cases[i].conjuncts, n, b);
        if (strcmp(got, cases[i].rows) != 0) fail_msg("%s ...: %s, not %s", cases[i].conjuncts[0], got, cases[i].rows);
    }
    static const uint16_t live[] = {0, 4, 5};
    ck_batch *some = ck_batch_select(b, live, 3);
    static const char *const two[] = {"(>= b 2)", "(is_not_null a)"};
    assert_string_equal(filter_rows(s, two, 2, some), "0,4");
    ck_batch_unref(&some);
    ck_batch_unref(&b);
}

static void place_of_an_error(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    b->origin = ck_origin_new(s->mem, "orders.ndjson", 1000, 6);
    for (uint32_t i = 0; i < 6; i++) b->origin->row_offset[i] = i * 20;
    ck_expr *e = sample_expr(s, "(+ 1 (/ a b))");
    e->args[1]->line = 3, e->args[1]->col = 14;
    ck_column *c = NULL;
    assert_int_equal(sample_eval_on(s, e, b, false, "UTC", &c), CK_DATA);
    assert_string_equal(s->err.msg, "division by zero in a / b (line 3, column 14)");
    assert_string_equal(s->err.place.object, "orders.ndjson");
    assert_int_equal(s->err.place.byte_offset, 1020);
    assert_true(s->err.fatal);
    ck_batch_unref(&b);
}

/* Equal parts are computed once: the program has one step for each. */
static void sharing(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    ck_expr *e[] = {sample_expr(s, "(+ (* a b) 1)"), sample_expr(s, "(- (* a b) 1)"),
                    sample_expr(s, "(case (> (* a b) 3) (* a b) 0)")};
    ck_program *p;
    assert_int_equal(ck_program_compile(&s->arena, e, 3, &p, &s->err), CK_OK);
    uint32_t products = 0;
    for (uint32_t i = 0; i < p->values.node_count; i++)
        products += p->values.nodes[i].kind == CK_NODE_CALL && strcmp(p->values.nodes[i].expr->fn->name, "*") == 0;
    assert_int_equal(products, 1);
    ck_batch_unref(&b);
}

/* Results handed out stay as they are while later batches run, and their memory is taken again afterwards. */
static void memory_is_reused(void **state) {
    sample *s = *state;
    ck_batch *b = numbers(s);
    ck_expr *e[] = {sample_expr(s, "(+ a 1)"), sample_expr(s, "(cast VARCHAR (+ a 1234567890123456))")};
    ck_program *p;
    ck_eval *ev;
    ck_eval_options o = {.proc = &s->proc, .mem = s->mem};
    assert_int_equal(ck_program_compile(&s->arena, e, 2, &p, &s->err), CK_OK);
    assert_int_equal(ck_eval_new(p, &o, &ev, &s->err), CK_OK);
    ck_column *first[2], *second[2];
    assert_int_equal(ck_eval_run(ev, b, first, &s->err), CK_OK);
    assert_int_equal(ck_eval_run(ev, b, second, &s->err), CK_OK);
    assert_ptr_not_equal(first[0], second[0]);
    assert_string_equal(sample_value(s, e[1]->type, first[1], 4), "1234567890123460");
    for (int i = 0; i < 2; i++) {
        ck_column_unref(&first[i]);
        ck_column_unref(&second[i]);
    }
    assert_int_equal(ck_eval_run(ev, b, first, &s->err), CK_OK);
    for (int i = 0; i < 2; i++) ck_column_unref(&first[i]);
    size_t blocks = ck_tracked_heap_live_blocks(s->heap);
    for (int k = 0; k < 50; k++) {
        assert_int_equal(ck_eval_run(ev, b, first, &s->err), CK_OK);
        for (int i = 0; i < 2; i++) ck_column_unref(&first[i]);
    }
    assert_true(ck_tracked_heap_live_blocks(s->heap) <= blocks + 2);
    ck_eval_free(ev);
    ck_batch_unref(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(values),           SAMPLE_TEST(marks_and_guards),  SAMPLE_TEST(marks_of_dead_rows),
        SAMPLE_TEST(filters),          SAMPLE_TEST(place_of_an_error), SAMPLE_TEST(sharing),
        SAMPLE_TEST(memory_is_reused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
