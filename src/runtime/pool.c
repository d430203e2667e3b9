/* The pool: as many threads as asked for over one FIFO run queue and one timer heap, under one lock that is held for a
 * few pointer moves per step (a step handles about a batch). At most one idle thread, the timekeeper, waits with a
 * deadline; the others wait for work. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "os/clock.h"
#include "os/thread.h"
#include "runtime/scheduler_int.h"

typedef struct pool {
    ck_scheduler base;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t work;  /* threads without a deadline wait here */
    pthread_cond_t tick;  /* the timekeeper waits here */
    ck_run_queue queue;
    ck_timers timers;
    uint32_t tasks;
    unsigned idle; /* waiting on `work` */
    bool timekeeper;
    bool stopping;
    unsigned thread_count;
    pthread_t threads[];
} pool;

static void wake_one(pool *p) {
    if (p->idle)
        pthread_cond_signal(&p->work);
    else if (p->timekeeper)
        pthread_cond_signal(&p->tick);
}

static void enqueue_locked(pool *p, ck_task *t) {
    ck_run_queue_push(&p->queue, t);
    wake_one(p);
}

static void pool_enqueue(ck_scheduler *s, ck_task *t) {
    pool *p = (pool *)s;
    pthread_mutex_lock(&p->lock);
    enqueue_locked(p, t);
    pthread_mutex_unlock(&p->lock);
}

static ck_status pool_add(ck_scheduler *s) {
    pool *p = (pool *)s;
    pthread_mutex_lock(&p->lock);
    ck_status st = ck_timers_reserve(&p->timers, p->tasks + 1);
    if (st == CK_OK) p->tasks++;
    pthread_mutex_unlock(&p->lock);
    return st;
}

static void pool_remove(ck_scheduler *s) {
    pool *p = (pool *)s;
    pthread_mutex_lock(&p->lock);
    p->tasks--;
    pthread_mutex_unlock(&p->lock);
}

static void fire_timers(pool *p) {
    if (!p->timers.count) return;
    int64_t now_us = ck_mono_us(p->base.proc);
    for (ck_task *t; (t = ck_timers_due(&p->timers, now_us));)
        if (ck_task_timer_fired(t)) enqueue_locked(p, t);
}

static void wait_until(pool *p, int64_t deadline_us) {
    int64_t left_us = deadline_us - ck_mono_us(p->base.proc);
    if (left_us <= 0) return;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* the clock of the condition variable; the proc's may have another zero */
    ts.tv_sec += (time_t)(left_us / 1000000);
    ts.tv_nsec += (long)(left_us % 1000000) * 1000;
    if (ts.tv_nsec >= 1000000000) ts.tv_sec++, ts.tv_nsec -= 1000000000;
    p->timekeeper = true;
    (void)pthread_cond_timedwait(&p->tick, &p->lock, &ts);
    p->timekeeper = false;
}

/* Under the lock: the next task, or NULL when the pool stops. */
static ck_task *next_task(pool *p) {
    for (;;) {
        fire_timers(p);
        ck_task *t = ck_run_queue_take(&p->queue, 0);
        if (t) return t;
        if (p->stopping) return NULL;
        if (!p->timekeeper && p->timers.count) {
            wait_until(p, ck_timers_next(&p->timers));
            continue;
        }
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
    }
}

/* A new timer may be earlier than the one the timekeeper waits for. Without a timekeeper this thread, which looks for
 * work next, becomes it or passes it on. */
static void tell_timekeeper(pool *p, int64_t earliest_before) {
    if (p->timekeeper && ck_timers_next(&p->timers) < earliest_before) pthread_cond_signal(&p->tick);
}

static void *run(void *arg) {
    pool *p = arg;
    static const ck_quantum quantum = {CK_BATCH_ROWS_MAX, CK_QUANTUM_EVENTS, CK_QUANTUM_US, false};
    pthread_mutex_lock(&p->lock);
    for (ck_task *t; (t = next_task(p));) {
        ck_task_take(t, &p->timers);
        /* More work, or time that nobody keeps now, is for another thread. */
        if (p->queue.count || (p->timers.count && !p->timekeeper && p->idle)) wake_one(p);
        pthread_mutex_unlock(&p->lock);
        int64_t until_us = INT64_MAX;
        ck_step step = t->step(t, &quantum, &until_us);
        pthread_mutex_lock(&p->lock);
        if (step == CK_STEP_DONE || step == CK_STEP_FAILED) {
            p->tasks--;
            atomic_exchange(&t->state, CK_TASK_RETIRED);
            pthread_mutex_unlock(&p->lock);
            if (t->retired) t->retired(t);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        int64_t earliest = ck_timers_next(&p->timers);
        if (ck_task_settle(t, &p->timers, step, until_us))
            ck_run_queue_push(&p->queue, t); /* this thread takes the next one itself */
        else
            tell_timekeeper(p, earliest);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pool_free(ck_scheduler *s) {
    pool *p = (pool *)s;
    pthread_mutex_lock(&p->lock);
    CK_ASSERT(p->tasks == 0); /* jobs are freed before their scheduler */
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_cond_broadcast(&p->tick);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++) pthread_join(p->threads[i], NULL);
    ck_timers_destroy(&p->timers);
    pthread_cond_destroy(&p->tick);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    ck_free(ck_proc_mem(s->proc, CK_MEM_PLAN), p, s->free_bytes);
}

ck_status ck_scheduler_pool(ck_proc *proc, unsigned threads, ck_scheduler **out, ck_error *err) {
    if (threads == 0 || threads > CK_PARALLELISM_MAX)
        return ck_fail(err, CK_INVALID, "%u threads: between 1 and %d are possible", threads, CK_PARALLELISM_MAX);
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    size_t bytes = sizeof(pool) + threads * sizeof(pthread_t);
    pool *p = ck_alloc_zero(mem, bytes);
    if (!p) return ck_nomem(err, mem, bytes);
    p->base = (ck_scheduler){.proc = proc,
                             .free_bytes = bytes,
                             .enqueue = pool_enqueue,
                             .add = pool_add,
                             .remove = pool_remove,
                             .free = pool_free};
    ck_timers_init(&p->timers, mem);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->tick, &attr);
    pthread_condattr_destroy(&attr);
    for (; p->thread_count < threads; p->thread_count++) {
        ck_status s = ck_thread_start(&p->threads[p->thread_count], "clink-step", run, p, err);
        if (s != CK_OK) {
            pool_free(&p->base);
            return s;
        }
    }
    *out = &p->base;
    return CK_OK;
}
