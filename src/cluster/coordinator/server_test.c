/* The coordinator's process, in this one: real sockets, a real directory. What it decides is tested beside the machine.
 */
#include "cluster/coordinator/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/sha256.h"
#include "cluster/client.h"
#include "cluster/coordinator/records_dir.h"
#include "cluster/token.h"
#include "os/durable.h"
#include "os/io.h"
#include "os/socket.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    ck_arena arena;
    char token_file[120], metadata[120], address[40];
    const char *allow_plugins;
    ck_coordinator_server *server;
} fixture;

static ck_coordinator_server_config config(fixture *f) {
    return (ck_coordinator_server_config){.proc = &f->t.proc,
                                          .host = "127.0.0.1",
                                          .metadata_dir = f->metadata,
                                          .token_file = f->token_file,
                                          .allow_plugins = f->allow_plugins,
                                          .machine = ck_coordinator_defaults((ck_mem){0}, 0)};
}

static void start(fixture *f) {
    uint16_t port;
    ck_error err = CK_ERROR_INIT;
    const ck_coordinator_server_config cfg = config(f);
    if (ck_coordinator_server_start(&cfg, &f->server, &port, &err) != CK_OK) fail_msg("%s", err.msg);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", port);
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), 64 << 20);
    snprintf(f.token_file, sizeof f.token_file, "%s/token", ck_test_dir(&f.t));
    snprintf(f.metadata, sizeof f.metadata, "%s/meta", ck_test_dir(&f.t));
    start(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_coordinator_server_stop(f->server);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_status ask(fixture *f, const char *token_file, ck_command what, uint64_t job, ck_msg_reply *out,
                     ck_error *err) {
    const ck_client_config cfg = {
        .proc = &f->t.proc, .address = f->address, .token_file = token_file, .timeout_us = 60000000};
    const ck_message m = {.kind = CK_MSG_COMMAND, .as.command = {.fence.job = job, .command = what}};
    return ck_client_ask(&cfg, &m, &f->arena, out, err);
}

static void who_knows_the_token_is_answered(void **state) {
    fixture *f = *state;
    ck_msg_reply r;
    ck_error err = CK_ERROR_INIT;
    OK(ask(f, f->token_file, CK_COMMAND_LIST, 0, &r, &err));
    assert_int_equal(r.jobs.count, 0);
    assert_int_equal(ask(f, f->token_file, CK_COMMAND_STATUS, 7, &r, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "there is no job 7"));
    char wrong[160];
    snprintf(wrong, sizeof wrong, "%s/wrong", ck_test_dir(&f->t));
    assert_int_equal(ask(f, wrong, CK_COMMAND_LIST, 0, &r, &err), CK_NOTFOUND); /* no such file */
    OK(ck_durable_replace_bytes(&f->t.proc, wrong, CK_VIEW("short"), &err));
    assert_int_equal(ask(f, wrong, CK_COMMAND_LIST, 0, &r, &err), CK_CORRUPT);
    char zeros[CK_TOKEN_CHARS];
    memset(zeros, '0', sizeof zeros);
    OK(ck_durable_replace_bytes(&f->t.proc, wrong, (ck_view){zeros, sizeof zeros}, &err));
    assert_int_equal(ask(f, wrong, CK_COMMAND_LIST, 0, &r, &err), CK_CLOSED);
    OK(ask(f, f->token_file, CK_COMMAND_LIST, 0, &r, &err));
}

static void tokens_are_compared_whole(void **state) {
    (void)state;
    ck_token t = {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    char other[CK_TOKEN_CHARS + 1];
    memcpy(other, t.text, sizeof other);
    assert_true(ck_token_equal(&t, (ck_view){other, CK_TOKEN_CHARS}));
    assert_false(ck_token_equal(&t, (ck_view){other, CK_TOKEN_CHARS - 1}));
    assert_false(ck_token_equal(&t, (ck_view){other, CK_TOKEN_CHARS + 1}));
    assert_false(ck_token_equal(&t, (ck_view){"", 0}));
    for (size_t i = 0; i < CK_TOKEN_CHARS; i++) {
        other[i] ^= 1;
        assert_false(ck_token_equal(&t, (ck_view){other, CK_TOKEN_CHARS}));
        other[i] ^= 1;
    }
}

static void only_loopback_is_listened_on(void **state) {
    fixture *f = *state;
    static const char *const hosts[] = {"0.0.0.0", "10.1.2.3", "example.org", "::"};
    ck_coordinator_server_config cfg = config(f);
    for (size_t i = 0; i < CK_ARRAY_COUNT(hosts); i++) {
        ck_coordinator_server *s;
        uint16_t port;
        ck_error err = CK_ERROR_INIT;
        cfg.host = hosts[i];
        assert_int_equal(ck_coordinator_server_start(&cfg, &s, &port, &err), CK_REFUSED);
        assert_non_null(strstr(err.msg, "without --tls-cert"));
    }
}

static void wait_for(ck_poller *poller, ck_socket *s, bool read) {
    ck_poll_event e;
    size_t count;
    OK(ck_poller_set(poller, s, read, !read, s, NULL));
    do OK(ck_poller_wait(poller, &e, 1, -1, &count, NULL));
    while (count == 0);
}

/* Says that and no more, and hears whatever comes until the connection is closed. -> how many bytes that was */
static size_t say_and_wait(fixture *f, const char *address, ck_view what) {
    ck_socket *s;
    ck_poller *poller;
    size_t n, heard = 0;
    char bytes[64];
    ck_status st;
    OK(ck_poller_new(&f->t.proc, &poller, NULL));
    OK(ck_socket_connect(&f->t.proc, address, &s, NULL));
    wait_for(poller, s, false);
    OK(ck_socket_write(s, what.p, what.n, &n, NULL));
    assert_int_equal(n, what.n);
    while ((st = ck_socket_read(s, bytes, sizeof bytes, &n, NULL)) != CK_CLOSED) {
        if (st == CK_OK) heard += n;
        if (st == CK_AGAIN) wait_for(poller, s, true);
        assert_true(st == CK_OK || st == CK_AGAIN);
    }
    ck_socket_close(s);
    ck_poller_free(poller);
    return heard;
}

/* What a stranger says is not taken in, whatever he announces: his connection ends, and others are answered. */
static void a_stranger_is_heard_for_a_few_hundred_bytes(void **state) {
    fixture *f = *state;
    ck_msg_reply r;
    ck_error err = CK_ERROR_INIT;
    static const char announces[] = {0, 0, 4, 0, CK_MSG_HELLO};
    assert_int_equal(say_and_wait(f, f->address, (ck_view){announces, sizeof announces}), 0);
    OK(ask(f, f->token_file, CK_COMMAND_LIST, 0, &r, &err));
}

static size_t put(fixture *f, char *to, const ck_message *m) {
    ck_frame *frame;
    OK(ck_message_frame(ck_proc_mem(&f->t.proc, CK_MEM_PLAN), m, &frame, NULL));
    size_t n = CK_FRAME_HEADER_BYTES + frame->n;
    ck_frame_header((uint8_t *)to, frame->kind, frame->n);
    memcpy(to + CK_FRAME_HEADER_BYTES, frame->p, frame->n);
    ck_frame_free(&frame);
    return n;
}

/* "A watchdog thread wakes every watchdog_interval": a worker that says nothing any more is let go, though nothing else
 * happens. */
static void silence_is_judged_without_anybody_asking(void **state) {
    fixture *f = *state;
    char said[400], address[40], token_file[160], token[CK_TOKEN_CHARS + 1] = {0};
    uint16_t port;
    ck_view text;
    ck_coordinator_server *server;
    ck_coordinator_server_config cfg = config(f);
    snprintf(token_file, sizeof token_file, "%s/other", ck_test_dir(&f->t));
    cfg.metadata_dir = NULL, cfg.token_file = token_file;
    cfg.machine.watchdog_interval_us = 10000, cfg.machine.heartbeat_timeout_us = 200000;
    OK(ck_coordinator_server_start(&cfg, &server, &port, NULL));
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    OK(ck_fs_read_all(&f->t.proc, token_file, 100, &f->arena, &text, NULL));
    memcpy(token, text.p, CK_TOKEN_CHARS);
    size_t n = put(
        f, said,
        &(ck_message){.kind = CK_MSG_HELLO, .as.hello = {.version = CK_CLUSTER_VERSION, .token = ck_view_of(token)}});
    n += put(f, said + n,
             &(ck_message){.kind = CK_MSG_REGISTER,
                           .as.reg = {.worker = CK_VIEW("w1"), .incarnation = 1, .slots = 1, .turn = 1}});
    assert_true(say_and_wait(f, address, (ck_view){said, n}) > 0); /* WELCOME, and then the end */
    ck_coordinator_server_stop(server);
}

static void a_directory_has_one_coordinator_and_epochs_grow(void **state) {
    fixture *f = *state;
    ck_records *r;
    uint64_t epoch;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_records_dir_open(&f->t.proc, f->metadata, &r, &epoch, &err), CK_EXISTS);
    for (uint64_t n = 2; n < 5; n++) {
        ck_coordinator_server_stop(f->server);
        f->server = NULL;
        OK(ck_records_dir_open(&f->t.proc, f->metadata, &r, &epoch, &err));
        assert_int_equal(epoch, n); /* leader n - 1 has been here */
        ck_records_close(r);
        start(f);
    }
}

static void records_come_back_and_damaged_ones_are_named(void **state) {
    fixture *f = *state;
    ck_records *r;
    uint64_t epoch;
    ck_frame *frame;
    ck_error err = CK_ERROR_INIT;
    char dir[140], path[160];
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN);
    static const uint32_t states[] = {0};
    static const ck_msg_role role[] = {{.name = {"a", 1}, .parallelism = 1}};
    ck_message m = {
        .kind = CK_MSG_RECORD_JOB,
        .as.job = {.job = {.fence = {1, 9, 2}, .name = CK_VIEW("n"), .roles = {role, 1}}, .states = {states, 1}}};
    snprintf(dir, sizeof dir, "%s/other", ck_test_dir(&f->t));
    snprintf(path, sizeof path, "%s/job-9.rec", dir);
    OK(ck_records_dir_open(&f->t.proc, dir, &r, &epoch, &err));
    OK(ck_message_frame(mem, &m, &frame, &err));
    OK(ck_records_keep(r, 9, frame, &err));
    OK(ck_records_keep(r, 10, frame, &err));
    OK(ck_records_forget(r, 10, &err));
    OK(ck_records_forget(r, 10, &err)); /* is not: fine */
    for (int damaged = 0; damaged < 2; damaged++) {
        ck_coordinator *c;
        const ck_coordinator_config cfg = ck_coordinator_defaults(mem, epoch);
        if (damaged)
            OK(ck_durable_replace_bytes(&f->t.proc, path,
                                        CK_VIEW("\x61"
                                                "1234nonsense"),
                                        &err));
        OK(ck_coordinator_new(&cfg, &c, &err));
        ck_status s = ck_records_recover(r, c, &err);
        assert_int_equal(s, damaged ? CK_CORRUPT : CK_OK);
        if (damaged) assert_non_null(strstr(err.msg, "job-9.rec is damaged"));
        ck_coordinator_free(c);
    }
    ck_frame_free(&frame);
    ck_records_close(r);
}

/* What cannot be written is not done: who cannot keep records does not lead. */
static void a_record_that_cannot_be_written_ends_its_leading(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    ck_msg_reply r;
    ck_records *records;
    uint64_t epoch;
    ck_frame *frame;
    static const uint32_t ended[] = {5};
    static const ck_msg_role role[] = {{.name = {"a", 1}, .parallelism = 1}};
    ck_message suspended = {.kind = CK_MSG_RECORD_JOB,
                            .as.job = {.job = {.fence = {1, 9, 2}, .name = CK_VIEW("n"), .roles = {role, 1}},
                                       .state = 5,
                                       .goal = 2,
                                       .states = {ended, 1}}};
    ck_coordinator_server_stop(f->server);
    OK(ck_records_dir_open(&f->t.proc, f->metadata, &records, &epoch, &err));
    OK(ck_message_frame(ck_proc_mem(&f->t.proc, CK_MEM_PLAN), &suspended, &frame, &err));
    OK(ck_records_keep(records, 9, frame, &err));
    ck_frame_free(&frame);
    ck_records_close(records);
    start(f);
    OK(ask(f, f->token_file, CK_COMMAND_STATUS, 9, &r, &err));
    OK(ck_fs_remove_tree(&f->t.proc, f->metadata, &err));
    OK(ck_coordinator_server_state(f->server, &err));
    assert_int_equal(ask(f, f->token_file, CK_COMMAND_CANCEL, 9, &r, &err), CK_CLOSED);
    assert_int_not_equal(ck_coordinator_server_state(f->server, &err), CK_OK);
    assert_non_null(strstr(err.msg, "meta"));
    assert_int_equal(ask(f, f->token_file, CK_COMMAND_LIST, 0, &r, &err), CK_CLOSED); /* nor does it answer */
}

/* ---- plugins, on a disk that takes its time ---- */

typedef struct slow_io {
    ck_io base; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ck_io_job *held; /* one at a time */
} slow_io;

static void hold(ck_io *io, ck_io_job *j) {
    slow_io *s = (slow_io *)io;
    pthread_mutex_lock(&s->lock);
    assert_null(s->held);
    s->held = j;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static ck_io_job *wait_held(slow_io *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->held) pthread_cond_wait(&s->changed, &s->lock);
    ck_io_job *j = s->held;
    s->held = NULL;
    pthread_mutex_unlock(&s->lock);
    return j;
}

static void *release(void *job) {
    ck_io_job *j = job;
    j->run(j);
    j->done(j);
    return NULL;
}

/* A submit that brings a plugin; what is said of the job itself comes behind that. */
typedef struct submitter {
    fixture *f;
    pthread_t thread;
    ck_status status;
    ck_error error;
} submitter;

static void *submit(void *arg) {
    submitter *x = arg;
    fixture *f = x->f;
    const ck_client_config cfg = {
        .proc = &f->t.proc, .address = f->address, .token_file = f->token_file, .timeout_us = 60000000};
    const ck_view content = CK_VIEW("no library, but whoever keeps it does not ask");
    char hash[CK_SHA256_CHARS + 1];
    ck_sha256_of(content, hash);
    const ck_client_plugin plugin = {{ck_view_of(hash), content.n, CK_VIEW("x.so")}, content};
    const ck_message m = {.kind = CK_MSG_SUBMIT, .as.submit.plugins = {&plugin.said, 1}};
    ck_msg_reply r;
    ck_arena a;
    x->error = CK_ERROR_INIT;
    ck_arena_init(&a, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), 1 << 20);
    x->status = ck_client_submit(&cfg, &plugin, 1, &m, &a, &r, &x->error);
    ck_arena_destroy(&a);
    return NULL;
}

static void start_with_plugins(fixture *f, slow_io *io) {
    *io = (slow_io){.base = {hold}, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    ck_coordinator_server_stop(f->server);
    f->allow_plugins = "any";
    f->t.proc.io = &io->base;
    start(f);
}

static void who_brings_a_plugin_is_the_only_one_that_waits_for_the_disk(void **state) {
    fixture *f = *state;
    slow_io io;
    ck_msg_reply r;
    ck_error err = CK_ERROR_INIT;
    start_with_plugins(f, &io);
    for (int again = 0; again < 2; again++) { /* it is kept, and the second time looked at */
        submitter x = {.f = f};
        assert_int_equal(pthread_create(&x.thread, NULL, submit, &x), 0);
        ck_io_job *j = wait_held(&io);
        OK(ask(f, f->token_file, CK_COMMAND_LIST, 0, &r, &err));
        (void)release(j);
        assert_int_equal(pthread_join(x.thread, NULL), 0);
        assert_int_equal(x.status, CK_INVALID);
        assert_string_equal(x.error.msg, "a job without a name");
    }
}

/* Whichever of the two is first. */
static void a_stop_waits_for_what_is_under_way(void **state) {
    fixture *f = *state;
    slow_io io;
    pthread_t disk;
    submitter x = {.f = f};
    start_with_plugins(f, &io);
    assert_int_equal(pthread_create(&x.thread, NULL, submit, &x), 0);
    assert_int_equal(pthread_create(&disk, NULL, release, wait_held(&io)), 0);
    ck_coordinator_server_stop(f->server);
    f->server = NULL;
    assert_int_equal(pthread_join(disk, NULL), 0);
    assert_int_equal(pthread_join(x.thread, NULL), 0);
    assert_int_not_equal(x.status, CK_OK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(who_knows_the_token_is_answered),
        T(tokens_are_compared_whole),
        T(only_loopback_is_listened_on),
        T(a_stranger_is_heard_for_a_few_hundred_bytes),
        T(silence_is_judged_without_anybody_asking),
        T(a_directory_has_one_coordinator_and_epochs_grow),
        T(records_come_back_and_damaged_ones_are_named),
        T(a_record_that_cannot_be_written_ends_its_leading),
        T(who_brings_a_plugin_is_the_only_one_that_waits_for_the_disk),
        T(a_stop_waits_for_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
