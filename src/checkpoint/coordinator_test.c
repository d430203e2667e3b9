/* The checkpoints of a job: each rule by hand, then random worlds with invariants. */
#include "checkpoint/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/hash.h"

static ck_budget budget;

typedef struct world {
    ck_checkpoints *c;
    int64_t now;
    const ck_checkpoints_action *a;
    uint32_t n;
} world;

static const ck_checkpoints_config plain = {.enabled = true,
                                            .interval_us = 1000,
                                            .timeout_us = 5000,
                                            .final_timeout_us = 9000000,
                                            .tolerable_failed = 2,
                                            .subtasks = 3,
                                            .next_id = 7};

static world start(ck_checkpoints_config cfg) {
    world w = {0};
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_checkpoints_new((ck_mem){&budget, CK_MEM_PLAN}, &cfg, 0, &w.c, &err), CK_OK);
    return w;
}

static void stop(world *w) {
    ck_checkpoints_free(w->c);
    assert_int_equal(ck_budget_total(&budget), 0);
}

static void send(world *w, ck_checkpoints_event ev) { w->n = ck_checkpoints_step(w->c, w->now, &ev, &w->a); }
static void tick(world *w, int64_t now) {
    w->now = now;
    send(w, (ck_checkpoints_event){.kind = CK_CKPT_TICK});
}
static void of(world *w, ck_checkpoints_event_kind kind, uint64_t id) {
    send(w, (ck_checkpoints_event){.kind = kind, .checkpoint = id});
}
static void ack(world *w, uint64_t id, uint32_t subtask) {
    send(w, (ck_checkpoints_event){.kind = CK_CKPT_ACK, .checkpoint = id, .subtask = subtask});
}
static void ack_all(world *w, uint64_t id) {
    for (uint32_t i = 0; i < 3; i++) ack(w, id, i);
}
static void finish(world *w, uint32_t subtask) {
    send(w, (ck_checkpoints_event){.kind = CK_CKPT_SUBTASK_FINISHED, .subtask = subtask});
}
static void request(world *w, ck_checkpoints_event_kind kind, uint64_t number) {
    send(w, (ck_checkpoints_event){.kind = kind, .request = number});
}
static void fails(world *w, ck_checkpoints_event_kind kind, uint64_t id, bool retriable, bool fatal) {
    send(w, (ck_checkpoints_event){
                .kind = kind, .checkpoint = id, .status = CK_IO, .retriable = retriable, .fatal = fatal});
}

#define NOTHING(w) assert_int_equal((w).n, 0)
#define DOES(w, i, k, id)                                                                                              \
    do {                                                                                                               \
        assert_true((i) < (w).n);                                                                                      \
        assert_int_equal((w).a[i].kind, k);                                                                            \
        assert_int_equal((w).a[i].checkpoint, id);                                                                     \
    } while (0)

/* One checkpoint from its trigger to its marker. */
static void run_one(world *w, uint64_t id) {
    ack_all(w, id);
    DOES(*w, 0, CK_CKPT_DO_WRITE_MANIFEST, id);
    of(w, CK_CKPT_MANIFEST_DONE, id);
    DOES(*w, 0, CK_CKPT_DO_COMPLETED, id);
    DOES(*w, 1, CK_CKPT_DO_COMMIT, id);
    of(w, CK_CKPT_COMMIT_DONE, id);
    DOES(*w, 0, CK_CKPT_DO_MARK_COMMITTED, id);
    of(w, CK_CKPT_MARK_DONE, id);
    DOES(*w, 0, CK_CKPT_DO_COMMITTED, id);
    DOES(*w, 1, CK_CKPT_DO_RETAIN, id);
}

static void periodic(void **state) {
    (void)state;
    world w = start(plain);
    assert_int_equal(ck_checkpoints_deadline(w.c), 1000);
    tick(&w, 999);
    NOTHING(w);
    tick(&w, 1000);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 7);
    assert_int_equal(w.a[0].barrier, CK_BARRIER_PERIODIC);
    tick(&w, 2500); /* due again, one is pending */
    NOTHING(w);
    ack(&w, 7, 0);
    NOTHING(w);
    ack(&w, 7, 0); /* twice counts once */
    ack(&w, 7, 1);
    NOTHING(w);
    assert_true(ck_checkpoints_waits_for(w.c, 2) && !ck_checkpoints_waits_for(w.c, 1));
    ack(&w, 7, 2);
    DOES(w, 0, CK_CKPT_DO_WRITE_MANIFEST, 7);
    assert_int_equal(w.n, 1);
    of(&w, CK_CKPT_MANIFEST_DONE, 7);
    DOES(w, 0, CK_CKPT_DO_COMPLETED, 7);
    DOES(w, 1, CK_CKPT_DO_COMMIT, 7);
    DOES(w, 2, CK_CKPT_DO_TRIGGER, 8); /* overdue; its commit runs meanwhile */
    of(&w, CK_CKPT_COMMIT_DONE, 7);
    of(&w, CK_CKPT_MARK_DONE, 7);
    run_one(&w, 8);
    ck_checkpoints_view v;
    ck_checkpoints_look(w.c, &v);
    assert_int_equal(v.last_completed, 8);
    assert_int_equal(v.last_committed, 8);
    assert_int_equal(v.next_id, 9);
    assert_int_equal(v.uncommitted_count, 0);
    stop(&w);
}

static void a_commit_covers_older_ones(void **state) {
    (void)state;
    world w = start(plain);
    tick(&w, 1000);
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7); /* commit of 7 starts and takes long */
    tick(&w, 2000);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 8);
    ack_all(&w, 8);
    of(&w, CK_CKPT_MANIFEST_DONE, 8);
    assert_int_equal(w.n, 1); /* completed, but one commit at a time */
    fails(&w, CK_CKPT_COMMIT_FAILED, 7, true, false);
    NOTHING(w);
    int64_t retry = ck_checkpoints_deadline(w.c);
    assert_true(retry > 2000);
    of(&w, CK_CKPT_COMMIT_DONE, 7); /* does not run: ignored */
    NOTHING(w);
    w.now = 2500;
    tick(&w, retry < 3000 ? 3000 : retry);
    tick(&w, 2000 + 100000);
    bool committed8 = false;
    for (uint32_t i = 0; i < w.n; i++) committed8 |= w.a[i].kind == CK_CKPT_DO_COMMIT && w.a[i].checkpoint == 8;
    assert_true(committed8);
    of(&w, CK_CKPT_COMMIT_DONE, 8);
    DOES(w, 0, CK_CKPT_DO_MARK_COMMITTED, 7);
    DOES(w, 1, CK_CKPT_DO_MARK_COMMITTED, 8);
    of(&w, CK_CKPT_MARK_DONE, 8);
    DOES(w, 0, CK_CKPT_DO_COMMITTED, 8);
    fails(&w, CK_CKPT_MARK_FAILED, 7, true, false);
    tick(&w, 2000 + 10 * 1000000);
    bool marked7 = false;
    for (uint32_t i = 0; i < w.n; i++) marked7 |= w.a[i].kind == CK_CKPT_DO_MARK_COMMITTED && w.a[i].checkpoint == 7;
    assert_true(marked7);
    stop(&w);
}

static void failures(void **state) {
    (void)state;
    world w = start(plain);
    tick(&w, 1000);
    fails(&w, CK_CKPT_NACK, 7, true, false);
    DOES(w, 0, CK_CKPT_DO_ABORT, 7);
    assert_int_equal(w.n, 1);
    ack(&w, 7, 0); /* late */
    NOTHING(w);
    tick(&w, 2000);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 8); /* 7 is never used again */
    tick(&w, 6999);
    NOTHING(w);
    tick(&w, 7000);
    DOES(w, 0, CK_CKPT_DO_ABORT, 8);
    DOES(w, 1, CK_CKPT_DO_TRIGGER, 9);
    run_one(&w, 9); /* one success: the count begins again */
    for (uint64_t id = 10; id <= 11; id++) {
        tick(&w, w.now + 1000);
        DOES(w, 0, CK_CKPT_DO_TRIGGER, id);
        ack_all(&w, id);
        fails(&w, CK_CKPT_MANIFEST_FAILED, id, true, false);
        DOES(w, 0, CK_CKPT_DO_ABORT, id);
    }
    tick(&w, w.now + 1000);
    fails(&w, CK_CKPT_NACK, 12, true, false);
    DOES(w, 0, CK_CKPT_DO_ABORT, 12);
    DOES(w, 1, CK_CKPT_DO_FAIL_JOB, 0);
    tick(&w, w.now + 100000);
    NOTHING(w);
    assert_int_equal(ck_checkpoints_deadline(w.c), INT64_MAX);
    stop(&w);
}

static void fatal_failures_end_the_job(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        world w = start(plain);
        tick(&w, 1000);
        if (i > 0) ack_all(&w, 7);
        if (i > 1) of(&w, CK_CKPT_MANIFEST_DONE, 7);
        if (i > 2) of(&w, CK_CKPT_COMMIT_DONE, 7);
        static const ck_checkpoints_event_kind kinds[] = {CK_CKPT_NACK, CK_CKPT_MANIFEST_FAILED, CK_CKPT_COMMIT_FAILED,
                                                          CK_CKPT_MARK_FAILED};
        fails(&w, kinds[i], 7, false, true);
        assert_int_equal(w.a[w.n - 1].kind, CK_CKPT_DO_FAIL_JOB);
        assert_int_equal(w.a[w.n - 1].status, CK_IO);
        stop(&w);
    }
}

static void unlimited_failures(void **state) {
    (void)state;
    ck_checkpoints_config cfg = plain;
    cfg.tolerable_failed = 0;
    world w = start(cfg);
    for (uint64_t id = 7; id < 100; id++) {
        tick(&w, w.now + 1000);
        DOES(w, 0, CK_CKPT_DO_TRIGGER, id);
        fails(&w, CK_CKPT_NACK, id, true, false);
        assert_int_equal(w.n, 1);
    }
    stop(&w);
}

static void savepoints(void **state) {
    (void)state;
    world w = start(plain);
    tick(&w, 1000);
    request(&w, CK_CKPT_SAVEPOINT, 501); /* waits for 7 */
    NOTHING(w);
    request(&w, CK_CKPT_SAVEPOINT, 502);
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7);
    DOES(w, 2, CK_CKPT_DO_TRIGGER, 8);
    assert_int_equal(w.a[2].barrier, CK_BARRIER_SAVEPOINT);
    request(&w, CK_CKPT_SAVEPOINT, 503); /* 8's barrier is out: this wants its own */
    ack_all(&w, 8);
    of(&w, CK_CKPT_MANIFEST_DONE, 8);
    DOES(w, 0, CK_CKPT_DO_COMPLETED, 8);
    DOES(w, 1, CK_CKPT_DO_SAVEPOINT_DONE, 8);
    DOES(w, 2, CK_CKPT_DO_SAVEPOINT_DONE, 8);
    assert_int_equal(w.a[1].request, 501);
    assert_int_equal(w.a[2].request, 502);
    assert_int_equal(w.a[2].status, CK_OK);
    DOES(w, 3, CK_CKPT_DO_TRIGGER, 9);
    fails(&w, CK_CKPT_NACK, 9, true, false);
    DOES(w, 0, CK_CKPT_DO_ABORT, 9);
    DOES(w, 1, CK_CKPT_DO_SAVEPOINT_DONE, 9);
    assert_int_equal(w.a[1].request, 503);
    assert_int_equal(w.a[1].status, CK_IO);
    ck_checkpoints_view v;
    ck_checkpoints_look(w.c, &v);
    assert_int_equal(v.failed_in_a_row, 0); /* the asker was told; the job does not count it */
    stop(&w);
}

static void stop_with_savepoint(void **state) {
    (void)state;
    world w = start(plain);
    request(&w, CK_CKPT_STOP, 1);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 7);
    assert_int_equal(w.a[0].barrier, CK_BARRIER_SAVEPOINT);
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7);
    DOES(w, 1, CK_CKPT_DO_SAVEPOINT_DONE, 7);
    tick(&w, 50000);
    NOTHING(w); /* nothing is triggered any more */
    request(&w, CK_CKPT_SAVEPOINT, 2);
    DOES(w, 0, CK_CKPT_DO_SAVEPOINT_DONE, 0);
    assert_int_equal(w.a[0].status, CK_REFUSED);
    of(&w, CK_CKPT_COMMIT_DONE, 7);
    of(&w, CK_CKPT_MARK_DONE, 7);
    DOES(w, 2, CK_CKPT_DO_FINISHED, 7);
    stop(&w);
}

static void withdrawn_requests(void **state) {
    (void)state;
    world w = start(plain);
    request(&w, CK_CKPT_STOP, 1);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 7);
    assert_true(w.a[0].stop);
    request(&w, CK_CKPT_STOP, 2);
    request(&w, CK_CKPT_WITHDRAW, 2); /* has not begun, and never does */
    request(&w, CK_CKPT_WITHDRAW, 1); /* under way: becomes a savepoint like others */
    NOTHING(w);
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7);
    DOES(w, 0, CK_CKPT_DO_COMPLETED, 7);
    assert_false(w.a[0].stop);
    for (uint32_t i = 0; i < w.n; i++) assert_int_not_equal(w.a[i].kind, CK_CKPT_DO_SAVEPOINT_DONE);
    of(&w, CK_CKPT_COMMIT_DONE, 7);
    of(&w, CK_CKPT_MARK_DONE, 7);
    for (uint32_t i = 0; i < w.n; i++) assert_int_not_equal(w.a[i].kind, CK_CKPT_DO_FINISHED);
    tick(&w, 50000);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 8);
    assert_int_equal(w.a[0].barrier, CK_BARRIER_PERIODIC);
    assert_false(w.a[0].stop);
    stop(&w);
}

static void final_checkpoint(void **state) {
    (void)state;
    world w = start(plain);
    finish(&w, 0);
    finish(&w, 1);
    tick(&w, 1000);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 7); /* finished subtasks go on acknowledging */
    finish(&w, 2);
    NOTHING(w); /* the pending one ends first */
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7);
    DOES(w, 2, CK_CKPT_DO_TRIGGER, 8);
    assert_int_equal(w.a[2].barrier, CK_BARRIER_FINAL);
    of(&w, CK_CKPT_COMMIT_DONE, 7);
    of(&w, CK_CKPT_MARK_DONE, 7);
    fails(&w, CK_CKPT_NACK, 8, true, false); /* tried again */
    DOES(w, 0, CK_CKPT_DO_ABORT, 8);
    assert_int_equal(w.n, 1);
    tick(&w, ck_checkpoints_deadline(w.c));
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 9);
    ack_all(&w, 9);
    of(&w, CK_CKPT_MANIFEST_DONE, 9);
    of(&w, CK_CKPT_COMMIT_DONE, 9);
    of(&w, CK_CKPT_MARK_DONE, 9);
    DOES(w, 2, CK_CKPT_DO_FINISHED, 9);
    stop(&w);
}

static void final_timeout(void **state) {
    (void)state;
    world w = start(plain);
    for (uint32_t i = 0; i < 3; i++) finish(&w, i);
    DOES(w, 0, CK_CKPT_DO_TRIGGER, 7);
    ack_all(&w, 7);
    of(&w, CK_CKPT_MANIFEST_DONE, 7); /* the sink never answers */
    tick(&w, 8999999);
    NOTHING(w);
    tick(&w, 9000000);
    DOES(w, 0, CK_CKPT_DO_FAIL_JOB, 0);
    assert_int_equal(w.a[0].status, CK_IO); /* nobody has cancelled it */
    stop(&w);
}

static void without_a_directory(void **state) {
    (void)state;
    ck_checkpoints_config cfg = plain;
    cfg.enabled = false;
    world w = start(cfg);
    tick(&w, 100000);
    NOTHING(w);
    assert_int_equal(ck_checkpoints_deadline(w.c), INT64_MAX);
    request(&w, CK_CKPT_SAVEPOINT, 4);
    DOES(w, 0, CK_CKPT_DO_SAVEPOINT_DONE, 0);
    assert_int_equal(w.a[0].status, CK_REFUSED);
    for (uint32_t i = 0; i < 3; i++) finish(&w, i);
    DOES(w, 0, CK_CKPT_DO_FINISHED, 0);
    stop(&w);
}

static void triggers_wait_for_commits(void **state) {
    (void)state;
    world w = start(plain);
    tick(&w, 1000);
    uint64_t id = 7;
    for (; id < 7 + 16; id++) { /* every commit fails in a way that may pass */
        ack_all(&w, id);
        of(&w, CK_CKPT_MANIFEST_DONE, id);
        fails(&w, CK_CKPT_COMMIT_FAILED, 7, true, false);
        tick(&w, w.now + 1000);
    }
    ck_checkpoints_view v;
    ck_checkpoints_look(w.c, &v);
    assert_int_equal(v.uncommitted_count, 16);
    assert_int_equal(v.pending, 0);
    stop(&w);
}

/* ---- random worlds ---- */

typedef struct model {
    uint64_t pending, newest; /* triggered, not ended; newest id seen */
    uint64_t manifest;        /* being written */
    uint64_t complete[4096];
    uint32_t complete_count;
    uint64_t committing, marking[64];
    uint32_t marking_count;
    uint32_t open_requests;
    bool over;
} model;

static bool is_complete(const model *m, uint64_t id) {
    for (uint32_t i = 0; i < m->complete_count; i++)
        if (m->complete[i] == id) return true;
    return false;
}

static void check_action(model *m, const ck_checkpoints_action *a) {
    assert_false(m->over);
    switch (a->kind) {
    case CK_CKPT_DO_TRIGGER:
        assert_int_equal(m->pending, 0); /* never two */
        assert_true(a->checkpoint > m->newest);
        m->pending = m->newest = a->checkpoint;
        break;
    case CK_CKPT_DO_OVERTAKE: assert_int_equal(a->checkpoint, m->pending); break;
    case CK_CKPT_DO_WRITE_MANIFEST:
        assert_int_equal(a->checkpoint, m->pending);
        m->manifest = a->checkpoint;
        break;
    case CK_CKPT_DO_COMPLETED: assert_true(is_complete(m, a->checkpoint)); break;
    case CK_CKPT_DO_COMMIT:
        assert_true(is_complete(m, a->checkpoint)); /* never before its manifest */
        assert_int_equal(m->committing, 0);
        m->committing = a->checkpoint;
        break;
    case CK_CKPT_DO_MARK_COMMITTED:
        assert_true(is_complete(m, a->checkpoint));
        assert_true(m->marking_count < 64);
        m->marking[m->marking_count++] = a->checkpoint;
        break;
    case CK_CKPT_DO_ABORT:
        assert_int_equal(a->checkpoint, m->pending);
        assert_false(is_complete(m, a->checkpoint));
        m->pending = 0, m->manifest = 0;
        break;
    case CK_CKPT_DO_SAVEPOINT_DONE:
        assert_true(m->open_requests > 0);
        m->open_requests--;
        if (a->status == CK_OK) assert_true(is_complete(m, a->checkpoint));
        break;
    case CK_CKPT_DO_FINISHED:
        assert_int_equal(m->pending, 0);
        assert_int_equal(m->marking_count, 0);
        m->over = true;
        break;
    case CK_CKPT_DO_FAIL_JOB: m->over = true; break;
    case CK_CKPT_DO_COMMITTED:
    case CK_CKPT_DO_RETAIN: break;
    }
}

static uint64_t next_random(uint64_t *x) { return *x = ck_mix64(*x + 0x9E3779B97F4A7C15ULL); }

/* One random event that the world could send now, now and then one that is late or wrong. */
static ck_checkpoints_event random_event(model *m, uint64_t *x) {
    uint64_t r = next_random(x) % 100, pick = next_random(x);
    bool ok = next_random(x) % 8 != 0;
    ck_checkpoints_event ev = {.kind = CK_CKPT_TICK, .status = CK_IO, .retriable = pick % 16 != 0};
    if (r < 45) {
        ev.kind = r < 42 ? CK_CKPT_ACK : CK_CKPT_NACK;
        ev.checkpoint = pick % 10 == 0 ? m->newest - 1 : m->pending;
        ev.subtask = (uint32_t)(next_random(x) % 3);
    } else if (r < 60 && m->manifest) {
        ev.kind = ok ? CK_CKPT_MANIFEST_DONE : CK_CKPT_MANIFEST_FAILED;
        ev.checkpoint = m->manifest;
        if (ok) m->complete[m->complete_count++] = m->manifest, m->pending = 0;
        m->manifest = 0;
    } else if (r < 70 && m->committing) {
        ev.kind = ok ? CK_CKPT_COMMIT_DONE : CK_CKPT_COMMIT_FAILED;
        ev.checkpoint = m->committing;
        m->committing = 0;
    } else if (r < 80 && m->marking_count) {
        uint32_t i = (uint32_t)(pick % m->marking_count);
        ev.kind = ok ? CK_CKPT_MARK_DONE : CK_CKPT_MARK_FAILED;
        ev.checkpoint = m->marking[i];
        m->marking[i] = m->marking[--m->marking_count];
    } else if (r < 82) {
        ev.kind = CK_CKPT_SAVEPOINT;
        m->open_requests++;
    } else if (r < 83 && pick % 20 == 0) {
        ev.kind = CK_CKPT_STOP;
        m->open_requests++;
    } else if (r < 84 && pick % 5 == 0) {
        ev.kind = CK_CKPT_SUBTASK_FINISHED;
        ev.subtask = (uint32_t)(next_random(x) % 3);
    }
    return ev;
}

static void random_world(uint64_t seed) {
    ck_checkpoints_config cfg = plain;
    cfg.tolerable_failed = (uint32_t)(seed % 5);
    cfg.alignment = (ck_alignment)(seed % 3);
    cfg.stall_us = 1 + (int64_t)(seed % 700);
    cfg.final_timeout_us = 50000;
    world w = start(cfg);
    model m = {.newest = 6};
    uint64_t x = seed;
    for (int step = 0; step < 2000 && !m.over; step++) {
        if (next_random(&x) % 3 == 0) w.now += (int64_t)(next_random(&x) % 800);
        ck_checkpoints_event ev = random_event(&m, &x);
        send(&w, ev);
        for (uint32_t i = 0; i < w.n; i++) check_action(&m, &w.a[i]);
        assert_true(m.over || ck_checkpoints_deadline(w.c) > w.now || ck_checkpoints_deadline(w.c) == INT64_MAX);
    }
    if (m.over) assert_int_equal(m.open_requests, 0);
    stop(&w);
}

static void random_worlds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4000; seed++) random_world(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periodic),
        cmocka_unit_test(a_commit_covers_older_ones),
        cmocka_unit_test(failures),
        cmocka_unit_test(fatal_failures_end_the_job),
        cmocka_unit_test(unlimited_failures),
        cmocka_unit_test(savepoints),
        cmocka_unit_test(stop_with_savepoint),
        cmocka_unit_test(withdrawn_requests),
        cmocka_unit_test(final_checkpoint),
        cmocka_unit_test(final_timeout),
        cmocka_unit_test(without_a_directory),
        cmocka_unit_test(triggers_wait_for_commits),
        cmocka_unit_test(random_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
