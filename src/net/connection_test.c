#include "net/connection.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/socket.h"
#include "os/test_proc.h"
#include "os/thread.h"

#define OK(call) assert_int_equal((call), CK_OK)

/* One end of a connection: what its callbacks saw, and what on_frame should answer. */
typedef struct end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ck_connection *c; /* a reference, from on_open */
    unsigned opened, frames, rooms, closed;
    size_t bytes;
    uint32_t checksum; /* of kinds and first bytes, in order */
    ck_status why;
    char why_text[256];
    ck_status answer; /* of on_frame */
    bool echo, trusts;
    ck_mem mem;
} end;

static void init_end(end *e, ck_mem mem) {
    *e = (end){.mem = mem};
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
}
static void destroy_end(end *e) {
    ck_connection_unref(&e->c);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
}
static void wait_at_least(end *e, const unsigned *counter, unsigned n) {
    pthread_mutex_lock(&e->lock);
    while (*counter < n) pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void on_open(void *arg, ck_connection *c) {
    end *e = arg;
    pthread_mutex_lock(&e->lock);
    e->opened++;
    if (!e->c) e->c = ck_connection_ref(c);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}
static ck_status on_frame(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    end *e = arg;
    pthread_mutex_lock(&e->lock);
    e->frames++;
    e->bytes += (*f)->n;
    e->checksum = e->checksum * 31 + (*f)->kind + ((*f)->n ? (*f)->p[0] : 0);
    ck_status answer = e->answer;
    if (e->trusts) ck_connection_trust(c);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (e->echo) {
        ck_status s = ck_connection_send(c, f);
        if (s != CK_OK && s != CK_FULL) return s;
    }
    ck_frame_free(f);
    return answer == CK_DATA ? ck_fail(err, CK_DATA, "I do not like it") : answer;
}
static void on_room(void *arg, ck_connection *c) {
    (void)c;
    end *e = arg;
    pthread_mutex_lock(&e->lock);
    e->rooms++;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}
static void on_close(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    (void)c;
    end *e = arg;
    pthread_mutex_lock(&e->lock);
    e->closed++;
    e->why = why;
    if (err) snprintf(e->why_text, sizeof e->why_text, "%.250s", err->msg);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}
static const ck_connection_handler handler = {on_open, on_frame, on_room, on_close};

static ck_connection_config config_of(end *e, size_t queue_bytes) {
    return (ck_connection_config){
        .handler = &handler,
        .arg = e,
        .mem = e->mem,
        .frame_bytes_max = CK_FRAME_BYTES_MAX,
        .queue_bytes_max = queue_bytes,
    };
}

/* Two loops, a listener on one, a dialled connection on the other. */
typedef struct net {
    ck_test_proc t;
    ck_net_loop *near, *far;
    ck_listener *listener;
    end client, server;
    unsigned accepted;
    bool turn_away;
    size_t queue_bytes, greeting_bytes_max;
    int64_t greeting_timeout_us;
    char address[64];
} net;

static bool on_accept(void *arg, ck_connection_config *cfg) {
    net *n = arg;
    n->accepted++;
    *cfg = config_of(&n->server, n->queue_bytes);
    cfg->greeting_bytes_max = n->greeting_bytes_max, cfg->greeting_timeout_us = n->greeting_timeout_us;
    return !n->turn_away;
}

static void init_net(net *n, unsigned connections_max) {
    memset(n, 0, sizeof *n);
    ck_test_proc_init(&n->t);
    n->queue_bytes = 1 << 20;
    ck_mem mem = ck_proc_mem(&n->t.proc, CK_MEM_QUEUE);
    init_end(&n->client, mem), init_end(&n->server, mem);
    OK(ck_net_loop_new(&n->t.proc, "near", &n->near, NULL));
    OK(ck_net_loop_new(&n->t.proc, "far", &n->far, NULL));
    uint16_t port;
    OK(ck_listener_open(n->far, "127.0.0.1:0", connections_max, on_accept, n, &n->listener, &port, NULL));
    snprintf(n->address, sizeof n->address, "127.0.0.1:%u", port);
}
static void dial(net *n) {
    ck_connection_config cfg = config_of(&n->client, n->queue_bytes);
    OK(ck_connection_dial(n->near, n->address, &cfg, &n->client.c, NULL));
}
static void destroy_net(net *n) {
    ck_net_loop_free(n->near);
    ck_net_loop_free(n->far);
    destroy_end(&n->client), destroy_end(&n->server);
    ck_test_proc_destroy(&n->t);
}

static ck_status send_bytes(end *e, uint8_t kind, size_t n) {
    ck_frame *f = ck_frame_new(e->mem, kind, n);
    assert_non_null(f);
    memset(f->p, kind, n);
    ck_status s = ck_connection_send(e->c, &f);
    assert_null(f);
    return s;
}

static void test_frames_go_there_and_back(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    n.server.echo = true;
    dial(&n);
    static const size_t sizes[] = {0, 1, 100, 70000, 3000000, 5, 0};
    size_t total = 0;
    for (unsigned i = 0; i < CK_ARRAY_COUNT(sizes); i++) { /* before it is connected: they wait */
        ck_status s = send_bytes(&n.client, (uint8_t)i, sizes[i]);
        assert_true(s == CK_OK || s == CK_FULL);
        total += sizes[i];
    }
    wait_at_least(&n.client, &n.client.frames, CK_ARRAY_COUNT(sizes));
    assert_int_equal(n.server.bytes, total);
    assert_int_equal(n.client.bytes, total);
    assert_true(n.client.checksum == n.server.checksum);
    assert_int_equal(n.client.opened, 1);
    assert_string_equal(ck_connection_peer(n.client.c), n.address);
    assert_memory_equal(ck_connection_peer(n.server.c), "127.0.0.1:", 10);
    ck_connection_close(n.client.c, false);
    wait_at_least(&n.client, &n.client.closed, 1);
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.client.why, CK_OK);
    assert_int_equal(n.server.why, CK_CLOSED);
    assert_int_equal(send_bytes(&n.client, 1, 10), CK_CLOSED);
    ck_connection_close(n.client.c, true);
    ck_connection_resume(n.client.c);
    destroy_net(&n);
    assert_int_equal(n.client.closed, 1);
}

static void test_flush_before_close(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    dial(&n);
    for (int i = 0; i < 200; i++) {
        ck_status s = send_bytes(&n.client, 1, 50000);
        assert_true(s == CK_OK || s == CK_FULL);
    }
    ck_connection_close(n.client.c, true);
    assert_int_equal(send_bytes(&n.client, 1, 1), CK_CLOSED);
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.frames, 200);
    assert_int_equal(n.server.why, CK_CLOSED);
    destroy_net(&n);
}

static void test_backpressure_of_a_reader_that_stops(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    n.server.answer = CK_FULL; /* one frame, then a resume for the next */
    dial(&n);
    ck_status s = CK_OK;
    unsigned sent = 0;
    while (s == CK_OK) s = send_bytes(&n.client, 1, 100000), sent++;
    assert_int_equal(s, CK_FULL);
    assert_true(sent * 100005u > n.queue_bytes);
    wait_at_least(&n.server, &n.server.frames, 1);
    /* The far side reads nothing more; the system's buffers fill and the queue cannot drain. */
    while ((s = send_bytes(&n.client, 1, 100000)) == CK_FULL && sent < 300) sent++;
    sent++;
    pthread_mutex_lock(&n.server.lock);
    assert_int_equal(n.server.frames, 1);
    pthread_mutex_unlock(&n.server.lock);
    for (unsigned i = 1; i < sent; i++) {
        ck_connection_resume(n.server.c);
        wait_at_least(&n.server, &n.server.frames, i + 1);
    }
    wait_at_least(&n.client, &n.client.rooms, 1);
    assert_int_equal(n.server.frames, sent);
    destroy_net(&n);
}

static void test_what_on_frame_refuses_closes(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    n.server.answer = CK_DATA;
    dial(&n);
    OK(send_bytes(&n.client, 1, 10));
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_DATA);
    assert_string_equal(n.server.why_text, "I do not like it");
    wait_at_least(&n.client, &n.client.closed, 1);
    assert_int_equal(n.client.why, CK_CLOSED);
    destroy_net(&n);
}

static void test_too_long_to_send(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    ck_connection_config cfg = config_of(&n.client, 100);
    cfg.frame_bytes_max = 1000;
    OK(ck_connection_dial(n.near, n.address, &cfg, &n.client.c, NULL));
    assert_int_equal(send_bytes(&n.client, 1, 1000), CK_INVALID);
    assert_int_equal(send_bytes(&n.client, 1, 999), CK_FULL); /* taken: just at the ceiling, over the queue's bound */
    wait_at_least(&n.server, &n.server.frames, 1);
    assert_int_equal(n.server.bytes, 999);
    destroy_net(&n);
}

/* A peer that is not one of ours: raw bytes through a plain socket. */
static void write_raw(net *n, const void *p, size_t bytes, ck_socket **keep) {
    ck_socket *s;
    ck_poller *poller;
    ck_poll_event e;
    size_t count, sent;
    OK(ck_socket_connect(&n->t.proc, n->address, &s, NULL));
    OK(ck_poller_new(&n->t.proc, &poller, NULL));
    OK(ck_poller_set(poller, s, false, true, s, NULL));
    OK(ck_poller_wait(poller, &e, 1, -1, &count, NULL));
    OK(ck_socket_connected(s, NULL));
    OK(ck_socket_write(s, p, bytes, &sent, NULL));
    assert_int_equal(sent, bytes);
    ck_poller_remove(poller, s);
    ck_poller_free(poller);
    if (keep)
        *keep = s;
    else
        ck_socket_close(s);
}

static void test_peers_that_do_not_speak_it(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        ck_status why;
        const char *text;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, CK_FULL, "1195725856"},
        {"\0\0\0\0\1", 5, CK_CORRUPT, "length 0"},
        {"\0\0\1\0\1abc", 8, CK_CLOSED, "in the middle of a frame"},
        {"\0\0", 2, CK_CLOSED, "in the middle of a frame"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        net n;
        init_net(&n, 10);
        write_raw(&n, cases[i].bytes, cases[i].n, NULL);
        wait_at_least(&n.server, &n.server.closed, 1);
        assert_int_equal(n.server.why, cases[i].why);
        assert_non_null(strstr(n.server.why_text, cases[i].text));
        destroy_net(&n);
    }
}

/* ---- strangers ---- */

static void await_greetings(net *n, size_t bytes_max, int64_t timeout_us) {
    n->greeting_bytes_max = bytes_max, n->greeting_timeout_us = timeout_us;
}

static void test_a_stranger_may_say_little(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    await_greetings(&n, 100, 0);
    dial(&n);
    OK(send_bytes(&n.client, 1, 99)); /* the ceiling */
    wait_at_least(&n.server, &n.server.frames, 1);
    OK(send_bytes(&n.client, 1, 100));
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_FULL);
    assert_non_null(strstr(n.server.why_text, "100 are allowed"));
    destroy_net(&n);
}

static void test_who_is_trusted_may_say_more(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    await_greetings(&n, 100, 1000000);
    n.server.trusts = true;
    dial(&n);
    OK(send_bytes(&n.client, 1, 50));
    OK(send_bytes(&n.client, 1, 200000)); /* perhaps in the same read */
    wait_at_least(&n.server, &n.server.frames, 2);
    assert_int_equal(n.server.closed, 0);
    destroy_net(&n);
}

static void test_a_stranger_has_so_long(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    await_greetings(&n, 100, 20000);
    dial(&n);
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_REFUSED);
    assert_non_null(strstr(n.server.why_text, "has not said who it is within 20 ms"));
    destroy_net(&n);
}

/* Full of strangers: each new one takes the place of the one that came first. */
static void test_strangers_keep_nobody_out(void **state) {
    (void)state;
    net n;
    init_net(&n, 2);
    await_greetings(&n, 100, 0);
    ck_socket *first, *second;
    write_raw(&n, "", 0, &first);
    write_raw(&n, "", 0, &second);
    n.server.trusts = true;
    dial(&n);
    OK(send_bytes(&n.client, 1, 50));
    wait_at_least(&n.server, &n.server.frames, 1);
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_REFUSED);
    assert_non_null(strstr(n.server.why_text, "others wait"));
    ck_socket_close(first);
    ck_socket_close(second);
    wait_at_least(&n.server, &n.server.closed, 2);
    OK(send_bytes(&n.client, 1, 5000));
    wait_at_least(&n.server, &n.server.frames, 2);
    destroy_net(&n);
}

static void test_no_memory_for_a_frame_closes(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    ck_budget small;
    ck_budget_init(&small, n.t.proc.heap, 100000);
    n.server.mem = (ck_mem){&small, CK_MEM_QUEUE};
    dial(&n);
    send_bytes(&n.client, 1, 200000);
    wait_at_least(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_NOMEM);
    assert_int_equal(ck_budget_total(&small), 0);
    destroy_net(&n);
}

static void test_dial_that_nobody_answers(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    ck_listener_close(n.listener);
    dial(&n);
    ck_status s = send_bytes(&n.client, 1, 10);
    assert_true(s == CK_OK || s == CK_CLOSED); /* it may know already */
    wait_at_least(&n.client, &n.client.closed, 1);
    assert_int_equal(n.client.why, CK_NOTFOUND);
    assert_non_null(strstr(n.client.why_text, n.address));
    assert_int_equal(n.client.opened, 0);
    ck_connection *c;
    ck_error err = CK_ERROR_INIT;
    ck_connection_config cfg = config_of(&n.client, 100);
    assert_int_equal(ck_connection_dial(n.near, "nonsense", &cfg, &c, &err), CK_INVALID);
    assert_null(c);
    destroy_net(&n);
}

/* A listener whose queue is full answers nobody: connecting takes until the timeout. */
static void test_connect_timeout(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    ck_connection_config cfg = config_of(&n.client, 100);
    cfg.connect_timeout_us = 30000;
    /* 192.0.2.0/24 is for documentation: no host is there. Where the machine has no route at all, it fails at once. */
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_connection_dial(n.near, "192.0.2.1:9", &cfg, &n.client.c, &err);
    if (s == CK_OK) {
        wait_at_least(&n.client, &n.client.closed, 1);
        s = n.client.why;
    }
    assert_true(s == CK_IO || s == CK_NOTFOUND); /* the latter where something answers for every host */
    destroy_net(&n);
}

static void test_the_loops_end_closes_everything(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    dial(&n);
    wait_at_least(&n.server, &n.server.opened, 1);
    ck_net_loop_free(n.far);
    n.far = NULL;
    assert_int_equal(n.server.closed, 1);
    assert_int_equal(n.server.why, CK_CANCELLED);
    wait_at_least(&n.client, &n.client.closed, 1);
    assert_int_equal(n.client.why, CK_CLOSED);
    ck_connection_unref(&n.client.c);
    dial(&n); /* and the loop ends before it has begun, or just after */
    ck_net_loop_free(n.near);
    n.near = NULL;
    assert_int_equal(n.client.closed, 2);
    destroy_net(&n);
}

static void test_connections_over_the_ceiling_are_turned_away(void **state) {
    (void)state;
    net n;
    init_net(&n, 1);
    dial(&n);
    wait_at_least(&n.server, &n.server.opened, 1);
    end second;
    init_end(&second, n.client.mem);
    ck_connection_config cfg = config_of(&second, 100);
    OK(ck_connection_dial(n.near, n.address, &cfg, &second.c, NULL));
    wait_at_least(&second, &second.closed, 1);
    assert_int_equal(n.server.opened, 1);
    ck_connection_unref(&second.c);
    ck_connection_close(n.client.c, false);
    wait_at_least(&n.server, &n.server.closed, 1);
    n.server.opened = 0;
    while (n.server.opened == 0) { /* the place is free once the far side has seen the end */
        OK(ck_connection_dial(n.near, n.address, &cfg, &second.c, NULL));
        pthread_mutex_lock(&n.server.lock);
        while (n.server.opened == 0 && second.closed < 2) {
            pthread_mutex_unlock(&n.server.lock);
            wait_at_least(&second, &second.opened, 1);
            pthread_mutex_lock(&n.server.lock);
        }
        pthread_mutex_unlock(&n.server.lock);
        ck_connection_close(second.c, false);
        ck_connection_unref(&second.c);
    }
    ck_listener_close(n.listener);
    ck_listener_close(NULL);
    ck_net_loop_free(n.near);
    n.near = NULL;
    destroy_end(&second);
    destroy_net(&n);
}

static void test_turned_away_by_its_owner(void **state) {
    (void)state;
    net n;
    init_net(&n, 4);
    n.turn_away = true;
    dial(&n);
    wait_at_least(&n.client, &n.client.closed, 1);
    assert_int_equal(n.server.opened, 0);
    destroy_net(&n);
}

typedef struct sender {
    end *e;
    unsigned count;
    ck_status worst;
} sender;
static void *send_many(void *arg) {
    sender *s = arg;
    for (unsigned i = 0; i < s->count; i++) {
        ck_status status = send_bytes(s->e, 7, i % 3000);
        if (status != CK_OK && status != CK_FULL) s->worst = status;
    }
    return NULL;
}

static void test_many_senders_at_once(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    n.server.echo = true;
    dial(&n);
    sender senders[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        senders[i] = (sender){&n.client, 1500, CK_OK};
        OK(ck_thread_start(&threads[i], "send", send_many, &senders[i], NULL));
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) OK(senders[i].worst);
    wait_at_least(&n.client, &n.client.frames, 4500);
    assert_int_equal(n.client.bytes, n.server.bytes);
    destroy_net(&n);
}

static void test_allocation_failures(void **state) {
    (void)state;
    net n;
    init_net(&n, 10);
    ck_socket *deaf; /* takes connections and never looks at them: nobody else allocates meanwhile */
    uint16_t port;
    OK(ck_socket_listen(&n.t.proc, "127.0.0.1:0", &deaf, &port, NULL));
    snprintf(n.address, sizeof n.address, "127.0.0.1:%u", port);
    for (uint64_t nth = 1;; nth++) {
        ck_tracked_heap_fail_nth(n.t.heap, nth);
        ck_connection *c;
        ck_connection_config cfg = config_of(&n.client, 100);
        ck_status s = ck_connection_dial(n.near, n.address, &cfg, &c, NULL);
        if (s == CK_OK) {
            ck_tracked_heap_fail_nth(n.t.heap, 0);
            ck_connection_close(c, false);
            ck_connection_unref(&c);
            assert_int_equal(nth, 3); /* the socket, the connection */
            break;
        }
        assert_int_equal(s, CK_NOMEM);
    }
    ck_socket_close(deaf);
    destroy_net(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_go_there_and_back),
        cmocka_unit_test(test_flush_before_close),
        cmocka_unit_test(test_backpressure_of_a_reader_that_stops),
        cmocka_unit_test(test_what_on_frame_refuses_closes),
        cmocka_unit_test(test_too_long_to_send),
        cmocka_unit_test(test_peers_that_do_not_speak_it),
        cmocka_unit_test(test_a_stranger_may_say_little),
        cmocka_unit_test(test_who_is_trusted_may_say_more),
        cmocka_unit_test(test_a_stranger_has_so_long),
        cmocka_unit_test(test_strangers_keep_nobody_out),
        cmocka_unit_test(test_no_memory_for_a_frame_closes),
        cmocka_unit_test(test_dial_that_nobody_answers),
        cmocka_unit_test(test_connect_timeout),
        cmocka_unit_test(test_the_loops_end_closes_everything),
        cmocka_unit_test(test_connections_over_the_ceiling_are_turned_away),
        cmocka_unit_test(test_turned_away_by_its_owner),
        cmocka_unit_test(test_many_senders_at_once),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
