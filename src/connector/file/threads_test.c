/* Source and sink with real threads on the real file system: what they share with I/O jobs, for the thread sanitizer;
 * and standard input. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "connector/connectors.h"
#include "connector/file/file_int.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    harness h;
    _Atomic unsigned under_way;
    int saved_stdin, pipe_in;
} fixture;

/* Jobs on the pool, counted so that a close can wait for them as the runtime does. */
typedef struct counted_job {
    ck_io_job job;
    ck_io_job *user;
    fixture *f;
} counted_job;

static void counted_run(ck_io_job *j) { ((counted_job *)j)->user->run(((counted_job *)j)->user); }
static void counted_done(ck_io_job *j) {
    counted_job *c = (counted_job *)j;
    fixture *f = c->f;
    c->user->done(c->user);
    free(c);
    atomic_fetch_sub(&f->under_way, 1);
}
static void pool_submit(harness *h, ck_io_job *job) {
    fixture *f = h->io;
    counted_job *c = malloc(sizeof *c);
    *c = (counted_job){{counted_run, counted_done, NULL}, job, f};
    atomic_fetch_add(&f->under_way, 1);
    f->proc.proc.io->submit(f->proc.proc.io, &c->job);
}
static void pool_wait(harness *h) { /* for a wake, or for all to be done */
    fixture *f = h->io;
    while (!__atomic_exchange_n(&h->woken, false, __ATOMIC_SEQ_CST) && atomic_load(&f->under_way)) sched_yield();
}
static void pool_settle(fixture *f) {
    while (atomic_load(&f->under_way)) sched_yield();
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    assert_int_equal(ck_io_pool_new(&f->proc.proc, 4, &f->proc.proc.io, NULL), CK_OK);
    harness_init(&f->h, &f->proc.proc);
    f->h.submit = pool_submit;
    f->h.run_io = pool_wait;
    f->h.io = f;
    f->saved_stdin = f->pipe_in = -1;
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    pool_settle(f);
    harness_destroy(&f->h);
    ck_io_pool_free(f->proc.proc.io);
    if (f->saved_stdin >= 0) {
        dup2(f->saved_stdin, 0);
        close(f->saved_stdin);
    }
    if (f->pipe_in >= 0) close(f->pipe_in);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

#define SCHEMA                                                                                                         \
    "\"table\":\"t\",\"table_schema\":[{\"name\":\"a\",\"type\":\"BIGINT\",\"nullable\":true},"                        \
    "{\"name\":\"s\",\"type\":\"VARCHAR\",\"nullable\":true}],\"columns\":[0,1],\"checked\":[]"
#define OUTPUT "a BIGINT; s VARCHAR"

static ck_status drive(fixture *f) {
    for (;;) {
        ck_poll_result result;
        int64_t until;
        ck_status s = source_poll(&f->h, &result, &until);
        if (s != CK_OK || result == CK_POLL_END) return s;
        if (result == CK_POLL_IDLE) pool_wait(&f->h);
    }
}

static void write_and_read_again(fixture *f) {
    char params[512], out[128];
    snprintf(out, sizeof out, "%s/out", ck_test_dir(&f->proc));
    snprintf(params, sizeof params,
             "{\"table\":\"o\",\"options\":{\"path\":\"%s\",\"format\":\"json\",\"part_bytes\":\"3000000\"},\"primary_"
             "key\":[]}",
             out);
    harness_input(&f->h, OUTPUT, CK_MODE_APPEND);
    harness_start(&f->h, &ck_op_sink_file, params, NULL);
    static char text[4000][64];
    static const char *rows[4000];
    for (int i = 0; i < 4000; i++) {
        snprintf(text[i], sizeof text[i], "%d|a text that does not stand in a view, %d", i, i % 7);
        rows[i] = text[i];
    }
    ck_batch *b = harness_batch(&f->h, 0, rows, 4000);
    for (int i = 0; i < 40; i++) harness_ok(&f->h, harness_event(&f->h, 0, ck_event_batch(b)));
    ck_batch_unref(&b);
    harness_end(&f->h);
    pool_settle(f);
    harness_close(&f->h);
    f->h.spec.input_count = 0;

    split_set splits;
    split_set_init(&splits, &f->h);
    snprintf(params, sizeof params, "{" SCHEMA ",\"options\":{\"path\":\"%s\",\"format\":\"json\"}}", out);
    f->h.spec.params = params;
    f->h.spec.type = "source.file";
    harness_ok(&f->h, ck_op_source_file.enumerate(&f->h.spec, 2, &splits.list, &f->h.error));
    assert_true(splits.list.count >= 4); /* parts, cut in two */
    f->h.keep_batches = true;
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, params, OUTPUT, &splits.list));
    harness_ok(&f->h, drive(f));
    int64_t sum = 0;
    uint64_t count = 0;
    for (size_t i = 0; i < f->h.batch_count; i++)
        for (uint32_t k = 0; k < f->h.batches[i]->sel_count; k++, count++) sum += f->h.batches[i]->columns[0]->i64[k];
    assert_int_equal(count, 160000);
    assert_int_equal(sum, 40LL * 4000 * 3999 / 2);
    pool_settle(f);
    split_set_destroy(&splits);
}

static void what_is_written_is_read_again(void **state) { write_and_read_again(*state); }

static _Atomic int asked; /* of the cache, by whichever thread */

static ck_status now_and_then(ck_file *file, void *p, size_t n, uint64_t offset) {
    size_t got;
    if (atomic_fetch_add(&asked, 1) % 2) return CK_AGAIN;
    return ck_fs_system()->pread(file, p, n, offset, &got, NULL) == CK_OK && got == n ? CK_OK : CK_AGAIN;
}

static void some_of_it_is_in_memory(void **state) {
    fixture *f = *state;
    ck_fs fs = *ck_fs_system();
    fs.pread_cached = now_and_then;
    f->proc.proc.fs = &fs;
    write_and_read_again(f);
    harness_close(&f->h); /* while fs is there */
    assert_true(atomic_load(&asked) > 2);
    f->proc.proc.fs = ck_fs_system();
}

static _Atomic int waited_for; /* whole buffers that the executor read */

static ck_status not_the_first_time(ck_file *file, void *p, size_t n, uint64_t offset) {
    size_t got;
    if (atomic_fetch_add(&asked, 1) == 0) return CK_AGAIN;
    return ck_fs_system()->pread(file, p, n, offset, &got, NULL) == CK_OK && got == n ? CK_OK : CK_AGAIN;
}

static ck_status counted_pread(ck_file *file, void *p, size_t n, uint64_t offset, size_t *got, ck_error *err) {
    if (n == CK_READ_BYTES) atomic_fetch_add(&waited_for, 1);
    return ck_fs_system()->pread(file, p, n, offset, got, err);
}

/* A page that is missing for a moment costs the few reads that were under way, not all that follow. */
static void a_miss_is_forgotten(void **state) {
    fixture *f = *state;
    ck_fs fs = *ck_fs_system();
    fs.pread_cached = not_the_first_time;
    fs.pread = counted_pread;
    f->proc.proc.fs = &fs;
    atomic_store(&asked, 0);
    write_and_read_again(f);
    harness_close(&f->h);
    assert_true(atomic_load(&asked) > 20);
    assert_int_equal(atomic_load(&waited_for), 3);
    f->proc.proc.fs = ck_fs_system();
}

static void none_of_it_is_in_memory(void **state) {
    fixture *f = *state;
    ck_fs fs = *ck_fs_system();
    fs.pread_cached = NULL;
    f->proc.proc.fs = &fs;
    write_and_read_again(f);
    harness_close(&f->h);
    f->proc.proc.fs = ck_fs_system();
}

/* ---- standard input ---- */

static int redirect_stdin(fixture *f) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    f->saved_stdin = dup(0);
    dup2(fds[0], 0);
    close(fds[0]);
    return fds[1];
}

static void open_stdin_source(fixture *f, const char *params) {
    split_set splits;
    split_set_init(&splits, &f->h);
    f->h.spec.params = params;
    f->h.spec.type = "source.file";
    harness_ok(&f->h, ck_op_source_file.enumerate(&f->h.spec, 3, &splits.list, &f->h.error));
    assert_int_equal(splits.list.count, 1);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, params, OUTPUT, &splits.list));
    split_set_destroy(&splits);
}

static void put(int fd, const char *text) { assert_int_equal(write(fd, text, strlen(text)), strlen(text)); }

static void a_table_over_standard_input(void **state) {
    fixture *f = *state;
    int in = redirect_stdin(f);
    open_stdin_source(f, "{" SCHEMA ",\"options\":{\"path\":\"-\",\"format\":\"csv\",\"header\":\"true\"}}");
    put(in, "\xef\xbb\xbfs,a\nx,1\ny");
    while (f->h.line_count < 1) {
        ck_poll_result result;
        int64_t until;
        harness_ok(&f->h, source_poll(&f->h, &result, &until));
        if (result == CK_POLL_IDLE) pool_wait(&f->h);
    }
    HARNESS_EXPECT(&f->h, "+1|x"); /* before the pipe is closed */
    put(in, ",2\n\"z\nz\",3");
    close(in);
    harness_ok(&f->h, drive(f));
    HARNESS_EXPECT(&f->h, "+2|y", "+3|z\nz");
}

static void a_bad_record_of_standard_input_has_a_line(void **state) {
    fixture *f = *state;
    int in = redirect_stdin(f);
    open_stdin_source(f, "{" SCHEMA ",\"options\":{\"path\":\"-\",\"format\":\"json\"}}");
    put(in, "{\"a\":1}\n\n{\"a\":2}\n{\"a\":\"x\"}\n");
    close(in);
    assert_int_equal(drive(f), CK_DATA);
    if (!strstr(f->h.error.msg, "standard input line 4")) fail_msg("%s", f->h.error.msg);
}

static void an_idle_standard_input_holds_nobody_up(void **state) {
    fixture *f = *state;
    f->pipe_in = redirect_stdin(f);
    open_stdin_source(f, "{" SCHEMA ",\"options\":{\"path\":\"-\",\"format\":\"json\"}}");
    ck_poll_result result;
    int64_t until;
    harness_ok(&f->h, source_poll(&f->h, &result, &until));
    assert_int_equal(result, CK_POLL_IDLE);
    pool_settle(f); /* the job ends though nothing comes, and a close may follow */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(what_is_written_is_read_again),
        T(some_of_it_is_in_memory),
        T(a_miss_is_forgotten),
        T(none_of_it_is_in_memory),
        T(a_table_over_standard_input),
        T(a_bad_record_of_standard_input_has_a_line),
        T(an_idle_standard_input_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
