/* What clients ask; bounds; memory. */
#include "cluster/coordinator/harness_test_support.h"

static const ck_msg_reply *answer(const harness *h) {
    const ck_message *m = sent(h, CLIENT, CK_MSG_REPLY);
    assert_non_null(m);
    return &m->as.reply;
}

static void a_job_is_listed_with_what_it_does(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_LIST, 0);
    const ck_msg_job_info *i = answer(h)->jobs.items;
    assert_int_equal(answer(h)->jobs.count, 1);
    assert_int_equal(i->id, 1);
    ASSERT_TEXT(i->name, "flights");
    ASSERT_TEXT(i->state, "running");
    assert_int_equal(i->tasks, 4);
    assert_int_equal(i->tasks_running, 4);
    assert_int_equal(i->restarts_max, 10);
    ASSERT_TEXT(task_of(h, 1, 3)->role, "sink");
    assert_int_equal(task_of(h, 1, 3)->index, 1);
    ASSERT_TEXT(task_of(h, 1, 3)->worker, "w2");
    command(h, CK_COMMAND_STATUS, 2);
    assert_int_equal(answer(h)->status, CK_NOTFOUND);
    ASSERT_TEXT(answer(h)->error, "there is no job 2");
}

static void what_cannot_run_is_refused_with_a_sentence(void **state) {
    harness *h = *state;
    ck_msg_submit good = plain_job("/c"), job;
    static const ck_msg_role empty[] = {{.name = {"a", 1}}};
    static const uint32_t nobody[] = {1};
    static const ck_msg_role lost[] = {{.name = {"a", 1}, .parallelism = 1, .peers = {nobody, 1}}};
    submit(h, &good);
    assert_int_equal(answer(h)->status, CK_REFUSED);
    ASSERT_IN(answer(h)->error, "no slot available: the job needs 4");
    join(h, 1, 8);
    job = good, job.name = CK_VIEW(""), submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    job = good, job.roles = (ck_proto_list){0}, submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    job = good, job.roles = (ck_proto_list){empty, 1}, submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    job = good, job.roles = (ck_proto_list){lost, 1}, submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    static const ck_msg_plugin nameless[] = {{.hash = {"../x", 4}, .bytes = 9}};
    job = good, job.plugins = (ck_proto_list){nameless, 1}, submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    ASSERT_IN(answer(h)->error, "a plugin that has no SHA-256");
    job = good, job.max_restarts_on_worker_loss = -2, submit(h, &job);
    assert_int_equal(answer(h)->status, CK_INVALID);
    submit(h, &good);
    assert_int_equal(answer(h)->status, CK_OK);
    submit(h, &good);
    assert_int_equal(answer(h)->status, CK_EXISTS);
    ASSERT_IN(answer(h)->error, "job 1 of the same name");
    command(h, CK_COMMAND_LIST, 0);
    assert_int_equal(answer(h)->jobs.count, 1);
}

static void a_cancel_waits_for_all_tasks(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_WAIT, 1);
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0);
    command(h, CK_COMMAND_CANCEL, 1);
    ASSERT_STATE(h, 1, "cancelling");
    ended(h, 1, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_STATE(h, 1, "cancelling");
    ended(h, 2, 1, 1, CK_TASK_CANCELLED, "", 0);
    ASSERT_TEXT(((const ck_msg_job_info *)answer(h)->jobs.items)->state, "cancelled");
    command(h, CK_COMMAND_CANCEL, 1);
    assert_int_equal(answer(h)->status, CK_REFUSED);
}

/* Into each state a job can be in, from running as attempt 1 on one worker. */
static void restarts_later(harness *h, uint64_t id) { /* the first restart is at once */
    ended(h, 1, id, 1, CK_TASK_FAILED, "x", 0);
    ready(h, 1, id, 2);
    ended(h, 1, id, 2, CK_TASK_FAILED, "x", 0);
}
static void drains_for_a_restart(harness *h, uint64_t id) { one_ended(h, 1, id, 1, 0, CK_TASK_FAILED, "x"); }
static void is_being_cancelled(harness *h, uint64_t id) { command(h, CK_COMMAND_CANCEL, id); }
static void is_suspended(harness *h, uint64_t id) { ended(h, 1, id, 1, CK_TASK_FAILED, "x", CK_ENDED_DATA); }
static void has_finished(harness *h, uint64_t id) { ended(h, 1, id, 1, CK_TASK_FINISHED, "", 0); }
static void has_failed(harness *h, uint64_t id) { ended(h, 1, id, 1, CK_TASK_FAILED, "x", CK_ENDED_FATAL); }
static void was_cancelled(harness *h, uint64_t id) {
    command(h, CK_COMMAND_CANCEL, id);
    ended(h, 1, id, 1, CK_TASK_CANCELLED, "", 0);
}
static void ends_for(harness *h, uint64_t id, uint64_t flags) {
    uint32_t first = 0;
    say(h, h->conn_of[1],
        &(ck_message){.kind = CK_MSG_ENDED,
                      .as.ended = {.fence = fence(h, id, 1),
                                   .tasks = {&first, 1},
                                   .outcome = CK_TASK_FAILED,
                                   .flags = flags,
                                   .error = CK_VIEW("x")}});
}
static void is_being_suspended(harness *h, uint64_t id) { ends_for(h, id, CK_ENDED_DATA); }
static void is_failing(harness *h, uint64_t id) { ends_for(h, id, CK_ENDED_FATAL); }
static void stays_as_it_is(harness *h, uint64_t id) { (void)h, (void)id; }
static void waits_for_its_worker(harness *h, uint64_t id) {
    (void)id;
    next_leader(h);
}

/* The answer comes in the same event: no time passes, whatever the job does and however long its tasks take to end. */
static void a_job_is_dropped_in_every_state(void **state) {
    static const struct {
        void (*into)(harness *h, uint64_t id);
        const char *state;
        bool works; /* its tasks may, until the worker says otherwise, and keep their slots */
    } cases[] = {
        {NULL, "deploying", true},
        {stays_as_it_is, "running", true},
        {drains_for_a_restart, "awaiting_restart", true},
        {restarts_later, "restarting", false},
        {is_being_suspended, "suspending", true},
        {is_suspended, "suspended", false},
        {is_being_cancelled, "cancelling", true},
        {is_failing, "failing", true},
        {has_finished, "finished", false},
        {has_failed, "failed", false},
        {was_cancelled, "cancelled", false},
        {waits_for_its_worker, "recovering", false}, /* last: who leads after it knows of no worker */
    };
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    join(h, 1, 8);
    for (uint64_t id = 1; id <= CK_ARRAY_COUNT(cases); id++) {
        submit(h, &job);
        if (cases[id - 1].into) {
            ready(h, 1, id, 1);
            cases[id - 1].into(h, id);
        }
        ASSERT_STATE(h, id, cases[id - 1].state);
        command(h, CK_COMMAND_DROP, id);
        assert_int_equal(answer(h)->status, CK_OK);
        assert_null(h->records[id]);
        command(h, CK_COMMAND_STATUS, id);
        assert_int_equal(answer(h)->status, CK_NOTFOUND);
        if (id == CK_ARRAY_COUNT(cases)) break;
        if (cases[id - 1].works) {
            assert_true(ck_coordinator_free_slots(h->c) < 8);
            ended(h, 1, id, 1, CK_TASK_CANCELLED, "", 0);
        }
        assert_int_equal(ck_coordinator_free_slots(h->c), 8);
        assert_null(h->records[id]);
    }
    command(h, CK_COMMAND_LIST, 0);
    assert_int_equal(answer(h)->jobs.count, 0);
    const ck_msg_hosted mine = {.job = CK_ARRAY_COUNT(cases), .attempt = 1, .phase = CK_HOST_STARTED};
    register_with(h, 1, 1, 1, 8, &mine, 1); /* and a worker that comes back with it is told to end it */
    assert_non_null(sent(h, 1, CK_MSG_CANCEL_JOB));
}

static void a_savepoint_is_asked_of_process_0(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_STOP, 1);
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0);
    const ck_message *m = sent(h, 1, CK_MSG_TAKE_SAVEPOINT);
    assert_int_equal(m->as.take_savepoint.stop, 1);
    uint64_t request = m->as.take_savepoint.request;
    ck_msg_savepoint_ended done = {.fence = fence(h, 1, 1), .request = request, .checkpoint = 12};
    say(h, 1, &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED, .as.savepoint_ended = done});
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0); /* the job has not ended */
    command(h, CK_COMMAND_SAVEPOINT, 1);
    done.request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request;
    done.checkpoint = 13;
    say(h, 1, &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED, .as.savepoint_ended = done});
    assert_int_equal(answer(h)->checkpoint, 13);
    ASSERT_TEXT(answer(h)->checkpoint_dir, "/c");
    say(h, 1, &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED, .as.savepoint_ended = done});
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0); /* nobody waits any more */
    command(h, CK_COMMAND_SAVEPOINT, 1);
    ended(h, 1, 1, 1, CK_TASK_FAILED, "x", 0); /* and this one does not come about, nor does the end */
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 2);
    ASSERT_IN(answer(h)->error, "savepoint 12 is complete, and job 1 did not end with it");
    command(h, CK_COMMAND_SAVEPOINT, 1);
    assert_int_equal(answer(h)->status, CK_REFUSED);
}

/* Who then looks at the list finds it so, and its slots free. */
static void a_stop_is_answered_when_the_job_has_ended(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_STOP, 1);
    ck_msg_savepoint_ended done = {.fence = fence(h, 1, 1),
                                   .request = sent(h, 1, CK_MSG_TAKE_SAVEPOINT)->as.take_savepoint.request,
                                   .checkpoint = 12};
    say(h, 1, &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED, .as.savepoint_ended = done});
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 0);
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_int_equal(answer(h)->checkpoint, 12);
    ASSERT_TEXT(((const ck_msg_job_info *)answer(h)->jobs.items)->state, "finished");
    assert_int_equal(ck_coordinator_free_slots(h->c), 4);
}

/* Its host has ended without having read the question. */
static void a_savepoint_of_a_job_that_ends_by_itself_is_answered(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    command(h, CK_COMMAND_SAVEPOINT, 1);
    command(h, CK_COMMAND_STOP, 1);
    ended(h, 1, 1, 1, CK_TASK_FINISHED, "", 0);
    ended(h, 2, 1, 1, CK_TASK_FINISHED, "", 0);
    assert_int_equal(count_sent(h, CK_MSG_REPLY), 2);
    ASSERT_TEXT(answer(h)->error, "job 1 is finished: the savepoint was not completed");
}

static void clients_that_wait_are_bounded_and_forgotten(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    run_on(h, 2, &job);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++) command(h, CK_COMMAND_WAIT, 1);
        assert_int_equal(count_sent(h, CK_MSG_REPLY), 0);
        command(h, CK_COMMAND_WAIT, 1);
        assert_int_equal(answer(h)->status, CK_FULL);
        OK(ck_coordinator_closed(h->c, h->now_us, CLIENT, NULL));
    }
}

static void strangers_words_close_their_connection(void **state) {
    harness *h = *state;
    say(h, 3, &(ck_message){.kind = CK_MSG_HEARTBEAT});
    assert_int_equal(h->last, CK_REFUSED);
    say(h, 3, &(ck_message){.kind = CK_MSG_DEPLOY});
    assert_int_equal(h->last, CK_CORRUPT);
    say(h, 3, &(ck_message){.kind = CK_MSG_REGISTER, .as.reg = {.worker = CK_VIEW("w"), .incarnation = 1}});
    assert_int_equal(h->last, CK_CORRUPT);
    join(h, 1, 4);
    say(h, 1,
        &(ck_message){.kind = CK_MSG_REGISTER, .as.reg = {.worker = CK_VIEW("other"), .incarnation = 1, .slots = 1}});
    assert_int_equal(h->last, CK_CORRUPT);
}

/* 2,000 submits and cancels leave 100 jobs to look at, and no more memory than after 200. */
static void memory_does_not_grow_with_jobs_that_were(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    size_t after_200 = 0;
    join(h, 1, 4);
    for (uint64_t id = 1; id <= 2000; id++) {
        ck_arena_destroy(&h->arena);
        ck_arena_init(&h->arena, h->cfg.mem, 64 << 20);
        submit(h, &job);
        command(h, CK_COMMAND_CANCEL, id);
        ended(h, 1, id, 1, CK_TASK_CANCELLED, "", 0);
        ck_arena_destroy(&h->arena);
        if (id == 200) after_200 = ck_tracked_heap_live_bytes(h->t.heap);
    }
    assert_int_equal(ck_tracked_heap_live_bytes(h->t.heap), after_200);
    ck_arena_init(&h->arena, h->cfg.mem, 64 << 20);
    command(h, CK_COMMAND_LIST, 0);
    assert_int_equal(answer(h)->jobs.count, 100);
}

/* The description is the most of a job, and needed by task hosts only. */
static void what_hosts_were_told_is_not_kept_of_a_job_that_was(void **state) {
    enum { LONG = 1 << 20 };
    harness *h = *state;
    static char graph[LONG];
    ck_msg_submit job = plain_job("/c");
    memset(graph, 'g', sizeof graph);
    job.spec = (ck_view){graph, sizeof graph};
    join(h, 1, 8);
    for (uint64_t id = 1; id <= 3; id++) {
        submit(h, &job);
        assert_true(h->records[id]->n > LONG);
        if (id == 2) ready(h, 1, id, 1), ended(h, 1, id, 1, CK_TASK_FAILED, "x", CK_ENDED_DATA);
        if (id == 2) ASSERT_STATE(h, id, "suspended");
        assert_true(h->records[id]->n > LONG); /* it may go on */
        command(h, CK_COMMAND_CANCEL, id);
        if (id != 2) ended(h, 1, id, 1, CK_TASK_CANCELLED, "", 0);
        ASSERT_STATE(h, id, "cancelled");
        assert_true(h->records[id]->n < 10000);
    }
    next_leader(h);
    ASSERT_STATE(h, 3, "cancelled");
    ASSERT_TEXT(task_of(h, 3, 3)->role, "sink");
    ck_arena_destroy(&h->arena);
    ck_arena_init(&h->arena, h->cfg.mem, 64 << 20);
    h->count = 0;
    for (uint64_t id = 1; id <= 3; id++) ck_frame_free(&h->records[id]);
    assert_true(ck_tracked_heap_live_bytes(h->t.heap) < LONG);
}

static void every_allocation_may_fail(void **state) {
    harness *h = *state;
    ck_msg_submit job = plain_job("/c");
    for (uint64_t n = 1;; n++) {
        ck_coordinator *c = NULL;
        ck_tracked_heap_fail_nth(h->t.heap, n);
        ck_status s = ck_coordinator_new(&h->cfg, &c, NULL);
        if (s == CK_OK) s = ck_coordinator_begin(c, 1, NULL);
        const ck_message reg = {.kind = CK_MSG_REGISTER,
                                .as.reg = {.worker = CK_VIEW("w"), .incarnation = 1, .slots = 9}};
        const ck_message sub = {.kind = CK_MSG_SUBMIT, .as.submit = job};
        const ck_message rdy = {.kind = CK_MSG_READY, .as.ready.fence = {7, 1, 1}};
        const ck_message ask = {.kind = CK_MSG_COMMAND, .as.command = {.fence.job = 1, .command = CK_COMMAND_STATUS}};
        const ck_message all = {.kind = CK_MSG_COMMAND, .as.command = {.command = CK_COMMAND_LIST}};
        const ck_message end = {.kind = CK_MSG_ENDED, .as.ended = {.fence = {7, 1, 1}, .outcome = CK_TASK_FAILED}};
        const ck_message *const events[] = {&reg, &sub, &rdy, &ask, &all, &end};
        for (size_t i = 0; i < CK_ARRAY_COUNT(events) && s == CK_OK; i++)
            s = ck_coordinator_heard(c, 2, i == 0 || i == 2 || i == 5 ? 1 : 2, events[i], NULL);
        bool fired = ck_tracked_heap_fired(h->t.heap);
        ck_tracked_heap_fail_nth(h->t.heap, 0);
        ck_coordinator_free(c);
        if (!fired) {
            OK(s);
            break;
        }
        assert_true(s == CK_NOMEM || s == CK_OK); /* a SUBMIT is answered that there is no memory for it */
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_job_is_listed_with_what_it_does),
        T(what_cannot_run_is_refused_with_a_sentence),
        T(a_cancel_waits_for_all_tasks),
        T(a_job_is_dropped_in_every_state),
        T(a_savepoint_is_asked_of_process_0),
        T(a_stop_is_answered_when_the_job_has_ended),
        T(a_savepoint_of_a_job_that_ends_by_itself_is_answered),
        T(clients_that_wait_are_bounded_and_forgotten),
        T(strangers_words_close_their_connection),
        T(memory_does_not_grow_with_jobs_that_were),
        T(what_hosts_were_told_is_not_kept_of_a_job_that_was),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
