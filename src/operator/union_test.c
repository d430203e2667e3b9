#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

static void rows_pass_as_they_come(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_input(h, "a VARCHAR NOT NULL; b BIGINT NOT NULL", CK_MODE_RETRACT);
    harness_start(h, &ck_op_union, "{}", NULL);
    HARNESS_ROWS(h, "x|1");
    const char *rows[] = {"-y|2", "z|3"};
    harness_ok(h, harness_try_rows(h, 1, rows, 2));
    HARNESS_EXPECT(h, "+x|1", "-y|2", "+z|3");
}

static void columns_must_agree(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_input(h, "k VARCHAR; v INTEGER", CK_MODE_APPEND);
    assert_int_equal(harness_create(h, &ck_op_union, "{}", NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "columns of input 2 differ"));
    h->inputs[1] = h->inputs[0];
    h->inputs[1].mode = CK_MODE_UPSERT;
    assert_int_equal(harness_create(h, &ck_op_union, "{}", NULL), CK_INVALID);
    h->spec.input_count = 0;
    assert_int_equal(harness_create(h, &ck_op_union, "{}", "k VARCHAR"), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(rows_pass_as_they_come), T(columns_must_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
