/* The print sink on real descriptors: a pipe that is read, one nobody reads, one that is read slowly, a full file. */
#include "connector/connectors.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    harness h;
    held_io io;
    int fds[2];
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    signal(SIGPIPE, SIG_IGN);
    ck_test_proc_init(&f->proc);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    assert_int_equal(pipe(f->fds), 0);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    if (f->fds[0] >= 0) close(f->fds[0]);
    if (f->fds[1] >= 0) close(f->fds[1]);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

static void start(fixture *f, ck_edge_mode mode, const char *more) {
    char params[256];
    snprintf(params, sizeof params, "{\"fd\":%d%s}", f->fds[1], more);
    harness_input(&f->h, "k BIGINT; s VARCHAR", mode);
    harness_start(&f->h, &ck_op_sink_print, params, NULL);
}

/* What is in the pipe. */
static const char *printed(fixture *f) {
    static char text[1 << 17];
    fcntl(f->fds[0], F_SETFL, O_NONBLOCK);
    ssize_t n = read(f->fds[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void rows_are_lines(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_APPEND, ",\"format\":\"json\",\"changes\":\"none\",\"key\":[]");
    HARNESS_ROWS(&f->h, "1|a", "2|NULL");
    held_run(&f->h);
    assert_string_equal(printed(f), "{\"k\":1,\"s\":\"a\"}\n{\"k\":2,\"s\":null}\n");
    HARNESS_ROWS(&f->h, "3|c");
    harness_end(&f->h);
    assert_string_equal(printed(f), "{\"k\":3,\"s\":\"c\"}\n");
    assert_int_equal(harness_counter(&f->h, "rows_out"), 3);
}

static void changes_carry_prefixes(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_RETRACT, ",\"key\":[0]");
    HARNESS_ROWS(&f->h, "1|a", "-1|a", "1|b", "-2|x");
    harness_end(&f->h);
    assert_string_equal(printed(f), "{\"k\":1,\"s\":\"a\"}\n-U {\"k\":1,\"s\":\"a\"}\n+U {\"k\":1,\"s\":\"b\"}\n"
                                    "-D {\"k\":2,\"s\":\"x\"}\n");
}

static void changes_may_be_a_field(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_RETRACT, ",\"key\":[0],\"changes\":\"field\"");
    HARNESS_ROWS(&f->h, "1|a", "-1|a");
    harness_end(&f->h);
    assert_string_equal(printed(f), "{\"op\":\"+I\",\"k\":1,\"s\":\"a\"}\n{\"op\":\"-D\",\"k\":1,\"s\":\"a\"}\n");
}

static void csv_has_a_header_even_without_rows(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_APPEND, ",\"format\":\"csv\"");
    harness_end(&f->h);
    assert_string_equal(printed(f), "k,s\n");
}

static void a_reader_that_is_gone_closes_the_input(void **state) {
    fixture *f = *state;
    start(f, CK_MODE_APPEND, "");
    close(f->fds[0]);
    f->fds[0] = -1;
    HARNESS_ROWS(&f->h, "1|a");
    held_run(&f->h);
    assert_false(f->h.closed[0]);
    HARNESS_ROWS(&f->h, "2|b");
    assert_true(f->h.closed[0]);
    harness_end(&f->h);
}

static void a_slow_reader_holds_the_sink_and_loses_nothing(void **state) {
    fixture *f = *state;
    f->h.run_io = NULL; /* by hand */
    start(f, CK_MODE_APPEND, "");
    char line[2048];
    memset(line, 'x', sizeof line);
    memcpy(line, "1|", 2);
    line[1500] = 0;
    const char *rows[100];
    for (int i = 0; i < 100; i++) rows[i] = line;
    ck_batch *b = harness_batch(&f->h, 0, rows, 100);
    ck_event ev = ck_event_batch(b);
    size_t taken = 0, got = 0;
    ck_status s = CK_OK;
    for (int i = 0; i < 20 && s == CK_OK; i++) {
        s = ck_op_sink_print.op->on_event(f->h.self, 0, &ev, &f->h.ctx);
        harness_end_call(&f->h);
        taken += s == CK_OK ? 100 : 0;
        while (held_run_one(&f->h)) { /* gives up: nobody reads */
        }
    }
    assert_int_equal(s, CK_AGAIN);
    assert_true(ck_op_sink_print.op->next_wake_us(f->h.self, &f->h.ctx) != INT64_MAX);
    ck_event last = ck_event_end();
    for (int i = 0; i < 100000; i++) {
        for (const char *p = printed(f); *p; p++) got += *p == '\n';
        const ck_event *now = s == CK_AGAIN ? &ev : &last;
        if (now == &last && got == taken) break;
        ck_status r = ck_op_sink_print.op->on_event(f->h.self, 0, now, &f->h.ctx);
        harness_end_call(&f->h);
        if (now == &ev && r == CK_OK) taken += 100, s = CK_OK;
        held_run_one(&f->h);
    }
    assert_int_equal(got, taken);
    assert_true(ck_op_sink_print.op->next_wake_us(f->h.self, &f->h.ctx) == INT64_MAX);
    held_run(&f->h);
    ck_batch_unref(&b);
}

static void a_full_disk_is_an_error(void **state) {
    fixture *f = *state;
    int full = open("/dev/full", O_WRONLY);
    if (full < 0) return;
    char params[64];
    snprintf(params, sizeof params, "{\"fd\":%d}", full);
    harness_input(&f->h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    harness_start(&f->h, &ck_op_sink_print, params, NULL);
    HARNESS_ROWS(&f->h, "1|a");
    assert_int_equal(harness_event(&f->h, 0, ck_event_end()), CK_IO);
    assert_non_null(strstr(f->h.error.msg, "No space left"));
    close(full);
}

static void bad_parameters_are_named(void **state) {
    fixture *f = *state;
    harness_input(&f->h, "k BIGINT; s VARCHAR", CK_MODE_APPEND);
    static const char *const bad[] = {"{\"fd\":-1}", "{\"fd\":1,\"changes\":\"some\"}", "{\"fd\":1,\"key\":[7]}", "[]"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        assert_int_equal(harness_create(&f->h, &ck_op_sink_print, bad[i], NULL), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(rows_are_lines),
        T(changes_carry_prefixes),
        T(changes_may_be_a_field),
        T(csv_has_a_header_even_without_rows),
        T(a_reader_that_is_gone_closes_the_input),
        T(a_slow_reader_holds_the_sink_and_loses_nothing),
        T(a_full_disk_is_an_error),
        T(bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
