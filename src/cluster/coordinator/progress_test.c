/* How far a job is, as STATUS says it. */
#include "cluster/coordinator/harness_test_support.h"

static void far(harness *h, int worker, uint64_t job, uint64_t attempt, const ck_progress *p) {
    const ck_msg_progress one = {{.job = job, .attempt = attempt}, *p};
    say(h, h->conn_of[worker],
        &(ck_message){.kind = CK_MSG_HEARTBEAT, .as.heartbeat = {.fence.epoch = h->cfg.epoch, .progress = {&one, 1}}});
    OK(h->last);
    assert_int_equal(h->count, 1); /* the answer to a heartbeat: nothing is kept */
}

static const ck_progress *progress(harness *h) { return &info(h, 1)->progress; }

static void rows_are_summed_and_the_least_watermark_counts(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    assert_int_equal(progress(h)->known, 0);
    far(h, 1, 1, 1, &(ck_progress){1, 10, 4, CK_EVENT_TIME_HELD, 500, CK_VIEW("held by a"), 100, 1000});
    assert_int_equal(progress(h)->known, 1);
    far(h, 2, 1, 1, &(ck_progress){1, 30, 5, CK_EVENT_TIME_HELD, -500, CK_VIEW("held by b"), 200, 2000});
    assert_true(progress(h)->memory_bytes == 300 && progress(h)->memory_limit == 3000);
    assert_true(progress(h)->rows_in == 40 && progress(h)->rows_out == 9);
    assert_int_equal(progress(h)->watermark_us, -500);
    ASSERT_TEXT(progress(h)->note, "held by b");
    far(h, 2, 1, 1,
        &(ck_progress){1, 31, 5, CK_EVENT_TIME_HELD, 900, CK_VIEW("held by b"), 0, 0}); /* it has caught up */
    assert_int_equal(progress(h)->rows_in, 41);
    assert_int_equal(progress(h)->watermark_us, 500);
    ASSERT_TEXT(progress(h)->note, "held by a");
    far(h, 1, 1, 1, &(ck_progress){1, 12, 4, CK_EVENT_TIME_NONE, 0, CK_VIEW(""), 0, 0}); /* its sources have ended */
    ASSERT_TEXT(progress(h)->note, "held by b");
}

static void what_is_idle_holds_nothing(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    far(h, 1, 1, 1, &(ck_progress){1, 0, 0, CK_EVENT_TIME_IDLE, 10, CK_VIEW("all splits are idle"), 0, 0});
    ASSERT_TEXT(progress(h)->note, "all splits are idle");
    far(h, 2, 1, 1, &(ck_progress){1, 0, 0, CK_EVENT_TIME_HELD, 20, CK_VIEW("held by b"), 0, 0});
    ASSERT_TEXT(progress(h)->note, "held by b");
    assert_int_equal(progress(h)->watermark_us, 20);
}

static void words_of_the_past_and_of_others_do_not_count(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    const ck_progress p = {.known = 1, .rows_in = 5};
    const ck_msg_progress old = {{.job = 1, .attempt = 1}, p};
    run_on(h, 2, &job);
    join(h, 3, 1);
    far(h, 1, 1, 2, &p);
    far(h, 1, 2, 1, &p);
    far(h, 3, 1, 1, &p); /* it runs nothing of this job */
    say(h, 1,
        &(ck_message){.kind = CK_MSG_HEARTBEAT,
                      .as.heartbeat = {.fence.epoch = h->cfg.epoch - 1, .progress = {&old, 1}}});
    assert_int_equal(progress(h)->known, 0);
}

static void an_attempt_begins_anew_and_an_end_keeps_the_last(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    far(h, 1, 1, 1, &(ck_progress){.known = 1, .rows_in = 5});
    ended(h, 1, 1, 1, CK_TASK_FAILED, "x", 0);
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(info(h, 1)->attempt, 2);
    assert_int_equal(progress(h)->known, 0);
    ready(h, 1, 1, 2), ready(h, 2, 1, 2);
    far(h, 1, 1, 2, &(ck_progress){.known = 1, .rows_in = 8});
    far(h, 1, 1, 1, &(ck_progress){.known = 1, .rows_in = 6}); /* late */
    ended(h, 1, 1, 2, CK_TASK_FINISHED, "", 0);
    ended(h, 2, 1, 2, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
    assert_int_equal(progress(h)->rows_in, 8);
}

/* It is in memory only: a new leader knows it again when the workers have said it. */
static void a_new_leader_hears_it_again(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    far(h, 1, 1, 1, &(ck_progress){.known = 1, .rows_in = 5});
    next_leader(h);
    const ck_msg_hosted hosted = {.job = 1, .attempt = 1, .phase = CK_HOST_STARTED};
    register_with(h, 1, 11, 1, 2, &hosted, 1);
    assert_int_equal(progress(h)->known, 0);
    far(h, 1, 1, 1, &(ck_progress){.known = 1, .rows_in = 6});
    assert_int_equal(progress(h)->rows_in, 6);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rows_are_summed_and_the_least_watermark_counts),
        T(what_is_idle_holds_nothing),
        T(words_of_the_past_and_of_others_do_not_count),
        T(an_attempt_begins_anew_and_an_end_keeps_the_last),
        T(a_new_leader_hears_it_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
