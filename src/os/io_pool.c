/* The I/O executor with real threads. Jobs queue in order; a thread takes the oldest. One thread lives as long as the
 * pool, so that what is submitted always runs even when the system gives no more; others are started while there is
 * more queued than there are threads waiting, and leave after a while without work. A leaving thread joins the one that
 * left before it, the last is joined by free: no thread is ever detached, so none can touch a pool that is gone. */
#include "os/io.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "os/thread.h"

enum { IDLE_SECONDS = 2 };

typedef struct io_pool {
    ck_io base;
    ck_proc *proc;
    unsigned threads_max;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t work;  /* a job was queued, or closing */
    pthread_cond_t gone;  /* a thread has left */
    ck_io_job *head, *tail;
    unsigned queued, waiting;
    unsigned threads; /* from the decision to start one until it has left */
    unsigned running; /* those that did start: the last of these never leaves before the end */
    bool closing;
    bool has_leaver;
    pthread_t leaver; /* has left, not joined yet */
} io_pool;

static ck_io_job *take(io_pool *pool) {
    ck_io_job *job = pool->head;
    pool->head = job->next;
    if (!pool->head) pool->tail = NULL;
    pool->queued--;
    return job;
}

/* Waits for a job. NULL: leave. */
static ck_io_job *next_job(io_pool *pool) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    bool timed_out = false;
    pool->waiting++;
    while (!pool->head && !pool->closing && !timed_out) {
        if (pool->running == 1)
            pthread_cond_wait(&pool->work, &pool->lock);
        else
            timed_out = pthread_cond_timedwait(&pool->work, &pool->lock, &until) == ETIMEDOUT;
        if (pool->running == 1) timed_out = false; /* the others left meanwhile */
    }
    pool->waiting--;
    return pool->head ? take(pool) : NULL;
}

static void *run_worker(void *arg) {
    io_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    pool->running++;
    for (ck_io_job *job; (job = next_job(pool)) != NULL;) {
        pthread_mutex_unlock(&pool->lock);
        job->run(job);
        job->done(job); /* may have freed it */
        pthread_mutex_lock(&pool->lock);
    }
    bool join = pool->has_leaver;
    pthread_t before = pool->leaver;
    pool->leaver = pthread_self();
    pool->has_leaver = true;
    pool->threads--, pool->running--;
    pthread_cond_signal(&pool->gone);
    pthread_mutex_unlock(&pool->lock);
    if (join) pthread_join(before, NULL);
    return NULL;
}

/* A failure is no failure: the threads there are take the job in time. */
static void start_another(io_pool *pool) {
    pthread_t id;
    ck_error err = CK_ERROR_INIT;
    if (ck_thread_start(&id, "clink-io", run_worker, pool, &err) == CK_OK) return;
    ck_log_line(pool->proc->log, CK_LOG_WARN, "the I/O pool goes on with fewer threads: %s", err.msg);
    pthread_mutex_lock(&pool->lock);
    pool->threads--;
    pthread_cond_signal(&pool->gone);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_submit(ck_io *io, ck_io_job *job) {
    io_pool *pool = (io_pool *)io;
    job->next = NULL;
    pthread_mutex_lock(&pool->lock);
    CK_ASSERT(!pool->closing || pool->threads > 0); /* only jobs that still run may submit more */
    if (pool->tail)
        pool->tail->next = job;
    else
        pool->head = job;
    pool->tail = job;
    pool->queued++;
    bool start = pool->queued > pool->waiting && pool->threads < pool->threads_max;
    pool->threads += start;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    if (start) start_another(pool);
}

ck_status ck_io_pool_new(ck_proc *proc, unsigned threads_max, ck_io **out, ck_error *err) {
    *out = NULL;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    io_pool *pool = ck_alloc_zero(mem, sizeof *pool);
    if (!pool) return ck_nomem(err, mem, sizeof *pool);
    pool->base.submit = pool_submit;
    pool->proc = proc;
    pool->threads_max = threads_max ? threads_max : 1;
    pool->threads = 1;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&pool->gone, NULL);
    pthread_t id;
    ck_status s = ck_thread_start(&id, "clink-io", run_worker, pool, err);
    if (s != CK_OK) {
        pool->threads = 0;
        ck_io_pool_free(&pool->base);
        return s;
    }
    *out = &pool->base;
    return CK_OK;
}

void ck_io_pool_free(ck_io *io) {
    if (!io) return;
    io_pool *pool = (io_pool *)io;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->threads > 0) pthread_cond_wait(&pool->gone, &pool->lock);
    bool join = pool->has_leaver;
    pthread_t last = pool->leaver;
    pthread_mutex_unlock(&pool->lock);
    if (join) pthread_join(last, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->gone);
    pthread_mutex_destroy(&pool->lock);
    ck_free(ck_proc_mem(pool->proc, CK_MEM_PLAN), pool, sizeof *pool);
}
