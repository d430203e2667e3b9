/* The specification's failover section, sentence by sentence: each test here fails without the sentence it names. */
#include "cluster/coordinator/harness_test_support.h"
#include "cluster/restart_policy.h"

/* ---- the watchdog ---- */

/* "wakes every watchdog_interval (default 100ms) and marks any worker whose last message is older than
 * heartbeat_timeout (default 2000ms) as lost"; the other knobs' defaults. */
static void defaults_are_the_specifications(void **state) {
    harness *h = *state;
    assert_int_equal(h->cfg.watchdog_interval_us, 100 * MS);
    assert_int_equal(h->cfg.heartbeat_timeout_us, 2000 * MS);
    assert_int_equal(h->cfg.restart_drain_timeout_us, 30000 * MS);
    assert_int_equal(h->cfg.max_restarts, 0);
    assert_int_equal(h->cfg.restart_budget_decay_us, 0);
    assert_int_equal(CK_DEFAULT_SELF_HEAL_RESTARTS, 10);
}

static void a_worker_silent_for_longer_than_the_timeout_is_lost(void **state) {
    harness *h = *state;
    join(h, 1, 2);
    pass(h, 2000, "");
    assert_int_equal(ck_coordinator_worker_count(h->c), 1); /* not older than that */
    pass(h, 100, "");
    assert_int_equal(ck_coordinator_worker_count(h->c), 0);
    assert_int_equal(wanted(h, CK_ACTION_CLOSE)->conn, 1);
}

/* "Healthy workers are expected to heartbeat at roughly heartbeat_timeout / 3 so a single dropped message does not
 * trigger a false positive." */
static void workers_are_told_to_beat_at_a_third_and_one_may_be_dropped(void **state) {
    harness *h = *state;
    join(h, 1, 2);
    const ck_message *m = sent(h, 1, CK_MSG_WELCOME);
    assert_int_equal(m->as.welcome.heartbeat_ms, 666);
    assert_int_equal(m->as.welcome.timeout_ms, 2000);
    for (int i = 0; i < 20; i++) {
        pass(h, 1400, ""); /* every second one gets lost */
        beat(h, 1);
    }
    assert_int_equal(ck_coordinator_worker_count(h->c), 1);
}

/* So that a worker knows whether there is still somebody. */
static void heartbeats_are_answered(void **state) {
    harness *h = *state;
    join(h, 1, 2), join(h, 2, 2);
    beat(h, 2);
    assert_int_equal(h->count, 1);
    assert_int_equal(sent(h, 2, CK_MSG_HEARTBEAT)->as.heartbeat.fence.epoch, 7);
}

static void any_message_is_a_sign_of_life(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    for (uint64_t i = 1; i < 10; i++) {
        pass(h, 1000, "2");
        checkpoint(h, 1, 1, 1, i);
    }
    assert_int_equal(ck_coordinator_worker_count(h->c), 2);
}

/* A coordinator that was stopped heard nothing, and that says nothing of those who spoke. */
static void a_suspended_coordinator_declares_nobody_lost(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "disk full", 0); /* a drain is under way, too */
    ASSERT_STATE(h, 1, "awaiting_restart");
    h->now_us += 3600LL * 1000000;
    tick(h);
    assert_int_equal(ck_coordinator_worker_count(h->c), 2);
    ASSERT_STATE(h, 1, "awaiting_restart");
    pass(h, 2000, "");
    assert_int_equal(ck_coordinator_worker_count(h->c), 2);
    pass(h, 100, "");
    assert_int_equal(ck_coordinator_worker_count(h->c), 0);
}

/* ---- the decision ---- */

/* "walks every job that had a subtask on that worker" */
static void jobs_elsewhere_go_on(void **state) {
    harness *h = *state;
    ck_msg_submit a = plain_job("/c"), b = plain_job("/d");
    join(h, 1, 4);
    submit(h, &a);
    join(h, 2, 4);
    b.name = CK_VIEW("b");
    submit(h, &b);
    ready(h, 1, 1, 1), ready(h, 2, 2, 1);
    pass(h, 2100, "1");
    ASSERT_STATE(h, 1, "running");
    ASSERT_STATE(h, 2, "failed"); /* nowhere to go */
}

/* "decides, per job, whether to restart" */
static void each_job_on_it_decides_for_itself(void **state) {
    harness *h = *state;
    ck_msg_submit a = plain_job("/a"), b = plain_job(""), c = plain_job("/c");
    b.name = CK_VIEW("b");
    c.name = CK_VIEW("c"), c.max_restarts_on_worker_loss = 0;
    join(h, 1, 6), join(h, 2, 6), join(h, 3, 12);
    submit(h, &a), submit(h, &b), submit(h, &c);
    for (int w = 1; w <= 3; w++)
        for (uint64_t id = 1; id <= 3; id++) ready(h, w, id, 1);
    pass(h, 2100, "13");
    ASSERT_STATE(h, 1, "awaiting_restart");
    ASSERT_STATE(h, 2, "failing");
    ASSERT_STATE(h, 3, "failing");
}

/* "A non-empty checkpoint_dir and ...": there is nothing to restore from, however many restarts were asked for. */
static void restarts_without_a_directory_are_none(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("");
    job.max_restarts_on_worker_loss = 5;
    run_on(h, 2, &job);
    join(h, 3, 8);
    pass(h, 2100, "13");
    ASSERT_STATE(h, 1, "failing");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
    ASSERT_STATE(h, 1, "failed");
    assert_int_equal(info(h, 1)->restarts, 0);
}

/* "A non-empty checkpoint_dir and job.restart_attempts < effective_max_restarts(...) means the job can recover. It is
 * moved into the awaiting_restart state"; "the lost-worker subtasks go into restart_pending; the still-in-flight
 * subtasks on surviving workers go into restart_drain_expected"; "broadcasts CancelJob to every surviving worker
 * hosting that job" */
static void a_loss_drains_the_survivors(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    join(h, 3, 4); /* hosts nothing of it */
    pass(h, 2100, "13");
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 1);
    const ck_message *m = sent(h, 1, CK_MSG_CANCEL_JOB);
    assert_int_equal(m->as.cancel_job.fence.job, 1);
    assert_int_equal(m->as.cancel_job.fence.attempt, 1);
    assert_int_equal(m->as.cancel_job.fence.epoch, 7);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
    ASSERT_STATE(h, 1, "awaiting_restart");
    ASSERT_TEXT(task_of(h, 1, 0)->state, "draining"); /* on worker 1 */
    ASSERT_TEXT(task_of(h, 1, 1)->state, "waiting");  /* on worker 2 */
    ASSERT_TEXT(info(h, 1)->error, "worker lost (heartbeat timeout)");
}

typedef struct heard_lines {
    unsigned count;
    char last[300];
} heard_lines;

static void hear(void *arg, ck_log_level level, const char *line) {
    heard_lines *l = arg;
    assert_int_equal(level, CK_LOG_WARN);
    snprintf(l->last, sizeof l->last, "%s", line), l->count++;
}

static void whoever_runs_it_is_told_of_losses_and_failures(void **state) {
    harness *h = *state;
    heard_lines lines = {0};
    const ck_log log = {.level = CK_LOG_WARN, .arg = &lines, .write = hear};
    ck_msg_submit job = plain_job("/c");
    h->cfg.log = &log;
    next_leader(h);
    job.max_restarts_on_worker_loss = 1;
    run_on(h, 2, &job);
    join(h, 3, 4);
    assert_int_equal(lines.count, 0);
    pass(h, 2100, "13");
    assert_int_equal(lines.count, 2); /* the worker, and the job */
    assert_non_null(strstr(lines.last, "restarts: worker lost (heartbeat timeout)"));
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ready(h, 1, 1, 2), ready(h, 3, 1, 2);
    ended(h, 1, 1, 2, CK_TASK_FAILED, "no such file", 0);
    ended(h, 3, 1, 2, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
    assert_int_equal(lines.count, 3);
    assert_non_null(strstr(lines.last, "has failed: no such file"));
    next_leader(h); /* to which that is no news */
    assert_int_equal(lines.count, 3);
}

/* "Once the drain set empties ... restart_job_locked_ runs and rebuilds the deployment"; the restore handle is "the
 * coordinator's own coordination directory and last acknowledged id" */
static void drained_the_job_is_deployed_from_its_last_checkpoint(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    checkpoint(h, 1, 1, 1, 41);
    checkpoint(h, 1, 1, 1, 42);
    checkpoint(h, 1, 1, 1, 40); /* ids never go back */
    join(h, 3, 4);
    pass(h, 2100, "13");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 2);
    const ck_msg_deploy *d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->fence.attempt, 2);
    ASSERT_TEXT(d->restore_from_dir, "/c");
    assert_int_equal(d->restore_from_checkpoint_id, 42);
    d = &sent(h, 3, CK_MSG_DEPLOY)->as.deploy; /* "on every Deploy" */
    ASSERT_TEXT(d->restore_from_dir, "/c");
    assert_int_equal(d->restore_from_checkpoint_id, 42);
    ASSERT_STATE(h, 1, "deploying");
    assert_int_equal(info(h, 1)->restarts, 1);
    ready(h, 1, 1, 2), ready(h, 3, 1, 2);
    ASSERT_STATE(h, 1, "running");
}

/* "report a normal SubtaskFinished, which decrements the expected-drain set": one by one, and whatever it says */
static void the_drain_waits_for_every_subtask(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    pass(h, 2100, "1");
    one_ended(h, 1, 1, 1, 0, CK_TASK_FINISHED, "");
    ASSERT_STATE(h, 1, "awaiting_restart");
    ASSERT_TEXT(task_of(h, 1, 0)->state, "waiting"); /* it was in flight: deployed again */
    one_ended(h, 1, 1, 1, 2, CK_TASK_FAILED, "link to process 1 broke");
    ASSERT_STATE(h, 1, "failed"); /* two slots left, four are needed */
}

/* "(or it was already empty because the survivors had finished)": and finished ones are not run again */
static void without_survivors_in_flight_it_restarts_at_once(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "running");
    pass(h, 2100, "1");
    const ck_msg_deploy *d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->tasks.count, 2);
    assert_int_equal(d->tasks.items[0], 1);
    assert_int_equal(d->tasks.items[1], 3);
    assert_int_equal(d->placement.items[0], UINT32_MAX); /* has finished */
}

/* "Otherwise the coordinator fails fast: it synthesises a worker lost (heartbeat timeout) error per pending subtask,
 * counts them toward completion, and surfaces the failure to the client." */
static void without_a_directory_it_fails_fast(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("");
    job.wait = 1;
    for (int w = 1; w <= 2; w++) join(h, w, 2);
    submit(h, &job);
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0); /* it waits */
    ready(h, 1, 1, 1), ready(h, 2, 1, 1);
    one_ended(h, 2, 1, 1, 1, CK_TASK_FINISHED, "");
    pass(h, 2100, "1");
    ASSERT_STATE(h, 1, "failing");
    ASSERT_TEXT(task_of(h, 1, 3)->error, "worker lost (heartbeat timeout)");
    ASSERT_TEXT(task_of(h, 1, 3)->state, "ended");
    ASSERT_TEXT(task_of(h, 1, 1)->error, ""); /* was not pending */
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    const ck_message *m = sent(h, CLIENT, CK_MSG_REPLY);
    assert_non_null(m);
    const ck_msg_job_info *i = m->as.reply.jobs.items;
    ASSERT_TEXT(i->state, "failed");
    ASSERT_TEXT(i->error, "worker lost (heartbeat timeout)");
}

/* ---- the policy ---- */

static void the_sentinel_resolves_at_every_decision(void **state) {
    (void)state;
    assert_int_equal(ck_effective_max_restarts(CK_RESTART_AUTO, CK_VIEW("/c")), 10);
    assert_int_equal(ck_effective_max_restarts(CK_RESTART_AUTO, CK_VIEW("")), 0);
    assert_int_equal(ck_effective_max_restarts(0, CK_VIEW("/c")), 0);
    assert_int_equal(ck_effective_max_restarts(3, CK_VIEW("/c")), 3);
    assert_int_equal(ck_effective_max_restarts(-5, CK_VIEW("/c")), 0);
}

/* "An explicit 0 forces fail-fast even with checkpointing." */
static void an_explicit_0_fails_fast(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = 0;
    run_on(h, 2, &job);
    join(h, 3, 4);
    pass(h, 2100, "13");
    ASSERT_STATE(h, 1, "failing");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
}

static void lose_and_come_back(harness *h, uint64_t attempt) {
    ended(h, 1, 1, attempt, CK_TASK_FAILED, "disk full", 0);
    pass(h, 30000, "1");
    ready(h, 1, 1, attempt + 1);
}

/* "An explicit N caps the attempts at N"; "the job self-heals up to ten times before failing loudly" */
static void restarts_are_counted(harness *h, int64_t max, uint64_t expected) {
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = max;
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    for (uint64_t n = 1; n <= expected; n++) {
        lose_and_come_back(h, n);
        ASSERT_STATE(h, 1, "running");
    }
    lose_and_come_back(h, expected + 1);
    ASSERT_STATE(h, 1, "failed");
    ASSERT_IN(info(h, 1)->error, "disk full; the job was restarted"); /* the root cause first */
}
static void an_explicit_3_is_3(void **state) { restarts_are_counted(*state, 3, 3); }
static void auto_is_10(void **state) { restarts_are_counted(*state, CK_RESTART_AUTO, 10); }

/* "Storing the sentinel rather than the resolved value means the user's intent round-trips through HA recovery." */
static void the_sentinel_is_what_is_stored(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    for (int round = 0; round < 2; round++) {
        ck_message m;
        OK(ck_message_read(h->records[1], &h->arena, &m, NULL));
        assert_int_equal(m.as.job.job.max_restarts_on_worker_loss, CK_RESTART_AUTO);
        next_leader(h);
        pass(h, 2100, "");
    }
}

/* A restart before the first checkpoint of its own keeps the submitted restore point. */
static void before_its_first_checkpoint_it_restarts_where_it_was_told_to(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    job.restore_from_dir = CK_VIEW("/savepoints");
    job.restore_from_checkpoint_id = 5;
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "disk full", 0);
    const ck_msg_deploy *d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    ASSERT_TEXT(d->restore_from_dir, "/savepoints");
    assert_int_equal(d->restore_from_checkpoint_id, 5);
    checkpoint(h, 1, 1, 2, 6);
    ready(h, 1, 1, 2);
    ended(h, 1, 1, 2, CK_TASK_FAILED, "disk full", 0);
    pass(h, 500, "1");
    d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    ASSERT_TEXT(d->restore_from_dir, "/c");
    assert_int_equal(d->restore_from_checkpoint_id, 6);
}

/* ---- the deployment ---- */

/* "rebuilds a DeploymentTask template per subtask (preserving role, subtask_idx, extra_config, and peer topology while
 * clearing resolved host/port)" */
static void templates_keep_all_but_addresses(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    ck_msg_deploy first;
    for (uint64_t attempt = 1; attempt <= 2; attempt++) {
        ended(h, 1, 1, attempt, CK_TASK_FAILED, "x", 0);
        if (attempt == 2) pass(h, 500, "1");
        const ck_msg_deploy *d = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
        const ck_msg_role *r = d->roles.items;
        ASSERT_TEXT(d->name, "flights");
        ASSERT_TEXT(d->spec, "graph");
        assert_int_equal(d->roles.count, 2);
        ASSERT_TEXT(r[0].name, "source");
        ASSERT_TEXT(r[0].config, "cfg-a");
        ASSERT_TEXT(r[1].config, "cfg-b");
        assert_int_equal(r[0].parallelism, 2);
        assert_int_equal(r[0].peers.items[0], 1);
        if (attempt == 1) first = *d;
        assert_memory_equal(first.placement.items, d->placement.items, 4 * sizeof(uint32_t));
        /* the address of the last attempt is gone: nothing starts before the new one is known */
        assert_int_equal(count_sent(h, CK_MSG_START), 0);
        ready(h, 1, 1, attempt + 1);
        const ck_msg_start *s = &sent(h, 1, CK_MSG_START)->as.start;
        assert_int_equal(s->addresses.count, 1);
    }
}

/* "places the tasks round-robin across survivor workers with free slots ... and emits one DeployMsg per worker" */
static void placement_is_round_robin_with_one_deploy_a_worker(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 1), join(h, 2, 2), join(h, 3, 8);
    submit(h, &job);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 3);
    const ck_msg_deploy *d = &sent(h, 3, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->process, 2);
    assert_int_equal(d->process_count, 3);
    static const uint32_t expected[] = {0, 1, 2, 1}; /* the first one is full by then */
    assert_memory_equal(d->placement.items, expected, sizeof expected);
    assert_int_equal(d->tasks.count, 1);
    assert_int_equal(ck_coordinator_free_slots(h->c), 7);
}

/* All hosts of an attempt are told one secret, another one than those of the attempt before. */
static void each_attempt_has_a_secret_of_its_own(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    char first[CK_CLUSTER_SECRET_CHARS];
    join(h, 1, 4), join(h, 2, 4);
    submit(h, &job);
    ck_view a = sent(h, 1, CK_MSG_DEPLOY)->as.deploy.secret, b = sent(h, 2, CK_MSG_DEPLOY)->as.deploy.secret;
    assert_int_equal(a.n, CK_CLUSTER_SECRET_CHARS);
    assert_int_equal(b.n, a.n);
    assert_memory_equal(a.p, b.p, a.n);
    memcpy(first, a.p, sizeof first);
    ready(h, 1, 1, 1);
    pass(h, 2100, "1");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    const ck_msg_deploy *again = &sent(h, 1, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(again->fence.attempt, 2);
    assert_int_equal(again->secret.n, CK_CLUSTER_SECRET_CHARS);
    assert_memory_not_equal(first, again->secret.p, sizeof first);
}

/* "If no survivor has a free slot, the restart is aborted with a no slot available error per subtask and the job is
 * failed." */
static void without_slots_the_restart_is_aborted(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    pass(h, 2100, "1");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
    for (uint32_t i = 0; i < 4; i++) ASSERT_TEXT(task_of(h, 1, i)->error, "no slot available");
    ASSERT_IN(info(h, 1)->error, "worker lost (heartbeat timeout); no slot available");
    assert_int_equal(ck_coordinator_free_slots(h->c), 2);
}

/* Readiness: every expected subtask is accounted for before any starts, and the dead are not waited for. */
static void nothing_starts_before_all_are_accounted_for(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 2), join(h, 2, 2);
    submit(h, &job);
    ready(h, 1, 1, 1);
    assert_int_equal(count_sent(h, CK_MSG_START), 0);
    ready(h, 2, 1, 1);
    assert_int_equal(count_sent(h, CK_MSG_START), 2);
    const ck_msg_text *a = sent(h, 2, CK_MSG_START)->as.start.addresses.items;
    ASSERT_TEXT(a[0].text, "10.0.0.1:1");
    ASSERT_TEXT(a[1].text, "10.0.0.2:1");
}

static void a_deployment_does_not_wait_for_the_dead(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 4), join(h, 2, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    pass(h, 2100, "1");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ready(h, 1, 1, 2);
    assert_int_equal(count_sent(h, CK_MSG_START), 1);
    ASSERT_STATE(h, 1, "running");
}

/* ---- bounds of the drain ---- */

/* "A watchdog scan that runs every tick, independent of any new worker loss, fails any job whose drain has outrun its
 * deadline ... force-restarting could double-run a slow-but-alive subtask" */
static void a_drain_beyond_its_deadline_fails_the_job(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    join(h, 3, 8);
    pass(h, 2100, "13");
    one_ended(h, 1, 1, 1, 0, CK_TASK_CANCELLED, "");
    pass(h, 29900, "13");
    ASSERT_STATE(h, 1, "awaiting_restart");
    pass(h, 100, "13");
    ASSERT_STATE(h, 1, "failed");
    ASSERT_IN(info(h, 1)->error, "worker lost (heartbeat timeout); the drain took longer than 30000 ms");
    ASSERT_IN(info(h, 1)->error, "sink[0] on w1"); /* the stuck one, and only it */
    ck_view error = info(h, 1)->error;
    assert_null(memmem(error.p, error.n, "source", 6));
    /* it still works there: its slot stays taken, and nothing of the job is deployed again */
    assert_int_equal(ck_coordinator_free_slots(h->c), 1 + 8);
    one_ended(h, 1, 1, 1, 2, CK_TASK_CANCELLED, "");
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
    assert_int_equal(ck_coordinator_free_slots(h->c), 2 + 8);
    ASSERT_STATE(h, 1, "failed");
}

/* "A second worker lost while the job is already draining folds its subtasks into the in-progress restart ... without
 * consuming an extra restart attempt" */
static void a_second_loss_folds_in(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = 1;
    run_on(h, 4, &job);
    join(h, 5, 8);
    pass(h, 1000, "1235");
    pass(h, 1100, "1235"); /* 4 is lost */
    ASSERT_STATE(h, 1, "awaiting_restart");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_TEXT(task_of(h, 1, 2)->state, "draining");
    pass(h, 2100, "125"); /* 3 is lost */
    assert_true(count_sent(h, CK_MSG_DEPLOY) > 0);
    ASSERT_STATE(h, 1, "deploying");
    assert_int_equal(info(h, 1)->restarts, 1);
    assert_int_equal(info(h, 1)->attempt, 2);
}

/* "they move from restart_drain_expected to restart_pending": the rest is waited for, until the deadline of the first.
 */
static void a_second_loss_leaves_the_rest_draining(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 4, &job);
    join(h, 5, 8);
    pass(h, 2000, "1235");
    pass(h, 100, "1235"); /* 4 is lost */
    ASSERT_TEXT(task_of(h, 1, 3)->state, "waiting");
    ASSERT_TEXT(task_of(h, 1, 2)->state, "draining");
    pass(h, 2000, "125");
    pass(h, 100, "125"); /* 3 is lost */
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
    ASSERT_TEXT(task_of(h, 1, 2)->state, "waiting");
    ASSERT_TEXT(task_of(h, 1, 0)->state, "draining");
    ASSERT_STATE(h, 1, "awaiting_restart");
    assert_int_equal(info(h, 1)->restarts, 1);         /* it is the same restart, whatever is left of the budget */
    for (int i = 0; i < 278; i++) pass(h, 100, "125"); /* 29,900 ms behind the first loss */
    ASSERT_STATE(h, 1, "awaiting_restart");
    pass(h, 100, "125");
    ASSERT_STATE(h, 1, "failed");
    ASSERT_IN(info(h, 1)->error, "source[0] on w1 source[1] on w2");
}

/* ---- errors ---- */

/* "A subtask error ... follows the same awaiting_restart machinery but redeploys the full topology from tasks_by_worker
 * rather than just the in-flight set, because the failing subtask may have peers that already finished." */
static void redeploys_the_whole_topology(harness *h, uint64_t flags) {
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0); /* tasks 0 and 2 */
    ended(h, 2, 1, 1, CK_TASK_FAILED, "connection reset", flags);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 2);
    assert_int_equal(sent(h, 1, CK_MSG_DEPLOY)->as.deploy.tasks.count, 2);
    assert_int_equal(sent(h, 2, CK_MSG_DEPLOY)->as.deploy.tasks.count, 2);
    assert_int_equal(info(h, 1)->restarts, 1);
}
static void a_subtask_error_redeploys_all(void **state) { redeploys_the_whole_topology(*state, 0); }
static void a_final_checkpoint_timeout_redeploys_all(void **state) {
    redeploys_the_whole_topology(*state, CK_ENDED_FINAL_CHECKPOINT);
}

static void an_error_drains_its_peers_first(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    one_ended(h, 1, 1, 1, 0, CK_TASK_FAILED, "disk full");
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 2); /* its other task is there, too */
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 2);
}

/* "Per-failing-task retry budget (distinct from worker-level restarts)", tried first */
static void a_tasks_own_retries_come_first(void **state) {
    harness *h = *state;
    ck_coordinator_free(h->c);
    for (int i = 0; i < RECORDS_MAX; i++) ck_frame_free(&h->records[i]);
    h->cfg.max_restarts = 2;
    begin(h);
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = 1;
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    static const uint64_t job_restarts[] = {0, 0, 1};
    for (uint64_t n = 1; n <= 3; n++) {
        one_ended(h, 1, 1, n, 3, CK_TASK_FAILED, "x");
        ended(h, 1, 1, n, CK_TASK_CANCELLED, "", 0);
        pass(h, 2000, "1");
        ready(h, 1, 1, n + 1);
        ASSERT_STATE(h, 1, "running");
        assert_int_equal(info(h, 1)->restarts, job_restarts[n - 1]);
    }
    one_ended(h, 1, 1, 4, 2, CK_TASK_FAILED, "y"); /* another task has a budget of its own */
    ended(h, 1, 1, 4, CK_TASK_CANCELLED, "", 0);
    pass(h, 2000, "1");
    ready(h, 1, 1, 5);
    one_ended(h, 1, 1, 5, 3, CK_TASK_FAILED, "x");
    ended(h, 1, 1, 5, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
}

/* A task host that dies takes all its tasks with it: each has failed once, and the budget of each is spent once. */
static void tasks_that_die_together_spend_one_retry_each(void **state) {
    harness *h = *state;
    ck_coordinator_free(h->c);
    for (int i = 0; i < RECORDS_MAX; i++) ck_frame_free(&h->records[i]);
    h->cfg.max_restarts = 2;
    begin(h);
    ck_msg_submit job = plain_job("/c");
    job.max_restarts_on_worker_loss = 0;
    join(h, 1, 4);
    submit(h, &job);
    ready(h, 1, 1, 1);
    for (uint64_t n = 1; n <= 2; n++) {
        ended(h, 1, 1, n, CK_TASK_FAILED, "killed by signal 9", 0);
        pass(h, 2000, "1");
        ready(h, 1, 1, n + 1);
        ASSERT_STATE(h, 1, "running");
        assert_int_equal(info(h, 1)->restarts, 0);
    }
    one_ended(h, 1, 1, 3, 3, CK_TASK_FAILED, "x"); /* the last of them has none left either */
    ASSERT_STATE(h, 1, "failing");
    ended(h, 1, 1, 3, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
}

/* ---- other ways to be lost ---- */

static void a_closed_connection_is_probed_and_then_lost(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    h->count = 0;
    OK(ck_coordinator_closed(h->c, h->now_us, 2, NULL));
    take_actions(h);
    const heard *probe = wanted(h, CK_ACTION_PROBE);
    assert_non_null(probe);
    assert_string_equal(probe->address, "127.0.0.1:7002");
    uint64_t incarnation = probe->number;
    ASSERT_STATE(h, 1, "running");
    h->count = 0;
    OK(ck_coordinator_unreachable(h->c, h->now_us, incarnation, NULL));
    take_actions(h);
    assert_non_null(sent(h, 1, CK_MSG_CANCEL_JOB));
    ASSERT_TEXT(info(h, 1)->error, "worker lost (connection closed)");
}

/* The first probe may still be answered by one that is dying. */
static void a_closed_connection_is_probed_until_somebody_comes(void **state) {
    harness *h = *state;
    join(h, 1, 2);
    OK(ck_coordinator_closed(h->c, h->now_us, 1, NULL));
    take_actions(h);
    for (int i = 0; i < 3; i++) {
        h->count = 0;
        pass(h, 100, "");
        assert_non_null(wanted(h, CK_ACTION_PROBE));
    }
    register_with(h, 1, 11, 1, 2, NULL, 0);
    h->count = 0;
    pass(h, 100, "1");
    assert_null(wanted(h, CK_ACTION_PROBE));
}

static void who_comes_back_over_another_connection_was_not_lost(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    OK(ck_coordinator_closed(h->c, h->now_us, 2, NULL));
    ck_msg_hosted hosted = {.job = 1, .attempt = 1, .phase = CK_HOST_STARTED, .address = CK_VIEW("10.0.0.2:1")};
    register_with(h, 2, 12, 2, 2, &hosted, 1);
    OK(ck_coordinator_unreachable(h->c, h->now_us, 2, NULL)); /* the probe's answer comes late */
    ASSERT_STATE(h, 1, "running");
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 0);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
}

/* Silence stays the bound for one that answers probes and never comes back. */
static void a_closed_connection_does_not_stop_the_clock(void **state) {
    harness *h = *state;
    join(h, 1, 2);
    OK(ck_coordinator_closed(h->c, h->now_us, 1, NULL));
    pass(h, 2100, "");
    assert_int_equal(ck_coordinator_worker_count(h->c), 0);
}

static void what_was_said_to_a_closed_connection_is_said_again(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 2), join(h, 2, 2);
    submit(h, &job);
    ready(h, 1, 1, 1);
    OK(ck_coordinator_closed(h->c, h->now_us, 1, NULL));
    ready(h, 2, 1, 1); /* START for worker 1 goes nowhere */
    ck_msg_hosted hosted = {.job = 1, .attempt = 1, .phase = CK_HOST_READY, .address = CK_VIEW("10.0.0.1:1")};
    register_with(h, 1, 11, 1, 2, &hosted, 1);
    assert_non_null(sent(h, 11, CK_MSG_START));
    ended(h, 2, 1, 1, CK_TASK_FAILED, "x", 0);
    assert_non_null(sent(h, 11, CK_MSG_CANCEL_JOB));
    register_with(h, 1, 21, 1, 2, &hosted, 1);
    assert_non_null(sent(h, 21, CK_MSG_CANCEL_JOB));
}

/* A worker that left a coordinator which hung: what it had said over the old connection is read when that wakes. */
static void a_registration_that_is_read_late_is_refused(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    ck_msg_hosted hosted = {.job = 1, .attempt = 1, .phase = CK_HOST_STARTED, .address = CK_VIEW("10.0.0.2:1")};
    ck_message late = {.kind = CK_MSG_REGISTER,
                       .as.reg = {.worker = CK_VIEW("w2"),
                                  .incarnation = 2,
                                  .slots = 2,
                                  .address = CK_VIEW("127.0.0.1:7002"),
                                  .turn = 3,
                                  .hosted = {&hosted, 1}}};
    run_on(h, 2, &job);
    h->conn_of[2] = 13;
    say(h, 13, &late);
    OK(h->last);
    late.as.reg.turn = 2, late.as.reg.hosted.count = 0; /* from before it ran anything */
    say(h, 12, &late);
    assert_int_equal(h->last, CK_REFUSED);
    assert_null(wanted(h, CK_ACTION_CLOSE)); /* the newer connection stays */
    ASSERT_STATE(h, 1, "running");
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
}

static void another_process_under_the_same_id_means_loss(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    register_with(h, 2, 12, 99, 2, NULL, 0);
    assert_non_null(sent(h, 1, CK_MSG_CANCEL_JOB));
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    assert_non_null(sent(h, 12, CK_MSG_DEPLOY));
    assert_int_equal(info(h, 1)->restarts, 1);
    assert_int_equal(ck_coordinator_worker_count(h->c), 2);
}

/* ---- zombies ---- */

static void a_zombies_words_have_no_effect(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    join(h, 3, 4);
    pass(h, 2100, "13"); /* 2 is lost, and alive all the same */
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ready(h, 1, 1, 2), ready(h, 3, 1, 2);
    ASSERT_STATE(h, 1, "running");
    checkpoint(h, 2, 1, 1, 77); /* unknown: its connection is closed for it */
    assert_int_equal(h->last, CK_REFUSED);
    ck_msg_hosted old = {.job = 1, .attempt = 1, .phase = CK_HOST_STARTED};
    register_with(h, 2, 12, 2, 2, &old, 1);
    const ck_message *m = sent(h, 12, CK_MSG_CANCEL_JOB); /* its old host is told to end */
    assert_int_equal(m->as.cancel_job.fence.attempt, 1);
    checkpoint(h, 2, 1, 1, 78);
    checkpoint(h, 2, 1, 2, 79); /* of this attempt, in which it is not */
    ended(h, 2, 1, 1, CK_TASK_FAILED, "zombie", 0);
    ended(h, 2, 1, 2, CK_TASK_FAILED, "zombie", 0);
    h->cfg.epoch--;
    checkpoint(h, 1, 1, 2, 80); /* of the last leader's time */
    h->cfg.epoch++;
    ASSERT_STATE(h, 1, "running");
    assert_int_equal(info(h, 1)->checkpoint, 0);
    assert_int_equal(info(h, 1)->attempt, 2);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults_are_the_specifications),
        T(a_worker_silent_for_longer_than_the_timeout_is_lost),
        T(workers_are_told_to_beat_at_a_third_and_one_may_be_dropped),
        T(heartbeats_are_answered),
        T(any_message_is_a_sign_of_life),
        T(a_suspended_coordinator_declares_nobody_lost),
        T(jobs_elsewhere_go_on),
        T(each_job_on_it_decides_for_itself),
        T(restarts_without_a_directory_are_none),
        T(a_loss_drains_the_survivors),
        T(whoever_runs_it_is_told_of_losses_and_failures),
        T(drained_the_job_is_deployed_from_its_last_checkpoint),
        T(the_drain_waits_for_every_subtask),
        T(without_survivors_in_flight_it_restarts_at_once),
        T(without_a_directory_it_fails_fast),
        T(the_sentinel_resolves_at_every_decision),
        T(an_explicit_0_fails_fast),
        T(an_explicit_3_is_3),
        T(auto_is_10),
        T(the_sentinel_is_what_is_stored),
        T(before_its_first_checkpoint_it_restarts_where_it_was_told_to),
        T(templates_keep_all_but_addresses),
        T(placement_is_round_robin_with_one_deploy_a_worker),
        T(each_attempt_has_a_secret_of_its_own),
        T(without_slots_the_restart_is_aborted),
        T(nothing_starts_before_all_are_accounted_for),
        T(a_deployment_does_not_wait_for_the_dead),
        T(a_drain_beyond_its_deadline_fails_the_job),
        T(a_second_loss_folds_in),
        T(a_second_loss_leaves_the_rest_draining),
        T(a_subtask_error_redeploys_all),
        T(a_final_checkpoint_timeout_redeploys_all),
        T(an_error_drains_its_peers_first),
        T(a_tasks_own_retries_come_first),
        T(tasks_that_die_together_spend_one_retry_each),
        T(a_closed_connection_is_probed_and_then_lost),
        T(a_closed_connection_is_probed_until_somebody_comes),
        T(who_comes_back_over_another_connection_was_not_lost),
        T(a_closed_connection_does_not_stop_the_clock),
        T(what_was_said_to_a_closed_connection_is_said_again),
        T(a_registration_that_is_read_late_is_refused),
        T(another_process_under_the_same_id_means_loss),
        T(a_zombies_words_have_no_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
