/* See loop.h. A turn: wait, hand out events, fire timers, run posts, retire what was closed meanwhile. */
#include <limits.h>
#include <pthread.h>

#include "net/net_int.h"
#include "os/clock.h"
#include "os/thread.h"

enum { EVENTS_A_TURN = 64 };

struct ck_net_loop {
    ck_proc *proc;
    ck_poller *poller;
    pthread_t thread;
    pthread_mutex_t lock; /* guards posts and stopping */
    ck_net_post *post_head, *post_tail;
    bool stopping;
    /* of the thread */
    net_watch watches, retired; /* rings */
    ck_net_timer timers;        /* ring, soonest first */
};

ck_proc *net_loop_proc(ck_net_loop *l) { return l->proc; }
ck_poller *net_loop_poller(ck_net_loop *l) { return l->poller; }
bool ck_net_loop_is_current(const ck_net_loop *l) { return pthread_equal(pthread_self(), l->thread); }

/* ---- what lives on it ---- */

static void insert_before(net_watch *at, net_watch *w) {
    w->next = at, w->prev = at->prev;
    w->prev->next = w, at->prev = w;
}
static void take_out(net_watch *w) { w->next->prev = w->prev, w->prev->next = w->next; }

void net_loop_add(ck_net_loop *l, net_watch *w) { insert_before(&l->watches, w); }
void net_loop_retire(ck_net_loop *l, net_watch *w) {
    take_out(w);
    insert_before(&l->retired, w);
}

static void retire_all(ck_net_loop *l) {
    while (l->retired.next != &l->retired) {
        net_watch *w = l->retired.next;
        take_out(w);
        w->retire(w);
    }
}

/* ---- posts ---- */

void ck_net_loop_post(ck_net_loop *l, ck_net_post *m) {
    m->next = NULL;
    pthread_mutex_lock(&l->lock);
    bool first = !l->post_head;
    if (first)
        l->post_head = m;
    else
        l->post_tail->next = m;
    l->post_tail = m;
    pthread_mutex_unlock(&l->lock);
    if (first) ck_poller_wake(l->poller); /* else a wake is under way */
}

/* Those that were there; what they post in turn comes next turn, so that no poster can keep the loop here. */
static bool run_posts(ck_net_loop *l) {
    pthread_mutex_lock(&l->lock);
    ck_net_post *m = l->post_head;
    l->post_head = l->post_tail = NULL;
    pthread_mutex_unlock(&l->lock);
    bool any = m != NULL;
    while (m) {
        ck_net_post *next = m->next; /* run may free m */
        m->run(m);
        m = next;
    }
    return any;
}

/* ---- timers ---- */

void ck_net_loop_at(ck_net_loop *l, ck_net_timer *t, int64_t due_us) {
    ck_net_loop_cancel(l, t);
    ck_net_timer *at = l->timers.prev;
    while (at != &l->timers && at->due_us > due_us) at = at->prev;
    t->due_us = due_us, t->set = true;
    t->prev = at, t->next = at->next;
    t->next->prev = t, at->next = t;
}

void ck_net_loop_cancel(ck_net_loop *l, ck_net_timer *t) {
    (void)l;
    if (!t->set) return;
    t->next->prev = t->prev, t->prev->next = t->next;
    t->set = false;
}

static int until_next_timer_ms(ck_net_loop *l) {
    if (l->timers.next == &l->timers) return -1;
    int64_t left_us = l->timers.next->due_us - ck_mono_us(l->proc);
    if (left_us <= 0) return 0;
    return left_us / 1000 >= INT_MAX ? INT_MAX : (int)(left_us / 1000) + 1;
}

static void fire_timers(ck_net_loop *l) {
    int64_t now = ck_mono_us(l->proc);
    while (l->timers.next != &l->timers && l->timers.next->due_us <= now) {
        ck_net_timer *t = l->timers.next;
        ck_net_loop_cancel(l, t);
        t->fire(t);
    }
}

/* ---- the thread ---- */

static bool is_stopping(ck_net_loop *l) {
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping;
    pthread_mutex_unlock(&l->lock);
    return stopping;
}

static void wind_up(ck_net_loop *l) {
    for (bool more = true; more;) {
        more = run_posts(l); /* at first, among them connections that were dialled and have not begun */
        while (l->watches.next != &l->watches) {
            net_watch *w = l->watches.next;
            w->stop(w); /* retires it */
            more = true;
        }
    }
    retire_all(l);
}

static void *run_loop(void *arg) {
    ck_net_loop *l = arg;
    while (!is_stopping(l)) {
        ck_poll_event events[EVENTS_A_TURN];
        size_t count;
        ck_status s = ck_poller_wait(l->poller, events, EVENTS_A_TURN, until_next_timer_ms(l), &count, NULL);
        CK_ASSERT(s == CK_OK); /* it fails on a bad descriptor or pointer only */
        for (size_t i = 0; i < count; i++) {
            net_watch *w = events[i].tag;
            w->ready(w, &events[i]);
        }
        fire_timers(l);
        run_posts(l);
        retire_all(l);
    }
    wind_up(l);
    return NULL;
}

ck_status ck_net_loop_new(ck_proc *proc, const char *thread_name, ck_net_loop **out, ck_error *err) {
    *out = NULL;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_net_loop *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->proc = proc;
    l->watches.next = l->watches.prev = &l->watches;
    l->retired.next = l->retired.prev = &l->retired;
    l->timers.next = l->timers.prev = &l->timers;
    pthread_mutex_init(&l->lock, NULL);
    ck_status s = ck_poller_new(proc, &l->poller, err);
    if (s == CK_OK) s = ck_thread_start(&l->thread, thread_name, run_loop, l, err);
    if (s != CK_OK) {
        ck_poller_free(l->poller);
        pthread_mutex_destroy(&l->lock);
        ck_free(mem, l, sizeof *l);
        return s;
    }
    *out = l;
    return CK_OK;
}

void ck_net_loop_free(ck_net_loop *l) {
    if (!l) return;
    CK_ASSERT(!ck_net_loop_is_current(l));
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    ck_poller_wake(l->poller);
    pthread_join(l->thread, NULL);
    ck_poller_free(l->poller);
    pthread_mutex_destroy(&l->lock);
    ck_free(ck_proc_mem(l->proc, CK_MEM_PLAN), l, sizeof *l);
}
