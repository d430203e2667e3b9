/* Two processes of a job in one: their links over a socket, without edges, ended in every order. */
#include "runtime/link.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "runtime/scheduler.h"
#include "runtime/wire.h"

#define SECRET "of this attempt"

typedef struct side {
    ck_task boss; /* waits until it is told to end */
    ck_links *links;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int retired, failed, heard; /* guarded */
    bool boss_retired;
    _Atomic bool boss_ends;
} side;

typedef struct fixture {
    ck_test_proc t;
    ck_scheduler *scheduler;
    char addresses[2][100];
    const char *address_list[2];
    ck_socket *listening; /* process 0's */
    side sides[2];
} fixture;

static void count(side *s, int *what) {
    pthread_mutex_lock(&s->lock);
    ++*what;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
static void wait_for(side *s, const int *what, int n) {
    pthread_mutex_lock(&s->lock);
    while (*what < n) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static ck_step boss_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    (void)q, (void)until_us;
    return atomic_load(&((side *)t)->boss_ends) ? CK_STEP_DONE : CK_STEP_NEED_INPUT;
}
static void boss_retired(ck_task *t) {
    side *s = (side *)t;
    pthread_mutex_lock(&s->lock);
    s->boss_retired = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_failed(void *arg, uint32_t peer, const ck_error *err) {
    (void)peer;
    assert_non_null(strstr(err->msg, "the link to process"));
    count(arg, &((side *)arg)->failed);
}
static void on_retired(void *arg) { count(arg, &((side *)arg)->retired); }
static ck_status on_heard(void *arg, uint32_t peer, ck_frame *f, ck_error *err) {
    (void)peer, (void)err;
    ck_frame_free(&f);
    count(arg, &((side *)arg)->heard);
    return CK_OK;
}

static void make_side(fixture *f, uint32_t process) {
    side *s = &f->sides[process];
    *s = (side){.boss = {.step = boss_step, .retired = boss_retired}};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    assert_int_equal(ck_task_add(&s->boss, f->scheduler), CK_OK);
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN);
    ck_links_config cfg = {.proc = &f->t.proc,
                           .scheduler = f->scheduler,
                           .mem = mem,
                           .queue_mem = mem,
                           .process = process,
                           .process_count = 2,
                           .addresses = f->address_list,
                           .listening = process == 0 ? &f->listening : NULL,
                           .secret = SECRET,
                           .bytes_max = 1 << 20,
                           .events_max = 16,
                           .floating_credits = 4,
                           .arg = s,
                           .failed = on_failed,
                           .retired = on_retired,
                           .heard = on_heard,
                           .boss = &s->boss};
    assert_int_equal(ck_links_new(&cfg, &s->links, NULL), CK_OK);
}

static void *go_up(void *links) {
    assert_int_equal(ck_links_up(links, 10000000, NULL), CK_OK);
    return NULL;
}

static int setup_apart(void **state) {
    static fixture f;
    uint16_t port;
    ck_test_proc_init(&f.t);
    assert_int_equal(ck_scheduler_pool(&f.t.proc, 2, &f.scheduler, NULL), CK_OK);
    assert_int_equal(ck_socket_listen(&f.t.proc, "127.0.0.1:0", &f.listening, &port, NULL), CK_OK);
    snprintf(f.addresses[0], sizeof f.addresses[0], "127.0.0.1:%u", port);
    for (uint32_t p = 0; p < 2; p++) {
        f.address_list[p] = f.addresses[p];
        make_side(&f, p);
    }
    *state = &f;
    return 0;
}

static void bring_up(fixture *f) {
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, go_up, f->sides[1].links), 0);
    go_up(f->sides[0].links);
    pthread_join(other, NULL);
    for (uint32_t p = 0; p < 2; p++) ck_links_start(f->sides[p].links);
}

static int setup(void **state) {
    (void)setup_apart(state);
    bring_up(*state);
    return 0;
}

static void end_side(side *s) {
    wait_for(s, &s->retired, 2);
    ck_links_free(s->links);
    atomic_store(&s->boss_ends, true);
    ck_task_notify(&s->boss);
    pthread_mutex_lock(&s->lock);
    while (!s->boss_retired) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_scheduler_free(f->scheduler);
    for (uint32_t p = 0; p < 2; p++) {
        pthread_mutex_destroy(&f->sides[p].lock);
        pthread_cond_destroy(&f->sides[p].changed);
    }
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* As a process that is killed: the connection closes, no word is said. */
static void die(side *s) { ck_links_close(s->links); }

static void both_say_bye(void **state) {
    fixture *f = *state;
    for (uint32_t p = 0; p < 2; p++) ck_links_end(f->sides[p].links, true);
    for (uint32_t p = 0; p < 2; p++) {
        end_side(&f->sides[p]);
        assert_int_equal(f->sides[p].heard, 1);
        assert_int_equal(f->sides[p].failed, 0);
    }
}

static void a_peer_that_dies_first_is_a_failure(void **state) {
    fixture *f = *state;
    die(&f->sides[1]);
    wait_for(&f->sides[0], &f->sides[0].failed, 1);
    for (uint32_t p = 0; p < 2; p++) ck_links_end(f->sides[p].links, false);
    for (uint32_t p = 0; p < 2; p++) end_side(&f->sides[p]);
    assert_int_equal(f->sides[0].heard, 0);
}

/* The job had finished, our BYE is out, theirs never comes. */
static void a_peer_that_dies_before_its_bye_is_not_waited_for(void **state) {
    fixture *f = *state;
    ck_links_end(f->sides[0].links, true);
    wait_for(&f->sides[1], &f->sides[1].heard, 1);
    die(&f->sides[1]);
    end_side(&f->sides[0]);
    assert_int_equal(f->sides[0].failed, 0);
    ck_links_end(f->sides[1].links, false);
    end_side(&f->sides[1]);
}

/* The loss was seen first, and the job finishes all the same. */
static void a_loss_before_the_finish_does_not_hold_it(void **state) {
    fixture *f = *state;
    die(&f->sides[1]);
    wait_for(&f->sides[0], &f->sides[0].failed, 1);
    ck_links_end(f->sides[0].links, true);
    end_side(&f->sides[0]);
    ck_links_end(f->sides[1].links, false);
    end_side(&f->sides[1]);
}

/* ---- strangers ---- */

static ck_socket *connect_raw(fixture *f, ck_poller *poller, const void *p, size_t n) {
    ck_socket *s;
    ck_poll_event e;
    size_t count, sent;
    assert_int_equal(ck_socket_connect(&f->t.proc, f->addresses[0], &s, NULL), CK_OK);
    assert_int_equal(ck_poller_set(poller, s, false, true, s, NULL), CK_OK);
    do assert_int_equal(ck_poller_wait(poller, &e, 1, -1, &count, NULL), CK_OK);
    while (count == 0);
    assert_int_equal(ck_socket_connected(s, NULL), CK_OK);
    if (n) assert_int_equal(ck_socket_write(s, p, n, &sent, NULL), CK_OK);
    if (n) assert_int_equal(sent, n);
    ck_poller_remove(poller, s);
    return s;
}

static void is_closed_without_a_word(ck_poller *poller, ck_socket *s) {
    ck_poll_event e;
    size_t count, got;
    char byte;
    assert_int_equal(ck_poller_set(poller, s, true, false, s, NULL), CK_OK);
    do assert_int_equal(ck_poller_wait(poller, &e, 1, -1, &count, NULL), CK_OK);
    while (count == 0);
    assert_int_equal(ck_socket_read(s, &byte, 1, &got, NULL), CK_CLOSED);
    ck_poller_remove(poller, s);
}

/* A HELLO of process 1, as bytes. */
static size_t hello_bytes(fixture *f, const char *secret, uint8_t out[300]) {
    const ck_wire_hello h = {.version = CK_WIRE_VERSION, .process = 1, .secret = ck_view_of(secret)};
    ck_frame *frame = ck_wire_hello_frame(ck_proc_mem(&f->t.proc, CK_MEM_PLAN), &h);
    size_t n = CK_FRAME_HEADER_BYTES + frame->n;
    assert_true(n <= 300);
    ck_frame_header(out, frame->kind, frame->n);
    memcpy(out + CK_FRAME_HEADER_BYTES, frame->p, frame->n);
    ck_frame_free(&frame);
    return n;
}

/* Those who hold their connections, who say nonsense, who announce much, and a process of an attempt before: all of
 * them are there before the peer is. */
static void strangers_cost_only_their_own_connection(void **state) {
    enum { SILENT = 100 };
    fixture *f = *state;
    ck_poller *poller;
    ck_socket *silent[SILENT], *rude[4];
    uint8_t older[300];
    size_t older_n = hello_bytes(f, "of another attempt", older);
    static const uint8_t announces[] = {3, 0xff, 0xff, 0xff, CK_WIRE_HELLO};
    assert_int_equal(ck_poller_new(&f->t.proc, &poller, NULL), CK_OK);
    for (int i = 0; i < SILENT; i++) silent[i] = connect_raw(f, poller, NULL, 0);
    rude[0] = connect_raw(f, poller, "GET / HTTP/1.1\r\n\r\n", 18);
    rude[1] = connect_raw(f, poller, announces, sizeof announces);
    rude[2] = connect_raw(f, poller, older, older_n);
    rude[3] = connect_raw(f, poller, "\0\0\0\x08\x01short", 10);
    bring_up(f);
    for (int i = 0; i < 3; i++) is_closed_without_a_word(poller, rude[i]); /* the last one has its time */
    is_closed_without_a_word(poller, silent[0]); /* the first of too many */
    for (int i = 0; i < SILENT; i++) ck_socket_close(silent[i]);
    for (int i = 0; i < 4; i++) ck_socket_close(rude[i]);
    ck_poller_free(poller);
    both_say_bye(state);
}

static void nobody_listens_once_all_are_there(void **state) {
    fixture *f = *state;
    ck_socket *s;
    assert_null(f->listening);
    assert_int_equal(ck_socket_connect(&f->t.proc, f->addresses[0], &s, NULL), CK_OK);
    ck_poller *poller;
    ck_poll_event e;
    size_t count;
    assert_int_equal(ck_poller_new(&f->t.proc, &poller, NULL), CK_OK);
    assert_int_equal(ck_poller_set(poller, s, false, true, s, NULL), CK_OK);
    do assert_int_equal(ck_poller_wait(poller, &e, 1, -1, &count, NULL), CK_OK);
    while (count == 0);
    assert_int_equal(ck_socket_connected(s, NULL), CK_NOTFOUND);
    ck_socket_close(s);
    ck_poller_free(poller);
    both_say_bye(state);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(both_say_bye),
        T(a_peer_that_dies_first_is_a_failure),
        T(a_peer_that_dies_before_its_bye_is_not_waited_for),
        T(a_loss_before_the_finish_does_not_hold_it),
        T(nobody_listens_once_all_are_there),
        cmocka_unit_test_setup_teardown(strangers_cost_only_their_own_connection, setup_apart, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
