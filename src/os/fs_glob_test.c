#include "os/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"

static void test_match(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool is;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"*", "", true},
        {"*", "abc", true},
        {"*", ".abc", false},
        {".*", ".abc", true},
        {"\\.*", ".abc", true},
        {"?abc", ".abc", false},
        {"[.]abc", ".abc", false},
        {"*.csv", "a.csv", true},
        {"*.csv", "a.csv.gz", false},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "axxbyy", false},
        {"a**c", "abc", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a?c",
         "a\xc3\xa9"
         "c",
         true}, /* one character, two bytes */
        {"a??c",
         "a\xc3\xa9"
         "c",
         false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[^a-c]x", "bx", false},
        {"[]]x", "]x", true},
        {"[!]]x", "]x", false},
        {"[a-]x", "-x", true},
        {"[\\]]x", "]x", true},
        {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
        {"[a", "[a", true}, /* never closed: a plain character */
        {"[a", "a", false},
        {"a\\*b", "a*b", true},
        {"a\\*b", "axb", false},
        {"a\\", "a\\", true},
        {"\xff*", "\xff\x80\x80", true}, /* bytes that are no UTF-8 */
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++)
        if (ck_fs_match(cases[i].pattern, cases[i].name) != cases[i].is)
            fail_msg("%s against %s", cases[i].pattern, cases[i].name);
}

static void test_many_stars_take_no_exponential_time(void **state) {
    (void)state;
    char name[201], pattern[121] = "";
    memset(name, 'a', 200);
    name[200] = 0;
    for (int i = 0; i < 30; i++) strcat(pattern, "*a");
    strcat(pattern, "*b");
    assert_false(ck_fs_match(pattern, name));
}

static void touch(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void expect(ck_test_proc *t, const char *pattern, const char *joined) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t->proc, CK_MEM_PLAN), 1 << 20);
    const char **paths;
    size_t count;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_fs_glob(&t->proc, pattern, &arena, &paths, &count, &err), CK_OK);
    assert_int_equal(err.msg[0], 0);
    char got[1024] = "";
    for (size_t i = 0; i < count; i++) {
        strcat(got, paths[i]);
        strcat(got, " ");
    }
    assert_string_equal(got, joined);
    ck_arena_destroy(&arena);
}

static void test_glob(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    assert_int_equal(chdir(ck_test_dir(&t)), 0);
    assert_int_equal(ck_fs_mkdirs(&t.proc, "d/a", NULL), CK_OK);
    assert_int_equal(ck_fs_mkdirs(&t.proc, "d/a-b", NULL), CK_OK);
    assert_int_equal(ck_fs_mkdirs(&t.proc, "d/.h", NULL), CK_OK);
    touch("d/a/1.csv"), touch("d/a/2.csv"), touch("d/a/x.json"), touch("d/a-b/1.csv"), touch("d/.h/1.csv");
    touch("d/plain");
    assert_int_equal(symlink("nowhere", "d/dangling"), 0);
    expect(&t, "d/a/*.csv", "d/a/1.csv d/a/2.csv ");
    expect(&t, "d/*/1.csv", "d/a-b/1.csv d/a/1.csv "); /* sorted as whole paths */
    expect(&t, "d/*/[2-9].csv", "d/a/2.csv ");
    expect(&t, "d/.*/*", "d/.h/1.csv ");
    expect(&t, "d/*", "d/a d/a-b d/plain ");
    expect(&t, "d/plain/*", "");
    expect(&t, "d/*/nothing", "");
    expect(&t, "none/*", "");
    expect(&t, "d/none", "d/none "); /* no wildcard: itself */
    expect(&t, "./d/a/x.*", "./d/a/x.json ");
    expect(&t, "d//a///x.*", "d/a/x.json ");
    char pattern[256], wanted[256];
    snprintf(pattern, sizeof pattern, "%s/?/a/x.json", t.dir);
    snprintf(wanted, sizeof wanted, "%s/d/a/x.json ", t.dir);
    expect(&t, pattern, wanted);
    assert_int_equal(chdir("/"), 0);
    ck_test_proc_destroy(&t);
}

static void test_glob_errors(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/*/*", ck_test_dir(&t));
    char *longest = malloc(5000);
    memset(longest, '*', 4999);
    longest[4999] = 0;
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
    const char **paths;
    size_t count;
    assert_int_equal(ck_fs_glob(&t.proc, "", &arena, &paths, &count, NULL), CK_INVALID);
    assert_int_equal(ck_fs_glob(&t.proc, longest, &arena, &paths, &count, NULL), CK_INVALID);
    free(longest);
    ck_arena_destroy(&arena);
    char dir[256];
    for (int i = 0; i < 40; i++) {
        snprintf(dir, sizeof dir, "%s/%02d/%0100d", t.dir, i, i);
        assert_int_equal(ck_fs_mkdirs(&t.proc, dir, NULL), CK_OK);
    }
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
        ck_status s = ck_fs_glob(&t.proc, pattern, &arena, &paths, &count, NULL);
        ck_arena_destroy(&arena);
        if (!ck_tracked_heap_fired(t.heap)) {
            assert_int_equal(s, CK_OK);
            assert_int_equal(count, 40);
            assert_true(n > 2);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
        assert_int_equal(count, 0);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_many_stars_take_no_exponential_time),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_glob_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
