/* Tests of plugin_quiet.c: of its operator, of its whole job, and of a script: no files, no clock, no waiting. The last
 * one is of its source and its sink, in a directory of its own.
 *
 *     cc -Iinclude examples/plugin_quiet_test.c examples/plugin_quiet.c examples/plugin_quiet_tables.c -o quiet_test \
 *         -Lbuild -lclink -Wl,-rpath,$PWD/build
 *     ./quiet_test
 */
#define _POSIX_C_SOURCE 200809L
#include <clink/testing.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
    expect_state(t, "last",
                 "{\"device\":\"a\",\"ts_us\":1704067210000000,\"readings\":2}\n"
                 "{\"device\":\"b\",\"ts_us\":1704067230000000,\"readings\":1}\n");
    expect_state(t, "timers.event",
                 "{\"device\":\"a\",\"time\":1704067270000000}\n"
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
    clink_test_options o = {
        .struct_bytes = sizeof o,
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

/* The job as it is: its tables are pushed to and read from, whatever their connector. */
static void the_whole_job(void) {
    clink_test_options o = {.struct_bytes = sizeof o,
                            .plugin = clink_plugin_table(),
                            .plugin_job = "quiet",
                            .tables = CLINK_TEST_STAND_INS};
    clink_test *t;
    OK(clink_test_open(&o, &t, &error));
    OK(clink_test_push(t, "readings",
                       "{\"device\":\"a\",\"ts\":\"2024-01-01T00:00:00\",\"value\":1}\n"
                       "{\"device\":\"b\",\"ts\":\"2024-01-01T00:00:30\",\"value\":1}\n"
                       "{\"device\":\"a\",\"ts\":\"2024-01-01T00:00:40\"}\n", /* no value: it does not count */
                       &error));
    expect_rows(t, "quiet", "");
    OK(clink_test_push(t, "readings", "{\"device\":\"b\",\"ts\":\"2024-01-01T00:02:00\",\"value\":1}", &error));
    expect_rows(t, "quiet", "{\"device\":\"a\",\"last_seen\":\"2024-01-01T00:00:00\",\"readings\":1}\n");
    OK(clink_test_end(t, "readings", &error));
    expect_rows(t, "quiet", "{\"device\":\"b\",\"last_seen\":\"2024-01-01T00:02:00\",\"readings\":2}\n");
    clink_test_close(t);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) exit(1);
}

/* Lines of all parts; *files: how many files there are, those too that nobody should look at. */
static int count_lines(const char *path, int *files) {
    int lines = 0;
    DIR *d = opendir(path);
    *files = 0;
    if (!d) exit(1);
    for (struct dirent *e; (e = readdir(d));) {
        char name[600];
        snprintf(name, sizeof name, "%s/%.255s", path, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ++*files;
        FILE *f = strncmp(e->d_name, "part-", 5) == 0 ? fopen(name, "r") : NULL;
        for (int c; f && (c = fgetc(f)) != EOF;) lines += c == '\n';
        if (f) fclose(f);
    }
    closedir(d);
    return lines;
}
static void expect_files(const char *path, int lines, int files, const char *what) {
    int there, got = count_lines(path, &there);
    if (got == lines && there == files) return;
    fprintf(stderr, "%s: %d lines in %d files, not %d in %d\n", what, got, there, lines, files);
    exit(1);
}

/* Source and sink as they are: what is committed when, and what a restart in between makes of it. */
static void its_own_tables(void) {
    char folder[] = "/tmp/quiet_test.XXXXXX", sql[2000];
    int ended;
    clink_test *t;
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("in", 0777) != 0 || mkdir("out", 0777) != 0) exit(1);
    write_file("in/1.csv", "a,1704067200000,1\nb,1704067201000,2\n");
    write_file("in/2.csv", "c,1704067202000,3\n");
    snprintf(
        sql, sizeof sql,
        "CREATE TABLE i (device VARCHAR, ts TIMESTAMP(3), value DOUBLE) WITH (connector='quiet_files', path='%s/in');"
        "CREATE TABLE o (device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT)"
        "  WITH (connector='quiet_files', path='%s/out');"
        "INSERT INTO o SELECT device, ts, CAST(value AS BIGINT) FROM i",
        folder, folder);
    clink_test_options o = {
        .struct_bytes = sizeof o, .plugin = clink_plugin_table(), .sql = sql, .tables = CLINK_TEST_PLUGINS};
    OK(clink_test_open(&o, &t, &error));
    OK(clink_test_read(t, "i", 1, &ended, &error)); /* one of the files */
    expect_files("out", 0, 1, "written, and seen by nobody");
    OK(clink_test_snapshot(t, &error));
    int first, files;
    first = count_lines("out", &files);
    if (ended || first < 1 || files != 1) exit(1);
    for (int life = 0; life < 3; life++) {
        OK(clink_test_read(t, "i", 0, &ended, &error));
        if (!ended) exit(1);
        expect_files("out", first, 2, "read, but in no snapshot");
        if (life == 2) break;
        OK(clink_test_restore(t, &error)); /* commits again, and aborts what was prepared since */
        expect_files("out", first, 1, "restored");
    }
    OK(clink_test_snapshot(t, &error));
    expect_files("out", 3, 2, "all");
    clink_test_close(t);
}

int main(void) {
    a_device_that_stops();
    what_is_wrong_is_said();
    a_script();
    the_whole_job();
    its_own_tables();
    printf("5 tests passed\n");
    return 0;
}
