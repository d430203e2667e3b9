/* The seeded scheduler: one thread, a virtual clock, and every choice from the seed. What it varies: which ready task
 * runs, how much a step may do, whether it hears what its task was told meanwhile, when an I/O job runs relative to
 * steps and to other jobs (a few at once, as a pool of threads would), how much time passes, whether a timer or the
 * disk is faster. Nothing else decides anything, so a seed is a schedule.
 *
 * A simulated crash (ck_faults.crashed) stops it for good; whoever drives it then drops the process's heap. */
#include "os/clock.h"
#include "runtime/scheduler_int.h"

enum {
    IO_WINDOW = 4,        /* jobs that run "at the same time": any of them may be the next to finish */
    IO_SLOWEST_US = 20000 /* with I/O under way time does not jump further than this */
};

typedef struct seeded {
    ck_scheduler base;
    ck_io io;
    ck_manual_clock *clock;
    uint64_t random;
    uint32_t io_eagerness;    /* of 256: an I/O job before a ready task */
    uint32_t timer_eagerness; /* of 256: a timer before I/O when no task is ready */
    uint32_t large_steps;     /* of 256: a step gets a whole quantum */
    uint32_t late_mail;       /* of 256: a step hears only of what was told before the last one */
    ck_run_queue queue;
    ck_timers timers;
    uint32_t tasks;
    ck_io_job *io_first, **io_end;
    uint32_t io_count;
} seeded;

static uint64_t draw(seeded *s) {
    s->random += 0x9E3779B97F4A7C15ULL; /* splitmix64 */
    uint64_t z = s->random;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
static uint32_t below(seeded *s, uint32_t bound) { return (uint32_t)((draw(s) >> 32) * bound >> 32); }
static bool chance(seeded *s, uint32_t of_256) { return (draw(s) >> 56) < of_256; }

static void seeded_enqueue(ck_scheduler *base, ck_task *t) { ck_run_queue_push(&((seeded *)base)->queue, t); }

static ck_status seeded_add(ck_scheduler *base) {
    seeded *s = (seeded *)base;
    ck_status st = ck_timers_reserve(&s->timers, s->tasks + 1);
    if (st == CK_OK) s->tasks++;
    return st;
}
static void seeded_remove(ck_scheduler *base) { ((seeded *)base)->tasks--; }

static void io_submit(ck_io *io, ck_io_job *job) {
    seeded *s = (seeded *)((char *)io - offsetof(seeded, io));
    job->next = NULL;
    *s->io_end = job;
    s->io_end = &job->next;
    s->io_count++;
}

static void run_io(seeded *s) {
    uint32_t k = below(s, s->io_count < IO_WINDOW ? s->io_count : IO_WINDOW);
    ck_io_job **at = &s->io_first;
    while (k--) at = &(*at)->next;
    ck_io_job *job = *at;
    *at = job->next;
    if (!*at) s->io_end = at;
    s->io_count--;
    job->run(job);
    if (!atomic_load(&s->base.proc->faults->crashed)) job->done(job); /* a dead process hears nothing */
}

static void run_task(seeded *s) {
    ck_task *t = ck_run_queue_take(&s->queue, below(s, s->queue.count));
    ck_task_take(t, &s->timers);
    ck_quantum quantum = {CK_BATCH_ROWS_MAX, CK_QUANTUM_EVENTS, CK_QUANTUM_US, chance(s, s->late_mail)};
    if (!chance(s, s->large_steps)) quantum.events = 1 + below(s, 4);
    int64_t until_us = INT64_MAX;
    ck_step step = t->step(t, &quantum, &until_us);
    if (step == CK_STEP_DONE || step == CK_STEP_FAILED) {
        s->tasks--;
        atomic_exchange(&t->state, CK_TASK_RETIRED);
        if (t->retired) t->retired(t);
    } else if (ck_task_settle(t, &s->timers, step, until_us)) {
        ck_run_queue_push(&s->queue, t);
    }
}

static void fire_timers(seeded *s) {
    int64_t now_us = ck_mono_us(s->base.proc);
    for (ck_task *t; (t = ck_timers_due(&s->timers, now_us));)
        if (ck_task_timer_fired(t)) ck_run_queue_push(&s->queue, t);
}

/* Whether a timer comes before the I/O that is under way. */
static bool timer_first(seeded *s, int64_t left_us) {
    return !s->queue.count && left_us < IO_SLOWEST_US && chance(s, s->timer_eagerness);
}

/* One choice. false: nothing is ready, nothing is under way, no timer runs. */
static bool choose(seeded *s) {
    int64_t next_us = ck_timers_next(&s->timers);
    int64_t left_us = next_us == INT64_MAX ? INT64_MAX : next_us - ck_mono_us(s->base.proc);
    if (s->queue.count && !(s->io_count && chance(s, s->io_eagerness))) {
        run_task(s);
        ck_manual_clock_advance(s->clock, below(s, 50));
    } else if (s->io_count && !timer_first(s, left_us)) {
        run_io(s);
        ck_manual_clock_advance(s->clock, below(s, 500));
    } else if (s->timers.count) {
        ck_manual_clock_advance(s->clock, (left_us > 0 ? left_us : 0) + below(s, 20));
    } else {
        return false;
    }
    fire_timers(s);
    return true;
}

static bool seeded_turn(ck_scheduler *base, uint64_t steps) {
    seeded *s = (seeded *)base;
    for (uint64_t i = 0; i < steps; i++) {
        if (atomic_load(&base->proc->faults->crashed)) return false;
        if (!choose(s)) return false;
    }
    return true;
}

static void seeded_free(ck_scheduler *base) {
    seeded *s = (seeded *)base;
    while (s->io_count) run_io(s);
    CK_ASSERT(s->tasks == 0); /* jobs are freed before their scheduler */
    if (base->proc->io == &s->io) base->proc->io = NULL;
    ck_timers_destroy(&s->timers);
    ck_free(ck_proc_mem(base->proc, CK_MEM_PLAN), s, base->free_bytes);
}

ck_status ck_scheduler_seeded(ck_proc *proc, uint64_t seed, ck_scheduler **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    seeded *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->base = (ck_scheduler){.proc = proc,
                             .seeded = true,
                             .free_bytes = sizeof *s,
                             .enqueue = seeded_enqueue,
                             .add = seeded_add,
                             .remove = seeded_remove,
                             .turn = seeded_turn,
                             .free = seeded_free};
    s->io.submit = io_submit;
    s->io_end = &s->io_first;
    s->clock = (ck_manual_clock *)proc->clock;
    s->random = seed;
    s->io_eagerness = 16 + below(s, 224);
    s->timer_eagerness = below(s, 144);
    s->large_steps = below(s, 256);
    s->late_mail = below(s, 2) ? below(s, 160) : 0;
    ck_timers_init(&s->timers, mem);
    proc->io = &s->io;
    *out = &s->base;
    return CK_OK;
}
