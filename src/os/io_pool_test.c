#include "os/io.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"

/* A gate that jobs wait at, and counters of what they did. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned started, finished, running, running_max;
    unsigned order[64];
} gate;

typedef struct gate_job {
    ck_io_job job;
    gate *g;
    unsigned number;
    bool waits;
} gate_job;

static void run_gated(ck_io_job *j) {
    gate_job *job = (gate_job *)j;
    gate *g = job->g;
    pthread_mutex_lock(&g->lock);
    g->order[g->started++ % 64] = job->number;
    if (++g->running > g->running_max) g->running_max = g->running;
    pthread_cond_broadcast(&g->changed);
    while (job->waits && !g->open) pthread_cond_wait(&g->changed, &g->lock);
    g->running--;
    pthread_mutex_unlock(&g->lock);
}
static void count_done(ck_io_job *j) {
    gate *g = ((gate_job *)j)->g;
    pthread_mutex_lock(&g->lock);
    g->finished++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}
static void init_gate(gate *g) {
    *g = (gate){0};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
}
static void open_gate(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}
static void wait_for(gate *g, const unsigned *counter, unsigned n) {
    pthread_mutex_lock(&g->lock);
    while (*counter < n) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void test_one_thread_keeps_the_order(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    gate g;
    init_gate(&g);
    ck_io *io;
    assert_int_equal(ck_io_pool_new(&t.proc, 1, &io, NULL), CK_OK);
    gate_job jobs[50];
    for (unsigned i = 0; i < 50; i++) {
        jobs[i] = (gate_job){{run_gated, count_done, NULL}, &g, i, false};
        io->submit(io, &jobs[i].job);
    }
    ck_io_pool_free(io); /* runs what was submitted */
    assert_int_equal(g.finished, 50);
    assert_int_equal(g.running_max, 1);
    for (unsigned i = 0; i < 50; i++) assert_int_equal(g.order[i], i);
    ck_test_proc_destroy(&t);
}

static void test_threads_grow_to_the_ceiling_and_no_further(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    gate g;
    init_gate(&g);
    ck_io *io;
    assert_int_equal(ck_io_pool_new(&t.proc, 4, &io, NULL), CK_OK);
    gate_job jobs[12];
    for (unsigned i = 0; i < 12; i++) {
        jobs[i] = (gate_job){{run_gated, count_done, NULL}, &g, i, true};
        io->submit(io, &jobs[i].job);
    }
    wait_for(&g, &g.started, 4); /* four at once, or this never returns */
    open_gate(&g);
    wait_for(&g, &g.finished, 12);
    assert_int_equal(g.running_max, 4);
    ck_io_pool_free(io);
    ck_test_proc_destroy(&t);
}

typedef struct chain_job {
    ck_io_job job;
    ck_io *io;
    ck_mem mem;
    unsigned left;
    _Atomic unsigned *ran;
} chain_job;
static void run_nothing(ck_io_job *j) { (void)j; }
static void submit_next(ck_io_job *j) { /* the completion frees its job and submits another */
    chain_job *job = (chain_job *)j;
    atomic_fetch_add(job->ran, 1);
    if (job->left > 0) {
        chain_job *next = ck_alloc(job->mem, sizeof *next);
        *next = *job;
        next->left--;
        next->io->submit(next->io, &next->job);
    }
    ck_free(job->mem, job, sizeof *job);
}

static void test_completions_may_free_and_submit_while_closing(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_io *io;
    assert_int_equal(ck_io_pool_new(&t.proc, 3, &io, NULL), CK_OK);
    _Atomic unsigned ran = 0;
    for (int i = 0; i < 3; i++) {
        chain_job *job = ck_alloc(ck_proc_mem(&t.proc, CK_MEM_PLAN), sizeof *job);
        *job = (chain_job){{run_nothing, submit_next, NULL}, io, ck_proc_mem(&t.proc, CK_MEM_PLAN), 200, &ran};
        io->submit(io, &job->job);
    }
    ck_io_pool_free(io);
    assert_int_equal(ran, 603);
    ck_test_proc_destroy(&t);
}

static unsigned thread_count(void) {
    unsigned n = 0;
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void test_idle_threads_leave_but_one(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    gate g;
    init_gate(&g);
    unsigned before = thread_count();
    ck_io *io;
    assert_int_equal(ck_io_pool_new(&t.proc, 3, &io, NULL), CK_OK);
    gate_job jobs[4];
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (gate_job){{run_gated, count_done, NULL}, &g, i, true};
        io->submit(io, &jobs[i].job);
    }
    wait_for(&g, &g.started, 3);
    assert_int_equal(thread_count(), before + 3);
    open_gate(&g);
    wait_for(&g, &g.finished, 3);
    for (int i = 0; i < 2000 && thread_count() > before + 1; i++) usleep(5000); /* waits on the condition, up to 10 s */
    assert_int_equal(thread_count(), before + 1);
    jobs[3] = (gate_job){{run_gated, count_done, NULL}, &g, 3, false};
    io->submit(io, &jobs[3].job); /* the one that stayed */
    wait_for(&g, &g.finished, 4);
    ck_io_pool_free(io);
    ck_test_proc_destroy(&t);
}

static void test_no_memory_is_said(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_tracked_heap_fail_nth(t.heap, 1);
    ck_io *io;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_io_pool_new(&t.proc, 2, &io, &err), CK_NOMEM);
    assert_null(io);
    ck_io_pool_free(NULL);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_keeps_the_order),
        cmocka_unit_test(test_threads_grow_to_the_ceiling_and_no_further),
        cmocka_unit_test(test_completions_may_free_and_submit_while_closing),
        cmocka_unit_test(test_idle_threads_leave_but_one),
        cmocka_unit_test(test_no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
