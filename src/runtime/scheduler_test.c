#include "runtime/scheduler.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "runtime/mailbox.h"
#include "runtime/timers.h"

typedef struct fixture {
    ck_test_proc t;
    ck_manual_clock clock;
} fixture;

static int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    ck_manual_clock_init(&f.clock, 1000, 5000);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* A gate for threads: counts down to zero. */
typedef struct latch {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int left;
} latch;
static void latch_init(latch *l, int n) {
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->cond, NULL);
    l->left = n;
}
static void latch_down(latch *l) {
    pthread_mutex_lock(&l->lock);
    if (--l->left == 0) pthread_cond_broadcast(&l->cond);
    pthread_mutex_unlock(&l->lock);
}
static void latch_wait(latch *l) {
    pthread_mutex_lock(&l->lock);
    while (l->left > 0) pthread_cond_wait(&l->cond, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* ---- a task that takes messages until it has had enough ---- */

typedef struct taker {
    ck_task task;
    ck_mailbox mailbox;
    int taken, wanted;
    _Atomic int inside; /* a step runs */
    latch *ended;
} taker;

static ck_step taker_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    (void)q, (void)until_us;
    taker *k = (taker *)t;
    assert_int_equal(atomic_fetch_add(&k->inside, 1), 0); /* never two threads at once */
    for (ck_msg *m = ck_mailbox_take(&k->mailbox), *next; m; m = next) {
        next = m->next;
        free(m);
        k->taken++;
    }
    atomic_fetch_sub(&k->inside, 1);
    return k->taken == k->wanted ? CK_STEP_DONE : CK_STEP_NEED_INPUT;
}
static void taker_retired(ck_task *t) { latch_down(((taker *)t)->ended); }

static void *post_many(void *arg) {
    taker *takers = arg;
    for (int i = 0; i < 1000; i++)
        for (int k = 0; k < 4; k++) {
            ck_mailbox_post(&takers[k].mailbox, malloc(sizeof(ck_msg)));
            ck_task_notify(&takers[k].task);
        }
    return NULL;
}

static void no_notification_is_lost(void **state) {
    fixture *f = *state;
    ck_scheduler *s;
    latch ended;
    taker takers[4] = {0};
    pthread_t posters[3];
    latch_init(&ended, 4);
    assert_int_equal(ck_scheduler_pool(&f->t.proc, 3, &s, NULL), CK_OK);
    for (int k = 0; k < 4; k++) {
        takers[k] = (taker){.task = {.step = taker_step, .retired = taker_retired}, .wanted = 3000, .ended = &ended};
        assert_int_equal(ck_task_add(&takers[k].task, s), CK_OK);
    }
    for (int i = 0; i < 3; i++) pthread_create(&posters[i], NULL, post_many, takers);
    for (int i = 0; i < 3; i++) pthread_join(posters[i], NULL);
    latch_wait(&ended);
    for (int k = 0; k < 4; k++) assert_int_equal(takers[k].taken, 3000);
    ck_scheduler_free(s);
}

/* ---- tasks that wait for times ---- */

typedef struct sleeper {
    ck_task task;
    int64_t delay_us, asked_us, woken_us;
    int steps;
    latch *ended;
} sleeper;

static ck_step sleeper_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    (void)q;
    sleeper *s = (sleeper *)t;
    int64_t now_us = ck_mono_us(ck_scheduler_proc(t->scheduler));
    if (s->steps++ == 0) {
        s->asked_us = now_us + s->delay_us;
        *until_us = s->asked_us;
        return CK_STEP_IDLE_UNTIL;
    }
    s->woken_us = now_us;
    return CK_STEP_DONE;
}
static void sleeper_retired(ck_task *t) {
    if (((sleeper *)t)->ended) latch_down(((sleeper *)t)->ended);
}

static void timers_wake_in_time(void **state) {
    fixture *f = *state;
    ck_scheduler *s;
    latch ended;
    sleeper sleepers[20] = {0};
    latch_init(&ended, 20);
    assert_int_equal(ck_scheduler_pool(&f->t.proc, 2, &s, NULL), CK_OK);
    for (int i = 0; i < 20; i++) {
        sleepers[i] = (sleeper){.task = {.step = sleeper_step, .retired = sleeper_retired},
                                .delay_us = 1000 * ((i * 7) % 20),
                                .ended = &ended};
        assert_int_equal(ck_task_add(&sleepers[i].task, s), CK_OK);
        ck_task_notify(&sleepers[i].task);
    }
    latch_wait(&ended);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sleepers[i].steps, 2);
        assert_true(sleepers[i].woken_us >= sleepers[i].asked_us);
    }
    ck_scheduler_free(s);
}

static void a_notification_beats_a_timer(void **state) {
    fixture *f = *state;
    f->t.proc.clock = &f->clock.base;
    ck_scheduler *s;
    sleeper one = {.task = {.step = sleeper_step, .retired = sleeper_retired}, .delay_us = 1000000};
    assert_int_equal(ck_scheduler_seeded(&f->t.proc, 1, &s, NULL), CK_OK);
    assert_int_equal(ck_task_add(&one.task, s), CK_OK);
    ck_task_notify(&one.task);
    assert_true(ck_scheduler_turn(s, 1));
    assert_int_equal(one.steps, 1);
    ck_task_notify(&one.task);
    assert_true(ck_scheduler_turn(s, 1));
    assert_int_equal(one.steps, 2);
    assert_true(one.woken_us < one.asked_us);
    assert_false(ck_scheduler_turn(s, 10)); /* its timer is gone with it */
    ck_scheduler_free(s);
}

/* ---- the seeded scheduler repeats itself ---- */

typedef struct script {
    char text[4096];
    size_t n;
} script;
typedef struct writer {
    ck_task task;
    script *to;
    char name;
    int left;
    ck_io_job job;
} writer;

static void note(writer *w, char c) {
    if (w->to->n + 2 >= sizeof w->to->text) return;
    w->to->text[w->to->n++] = w->name;
    w->to->text[w->to->n++] = c;
}
static writer *of_job(ck_io_job *j) { return (writer *)((char *)j - offsetof(writer, job)); }
static void io_run(ck_io_job *j) { note(of_job(j), 'r'); }
static void io_done(ck_io_job *j) {
    note(of_job(j), 'd');
    ck_task_notify(&of_job(j)->task);
}
static ck_step writer_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    writer *w = (writer *)t;
    ck_proc *proc = ck_scheduler_proc(t->scheduler);
    note(w, (char)('0' + (q->events < 10 ? q->events : 9)));
    if (w->left-- == 0) return CK_STEP_DONE;
    if (w->left % 3 == 0) {
        w->job = (ck_io_job){io_run, io_done, NULL};
        proc->io->submit(proc->io, &w->job);
        return CK_STEP_WAIT_IO;
    }
    *until_us = ck_mono_us(proc) + 300;
    return w->left % 3 == 1 ? CK_STEP_IDLE_UNTIL : CK_STEP_READY;
}

static void play(fixture *f, uint64_t seed, script *out) {
    ck_scheduler *s;
    writer writers[5];
    ck_manual_clock_init(&f->clock, 0, 0);
    f->t.proc.clock = &f->clock.base;
    *out = (script){.n = 0};
    assert_int_equal(ck_scheduler_seeded(&f->t.proc, seed, &s, NULL), CK_OK);
    for (int i = 0; i < 5; i++) {
        writers[i] = (writer){.task = {.step = writer_step}, .to = out, .name = (char)('a' + i), .left = 30};
        assert_int_equal(ck_task_add(&writers[i].task, s), CK_OK);
        ck_task_notify(&writers[i].task);
    }
    assert_false(ck_scheduler_turn(s, 100000));
    for (int i = 0; i < 5; i++) assert_int_equal(writers[i].left, -1);
    ck_scheduler_free(s);
    assert_null(f->t.proc.io);
}

static void a_seed_is_a_schedule(void **state) {
    fixture *f = *state;
    static script a, b, c;
    play(f, 7, &a);
    play(f, 7, &b);
    play(f, 8, &c);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.text, b.text, a.n);
    assert_true(a.n != c.n || memcmp(a.text, c.text, a.n) != 0);
}

static void a_crash_ends_all_turns(void **state) {
    fixture *f = *state;
    static script out;
    ck_scheduler *s;
    f->t.proc.clock = &f->clock.base;
    assert_int_equal(ck_scheduler_seeded(&f->t.proc, 3, &s, NULL), CK_OK);
    writer w = {.task = {.step = writer_step}, .to = &out, .name = 'x', .left = 2};
    assert_int_equal(ck_task_add(&w.task, s), CK_OK);
    ck_task_notify(&w.task);
    atomic_store(&f->t.faults.crashed, true);
    assert_false(ck_scheduler_turn(s, 10));
    assert_int_equal(out.n, 0);
    atomic_store(&f->t.faults.crashed, false);
    assert_false(ck_scheduler_turn(s, 100));
    ck_scheduler_free(s);
}

/* ---- the heap by itself, against sorting ---- */

static void timers_come_out_in_order(void **state) {
    fixture *f = *state;
    enum { N = 200 };
    static ck_task tasks[N];
    ck_timers h;
    ck_timers_init(&h, ck_proc_mem(&f->t.proc, CK_MEM_PLAN));
    assert_int_equal(ck_timers_reserve(&h, N), CK_OK);
    assert_int_equal(ck_timers_next(&h), INT64_MAX);
    for (int round = 0; round < 50; round++) {
        memset(tasks, 0, sizeof tasks);
        uint32_t set = 0;
        for (int i = 0; i < N; i++) ck_timers_set(&h, &tasks[i], (int64_t)ck_random_below(&f->t.proc, 100));
        for (int i = 0; i < N; i += 3) ck_timers_set(&h, &tasks[i], (int64_t)ck_random_below(&f->t.proc, 100));
        for (int i = 0; i < N; i += 5) ck_timers_clear(&h, &tasks[i]);
        for (int i = 0; i < N; i++) set += tasks[i].timer_index != 0;
        assert_int_equal(set, N - N / 5);
        int64_t last = 0;
        for (ck_task *t; (t = ck_timers_due(&h, 1000)); set--) {
            assert_true(t->wake_us >= last);
            last = t->wake_us;
            assert_int_equal(t->timer_index, 0);
        }
        assert_int_equal(set, 0);
    }
    ck_timers_set(&h, &tasks[0], 50);
    assert_null(ck_timers_due(&h, 49));
    assert_ptr_equal(ck_timers_due(&h, 50), &tasks[0]);
    ck_timers_destroy(&h);
}

static void limits_and_failures(void **state) {
    fixture *f = *state;
    ck_scheduler *s;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_scheduler_pool(&f->t.proc, 0, &s, &err), CK_INVALID);
    assert_int_equal(ck_scheduler_pool(&f->t.proc, 5000, &s, &err), CK_INVALID);
    ck_tracked_heap_fail_nth(f->t.heap, 1);
    assert_int_equal(ck_scheduler_pool(&f->t.proc, 2, &s, &err), CK_NOMEM);
    f->t.proc.clock = &f->clock.base;
    assert_int_equal(ck_scheduler_seeded(&f->t.proc, 2, &s, &err), CK_OK);
    ck_task t = {.step = taker_step};
    ck_tracked_heap_fail_nth(f->t.heap, 1);
    assert_int_equal(ck_task_add(&t, s), CK_NOMEM);
    assert_int_equal(ck_task_add(&t, s), CK_OK);
    ck_task_remove(&t);
    ck_scheduler_free(s);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(no_notification_is_lost), T(timers_wake_in_time),    T(a_notification_beats_a_timer),
        T(a_seed_is_a_schedule),    T(a_crash_ends_all_turns), T(timers_come_out_in_order),
        T(limits_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
