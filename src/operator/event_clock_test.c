#include "operator/event_clock_int.h"

#include "operator/fixture_test_support.h"
#include "operator/operators.h"
#include "os/test_proc.h"
#include "stream/event.h"

HARNESS_FIXTURE

static void put(harness *h, const char *name, int64_t us) {
    ck_column *value = ck_column_new(h->mem, CK_PHYS_I64, 1);
    const ck_column *const values[] = {value};
    value->i64[0] = us;
    harness_ok(h, ck_state_row_put(h->ctx.state, ck_event_clock_slot(), name, values, 0, &h->error));
    ck_column_unref(&value);
}

/* The rows of slot clink.time that an operator left, restored by one with all key groups. */
static int64_t restored(harness *h, bool by_wall_clock, uint64_t *rows) {
    ck_event_clock c;
    ck_table *t;
    harness_ok(h, ck_event_clock_open(&c, by_wall_clock, &h->ctx));
    harness_ok(h, ck_state_table(h->ctx.state, ck_event_clock_slot(), &t, &h->error));
    if (rows) *rows = ck_table_row_count(t);
    return c.watermark;
}

static void begin(harness *h) {
    harness_input(h, "v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_limit, "{\"limit\":2}", NULL);
    assert_int_equal(ck_state_range(h->ctx.state).first, 0);
    assert_int_equal(ck_state_range(h->ctx.state).last, CK_KEY_GROUPS_DEFAULT - 1);
}

static void nothing_is_no_watermark(void **state) {
    harness *h = &((fixture *)*state)->h;
    begin(h);
    assert_true(restored(h, false, NULL) == CK_WATERMARK_MIN);
}

static void of_subtasks_at_different_times_the_least_is_restored(void **state) {
    harness *h = &((fixture *)*state)->h;
    uint64_t rows;
    begin(h);
    put(h, "watermark 0-63", 100);
    put(h, "watermark 64-127", 50);
    put(h, "watermark 0-31", 40); /* of another life */
    assert_int_equal(restored(h, false, &rows), 50);
    assert_int_equal(rows, 0); /* they are for others to go on with */
    put(h, "watermark 0-63", 100);
    assert_true(restored(h, false, NULL) == CK_WATERMARK_MIN); /* nothing is told of the others */
    put(h, "watermark 0-63", 100);
    put(h, "watermark 64-127", 50);
    assert_int_equal(restored(h, true, NULL), 100);
}

static void what_earlier_releases_wrote_is_of_all(void **state) {
    harness *h = &((fixture *)*state)->h;
    begin(h);
    put(h, "watermark", 70);
    assert_int_equal(restored(h, false, NULL), 70);
    put(h, "watermark", 70);
    put(h, "watermark 0-63", 80);
    assert_int_equal(restored(h, false, NULL), 70);
}

static void each_group_is_restored_to_its_own_time(void **state) {
    harness *h = &((fixture *)*state)->h;
    ck_event_clock c;
    ck_event_clock_each each;
    begin(h);
    put(h, "watermark 0-63", 100);
    put(h, "watermark 64-127", 50);
    put(h, "watermark 3-3", 120);
    harness_ok(h, ck_event_clock_open_each(&c, h->mem, &each, &h->ctx));
    assert_true(c.watermark == 50 && each.greatest == 120 && each.first == 0 && each.count == CK_KEY_GROUPS_DEFAULT);
    for (uint32_t g = 0; g < each.count; g++) assert_int_equal(each.watermarks[g], g == 3 ? 120 : g < 64 ? 100 : 50);
    ck_event_clock_each_close(&each, h->mem);
    put(h, "watermark 0-127", 50);
    harness_ok(h, ck_event_clock_open_each(&c, h->mem, &each, &h->ctx));
    assert_true(c.watermark == 50 && !each.watermarks);
}

static void other_rows_tell_nothing(void **state) {
    static const char *const names[] = {"watermark ",       "watermark 5-4",    "watermark 0-4294967295",
                                        "watermark 00-127", "watermark 0-127 ", "watermark -1-127"};
    harness *h = &((fixture *)*state)->h;
    begin(h);
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++) {
        put(h, names[i], 70);
        assert_true(restored(h, false, NULL) == CK_WATERMARK_MIN);
    }
}

static void its_own_row_is_written_when_it_changes(void **state) {
    harness *h = &((fixture *)*state)->h;
    ck_event_clock c;
    ck_table *t;
    begin(h);
    put(h, "watermark 0-127", 70);
    harness_ok(h, ck_event_clock_open(&c, false, &h->ctx));
    assert_int_equal(c.stored, 70);
    c.watermark = 90;
    harness_ok(h, ck_event_clock_store(&c, &h->ctx));
    harness_ok(h, ck_state_table(h->ctx.state, ck_event_clock_slot(), &t, &h->error));
    assert_int_equal(ck_table_row_count(t), 1);
    assert_int_equal(restored(h, false, NULL), 90);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(nothing_is_no_watermark),
        T(of_subtasks_at_different_times_the_least_is_restored),
        T(what_earlier_releases_wrote_is_of_all),
        T(each_group_is_restored_to_its_own_time),
        T(other_rows_tell_nothing),
        T(its_own_row_is_written_when_it_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
