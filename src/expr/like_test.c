/* LIKE against a slow matcher that tries everything. */
#include "expr/like.h"

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
                                       SAMPLE_TEST(no_explosion)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
