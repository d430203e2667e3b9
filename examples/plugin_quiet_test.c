/* A test of the operator of plugin_quiet.c, of its job's SQL, and of nothing else: no files, no clock, no waiting.
 *
 *     cc -Iinclude examples/plugin_quiet_test.c examples/plugin_quiet.c examples/plugin_quiet_tables.c -o quiet_test \
 *         -Lbuild -lclink -Wl,-rpath,$PWD/build
 *     ./quiet_test
 */
#include <clink/testing.h>
#include <stdlib.h>

CLINK_API const clink_plugin *clink_plugin_table(void); /* of plugin_quiet.c */

static clink_error error;

static void ok(clink_status s, const char *what) {
    if (s == CLINK_OK) return;
    fprintf(stderr, "%s: %s\n", what, error.message);
    exit(1);
}
static void is(const char *got, const char *want, const char *what) {
    if (strcmp(got, want) == 0) return;
    fprintf(stderr, "%s is\n%snot\n%s", what, got, want);
    exit(1);
}
#define OK(call) ok(call, #call)

static void expect_rows(clink_test *t, const char *table, const char *want) {
    const char *got;
    OK(clink_test_rows(t, table, &got, &error));
    is(got, want, table);
}
static void expect_state(clink_test *t, const char *slot, const char *want) {
    const char *got;
    OK(clink_test_state(t, "quiet", slot, &got, &error));
    is(got, want, slot);
}

static const int64_t midnight = 1704067200000000; /* 2024-01-01 */
static const int64_t second = 1000000;

static void a_device_that_stops(void) {
    clink_test_options o = {.struct_bytes = sizeof o,
                            .plugin = clink_plugin_table(),
                            .operator_name = "quiet",
                            .parameters = "60000",
                            .key_by = "device"};
    clink_test *t;
    OK(clink_test_open(&o, &t, &error));
    OK(clink_test_push(t, "in",
                       "{\"device\":\"a\",\"ts\":\"2024-01-01T00:00:00\"}\n"
                       "{\"device\":\"b\",\"ts\":\"2024-01-01T00:00:30\"}\n"
                       "{\"device\":\"a\",\"ts\":\"2024-01-01T00:00:10\"}\n",
                       &error));
    expect_rows(t, "out", "");
    expect_state(t, "last", "{\"device\":\"a\",\"ts_us\":1704067210000000,\"readings\":2}\n"
                            "{\"device\":\"b\",\"ts_us\":1704067230000000,\"readings\":1}\n");
    expect_state(t, "timers.event", "{\"device\":\"a\",\"time\":1704067270000000}\n"
                                    "{\"device\":\"b\",\"time\":1704067290000000}\n");
    OK(clink_test_watermark(t, "in", midnight + 69 * second, &error));
    expect_rows(t, "out", "");

    OK(clink_test_snapshot(t, &error));
    const char *a = "{\"device\":\"a\",\"last_seen\":\"2024-01-01T00:00:10\",\"readings\":2}\n";
    const char *b = "{\"device\":\"b\",\"last_seen\":\"2024-01-01T00:00:30\",\"readings\":1}\n";
    for (int life = 0; life < 2; life++) { /* the same again after a restart */
        OK(clink_test_watermark(t, "in", midnight + 70 * second, &error));
        expect_rows(t, "out", a);
        expect_state(t, "last", "{\"device\":\"b\",\"ts_us\":1704067230000000,\"readings\":1}\n");
        OK(clink_test_end(t, NULL, &error));
        expect_rows(t, "out", b);
        expect_state(t, "last", "");
        if (life == 0) OK(clink_test_restore(t, &error));
    }
    clink_test_close(t);
}

static void what_is_wrong_is_said(void) {
    clink_test_options o = {.struct_bytes = sizeof o,
                            .plugin = clink_plugin_table(),
                            .operator_name = "quiet",
                            .parameters = "a minute",
                            .key_by = "device"};
    clink_test *t;
    if (clink_test_open(&o, &t, &error) == CLINK_OK) exit(1);
    is(error.message, "operator quiet of plugin quiet, open: its parameter is a number of milliseconds, not 'a minute'",
       "the error");
    o.parameters = "60000";
    OK(clink_test_open(&o, &t, &error));
    if (clink_test_push(t, "in", "{\"device\":\"a\",\"ts\":\"soon\"}", &error) == CLINK_OK) exit(1);
    if (!strstr(error.message, "soon")) exit(1);
    if (clink_test_push(t, "inn", "{}", &error) == CLINK_OK) exit(1);
    is(error.message, "the test has no table \"inn\" to push to", "the error");
    clink_test_close(t);
}

/* A script needs no plugin: any SQL can be tested so. */
static void a_script(void) {
    clink_test_options o = {.struct_bytes = sizeof o,
                            .sql = "CREATE TABLE r (k VARCHAR, x BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
                                   "  WITH (connector = 'test');"
                                   "CREATE TABLE sums (k VARCHAR, w TIMESTAMP(3), x BIGINT) WITH (connector = 'test');"
                                   "CREATE TABLE totals (k VARCHAR, x BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector = 'test');"
                                   "INSERT INTO sums SELECT k, window_start, SUM(x)"
                                   "  FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
                                   "  GROUP BY k, window_start, window_end;"
                                   "INSERT INTO totals SELECT k, SUM(x) FROM r GROUP BY k"};
    clink_test *t;
    OK(clink_test_open(&o, &t, &error));
    OK(clink_test_push(t, "r",
                       "{\"k\":\"a\",\"x\":1,\"ts\":\"2024-01-01T00:00:00\"}\n"
                       "{\"k\":\"a\",\"x\":2,\"ts\":\"2024-01-01T00:00:59\"}\n",
                       &error));
    expect_rows(t, "sums", "");
    expect_rows(t, "totals", "{\"k\":\"a\",\"x\":3}\n");
    OK(clink_test_snapshot(t, &error));
    for (int life = 0; life < 2; life++) {
        OK(clink_test_push(t, "r", "{\"k\":\"a\",\"x\":4,\"ts\":\"2024-01-01T00:01:00\"}", &error));
        expect_rows(t, "sums", "{\"k\":\"a\",\"w\":\"2024-01-01T00:00:00\",\"x\":3}\n");
        expect_rows(t, "totals", "-U {\"k\":\"a\",\"x\":3}\n+U {\"k\":\"a\",\"x\":7}\n");
        if (life == 0) OK(clink_test_restore(t, &error));
    }
    OK(clink_test_end(t, "r", &error));
    expect_rows(t, "sums", "{\"k\":\"a\",\"w\":\"2024-01-01T00:01:00\",\"x\":4}\n");
    clink_test_close(t);
}

int main(void) {
    a_device_that_stops();
    what_is_wrong_is_said();
    a_script();
    printf("3 tests passed\n");
    return 0;
}
