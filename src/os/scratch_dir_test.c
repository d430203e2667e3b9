/* Folders of a process's own: made, locked, removed; what a dead process left goes, what a living one has stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/scratch_dir.h"

static ck_budget budget;
static ck_mem mem;
static char dir[64];

static int setup(void **state) {
    (void)state;
    ck_budget_init(&budget, ck_heap_system(), 0);
    mem = (ck_mem){&budget, CK_MEM_PLAN};
    strcpy(dir, "/tmp/clink-scratch-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    assert_int_equal(ck_budget_total(&budget), 0);
    return rmdir(dir); /* nothing is left in it */
}

static ck_scratch_dir *make(void) {
    ck_scratch_dir *s;
    ck_error err = CK_ERROR_INIT;
    if (ck_scratch_dir_new(mem, dir, "clink-test", &s, &err) != CK_OK) fail_msg("%s", err.msg);
    return s;
}

static bool there(const char *path) { return access(path, F_OK) == 0; }

static void fill(const char *path) {
    char name[256];
    (void)snprintf(name, sizeof name, "%s/sub", path);
    assert_int_equal(mkdir(name, 0700), 0);
    (void)snprintf(name, sizeof name, "%s/sub/file", path);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    (void)fclose(f);
    (void)snprintf(name, sizeof name, "%s/link", path);
    assert_int_equal(symlink("/tmp", name), 0); /* removed, not followed */
}

static void it_goes_with_its_owner(void **state) {
    (void)state;
    ck_scratch_dir *a = make(), *b = make();
    assert_string_not_equal(ck_scratch_dir_path(a), ck_scratch_dir_path(b));
    fill(ck_scratch_dir_path(a));
    assert_true(there(ck_scratch_dir_path(b))); /* a living owner's */
    char was[256];
    (void)snprintf(was, sizeof was, "%s", ck_scratch_dir_path(a));
    ck_scratch_dir_free(a);
    assert_false(there(was));
    ck_scratch_dir_free(b);
    assert_true(there("/tmp"));
}

static void what_a_dead_process_left_goes(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        fill(ck_scratch_dir_path(make()));
        _exit(0); /* as after kill -9: nothing is closed */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    ck_scratch_dir *s = make();
    ck_scratch_dir_free(s); /* teardown sees that nothing is left */
}

static void a_folder_that_will_not_do_is_named(void **state) {
    (void)state;
    char file[96], below[128];
    (void)snprintf(file, sizeof file, "%s/plain", dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    (void)fclose(f);
    (void)snprintf(below, sizeof below, "%s/x", file);
    ck_scratch_dir *s;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_scratch_dir_new(mem, below, "clink-test", &s, &err), CK_IO);
    assert_non_null(strstr(err.msg, below));
    assert_int_equal(ck_scratch_dir_new(mem, file, "clink-test", &s, &err), CK_IO);
    assert_non_null(strstr(err.msg, file));
    assert_int_equal(unlink(file), 0);
}

/* Who looks for what the dead left may look at any moment of another's making one. */
static void those_made_at_once_stay(void **state) {
    (void)state;
    enum { PROCESSES = 4, ROUNDS = 400 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        if ((children[i] = fork()) != 0) continue;
        for (int round = 0; round < ROUNDS; round++) {
            ck_scratch_dir *s;
            char inside[200];
            if (ck_scratch_dir_new(mem, dir, "clink-test", &s, NULL) != CK_OK) _exit(1);
            (void)snprintf(inside, sizeof inside, "%s/db", ck_scratch_dir_path(s));
            if (mkdir(inside, 0700) != 0) _exit(2);
            ck_scratch_dir_free(s);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_goes_with_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_dead_process_left_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(those_made_at_once_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_will_not_do_is_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
