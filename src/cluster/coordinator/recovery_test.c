/* One leader after another over the same records, and what goes beyond the specification: back-off, a budget that
 * decays, jobs suspended by a record. */
#include "cluster/coordinator/harness_test_support.h"
#include "cluster/restart_policy.h"

/* ---- a new leader ---- */

static ck_msg_hosted hosting(uint64_t attempt, ck_host_phase phase) {
    return (ck_msg_hosted){.job = 1, .attempt = attempt, .phase = phase, .address = CK_VIEW("10.0.0.1:1")};
}

static void a_new_leader_adopts_what_runs(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    checkpoint(h, 1, 1, 1, 9);
    next_leader(h);
    ASSERT_STATE(h, 1, "recovering");
    ck_msg_hosted hosted = hosting(1, CK_HOST_STARTED);
    register_with(h, 1, 11, 1, 2, &hosted, 1);
    assert_int_equal(sent(h, 11, CK_MSG_WELCOME)->as.welcome.fence.epoch, 8);
    ASSERT_STATE(h, 1, "recovering");
    hosted.checkpoint = 11; /* completed while nobody led */
    register_with(h, 2, 12, 2, 2, &hosted, 1);
    ASSERT_STATE(h, 1, "running");
    assert_int_equal(info(h, 1)->attempt, 1);
    assert_int_equal(info(h, 1)->restarts, 0);
    assert_int_equal(info(h, 1)->checkpoint, 11);
    assert_int_equal(ck_coordinator_free_slots(h->c), 0);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
}

/* Its worker has forgotten it: the last leader had answered a heartbeat behind it. */
static void an_end_that_was_heard_is_not_forgotten(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    next_leader(h);
    const ck_msg_hosted hosted = hosting(1, CK_HOST_STARTED);
    register_with(h, 1, 11, 1, 2, NULL, 0);
    register_with(h, 2, 12, 2, 2, &hosted, 1);
    ASSERT_STATE(h, 1, "running");
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
    assert_int_equal(info(h, 1)->restarts, 0);
}

/* One that was not heard is said again, over the next connection. */
static void an_end_that_comes_to_the_next_leader_counts(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    next_leader(h);
    const ck_msg_hosted hosted = hosting(1, CK_HOST_STARTED);
    register_with(h, 1, 11, 1, 4, &hosted, 1);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0); /* and once more, after a connection that broke */
    ASSERT_STATE(h, 1, "finished");
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
}

static void it_starts_what_was_deployed_and_not_yet_started(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    next_leader(h);
    ck_msg_hosted hosted = hosting(1, CK_HOST_DEPLOYED);
    register_with(h, 1, 11, 1, 4, &hosted, 1);
    assert_int_equal(count_sent(h, CK_MSG_START), 0);
    ready(h, 1, 1, 1);
    assert_int_equal(count_sent(h, CK_MSG_START), 1);
    ASSERT_STATE(h, 1, "running");
}

/* The plugins that a job was submitted with are in every DEPLOY of it, whoever leads. */
static void a_job_keeps_its_plugins(void **state) {
    harness *h = *state;
    char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const ck_msg_plugin plugins[] = {{ck_view_of(hash), 7, CK_VIEW("a.so")}, {ck_view_of(hash), 8, CK_VIEW("")}};
    ck_msg_submit job = plain_job("/c");
    job.plugins = (ck_proto_list){plugins, 2};
    join(h, 1, 4);
    assert_false(ck_coordinator_names_plugin(h->c, ck_view_of(hash)));
    submit(h, &job);
    for (int leader = 0; leader < 2; leader++) {
        const ck_msg_deploy *d = &sent(h, h->conn_of[1], CK_MSG_DEPLOY)->as.deploy;
        const ck_msg_plugin *p = d->plugins.items;
        assert_int_equal(d->plugins.count, 2);
        ASSERT_TEXT(p[0].hash, hash);
        ASSERT_TEXT(p[0].name, "a.so");
        assert_int_equal(p[0].bytes, 7);
        assert_int_equal(p[1].bytes, 8);
        assert_true(ck_coordinator_names_plugin(h->c, ck_view_of(hash)));
        if (leader == 1) break;
        next_leader(h);
        register_with(h, 1, 11, 1, 4, NULL, 0); /* it has the job no more; others are waited for */
        pass(h, 2000, "1");
    }
    command(h, CK_COMMAND_CANCEL, 1);
    ended(h, 1, 1, 2, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "cancelled");
    assert_false(ck_coordinator_names_plugin(h->c, ck_view_of(hash)));
}

static void it_restarts_what_does_not_come_back(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    next_leader(h);
    ck_msg_hosted hosted = hosting(1, CK_HOST_STARTED);
    register_with(h, 1, 11, 1, 4, &hosted, 1);
    pass(h, 1900, "1");
    ASSERT_STATE(h, 1, "recovering");
    pass(h, 100, "1");
    ASSERT_STATE(h, 1, "awaiting_restart");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(sent(h, 11, CK_MSG_DEPLOY)->as.deploy.fence.attempt, 2);
    assert_int_equal(info(h, 1)->restarts, 1);
}

static void a_worker_that_comes_back_without_it_is_a_loss_at_once(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    next_leader(h);
    register_with(h, 1, 11, 1, 4, NULL, 0);
    ASSERT_STATE(h, 1, "restarting"); /* others may still come back, and are waited for */
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
    pass(h, 2000, "1");
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 1);
    ASSERT_STATE(h, 1, "deploying");
}

/* The leader dies in the middle of a drain: the next goes on with it, and counts the restart once. */
static void a_restart_under_way_goes_on(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    join(h, 3, 4);
    pass(h, 2100, "13");
    ASSERT_STATE(h, 1, "awaiting_restart");
    next_leader(h);
    ASSERT_STATE(h, 1, "awaiting_restart");
    ck_msg_hosted hosted = hosting(1, CK_HOST_STARTED);
    register_with(h, 1, 11, 1, 2, &hosted, 1);
    assert_non_null(sent(h, 11, CK_MSG_CANCEL_JOB));
    register_with(h, 3, 13, 3, 4, NULL, 0);
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "restarting");
    pass(h, 2000, "13");
    ASSERT_STATE(h, 1, "deploying");
    assert_int_equal(info(h, 1)->restarts, 1);
    assert_int_equal(info(h, 1)->attempt, 2);
}

static void a_cancel_under_way_goes_on(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_CANCEL, 1);
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    next_leader(h);
    ASSERT_STATE(h, 1, "cancelling");
    pass(h, 2000, ""); /* nobody comes back, and nobody is waited for */
    ASSERT_STATE(h, 1, "cancelled");
    next_leader(h);
    ASSERT_STATE(h, 1, "cancelled");
}

/* What a worker hears of is known to the next leader: the record comes before the DEPLOY. */
static void the_attempt_is_kept_before_it_is_deployed(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    bool kept = false;
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->log[i].kind == CK_ACTION_PERSIST && h->log[i].number == 1) kept = true;
        if (h->log[i].kind == CK_ACTION_SEND && h->log[i].m.kind == CK_MSG_DEPLOY) assert_true(kept);
    }
    assert_true(kept);
}

/* A number is never given to two jobs, even when the first has been dropped. */
static void job_numbers_are_not_used_again(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    command(h, CK_COMMAND_DROP, 1);
    assert_null(h->records[1]);
    next_leader(h);
    join(h, 1, 4);
    submit(h, &job);
    ASSERT_STATE(h, 2, "deploying");
}

static void a_leader_with_an_old_epoch_does_not_begin(void **state) {
    harness *h = *state;
    ck_coordinator *late;
    ck_message m;
    ck_error err = CK_ERROR_INIT;
    OK(ck_message_read(h->records[0], &h->arena, &m, NULL));
    OK(ck_coordinator_new(&h->cfg, &late, NULL));
    assert_int_equal(ck_coordinator_recover(late, &m, &err), CK_REFUSED);
    ck_coordinator_free(late);
    /* nor does a worker that has heard the newer one talk to it */
    say(h, 5,
        &(ck_message){.kind = CK_MSG_REGISTER,
                      .as.reg = {.fence.epoch = 8, .worker = CK_VIEW("w"), .incarnation = 5, .slots = 1}});
    assert_int_equal(h->last, CK_REFUSED);
}

static void damaged_records_are_refused(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    ck_message m;
    OK(ck_message_read(h->records[1], &h->arena, &m, NULL));
    for (int what = 0; what < 6; what++) {
        ck_message bad = m;
        static const uint32_t states[] = {1, 1, 1, 99};
        static const uint32_t no_task[] = {4};
        static const ck_msg_record_host none[] = {{.worker = {"w1", 2}, .tasks = {no_task, 1}}};
        if (what == 0) bad.as.job.state = 77;
        if (what == 1) bad.as.job.goal = 77;
        if (what == 2) bad.as.job.states = (ck_proto_uints){states, 4};
        if (what == 3) bad.as.job.states = (ck_proto_uints){states, 3};
        if (what == 4) bad.as.job.hosts = (ck_proto_list){none, 1};
        if (what == 5) bad.as.job.job.fence.job = 0;
        ck_coordinator *c;
        OK(ck_coordinator_new(&h->cfg, &c, NULL));
        assert_int_equal(ck_coordinator_recover(c, &bad, NULL), CK_CORRUPT);
        ck_coordinator_free(c);
    }
}

/* ---- back-off ---- */

static void delays_double_with_jitter_up_to_a_ceiling(void **state) {
    (void)state;
    for (uint64_t random = 0; random < 1000; random += 7) {
        assert_int_equal(ck_restart_delay_us(1, 100, 1000, random), 0);
        static const int64_t whole[] = {100, 200, 400, 800, 1000, 1000};
        for (uint32_t n = 0; n < 6; n++) {
            int64_t d = ck_restart_delay_us(n + 2, 100, 1000, random);
            assert_in_range(d, whole[n] / 2, whole[n]);
        }
    }
    assert_int_not_equal(ck_restart_delay_us(2, 100, 1000, 1), ck_restart_delay_us(2, 100, 1000, 2));
    assert_in_range(ck_restart_delay_us(UINT32_MAX, 100, INT64_MAX, 5), INT64_MAX / 2, INT64_MAX);
}

static void restart_begins(harness *h, uint64_t attempt, bool at_once) {
    ended(h, 1, 1, attempt, CK_TASK_FAILED, "x", 0);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), at_once);
    if (!at_once) {
        ASSERT_STATE(h, 1, "restarting");
        pass(h, 10000, "1");
    }
    ready(h, 1, 1, attempt + 1);
    ASSERT_STATE(h, 1, "running");
}

static void the_first_restart_is_at_once_and_a_quiet_time_makes_it_first(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    restart_begins(h, 1, true);
    restart_begins(h, 2, false);
    restart_begins(h, 3, false);
    pass(h, 10000, "1");
    restart_begins(h, 4, true);
    command(h, CK_COMMAND_CANCEL, 1);
    ended(h, 1, 1, 5, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "cancelled");
}

static void a_cancel_ends_a_job_that_waits_to_restart(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    restart_begins(h, 1, true);
    ended(h, 1, 1, 2, CK_TASK_FAILED, "x", 0);
    command(h, CK_COMMAND_CANCEL, 1);
    ASSERT_STATE(h, 1, "cancelled");
    pass(h, 20000, "1");
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
}

static void the_budget_is_whole_again_after_a_stable_period(void **state) {
    harness *h = *state;
    ck_coordinator_free(h->c);
    for (int i = 0; i < RECORDS_MAX; i++) ck_frame_free(&h->records[i]);
    h->cfg.restart_budget_decay_us = 60LL * 1000000;
    begin(h);
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = 1;
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    restart_begins(h, 1, true);
    pass(h, 59900, "1");
    assert_int_equal(info(h, 1)->restarts, 1);
    pass(h, 100, "1");
    assert_int_equal(info(h, 1)->restarts, 0);
    restart_begins(h, 2, true);
}

/* ---- errors that a restart does not help ---- */

static void go_on_without(harness *h, const char *record) {
    say(h, CLIENT,
        &(ck_message){.kind = CK_MSG_COMMAND,
                      .as.command = {.fence.job = 1, .command = CK_COMMAND_RESUME, .skip_record = ck_view_of(record)}});
}

static void a_bad_record_suspends_the_job_and_costs_no_restart(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    checkpoint(h, 1, 1, 1, 3);
    one_ended(h, 2, 1, 1, 1, CK_TASK_FAILED, "");
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ready(h, 1, 1, 2), ready(h, 2, 1, 2);
    ended(h, 2, 1, 2, CK_TASK_FAILED, "part-0:17: not a number", CK_ENDED_DATA);
    ASSERT_STATE(h, 1, "suspending");
    ended(h, 1, 1, 2, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "suspended");
    ASSERT_TEXT(info(h, 1)->error, "part-0:17: not a number");
    assert_int_equal(info(h, 1)->restarts, 1);
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
    next_leader(h);
    pass(h, 2100, "");
    ASSERT_STATE(h, 1, "suspended");
    command(h, CK_COMMAND_RESUME, 1);
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.status, CK_REFUSED); /* nobody is there */
    join(h, 1, 4);
    go_on_without(h, "part-0:17");
    const ck_msg_deploy *d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->skips.count, 1);
    ASSERT_TEXT(((const ck_msg_skip *)d->skips.items)[0].record, "part-0:17");
    assert_int_equal(d->restore_from_checkpoint_id, 3);
    assert_int_equal(d->tasks.count, 4);
    /* in all attempts to come, whatever has been complete: an older savepoint may bring it back */
    ready(h, 1, 1, 3);
    checkpoint(h, 1, 1, 3, 4);
    ended(h, 1, 1, 3, CK_TASK_FAILED, "part-1:5: not a number", CK_ENDED_DATA);
    ASSERT_STATE(h, 1, "suspended");
    next_leader(h);
    join(h, 1, 4);
    go_on_without(h, "part-1");
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.status, CK_INVALID);
    go_on_without(h, ":5");
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.status, CK_INVALID);
    ASSERT_STATE(h, 1, "suspended");
    go_on_without(h, "part-1:5");
    d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->skips.count, 2);
    ASSERT_TEXT(((const ck_msg_skip *)d->skips.items)[0].record, "part-0:17");
    ASSERT_TEXT(((const ck_msg_skip *)d->skips.items)[1].record, "part-1:5");
}

static void a_fatal_error_fails_the_job_at_once(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "x", 0); /* one restart of ten */
    ended(h, 1, 1, 2, CK_TASK_FAILED, "the restore is refused", CK_ENDED_FATAL);
    ASSERT_STATE(h, 1, "failed");
    ASSERT_TEXT(info(h, 1)->error, "the restore is refused");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_new_leader_adopts_what_runs),
        T(an_end_that_was_heard_is_not_forgotten),
        T(an_end_that_comes_to_the_next_leader_counts),
        T(it_starts_what_was_deployed_and_not_yet_started),
        T(a_job_keeps_its_plugins),
        T(it_restarts_what_does_not_come_back),
        T(a_worker_that_comes_back_without_it_is_a_loss_at_once),
        T(a_restart_under_way_goes_on),
        T(a_cancel_under_way_goes_on),
        T(the_attempt_is_kept_before_it_is_deployed),
        T(job_numbers_are_not_used_again),
        T(a_leader_with_an_old_epoch_does_not_begin),
        T(damaged_records_are_refused),
        T(delays_double_with_jitter_up_to_a_ceiling),
        T(the_first_restart_is_at_once_and_a_quiet_time_makes_it_first),
        T(a_cancel_ends_a_job_that_waits_to_restart),
        T(the_budget_is_whole_again_after_a_stable_period),
        T(a_bad_record_suspends_the_job_and_costs_no_restart),
        T(a_fatal_error_fails_the_job_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
