#include "connector/connectors.h"

#include "connector/source_test_support.h"

HARNESS_FIXTURE

#define ROWS                                                                                                           \
    "{\"rows\":[[{\"lit\":1,\"type\":\"BIGINT\"},{\"lit\":\"a\",\"type\":\"VARCHAR\"}],"                               \
    "[{\"lit\":null,\"type\":\"BIGINT\"},{\"lit\":\"b\",\"type\":\"VARCHAR\"}],"                                       \
    "[{\"lit\":3,\"type\":\"BIGINT\"},{\"lit\":\"a text that is longer\",\"type\":\"VARCHAR\"}]]}"
#define OUTPUT "n BIGINT; s VARCHAR"

static void rows_come_once_also_over_a_restart(void **state) {
    harness *h = &((fixture *)*state)->h;
    held_io io = {0};
    split_set splits, later;
    bool ended;
    h->io = &io;
    h->settings.batch_rows = 2;
    split_set_init(&splits, h);
    harness_ok(h, ck_op_source_values.enumerate(&h->spec, 4, &splits.list, &h->error));
    assert_int_equal(splits.list.count, 1);
    harness_ok(h, source_start(h, &ck_op_source_values, ROWS, OUTPUT, &splits.list));
    harness_ok(h, source_drive(h, NULL, 1, &ended));
    HARNESS_EXPECT(h, "+1|a", "+NULL|b");
    split_set_init(&later, h);
    source_snapshot(h, &later);
    harness_close(h);
    harness_ok(h, source_start(h, &ck_op_source_values, ROWS, OUTPUT, &later.list));
    harness_ok(h, source_drive(h, NULL, SIZE_MAX, &ended));
    assert_true(ended);
    HARNESS_EXPECT(h, "+3|a text that is longer");
    split_set_destroy(&later);
    split_set_destroy(&splits);
}

static void a_subtask_without_the_split_ends_at_once(void **state) {
    harness *h = &((fixture *)*state)->h;
    held_io io = {0};
    bool ended;
    h->io = &io;
    ck_split_list none = {.arena = &h->plan};
    harness_ok(h, source_start(h, &ck_op_source_values, ROWS, OUTPUT, &none));
    harness_ok(h, source_drive(h, NULL, SIZE_MAX, &ended));
    assert_true(ended);
    HARNESS_EXPECT_NOTHING(h);
}

static void bad_rows_are_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    static const char *const bad[] = {
        "{\"rows\":[[{\"lit\":1,\"type\":\"BIGINT\"}]]}",
        "{\"rows\":[[{\"col\":0,\"type\":\"BIGINT\",\"null\":true},{\"lit\":\"a\",\"type\":\"VARCHAR\"}]]}",
        "{\"rows\":[[{\"lit\":true,\"type\":\"BOOLEAN\"},{\"lit\":\"a\",\"type\":\"VARCHAR\"}]]}",
        "{\"rows\":3}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        assert_int_equal(harness_create(h, &ck_op_source_values, bad[i], OUTPUT), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(rows_come_once_also_over_a_restart),
                                       T(a_subtask_without_the_split_ends_at_once), T(bad_rows_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
