#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define COL(n, type) "{\"col\":" n ",\"type\":\"" type "\",\"null\":true}"
#define V_PLUS_1                                                                                                       \
    "{\"fn\":\"+\",\"args\":[" COL("1", "BIGINT") ",{\"lit\":1,\"type\":\"BIGINT\"}],\"type\":\"BIGINT\",\"null\":"    \
                                                  "true}"

static void passes_plain_columns_by_reference(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->keep_batches = true;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_project,
                  "{\"exprs\":[" COL("1", "BIGINT") "," COL("0", "VARCHAR") "," COL("1", "BIGINT") "]}",
                  "v BIGINT; k VARCHAR; w BIGINT");
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"a|4", "-b|5"}, 2);
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    const ck_batch *out = h->batches[0];
    assert_ptr_equal(out->columns[0], b->columns[1]);
    assert_ptr_equal(out->columns[1], b->columns[0]);
    assert_ptr_equal(out->columns[2], b->columns[1]);
    assert_int_equal(ck_batch_weight(out, 1), -1);
    ck_batch_unref(&b);
}

static void computes_and_keeps_selection_and_weights(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_project, "{\"exprs\":[" COL("0", "VARCHAR") "," V_PLUS_1 "]}", "k VARCHAR; v BIGINT");
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"a|4", "x|9223372036854775807", "-b|5", "c|NULL"}, 4);
    uint16_t sel[] = {0, 2, 3}; /* the row that would overflow is not selected */
    ck_batch *some = ck_batch_select(b, sel, 3);
    harness_ok(h, harness_event(h, 0, ck_event_batch(some)));
    HARNESS_EXPECT(h, "+a|5", "-b|6", "+c|NULL");
    assert_int_equal(harness_event(h, 0, ck_event_batch(b)), CK_DATA);
    assert_non_null(strstr(h->error.msg, "out of range"));
    ck_batch_unref(&some);
    ck_batch_unref(&b);
}

static void constants_fill_every_row(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_project, "{\"exprs\":[{\"lit\":7,\"type\":\"BIGINT\"}]}", "c BIGINT");
    HARNESS_ROWS(h, "a|1", "b|2");
    HARNESS_EXPECT(h, "+7", "+7");
}

static void deletes_carry_keys_only(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_UPSERT);
    harness_start(h, &ck_op_project, "{\"exprs\":[" COL("0", "VARCHAR") "," V_PLUS_1 "]}", "k VARCHAR; v BIGINT");
    HARNESS_ROWS(h, "a|4", "-b|9223372036854775807", "c|6");
    HARNESS_EXPECT(h, "+a|5", "-b|NULL", "+c|7");
    HARNESS_ROWS(h, "a|4", "c|6");
    HARNESS_EXPECT(h, "+a|5", "+c|7");
}

static void the_output_must_fit(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    assert_int_equal(harness_create(h, &ck_op_project, "{\"exprs\":[" COL("1", "BIGINT") "]}", NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "1 expressions for 2 columns"));
    assert_int_equal(harness_create(h, &ck_op_project, "{\"exprs\":[" COL("5", "BIGINT") "]}", "v BIGINT"), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(passes_plain_columns_by_reference),
        T(computes_and_keeps_selection_and_weights),
        T(constants_fill_every_row),
        T(deletes_carry_keys_only),
        T(the_output_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
