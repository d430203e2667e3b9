#include "net/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "os/thread.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct counter {
    ck_net_loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n;
    bool wrong_thread;
} counter;

static void init_counter(counter *c, ck_net_loop *l) {
    *c = (counter){.loop = l};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
}
static unsigned count_one(counter *c) {
    pthread_mutex_lock(&c->lock);
    unsigned was = c->n++;
    c->wrong_thread = c->wrong_thread || !ck_net_loop_is_current(c->loop);
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return was;
}
static void wait_for(counter *c, unsigned n) {
    pthread_mutex_lock(&c->lock);
    while (c->n < n) pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

typedef struct numbered_post {
    ck_net_post post;
    counter *c;
    unsigned number;
    unsigned *last; /* of the same thread */
    bool in_order;
} numbered_post;

static void run_numbered(ck_net_post *m) {
    numbered_post *p = (numbered_post *)m;
    p->in_order = *p->last == p->number;
    *p->last = p->number + 1;
    count_one(p->c);
}

enum { POSTS = 2000 };
typedef struct poster {
    counter *c;
    numbered_post posts[POSTS];
    unsigned last;
} poster;

static void *post_many(void *arg) {
    poster *p = arg;
    for (unsigned i = 0; i < POSTS; i++) {
        p->posts[i] = (numbered_post){{run_numbered, NULL}, p->c, i, &p->last, false};
        ck_net_loop_post(p->c->loop, &p->posts[i].post);
    }
    return NULL;
}

static void test_posts_of_many_threads_run_in_order(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_net_loop *l;
    OK(ck_net_loop_new(&t.proc, "net", &l, NULL));
    assert_false(ck_net_loop_is_current(l));
    counter c;
    init_counter(&c, l);
    poster *posters = calloc(3, sizeof *posters);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        posters[i].c = &c;
        OK(ck_thread_start(&threads[i], "post", post_many, &posters[i], NULL));
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    ck_net_loop_free(l); /* runs what was posted */
    assert_int_equal(c.n, 3 * POSTS);
    assert_false(c.wrong_thread);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < POSTS; k++) assert_true(posters[i].posts[k].in_order);
    free(posters);
    ck_net_loop_free(NULL);
    ck_test_proc_destroy(&t);
}

typedef struct timers {
    ck_net_post post;
    counter c;
    ck_net_timer t[4];
    char order[8];
} timers;
static void fired(timers *x, char which) {
    size_t n = strlen(x->order);
    x->order[n] = which;
    count_one(&x->c);
}
static void fire_a(ck_net_timer *t) { fired((timers *)((char *)t - offsetof(timers, t[0])), 'a'); }
static void fire_b(ck_net_timer *t) {
    timers *x = (timers *)((char *)t - offsetof(timers, t[1]));
    ck_net_loop_cancel(x->c.loop, &x->t[2]); /* due, and taken back by another */
    fired(x, 'b');
}
static void fire_never(ck_net_timer *t) { fired((timers *)((char *)t - offsetof(timers, t[2])), 'x'); }
static void set_timers(ck_net_post *m) {
    timers *x = (timers *)m;
    int64_t now = ck_clock_system()->mono_us(ck_clock_system());
    x->t[0].fire = fire_a, x->t[1].fire = fire_b, x->t[2].fire = fire_never, x->t[3].fire = fire_never;
    ck_net_loop_cancel(x->c.loop, &x->t[0]); /* not set is fine */
    ck_net_loop_at(x->c.loop, &x->t[0], now + 20000);
    ck_net_loop_at(x->c.loop, &x->t[2], now + 10001);
    ck_net_loop_at(x->c.loop, &x->t[1], now + 60000000);
    ck_net_loop_at(x->c.loop, &x->t[1], now + 10000);    /* moved */
    ck_net_loop_at(x->c.loop, &x->t[3], now + 60000000); /* dropped with the loop */
}

static void test_timers_fire_in_their_order(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_net_loop *l;
    OK(ck_net_loop_new(&t.proc, "net", &l, NULL));
    timers x = {.post = {.run = set_timers}};
    init_counter(&x.c, l);
    int64_t begin = ck_mono_us(&t.proc);
    ck_net_loop_post(l, &x.post);
    wait_for(&x.c, 2);
    assert_true(ck_mono_us(&t.proc) - begin >= 20000);
    ck_net_loop_free(l);
    assert_string_equal(x.order, "ba");
    assert_false(x.c.wrong_thread);
    ck_test_proc_destroy(&t);
}

static void test_allocation_failures(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_net_loop *l;
        ck_status s = ck_net_loop_new(&t.proc, "net", &l, NULL);
        ck_net_loop_free(l);
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
        cmocka_unit_test(test_posts_of_many_threads_run_in_order),
        cmocka_unit_test(test_timers_fire_in_their_order),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
