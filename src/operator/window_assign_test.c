/* Windows as columns, by the clock: held, going back, leaping, and over a restart. */
#include "operator/operators.h"

#include "operator/event_clock_int.h"
#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

static int64_t at(const char *text) {
    int64_t us;
    bool zoned;
    assert_true(ck_parse_timestamp(ck_view_of(text), &us, &zoned));
    return us;
}

#define PARAMS(kind, size, slide)                                                                                      \
    "{\"window\":{\"kind\":\"" kind "\",\"time\":\"processing\",\"size_us\":" size ",\"slide_us\":" slide              \
    ",\"offset_us\":0},\"stamp\":1}"
#define INPUT  "k VARCHAR; p TIMESTAMP_LTZ(3)"
#define OUTPUT INPUT "; s TIMESTAMP_LTZ(3); e TIMESTAMP_LTZ(3); w TIMESTAMP_LTZ(3)"
#define MINUTE PARAMS("tumble", "60000000", "60000000")

static void rows_are_in_the_window_of_the_clock(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:58.999999");
    harness_start(h, &ck_op_window_assign, MINUTE, OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:01"); /* some projection looked at the clock before */
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:58.999Z|2020-01-01 00:00:00Z|2020-01-01 00:01:00Z|2020-01-01 00:00:59.999Z");
    h->now_us = at("2020-01-01 00:01:00");
    HARNESS_ROWS(h, "b|NULL");
    HARNESS_EXPECT(h, "+b|2020-01-01 00:01:00Z|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z");
}

/* The watermark is the clock's, and nobody else's; it is said where windows end, with rows and without. */
static void it_says_how_far_the_clock_is(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:10");
    harness_start(h, &ck_op_window_assign, MINUTE, OUTPUT);
    assert_true(h->desc->op->watermark_delay_us(h->self) == CK_WATERMARKS_OWN);
    harness_ok(h, harness_event(h, 0, ck_event_watermark(at("2030-01-01 00:00:00"), false)));
    harness_clock(h, at("2020-01-01 00:00:10")); /* at once: those behind wait for every subtask */
    assert_true(h->said_watermark == at("2020-01-01 00:00:10") - 1);
    assert_true(h->desc->op->next_wake_us(h->self, &h->ctx) == at("2020-01-01 00:01:00"));
    harness_clock(h, at("2020-01-01 00:01:00.0005"));
    assert_true(h->said_watermark == at("2020-01-01 00:01:00") - 1);
    assert_true(h->desc->op->next_wake_us(h->self, &h->ctx) == at("2020-01-01 00:02:00"));
    harness_clock(h, at("2020-01-01 00:00:00")); /* back */
    HARNESS_ROWS(h, "a|NULL");                   /* time stands */
    HARNESS_EXPECT(h, "+a|2020-01-01 00:01:00Z|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z");
    assert_true(h->said_watermark == at("2020-01-01 00:01:00") - 1);
    harness_clock(h, at("2050-01-01 00:00:01")); /* and leaps */
    assert_true(h->said_watermark == at("2050-01-01 00:00:01") - 1);
    HARNESS_ROWS(h, "b|NULL");
    HARNESS_EXPECT(h, "+b|2050-01-01 00:00:01Z|2050-01-01 00:00:00Z|2050-01-01 00:01:00Z|2050-01-01 00:00:59.999Z");
}

static void what_was_said_holds_after_a_restart(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:01:30");
    harness_start(h, &ck_op_window_assign, MINUTE, OUTPUT);
    harness_clock(h, at("2020-01-01 00:01:30"));
    h->now_us = at("2020-01-01 00:00:00");
    harness_restart(h, 1);
    harness_clock(h, at("2020-01-01 00:00:30"));
    HARNESS_ROWS(h, "a|NULL");
    HARNESS_EXPECT(h, "+a|2020-01-01 00:01:30Z|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z");
}

/* All windows of a row are those of one instant, however long it takes to say them. */
static void a_row_of_many_windows_comes_at_one_instant(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:01:15");
    harness_start(h, &ck_op_window_assign, PARAMS("hop", "60000000", "30000000"), OUTPUT);
    HARNESS_ROWS(h, "a|NULL");
    HARNESS_EXPECT(h, "+a|2020-01-01 00:01:15Z|2020-01-01 00:00:30Z|2020-01-01 00:01:30Z|2020-01-01 00:01:29.999Z",
                   "+a|2020-01-01 00:01:15Z|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z");
}

/* Windows of a millisecond do not keep the subtask awake. */
static void small_windows_tick_now_and_then(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:00");
    harness_start(h, &ck_op_window_assign, PARAMS("tumble", "1000", "1000"), OUTPUT);
    harness_clock(h, at("2020-01-01 00:00:00"));
    assert_true(h->desc->op->next_wake_us(h->self, &h->ctx) == at("2020-01-01 00:00:00") + CK_TICK_LEAST_US);
}

static void it_needs_the_column_of_the_clock(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    static const char bad[] = "{\"window\":{\"kind\":\"tumble\",\"time\":\"processing\",\"size_us\":1000,"
                              "\"slide_us\":1000,\"offset_us\":0},\"stamp\":0}";
    assert_int_equal(harness_create(h, &ck_op_window_assign, bad, OUTPUT), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "need their column \"stamp\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(rows_are_in_the_window_of_the_clock), T(it_says_how_far_the_clock_is),
        T(what_was_said_holds_after_a_restart), T(a_row_of_many_windows_comes_at_one_instant),
        T(small_windows_tick_now_and_then),     T(it_needs_the_column_of_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
