/* clink/testing.h over odd_operators.c: side outputs of one operator and of a whole job, timers of the clock, both over
 * a snapshot, and what a test is refused for. Built with -DJOB=0 and -DJOB=2. */
#include <clink/testing.h>
#include <stdlib.h>

CLINK_API const clink_plugin *clink_plugin_table(void);

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
static clink_test_options options(uint32_t tables) {
    clink_test_options o = {
        .struct_bytes = sizeof o, .plugin = clink_plugin_table(), .now_us = 1000000, .tables = tables};
    return o;
}

#if JOB == 0
static void refused(const clink_test_options *o, const char *says) {
    clink_test *t;
    if (clink_test_open(o, &t, &error) == CLINK_OK || t) exit(1);
    if (!strstr(error.message, says)) is(error.message, says, "the error");
}

/* Keys whose timers are of one time come in any order. */
static void expect_both(clink_test *t, const char *table, const char *one, const char *other) {
    const char *got;
    OK(clink_test_rows(t, table, &got, &error));
    if (strlen(got) != strlen(one) + strlen(other) || !strstr(got, one)) is(got, one, table);
    if (!strstr(got, other)) is(got, other, table);
}

/* Key 2 is not armed: no row on the side. */
static void sides(clink_test *t, const char *in, const char *out, const char *side) {
    OK(clink_test_push(t, in, "{\"k\":1,\"x\":3,\"t\":\"ab\",\"ts\":0}\n{\"k\":2,\"x\":7,\"t\":\"\",\"ts\":1}\n",
                       &error));
    expect_rows(t, side, "");
    OK(clink_test_snapshot(t, &error));
    for (int life = 0; life < 2; life++) {
        OK(clink_test_end(t, NULL, &error));
        expect_rows(t, side, "{\"k\":1}\n");
        expect_both(t, out, "{\"k\":1,\"said\":\"1|1.5|ab|1|3=1,|ab,\"}\n", "{\"k\":2,\"said\":\"1|3.5||1|7=1,|,\"}\n");
        if (life == 0) OK(clink_test_restore(t, &error));
    }
    clink_test_close(t);
}

static void run(void) {
    clink_test *t;
    clink_test_options one = options(0), job = options(CLINK_TEST_STAND_INS);
    one.operator_name = "counts", one.key_by = "k", job.plugin_job = "";
    OK(clink_test_open(&one, &t, &error));
    sides(t, "in", "out", "side1");
    OK(clink_test_open(&job, &t, &error));
    sides(t, "r", "o", "s");
    job.tables = 0;
    refused(&job, "a test reads and writes tables of connector 'test'");
    job.tables = 8;
    refused(&job, "has bits that are none of clink_test_tables");
    job.tables = CLINK_TEST_PLUGINS; /* and these are of the file connector */
    refused(&job, "a test reads and writes tables of connector 'test'");
    one.plugin_job = "";
    refused(&one, "a test is of one thing");
    one.plugin_job = NULL, one.operator_name = "nobody";
    refused(&one, "there is no operator \"nobody\" in the plugins of the test");
}
#else
/* A timer of the clock a millisecond after a row. */
static void run(void) {
    clink_test *t;
    clink_test_options job = options(CLINK_TEST_STAND_INS);
    int ended;
    job.plugin_job = "odd";
    OK(clink_test_open(&job, &t, &error));
    OK(clink_test_push(t, "r", "{\"k\":1,\"x\":1,\"t\":\"\",\"ts\":0}", &error));
    OK(clink_test_time(t, 1000500, &error));
    OK(clink_test_push(t, "r", "{\"k\":2,\"x\":1,\"t\":\"\",\"ts\":9000000}",
                       &error)); /* event time has no part in it */
    OK(clink_test_time(t, 1000999, &error));
    expect_rows(t, "p", "");
    OK(clink_test_snapshot(t, &error));
    OK(clink_test_time(t, 1001000, &error));
    expect_rows(t, "p", "{\"k\":1,\"input\":1}\n");
    OK(clink_test_time(t, 1001500, &error));
    expect_rows(t, "p", "{\"k\":2,\"input\":1}\n");
    OK(clink_test_restore(t, &error)); /* timers are there again, and the clock goes on from where it stands */
    expect_rows(t, "p", "");
    OK(clink_test_time(t, 1001500, &error));
    expect_rows(t, "p", "{\"k\":1,\"input\":1}\n{\"k\":2,\"input\":1}\n");
    OK(clink_test_time(t, 9000000, &error));
    expect_rows(t, "p", "");
    if (clink_test_time(t, 1, &error) == CLINK_OK) exit(1);
    is(error.message, "the clock of a test does not go back", "the error");
    if (clink_test_read(t, "r", 0, &ended, &error) == CLINK_OK) exit(1);
    is(error.message, "the test has no table \"r\" to have read", "the error");
    clink_test_close(t);
}
#endif

int main(void) {
    run();
    printf("passed\n");
    return 0;
}
