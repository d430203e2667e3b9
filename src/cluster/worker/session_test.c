#include "cluster/worker/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

enum { ACTIONS_MAX = 64 };

typedef struct fixture {
    ck_test_proc t;
    ck_mem mem;
    ck_arena arena;
    ck_session *s;
    int64_t now_us; /* of what is heard */
    struct {
        ck_session_action_kind kind;
        uint64_t job, attempt;
        ck_message m;
    } log[ACTIONS_MAX];
    uint32_t count;
} fixture;

static const ck_session_config *config(fixture *f) {
    static ck_session_config cfg;
    cfg = (ck_session_config){
        .mem = f->mem, .worker = CK_VIEW("w1"), .address = CK_VIEW("127.0.0.1:7001"), .incarnation = 5, .slots = 4};
    return &cfg;
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    f.now_us = 1000;
    f.mem = ck_proc_mem(&f.t.proc, CK_MEM_PLAN);
    ck_arena_init(&f.arena, f.mem, 64 << 20);
    *state = &f;
    return ck_session_new(config(&f), &f.s, NULL) == CK_OK ? 0 : -1;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_session_free(f->s);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static void take(fixture *f) {
    f->count = 0;
    for (ck_session_action *a; (a = ck_session_next(f->s)) != NULL; ck_session_action_free(f->s, a)) {
        assert_true(f->count < ACTIONS_MAX);
        f->log[f->count].kind = a->kind, f->log[f->count].job = a->job, f->log[f->count].attempt = a->attempt;
        if (a->frame) {
            ck_frame copy = {.kind = a->frame->kind, .n = a->frame->n, .p = ck_arena_alloc(&f->arena, a->frame->n + 1)};
            memcpy(copy.p, a->frame->p, a->frame->n);
            OK(ck_message_read(&copy, &f->arena, &f->log[f->count].m, NULL));
        }
        f->count++;
    }
}

static uint32_t count(const fixture *f, ck_session_action_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->count; i++) n += f->log[i].kind == kind;
    return n;
}

static const ck_message *said(const fixture *f, ck_message_kind kind) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->log[i].kind == CK_SESSION_SEND && f->log[i].m.kind == kind) return &f->log[i].m;
    return NULL;
}

static ck_status tell(fixture *f, const ck_message *m) {
    ck_status s = ck_session_heard(f->s, f->now_us, m, NULL);
    take(f);
    return s;
}

static void welcome(fixture *f, uint64_t epoch) {
    OK(ck_session_connected(f->s, 1000, NULL));
    take(f);
    OK(ck_session_heard(f->s, 1000,
                        &(ck_message){.kind = CK_MSG_WELCOME,
                                      .as.welcome = {.fence.epoch = epoch, .heartbeat_ms = 666, .timeout_ms = 2000}},
                        NULL));
}

static void deploy(fixture *f, uint64_t epoch, uint64_t attempt) {
    OK(tell(f,
            &(ck_message){.kind = CK_MSG_DEPLOY, .as.deploy = {.fence = {epoch, 1, attempt}, .name = CK_VIEW("n")}}));
}
static void cancel(fixture *f, uint64_t epoch, uint64_t attempt) {
    OK(tell(f, &(ck_message){.kind = CK_MSG_CANCEL_JOB, .as.cancel_job.fence = {epoch, 1, attempt}}));
}
static void start(fixture *f, uint64_t attempt) {
    OK(tell(f, &(ck_message){.kind = CK_MSG_START, .as.start.fence = {3, 1, attempt}}));
}
static void ended(fixture *f, uint64_t attempt, ck_task_outcome outcome, const char *error) {
    OK(ck_session_host_ended(f->s, 1, attempt, outcome, 0, ck_view_of(error), NULL));
    take(f);
}

static void beat_at(fixture *f, int64_t us) {
    OK(ck_session_tick(f->s, us, NULL));
    take(f);
}

static void it_registers_and_beats_as_it_is_told(void **state) {
    fixture *f = *state;
    assert_true(ck_session_due(f->s) == INT64_MAX);
    OK(ck_session_connected(f->s, 0, NULL));
    take(f);
    const ck_msg_register *r = &said(f, CK_MSG_REGISTER)->as.reg;
    assert_true(ck_view_is(r->worker, "w1") && ck_view_is(r->address, "127.0.0.1:7001"));
    assert_true(r->incarnation == 5 && r->slots == 4 && r->fence.epoch == 0);
    welcome(f, 3);
    assert_int_equal(ck_session_due(f->s), 1000 + 666000);
    OK(ck_session_tick(f->s, 666999, NULL));
    take(f);
    assert_int_equal(f->count, 0);
    OK(ck_session_tick(f->s, 667000, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_HEARTBEAT)->as.fence.epoch, 3);
    ck_session_disconnected(f->s);
    assert_true(ck_session_due(f->s) == INT64_MAX);
}

static void a_hosts_life_is_reported(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    deploy(f, 3, 1);
    assert_int_equal(f->log[0].kind, CK_SESSION_SPAWN);
    assert_true(ck_view_is(f->log[0].m.as.deploy.name, "n"));
    start(f, 1);
    assert_int_equal(f->count, 0); /* not ready */
    OK(ck_session_host_ready(f->s, 1, 1, CK_VIEW("x:1"), NULL));
    take(f);
    assert_true(ck_view_is(said(f, CK_MSG_READY)->as.ready.address, "x:1"));
    start(f, 1);
    assert_int_equal(count(f, CK_SESSION_START), 1);
    start(f, 1);
    assert_int_equal(f->count, 0); /* once */
    OK(ck_session_host_checkpoint(f->s, 1, 1, 9, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_CHECKPOINT)->as.checkpoint.checkpoint, 9);
    ended(f, 1, CK_TASK_FAILED, "boom");
    assert_true(ck_view_is(said(f, CK_MSG_ENDED)->as.ended.error, "boom"));
    assert_int_equal(said(f, CK_MSG_ENDED)->as.ended.outcome, CK_TASK_FAILED);
    ended(f, 1, CK_TASK_FAILED, "boom");
    assert_int_equal(f->count, 0);
}

/* A leader that was stopped reads it when it leads no more, one that is killed never does: its successor would take the
 * host for lost, and run again what has ended well. */
static void an_end_is_said_until_a_leader_has_heard_it(void **state) {
    fixture *f = *state;
    const ck_message answer = {.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence.epoch = 4};
    welcome(f, 3);
    deploy(f, 3, 1);
    ended(f, 1, CK_TASK_FINISHED, "");
    assert_non_null(said(f, CK_MSG_ENDED));
    ck_session_disconnected(f->s);
    OK(ck_session_connected(f->s, 1000, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_REGISTER)->as.reg.hosted.count, 1);
    beat_at(f, 1000);
    OK(tell(f, &(ck_message){.kind = CK_MSG_WELCOME, .as.welcome = {.fence.epoch = 4, .heartbeat_ms = 1}}));
    assert_int_equal(said(f, CK_MSG_ENDED)->as.fence.epoch, 4);
    beat_at(f, 2000);
    assert_null(said(f, CK_MSG_ENDED)); /* once over each connection */
    OK(tell(f, &answer));
    ck_session_disconnected(f->s);
    OK(ck_session_connected(f->s, 3000, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_REGISTER)->as.reg.hosted.count, 0);
}

/* One that was under way says nothing of what came behind it. */
static void an_answer_to_an_earlier_heartbeat_is_none_to_an_end(void **state) {
    fixture *f = *state;
    const ck_message answer = {.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence.epoch = 3};
    welcome(f, 3);
    deploy(f, 3, 1);
    beat_at(f, 667000);
    ended(f, 1, CK_TASK_FINISHED, "");
    OK(tell(f, &answer));
    ck_session_disconnected(f->s);
    welcome(f, 4);
    take(f);
    assert_non_null(said(f, CK_MSG_ENDED));
}

static const ck_msg_progress *progress_said(const fixture *f, uint32_t count) {
    const ck_message *m = said(f, CK_MSG_HEARTBEAT);
    assert_non_null(m);
    assert_int_equal(m->as.heartbeat.progress.count, count);
    return m->as.heartbeat.progress.items;
}

static void progress_goes_with_heartbeats_once_and_first_rows_at_once(void **state) {
    fixture *f = *state;
    char note[CK_CLUSTER_NOTE_MAX + 50];
    memset(note, 'n', sizeof note);
    ck_progress p = {1, 10, 4, CK_EVENT_TIME_HELD, -5, {note, sizeof note}, 0, 0};
    welcome(f, 3);
    deploy(f, 3, 1);
    OK(ck_session_host_progress(f->s, 1, 2, &p, NULL)); /* there is no such host */
    beat_at(f, 667000);
    (void)progress_said(f, 0);
    p.rows_in = 0;
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    take(f);
    assert_int_equal(f->count, 0);
    p.rows_in = 10;
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    take(f);
    assert_int_equal(progress_said(f, 1)->progress.rows_in, 10);
    p.rows_in = 15;
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    p.rows_in = 20;
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL)); /* the last word counts */
    beat_at(f, 1332000);
    assert_int_equal(f->count, 0); /* beats of 666 ms are often enough */
    beat_at(f, 1333000);
    const ck_msg_progress *said_of = progress_said(f, 1);
    assert_true(said_of->fence.job == 1 && said_of->fence.attempt == 1);
    assert_true(said_of->progress.rows_in == 20 && said_of->progress.watermark_us == -5);
    assert_int_equal(said_of->progress.note.n, CK_CLUSTER_NOTE_MAX);
    beat_at(f, 2000000);
    (void)progress_said(f, 0);
}

static void rare_heartbeats_come_early_for_it(void **state) {
    fixture *f = *state;
    const ck_progress p = {.known = 1};
    OK(ck_session_connected(f->s, 0, NULL));
    OK(ck_session_heard(f->s, 0,
                        &(ck_message){.kind = CK_MSG_WELCOME,
                                      .as.welcome = {.fence.epoch = 3, .heartbeat_ms = 10000, .timeout_ms = 30000}},
                        NULL));
    deploy(f, 3, 1);
    assert_int_equal(ck_session_due(f->s), 10000000);
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    assert_int_equal(ck_session_due(f->s), 1000000);
    beat_at(f, 999999);
    assert_int_equal(f->count, 0);
    beat_at(f, 1000000);
    (void)progress_said(f, 1);
    assert_int_equal(ck_session_due(f->s), 11000000);
}

/* A leader whose machine has gone, or that hangs: the connection stands, and only its silence tells. */
static void who_does_not_answer_is_left(void **state) {
    fixture *f = *state;
    const ck_message answer = {.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence.epoch = 3};
    welcome(f, 3);
    deploy(f, 3, 1);
    for (int64_t us = 600000; us <= 6000000; us += 600000) {
        beat_at(f, us);
        assert_int_equal(count(f, CK_SESSION_CLOSE), 0);
        OK(ck_session_heard(f->s, us, &answer, NULL));
    }
    for (int64_t us = 6600000; us < 8000000; us += 600000) beat_at(f, us);
    beat_at(f, 8000000);
    assert_int_equal(count(f, CK_SESSION_CLOSE), 0); /* not longer than the timeout */
    beat_at(f, 8000001);
    assert_int_equal(count(f, CK_SESSION_CLOSE), 1);
    assert_null(said(f, CK_MSG_HEARTBEAT));
    assert_true(ck_session_due(f->s) == INT64_MAX);
    assert_int_equal(ck_session_host_count(f->s), 1); /* what runs goes on */
    beat_at(f, 9000000);
    assert_int_equal(f->count, 0);
}

/* Nor does one count that takes connections and never says WELCOME. */
static void who_does_not_welcome_is_left(void **state) {
    fixture *f = *state;
    OK(ck_session_connected(f->s, 0, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_REGISTER)->as.reg.turn, 1);
    assert_true(ck_session_due(f->s) < 5000000);
    for (int64_t us = 1000000; us <= 5000000; us += 1000000) beat_at(f, us);
    assert_int_equal(f->count, 0);
    beat_at(f, 5000001);
    assert_int_equal(count(f, CK_SESSION_CLOSE), 1);
    OK(ck_session_connected(f->s, 6000000, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_REGISTER)->as.reg.turn, 2);
}

/* A process that was stopped has heard nothing, which says nothing of who spoke. */
static void a_suspended_worker_leaves_nobody(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    beat_at(f, 3600000000);
    assert_int_equal(count(f, CK_SESSION_CLOSE), 0);
    assert_non_null(said(f, CK_MSG_HEARTBEAT));
    for (int64_t us = 3600600000; us < 3602000000; us += 600000) beat_at(f, us);
    beat_at(f, 3602000001);
    assert_int_equal(count(f, CK_SESSION_CLOSE), 1);
}

static void the_last_progress_comes_before_the_end(void **state) {
    fixture *f = *state;
    const ck_progress p = {.known = 1, .rows_in = 7};
    welcome(f, 3);
    deploy(f, 3, 1);
    OK(ck_session_host_progress(f->s, 1, 1, &(ck_progress){.known = 1, .rows_in = 3}, NULL));
    take(f);
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    ended(f, 1, CK_TASK_FINISHED, "");
    assert_int_equal(f->count, 2);
    assert_int_equal(f->log[0].m.kind, CK_MSG_HEARTBEAT);
    assert_int_equal(progress_said(f, 1)->progress.rows_in, 7);
    assert_int_equal(f->log[1].m.kind, CK_MSG_ENDED);
}

static void whoever_leads_next_hears_of_it(void **state) {
    fixture *f = *state;
    const ck_progress p = {.known = 1, .rows_in = 7};
    welcome(f, 3);
    deploy(f, 3, 1);
    OK(ck_session_host_progress(f->s, 1, 1, &p, NULL));
    take(f);
    (void)progress_said(f, 1);
    ck_session_disconnected(f->s);
    welcome(f, 4);
    beat_at(f, 2000000);
    assert_int_equal(progress_said(f, 1)->progress.rows_in, 7);
}

static void what_was_told_to_end_was_cancelled(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    deploy(f, 3, 1);
    cancel(f, 3, 1);
    assert_int_equal(count(f, CK_SESSION_KILL), 1);
    cancel(f, 3, 1);
    assert_int_equal(f->count, 0);
    ended(f, 1, CK_TASK_FAILED, "killed by a signal");
    assert_int_equal(said(f, CK_MSG_ENDED)->as.ended.outcome, CK_TASK_CANCELLED);
}

static void of_a_job_there_is_one_host(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    deploy(f, 3, 1);
    deploy(f, 3, 2);
    assert_int_equal(count(f, CK_SESSION_SPAWN), 0);
    assert_int_equal(count(f, CK_SESSION_KILL), 1);
    deploy(f, 3, 3); /* 2 never gets a process */
    assert_int_equal(said(f, CK_MSG_ENDED)->as.fence.attempt, 2);
    deploy(f, 3, 2); /* came late */
    assert_int_equal(f->count, 0);
    ended(f, 1, CK_TASK_FINISHED, "");
    assert_int_equal(count(f, CK_SESSION_SPAWN), 1);
    assert_int_equal(f->log[f->count - 1].attempt, 3);
    assert_int_equal(ck_session_host_count(f->s), 1);
}

static void whoever_leads_next_is_told_of_all_hosts(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    deploy(f, 3, 1);
    ck_session_disconnected(f->s);
    OK(ck_session_host_ready(f->s, 1, 1, CK_VIEW("x:1"), NULL));
    OK(ck_session_host_checkpoint(f->s, 1, 1, 7, NULL));
    take(f);
    assert_int_equal(f->count, 0);
    OK(ck_session_connected(f->s, 5000, NULL));
    take(f);
    const ck_msg_register *r = &said(f, CK_MSG_REGISTER)->as.reg;
    const ck_msg_hosted *h = r->hosted.items;
    assert_int_equal(r->fence.epoch, 3);
    assert_int_equal(r->hosted.count, 1);
    assert_true(h->phase == CK_HOST_READY && h->checkpoint == 7 && ck_view_is(h->address, "x:1"));
    ck_session_disconnected(f->s);
    ended(f, 1, CK_TASK_FAILED, "while nobody heard");
    assert_int_equal(f->count, 0);
    welcome(f, 4);
    take(f);
    assert_true(ck_view_is(said(f, CK_MSG_ENDED)->as.ended.error, "while nobody heard"));
    assert_int_equal(said(f, CK_MSG_ENDED)->as.fence.epoch, 4);
}

/* READY between REGISTER and WELCOME is not lost. */
static void what_happens_before_the_welcome_is_said_after_it(void **state) {
    fixture *f = *state;
    welcome(f, 3);
    deploy(f, 3, 1);
    ck_session_disconnected(f->s);
    OK(ck_session_connected(f->s, 5000, NULL));
    OK(ck_session_host_ready(f->s, 1, 1, CK_VIEW("x:1"), NULL));
    take(f);
    assert_null(said(f, CK_MSG_READY));
    OK(tell(f, &(ck_message){.kind = CK_MSG_WELCOME, .as.welcome.fence.epoch = 3}));
    assert_non_null(said(f, CK_MSG_READY));
}

static void words_of_the_past_have_no_effect(void **state) {
    fixture *f = *state;
    assert_int_equal(tell(f, &(ck_message){.kind = CK_MSG_DEPLOY}), CK_CORRUPT); /* nobody has been welcomed */
    welcome(f, 3);
    deploy(f, 2, 1);
    assert_int_equal(f->count, 0);
    deploy(f, 3, 1);
    cancel(f, 2, 1);
    assert_int_equal(f->count, 0);
    cancel(f, 3, 9); /* no such attempt */
    assert_int_equal(f->count, 0);
    assert_int_equal(tell(f, &(ck_message){.kind = CK_MSG_REPLY, .as.reply.fence.epoch = 3}), CK_CORRUPT);
    ck_session_disconnected(f->s);
    OK(ck_session_connected(f->s, 1, NULL));
    assert_int_equal(tell(f, &(ck_message){.kind = CK_MSG_WELCOME, .as.welcome.fence.epoch = 2}), CK_REFUSED);
}

static void savepoints_are_passed_on(void **state) {
    fixture *f = *state;
    const ck_message ask = {.kind = CK_MSG_TAKE_SAVEPOINT, .as.take_savepoint = {.fence = {3, 1, 1}, .request = 8}};
    welcome(f, 3);
    deploy(f, 3, 1);
    OK(tell(f, &ask));
    assert_int_equal(f->count, 0);
    OK(ck_session_host_ready(f->s, 1, 1, CK_VIEW("x:1"), NULL));
    start(f, 1);
    OK(tell(f, &ask));
    assert_int_equal(f->log[0].m.as.take_savepoint.request, 8);
    const ck_msg_savepoint_ended done = {.request = 8, .checkpoint = 4};
    OK(ck_session_host_savepoint(f->s, 1, 1, &done, NULL));
    take(f);
    assert_int_equal(said(f, CK_MSG_SAVEPOINT_ENDED)->as.savepoint_ended.checkpoint, 4);
    assert_int_equal(said(f, CK_MSG_SAVEPOINT_ENDED)->as.fence.attempt, 1);
}

/* 2,000 hosts leave nothing behind, whether they were told to end or ended by themselves. */
static void memory_does_not_grow_with_hosts_that_were(void **state) {
    fixture *f = *state;
    size_t after_2 = 0;
    welcome(f, 3);
    for (uint64_t attempt = 1; attempt <= 2000; attempt++) {
        ck_arena_destroy(&f->arena);
        ck_arena_init(&f->arena, f->mem, 64 << 20);
        f->now_us = (int64_t)attempt * 667000;
        deploy(f, 3, attempt);
        if (attempt % 2) cancel(f, 3, attempt);
        ended(f, attempt, CK_TASK_FAILED, "boom");
        beat_at(f, f->now_us);
        OK(tell(f, &(ck_message){.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence.epoch = 3}));
        ck_arena_destroy(&f->arena);
        assert_int_equal(ck_session_host_count(f->s), 0);
        if (attempt == 2) after_2 = ck_tracked_heap_live_bytes(f->t.heap);
    }
    assert_int_equal(ck_tracked_heap_live_bytes(f->t.heap), after_2);
    ck_arena_init(&f->arena, f->mem, 64 << 20);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    for (uint64_t n = 1;; n++) {
        ck_session *s = NULL;
        const ck_message hello = {.kind = CK_MSG_WELCOME, .as.welcome.fence.epoch = 3};
        const ck_message job = {.kind = CK_MSG_DEPLOY, .as.deploy.fence = {3, 1, 1}};
        const ck_message next = {.kind = CK_MSG_DEPLOY, .as.deploy.fence = {3, 1, 2}};
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status st = ck_session_new(config(f), &s, NULL);
        if (st == CK_OK) st = ck_session_connected(s, 1, NULL);
        if (st == CK_OK) st = ck_session_heard(s, 1, &hello, NULL);
        if (st == CK_OK) st = ck_session_heard(s, 1, &job, NULL);
        if (st == CK_OK) st = ck_session_host_ready(s, 1, 1, CK_VIEW("x"), NULL);
        if (st == CK_OK) st = ck_session_host_progress(s, 1, 1, &(ck_progress){.known = 1, .rows_in = 1}, NULL);
        if (st == CK_OK) st = ck_session_tick(s, 1000000, NULL);
        if (st == CK_OK) st = ck_session_heard(s, 1, &next, NULL);
        if (st == CK_OK) st = ck_session_host_ended(s, 1, 1, CK_TASK_FAILED, 0, CK_VIEW("x"), NULL);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        ck_session_free(s);
        assert_int_equal(st, fired ? CK_NOMEM : CK_OK);
        if (!fired) return;
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(it_registers_and_beats_as_it_is_told),
        T(a_hosts_life_is_reported),
        T(an_end_is_said_until_a_leader_has_heard_it),
        T(an_answer_to_an_earlier_heartbeat_is_none_to_an_end),
        T(progress_goes_with_heartbeats_once_and_first_rows_at_once),
        T(rare_heartbeats_come_early_for_it),
        T(who_does_not_answer_is_left),
        T(who_does_not_welcome_is_left),
        T(a_suspended_worker_leaves_nobody),
        T(the_last_progress_comes_before_the_end),
        T(whoever_leads_next_hears_of_it),
        T(what_was_told_to_end_was_cancelled),
        T(of_a_job_there_is_one_host),
        T(whoever_leads_next_is_told_of_all_hosts),
        T(what_happens_before_the_welcome_is_said_after_it),
        T(words_of_the_past_have_no_effect),
        T(savepoints_are_passed_on),
        T(memory_does_not_grow_with_hosts_that_were),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
