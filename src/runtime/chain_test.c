#include "runtime/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "runtime/test_kit.h"

enum { OPS_MAX = 8 };

typedef struct fixture {
    ck_test_proc t;
    ck_manual_clock clock;
    ck_scheduler *scheduler; /* so that wakes have a task to notify */
    ck_task task;
    ck_chain *chain;
    probe probes[OPS_MAX];
    uint32_t closed_inputs; /* bits */
    int io_begun;
    _Atomic int io_ended;
    ck_job_settings settings;
} fixture;

static void host_close(void *arg, uint32_t input) { ((fixture *)arg)->closed_inputs |= 1u << input; }
static void host_hold(void *arg) { (void)arg; }
static void host_release(void *arg, uint64_t c, ck_status s, const ck_error *e) {
    (void)arg, (void)c, (void)s, (void)e;
}
static void host_begin(void *arg) { ((fixture *)arg)->io_begun++; }
static void host_end(void *arg) { atomic_fetch_add(&((fixture *)arg)->io_ended, 1); }
static ck_step no_step(ck_task *t, const ck_quantum *q, int64_t *u) {
    (void)t, (void)q, (void)u;
    return CK_STEP_NEED_INPUT;
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_manual_clock_init(&f.clock, 1000, 7000);
    f.t.proc.clock = &f.clock.base;
    *state = &f;
    f.task.step = no_step;
    return ck_scheduler_seeded(&f.t.proc, 1, &f.scheduler, NULL) == CK_OK && ck_task_add(&f.task, f.scheduler) == CK_OK
               ? 0
               : -1;
}
static int teardown(void **state) {
    fixture *f = *state;
    if (f->chain) {
        while (!ck_chain_close(f->chain)) ck_scheduler_turn(f->scheduler, 1);
        ck_chain_free(f->chain);
    }
    while (ck_scheduler_turn(f->scheduler, 1)) {
    }
    ck_task_remove(&f->task);
    ck_scheduler_free(f->scheduler);
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* ops in a row: op 0 a source if head_inputs is 0. */
static void make_chain(fixture *f, uint32_t ops, uint32_t head_inputs) {
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN), queue = ck_proc_mem(&f->t.proc, CK_MEM_QUEUE);
    ck_chain_host host = {f, &f->task, host_close, NULL, host_hold, host_release, host_begin, host_end};
    assert_int_equal(ck_chain_new(&f->t.proc, mem, queue, ops, &host, &f->chain, NULL), CK_OK);
    for (uint32_t i = 0; i < ops; i++) {
        ck_op_runtime *op = ck_chain_op(f->chain, i);
        op->desc = i == 0 && head_inputs == 0 ? &probe_source_desc : &probe_desc;
        op->self = &f->probes[i];
        op->ctx = (ck_op_ctx){.proc = &f->t.proc,
                              .settings = &f->settings,
                              .uid = "probe",
                              .subtask = 2,
                              .input_count = i == 0 ? head_inputs : 1,
                              .mem = queue};
        assert_int_equal(ck_chain_init_op(f->chain, i), CK_OK);
    }
}
static void connect_row(fixture *f) {
    for (uint32_t i = 0; i + 1 < ck_chain_op_count(f->chain); i++)
        assert_int_equal(ck_chain_connect(f->chain, i, 0, i + 1), CK_OK);
}
static ck_chain_result run(fixture *f) {
    static const ck_quantum q = {CK_BATCH_ROWS_MAX * 100, 1000, 1000000, false};
    ck_chain_begin_step(f->chain, &q);
    return ck_chain_run(f->chain);
}
static void open_all(fixture *f) {
    ck_chain_sweep(f->chain, CK_SWEEP_OPEN, 0);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    for (int i = 0; i < OPS_MAX; i++) f->probes[i].n = 0, f->probes[i].log[0] = 0;
}
static void offer(fixture *f, uint32_t input, ck_event ev) {
    assert_int_equal(ck_chain_offer(f->chain, input, &ev), CK_OK);
}
static ck_event batch(fixture *f, uint32_t rows) {
    return ck_event_batch(kit_batch(ck_proc_mem(&f->t.proc, CK_MEM_QUEUE), 0, rows));
}

static void events_pass_and_controls_follow(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    connect_row(f);
    open_all(f);
    offer(f, 0, batch(f, 5));
    offer(f, 0, ck_event_watermark(10, false));
    offer(f, 0, ck_event_flush(3));
    offer(f, 0, ck_event_end());
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    for (int i = 0; i < 3; i++) assert_string_equal(f->probes[i].log, "b5 w10 f3 e0 ");
    assert_true(ck_chain_is_finished(f->chain));
    assert_int_equal(ck_chain_op(f->chain, 1)->ctx.watermark, 10);
    assert_int_equal(ck_op_counter_read(&ck_chain_op(f->chain, 2)->rows_in), 5);
    offer(f, 0, batch(f, 1)); /* after the end: dropped */
    assert_int_equal(run(f), CK_CHAIN_IDLE);
}

static void watermarks_never_go_back(void **state) {
    fixture *f = *state;
    make_chain(f, 2, 1);
    connect_row(f);
    open_all(f);
    int64_t values[] = {10, 5, 10, 11};
    for (int i = 0; i < 4; i++) offer(f, 0, ck_event_watermark(values[i], false));
    offer(f, 0, ck_event_watermark(11, true));
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[1].log, "w10 w11 w11i ");
}

static void more_resumes_only_when_all_is_worked_off(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    connect_row(f);
    f->probes[0].copies = 3;
    f->probes[1].copies = 2;
    open_all(f);
    offer(f, 0, batch(f, 4));
    offer(f, 0, batch(f, 9));
    for (int i = 0; i < 40; i++) { /* one call at a time: no inbox behind the head ever holds two events */
        ck_quantum q = {100000, 1, 1000000, false};
        ck_chain_begin_step(f->chain, &q);
        ck_chain_result r = ck_chain_run(f->chain);
        assert_true(ck_chain_op(f->chain, 1)->inbox.count <= 1);
        assert_true(ck_chain_op(f->chain, 2)->inbox.count <= 1);
        if (r == CK_CHAIN_IDLE) break;
        assert_int_equal(r, CK_CHAIN_SPENT);
    }
    assert_string_equal(f->probes[0].log, "b4 b9 ");
    assert_string_equal(f->probes[1].log, "b4 b4 b4 b9 b9 b9 ");
    assert_string_equal(f->probes[2].log, "b4 b4 b4 b4 b4 b4 b9 b9 b9 b9 b9 b9 ");
}

static void again_waits_for_a_wake(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    connect_row(f);
    open_all(f);
    f->probes[1].again = 1;
    offer(f, 0, batch(f, 4));
    offer(f, 0, batch(f, 6));
    assert_int_equal(run(f), CK_CHAIN_WAIT);
    assert_int_equal(run(f), CK_CHAIN_WAIT); /* some other notification: not called again */
    assert_string_equal(f->probes[1].log, "again ");
    assert_string_equal(f->probes[0].log, "b4 ");
    ck_op_ctx *ctx = &ck_chain_op(f->chain, 1)->ctx;
    ck_op_wake(ctx, ctx->rt);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[2].log, "b4 b6 ");
}

static void a_closed_input_ends_and_stops_the_source(void **state) {
    fixture *f = *state;
    make_chain(f, 4, 0); /* source, probe, limit, sink */
    connect_row(f);
    f->probes[0].poll_batches = 1000;
    f->probes[2].close_after = 3;
    open_all(f);
    ck_poll_result r;
    int64_t until_us;
    int polls = 0;
    while (f->probes[0].stopped == 0) { /* the head is dead: nobody wants what it would produce */
        assert_int_equal(ck_chain_poll(f->chain, &r, &until_us), CK_OK);
        assert_int_equal(run(f), CK_CHAIN_IDLE);
        assert_true(++polls < 10);
    }
    assert_int_equal(f->probes[0].stopped, 1);
    assert_string_equal(f->probes[1].log, "b3 b3 b3 "); /* dead: it is told nothing more */
    assert_string_equal(f->probes[2].log, "b3 b3 b3 e0 ");
    assert_string_equal(f->probes[3].log, "b3 b3 b3 e0 ");
    assert_true(ck_chain_is_finished(f->chain));
}

static void a_branch_that_closes_leaves_the_other(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1); /* head -> 1, head -> 2 */
    assert_int_equal(ck_chain_connect(f->chain, 0, 0, 1), CK_OK);
    assert_int_equal(ck_chain_connect(f->chain, 0, 0, 2), CK_OK);
    f->probes[1].close_after = 1;
    open_all(f);
    for (int i = 0; i < 3; i++) offer(f, 0, batch(f, 2));
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[1].log, "b2 e0 ");
    assert_string_equal(f->probes[2].log, "b2 b2 b2 ");
    assert_false(ck_chain_is_finished(f->chain));
    assert_int_equal(f->closed_inputs, 0);
}

static void the_head_closes_its_gate(void **state) {
    fixture *f = *state;
    make_chain(f, 2, 2);
    connect_row(f);
    open_all(f);
    f->probes[1].close_after = 1;
    offer(f, 1, batch(f, 1));
    offer(f, 0, batch(f, 2)); /* waits while the first closes everything */
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "b1 ");
    assert_int_equal(f->closed_inputs, 3);
    assert_true(ck_chain_is_finished(f->chain));
}

static void one_of_two_inputs_may_close(void **state) {
    fixture *f = *state;
    make_chain(f, 2, 2);
    connect_row(f);
    open_all(f);
    f->probes[0].close_after = 1;
    offer(f, 1, batch(f, 1)); /* closes input 1 */
    offer(f, 1, batch(f, 8)); /* waited: dropped */
    offer(f, 0, batch(f, 2));
    offer(f, 0, ck_event_end());
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "b1 b2 e0 e1 ");
    assert_string_equal(f->probes[1].log, "b1 b2 e0 ");
    assert_int_equal(f->closed_inputs, 2);
}

static void ports_are_apart(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    assert_int_equal(ck_chain_connect(f->chain, 0, 0, 1), CK_OK);
    assert_int_equal(ck_chain_connect(f->chain, 0, 1, 2), CK_OK);
    f->probes[0].port = 1;
    open_all(f);
    offer(f, 0, batch(f, 2));
    f->probes[0].port = 1;
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    f->probes[0].port = 9; /* nobody listens */
    offer(f, 0, batch(f, 3));
    offer(f, 0, ck_event_end());
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[1].log, "e0 ");
    assert_string_equal(f->probes[2].log, "b2 e0 ");
}

/* LIMIT over a source with dead letters: these alone do not keep it going. */
static void side_outputs_keep_nothing_going(void **state) {
    fixture *f = *state;
    make_chain(f, 4, 0); /* source -> probe -> limit; source -> letters */
    assert_int_equal(ck_chain_connect(f->chain, 0, 0, 1), CK_OK);
    assert_int_equal(ck_chain_connect(f->chain, 1, 0, 2), CK_OK);
    assert_int_equal(ck_chain_connect(f->chain, 0, 1, 3), CK_OK);
    f->probes[0].poll_batches = 1000;
    f->probes[2].close_after = 2;
    open_all(f);
    ck_poll_result r;
    int64_t until_us;
    for (int polls = 0; polls < 2; polls++) {
        assert_int_equal(ck_chain_poll(f->chain, &r, &until_us), CK_OK);
        assert_int_equal(run(f), CK_CHAIN_IDLE);
    }
    assert_int_equal(f->probes[0].stopped, 1);
    assert_string_equal(f->probes[2].log, "b3 b3 e0 ");
    assert_string_equal(f->probes[3].log, "e0 ");
    assert_true(ck_chain_is_finished(f->chain));
}

/* The same of an operator with late rows: it is told that its input has ended, and so is what reads them. */
static void an_operator_ends_for_its_sides(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    assert_int_equal(ck_chain_connect(f->chain, 0, 0, 1), CK_OK);
    assert_int_equal(ck_chain_connect(f->chain, 0, 1, 2), CK_OK);
    f->probes[1].close_after = 1;
    open_all(f);
    offer(f, 0, batch(f, 2));
    offer(f, 0, batch(f, 3));
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "b2 e0 ");
    assert_string_equal(f->probes[2].log, "e0 ");
    assert_int_equal(f->closed_inputs, 1);
    assert_true(ck_chain_is_finished(f->chain));
}

static void sweeps_go_in_their_order(void **state) {
    fixture *f = *state;
    make_chain(f, 3, 1);
    connect_row(f);
    f->probes[1].open_again = 1;
    ck_chain_sweep(f->chain, CK_SWEEP_OPEN, 0);
    assert_int_equal(run(f), CK_CHAIN_WAIT);
    assert_string_equal(f->probes[2].log, "open "); /* deepest first */
    assert_string_equal(f->probes[1].log, "opening ");
    assert_string_equal(f->probes[0].log, "");
    ck_op_ctx *ctx = &ck_chain_op(f->chain, 1)->ctx;
    ck_op_wake(ctx, ctx->rt);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "open ");
    for (int i = 0; i < 3; i++) f->probes[i].n = 0, f->probes[i].log[0] = 0;
    f->probes[0].snapshot_emits = 2; /* MORE in between */
    ck_chain_sweep(f->chain, CK_SWEEP_PRE_SNAPSHOT, 9);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "snap9 snap9 ");
    assert_string_equal(f->probes[1].log, "b7 b7 snap9 "); /* what came out of the flush came before */
    ck_chain_sweep(f->chain, CK_SWEEP_COMMITTED, 9);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[2].log, "b7 b7 snap9 commit9 ");
}

static void failures_name_operator_and_subtask(void **state) {
    fixture *f = *state;
    make_chain(f, 2, 1);
    connect_row(f);
    open_all(f);
    f->probes[1].fails = CK_DATA;
    offer(f, 0, batch(f, 1));
    assert_int_equal(run(f), CK_CHAIN_FAILED);
    ck_error *e = ck_chain_error(f->chain);
    assert_int_equal(e->status, CK_DATA);
    assert_string_equal(e->msg, "bad row");
    assert_string_equal(e->place.object, "probe");
    assert_int_equal(e->place.subtask, 2);
}

static void a_silent_failure_is_given_words(void **state) {
    fixture *f = *state;
    make_chain(f, 1, 1);
    open_all(f);
    f->probes[0].fails = CK_IO;
    offer(f, 0, batch(f, 1));
    assert_int_equal(run(f), CK_CHAIN_FAILED);
    assert_non_null(strstr(ck_chain_error(f->chain)->msg, "did not say why"));
}

static void wake_ups_come_at_their_time(void **state) {
    fixture *f = *state;
    make_chain(f, 2, 1);
    connect_row(f);
    f->probes[1].wake_us = 9000;
    open_all(f);
    assert_int_equal(ck_chain_next_wake(f->chain), 9000);
    assert_int_equal(ck_chain_wake_due(f->chain, 8999), CK_OK);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[1].log, "");
    assert_int_equal(ck_chain_wake_due(f->chain, 9001), CK_OK);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[1].log, "wake9001 ");
    assert_int_equal(ck_chain_next_wake(f->chain), INT64_MAX);
}

/* ---- I/O of operators ---- */

static int io_ran, io_done_count;
static void job_run(ck_io_job *j) { (void)j, io_ran++; }
static void job_done(ck_io_job *j) { (void)j, io_done_count++; }

static void closing_waits_for_io(void **state) {
    fixture *f = *state;
    io_ran = io_done_count = 0;
    make_chain(f, 1, 1);
    open_all(f);
    ck_io_job job = {job_run, job_done, NULL};
    ck_op_ctx *ctx = &ck_chain_op(f->chain, 0)->ctx;
    ck_op_submit_io(ctx, &job);
    assert_false(ck_chain_close(f->chain));
    while (!ck_chain_close(f->chain)) assert_true(ck_scheduler_turn(f->scheduler, 1));
    assert_int_equal(io_ran, 1);
    assert_int_equal(io_done_count, 1);
    assert_int_equal(f->io_begun, 1);
    assert_int_equal(f->io_ended, 1);
    assert_string_equal(f->probes[0].log, "close ");
}

static void without_memory_io_runs_at_once(void **state) {
    fixture *f = *state;
    io_ran = io_done_count = 0;
    make_chain(f, 1, 1);
    open_all(f);
    ck_io_job job = {job_run, job_done, NULL};
    ck_op_ctx *ctx = &ck_chain_op(f->chain, 0)->ctx;
    ck_tracked_heap_fail_nth(f->t.heap, 1);
    ck_op_submit_io(ctx, &job);
    assert_int_equal(io_done_count, 1);
    assert_true(ck_chain_close(f->chain));
}

/* Also the message is made from what is still there. */
static void every_allocation_of_a_new_chain_may_fail(void **state) {
    fixture *f = *state;
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN);
    ck_chain_host host = {0};
    for (uint64_t n = 1;; n++) {
        ck_chain *c = NULL;
        ck_error err = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_chain_new(&f->t.proc, mem, mem, 3, &host, &c, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        ck_chain_free(c);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        if (!fired) break;
        assert_non_null(strstr(err.msg, "out of memory"));
    }
}

static void what_had_ended_does_not_end_again(void **state) {
    fixture *f = *state;
    make_chain(f, 4, 0);
    connect_row(f);
    for (int i = 0; i < 2; i++) ck_chain_op(f->chain, (uint32_t)i)->restored_ended = true;
    open_all(f);
    assert_int_equal(ck_chain_end_restored(f->chain), CK_OK);
    assert_int_equal(run(f), CK_CHAIN_IDLE);
    assert_string_equal(f->probes[0].log, "");
    assert_string_equal(f->probes[1].log, "");
    assert_string_equal(f->probes[2].log, "e0 ");
    assert_string_equal(f->probes[3].log, "e0 ");
    assert_true(ck_chain_is_finished(f->chain));
}

static void counters_add_up(void **state) {
    fixture *f = *state;
    make_chain(f, 1, 1);
    ck_op_runtime *op = ck_chain_op(f->chain, 0);
    ck_op_count(&op->ctx, "late_rows", 2);
    ck_op_count(&op->ctx, "bad_rows", 1);
    ck_op_count(&op->ctx, "late_rows", 3);
    assert_string_equal(op->counters[0].name, "late_rows");
    assert_int_equal(ck_op_counter_read(&op->counters[0].of), 5);
    assert_int_equal(ck_op_counter_read(&op->counters[1].of), 1);
    char names[40][12];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        ck_op_count(&op->ctx, names[i], 1); /* more than there is room for: the rest is not counted */
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(events_pass_and_controls_follow),
        T(watermarks_never_go_back),
        T(more_resumes_only_when_all_is_worked_off),
        T(again_waits_for_a_wake),
        T(a_closed_input_ends_and_stops_the_source),
        T(a_branch_that_closes_leaves_the_other),
        T(the_head_closes_its_gate),
        T(one_of_two_inputs_may_close),
        T(ports_are_apart),
        T(side_outputs_keep_nothing_going),
        T(an_operator_ends_for_its_sides),
        T(sweeps_go_in_their_order),
        T(failures_name_operator_and_subtask),
        T(a_silent_failure_is_given_words),
        T(wake_ups_come_at_their_time),
        T(closing_waits_for_io),
        T(without_memory_io_runs_at_once),
        T(every_allocation_of_a_new_chain_may_fail),
        T(what_had_ended_does_not_end_again),
        T(counters_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
