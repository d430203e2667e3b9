#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

static void passes_the_first_rows_and_closes(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_limit, "{\"limit\":3,\"offset\":2}", NULL);
    HARNESS_ROWS(h, "1", "2", "3");
    HARNESS_EXPECT(h, "+3");
    assert_false(h->closed[0]);
    HARNESS_ROWS(h, "4", "5", "6");
    HARNESS_EXPECT(h, "+4", "+5");
    assert_true(h->closed[0]);
    HARNESS_ROWS(h, "7"); /* was on its way */
    HARNESS_EXPECT_NOTHING(h);
}

static void counts_on_after_a_restart(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_limit, "{\"limit\":2,\"offset\":3}", NULL);
    HARNESS_ROWS(h, "1", "2");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "3", "4");
    HARNESS_EXPECT(h, "+4");
    harness_restart(h, 2);
    assert_false(h->closed[0]);
    HARNESS_ROWS(h, "5", "6");
    HARNESS_EXPECT(h, "+5");
    h->closed[0] = false;
    harness_restart(h, 3);
    assert_true(h->closed[0]); /* at once */
}

static void edges(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_limit, "{\"limit\":0,\"offset\":0}", NULL);
    assert_true(h->closed[0]);
    harness_close(h);
    ck_state_store_free(h->store);
    h->store = NULL;
    h->closed[0] = false;
    harness_start(h, &ck_op_limit, "{\"limit\":null,\"offset\":1}", NULL);
    HARNESS_ROWS(h, "1", "2", "3");
    HARNESS_EXPECT(h, "+2", "+3");
    assert_false(h->closed[0]);
}

static void refuses_changes_and_parallelism(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_RETRACT);
    assert_int_equal(harness_create(h, &ck_op_limit, "{\"limit\":1,\"offset\":0}", NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "no retract input"));
    h->inputs[0].mode = CK_MODE_APPEND;
    h->spec.parallelism = 2;
    assert_int_equal(harness_create(h, &ck_op_limit, "{\"limit\":1,\"offset\":0}", NULL), CK_INVALID);
    h->spec.parallelism = 1;
    assert_int_equal(harness_create(h, &ck_op_limit, "{\"limit\":-1,\"offset\":0}", NULL), CK_INVALID);
    assert_int_equal(harness_create(h, &ck_op_limit, "{\"limit\":1,\"offset\":\"x\"}", NULL), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(passes_the_first_rows_and_closes), T(counts_on_after_a_restart), T(edges),
                                       T(refuses_changes_and_parallelism)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
