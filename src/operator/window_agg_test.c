#include "operator/operators.h"

#include "operator/fixture_test_support.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {T(a_window_fires_when_the_watermark_passes_its_end),
                                       T(times_before_1970_and_bad_times),
                                       T(a_restart_keeps_windows_and_watermark),
                                       T(late_rows_go_where_they_are_wanted),
                                       T(a_row_is_late_once),
                                       T(allowed_lateness_changes_what_was_said),
                                       T(hops_and_cumulations),
                                       T(what_it_is_not_made_for_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
