#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

/* v > 3 */
#define V_OVER_3                                                                                                       \
    "{\"fn\":\">\",\"args\":[{\"col\":1,\"type\":\"BIGINT\",\"null\":true},{\"lit\":3,\"type\":\"BIGINT\"}],"          \
    "\"type\":\"BOOLEAN\",\"null\":true}"
/* 10 / v > 2 */
#define TEN_OVER_V                                                                                                     \
    "{\"fn\":\">\",\"args\":[{\"fn\":\"/\",\"args\":[{\"lit\":10,\"type\":\"BIGINT\"},"                                \
    "{\"col\":1,\"type\":\"BIGINT\",\"null\":true}],\"type\":\"BIGINT\",\"null\":true},"                               \
    "{\"lit\":2,\"type\":\"BIGINT\"}],\"type\":\"BOOLEAN\",\"null\":true}"

static void keeps_rows_that_are_true(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" V_OVER_3 "]}", NULL);
    HARNESS_ROWS(h, "a|3", "b|4", "c|NULL", "-d|5", "e|-9");
    HARNESS_EXPECT(h, "+b|4", "-d|5");
    HARNESS_ROWS(h, "a|1");
    assert_int_equal(h->batch_count, 0);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void shares_what_passes_whole(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->keep_batches = true;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" V_OVER_3 "]}", NULL);
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"a|4", "b|5"}, 2);
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    assert_ptr_equal(h->batches[0], b);
    ck_batch_unref(&b);
    b = harness_batch(h, 0, (const char *const[]){"a|4", "b|1"}, 2);
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    assert_ptr_equal(h->batches[1]->columns[0], b->columns[0]);
    assert_int_equal(h->batches[1]->sel_count, 1);
    ck_batch_unref(&b);
}

static void conjuncts_run_left_to_right(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" V_OVER_3 "," TEN_OVER_V "]}", NULL);
    HARNESS_ROWS(h, "a|0", "b|4", "c|5"); /* the division only sees 4 and 5 */
    HARNESS_EXPECT_NOTHING(h);
    harness_close(h);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" TEN_OVER_V "," V_OVER_3 "]}", NULL);
    const char *rows[] = {"b|4", "a|0"};
    assert_int_equal(harness_try_rows(h, 0, rows, 2), CK_DATA);
    assert_non_null(strstr(h->error.msg, "division by zero"));
}

static void errors_may_be_null(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->settings.eval_error_null = true;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" TEN_OVER_V "]}", NULL);
    HARNESS_ROWS(h, "a|0", "b|2");
    HARNESS_EXPECT(h, "+b|2");
}

static void over_upserts_what_fails_is_deleted(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_UPSERT);
    harness_start(h, &ck_op_filter, "{\"conjuncts\":[" V_OVER_3 "]}", NULL);
    HARNESS_ROWS(h, "a|4", "b|1", "-c|NULL");
    HARNESS_EXPECT(h, "+a|4", "-b|1", "-c|NULL");
}

static void no_memory_leaks_nothing(void **state) {
    fixture *f = *state;
    for (uint64_t n = 1;; n++) {
        harness *h = &f->h;
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
        harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
        ck_batch *b = harness_batch(h, 0, (const char *const[]){"a|4", "b|1"}, 2);
        harness_new_store(h);
        harness_context(h);
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = ck_op_filter.create(&(ck_op_spec){.proc = h->proc,
                                                        .uid = "op",
                                                        .type = "filter",
                                                        .params = "{\"conjuncts\":[" V_OVER_3 "]}",
                                                        .inputs = h->inputs,
                                                        .input_count = 1,
                                                        .schema = h->inputs[0].schema,
                                                        .settings = &h->settings,
                                                        .parallelism = 1},
                                          h->mem, &h->self, &h->error);
        h->desc = &ck_op_filter;
        h->keep_batches = true;
        h->spec.schema = h->inputs[0].schema;
        ck_event ev = ck_event_batch(b);
        if (s == CK_OK) s = ck_op_filter.op->on_event(h->self, 0, &ev, &h->ctx);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        ck_batch_unref(&b);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        if (!fired) return;
    }
}

static void bad_parameters_are_named(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    static const char *const bad[][2] = {
        {"{\"conjuncts\":[{\"col\":1,\"type\":\"BIGINT\",\"null\":true}]}", "conjunct 1 is not BOOLEAN"},
        {"{\"conjuncts\":[{\"col\":2,\"type\":\"BOOLEAN\",\"null\":true}]}", "over the input's columns"},
        {"{\"conjuncts\":3}", "must be an array of expressions"},
        {"{\"conjunct\":[]}", "no parameter \"conjunct\""},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        assert_int_equal(harness_create(h, &ck_op_filter, bad[i][0], NULL), CK_INVALID);
        if (!strstr(h->error.msg, bad[i][1])) fail_msg("%s", h->error.msg);
    }
    h->spec.input_count = 0;
    assert_int_equal(harness_create(h, &ck_op_filter, "{\"conjuncts\":[]}", "k VARCHAR"), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(keeps_rows_that_are_true),
        T(shares_what_passes_whole),
        T(conjuncts_run_left_to_right),
        T(errors_may_be_null),
        T(no_memory_leaks_nothing),
        T(bad_parameters_are_named),
        T(over_upserts_what_fails_is_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
