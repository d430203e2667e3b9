/* For tests of the coordinator: a machine, workers that are numbers, and a journal of what it wants done. */
#ifndef CK_CLUSTER_COORDINATOR_HARNESS_TEST_SUPPORT_H
#define CK_CLUSTER_COORDINATOR_HARNESS_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cluster/coordinator/coordinator.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)
#define MS       1000

enum { ACTIONS_MAX = 400, RECORDS_MAX = 16, CLIENT = 900 };

typedef struct heard {
    ck_action_kind kind;
    uint64_t conn, number;
    char address[64];
    ck_message m; /* SEND, PERSIST */
} heard;

typedef struct harness {
    ck_test_proc t;
    ck_coordinator_config cfg;
    ck_coordinator *c;
    int64_t now_us;
    ck_arena arena; /* of what was heard */
    heard log[ACTIONS_MAX];
    uint32_t count;
    ck_frame *records[RECORDS_MAX]; /* as a store has them */
    uint64_t conn_of[16];
    ck_status last; /* of the last event */
} harness;

static inline void take_actions(harness *h) {
    for (ck_action *a; (a = ck_coordinator_next(h->c)) != NULL; ck_action_free(h->c, a)) {
        assert_true(h->count < ACTIONS_MAX);
        heard *x = &h->log[h->count++];
        *x = (heard){.kind = a->kind, .conn = a->conn, .number = a->number};
        snprintf(x->address, sizeof x->address, "%.60s", a->address);
        if (a->kind == CK_ACTION_FORGET && a->number < RECORDS_MAX) ck_frame_free(&h->records[a->number]);
        if (!a->frame) continue;
        /* the message borrows from a copy that lives as long as the journal */
        ck_frame copy = {.kind = a->frame->kind, .n = a->frame->n};
        copy.p = ck_arena_alloc(&h->arena, a->frame->n + 1);
        memcpy(copy.p, a->frame->p, a->frame->n);
        OK(ck_message_read(&copy, &h->arena, &x->m, NULL));
        if (a->kind == CK_ACTION_PERSIST && a->number < RECORDS_MAX) {
            ck_frame_free(&h->records[a->number]);
            h->records[a->number] = a->frame;
            a->frame = NULL;
        }
    }
}

static inline void begin(harness *h) {
    OK(ck_coordinator_new(&h->cfg, &h->c, NULL));
    for (int i = 0; i < RECORDS_MAX; i++) {
        ck_message m;
        if (!h->records[i]) continue;
        OK(ck_message_read(h->records[i], &h->arena, &m, NULL));
        OK(ck_coordinator_recover(h->c, &m, NULL));
    }
    OK(ck_coordinator_begin(h->c, h->now_us, NULL));
    h->count = 0;
    take_actions(h);
}

/* The process dies; another leads, over the same records. */
static inline void next_leader(harness *h) {
    ck_coordinator_free(h->c);
    h->cfg.epoch++;
    begin(h);
}

static int setup(void **state) {
    static harness h;
    memset(&h, 0, sizeof h);
    ck_test_proc_init(&h.t);
    ck_mem mem = ck_proc_mem(&h.t.proc, CK_MEM_PLAN);
    ck_arena_init(&h.arena, mem, 64 << 20);
    h.cfg = ck_coordinator_defaults(mem, 7);
    h.now_us = 1000000;
    begin(&h);
    *state = &h;
    return 0;
}

static int teardown(void **state) {
    harness *h = *state;
    ck_coordinator_free(h->c);
    for (int i = 0; i < RECORDS_MAX; i++) ck_frame_free(&h->records[i]);
    ck_arena_destroy(&h->arena);
    ck_test_proc_destroy(&h->t);
    return 0;
}

/* ---- events ---- */

static inline void say(harness *h, uint64_t conn, const ck_message *m) {
    ck_error err = CK_ERROR_INIT;
    h->count = 0;
    h->last = ck_coordinator_heard(h->c, h->now_us, conn, m, &err);
    take_actions(h);
}

static inline void register_with(harness *h, int worker, uint64_t conn, uint64_t incarnation, uint32_t slots,
                                 const ck_msg_hosted *hosted, uint32_t hosted_count) {
    char id[16], address[32];
    snprintf(id, sizeof id, "w%d", worker);
    snprintf(address, sizeof address, "127.0.0.1:%d", 7000 + worker);
    h->conn_of[worker] = conn;
    say(h, conn,
        &(ck_message){.kind = CK_MSG_REGISTER,
                      .as.reg = {.worker = ck_view_of(id),
                                 .incarnation = incarnation,
                                 .slots = slots,
                                 .address = ck_view_of(address),
                                 .hosted = {hosted, hosted_count}}});
}

/* Worker n registers with connection and incarnation n. */
static inline void join(harness *h, int worker, uint32_t slots) {
    register_with(h, worker, (uint64_t)worker, (uint64_t)worker, slots, NULL, 0);
    OK(h->last);
}

static inline void beat(harness *h, int worker) {
    say(h, h->conn_of[worker], &(ck_message){.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence.epoch = h->cfg.epoch});
}

static inline void tick(harness *h) {
    h->count = 0;
    OK(ck_coordinator_tick(h->c, h->now_us, NULL));
    take_actions(h);
}

/* Time passes, the watchdog wakes as it should, the workers given beat. The journal is of all of it. */
static inline void pass(harness *h, int64_t ms, const char *beating) {
    uint32_t kept = 0;
    static heard log[ACTIONS_MAX];
    for (int64_t i = 0; i < ms; i += 100) {
        h->now_us += 100 * MS;
        for (const char *w = beating; *w; w++) {
            beat(h, *w - '0');
            assert_int_equal(h->count, 1); /* the answer */
        }
        tick(h);
        assert_true(kept + h->count < ACTIONS_MAX);
        memcpy(log + kept, h->log, h->count * sizeof *log);
        kept += h->count;
    }
    memcpy(h->log, log, kept * sizeof *log);
    h->count = kept;
}

static inline ck_msg_fence fence(const harness *h, uint64_t job, uint64_t attempt) {
    return (ck_msg_fence){h->cfg.epoch, job, attempt};
}

static inline void ready(harness *h, int worker, uint64_t job, uint64_t attempt) {
    char address[32];
    snprintf(address, sizeof address, "10.0.0.%d:1", worker);
    say(h, h->conn_of[worker],
        &(ck_message){.kind = CK_MSG_READY, .as.ready = {fence(h, job, attempt), ck_view_of(address)}});
}

static inline void ended(harness *h, int worker, uint64_t job, uint64_t attempt, ck_task_outcome outcome,
                         const char *error, uint64_t flags) {
    say(h, h->conn_of[worker],
        &(ck_message){
            .kind = CK_MSG_ENDED,
            .as.ended = {
                .fence = fence(h, job, attempt), .outcome = outcome, .flags = flags, .error = ck_view_of(error)}});
}

static inline void one_ended(harness *h, int worker, uint64_t job, uint64_t attempt, uint32_t number,
                             ck_task_outcome outcome, const char *error) {
    say(h, h->conn_of[worker],
        &(ck_message){.kind = CK_MSG_ENDED,
                      .as.ended = {.fence = fence(h, job, attempt),
                                   .tasks = {&number, 1},
                                   .outcome = outcome,
                                   .error = ck_view_of(error)}});
}

static inline void checkpoint(harness *h, int worker, uint64_t job, uint64_t attempt, uint64_t id) {
    say(h, h->conn_of[worker], &(ck_message){.kind = CK_MSG_CHECKPOINT, .as.checkpoint = {fence(h, job, attempt), id}});
}

static inline void command(harness *h, ck_command what, uint64_t job) {
    say(h, CLIENT, &(ck_message){.kind = CK_MSG_COMMAND, .as.command = {.fence.job = job, .command = what}});
}

/* A source of two tasks that sends to a sink of two: tasks 0 1, 2 3. */
static inline ck_msg_submit plain_job(const char *dir) {
    static const uint32_t to_sink[] = {1};
    static const ck_msg_role roles[] = {
        {.name = {"source", 6}, .parallelism = 2, .config = {"cfg-a", 5}, .peers = {to_sink, 1}},
        {.name = {"sink", 4}, .parallelism = 2, .config = {"cfg-b", 5}}};
    return (ck_msg_submit){.name = CK_VIEW("flights"),
                           .spec = CK_VIEW("graph"),
                           .checkpoint_dir = ck_view_of(dir),
                           .interval_ms = 1000,
                           .max_restarts_on_worker_loss = CK_RESTART_AUTO,
                           .roles = {roles, 2}};
}

static inline void submit(harness *h, const ck_msg_submit *job) {
    say(h, CLIENT, &(ck_message){.kind = CK_MSG_SUBMIT, .as.submit = *job});
    OK(h->last);
}

/* ---- what was wanted ---- */

static inline const ck_message *sent(const harness *h, uint64_t conn, ck_message_kind kind) {
    for (uint32_t i = 0; i < h->count; i++)
        if (h->log[i].kind == CK_ACTION_SEND && h->log[i].conn == conn && h->log[i].m.kind == kind) return &h->log[i].m;
    return NULL;
}

static inline uint32_t count_sent(const harness *h, ck_message_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->count; i++) n += h->log[i].kind == CK_ACTION_SEND && h->log[i].m.kind == kind;
    return n;
}

static inline const heard *wanted(const harness *h, ck_action_kind kind) {
    for (uint32_t i = 0; i < h->count; i++)
        if (h->log[i].kind == kind) return &h->log[i];
    return NULL;
}

static inline ck_msg_reply status_of(harness *h, uint64_t job) {
    say(h, CLIENT + 1,
        &(ck_message){.kind = CK_MSG_COMMAND, .as.command = {.fence.job = job, .command = CK_COMMAND_STATUS}});
    const ck_message *m = sent(h, CLIENT + 1, CK_MSG_REPLY);
    assert_non_null(m);
    return m->as.reply;
}

static inline const ck_msg_job_info *info(harness *h, uint64_t job) {
    ck_msg_reply r = status_of(h, job);
    assert_int_equal(r.jobs.count, 1);
    return r.jobs.items;
}

static inline const ck_msg_task_info *task_of(harness *h, uint64_t job, uint32_t number) {
    ck_msg_reply r = status_of(h, job);
    assert_true(number < r.tasks.count);
    return (const ck_msg_task_info *)r.tasks.items + number;
}

#define ASSERT_TEXT(view, text)                                                                                        \
    do {                                                                                                               \
        ck_view v_ = (view);                                                                                           \
        if (!ck_view_is(v_, text)) fail_msg("\"%.*s\", not \"%s\"", (int)v_.n, v_.p, text);                            \
    } while (0)
#define ASSERT_IN(view, text)                                                                                          \
    do {                                                                                                               \
        char z_[3000];                                                                                                 \
        ck_view w_ = (view);                                                                                           \
        snprintf(z_, sizeof z_, "%.*s", (int)w_.n, w_.p);                                                              \
        if (!strstr(z_, text)) fail_msg("\"%s\" has no \"%s\"", z_, text);                                             \
    } while (0)
#define ASSERT_STATE(h, job, text) ASSERT_TEXT(info(h, job)->state, text)

/* Workers 1..n with two slots each, the job on them, running as attempt 1 from its beginning. */
static inline void run_on(harness *h, int workers, const ck_msg_submit *job) {
    for (int w = 1; w <= workers; w++) join(h, w, 2);
    submit(h, job);
    for (int w = 1; w <= workers; w++) ready(h, w, 1, 1);
    ASSERT_STATE(h, 1, "running");
}

#endif
