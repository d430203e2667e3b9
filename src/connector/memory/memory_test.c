/* Tables in memory: what a job wrote appears when it is committed, is read at any parallelism, and goes with the table.
 */
#include "connector/memory/memory.h"

#include "connector/connectors.h"
#include "connector/outputs.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    harness h, writer;
    held_io io;
    ck_memory_store *store;
    ck_job_outputs outputs;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    assert_int_equal(ck_memory_store_new(f->proc.proc.heap, 1 << 20, &f->store), CK_OK);
    assert_int_equal(ck_memory_stage_new(f->store, &f->outputs.memory), CK_OK);
    harness_init(&f->writer, &f->proc.proc);
    f->h.spec.job_data = f->writer.spec.job_data = &f->outputs;
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    harness_destroy(&f->writer);
    ck_memory_stage_free(&f->outputs.memory);
    ck_memory_store_free(&f->store);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

#define SINK "{\"table\":\"t\",\"options\":{\".instance\":\"7\"},\"primary_key\":[]}"
#define SOURCE                                                                                                         \
    "{\"table\":\"t\",\"table_schema\":[{\"name\":\"k\",\"type\":\"BIGINT\",\"nullable\":true},"                       \
    "{\"name\":\"s\",\"type\":\"VARCHAR\",\"nullable\":true}],\"columns\":[1,0],\"checked\":[],"                       \
    "\"options\":{\".instance\":\"7\"}}"
#define OUTPUT "s VARCHAR; k BIGINT"

static void write_rows(fixture *f, const char *row) {
    harness_input(&f->writer, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    harness_start(&f->writer, &ck_op_sink_memory, SINK, NULL);
    HARNESS_ROWS(&f->writer, row, "2|b", "3|NULL");
    harness_end(&f->writer);
    harness_close(&f->writer);
}

static void read_all(fixture *f, uint32_t parallelism) {
    split_set splits;
    bool ended;
    harness *h = &f->h;
    split_set_init(&splits, h);
    harness_ok(h, ck_op_source_memory.enumerate(&h->spec, parallelism, &splits.list, &h->error));
    assert_int_equal(splits.list.count, parallelism);
    harness_ok(h, source_start(h, &ck_op_source_memory, SOURCE, OUTPUT, &splits.list));
    harness_ok(h, source_drive(h, NULL, SIZE_MAX, &ended));
    assert_true(ended);
    split_set_destroy(&splits);
}

static void rows_appear_when_the_job_has_ended(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    write_rows(f, "1|a");
    assert_int_equal(ck_memory_batches(f->outputs.memory, "7"), 0);
    assert_int_equal(ck_memory_stage_commit(f->outputs.memory, &h->error), CK_OK);
    h->spec.params = SOURCE;
    h->settings.batch_rows = 2;
    read_all(f, 3);
    HARNESS_EXPECT(h, "+a|1", "+b|2", "+NULL|3");
    harness_close(h);
}

static void a_stage_that_is_not_committed_leaves_nothing(void **state) {
    fixture *f = *state;
    write_rows(f, "1|a");
    ck_memory_stage_free(&f->outputs.memory);
    assert_int_equal(ck_memory_stage_new(f->store, &f->outputs.memory), CK_OK);
    f->h.spec.params = SOURCE;
    read_all(f, 1);
    HARNESS_EXPECT_NOTHING(&f->h);
}

static void of_a_commit_that_fails_nothing_appears(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    ck_memory_stage *g = f->outputs.memory;
    harness_input(h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"1|a"}, 1);
    for (uint64_t n = 1;; n++) {
        for (int i = 0; i < 20; i++) assert_int_equal(ck_memory_stage_add(g, i % 2 ? "7" : "8", b, &h->error), CK_OK);
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = ck_memory_stage_commit(g, &h->error);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        assert_int_equal(ck_memory_batches(g, "7"), fired ? 0 : 10);
        assert_int_equal(ck_memory_batches(g, "8"), fired ? 0 : 10);
        if (!fired) break;
    }
    ck_batch_unref(&b);
}

static void a_dropped_table_and_one_of_another_process_are_refused(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    split_set splits;
    bool ended;
    write_rows(f, "1|a");
    assert_int_equal(ck_memory_stage_commit(f->outputs.memory, &h->error), CK_OK);
    h->spec.params = SOURCE;
    split_set_init(&splits, h);
    harness_ok(h, ck_op_source_memory.enumerate(&h->spec, 1, &splits.list, &h->error));
    harness_ok(h, source_start(h, &ck_op_source_memory, SOURCE, OUTPUT, &splits.list));
    ck_memory_store_drop(f->store, "7");
    assert_int_equal(source_drive(h, NULL, SIZE_MAX, &ended), CK_REFUSED);
    harness_close(h);
    assert_int_equal(source_start(h, &ck_op_source_memory, SOURCE, OUTPUT, &splits.list), CK_REFUSED);
    assert_non_null(strstr(h->error.msg, "a process that has ended"));
    split_set_destroy(&splits);
}

static void not_null_is_kept(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    harness_input(h, "k BIGINT NOT NULL; s VARCHAR", CK_MODE_APPEND);
    harness_start(h, &ck_op_sink_memory, SINK, NULL);
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"NULL|a"}, 1);
    ck_event ev = ck_event_batch(b);
    assert_int_equal(ck_op_sink_memory.op->on_event(h->self, 0, &ev, &h->ctx), CK_DATA);
    assert_non_null(strstr(h->error.msg, "\"k\" of \"t\" is NOT NULL"));
    harness_end_call(h);
    ck_batch_unref(&b);
}

static void the_store_has_a_ceiling(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    ck_status s = CK_OK;
    harness_input(h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    harness_start(h, &ck_op_sink_memory, SINK, NULL);
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"1|a text of some length, so that it goes into a heap"}, 1);
    ck_event ev = ck_event_batch(b);
    for (int i = 0; s == CK_OK && i < 100000; i++) {
        s = ck_op_sink_memory.op->on_event(h->self, 0, &ev, &h->ctx);
        harness_end_call(h);
    }
    assert_int_equal(s, CK_NOMEM);
    ck_batch_unref(&b);
}

static void a_job_without_an_engine_has_none(void **state) {
    fixture *f = *state;
    f->h.spec.job_data = NULL;
    harness_input(&f->h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    assert_int_equal(harness_create(&f->h, &ck_op_sink_memory, SINK, NULL), CK_REFUSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(rows_appear_when_the_job_has_ended),
        T(a_stage_that_is_not_committed_leaves_nothing),
        T(of_a_commit_that_fails_nothing_appears),
        T(a_dropped_table_and_one_of_another_process_are_refused),
        T(not_null_is_kept),
        T(the_store_has_a_ceiling),
        T(a_job_without_an_engine_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
