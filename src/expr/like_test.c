/* LIKE against a slow matcher that tries everything: text by text, and over columns with every table of kernels. */
#include "expr/like_int.h"

#include "expr/kernels.h"
#include "expr/sample_int.h"

static bool matches(sample *s, const char *pattern, const char *escape, const char *text) {
    const ck_like *l;
    assert_int_equal(ck_like_compile(&s->arena, ck_view_of(pattern), ck_view_of(escape), &l, &s->err), CK_OK);
    return ck_like_matches(l, ck_view_of(text));
}

static void shapes(void **state) {
    sample *s = *state;
    static const struct {
        const char *pattern, *text;
        bool hit;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"%", "", true},
        {"%%", "abc", true},
        {"a", "a", true},
        {"a", "ab", false},
        {"ab%", "abc", true},
        {"ab%", "a", false},
        {"%bc", "abc", true},
        {"%bc", "bcd", false},
        {"%b%", "abc", true},
        {"%b%", "ac", false},
        {"a%a", "a", false},
        {"a%a", "aa", true},
        {"a%b%c", "a-b-c", true},
        {"a%b%c", "a-c-b", false},
        {"_", "", false},
        {"_", "é", true},
        {"__", "é", false},
        {"%_", "", false},
        {"%_", "日本", true},
        {"_本", "日本", true},
        {"%本_", "日本語", true},
        {"%本__", "日本語", false},
        {"a\\%", "a%", true},
        {"a\\%", "ab", false},
        {"a\\_c", "a_c", true},
        {"a\\_c", "abc", false},
        {"%aab%", "aaab", true},
        {"%ab_d", "abcdabed", true},
        {"_%_", "a", false},
        {"_%_", "ab", true},
        {"%a_%a", "aba", true},
        {"%a_%a", "aa", false},
        {"a%bc%bc", "abc", false},
        {"é%", "été", true},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++)
        if (matches(s, cases[i].pattern, "\\", cases[i].text) != cases[i].hit)
            fail_msg("'%s' LIKE '%s'", cases[i].text, cases[i].pattern);
    assert_true(matches(s, "a#%#_", "#", "a%_"));
    assert_true(matches(s, "a\\b", "", "a\\b"));
    assert_true(matches(s, "aéé%éé", "é", "aé%é"));
}

static void refusals(void **state) {
    sample *s = *state;
    const ck_like *l;
    assert_int_equal(ck_like_compile(&s->arena, CK_VIEW("ab\\"), CK_VIEW("\\"), &l, &s->err), CK_INVALID);
    assert_string_equal(s->err.msg, "the LIKE pattern 'ab\\' ends with its escape character");
    assert_int_equal(ck_like_compile(&s->arena, CK_VIEW("a"), CK_VIEW("xy"), &l, &s->err), CK_INVALID);
}

static bool slow(const char *p, const char *t) {
    if (!*p) return !*t;
    if (*p == '%') return slow(p + 1, t) || (*t && slow(p, t + 1));
    return *t && (*p == '_' || *p == *t) && slow(p + 1, t + 1);
}

static void random_patterns(void **state) {
    sample *s = *state;
    srand(7);
    for (int round = 0; round < 20000; round++) {
        char pattern[10], text[12];
        int np = rand() % 9, nt = rand() % 11;
        for (int i = 0; i < np; i++) pattern[i] = "ab%_a%"[rand() % 6];
        for (int i = 0; i < nt; i++) text[i] = "ab"[rand() % 2];
        pattern[np] = text[nt] = '\0';
        ck_arena_mark m = ck_arena_mark_now(&s->arena);
        if (matches(s, pattern, "", text) != slow(pattern, text)) fail_msg("'%s' LIKE '%s'", text, pattern);
        ck_arena_reset_to(&s->arena, m);
    }
}

/* ---- columns ---- */

enum { ROWS = 150, TEXT_BYTES_MAX = 160 };

/* Texts of all lengths around those of a view and of a vector, some with `part` at a random place. */
static uint32_t random_text(char *text, const char *part) {
    uint32_t n = (uint32_t)rand() % (rand() % 2 ? 20 : 130), m = (uint32_t)strlen(part);
    for (uint32_t i = 0; i < n; i++) text[i] = "abcd"[rand() % (rand() % 8 ? 2 : 4)];
    if (rand() % 2 && n >= m) {
        uint32_t at = rand() % 3 ? (uint32_t)rand() % (n - m + 1) : rand() % 2 ? 0 : n - m;
        memcpy(text + at, part, m);
    }
    text[n] = '\0';
    return n;
}

static void check_rows(const ck_kernels *k, const ck_like *l, const ck_column *c, const bool *want) {
    uint16_t sel[ROWS], out[ROWS];
    uint64_t bits[(ROWS + 63) / 64];
    uint32_t n = 0, at = 0;
    k->like_bits[l->shape](bits, l, c, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(ck_bit_get(bits, i), want[i]);
        assert_int_equal(k->like_matches(l, ck_column_str(c, i)), want[i]);
        if (rand() % 3) sel[n++] = (uint16_t)i;
    }
    uint32_t kept = k->like_rows[l->shape](out, l, c, sel, n);
    for (uint32_t i = 0; i < n; i++)
        if (want[sel[i]]) assert_int_equal(out[at++], sel[i]);
    assert_int_equal(kept, at);
    assert_int_equal(k->like_rows[l->shape](sel, l, c, sel, n), at); /* in place */
    assert_memory_equal(sel, out, at * sizeof *sel);
    kept = k->like_rows[l->shape](out, l, c, NULL, ROWS), at = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        if (want[i]) assert_int_equal(out[at++], i);
    assert_int_equal(kept, at);
}

static void columns_of_texts(void **state) {
    sample *s = *state;
    static const char *const around[] = {"%s", "%s%%", "%%%s", "%%%s%%", "%s%%%s", "%%%s%%%s%%", "_%%%s%%", "%%%s_"};
    const ck_kernels *tables[] = {&ck_kernels_base, ck_kernels_for(ck_cpu_detect())};
    srand(11);
    for (int round = 0; round < 300; round++) {
        char part[40], pattern[100], text[TEXT_BYTES_MAX];
        uint32_t m = 1 + (uint32_t)rand() % (rand() % 4 ? 5 : 36);
        for (uint32_t i = 0; i < m; i++) part[i] = "abc"[rand() % (rand() % 6 ? 2 : 3)];
        part[m] = '\0';
        size_t shape = (size_t)rand() % CK_ARRAY_COUNT(around);
        snprintf(pattern, sizeof pattern, around[shape], part, part);
        bool want[ROWS];
        ck_column_builder b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_VARCHAR), ROWS), CK_OK);
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t n = random_text(text, part);
            want[i] = slow(pattern, text);
            assert_int_equal(ck_build_str(&b, text, n), CK_OK);
        }
        ck_column *c = ck_column_builder_finish(&b);
        ck_column_builder_destroy(&b);
        ck_arena_mark mark = ck_arena_mark_now(&s->arena);
        const ck_like *l;
        assert_int_equal(ck_like_compile(&s->arena, ck_view_of(pattern), CK_VIEW(""), &l, &s->err), CK_OK);
        static const ck_like_shape shapes_of[] = {CK_LIKE_EXACT, CK_LIKE_PREFIX, CK_LIKE_SUFFIX, CK_LIKE_CONTAINS};
        assert_int_equal(l->shape, shape < CK_ARRAY_COUNT(shapes_of) ? shapes_of[shape] : CK_LIKE_GENERAL);
        for (size_t t = 0; t < CK_ARRAY_COUNT(tables); t++) check_rows(tables[t], l, c, want);
        ck_arena_reset_to(&s->arena, mark);
        ck_column_unref(&c);
    }
}

/* Time is bounded by text times pattern, whatever the wildcards. */
static void no_explosion(void **state) {
    sample *s = *state;
    char *text = ck_arena_alloc(&s->arena, 20001), pattern[202];
    memset(text, 'a', 20000);
    text[20000] = '\0';
    for (int i = 0; i < 200; i += 2) memcpy(pattern + i, "%_", 2);
    memcpy(pattern + 198, "b", 2);
    assert_false(matches(s, pattern, "", text));
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(shapes), SAMPLE_TEST(refusals), SAMPLE_TEST(random_patterns),
                                       SAMPLE_TEST(columns_of_texts), SAMPLE_TEST(no_explosion)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
