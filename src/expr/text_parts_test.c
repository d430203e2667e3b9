/* UTF-8, intervals as text, date patterns, literals required by patterns, JSON paths, case. */
#include "base/hash.h"
#include "expr/case_map.h"
#include "expr/datefmt.h"
#include "expr/find.h"
#include "expr/interval_text.h"
#include "expr/json_path.h"
#include "expr/regex_int.h"
#include "expr/sample_int.h"
#include "expr/time_int.h"
#include "expr/utf8.h"

/* The search as it is built where there are no vectors. */
#define K(name) name##_plain
#define KERNEL
#define FIND_PLAIN
#include "expr/find_impl.inc"

static void characters(void **state) {
    (void)state;
    static const char text[] = "a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80"
                               "bcdefghijklmnop\xC3\xBC";
    ck_view v = {text, sizeof text - 1};
    assert_true(ck_utf8_valid(v));
    assert_false(ck_utf8_is_ascii(v));
    assert_int_equal(ck_utf8_count(v), 20);
    size_t at = 0;
    for (size_t chars = 0; chars <= 21; chars++) {
        assert_int_equal(ck_utf8_prefix(v, chars), at);
        if (at == v.n) continue;
        size_t n;
        char back[4];
        uint32_t code = ck_utf8_decode(v.p + at, v.n - at, &n);
        assert_int_equal(ck_utf8_encode(code, back), n);
        assert_memory_equal(back, v.p + at, n);
        at += n;
    }
    static const char *const bad[] = {
        "\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "abcdefgh\xFF"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) assert_false(ck_utf8_valid(ck_view_of(bad[i])));
    char p[4];
    assert_int_equal(ck_utf8_encode(0xD800, p), 0);
    assert_int_equal(ck_utf8_encode(0x110000, p), 0);
}

/* Every form against the C library's search, over every length, with bytes of two kinds only. */
static void searches(void **state) {
    (void)state;
    uint64_t seed = 9;
    const ck_kernels *simd = ck_kernels_for(ck_cpu_detect());
    for (size_t n = 0; n < 200; n++)
        for (int k = 0; k < 100; k++) {
            char *text = malloc(n + 1), part[48]; /* of exactly its size, for the sanitizer */
            size_t m = 1 + ck_mix64(seed++) % (k % 3 ? 20 : 40);
            for (size_t i = 0; i < n; i++) text[i] = "ab"[ck_mix64(seed++) % 5 == 0];
            for (size_t i = 0; i < m; i++) part[i] = "ab"[ck_mix64(seed++) % 5 == 0];
            if (n > m && k % 2) memcpy(part, text + ck_mix64(seed++) % (n - m), m);
            const char *want = n ? memmem(text, n, part, m) : NULL;
            assert_ptr_equal(ck_find((ck_view){text, n}, (ck_view){part, m}), want);
            assert_ptr_equal(simd->find((ck_view){text, n}, (ck_view){part, m}), want);
            assert_ptr_equal(find_plain((ck_view){text, n}, (ck_view){part, m}), want);
            size_t index = ck_mix64(seed++) % 8, from = 0, left = index;
            ck_view piece;
            while (left && from < n) left -= text[from++] == 'b';
            bool found = ck_find_piece((ck_view){text, n}, 'b', index, &piece);
            assert_int_equal(found, left == 0);
            size_t to = from;
            while (to < n && text[to] != 'b') to++;
            if (found) assert_true(piece.p == text + from && piece.n == to - from);
            free(text);
        }
}

static void intervals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"1 02:03:04.5", CK_DAY_US + 2 * CK_HOUR_US + 3 * CK_MINUTE_US + 4500000},
                {"02:03", 2 * CK_HOUR_US + 3 * CK_MINUTE_US},
                {"-1 day", -CK_DAY_US},
                {"2 hours 30 minutes", 150 * CK_MINUTE_US},
                {"1.5 seconds", 1500000},
                {"1 week -1 day", 6 * CK_DAY_US},
                {"-0 00:00:00.000001", -1}};
    int64_t v;
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++) {
        assert_true(ck_parse_interval(ck_view_of(good[i].text), &v));
        assert_int_equal(v, good[i].us);
    }
    static const char *const bad[] = {"",           "5", "1 day 2", "01:60", "1 fortnight", "99999999999999999 days",
                                      "1 02:03:04x"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) assert_false(ck_parse_interval(ck_view_of(bad[i]), &v));
    assert_true(ck_parse_months(CK_VIEW("1-02"), &v) && v == 14);
    assert_true(ck_parse_months(CK_VIEW("-2 years 1 month"), &v) && v == -25);
    assert_false(ck_parse_months(CK_VIEW("1-12"), &v));
    assert_false(ck_parse_months(CK_VIEW("1 day"), &v));
}

/* What a pattern prints it reads back. */
static void date_patterns(void **state) {
    sample *s = *state;
    static const char *const patterns[] = {"yyyy-MM-dd HH:mm:ss.SSSSSS", "yyyyMMddHHmmssSSSSSS",
                                           "dd/MMM/yyyy hh:mm:ss.SSSSSS a", "EEEE, d MMMM yyyy 'at' H:m:s.SSSSSS",
                                           "yyyy DDD HH:mm:ss.SSSSSS"};
    uint64_t seed = 5;
    for (size_t i = 0; i < CK_ARRAY_COUNT(patterns); i++) {
        const ck_datefmt *f;
        assert_int_equal(ck_datefmt_compile(&s->arena, ck_view_of(patterns[i]), &f, &s->err), CK_OK);
        for (int k = 0; k < 2000; k++) {
            int64_t t = (int64_t)(ck_mix64(seed++) % (uint64_t)(CK_TIME_MAX_US - CK_TIME_MIN_US)) + CK_TIME_MIN_US,
                    back;
            char text[256];
            size_t n = ck_datefmt_print(f, t, text);
            assert_true(n <= ck_datefmt_bytes_max(f));
            if (!ck_datefmt_parse(f, (ck_view){text, n}, &back) || back != t)
                fail_msg("%s: %.*s comes back as %lld, not %lld", patterns[i], (int)n, text, (long long)back,
                         (long long)t);
        }
    }
}

static void required_literals(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *literal;
    } cases[] = {{"(&|^)channel_id=([^&]*)", "channel_id="},
                 {"abc", "abc"},
                 {"abcd*", "abc"},
                 {"ab", ""},
                 {"abc|def", ""},
                 {"x?abc+", ""},
                 {"abc.def", "abc"},
                 {"(?i)abc", ""},
                 {"\\d+hello", "hello"},
                 {"\\x41bcdef", ""},
                 {"[abc]defg", "defg"},
                 {"[[:alpha:]]defg", ""},
                 {"\\Qa.b\\Ecde", ""},
                 {"foo{2}bar", "bar"},
                 {"^https://", "https://"}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_view got = ck_regex_required_literal(ck_view_of(cases[i].pattern));
        if (!ck_view_is(got, cases[i].literal)) fail_msg("%s requires '%.*s'", cases[i].pattern, (int)got.n, got.p);
    }
}

static void json_paths(void **state) {
    sample *s = *state;
    const ck_json_path *p;
    static const char *const good[] = {"$",         "$.a",          "lax $.a.b[0]", "strict $[*].x",
                                       "$.\"a b\"", "$['x'][last]", " $.*"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(good); i++)
        assert_int_equal(ck_json_path_compile(&s->arena, ck_view_of(good[i]), &p, &s->err), CK_OK);
    static const char *const bad[] = {"", "a", "$.", "$[", "$[x]", "$.a b", "$..a", "$[1", "$.\"a"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        assert_int_equal(ck_json_path_compile(&s->arena, ck_view_of(bad[i]), &p, &s->err), CK_INVALID);
}

static void letters(void **state) {
    sample *s = *state;
    ck_case_map *lower;
    ck_view out;
    assert_int_equal(ck_case_map_new(&s->arena, CK_CASE_LOWER, &lower, &s->err), CK_OK);
    assert_int_equal(ck_case_map_view(lower, &s->arena, CK_VIEW("\xC3\x84PFEL \xD0\x96\xC4\xB0"), &out, &s->err),
                     CK_OK);
    assert_memory_equal(out.p, "\xC3\xA4pfel \xD0\xB6", 9);
    char all[256], got[256];
    for (int i = 0; i < 256; i++) all[i] = (char)i;
    ck_ascii_case(CK_CASE_UPPER, all, 256, got);
    for (int i = 0; i < 256; i++) assert_int_equal((unsigned char)got[i], i >= 'a' && i <= 'z' ? i - 32 : i);
    for (uint64_t i = 0; i < 256; i++)
        for (int mode = CK_CASE_LOWER; mode <= CK_CASE_UPPER; mode++) {
            char want;
            ck_ascii_case((ck_case)mode, &all[i], 1, &want);
            uint64_t w = ck_ascii_case_word((ck_case)mode, i * 0x0101010101010101ULL);
            assert_true(w == (uint64_t)(unsigned char)want * 0x0101010101010101ULL);
        }
    ck_ascii_case(CK_CASE_LOWER, all, 256, got);
    for (int i = 0; i < 256; i++) assert_int_equal((unsigned char)got[i], i >= 'A' && i <= 'Z' ? i + 32 : i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(characters), SAMPLE_TEST(intervals), SAMPLE_TEST(date_patterns), SAMPLE_TEST(required_literals),
        SAMPLE_TEST(json_paths), SAMPLE_TEST(letters),   SAMPLE_TEST(searches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
