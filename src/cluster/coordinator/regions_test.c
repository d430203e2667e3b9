/* A job of two regions on two workers, a task each: left runs on worker 1, right on worker 2. What happens to one is
 * none of the other's business, until the job as a whole comes to its end. */
#include "cluster/coordinator/harness_test_support.h"

#define RIGHT ck_region_number(1, 1)

static const ck_msg_role roles[] = {{.name = {"left", 4}, .parallelism = 1},
                                    {.name = {"right", 5}, .parallelism = 1, .region = 1}};

static ck_msg_submit two_regions(void) {
    ck_msg_submit m = plain_job("/c");
    m.roles = (ck_proto_list){roles, 2};
    return m;
}

/* Both run; `workers` of two slots each. */
static void run_both(harness *h, int workers) {
    ck_msg_submit m = two_regions();
    for (int w = 1; w <= workers; w++) join(h, w, 2);
    submit(h, &m);
    ready(h, 1, 1, 1);
    ready(h, 2, RIGHT, 1);
    ASSERT_STATE(h, 1, "running");
}

static ck_msg_region_info region(harness *h, uint32_t number) {
    const ck_msg_job_info *i = info(h, 1);
    assert_int_equal(i->regions.count, 2);
    return ((const ck_msg_region_info *)i->regions.items)[number];
}

static uint32_t count_kind(const harness *h, ck_action_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->count; i++) n += h->log[i].kind == kind;
    return n;
}

static void each_is_deployed_as_a_job_of_its_own(void **state) {
    harness *h = *state;
    ck_msg_submit m = two_regions();
    join(h, 1, 2);
    join(h, 2, 2);
    submit(h, &m);
    const ck_message *left = sent(h, 1, CK_MSG_DEPLOY), *right = sent(h, 2, CK_MSG_DEPLOY);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 2);
    assert_int_equal(left->as.fence.job, 1);
    assert_int_equal(right->as.fence.job, RIGHT);
    for (uint32_t i = 0; i < 2; i++) {
        const ck_msg_deploy *d = i ? &right->as.deploy : &left->as.deploy;
        assert_int_equal(d->region, i);
        assert_int_equal(d->region_count, 2);
        assert_int_equal(d->roles.count, 1);
        assert_int_equal(d->placement.count, 1);
        assert_int_equal(d->process_count, 1);
        ASSERT_TEXT(((const ck_msg_role *)d->roles.items)->name, i ? "right" : "left");
        ASSERT_TEXT(d->spec, "graph"); /* of all */
    }
    assert_false(ck_view_eq(left->as.deploy.secret, right->as.deploy.secret));
    assert_int_equal(count_kind(h, CK_ACTION_PERSIST), 2); /* the leader's, and one that says that all of it is there */
    ASSERT_TEXT(task_of(h, 1, 1)->role, "right");
    assert_int_equal(task_of(h, 1, 1)->region, 1);
}

static void a_job_of_one_is_told_of_no_regions(void **state) {
    harness *h = *state;
    ck_msg_submit m = plain_job("/c");
    join(h, 1, 4);
    submit(h, &m);
    assert_int_equal(sent(h, 1, CK_MSG_DEPLOY)->as.deploy.region_count, 0);
    assert_int_equal(info(h, 1)->regions.count, 0);
    ck_message kept;
    OK(ck_message_read(h->records[1], &h->arena, &kept, NULL));
    assert_int_equal(kept.as.job.regions.count, 0);
}

static void only_the_region_that_lost_a_task_restarts(void **state) {
    harness *h = *state;
    run_both(h, 3);
    pass(h, 2500, "23");
    assert_null(sent(h, 2, CK_MSG_CANCEL_JOB));
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 1);
    const ck_message *again = sent(h, 3, CK_MSG_DEPLOY);
    if (!again) again = sent(h, 2, CK_MSG_DEPLOY);
    assert_int_equal(again->as.fence.job, 1);
    assert_int_equal(again->as.fence.attempt, 2);
    assert_int_equal(region(h, 0).attempt, 2);
    assert_int_equal(region(h, 1).attempt, 1);
    assert_int_equal(region(h, 1).restarts, 0);
    ASSERT_TEXT(region(h, 1).state, "running");
    ASSERT_STATE(h, 1, "deploying");
    assert_int_equal(info(h, 1)->restarts, 1);
    assert_int_equal(info(h, 1)->attempt, 2);
}

static void an_error_redeploys_its_region_alone(void **state) {
    harness *h = *state;
    run_both(h, 2);
    ended(h, 2, RIGHT, 1, CK_TASK_FAILED, "disk", 0);
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 0);
    pass(h, 300, "12");
    assert_int_equal(region(h, 1).attempt, 2);
    assert_int_equal(region(h, 0).attempt, 1);
    ASSERT_TEXT(region(h, 0).state, "running");
}

static void each_has_a_budget(void **state) {
    harness *h = *state;
    ck_msg_submit m = two_regions();
    m.max_restarts_on_worker_loss = 1;
    join(h, 1, 2);
    join(h, 2, 2);
    submit(h, &m);
    ready(h, 1, 1, 1);
    ready(h, 2, RIGHT, 1);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "disk", 0);
    pass(h, 300, "12");
    ended(h, 2, RIGHT, 1, CK_TASK_FAILED, "disk", 0);
    pass(h, 300, "12");
    assert_int_equal(region(h, 0).attempt, 2);
    assert_int_equal(region(h, 1).attempt, 2);
    ASSERT_STATE(h, 1, "deploying");
}

static void one_that_fails_for_good_ends_the_others(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_WAIT, 1);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "no such column", CK_ENDED_FATAL);
    assert_int_equal(sent(h, 2, CK_MSG_CANCEL_JOB)->as.fence.job, RIGHT);
    assert_null(sent(h, 1, CK_MSG_CANCEL_JOB));
    assert_null(sent(h, CLIENT, CK_MSG_REPLY)); /* some of it may still work */
    ASSERT_STATE(h, 1, "failing");
    ended(h, 2, RIGHT, 1, CK_TASK_CANCELLED, "", 0);
    assert_non_null(sent(h, CLIENT, CK_MSG_REPLY));
    ASSERT_STATE(h, 1, "failed");
    ASSERT_TEXT(info(h, 1)->error, "no such column");
    ASSERT_TEXT(region(h, 1).state, "cancelled");
}

static void one_that_is_suspended_leaves_the_others_running(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_WAIT, 1);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "row 7", CK_ENDED_DATA);
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 0);
    assert_non_null(sent(h, CLIENT, CK_MSG_REPLY));
    ASSERT_STATE(h, 1, "suspended");
    ASSERT_TEXT(info(h, 1)->error, "row 7");
    ASSERT_TEXT(region(h, 1).state, "running");
    checkpoint(h, 2, RIGHT, 1, 9);
    assert_int_equal(info(h, 1)->checkpoint, 9);
    ended(h, 2, RIGHT, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "suspended");
    say(h, CLIENT,
        &(ck_message){
            .kind = CK_MSG_COMMAND,
            .as.command = {.fence.job = 1, .command = CK_COMMAND_RESUME, .skip_record = CK_VIEW("/in.json:7")}});
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 1);
    int on = sent(h, 1, CK_MSG_DEPLOY) ? 1 : 2;
    const ck_msg_deploy *d = &sent(h, (uint64_t)on, CK_MSG_DEPLOY)->as.deploy;
    assert_int_equal(d->region, 0);
    assert_int_equal(d->skips.count, 1);
    ready(h, on, 1, 2);
    ASSERT_STATE(h, 1, "running");
    ended(h, on, 1, 2, CK_TASK_FINISHED, "", 0);
    ASSERT_STATE(h, 1, "finished");
}

static void it_has_finished_when_all_have(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_WAIT, 1);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_null(sent(h, CLIENT, CK_MSG_REPLY));
    ASSERT_STATE(h, 1, "running");
    pass(h, 2500, "2"); /* nobody misses who has nothing to do */
    ASSERT_STATE(h, 1, "running");
    ended(h, 2, RIGHT, 1, CK_TASK_FINISHED, "", 0);
    ASSERT_TEXT(((const ck_msg_job_info *)sent(h, CLIENT, CK_MSG_REPLY)->as.reply.jobs.items)->state, "finished");
    ck_msg_submit again = two_regions();
    join(h, 1, 2);
    submit(h, &again); /* its name is free again */
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.status, CK_OK);
}

static void a_cancel_is_of_all(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_CANCEL, 1);
    assert_int_equal(sent(h, 1, CK_MSG_CANCEL_JOB)->as.fence.job, 1);
    assert_int_equal(sent(h, 2, CK_MSG_CANCEL_JOB)->as.fence.job, RIGHT);
    ASSERT_STATE(h, 1, "cancelling");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "cancelling");
    ended(h, 2, RIGHT, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "cancelled");
}

static void so_is_a_drop(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_DROP, 1);
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 2);
    assert_int_equal(count_kind(h, CK_ACTION_FORGET), 1);
    assert_null(h->records[1]);
    assert_int_equal(status_of(h, 1).status, CK_NOTFOUND);
    assert_int_equal(ck_coordinator_free_slots(h->c), 2); /* until they have ended */
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ended(h, 2, RIGHT, 1, CK_TASK_CANCELLED, "", 0);
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
}

static void a_region_is_no_job_to_a_client(void **state) {
    harness *h = *state;
    run_both(h, 2);
    assert_int_equal(status_of(h, RIGHT).status, CK_NOTFOUND);
    command(h, CK_COMMAND_LIST, 0);
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.jobs.count, 1);
}

static void taken(harness *h, int worker, uint64_t job, uint64_t request, uint64_t id, const char *error) {
    say(h, h->conn_of[worker],
        &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED,
                      .as.savepoint_ended = {fence(h, job, 1), request, id, ck_view_of(error)}});
}

static void a_savepoint_is_one_of_each(void **state) {
    harness *h = *state;
    run_both(h, 2);
    checkpoint(h, 2, RIGHT, 1, 11);
    command(h, CK_COMMAND_SAVEPOINT, 1);
    const ck_msg_take_savepoint *left = &sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint;
    const ck_msg_take_savepoint *right = &sent(h, 2, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint;
    assert_int_equal(left->above, 11); /* so that no part of it is older than a part of the one before */
    assert_int_equal(right->above, 11);
    assert_int_equal(right->fence.job, RIGHT);
    uint64_t request = left->request;
    taken(h, 2, RIGHT, request, 15, "");
    assert_null(sent(h, CLIENT, CK_MSG_REPLY));
    taken(h, 1, 1, request, 12, "");
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.checkpoint, 15);
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.fence.job, 1);
    ASSERT_TEXT(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.checkpoint_dir, "/c");
}

static void without_one_of_them_there_is_none(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_SAVEPOINT, 1);
    uint64_t request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    taken(h, 1, 1, request, 0, "disk full");
    ASSERT_TEXT(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.error, "disk full");
    taken(h, 2, RIGHT, request, 15, "");
    assert_null(sent(h, CLIENT, CK_MSG_REPLY)); /* it has been answered */

    command(h, CK_COMMAND_SAVEPOINT, 1);
    request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    taken(h, 1, 1, request, 16, "");
    ended(h, 2, RIGHT, 1, CK_TASK_FAILED, "disk", 0);
    ASSERT_IN(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.error, "the savepoint was not completed");
    command(h, CK_COMMAND_SAVEPOINT, 1); /* while one restarts */
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.status, CK_REFUSED);
    assert_int_equal(count_sent(h, CK_MSG_TAKE_SAVEPOINT), 0);
}

static void one_that_has_finished_has_its_last_checkpoint_for_one(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_SAVEPOINT, 1);
    uint64_t request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    checkpoint(h, 2, RIGHT, 1, 21);
    ended(h, 2, RIGHT, 1, CK_TASK_FINISHED, "", 0); /* it came to its end before it heard of it */
    assert_null(sent(h, CLIENT, CK_MSG_REPLY));
    taken(h, 1, 1, request, 20, "");
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.checkpoint, 21);
    command(h, CK_COMMAND_SAVEPOINT, 1); /* and another time it is not asked */
    assert_null(sent(h, 2, CK_MSG_TAKE_SAVEPOINT));
    request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    taken(h, 1, 1, request, 22, "");
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.checkpoint, 22);
    command(h, CK_COMMAND_STOP, 1);
    request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    taken(h, 1, 1, request, 23, "");
    assert_null(sent(h, CLIENT, CK_MSG_REPLY)); /* its tasks have not ended */
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_int_equal(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.checkpoint, 23);
    ASSERT_STATE(h, 1, "finished");
}

/* One has its savepoint and has ended with it; the other one fails, and its restart goes on. */
static void a_stop_that_one_does_not_come_to_is_no_end(void **state) {
    harness *h = *state;
    run_both(h, 2);
    command(h, CK_COMMAND_STOP, 1);
    const uint64_t request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    taken(h, 1, 1, request, 5, "");
    taken(h, 2, RIGHT, request, 6, "");
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_null(sent(h, CLIENT, CK_MSG_REPLY));
    ended(h, 2, RIGHT, 1, CK_TASK_FAILED, "disk", 0);
    ASSERT_IN(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.error, "savepoint 6 is complete, and job 1 did not end with it");
    ASSERT_IN(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.error, "regions that have theirs end all the same");
}

/* ---- another leader ---- */

static void hosted(harness *h, int worker, uint64_t job, uint64_t attempt) {
    const ck_msg_hosted x = {job, attempt, CK_HOST_STARTED, CK_VIEW("10.0.0.1:1"), 0};
    register_with(h, worker, (uint64_t)worker + 10, (uint64_t)worker, 2, &x, 1);
    OK(h->last);
}

static void the_next_leader_finds_both(void **state) {
    harness *h = *state;
    run_both(h, 2);
    checkpoint(h, 2, RIGHT, 1, 11);
    next_leader(h);
    ASSERT_STATE(h, 1, "recovering");
    hosted(h, 1, 1, 1);
    ASSERT_TEXT(region(h, 0).state, "running");
    ASSERT_TEXT(region(h, 1).state, "recovering");
    hosted(h, 2, RIGHT, 1);
    ASSERT_STATE(h, 1, "running");
    assert_int_equal(region(h, 1).checkpoint, 11);
    assert_int_equal(count_sent(h, CK_MSG_CANCEL_JOB), 0);
    assert_int_equal(region(h, 0).attempt, 1);
    assert_int_equal(region(h, 1).attempt, 1);
}

static void it_restarts_what_does_not_come_back(void **state) {
    harness *h = *state;
    run_both(h, 2);
    next_leader(h);
    hosted(h, 2, RIGHT, 1);
    pass(h, 2500, "2");
    assert_int_equal(region(h, 0).attempt, 2);
    assert_int_equal(region(h, 1).attempt, 1);
    ASSERT_TEXT(region(h, 1).state, "running");
}

/* The last leader died between the record of one region's end and what it would have told the others. */
static void it_ends_what_was_to_follow(void **state) {
    harness *h = *state;
    run_both(h, 2);
    ck_message m;
    ck_frame *old = h->records[1];
    OK(ck_message_read(old, &h->arena, &m, NULL));
    static const uint32_t over[] = {5}; /* TASK_ENDED */
    m.as.job.state = 7;                 /* JOB_FAILED */
    m.as.job.states = (ck_proto_uints){over, 1};
    m.as.job.error = CK_VIEW("disk");
    OK(ck_message_frame(h->cfg.mem, &m, &h->records[1], NULL));
    ck_frame_free(&old);
    next_leader(h);
    ASSERT_STATE(h, 1, "failing");
    hosted(h, 2, RIGHT, 1);
    assert_int_equal(sent(h, 12, CK_MSG_CANCEL_JOB)->as.fence.job, RIGHT);
    ended(h, 2, RIGHT, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "failed");
    ASSERT_TEXT(info(h, 1)->error, "disk");
}

static void a_record_that_lacks_a_region_is_damaged(void **state) {
    harness *h = *state;
    run_both(h, 2);
    ck_message m;
    ck_error err = CK_ERROR_INIT;
    ck_coordinator *c;
    OK(ck_message_read(h->records[1], &h->arena, &m, NULL));
    m.as.job.regions.count = 0;
    OK(ck_coordinator_new(&h->cfg, &c, NULL));
    assert_int_equal(ck_coordinator_recover(c, &m, &err), CK_CORRUPT);
    ASSERT_IN(ck_view_of(err.msg), "not a state for each region");
    ck_coordinator_free(c);
}

/* ---- what is refused ---- */

static void refused(harness *h, const ck_msg_role *list, uint32_t count, const char *why) {
    ck_msg_submit m = plain_job("/c");
    m.roles = (ck_proto_list){list, count};
    submit(h, &m);
    ASSERT_IN(sent(h, CLIENT, CK_MSG_REPLY)->as.reply.error, why);
    assert_int_equal(count_sent(h, CK_MSG_DEPLOY), 0);
}

static void regions_that_are_none_are_refused(void **state) {
    harness *h = *state;
    static const uint32_t second[] = {1};
    const ck_msg_role gap[] = {{.name = {"a", 1}, .parallelism = 1}, {.name = {"b", 1}, .parallelism = 1, .region = 2}};
    const ck_msg_role joined[] = {{.name = {"a", 1}, .parallelism = 1, .peers = {second, 1}},
                                  {.name = {"b", 1}, .parallelism = 1, .region = 1}};
    join(h, 1, 4);
    refused(h, gap, 2, "a region without roles");
    refused(h, joined, 2, "a peer in another region");
}

static void all_have_slots_or_none(void **state) {
    harness *h = *state;
    join(h, 1, 1);
    refused(h, roles, 2, "no slot available: the job needs 2");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_is_deployed_as_a_job_of_its_own),
        T(a_job_of_one_is_told_of_no_regions),
        T(only_the_region_that_lost_a_task_restarts),
        T(an_error_redeploys_its_region_alone),
        T(each_has_a_budget),
        T(one_that_fails_for_good_ends_the_others),
        T(one_that_is_suspended_leaves_the_others_running),
        T(it_has_finished_when_all_have),
        T(a_cancel_is_of_all),
        T(so_is_a_drop),
        T(a_region_is_no_job_to_a_client),
        T(a_savepoint_is_one_of_each),
        T(without_one_of_them_there_is_none),
        T(one_that_has_finished_has_its_last_checkpoint_for_one),
        T(a_stop_that_one_does_not_come_to_is_no_end),
        T(the_next_leader_finds_both),
        T(it_restarts_what_does_not_come_back),
        T(it_ends_what_was_to_follow),
        T(a_record_that_lacks_a_region_is_damaged),
        T(regions_that_are_none_are_refused),
        T(all_have_slots_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
