/* Checkpoints of whole jobs on a pool of threads and the real disk: going on at another parallelism, savepoints, what a
 * directory refuses. */
#include "kit.h"

static ck_checkpoint_config checkpoints_of(fixture *f) {
    return (ck_checkpoint_config){.dir = f->checkpoints,
                                  .interval_us = 3000,
                                  .timeout_us = 60000000,
                                  .final_timeout_us = 60000000,
                                  .retained = 2};
}

static ck_job *started(fixture *f, uint32_t parallelism, const ck_checkpoint_config *c) {
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    ck_job_config cfg = {.checkpoint = *c};
    if (start(f, parallelism, &cfg, &j, &err) != CK_OK) fail_msg("%s", err.msg);
    return j;
}

static ck_status refused(fixture *f, const ck_job_config *cfg, ck_error *err) {
    ck_job *j;
    *err = CK_ERROR_INIT;
    ck_status s = start(f, 2, cfg, &j, err);
    if (s == CK_OK) ck_job_free(j);
    return s;
}

static void cancelled_jobs_go_on(void **state) {
    fixture *f = *state;
    for (int round = 0; round < 6; round++) {
        plan *p = new_plan(f);
        p->with_counts = p->with_rows = true;
        p->with_limit = round % 2;
        p->final = round % 3 == 0;
        p->batch_rows = round % 2 ? 4096 : 50;
        p->a_rows = p->b_rows = round % 2 ? 60000 : 3000;
        ck_checkpoint_config c = checkpoints_of(f);
        for (uint32_t life = 0;; life++) {
            ck_error err = CK_ERROR_INIT;
            ck_job *j = started(f, 1 + (life * 3 + (uint32_t)round) % 4, &c);
            ck_status s = life < 8 ? ck_job_wait(j, 5000 + (int64_t)ck_random_below(&f->t.proc, 20000), &err)
                                   : ck_job_wait(j, 60000000, &err);
            ck_job_free(j);
            if (s == CK_OK) break;
            assert_int_equal(s, CK_AGAIN);
        }
        check_output(f);
        ck_job *j = started(f, 3, &c);
        finish(j);
        assert_true(ck_job_was_finished(j));
        ck_job_free(j);
        check_output(f);
    }
}

static void progress_counts_checkpoints(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_limit = true;
    p->c_limit = 1000000000;
    ck_checkpoint_config c = checkpoints_of(f);
    ck_job *j = started(f, 2, &c);
    ck_job_progress now = {0};
    for (int i = 0; i < 2000 && now.checkpoints_completed < 3; i++) {
        assert_int_equal(ck_job_wait(j, 5000, NULL), CK_AGAIN);
        ck_job_progress_now(j, &now);
    }
    assert_true(now.checkpoints_completed >= 3);
    assert_true(now.last_checkpoint >= 3);
    ck_job_free(j);
}

static void savepoints_complete_and_restore(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_rows = p->with_limit = true;
    p->c_limit = 100000;
    p->b_rows = 30000;
    p->batch_rows = 64;
    ck_checkpoint_config c = checkpoints_of(f);
    c.interval_us = 0;
    ck_job *j = started(f, 3, &c);
    ck_error err = CK_ERROR_INIT;
    uint64_t first = 0, second = 0;
    if (ck_job_savepoint(j, 60000000, &first, &err) != CK_OK) fail_msg("%s", err.msg);
    if (ck_job_savepoint(j, 60000000, &second, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_true(second > first && first > 0);
    ck_job_free(j);
    /* by number in the same directory: output committed after it is refused, the newest goes on */
    char text[160];
    snprintf(text, sizeof text, "%llu", (unsigned long long)second);
    c.restore = text;
    j = started(f, 2, &c);
    finish(j);
    ck_job_free(j);
    check_output(f);
}

static void another_directory_can_be_the_beginning(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_counts = true;
    p->batch_rows = 64;
    ck_checkpoint_config c = checkpoints_of(f);
    c.interval_us = 0;
    ck_job *j = started(f, 2, &c);
    uint64_t n = 0;
    ck_error err = CK_ERROR_INIT;
    if (ck_job_savepoint(j, 60000000, &n, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_job_free(j);
    char text[200];
    snprintf(text, sizeof text, "%s:%llu", f->checkpoints, (unsigned long long)n);
    snprintf(f->checkpoints, sizeof f->checkpoints, "%s/elsewhere", ck_test_dir(&f->t));
    c.restore = text;
    j = started(f, 4, &c);
    finish(j);
    assert_false(ck_job_was_finished(j));
    ck_job_free(j);
    check_output(f);
}

static void a_used_directory_is_not_taken(void **state) {
    fixture *f = *state;
    ck_error err;
    plan *p = new_plan(f);
    p->with_rows = true;
    ck_job_config cfg = {.checkpoint = checkpoints_of(f)};
    ck_job *j = started(f, 2, &cfg.checkpoint);
    assert_int_equal(refused(f, &cfg, &err), CK_REFUSED); /* while another run holds the lock */
    finish(j);
    ck_job_free(j);
    cfg.name = "another";
    assert_int_equal(refused(f, &cfg, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "pooled"));
    cfg.name = NULL;
    p->with_limit = true; /* another plan */
    assert_int_equal(refused(f, &cfg, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "--fresh"));
    cfg.checkpoint.restore = "99";
    assert_int_equal(refused(f, &cfg, &err), CK_NOTFOUND);
    p = new_plan(f);
    p->with_rows = true;
    cfg.checkpoint = checkpoints_of(f);
    cfg.checkpoint.restore = "latest"; /* there is none */
    assert_int_equal(refused(f, &cfg, &err), CK_NOTFOUND);
}

static void fresh_starts_anew(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_rows = true;
    ck_checkpoint_config c = checkpoints_of(f);
    ck_job *j = started(f, 2, &c);
    finish(j);
    ck_job_free(j);
    check_output(f);
    snprintf(f->out, sizeof f->out, "%s/second", ck_test_dir(&f->t));
    c.fresh = true;
    /* Other parameters than the stored plan's: a fresh start does not compare. */
    j = started(f, 3, &c);
    finish(j);
    assert_false(ck_job_was_finished(j));
    ck_job_free(j);
    check_output(f);
}

static void going_below_committed_output_is_refused(void **state) {
    fixture *f = *state;
    ck_error err;
    plan *p = new_plan(f);
    p->with_rows = true;
    p->b_rows = 30000;
    p->batch_rows = 64;
    ck_job_config cfg = {.checkpoint = checkpoints_of(f)};
    ck_job *j = started(f, 2, &cfg.checkpoint);
    uint64_t n;
    if (ck_job_savepoint(j, 60000000, &n, &err) != CK_OK) fail_msg("%s", err.msg);
    finish(j);
    ck_job_free(j);
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    cfg.checkpoint.restore = text;
    assert_int_equal(refused(f, &cfg, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "committed after"));
    cfg.checkpoint.allow_duplicates = true;
    assert_int_equal(refused(f, &cfg, &err), CK_OK);
}

static void every_allocation_of_a_restore_may_fail(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_counts = p->with_limit = true;
    p->batch_rows = 10;
    p->a_rows = 300;
    p->c_limit = 100000000;
    ck_job_config cfg = {.checkpoint = checkpoints_of(f)};
    cfg.checkpoint.interval_us = 0;
    ck_job *j = started(f, 2, &cfg.checkpoint);
    uint64_t n;
    ck_error err = CK_ERROR_INIT;
    if (ck_job_savepoint(j, 60000000, &n, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_job_free(j);
    ck_graph *g;
    assert_int_equal(plan_graph(p, &f->arena, &g, &err), CK_OK);
    cfg.name = "pooled";
    cfg.parallelism = 3;
    cfg.batch_rows = p->batch_rows;
    for (uint64_t at = 1;; at += 1 + at / 16) {
        j = NULL;
        err = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->t.heap, at);
        ck_status s = ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err);
        ck_job_free(j);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        if (s != CK_OK && s != CK_NOMEM) fail_msg("allocation %llu: %s", (unsigned long long)at, err.msg);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(cancelled_jobs_go_on),
        T(progress_counts_checkpoints),
        T(savepoints_complete_and_restore),
        T(another_directory_can_be_the_beginning),
        T(a_used_directory_is_not_taken),
        T(fresh_starts_anew),
        T(going_below_committed_output_is_refused),
        T(every_allocation_of_a_restore_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
