#include "os/socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "os/thread.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct pair {
    ck_socket *listener, *client, *server;
    ck_poller *poller;
} pair;

/* Waits until the tag has an event; other events are dropped. */
static ck_poll_event await(ck_poller *p, void *tag) {
    for (;;) {
        ck_poll_event events[8];
        size_t count;
        OK(ck_poller_wait(p, events, 8, 10000, &count, NULL));
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++)
            if (events[i].tag == tag) return events[i];
    }
}

static void connect_pair(ck_test_proc *t, const char *address, pair *p) {
    char where[300];
    uint16_t port = 0;
    OK(ck_poller_new(&t->proc, &p->poller, NULL));
    OK(ck_socket_listen(&t->proc, address, &p->listener, &port, NULL));
    if (strncmp(address, "unix:", 5) == 0)
        snprintf(where, sizeof where, "%s", address);
    else
        snprintf(where, sizeof where, "%.*s:%u", (int)(strrchr(address, ':') - address), address, port);
    assert_int_equal(ck_socket_accept(p->listener, &p->server, NULL), CK_AGAIN);
    OK(ck_socket_connect(&t->proc, where, &p->client, NULL));
    OK(ck_poller_set(p->poller, p->client, false, true, &p->client, NULL));
    OK(ck_poller_set(p->poller, p->listener, true, false, &p->listener, NULL));
    assert_true(await(p->poller, &p->client).writable);
    OK(ck_socket_connected(p->client, NULL));
    OK(ck_poller_set(p->poller, p->client, false, false, &p->client, NULL));
    assert_true(await(p->poller, &p->listener).readable);
    OK(ck_socket_accept(p->listener, &p->server, NULL));
    OK(ck_poller_set(p->poller, p->server, true, false, &p->server, NULL));
}
static void close_pair(pair *p) {
    ck_socket_close(p->client);
    ck_socket_close(p->server);
    ck_socket_close(p->listener);
    ck_poller_free(p->poller);
}

static void exchange(ck_test_proc *t, const char *address) {
    pair p;
    connect_pair(t, address, &p);
    char buffer[64];
    size_t n;
    assert_int_equal(ck_socket_read(p.server, buffer, sizeof buffer, &n, NULL), CK_AGAIN);
    assert_int_equal(n, 0);
    ck_view parts[3] = {CK_VIEW("one "), CK_VIEW(""), CK_VIEW("two")};
    OK(ck_socket_writev(p.client, parts, 3, &n, NULL));
    assert_int_equal(n, 7);
    assert_true(await(p.poller, &p.server).readable);
    OK(ck_socket_read(p.server, buffer, sizeof buffer, &n, NULL));
    assert_int_equal(n, 7);
    assert_memory_equal(buffer, "one two", 7);
    OK(ck_socket_write(p.server, "back", 4, &n, NULL));
    OK(ck_poller_set(p.poller, p.client, true, false, &p.client, NULL));
    assert_true(await(p.poller, &p.client).readable);
    OK(ck_socket_read(p.client, buffer, sizeof buffer, &n, NULL));
    assert_int_equal(n, 4);
    ck_socket_close(p.client);
    p.client = NULL;
    assert_true(await(p.poller, &p.server).readable);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_socket_read(p.server, buffer, sizeof buffer, &n, &err), CK_CLOSED);
    assert_int_equal(err.status, CK_CLOSED);
    close_pair(&p);
}

static void test_bytes_go_both_ways(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    exchange(&t, "127.0.0.1:0");
    exchange(&t, "localhost:0");
    char path[128], *file;
    snprintf(path, sizeof path, "unix:%s/s", ck_test_dir(&t));
    file = path + 5;
    exchange(&t, path);
    struct stat st;
    assert_int_equal(stat(file, &st), -1); /* close removed it */
    ck_test_proc_destroy(&t);
}

static void test_a_full_pipe_is_backpressure_and_a_gone_peer_is_closed(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    pair p;
    connect_pair(&t, "127.0.0.1:0", &p);
    char *block = calloc(1, 1 << 20);
    size_t n, total = 0;
    ck_status s;
    while ((s = ck_socket_write(p.client, block, 1 << 20, &n, NULL)) == CK_OK) total += n;
    assert_int_equal(s, CK_AGAIN);
    assert_int_equal(n, 0);
    assert_true(total > 0);
    OK(ck_poller_set(p.poller, p.client, false, true, &p.client, NULL));
    size_t seen = 0;
    bool writable = false;
    while (!writable) { /* reading makes room */
        assert_true(await(p.poller, &p.server).readable);
        OK(ck_socket_read(p.server, block, 1 << 20, &n, NULL));
        seen += n;
        ck_poll_event e[4];
        size_t count;
        OK(ck_poller_wait(p.poller, e, 4, 0, &count, NULL));
        for (size_t i = 0; i < count; i++) writable = writable || (e[i].tag == &p.client && e[i].writable);
    }
    assert_true(seen > 0 && seen <= total);
    ck_socket_close(p.server); /* with bytes unread: a reset */
    p.server = NULL;
    assert_true(await(p.poller, &p.client).closed);
    ck_error err = CK_ERROR_INIT;
    while ((s = ck_socket_write(p.client, block, 1, &n, &err)) == CK_OK) {
    }
    assert_int_equal(s, CK_CLOSED); /* and no SIGPIPE */
    free(block);
    close_pair(&p);
    ck_test_proc_destroy(&t);
}

static void test_refused_connection_is_said(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_socket *l, *c;
    ck_poller *p;
    uint16_t port;
    char where[64];
    ck_error err = CK_ERROR_INIT;
    OK(ck_poller_new(&t.proc, &p, NULL));
    OK(ck_socket_listen(&t.proc, "127.0.0.1:0", &l, &port, NULL));
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    ck_socket *second;
    assert_int_equal(ck_socket_listen(&t.proc, where, &second, NULL, &err), CK_EXISTS);
    assert_null(second);
    ck_socket_close(l);
    OK(ck_socket_connect(&t.proc, where, &c, NULL));
    OK(ck_poller_set(p, c, false, true, c, NULL));
    await(p, c);
    assert_int_equal(ck_socket_connected(c, &err), CK_NOTFOUND);
    assert_true(err.retriable && err.status == CK_NOTFOUND);
    assert_non_null(strstr(err.msg, where));
    ck_socket_close(c);
    ck_socket_close(NULL);
    ck_poller_free(p);
    ck_poller_free(NULL);
    ck_test_proc_destroy(&t);
}

static void test_bad_addresses(void **state) {
    (void)state;
    static const char *const bad[] = {"",           "host",    "host:",       ":80",   "host:x",
                                      "host:65536", "host:-1", "host:123456", "[]:80", "unix:"};
    ck_test_proc t;
    ck_test_proc_init(&t);
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_socket *s;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_socket_connect(&t.proc, bad[i], &s, &err), CK_INVALID);
        assert_int_equal(ck_socket_listen(&t.proc, bad[i], &s, NULL, &err), CK_INVALID);
        assert_null(s);
    }
    char path[300] = "unix:/";
    memset(path + 6, 'a', 200);
    ck_socket *s;
    assert_int_equal(ck_socket_connect(&t.proc, path, &s, NULL), CK_INVALID);
    assert_int_equal(ck_socket_connect(&t.proc, "no-such-host.invalid:80", &s, NULL), CK_IO);
    ck_test_proc_destroy(&t);
}

static void test_a_stale_path_is_taken_over_and_a_live_one_is_not(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[128];
    snprintf(path, sizeof path, "unix:%s/s", ck_test_dir(&t));
    pid_t child = fork();
    if (child == 0) { /* listens and is gone without closing */
        ck_socket *s;
        _exit(ck_socket_listen(&t.proc, path, &s, NULL, NULL) == CK_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat st;
    assert_int_equal(stat(path + 5, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    ck_socket *a, *b;
    OK(ck_socket_listen(&t.proc, path, &a, NULL, NULL));
    assert_int_equal(ck_socket_listen(&t.proc, path, &b, NULL, NULL), CK_EXISTS);
    ck_socket_close(a);
    ck_test_proc_destroy(&t);
}

static void *wake_it(void *arg) {
    ck_poller_wake(arg);
    return NULL;
}

static void test_wake_ends_a_wait(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_poller *p;
    OK(ck_poller_new(&t.proc, &p, NULL));
    pthread_t thread;
    OK(ck_thread_start(&thread, "wake", wake_it, p, NULL));
    ck_poll_event e;
    size_t count = 1;
    OK(ck_poller_wait(p, &e, 1, -1, &count, NULL));
    assert_int_equal(count, 0);
    pthread_join(thread, NULL);
    ck_poller_wake(p);
    ck_poller_wake(p);
    OK(ck_poller_wait(p, &e, 1, -1, &count, NULL)); /* remembered, and both at once */
    OK(ck_poller_wait(p, &e, 1, 0, &count, NULL));
    assert_int_equal(count, 0);
    ck_poller_free(p);
    ck_test_proc_destroy(&t);
}

static void test_allocation_failures(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    for (uint64_t n = 1;; n++) {
        ck_socket *l = NULL;
        ck_poller *p = NULL;
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_status s = ck_socket_listen(&t.proc, "127.0.0.1:0", &l, NULL, NULL);
        if (s == CK_OK) s = ck_poller_new(&t.proc, &p, NULL);
        ck_socket_close(l);
        ck_poller_free(p);
        if (!ck_tracked_heap_fired(t.heap)) {
            OK(s);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
        assert_int_equal(ck_tracked_heap_live_blocks(t.heap), 0);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_go_both_ways),
        cmocka_unit_test(test_a_full_pipe_is_backpressure_and_a_gone_peer_is_closed),
        cmocka_unit_test(test_refused_connection_is_said),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_a_stale_path_is_taken_over_and_a_live_one_is_not),
        cmocka_unit_test(test_wake_ends_a_wait),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
