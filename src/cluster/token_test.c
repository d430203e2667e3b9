/* Files of tokens, and what each of them may. */
#include "cluster/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/durable.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)
#define A32      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B32      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int setup(void **state) {
    static ck_test_proc t;
    ck_test_proc_init(&t);
    *state = &t;
    return 0;
}

static int teardown(void **state) {
    ck_test_proc_destroy(*state);
    return 0;
}

static const char *written(ck_test_proc *t, const char *text) {
    static char path[120];
    snprintf(path, sizeof path, "%s/tokens", ck_test_dir(t));
    OK(ck_durable_replace_bytes(&t->proc, path, ck_view_of(text), NULL));
    return path;
}

static void each_line_is_a_token_with_its_roles(void **state) {
    ck_test_proc *t = *state;
    ck_tokens tokens;
    ck_token first;
    const char *path =
        written(t, "# who may what\n\n  read " A32 "\t# the board\nworker,submit\t" B32 "\r\nall c._~+/=-" B32);
    OK(ck_tokens_read(&t->proc, path, &tokens, NULL));
    assert_int_equal(tokens.count, 3);
    assert_int_equal(ck_tokens_roles(&tokens, CK_VIEW(A32)), CK_ROLE_READ);
    assert_int_equal(ck_tokens_roles(&tokens, CK_VIEW(B32)), CK_ROLE_READ | CK_ROLE_SUBMIT | CK_ROLE_WORKER);
    assert_int_equal(ck_tokens_roles(&tokens, CK_VIEW("c._~+/=-" B32)), CK_ROLE_ALL);
    static const char *const strangers[] = {"", "a", A32 "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ("c" B32)};
    for (size_t i = 0; i < CK_ARRAY_COUNT(strangers); i++)
        assert_int_equal(ck_tokens_roles(&tokens, ck_view_of(strangers[i])), 0);
    assert_int_equal(ck_tokens_roles(&tokens, (ck_view){A32 "\0", 33}), 0);
    OK(ck_token_find(&t->proc, path, 1, &first, NULL)); /* who shows one out of it shows the first */
    assert_string_equal(first.text, A32);
}

static void a_coordinators_own_file_is_none_of_the_operator(void **state) {
    ck_test_proc *t = *state;
    ck_tokens tokens;
    ck_token made, found;
    ck_token_make(&t->proc, &made);
    const char *path = written(t, "");
    OK(ck_tokens_read(&t->proc, path, &tokens, NULL));
    assert_int_equal(tokens.count, 0);
    OK(ck_token_publish(&t->proc, path, 1, &made, NULL));
    OK(ck_tokens_read(&t->proc, path, &tokens, NULL));
    assert_int_equal(tokens.count, 0);
    OK(ck_token_find(&t->proc, path, 1, &found, NULL));
    assert_string_equal(found.text, made.text);
    OK(t->proc.fs->unlink(t->proc.fs, path, NULL));
    OK(ck_tokens_read(&t->proc, path, &tokens, NULL));
    assert_int_equal(tokens.count, 0);
}

static void what_is_wrong_is_said_without_the_token(void **state) {
    ck_test_proc *t = *state;
    static const char *const bad[][2] = {
        {"read\n", ":1: a token has 32 to 128"},
        {"read " A32 "\nread short\n", ":2: a token has 32"},
        {"read " A32 "!\n", ":1: a token has 32"},
        {"read " A32 " " A32 "\n", ":1: a token has 32"},
        {"boss " A32 "\n", ":1: a line begins with read"},
        {"read,,submit " A32 "\n", ":1: a line begins with read"},
        {"read, " A32 "\n", ":1: a line begins with read"},
        {"read " A32 "\n" B32 "\n", ":2: a line begins with read"},
        {"read " A32 "\nall " A32 "\n", ":2: the token of an earlier line"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_tokens tokens;
        ck_error err = CK_ERROR_INIT;
        const char *path = written(t, bad[i][0]);
        assert_int_equal(ck_tokens_read(&t->proc, path, &tokens, &err), CK_INVALID);
        if (!strstr(err.msg, bad[i][1])) fail_msg("\"%s\" has no \"%s\"", err.msg, bad[i][1]);
        assert_null(strstr(err.msg, "aaaa"));
        assert_null(strstr(err.msg, "bbbb"));
    }
}

static void there_are_so_many_at_most(void **state) {
    ck_test_proc *t = *state;
    static char text[(CK_TOKENS_MAX + 1) * 60];
    for (int most = CK_TOKENS_MAX; most <= CK_TOKENS_MAX + 1; most++) {
        ck_tokens tokens;
        size_t n = 0;
        for (int i = 0; i < most; i++) n += (size_t)snprintf(text + n, sizeof text - n, "read " A32 "%d\n", i);
        assert_int_equal(ck_tokens_read(&t->proc, written(t, text), &tokens, NULL),
                         most > CK_TOKENS_MAX ? CK_FULL : CK_OK);
    }
    char longest[CK_TOKEN_CHARS_MAX + 20] = "read ";
    for (size_t n = CK_TOKEN_CHARS_MAX; n <= CK_TOKEN_CHARS_MAX + 1; n++) {
        ck_tokens tokens;
        memset(longest + 5, 'x', n);
        longest[5 + n] = 0;
        assert_int_equal(ck_tokens_read(&t->proc, written(t, longest), &tokens, NULL),
                         n > CK_TOKEN_CHARS_MAX ? CK_INVALID : CK_OK);
    }
}

static void every_message_wants_a_role(void **state) {
    (void)state;
    static const struct {
        ck_message m;
        unsigned role;
        const char *what;
    } wanted[] = {
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_LIST}, CK_ROLE_READ, "list"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_STATUS}, CK_ROLE_READ, "status"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_WAIT}, CK_ROLE_READ, "waiting for a job"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_CANCEL}, CK_ROLE_SUBMIT, "cancel"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_RESUME}, CK_ROLE_SUBMIT, "resume"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_DROP}, CK_ROLE_SUBMIT, "drop"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_SAVEPOINT}, CK_ROLE_SUBMIT, "savepoint"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = CK_COMMAND_STOP}, CK_ROLE_SUBMIT, "stop"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = 0}, CK_ROLE_SUBMIT, "this command"},
        {{.kind = CK_MSG_COMMAND, .as.command.command = UINT64_MAX}, CK_ROLE_SUBMIT, "this command"},
        {{.kind = CK_MSG_SUBMIT}, CK_ROLE_SUBMIT, "submit"},
        {{.kind = CK_MSG_OFFER_PLUGIN}, CK_ROLE_SUBMIT, "submit"}, /* it may be there already */
        {{.kind = CK_MSG_UPLOAD_PART}, CK_ROLE_PLUGIN, "uploading a plugin"},
        {{.kind = CK_MSG_WANT_PLUGIN}, CK_ROLE_WORKER, "running subtasks"},
        {{.kind = CK_MSG_REGISTER}, CK_ROLE_WORKER, "running subtasks"},
        {{.kind = CK_MSG_HEARTBEAT}, CK_ROLE_WORKER, "running subtasks"},
        {{.kind = CK_MSG_ENDED}, CK_ROLE_WORKER, "running subtasks"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(wanted); i++) {
        unsigned role;
        const char *what, *name = ck_role_wanted(&wanted[i].m, &role, &what);
        assert_int_equal(role, wanted[i].role);
        assert_string_equal(what, wanted[i].what);
        assert_true(ck_roles_of(ck_view_of(name)) & role);
        assert_string_equal(ck_roles_text(ck_roles_of(ck_view_of(name))), name);
    }
    assert_string_equal(ck_roles_text(CK_ROLE_ALL), "all");
    assert_string_equal(ck_roles_text(ck_roles_of(CK_VIEW("read,worker"))), "read and worker");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_line_is_a_token_with_its_roles),
        T(a_coordinators_own_file_is_none_of_the_operator),
        T(what_is_wrong_is_said_without_the_token),
        T(there_are_so_many_at_most),
        T(every_message_wants_a_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
