#include "base/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void test_fires_at_its_ordinal_only(void **state) {
    (void)state;
    ck_faults f;
    ck_faults_init(&f);
    assert_int_equal(ck_fault_hit(NULL, CK_FAULT_COMMIT_BEFORE), CK_OK);
    ck_faults_arm(&f, CK_FAULT_COMMIT_BEFORE, 3, CK_FAULT_ERROR);
    for (int i = 1; i <= 6; i++) {
        assert_int_equal(ck_fault_hit(&f, CK_FAULT_COMMIT_AFTER), CK_OK);
        assert_int_equal(ck_fault_hit(&f, CK_FAULT_COMMIT_BEFORE), i == 3 ? CK_IO : CK_OK);
    }
    ck_faults_arm(&f, CK_FAULT_COMMIT_BEFORE, 1, CK_FAULT_CRASH); /* counts anew */
    assert_false(f.crashed);
    assert_int_equal(ck_fault_hit(&f, CK_FAULT_COMMIT_BEFORE), CK_CANCELLED);
    assert_true(f.crashed);
}

static void test_parse(void **state) {
    (void)state;
    ck_faults f;
    ck_faults_init(&f);
    assert_int_equal(ck_faults_parse(&f, NULL, NULL), CK_OK);
    assert_int_equal(ck_faults_parse(&f, "", NULL), CK_OK);
    assert_int_equal(ck_faults_parse(&f, "durable.after_fsync,commit.before:7:error,commit.after:2:crash", NULL),
                     CK_OK);
    assert_int_equal(f.fire_at[CK_FAULT_DURABLE_AFTER_FSYNC], 1);
    assert_int_equal(f.action[CK_FAULT_DURABLE_AFTER_FSYNC], CK_FAULT_KILL);
    assert_int_equal(f.fire_at[CK_FAULT_COMMIT_BEFORE], 7);
    assert_int_equal(f.action[CK_FAULT_COMMIT_BEFORE], CK_FAULT_ERROR);
    assert_int_equal(f.fire_at[CK_FAULT_COMMIT_AFTER], 2);
    assert_int_equal(f.action[CK_FAULT_COMMIT_AFTER], CK_FAULT_CRASH);
    assert_int_equal(f.fire_at[CK_FAULT_RESTORE_BEFORE_LOAD], 0);
    assert_int_equal(ck_faults_parse(&f, "restore.before_load:2:kill", NULL), CK_OK);
    assert_int_equal(f.fire_at[CK_FAULT_RESTORE_BEFORE_LOAD], 2);
    assert_int_equal(ck_faults_parse(&f, "restore.after_load:1:stop", NULL), CK_OK);
    assert_int_equal(f.action[CK_FAULT_RESTORE_AFTER_LOAD], CK_FAULT_STOP);
}

static void test_bad_specs_are_named(void **state) {
    (void)state;
    static const char *const bad[] = {"no.such.point",
                                      "commit.before:",
                                      "commit.before:0",
                                      "commit.before:x",
                                      "commit.before:1:no",
                                      "commit.before:1:",
                                      "commit.before:1x",
                                      "commit",
                                      ",",
                                      "commit.before:1,junk",
                                      "commit.before:-1",
                                      "commit.before: 1"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_faults f;
        ck_faults_init(&f);
        ck_error err = CK_ERROR_INIT;
        if (ck_faults_parse(&f, bad[i], &err) != CK_INVALID) fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(err.msg, "CLINK_FAULT"));
    }
}

static void test_every_point_can_be_named(void **state) {
    (void)state;
    for (int p = 0; p < CK_FAULT_COUNT; p++) {
        ck_faults f;
        ck_faults_init(&f);
        char spec[128];
        snprintf(spec, sizeof spec, "%s:5:error", ck_fault_name((ck_fault_point)p));
        assert_int_equal(ck_faults_parse(&f, spec, NULL), CK_OK);
        assert_int_equal(f.fire_at[p], 5);
    }
    assert_string_equal(ck_fault_name(CK_FAULT_COUNT), "unknown");
}

static void test_kill_is_sigkill(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        ck_faults f;
        ck_faults_init(&f);
        ck_faults_arm(&f, CK_FAULT_COMMIT_BEFORE, 1, CK_FAULT_KILL);
        _exit(ck_fault_hit(&f, CK_FAULT_COMMIT_BEFORE) == CK_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fires_at_its_ordinal_only), cmocka_unit_test(test_parse),
        cmocka_unit_test(test_bad_specs_are_named),       cmocka_unit_test(test_every_point_can_be_named),
        cmocka_unit_test(test_kill_is_sigkill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
