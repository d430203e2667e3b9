#include "operator/operators.h"

#include "operator/event_clock_int.h"
#include "operator/fixture_test_support.h"
#include "operator/window_int.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define MINUTE    60000000LL
#define SCHEMA    "k VARCHAR; t TIMESTAMP(6); v BIGINT"
#define COUNT_SUM "\"aggregates\":[{\"fn\":\"count\",\"arg\":null},{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"}]"
#define TUMBLE                                                                                                         \
    "{\"window\":{\"kind\":\"tumble\",\"time\":1,\"size_us\":60000000,\"slide_us\":60000000,\"offset_us\":0},"
#define OUTPUT "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; v BIGINT"

static void watermark(harness *h, int64_t us) { harness_ok(h, harness_event(h, 0, ck_event_watermark(us, false))); }
static int64_t at(const char *text) {
    int64_t us;
    bool zoned;
    assert_true(ck_parse_timestamp(ck_view_of(text), &us, &zoned));
    return us;
}

static void a_window_fires_when_the_watermark_passes_its_end(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg, TUMBLE "\"keys\":[0]," COUNT_SUM "}", OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:00|1", "b|2020-01-01 00:01:30|2", "a|2020-01-01 00:00:59.999999|3",
                 "NULL|2020-01-01 00:00:10|NULL");
    watermark(h, at("2020-01-01 00:01:00") - 2);
    HARNESS_EXPECT_NOTHING(h);
    watermark(h, at("2020-01-01 00:01:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|2|4",
                   "+NULL|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|NULL");
    HARNESS_ROWS(h, "b|2020-01-01 00:01:00|5", "a|2020-01-01 00:00:59.999999|7");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    harness_end(h);
    HARNESS_EXPECT(h, "+b|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|2|7");
    assert_int_equal(ck_state_bytes(h->store) < 100000, 1);
}

static void times_before_1970_and_bad_times(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg, TUMBLE "\"keys\":[]," COUNT_SUM "}",
                  "s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; v BIGINT");
    HARNESS_ROWS(h, "a|1969-12-31 23:59:59|1", "a|1969-12-31 23:59:00|2", "a|NULL|3", "a|9223372036854775807|4",
                 "\\a|-9223372036854775807|5", "a|9999-12-31 23:59:30|6", "a|1970-01-01 00:00:00|7");
    assert_int_equal(harness_counter(h, "bad_time_rows"), 3);
    harness_end(h);
    HARNESS_EXPECT(h, "+1969-12-31 23:59:00|1970-01-01 00:00:00|1969-12-31 23:59:59.999|2|3",
                   "+1970-01-01 00:00:00|1970-01-01 00:01:00|1970-01-01 00:00:59.999|1|7",
                   "+9999-12-31 23:59:00|10000-01-01 00:00:00|9999-12-31 23:59:59.999|1|6");
}

static void a_restart_keeps_windows_and_watermark(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg, TUMBLE "\"keys\":[0]," COUNT_SUM "}", OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:00|9223372036854775807", "b|2020-01-01 00:01:30|2",
                 "a|2020-01-01 00:01:20|9223372036854775807", "a|2020-01-01 00:01:20|1", "\\a|2020-01-01 00:01:20|-2");
    watermark(h, at("2020-01-01 00:01:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|9223372036854775807");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:10|1");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    watermark(h, at("2020-01-01 00:00:30"));
    HARNESS_EXPECT_NOTHING(h);
    harness_end(h);
    HARNESS_EXPECT(h, "+b|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|1|2",
                   "+a|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|3|9223372036854775806");
}

/* MIN and MAX where values are taken back: those of each window by themselves, gone with it; windows in columns too. */
static void the_best_may_leave_a_window(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_RETRACT);
    harness_start(h, &ck_op_window_agg,
                  TUMBLE "\"keys\":[0],\"aggregates\":[{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"},"
                         "{\"fn\":\"max\",\"arg\":2,\"arg_text\":\"v\"}],\"lateness_us\":60000000}",
                  OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:01|5", "a|2020-01-01 00:00:02|3", "a|2020-01-01 00:00:03|9",
                 "a|2020-01-01 00:01:01|-7", "b|2020-01-01 00:00:01|NULL", "b|2020-01-01 00:01:02|1");
    HARNESS_ROWS(h, "-a|2020-01-01 00:00:02|3", "a|2020-01-01 00:01:02|70", "a|2020-01-01 00:01:03|70");
    harness_restart(h, 1);
    watermark(h, at("2020-01-01 00:01:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|5|9",
                   "+b|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|NULL|NULL");
    HARNESS_ROWS(h, "-a|2020-01-01 00:00:03|9", "-a|2020-01-01 00:01:02|70");
    HARNESS_EXPECT(h, "-a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|5|9",
                   "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|5|5");
    watermark(h, at("2020-01-01 00:02:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|-7|70",
                   "+b|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|1|1");
    assert_int_equal(harness_kept_rows(h, 2), 5); /* of the second window: two groups, three values */
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_kept_rows(h, 3), 0);
}

static void the_best_may_leave_windows_in_columns(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); v VARCHAR", CK_MODE_RETRACT);
    harness_start(
        h, &ck_op_window_agg,
        "{\"window\":{\"kind\":\"attached\",\"start\":1,\"end\":2},\"keys\":[0],\"aggregates\":[{\"fn\":\"max\","
        "\"arg\":3,\"arg_text\":\"v\"}]}",
        "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); v VARCHAR");
    HARNESS_ROWS(
        h, "a|2020-01-01 00:00:00|2020-01-01 00:02:00|x", "a|2020-01-01 00:01:00|2020-01-01 00:02:00|a long text, z",
        "a|2020-01-01 00:01:00|2020-01-01 00:02:00|a long text, y", "b|2020-01-01 00:00:00|2020-01-01 00:03:00|b");
    HARNESS_ROWS(h, "-a|2020-01-01 00:01:00|2020-01-01 00:02:00|a long text, z");
    watermark(h, at("2020-01-01 00:02:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|x",
                   "+a|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|a long text, y");
    assert_int_equal(harness_kept_rows(h, 1), 2);
    harness_end(h);
    HARNESS_EXPECT(h, "+b|2020-01-01 00:00:00|2020-01-01 00:03:00|2020-01-01 00:02:59.999|b");
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

static void late_rows_go_where_they_are_wanted(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_RETRACT);
    h->side = harness_schema(h, "v BIGINT; op VARCHAR; k VARCHAR");
    harness_start(h, &ck_op_window_agg, TUMBLE "\"keys\":[0],\"late\":[2,null,0]," COUNT_SUM "}", OUTPUT);
    watermark(h, at("2020-01-01 00:01:00") - 1);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:59|1", "b|2020-01-01 00:01:00|2", "-a|2020-01-01 00:00:00|3", "a|NULL|4",
                 "a longer key than fits|2019-01-01 00:00:00|NULL");
    HARNESS_EXPECT(h, "+!1|+I|a", "+!3|-D|a", "+!NULL|+I|a longer key than fits");
    assert_int_equal(harness_counter(h, "late_rows"), 3);
    harness_end(h);
    HARNESS_EXPECT(h, "+b|2020-01-01 00:01:00|2020-01-01 00:02:00|2020-01-01 00:01:59.999|1|2");
}

/* A hop takes a row several times; it is late once, when its last window is closed. */
static void a_row_is_late_once(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    h->side = harness_schema(h, "t TIMESTAMP(6)");
    harness_start(
        h, &ck_op_window_agg,
        "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":60000000,\"slide_us\":20000000,\"offset_us\":0},"
        "\"keys\":[0],\"late\":[1],\"aggregates\":[{\"fn\":\"count\",\"arg\":2,\"arg_text\":\"v\","
        "\"distinct\":true}]}",
        "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT");
    watermark(h, at("2020-01-01 00:01:20") - 1);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:19|1", "a|2020-01-01 00:00:39|1", "a|2020-01-01 00:00:40|1");
    HARNESS_EXPECT(h, "+!2020-01-01 00:00:19", "+!2020-01-01 00:00:39");
    assert_int_equal(harness_counter(h, "late_rows"), 2);
    harness_end(h);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:40|2020-01-01 00:01:40|2020-01-01 00:01:39.999|1");
}

static void allowed_lateness_changes_what_was_said(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg, TUMBLE "\"keys\":[0],\"lateness_us\":120000000," COUNT_SUM "}", OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:00|1", "b|2020-01-01 00:00:30|0");
    watermark(h, at("2020-01-01 00:01:30"));
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|1",
                   "+b|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|0");
    HARNESS_ROWS(h, "a|2020-01-01 00:00:01|5", "c|2020-01-01 00:00:02|6", "a|2020-01-01 00:00:03|7");
    HARNESS_EXPECT(h, "-a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|1",
                   "+a|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|3|13",
                   "+c|2020-01-01 00:00:00|2020-01-01 00:01:00|2020-01-01 00:00:59.999|1|6");
    watermark(h, at("2020-01-01 00:03:00") - 1);
    HARNESS_EXPECT_NOTHING(h);
    HARNESS_ROWS(h, "a|2020-01-01 00:00:59|5");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    HARNESS_EXPECT_NOTHING(h);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void hops_and_cumulations(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(
        h, &ck_op_window_agg,
        "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":180000000,\"slide_us\":60000000,\"offset_us\":0},"
        "\"keys\":[0]," COUNT_SUM "}",
        OUTPUT);
    HARNESS_ROWS(h, "a|2020-01-01 00:02:30|1", "a|2020-01-01 00:03:30|2");
    watermark(h, at("2020-01-01 00:04:00"));
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00|2020-01-01 00:03:00|2020-01-01 00:02:59.999|1|1",
                   "+a|2020-01-01 00:01:00|2020-01-01 00:04:00|2020-01-01 00:03:59.999|2|3");
    HARNESS_ROWS(h, "a|2020-01-01 00:02:00|4", "a|2020-01-01 00:01:59|5"); /* two of the first's windows are gone */
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    harness_end(h);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:02:00|2020-01-01 00:05:00|2020-01-01 00:04:59.999|3|7",
                   "+a|2020-01-01 00:03:00|2020-01-01 00:06:00|2020-01-01 00:05:59.999|1|2");
}

static void what_it_is_not_made_for_is_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    static const char *const bad[] = {
        TUMBLE "\"keys\":[9]," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"tumble\",\"time\":0,\"size_us\":1,\"slide_us\":1,\"offset_us\":0},\"keys\":[0]"
        "," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"tumble\",\"time\":1,\"size_us\":0,\"slide_us\":0,\"offset_us\":0},\"keys\":[0]"
        "," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":5,\"slide_us\":0,\"offset_us\":0},\"keys\":[0]," COUNT_SUM
        "}",
        "{\"window\":{\"kind\":\"cumulate\",\"time\":1,\"size_us\":5,\"slide_us\":2,\"offset_us\":0},\"keys\":[0]"
        "," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":5,\"slide_us\":1,\"offset_us\":5},\"keys\":[0]," COUNT_SUM
        "}",
        "{\"window\":{\"kind\":\"attached\",\"start\":1,\"end\":2},\"keys\":[0]," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":10001,\"slide_us\":1,\"offset_us\":0},\"keys\":[0]"
        "," COUNT_SUM "}",
        "{\"window\":{\"kind\":\"week\"},\"keys\":[0]," COUNT_SUM "}",
        "{\"keys\":[0]," COUNT_SUM "}",
        TUMBLE "\"keys\":[0],\"late\":[3]," COUNT_SUM "}",
        TUMBLE "\"keys\":[0],\"late\":[]," COUNT_SUM "}",
        TUMBLE "\"keys\":[0],\"late\":[\"v\"]," COUNT_SUM "}",
        TUMBLE "\"keys\":[0],\"late\":2," COUNT_SUM "}",
    };
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        h->error = CK_ERROR_INIT;
        assert_int_equal(harness_create(h, &ck_op_window_agg, bad[i], OUTPUT), CK_INVALID);
        assert_true(h->error.msg[0] != 0);
    }
    assert_int_equal(harness_create(h, &ck_op_window_agg, TUMBLE "\"keys\":[0]," COUNT_SUM "}", SCHEMA), CK_INVALID);
}

/* Ten slides a window: what two windows have in common stays, sums pass 64 bits in between, a row comes for slices that
 * are in already, and a restart begins anew; in the end nothing is left. */
static void a_hop_of_many_slides_rolls(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg,
                  "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":10000000,\"slide_us\":1000000,\"offset_us\":0},"
                  "\"keys\":[0]," COUNT_SUM "}",
                  OUTPUT);
    HARNESS_ROWS(h, "a|1970-01-01 00:00:00|9000000000000000000", "a|1970-01-01 00:00:00|9000000000000000000",
                 "a|1970-01-01 00:00:00.5|-8999999999999999999", "a|1970-01-01 00:00:01|-9000000000000000000",
                 "b|1970-01-01 00:00:01|NULL", "b|1970-01-01 00:00:09|7");
    watermark(h, 2999999);
    harness_net(h);
    assert_int_equal(h->line_count, 5); /* of a three, of b two */
    for (int i = 0; i < 3; i++) assert_non_null(strstr(h->lines[i].text, i == 0 ? "|3|9000000000000000001" : "|4|1"));
    harness_forget_lines(h);
    HARNESS_ROWS(h, "a|1970-01-01 00:00:02|5", "c|1970-01-01 00:00:01.5|6"); /* those to come alone have the last */
    watermark(h, 3999999);
    harness_net(h);
    HARNESS_EXPECT(h, "+a|1969-12-31 23:59:54|1970-01-01 00:00:04|1970-01-01 00:00:03.999|5|6",
                   "+b|1969-12-31 23:59:54|1970-01-01 00:00:04|1970-01-01 00:00:03.999|1|NULL",
                   "+c|1969-12-31 23:59:54|1970-01-01 00:00:04|1970-01-01 00:00:03.999|1|6");
    harness_restart(h, 1);
    watermark(h, 10999999);
    harness_forget_lines(h);
    watermark(h, 11999999);
    harness_net(h);
    HARNESS_EXPECT(h, "+a|1970-01-01 00:00:02|1970-01-01 00:00:12|1970-01-01 00:00:11.999|1|5",
                   "+b|1970-01-01 00:00:02|1970-01-01 00:00:12|1970-01-01 00:00:11.999|1|7");
    watermark(h, 12999999);
    HARNESS_EXPECT(h, "+b|1970-01-01 00:00:03|1970-01-01 00:00:13|1970-01-01 00:00:12.999|1|7");
    watermark(h, 18999999);
    assert_int_equal(h->line_count, 6);
    harness_forget_lines(h);
    assert_int_equal(harness_kept_rows(h, 2), 0);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

/* The group of an error is that of the window, however the window was put together. */
static void a_sum_out_of_range_is_said_with_its_window(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    for (int slides = 2; slides <= 10; slides += 8) {
        char params[512];
        snprintf(params, sizeof params,
                 "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":%d000000,\"slide_us\":1000000,\"offset_us\":0},"
                 "\"keys\":[0]," COUNT_SUM "}",
                 slides);
        harness_input(h, SCHEMA, CK_MODE_APPEND);
        harness_start(h, &ck_op_window_agg, params, OUTPUT);
        HARNESS_ROWS(h, "a|1970-01-01 00:00:00|9000000000000000000", "a|1970-01-01 00:00:01|9000000000000000000");
        assert_int_equal(harness_event(h, 0, ck_event_watermark(1999999, false)), CK_DATA);
        assert_string_equal(h->error.msg,
                            "sum(v) is out of range for BIGINT in the group of key (a, 1970-01-01 00:00:02)");
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
    }
}

/* ---- processing time ---- */

#define BY_THE_CLOCK(kind, size, slide)                                                                                \
    "{\"window\":{\"kind\":\"" kind "\",\"time\":\"processing\",\"size_us\":" size ",\"slide_us\":" slide              \
    ",\"offset_us\":0},\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":null}]}"
#define CLOCK_OUTPUT "k VARCHAR; s TIMESTAMP_LTZ(3); e TIMESTAMP_LTZ(3); w TIMESTAMP_LTZ(3); n BIGINT"

static void by_the_clock_windows_fire_by_themselves(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR", CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:58.999999");
    harness_start(h, &ck_op_window_agg, BY_THE_CLOCK("tumble", "60000000", "60000000"), CLOCK_OUTPUT);
    assert_true(h->desc->op->watermark_delay_us(h->self) == CK_WATERMARKS_OWN);
    HARNESS_ROWS(h, "a", "b");
    watermark(h, at("2030-01-01 00:00:00")); /* no clock of its */
    harness_clock(h, at("2020-01-01 00:00:59.5"));
    HARNESS_ROWS(h, "a");
    HARNESS_EXPECT_NOTHING(h);
    assert_true(h->said_watermark == at("2020-01-01 00:00:59.5") - 1);
    assert_true(h->desc->op->next_wake_us(h->self, &h->ctx) == at("2020-01-01 00:01:00"));
    harness_clock(h, at("2020-01-01 00:01:00"));
    assert_true(h->said_watermark == at("2020-01-01 00:01:00") - 1);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00Z|2020-01-01 00:01:00Z|2020-01-01 00:00:59.999Z|2",
                   "+b|2020-01-01 00:00:00Z|2020-01-01 00:01:00Z|2020-01-01 00:00:59.999Z|1");
    assert_int_equal(harness_kept_rows(h, 1), 0);
    HARNESS_ROWS(h, "a");
    harness_clock(h, at("2020-01-01 00:01:59")); /* nothing is over */
    assert_true(h->said_watermark == at("2020-01-01 00:01:00") - 1);
    h->now_us = at("2019-12-31 23:00:00"); /* the clock goes back: what was said stays so */
    HARNESS_ROWS(h, "a");
    harness_clock(h, at("2019-12-31 23:59:59"));
    HARNESS_EXPECT_NOTHING(h);
    harness_clock(h, at("2050-01-01 00:00:00")); /* and leaps */
    HARNESS_EXPECT(h, "+a|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z|2");
    HARNESS_ROWS(h, "c");
    harness_end(h);
    HARNESS_EXPECT(h, "+c|2050-01-01 00:00:00Z|2050-01-01 00:01:00Z|2050-01-01 00:00:59.999Z|1");
    assert_int_equal(harness_counter(h, "late_rows"), 0);
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

/* A union row of another subtask, whose clock was read later, is restored beside windows this one has not said: it had
 * the key group of k. */
static void set_clock(harness *h, const char *k, int64_t us) {
    ck_column *value = ck_column_new(h->mem, CK_PHYS_I64, 1);
    const ck_column *const values[] = {value};
    uint32_t column = 0;
    const ck_key_spec spec = {&column, &h->inputs[0].schema->fields[0].type, 1};
    ck_batch *b = harness_batch(h, 0, &k, 1);
    uint64_t hash;
    char name[40];
    harness_ok(h, harness_pre_snapshot(h, 1));
    ck_key_fnv(&spec, b, &hash);
    uint32_t group = ck_key_group_of_hash(hash, CK_KEY_GROUPS_DEFAULT);
    snprintf(name, sizeof name, "watermark %u-%u", group, group);
    value->i64[0] = us;
    harness_ok(h, ck_state_row_put(h->ctx.state, ck_event_clock_slot(), name, values, 0, &h->error));
    ck_column_unref(&value);
    ck_batch_unref(&b);
}

static void by_the_clock_nothing_is_lost_when_subtasks_meet(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR", CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:35");
    harness_start(h, &ck_op_window_agg, BY_THE_CLOCK("hop", "60000000", "20000000"), CLOCK_OUTPUT);
    HARNESS_ROWS(h, "a", "b", "a");
    harness_clock(h, at("2020-01-01 00:00:40"));
    HARNESS_EXPECT(h, "+a|2019-12-31 23:59:40Z|2020-01-01 00:00:40Z|2020-01-01 00:00:39.999Z|2",
                   "+b|2019-12-31 23:59:40Z|2020-01-01 00:00:40Z|2020-01-01 00:00:39.999Z|1");
    set_clock(h, "b", at("2020-01-01 00:01:05")); /* where its window of 00:01:00 was said */
    harness_restart(h, 2);
    assert_true(h->desc->op->next_wake_us(h->self, &h->ctx) == at("2020-01-01 00:01:00"));
    HARNESS_ROWS(h, "a"); /* at 00:00:40, and so in the first that nobody has said: those of 00:01:05 */
    harness_clock(h, at("2020-01-01 00:01:06"));
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00Z|2020-01-01 00:01:00Z|2020-01-01 00:00:59.999Z|2");
    harness_end(h);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:20Z|2020-01-01 00:01:20Z|2020-01-01 00:01:19.999Z|3",
                   "+b|2020-01-01 00:00:20Z|2020-01-01 00:01:20Z|2020-01-01 00:01:19.999Z|1",
                   "+a|2020-01-01 00:00:40Z|2020-01-01 00:01:40Z|2020-01-01 00:01:39.999Z|1",
                   "+a|2020-01-01 00:01:00Z|2020-01-01 00:02:00Z|2020-01-01 00:01:59.999Z|1");
}

/* A barrier may be the first that comes: what is behind is said before it. */
static void by_the_clock_a_snapshot_has_one_time(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR", CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:35");
    harness_start(h, &ck_op_window_agg, BY_THE_CLOCK("hop", "60000000", "5000000"), CLOCK_OUTPUT);
    HARNESS_ROWS(h, "a", "b");
    harness_clock(h, at("2020-01-01 00:01:25"));
    harness_forget_lines(h);
    set_clock(h, "b", at("2020-01-01 00:01:30"));
    harness_restart(h, 2);
    HARNESS_EXPECT_NOTHING(h);
    harness_restart(h, 3);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:30Z|2020-01-01 00:01:30Z|2020-01-01 00:01:29.999Z|1");
    harness_end(h);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:35Z|2020-01-01 00:01:35Z|2020-01-01 00:01:34.999Z|1",
                   "+b|2020-01-01 00:00:35Z|2020-01-01 00:01:35Z|2020-01-01 00:01:34.999Z|1");
    assert_int_equal(harness_kept_rows(h, 4), 0);
}

static void by_the_clock_a_window_grows_by_steps(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR", CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:15");
    harness_start(h, &ck_op_window_agg, BY_THE_CLOCK("cumulate", "60000000", "20000000"), CLOCK_OUTPUT);
    HARNESS_ROWS(h, "a");
    harness_clock(h, at("2020-01-01 00:00:25"));
    HARNESS_ROWS(h, "a");
    harness_restart(h, 1);
    harness_clock(h, at("2020-01-01 00:01:25"));
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:00Z|2020-01-01 00:00:20Z|2020-01-01 00:00:19.999Z|1",
                   "+a|2020-01-01 00:00:00Z|2020-01-01 00:00:40Z|2020-01-01 00:00:39.999Z|2",
                   "+a|2020-01-01 00:00:00Z|2020-01-01 00:01:00Z|2020-01-01 00:00:59.999Z|2");
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

static void by_the_clock_sessions_end_by_themselves(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR", CK_MODE_APPEND);
    h->now_us = at("2020-01-01 00:00:10");
    harness_start(h, &ck_op_session_agg,
                  "{\"time\":\"processing\",\"gap_us\":10000000,\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":"
                  "null}]}",
                  CLOCK_OUTPUT);
    HARNESS_ROWS(h, "a", "b");
    harness_clock(h, at("2020-01-01 00:00:15"));
    HARNESS_ROWS(h, "a");
    watermark(h, at("2030-01-01 00:00:00"));
    harness_clock(h, at("2020-01-01 00:00:20"));
    HARNESS_EXPECT(h, "+b|2020-01-01 00:00:10Z|2020-01-01 00:00:20Z|2020-01-01 00:00:19.999Z|1");
    harness_restart(h, 1);
    h->now_us = at("2020-01-01 00:00:01"); /* the clock went back: those that come are of the time it had come to */
    HARNESS_ROWS(h, "a", "b");
    harness_clock(h, at("2020-01-01 00:00:29"));
    HARNESS_EXPECT_NOTHING(h);
    harness_clock(h, at("2020-01-01 00:00:30"));
    harness_net(h);
    HARNESS_EXPECT(h, "+a|2020-01-01 00:00:10Z|2020-01-01 00:00:30Z|2020-01-01 00:00:29.999Z|3",
                   "+b|2020-01-01 00:00:20Z|2020-01-01 00:00:30Z|2020-01-01 00:00:29.999Z|1");
    HARNESS_ROWS(h, "c");
    harness_end(h);
    HARNESS_EXPECT(h, "+c|2020-01-01 00:00:30Z|2020-01-01 00:00:40Z|2020-01-01 00:00:39.999Z|1");
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

/* A value that comes again and again in two slices, in turns, is not remembered for each of its rows. */
static void a_value_in_two_slices_by_turns(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, SCHEMA, CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg,
                  "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":8000000,\"slide_us\":1000000,\"offset_us\":0},"
                  "\"keys\":[],\"aggregates\":[{\"fn\":\"count\",\"arg\":null},"
                  "{\"fn\":\"count\",\"distinct\":true,\"arg\":2,\"arg_text\":\"v\"}]}",
                  "s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; d BIGINT");
    ck_window_agg *op = h->self;
    op->lists_again = 0;
    for (int i = 0; i < 50; i++) HARNESS_ROWS(h, "a|1970-01-01 00:00:01|7", "a|1970-01-01 00:00:02|7");
    assert_int_equal(op->lists[0].count, 2);
    for (uint32_t i = 0; i < 2; i++) assert_in_range(op->lists[0].at[op->lists[0].first + i].n, 1, 8);
    watermark(h, at("1970-01-01 00:00:04"));
    harness_end(h);
    HARNESS_EXPECT(h, "+1969-12-31 23:59:54|1970-01-01 00:00:02|1970-01-01 00:00:01.999|50|1",
                   "+1969-12-31 23:59:55|1970-01-01 00:00:03|1970-01-01 00:00:02.999|100|1",
                   "+1969-12-31 23:59:56|1970-01-01 00:00:04|1970-01-01 00:00:03.999|100|1",
                   "+1969-12-31 23:59:57|1970-01-01 00:00:05|1970-01-01 00:00:04.999|100|1",
                   "+1969-12-31 23:59:58|1970-01-01 00:00:06|1970-01-01 00:00:05.999|100|1",
                   "+1969-12-31 23:59:59|1970-01-01 00:00:07|1970-01-01 00:00:06.999|100|1",
                   "+1970-01-01 00:00:00|1970-01-01 00:00:08|1970-01-01 00:00:07.999|100|1",
                   "+1970-01-01 00:00:01|1970-01-01 00:00:09|1970-01-01 00:00:08.999|100|1",
                   "+1970-01-01 00:00:02|1970-01-01 00:00:10|1970-01-01 00:00:09.999|50|1");
    assert_int_equal(harness_kept_rows(h, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(a_value_in_two_slices_by_turns),
                                       T(a_window_fires_when_the_watermark_passes_its_end),
                                       T(times_before_1970_and_bad_times),
                                       T(a_restart_keeps_windows_and_watermark),
                                       T(late_rows_go_where_they_are_wanted),
                                       T(the_best_may_leave_a_window),
                                       T(the_best_may_leave_windows_in_columns),
                                       T(a_row_is_late_once),
                                       T(allowed_lateness_changes_what_was_said),
                                       T(hops_and_cumulations),
                                       T(a_hop_of_many_slides_rolls),
                                       T(a_sum_out_of_range_is_said_with_its_window),
                                       T(by_the_clock_windows_fire_by_themselves),
                                       T(by_the_clock_nothing_is_lost_when_subtasks_meet),
                                       T(by_the_clock_a_snapshot_has_one_time),
                                       T(by_the_clock_a_window_grows_by_steps),
                                       T(by_the_clock_sessions_end_by_themselves),
                                       T(what_it_is_not_made_for_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
