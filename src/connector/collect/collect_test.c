/* The collector between a sink and a reader, with and without a second thread; blackhole beside it. */
#include "connector/collect/collect.h"

#include "connector/connectors.h"
#include "connector/source_test_support.h"
#include "format/encoder.h"
#include "os/thread.h"

typedef struct fixture {
    ck_test_proc proc;
    harness h;
    held_io io;
    ck_collector *collector;
    ck_job_outputs outputs;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    assert_int_equal(ck_collector_new(&f->proc.proc, f->h.mem, 1, &f->collector), CK_OK);
    f->outputs.result = f->collector;
    f->h.spec.job_data = &f->outputs;
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    ck_collector_unref(&f->collector);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

static void start(fixture *f, ck_edge_mode mode) {
    harness_input(&f->h, "k BIGINT; s VARCHAR", mode);
    harness_start(&f->h, &ck_op_sink_collect, "{\"changes\":\"prefix\",\"key\":[0]}", NULL);
}

static ck_status push_once(fixture *f, ck_batch *b) {
    ck_event ev = ck_event_batch(b);
    ck_status s = ck_op_sink_collect.op->on_event(f->h.self, 0, &ev, &f->h.ctx);
    harness_end_call(&f->h);
    return s;
}

static void batches_come_with_kinds_and_outlive_the_sink(void **state) {
    fixture *f = *state;
    ck_collected c;
    start(f, CK_MODE_RETRACT);
    HARNESS_ROWS(&f->h, "1|a long enough text to be apart", "-1|a long enough text to be apart", "1|b");
    harness_end(&f->h);
    harness_close(&f->h);
    ck_collector_finish(f->collector, CK_OK, NULL);
    assert_int_equal(ck_collector_next(f->collector, -1, &c, NULL), CK_OK);
    assert_int_equal(c.batch->sel_count, 3);
    assert_int_equal(c.kinds[0], CK_CHANGE_INSERT);
    assert_int_equal(c.kinds[1], CK_CHANGE_UPDATE_BEFORE);
    assert_int_equal(c.kinds[2], CK_CHANGE_UPDATE_AFTER);
    assert_true(ck_view_is(ck_column_str(c.batch->columns[1], 0), "a long enough text to be apart"));
    ck_collected_destroy(&c);
    ck_collected_destroy(&c);
    assert_int_equal(ck_collector_next(f->collector, -1, &c, NULL), CK_CLOSED);
}

static void a_full_queue_waits_for_the_reader(void **state) {
    fixture *f = *state;
    ck_collected c;
    start(f, CK_MODE_APPEND);
    ck_batch *b = harness_batch(&f->h, 0, (const char *const[]){"1|a"}, 1);
    assert_int_equal(push_once(f, b), CK_OK);
    assert_int_equal(push_once(f, b), CK_AGAIN);
    assert_int_equal(push_once(f, b), CK_AGAIN);
    assert_false(f->h.woken);
    assert_int_equal(ck_collector_next(f->collector, 0, &c, NULL), CK_OK);
    assert_null(c.kinds);
    ck_collected_destroy(&c);
    assert_true(f->h.woken);
    assert_int_equal(push_once(f, b), CK_OK);
    assert_int_equal(harness_counter(&f->h, "rows_out"), 2);
    ck_batch_unref(&b);
}

static void a_reader_that_closes_ends_the_source(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_APPEND);
    ck_batch *b = harness_batch(&f->h, 0, (const char *const[]){"1|a"}, 1);
    assert_int_equal(push_once(f, b), CK_OK);
    assert_int_equal(push_once(f, b), CK_AGAIN);
    ck_collector_close(f->collector);
    assert_true(f->h.woken);
    assert_int_equal(push_once(f, b), CK_OK);
    assert_true(f->h.closed[0]);
    ck_collected c;
    assert_int_equal(ck_collector_next(f->collector, -1, &c, NULL), CK_CLOSED);
    ck_batch_unref(&b);
}

static void failures_and_timeouts_are_told(void **state) {
    fixture *f = *state;
    ck_collected c;
    ck_error err = CK_ERROR_INIT, told = CK_ERROR_INIT;
    assert_int_equal(ck_collector_next(f->collector, 1000, &c, &told), CK_AGAIN);
    ck_fail(&err, CK_DATA, "a bad row");
    ck_collector_finish(f->collector, CK_DATA, &err);
    ck_collector_finish(f->collector, CK_OK, NULL); /* the first word counts */
    assert_int_equal(ck_collector_next(f->collector, -1, &c, &told), CK_DATA);
    assert_string_equal(told.msg, "a bad row");
}

static void nobody_listens(void **state) {
    fixture *f = *state;
    harness_input(&f->h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    harness_start(&f->h, &ck_op_sink_collect, "{\"table\":\"o\",\"options\":{},\"primary_key\":[]}", NULL);
    HARNESS_ROWS(&f->h, "1|a");
    assert_int_equal(harness_counter(&f->h, "rows_out"), 1);
}

static void *read_slowly(void *arg) {
    fixture *f = arg;
    size_t rows = 0;
    ck_collected c;
    while (ck_collector_next(f->collector, -1, &c, NULL) == CK_OK) {
        rows += c.batch->sel_count;
        ck_collected_destroy(&c);
    }
    return (void *)(uintptr_t)rows;
}

static void a_reader_on_another_thread(void **state) {
    fixture *f = *state;
    pthread_t thread;
    void *rows;
    start(f, CK_MODE_APPEND);
    assert_int_equal(ck_thread_start(&thread, "reader", read_slowly, f, NULL), CK_OK);
    ck_batch *b = harness_batch(&f->h, 0, (const char *const[]){"1|a", "2|b"}, 2);
    for (int i = 0; i < 2000; i++)
        while (push_once(f, b) == CK_AGAIN) sched_yield();
    ck_batch_unref(&b);
    ck_collector_finish(f->collector, CK_OK, NULL);
    pthread_join(thread, &rows);
    assert_int_equal((uintptr_t)rows, 4000);
}

static void blackhole_counts(void **state) {
    fixture *f = *state;
    harness_input(&f->h, "k BIGINT; s VARCHAR", CK_MODE_RETRACT);
    harness_start(&f->h, &ck_op_sink_blackhole, "{\"table\":\"o\",\"options\":{},\"primary_key\":[]}", NULL);
    HARNESS_ROWS(&f->h, "1|a", "-1|a");
    harness_end(&f->h);
    assert_int_equal(harness_counter(&f->h, "rows_out"), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(batches_come_with_kinds_and_outlive_the_sink),
        T(a_full_queue_waits_for_the_reader),
        T(a_reader_that_closes_ends_the_source),
        T(failures_and_timeouts_are_told),
        T(nobody_listens),
        T(a_reader_on_another_thread),
        T(blackhole_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
