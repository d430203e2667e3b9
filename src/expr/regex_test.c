/* Regular expressions: groups, machine code beside the interpreter, patterns that would never end, and that a pattern
 * is compiled once. */
#include "expr/regex_int.h"

#include "base/hash.h"
#include "expr/pcre.h"
#include "expr/sample_int.h"

static bool has_jit(void) {
    uint32_t yes = 0;
    return pcre2_config(PCRE2_CONFIG_JIT, &yes) == 0 && yes;
}

static ck_regex *compiled(sample *s, const char *pattern) {
    ck_regex *r;
    if (ck_regex_compile(&s->arena, ck_view_of(pattern), false, &r, &s->err) != CK_OK)
        fail_msg("%s: %s", pattern, s->err.msg);
    return r;
}

static void groups(void **state) {
    ck_regex *r = compiled(*state, "(a)|(b)c");
    const ck_span *spans;
    assert_int_equal(ck_regex_groups(r), 2);
    assert_int_equal(ck_regex_match(r, CK_VIEW("xa"), 0, &spans), CK_REGEX_MATCH);
    assert_int_equal(spans[1].from, 1);
    assert_true(spans[2].from == SIZE_MAX);
    assert_int_equal(ck_regex_match(r, CK_VIEW("xa"), 2, &spans), CK_REGEX_NONE);
    assert_int_equal(ck_regex_match(r, (ck_view){NULL, 0}, 0, &spans), CK_REGEX_NONE);
}

/* Whatever the library can make machine code of is run as such. */
static void machine_code(void **state) {
    static const char *const patterns[] = {"(&|^)channel_id=([^&]*)",
                                           "^[a-z]+$",
                                           "\\d{4}-\\d{2}",
                                           "(?i)straße",
                                           "a(?=b)",
                                           "(a+)\\1",
                                           "(?:x|y)*z",
                                           "^.*?:(.*)$",
                                           "\\bword\\b",
                                           "[\\p{L}\\p{N}_]+",
                                           "(?<y>\\d+)",
                                           ""};
    for (size_t i = 0; i < CK_ARRAY_COUNT(patterns); i++)
        if (ck_regex_is_machine_code(compiled(*state, patterns[i])) != has_jit()) fail_msg("%s", patterns[i]);
    if (!has_jit()) skip();
}

static uint64_t next(uint64_t *seed) { return ck_mix64(*seed += 0x9E3779B97F4A7C15ULL); }

/* Pieces put together at random: both ways find the same place and the same groups. */
static void both_ways(void **state) {
    sample *s = *state;
    static const char *const pieces[] = {"a",   "b",       "é", ".", "[ab]", "[^a]",   "(a|b)", "(ab)?", "b*",
                                         "a+?", "(?:é|a)", "^", "$", "\\w",  "a{1,2}", "(?=b)", "\\b"};
    static const char *const letters[] = {"a", "b", "é", " ", "1", "\n"};
    uint64_t seed = 3;
    for (int round = 0; round < 1500; round++) {
        ck_arena_mark mark = ck_arena_mark_now(&s->arena);
        char pattern[100] = "", text[100] = "";
        for (uint64_t n = 1 + next(&seed) % 5; n; n--) strcat(pattern, pieces[next(&seed) % CK_ARRAY_COUNT(pieces)]);
        for (uint64_t n = next(&seed) % 20; n; n--) strcat(text, letters[next(&seed) % CK_ARRAY_COUNT(letters)]);
        ck_regex *jit = compiled(s, pattern), *plain = compiled(s, pattern);
        ck_regex_interpret(plain);
        const ck_span *x, *y;
        ck_regex_result got = ck_regex_match(jit, ck_view_of(text), 0, &x);
        if (got != ck_regex_match(plain, ck_view_of(text), 0, &y)) fail_msg("'%s' in '%s'", pattern, text);
        if (got == CK_REGEX_MATCH) assert_memory_equal(x, y, (ck_regex_groups(jit) + 1) * sizeof *x);
        ck_arena_reset_to(&s->arena, mark);
    }
}

/* Given up by the count of steps, not by a clock. */
static void endless_patterns(void **state) {
    sample *s = *state;
    static const char *const patterns[] = {"^(a+)+$", "^(a|aa)+$", "(a*)*(b|!x)", "^(([a-z])+.)+[A-Z]([a-z])+$",
                                           "(.*)*(.*)*[^a!](x|y)"};
    char text[1001];
    memset(text, 'a', 1000);
    text[999] = '!';
    for (size_t i = 0; i < CK_ARRAY_COUNT(patterns); i++) {
        ck_regex *r = compiled(s, patterns[i]);
        const ck_span *spans;
        for (int interpreted = 0; interpreted < 2; interpreted++, ck_regex_interpret(r))
            if (ck_regex_match(r, (ck_view){text, 1000}, 0, &spans) != CK_REGEX_LIMIT)
                fail_msg("%s, interpreted %d", patterns[i], interpreted);
        assert_int_equal(ck_regex_match(r, (ck_view){text, 3}, 0, &spans) == CK_REGEX_LIMIT, 0); /* as good as new */
    }
}

/* A long text needs more stack than machine code has; the interpreter goes on. */
static void long_texts(void **state) {
    sample *s = *state;
    enum { LONG = 20000 };
    char *text = ck_arena_alloc(&s->arena, LONG);
    for (int i = 0; i < LONG; i++) text[i] = "ab"[i % 3 == 0];
    ck_regex *r = compiled(s, "^(a|b)*$");
    const ck_span *spans;
    assert_int_equal(ck_regex_match(r, (ck_view){text, LONG}, 0, &spans), CK_REGEX_MATCH);
    assert_int_equal(spans[0].to, LONG);
}

/* Behind the first batches nothing is allocated: neither for a batch nor for a row is a pattern compiled again. */
static void compiled_once(void **state) {
    sample *s = *state;
    enum { ROWS = 100 };
    static const char *const tests[] = {"(regexp_like t '[0-9]+x')", "(similar_to t '%(b|d)_')", "(~* t 'ABC')",
                                        "(regexp_count t 'a')", "(regexp_like t p)"};
    sample_column(s, "t", "VARCHAR");
    sample_column(s, "p", "VARCHAR");
    const char *cells[2 * ROWS];
    for (int i = 0; i < ROWS; i++) cells[2 * i] = i % 2 ? "123x" : "abcd", cells[2 * i + 1] = "[a-c]+d";
    ck_batch *b = sample_batch(s, ROWS, cells);
    for (size_t i = 0; i < CK_ARRAY_COUNT(tests); i++) {
        ck_expr *e = sample_expr(s, tests[i]);
        ck_program *p = NULL;
        ck_eval *ev = NULL;
        ck_eval_options o = {.proc = &s->proc, .mem = s->mem};
        assert_int_equal(ck_program_compile(&s->arena, &e, 1, &p, &s->err), CK_OK);
        assert_int_equal(ck_eval_new(p, &o, &ev, &s->err), CK_OK);
        for (int batch = 0; batch < 5; batch++) {
            ck_column *c = NULL;
            if (batch == 3) ck_tracked_heap_fail_nth(s->heap, 1);
            if (ck_eval_run(ev, b, &c, &s->err) != CK_OK) fail_msg("%s, batch %d: %s", tests[i], batch, s->err.msg);
            ck_column_unref(&c);
        }
        assert_false(ck_tracked_heap_fired(s->heap));
        ck_tracked_heap_fail_nth(s->heap, 0);
        ck_eval_free(ev);
    }
    ck_batch_unref(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(groups),     SAMPLE_TEST(machine_code),
                                       SAMPLE_TEST(both_ways),  SAMPLE_TEST(endless_patterns),
                                       SAMPLE_TEST(long_texts), SAMPLE_TEST(compiled_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
