#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void test_fail_fills_the_error(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(err.place.byte_offset, -1);
    assert_int_equal(err.place.subtask, -1);
    assert_int_equal(ck_fail(&err, CK_DATA, "row %d of %s", 7, "orders"), CK_DATA);
    assert_int_equal(err.status, CK_DATA);
    assert_string_equal(err.msg, "row 7 of orders");
    assert_true(err.fatal && !err.retriable);
    assert_int_equal(ck_fail(&err, CK_FULL, "x"), CK_FULL);
    assert_false(err.fatal);
    assert_int_equal(ck_fail(NULL, CK_IO, "%d", 1), CK_IO); /* not wanted */
    ck_error_reset(&err);
    assert_int_equal(err.status, CK_OK);
    ck_error_reset(NULL);
}

static void test_errno_maps_to_status_and_text(void **state) {
    (void)state;
    static const struct {
        int errnum;
        ck_status status;
        bool retriable;
    } cases[] = {
        {ENOENT, CK_NOTFOUND, false}, {EEXIST, CK_EXISTS, false},  {ENOMEM, CK_NOMEM, false},
        {ENOSPC, CK_IO, true},        {EIO, CK_IO, true},          {EACCES, CK_IO, false},
        {ECONNREFUSED, CK_IO, true},  {EHOSTUNREACH, CK_IO, true}, {EISDIR, CK_IO, false},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_fail_errno(&err, cases[i].errnum, "opening %s", "f"), cases[i].status);
        assert_int_equal(err.retriable, cases[i].retriable);
        assert_memory_equal(err.msg, "opening f: ", 11);
        assert_true(strlen(err.msg) > 11);
        assert_int_equal(ck_fail_errno(NULL, cases[i].errnum, "x"), cases[i].status);
    }
}

static void test_long_messages_are_cut_with_an_ellipsis(void **state) {
    (void)state;
    char longest[3000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    ck_error err = CK_ERROR_INIT;
    ck_fail(&err, CK_IO, "%s", longest);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_string_equal(err.msg + sizeof err.msg - 4, "...");
    ck_fail_errno(&err, EIO, "%s", longest);
    assert_string_equal(err.msg + sizeof err.msg - 4, "...");
    ck_fail(&err, CK_IO, "short");
    ck_error_prefix(&err, "%s", longest);
    assert_string_equal(err.msg + sizeof err.msg - 4, "...");
    longest[sizeof err.msg - 1] = 0; /* fits to the last byte */
    ck_fail(&err, CK_IO, "%s", longest);
    assert_int_equal(err.msg[sizeof err.msg - 2], 'a');
}

static void test_prefix(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    ck_fail(&err, CK_CORRUPT, "bad magic");
    assert_int_equal(ck_error_prefix(&err, "reading %s: ", "a.snap"), CK_CORRUPT);
    assert_string_equal(err.msg, "reading a.snap: bad magic");
    assert_int_equal(ck_error_prefix(NULL, "x"), CK_IO);
}

static void test_every_status_has_a_name(void **state) {
    (void)state;
    for (int s = CK_OK; s <= CK_CANCELLED; s++) {
        assert_string_not_equal(ck_status_name((ck_status)s), "unknown");
        for (int t = CK_OK; t < s; t++)
            assert_string_not_equal(ck_status_name((ck_status)s), ck_status_name((ck_status)t));
    }
    assert_string_equal(ck_status_name((ck_status)99), "unknown");
}

static unsigned evaluated;
static ck_status give(ck_status s) {
    evaluated++;
    return s;
}
static ck_status try_it(ck_status s) {
    CK_TRY(give(s));
    return CK_EXISTS;
}
static void test_try_evaluates_once(void **state) {
    (void)state;
    assert_int_equal(try_it(CK_OK), CK_EXISTS);
    assert_int_equal(try_it(CK_FULL), CK_FULL);
    assert_int_equal(evaluated, 2);
}

static void test_a_failed_assertion_ends_the_process(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        signal(SIGABRT, SIG_DFL);
        CK_ASSERT(child != 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_a_message_is_text(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    ck_fail(&err, CK_DATA, "%s",
            "a\xff\x01\x1b[31m \xc2\x9b \xe2\x82\xac \xf0\x9f\x99\x82\t\nb\xed\xa0\x80\xc0\x80\xe2\x82");
    assert_string_equal(err.msg, "a...[31m .. \xe2\x82\xac \xf0\x9f\x99\x82\t\nb.......");
    ck_error_prefix(&err, "x\x7f: ");
    assert_string_equal(err.msg, "x.: a...[31m .. \xe2\x82\xac \xf0\x9f\x99\x82\t\nb.......");
    char text[2 * sizeof err.msg];
    for (size_t i = 0; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
    ck_fail(&err, CK_DATA, "%s", text); /* cut in the middle of a character */
    assert_true(strlen(err.msg) == sizeof err.msg - 1 && strstr(err.msg, "...") && !strstr(err.msg, "\x82."));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_fills_the_error),
        cmocka_unit_test(test_errno_maps_to_status_and_text),
        cmocka_unit_test(test_long_messages_are_cut_with_an_ellipsis),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_a_message_is_text),
        cmocka_unit_test(test_every_status_has_a_name),
        cmocka_unit_test(test_try_evaluates_once),
        cmocka_unit_test(test_a_failed_assertion_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
