#include "runtime/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "runtime/test_kit.h"

typedef struct fixture {
    ck_test_proc t;
    ck_manual_clock clock;
    ck_gate *g;
    char log[4096];
    size_t n;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_manual_clock_init(&f.clock, 1000, 7000);
    f.t.proc.clock = &f.clock.base;
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_gate_free(f->g);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static const bool first_may_be_held[] = {true, false};

static void make_with(fixture *f, uint32_t inputs, const uint32_t *channels, uint64_t restored, bool flush_each) {
    ck_gate_config cfg = {.proc = &f->t.proc,
                          .mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN),
                          .queue_mem = ck_proc_mem(&f->t.proc, CK_MEM_QUEUE),
                          .input_count = inputs,
                          .channels_of = channels,
                          .bytes_max = 1 << 20,
                          .events_max = 100,
                          .restored = restored,
                          .may_hold = inputs == 2 ? first_may_be_held : NULL,
                          .flush_each = flush_each};
    assert_int_equal(ck_gate_new(&cfg, &f->g, NULL), CK_OK);
}
static void make(fixture *f, uint32_t inputs, const uint32_t *channels) { make_with(f, inputs, channels, 0, false); }

static void push(fixture *f, uint32_t input, uint32_t channel, ck_event ev) {
    assert_int_equal(ck_channel_push(ck_gate_channel(f->g, input, channel), &ev), CK_OK);
}
static void push_batch(fixture *f, uint32_t input, uint32_t channel, uint32_t rows) {
    push(f, input, channel, ck_event_batch(kit_batch(ck_proc_mem(&f->t.proc, CK_MEM_QUEUE), 0, rows)));
}
static ck_event cancel_of(uint64_t checkpoint) {
    return (ck_event){.kind = CK_EVENT_CANCEL_BARRIER, .barrier = {.checkpoint = checkpoint}};
}

static void note(fixture *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    f->n += (size_t)vsnprintf(f->log + f->n, sizeof f->log - f->n, fmt, ap);
    va_end(ap);
}

/* Everything there is, as text: b<input>:<rows> w<value>[i] f<seq> e<input> B<checkpoint> C<checkpoint>. */
static const char *drain(fixture *f) {
    uint32_t input;
    ck_event ev;
    f->n = 0;
    f->log[0] = 0;
    while (ck_gate_next(f->g, &input, &ev) == CK_GATE_EVENT) switch (ev.kind) {
        case CK_EVENT_BATCH:
            note(f, "b%u:%u ", input, ev.batch->sel_count);
            ck_batch_unref(&ev.batch);
            break;
        case CK_EVENT_WATERMARK:
            note(f, "w%lld%s ", (long long)ev.watermark.value, ev.watermark.idle ? "i" : "");
            break;
        case CK_EVENT_FLUSH: note(f, "f%llu ", (unsigned long long)ev.flush_seq); break;
        case CK_EVENT_END: note(f, "e%u ", input); break;
        case CK_EVENT_BARRIER:
            note(f, "B%llu ", (unsigned long long)ev.barrier.checkpoint);
            if (ev.barrier.after) note(f, "after%llu ", (unsigned long long)ev.barrier.after);
            break;
        case CK_EVENT_CANCEL_BARRIER: note(f, "C%llu ", (unsigned long long)ev.barrier.checkpoint); break;
        default: note(f, "? ");
        }
    return f->log;
}

static void channels_take_turns(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){2, 1});
    for (uint32_t i = 0; i < 3; i++) push_batch(f, 0, 0, 10 + i);
    for (uint32_t i = 0; i < 2; i++) push_batch(f, 0, 1, 20 + i);
    push_batch(f, 1, 0, 30);
    assert_string_equal(drain(f), "b0:10 b0:20 b1:30 b0:11 b0:21 b0:12 ");
    assert_string_equal(drain(f), "");
    push_batch(f, 1, 0, 31);
    assert_string_equal(drain(f), "b1:31 ");
}

static void many_channels_are_found(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){200});
    for (uint32_t c = 0; c < 200; c += 7) push_batch(f, 0, c, c + 1);
    uint32_t input, count = 0;
    ck_event ev;
    while (ck_gate_next(f->g, &input, &ev) == CK_GATE_EVENT) {
        assert_int_equal(ev.batch->sel_count, count++ * 7 + 1);
        ck_batch_unref(&ev.batch);
    }
    assert_int_equal(count, 29);
}

/* All inputs of a UNION ALL close at once when what is behind them dies: each may let the watermark rise. */
static void many_inputs_close_before_one_is_told(void **state) {
    fixture *f = *state;
    uint32_t channels[20];
    for (uint32_t i = 0; i < 20; i++) channels[i] = 1;
    make(f, 20, channels);
    for (uint32_t i = 0; i < 20; i++) push(f, i, 0, ck_event_watermark((int64_t)i + 1, false));
    assert_string_equal(drain(f), "w1 ");
    for (uint32_t i = 0; i < 19; i++) ck_gate_close_input(f->g, i);
    assert_non_null(strstr(drain(f), "w20 "));
}

static void the_least_watermark_counts(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){2, 1});
    push(f, 0, 0, ck_event_watermark(10, false));
    push(f, 1, 0, ck_event_watermark(30, false));
    assert_string_equal(drain(f), ""); /* one has said nothing yet */
    push(f, 0, 1, ck_event_watermark(20, false));
    assert_string_equal(drain(f), "w10 ");
    push(f, 0, 0, ck_event_watermark(25, false));
    assert_string_equal(drain(f), "w20 ");
    push(f, 0, 1, ck_event_watermark(15, false)); /* back: ignored */
    push(f, 0, 1, ck_event_watermark(22, false));
    assert_string_equal(drain(f), "w22 ");
    push(f, 0, 1, ck_event_end()); /* leaves */
    assert_string_equal(drain(f), "w25 ");
    push(f, 0, 0, ck_event_end());
    assert_string_equal(drain(f), "w30 e0 ");
    push(f, 1, 0, ck_event_end());
    assert_string_equal(drain(f), "e1 ");
}

static void idle_channels_leave_and_return(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){2});
    push(f, 0, 0, ck_event_watermark(10, false));
    push(f, 0, 1, ck_event_watermark(5, false));
    assert_string_equal(drain(f), "w5 ");
    push(f, 0, 1, ck_event_watermark(6, true)); /* 6 counts before it leaves */
    assert_string_equal(drain(f), "w6 w10 ");
    push(f, 0, 0, ck_event_watermark(12, true)); /* the last one left: it stays */
    assert_string_equal(drain(f), "w12 w12i ");
    push_batch(f, 0, 1, 3); /* back with its old 6: time does not go back */
    assert_string_equal(drain(f), "w12 b0:3 ");
    push(f, 0, 1, ck_event_watermark(11, false));
    assert_string_equal(drain(f), "");
    push(f, 0, 1, ck_event_watermark(14, false));
    assert_string_equal(drain(f), "w14 ");
}

static void the_greatest_flush_counts(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){3});
    push(f, 0, 0, ck_event_flush(5));
    push(f, 0, 1, ck_event_flush(5));
    push(f, 0, 2, ck_event_flush(4));
    push(f, 0, 2, ck_event_flush(6));
    assert_string_equal(drain(f), "f5 f6 ");
}

/* Rows of a slower channel between a FLUSH and the same one of its own: there may never be another, so it is told when
 * nothing else waits, and only once. */
static void rows_behind_the_greatest_flush_are_flushed(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){3});
    push(f, 0, 0, ck_event_flush(5));
    push_batch(f, 0, 1, 2);
    push(f, 0, 1, ck_event_flush(5));
    push(f, 0, 2, ck_event_flush(4));
    assert_string_equal(drain(f), "f5 b0:2 f5 ");
    push(f, 0, 2, ck_event_flush(5));
    assert_string_equal(drain(f), "");
    push_batch(f, 0, 0, 1);
    push(f, 0, 0, ck_event_flush(3));
    push(f, 0, 0, ck_event_flush(6));
    assert_string_equal(drain(f), "b0:1 f6 "); /* a greater one came meanwhile */
}

static void one_row_batches_flush_each_time(void **state) {
    fixture *f = *state;
    make_with(f, 1, (uint32_t[]){2}, 0, true);
    push(f, 0, 0, ck_event_flush(5));
    push(f, 0, 1, ck_event_flush(3));
    push(f, 0, 0, ck_event_flush(6));
    push(f, 0, 1, ck_event_flush(20));
    assert_string_equal(drain(f), "f5 f6 f7 f20 ");
}

static void barriers_align(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){2, 1});
    push(f, 0, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    push_batch(f, 0, 0, 1); /* behind its barrier: held */
    push_batch(f, 0, 1, 2);
    assert_string_equal(drain(f), "b0:2 ");
    push(f, 1, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    push_batch(f, 1, 0, 3);
    assert_string_equal(drain(f), "");
    push(f, 0, 1, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "B1 b1:3 b0:1 ");
    push(f, 0, 1, ck_event_end()); /* an end counts as having delivered every barrier */
    push(f, 0, 0, ck_event_barrier(2, CK_BARRIER_PERIODIC));
    push(f, 1, 0, ck_event_barrier(2, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "B2 ");
    push(f, 0, 0, ck_event_end());
    assert_string_equal(drain(f), "e0 ");
    push(f, 1, 0, ck_event_end());
    assert_string_equal(drain(f), "e1 ");
    for (uint32_t c = 0; c < 2; c++) push(f, 0, c, ck_event_barrier(3, CK_BARRIER_FINAL));
    push(f, 1, 0, ck_event_barrier(3, CK_BARRIER_FINAL));
    assert_string_equal(drain(f), "B3 "); /* once */
}

/* What was complete when a checkpoint began goes on with its barrier. */
static void barriers_tell_what_is_complete(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){2});
    ck_event b = ck_event_barrier(6, CK_BARRIER_PERIODIC);
    b.barrier.after = 4;
    push(f, 0, 0, b);
    push(f, 0, 1, b);
    assert_string_equal(drain(f), "B6 after4 ");
}

static void a_cancel_lets_go(void **state) {
    fixture *f = *state;
    make(f, 1, (uint32_t[]){2});
    push(f, 0, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    push_batch(f, 0, 0, 1);
    assert_string_equal(drain(f), "");
    push(f, 0, 1, cancel_of(1)); /* this one never sent the barrier */
    push(f, 0, 0, cancel_of(1));
    assert_string_equal(drain(f), "C1 b0:1 ");
    push(f, 0, 0, ck_event_barrier(2, CK_BARRIER_PERIODIC));
    push(f, 0, 1, ck_event_barrier(2, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "B2 ");
}

static void old_barriers_are_stale_after_a_restore(void **state) {
    fixture *f = *state;
    make_with(f, 1, (uint32_t[]){1}, 7, false);
    push(f, 0, 0, ck_event_barrier(7, CK_BARRIER_PERIODIC));
    push(f, 0, 0, ck_event_barrier(8, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "B8 ");
}

static void an_input_may_be_held_back(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){2, 1});
    ck_gate_hold_input(f->g, 0, true);
    ck_gate_hold_input(f->g, 1, true); /* may not: nothing happens */
    push_batch(f, 0, 0, 1);
    push_batch(f, 0, 1, 2);
    push_batch(f, 1, 0, 3);
    assert_string_equal(drain(f), "b1:3 ");
    push(f, 1, 0, ck_event_end());
    assert_string_equal(drain(f), "e1 ");
    ck_gate_hold_input(f->g, 0, false);
    assert_string_equal(drain(f), "b0:1 b0:2 ");
}

static void a_barrier_comes_through_what_is_held_back(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){1, 1});
    ck_gate_hold_input(f->g, 0, true);
    push_batch(f, 0, 0, 1);
    push(f, 0, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    push_batch(f, 0, 0, 2);
    assert_string_equal(drain(f), ""); /* a barrier nobody has seen */
    push_batch(f, 1, 0, 3);
    push(f, 1, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "b1:3 b0:1 B1 "); /* behind it the input is held again */
    push(f, 1, 0, ck_event_barrier(2, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "b0:2 ");
    push(f, 0, 0, cancel_of(2));
    push_batch(f, 0, 0, 4);
    assert_string_equal(drain(f), "C2 ");
    ck_gate_hold_input(f->g, 0, false);
    assert_string_equal(drain(f), "b0:4 ");
}

static void a_closed_input_is_quiet(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){2, 1});
    push(f, 0, 0, ck_event_watermark(50, false));
    push(f, 0, 1, ck_event_watermark(60, false));
    push(f, 1, 0, ck_event_watermark(10, false));
    push_batch(f, 1, 0, 1);
    assert_string_equal(drain(f), "w10 b1:1 ");
    push_batch(f, 1, 0, 2);
    push(f, 0, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    push(f, 0, 1, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    ck_gate_close_input(f->g, 1);
    ck_gate_close_input(f->g, 1);
    assert_string_equal(drain(f), "w50 B1 "); /* it leaves watermark and alignment, without an END */
    ck_event ev = ck_event_end();
    assert_int_equal(ck_channel_push(ck_gate_channel(f->g, 1, 0), &ev), CK_CLOSED);
    assert_false(ck_gate_is_detached(f->g));
    assert_int_equal(ck_gate_bytes(f->g), 0);
}

static void a_detached_gate_is_triggered(void **state) {
    fixture *f = *state;
    ck_event ev;
    make(f, 1, (uint32_t[]){2});
    push(f, 0, 0, ck_event_barrier(4, CK_BARRIER_PERIODIC));
    push(f, 0, 1, ck_event_barrier(4, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "B4 ");
    ck_gate_close_input(f->g, 0);
    assert_true(ck_gate_is_detached(f->g));
    assert_false(ck_gate_trigger(f->g, 4, CK_BARRIER_PERIODIC, &ev)); /* came in band */
    assert_true(ck_gate_trigger(f->g, 5, CK_BARRIER_FINAL, &ev));
    assert_int_equal(ev.barrier.checkpoint, 5);
    assert_int_equal(ev.barrier.kind, CK_BARRIER_FINAL);
    assert_false(ck_gate_trigger(f->g, 5, CK_BARRIER_FINAL, &ev));
}

static void closing_completes_an_alignment(void **state) {
    fixture *f = *state;
    make(f, 2, (uint32_t[]){1, 1});
    push(f, 0, 0, ck_event_barrier(1, CK_BARRIER_PERIODIC));
    assert_string_equal(drain(f), "");
    ck_gate_close_input(f->g, 1);
    assert_string_equal(drain(f), "B1 ");
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    for (uint64_t n = 1;; n++) {
        ck_gate_config cfg = {.proc = &f->t.proc,
                              .mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN),
                              .queue_mem = ck_proc_mem(&f->t.proc, CK_MEM_QUEUE),
                              .input_count = 2,
                              .channels_of = (uint32_t[]){2, 70},
                              .bytes_max = 1000,
                              .events_max = 10};
        ck_error err = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_gate_new(&cfg, &f->g, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            return;
        }
        assert_int_equal(s, CK_NOMEM);
        assert_int_equal(ck_tracked_heap_live_blocks(f->t.heap), 0);
    }
}

/* A watermark and the batch behind it come of one event: the gate may be taken down between the two. */
static void what_waits_is_given_back(void **state) {
    fixture *f = *state;
    uint32_t input;
    ck_event ev;
    make(f, 1, (uint32_t[]){1});
    push(f, 0, 0, ck_event_watermark(10, true));
    push_batch(f, 0, 0, 3);
    assert_string_equal((ck_gate_next(f->g, &input, &ev), ev.kind == CK_EVENT_WATERMARK ? "w" : "?"), "w");
    while (ck_gate_next(f->g, &input, &ev) == CK_GATE_EVENT && !(ev.kind == CK_EVENT_WATERMARK && !ev.watermark.idle)) {
    }
    ck_gate_free(f->g);
    f->g = NULL;
    assert_int_equal(ck_tracked_heap_live_blocks(f->t.heap), 0);
}

/* ---- checkpoints that overtake ---- */

static ck_event overtaking(uint64_t checkpoint) {
    return (ck_event){.kind = CK_EVENT_BARRIER, .barrier = {.checkpoint = checkpoint, .overtakes = true}};
}

/* Up to the barrier: what comes before it in drain's words. */
static const char *until_barrier(fixture *f, bool *overtakes) {
    uint32_t input;
    ck_event ev;
    f->n = 0;
    f->log[0] = 0;
    while (ck_gate_next(f->g, &input, &ev) == CK_GATE_EVENT) {
        if (ev.kind == CK_EVENT_BARRIER) {
            *overtakes = ev.barrier.overtakes;
            note(f, "B%llu", (unsigned long long)ev.barrier.checkpoint);
            return f->log;
        }
        if (ev.kind != CK_EVENT_BATCH) continue;
        note(f, "b%u:%u ", input, ev.batch->sel_count);
        ck_batch_unref(&ev.batch);
    }
    return f->log;
}

static uint64_t take_recorded(fixture *f, uint64_t checkpoint) {
    ck_inflight *in = ck_gate_take_recording(f->g, checkpoint);
    uint64_t n = in ? ck_inflight_batches(in) : 0;
    ck_inflight_free(in);
    return n;
}

static void what_is_under_way_is_recorded(void **state) {
    fixture *f = *state;
    bool overtakes = false;
    make(f, 1, (uint32_t[]){3});
    for (uint32_t i = 0; i < 40; i++) push_batch(f, 0, 0, 1); /* over several segments of the queue */
    push_batch(f, 0, 1, 2);
    push(f, 0, 1, overtaking(5));
    push_batch(f, 0, 1, 3); /* behind the barrier */
    ck_gate_overtake(f->g, 5, CK_BARRIER_PERIODIC);
    assert_true(ck_gate_is_urgent(f->g));
    assert_string_equal(until_barrier(f, &overtakes), "B5");
    assert_true(overtakes && !ck_gate_is_urgent(f->g));
    assert_int_equal(ck_gate_recording(f->g, 5), CK_RECORDING_OPEN);
    assert_int_equal(ck_gate_recording(f->g, 4), CK_RECORDING_NONE);
    uint32_t input;
    ck_event ev;
    for (int i = 0; i < 20; i++) { /* reading goes on meanwhile */
        assert_int_equal(ck_gate_next(f->g, &input, &ev), CK_GATE_EVENT);
        ck_batch_unref(&ev.batch);
        push_batch(f, 0, 2, 4); /* later than the mark, before the barrier */
    }
    push(f, 0, 0, overtaking(5));
    push(f, 0, 2, overtaking(5));
    push_batch(f, 0, 2, 5);
    assert_int_equal(ck_gate_recording(f->g, 5), CK_RECORDING_WHOLE);
    assert_int_equal(take_recorded(f, 5), 40 + 1 + 20);
    assert_null(strchr(drain(f), 'B')); /* the barriers that were overtaken say nothing more */
}

static void an_overtaking_barrier_from_a_channel(void **state) {
    fixture *f = *state;
    bool overtakes = false;
    make(f, 2, (uint32_t[]){1, 1});
    push(f, 0, 0, overtaking(5));
    push_batch(f, 1, 0, 2);
    push(f, 1, 0, ck_event_end());
    assert_string_equal(until_barrier(f, &overtakes), "B5");
    assert_int_equal(ck_gate_recording(f->g, 5), CK_RECORDING_WHOLE); /* END stands for the barrier */
    assert_int_equal(take_recorded(f, 5), 1);
    ck_gate_overtake(f->g, 6, CK_BARRIER_PERIODIC);
    assert_int_equal(strcmp(until_barrier(f, &overtakes), "B6"), 0);
    push(f, 0, 0, cancel_of(6));
    assert_int_equal(ck_gate_recording(f->g, 6), CK_RECORDING_BROKEN);
    take_recorded(f, 6);
    assert_string_equal(drain(f), "b1:2 e1 ");
    ck_gate_overtake(f->g, 7, CK_BARRIER_PERIODIC);
    until_barrier(f, &overtakes);
    ck_gate_close_input(f->g, 0); /* what it would have brought is lost */
    assert_int_equal(ck_gate_recording(f->g, 7), CK_RECORDING_BROKEN);
    take_recorded(f, 7);
}

static void replays_come_first(void **state) {
    fixture *f = *state;
    ck_channel *first, *second;
    bool overtakes = false;
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_QUEUE);
    make(f, 2, (uint32_t[]){1, 1});
    assert_int_equal(ck_gate_add_replay(f->g, 0, 100, false, true, &first), CK_OK);
    assert_int_equal(ck_gate_add_replay(f->g, 1, 50, false, true, &second), CK_OK);
    for (uint32_t i = 0; i < 2; i++) ck_gate_restore_watermark(f->g, i, 90);
    ck_event events[] = {ck_event_batch(kit_batch(mem, 0, 3)), ck_event_watermark(120, false),
                         ck_event_batch(kit_batch(mem, 0, 4))};
    for (int i = 0; i < 3; i++) assert_int_equal(ck_channel_push(first, &events[i]), CK_OK);
    ck_event more[] = {ck_event_batch(kit_batch(mem, 0, 5)), ck_event_watermark(80, false),
                       ck_event_batch(kit_batch(mem, 0, 6))};
    for (int i = 0; i < 3; i++) assert_int_equal(ck_channel_push(second, &more[i]), CK_OK);
    push_batch(f, 0, 0, 1);
    push(f, 0, 0, ck_event_barrier(9, CK_BARRIER_PERIODIC));
    push(f, 1, 0, ck_event_barrier(9, CK_BARRIER_PERIODIC));
    uint32_t input;
    ck_event ev;
    assert_int_equal(ck_gate_next(f->g, &input, &ev), CK_GATE_EVENT); /* the least of all that take part */
    assert_int_equal(ev.watermark.value, 50);
    assert_int_equal(ck_gate_next(f->g, &input, &ev), CK_GATE_EVENT);
    assert_int_equal(ev.batch->sel_count, 3);
    ck_batch_unref(&ev.batch);
    ck_gate_overtake(f->g, 8, CK_BARRIER_PERIODIC); /* before all is through: the rest is in flight again */
    assert_string_equal(until_barrier(f, &overtakes), "B8");
    push(f, 0, 0, ck_event_barrier(8, CK_BARRIER_PERIODIC)); /* late, behind 9: stale, and 8 cannot be whole */
    assert_int_equal(ck_gate_recording(f->g, 8), CK_RECORDING_BROKEN);
    assert_int_equal(take_recorded(f, 8), 1 + 2 + 1);
    assert_string_equal(drain(f), "b0:4 b1:5 w80 b1:6 w90 f1 b0:1 B9 ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(channels_take_turns),
        T(many_channels_are_found),
        T(many_inputs_close_before_one_is_told),
        T(the_least_watermark_counts),
        T(idle_channels_leave_and_return),
        T(the_greatest_flush_counts),
        T(rows_behind_the_greatest_flush_are_flushed),
        T(one_row_batches_flush_each_time),
        T(barriers_align),
        T(barriers_tell_what_is_complete),
        T(a_cancel_lets_go),
        T(old_barriers_are_stale_after_a_restore),
        T(an_input_may_be_held_back),
        T(a_barrier_comes_through_what_is_held_back),
        T(a_closed_input_is_quiet),
        T(a_detached_gate_is_triggered),
        T(closing_completes_an_alignment),
        T(what_waits_is_given_back),
        T(what_is_under_way_is_recorded),
        T(an_overtaking_barrier_from_a_channel),
        T(replays_come_first),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
