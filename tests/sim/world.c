#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "gate_fs.h"
#include "model.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/simfs.h"
#include "output.h"
#include "plan.h"
#include "runtime/job.h"

enum { LIVES_MAX = 7, TURNS_MAX = 3000000 };

typedef struct world {
    const world_options *o;
    uint64_t seed, random;
    plan plan;
    ck_simfs *disk;
    ck_manual_clock clock;
} world;

/* How a life is disturbed. */
typedef enum trouble {
    TROUBLE_NONE,
    TROUBLE_CRASH,       /* at a turn */
    TROUBLE_CRASH_POINT, /* at a fault point */
    TROUBLE_ERROR_POINT, /* a fault point fails once */
    TROUBLE_DISK,        /* a write or fsync fails once */
    TROUBLE_CANCEL,      /* at a turn */
} trouble;

typedef enum life_end { END_FINISHED, END_WAS_FINISHED, END_CRASHED, END_FAILED, END_CANCELLED, END_WRONG } life_end;

static char why_text[1400];

static uint64_t draw(world *w) {
    w->random += 0x9E3779B97F4A7C15ULL;
    uint64_t z = w->random;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
static uint32_t below(world *w, uint32_t n) { return (uint32_t)((draw(w) >> 32) * n >> 32); }

/* 1..2^bits, small ones as likely as large ones. */
static uint64_t spread(world *w, uint32_t bits) { return 1 + draw(w) % (1ULL << below(w, bits + 1)); }

static life_end wrong(const char *what, const ck_error *err) {
    snprintf(why_text, sizeof why_text, "%s: %s%s%s", what, err ? err->msg : "",
             err && err->place.object[0] ? " at " : "", err ? err->place.object : "");
    return END_WRONG;
}

static void make_plan(world *w) {
    static const uint32_t batch_rows[] = {1, 7, 4096};
    plan *p = &w->plan;
    p->out = "/out";
    p->batch_rows = w->o->batch_rows ? (uint32_t)w->o->batch_rows : batch_rows[below(w, 3)];
    uint32_t which = 1 + below(w, 7);
    p->with_counts = which & 1, p->with_rows = which & 2, p->with_limit = which & 4;
    p->final = below(w, 2);
    uint32_t scale = p->batch_rows == 4096 ? 60000 : p->batch_rows == 7 ? 500 : 120;
    p->a_splits = 1 + below(w, 6), p->a_rows = 1 + below(w, scale), p->a_keys = 1 + below(w, MODEL_KEYS_MAX);
    p->b_splits = 1 + below(w, 6), p->b_rows = 1 + below(w, scale);
    p->c_splits = 1 + below(w, 3), p->c_limit = 1 + below(w, scale);
    p->interval_us = 300 + (int64_t)below(w, 6000);
    p->timeout_us = below(w, 3) ? 60000000 : 10000 + (int64_t)below(w, 150000); /* some are given up */
    p->tolerable_failed = 0;
    p->queue_bytes = below(w, 2) ? 0 : 2048 + below(w, 100000);
}

/* ---- one process ---- */

typedef struct process {
    ck_proc proc;
    ck_tracked_heap *heap;
    ck_seeded_random random;
    ck_faults faults;
    ck_arena arena;
    ck_registry registry;
    ck_scheduler *scheduler;
    ck_job *job;
    ck_log log;
} process;

static void log_line(void *arg, ck_log_level level, const char *line) {
    (void)arg, (void)level;
    printf("    %s\n", line);
}

static void process_init(world *w, process *p) {
    memset(p, 0, sizeof *p);
    CK_ASSERT(ck_tracked_heap_new(&p->heap) == CK_OK);
    ck_faults_init(&p->faults);
    ck_seeded_random_init(&p->random, draw(w));
    p->proc.heap = ck_tracked_heap_base(p->heap);
    ck_budget_init(&p->proc.budget, p->proc.heap, 0);
    p->proc.clock = &w->clock.base;
    p->proc.random = &p->random.base;
    p->proc.fs = gate_fs(ck_simfs_base(w->disk), &p->faults);
    p->proc.faults = &p->faults;
    p->log = (ck_log){CK_LOG_DEBUG, NULL, log_line};
    if (w->o->verbose) p->proc.log = &p->log;
}

static void arm(world *w, process *p, trouble t) {
    if (t == TROUBLE_CRASH_POINT || t == TROUBLE_ERROR_POINT) {
        uint32_t point =
            w->o->fault_point >= 0 ? (uint32_t)w->o->fault_point : below(w, CK_FAULT_FILE_SINK_BEFORE_ROLL);
        uint64_t ordinal = spread(w, 5);
        ck_faults_arm(&p->faults, (ck_fault_point)point, ordinal,
                      t == TROUBLE_CRASH_POINT ? CK_FAULT_CRASH : CK_FAULT_ERROR);
        if (w->o->verbose)
            printf("    %s at hit %llu of %s\n", t == TROUBLE_CRASH_POINT ? "crash" : "error",
                   (unsigned long long)ordinal, ck_fault_name((ck_fault_point)point));
    }
    if (t == TROUBLE_DISK) ck_simfs_fail(w->disk, spread(w, 8), below(w, 2) ? 5 : 28, true);
}

static ck_status start(world *w, process *p, uint32_t parallelism, ck_error *err) {
    ck_graph *graph;
    ck_arena_init(&p->arena, ck_proc_mem(&p->proc, CK_MEM_PLAN), 64 << 20);
    ck_registry_init(&p->registry, &p->arena);
    CK_TRY(model_register(&p->registry, err));
    CK_TRY(plan_graph(&w->plan, &p->arena, &graph, err));
    CK_TRY(ck_scheduler_seeded(&p->proc, draw(w), &p->scheduler, err));
    ck_job_config cfg = {.name = "simulated",
                         .parallelism = parallelism,
                         .batch_rows = w->plan.batch_rows,
                         .queue_bytes = w->plan.queue_bytes,
                         .checkpoint = {.dir = w->o->no_checkpoints ? NULL : "/checkpoints",
                                        .interval_us = w->plan.interval_us,
                                        .timeout_us = w->plan.timeout_us,
                                        .final_timeout_us = 600000000,
                                        .tolerable_failed = w->plan.tolerable_failed,
                                        .retained = 1 + below(w, 3)}};
    return ck_job_start(p->scheduler, &p->registry, graph, &cfg, &p->job, err);
}

static bool crashed(const process *p) { return atomic_load(&p->faults.crashed); }

/* Turns until the job ends, the trouble comes, or it takes too long. */
static life_end run(world *w, process *p, trouble t) {
    uint64_t at = t == TROUBLE_CRASH || t == TROUBLE_CANCEL ? spread(w, 12) : UINT64_MAX;
    ck_error err = CK_ERROR_INIT;
    for (uint64_t turn = 0; turn < TURNS_MAX; turn++) {
        if (turn == at && t == TROUBLE_CRASH) atomic_store(&p->faults.crashed, true);
        if (turn == at && t == TROUBLE_CANCEL) ck_job_cancel(p->job);
        bool more = ck_scheduler_turn(p->scheduler, 1);
        if (crashed(p)) return END_CRASHED;
        if (more) continue;
        ck_status s = ck_job_wait(p->job, 0, &err);
        if (s == CK_OK) return ck_job_was_finished(p->job) ? END_WAS_FINISHED : END_FINISHED;
        if (s == CK_AGAIN) return wrong("nothing can happen any more and the job has not ended", NULL);
        if (s == CK_CANCELLED && t == TROUBLE_CANCEL) return END_CANCELLED;
        if (t == TROUBLE_ERROR_POINT || t == TROUBLE_DISK) return END_FAILED;
        return wrong("the job failed", &err);
    }
    return wrong("the job does not end", NULL);
}

static life_end tear_down(process *p, life_end end) {
    ck_job_free(p->job);
    ck_scheduler_free(p->scheduler);
    ck_arena_destroy(&p->arena);
    size_t blocks = ck_tracked_heap_live_blocks(p->heap);
    if (blocks == 0) return end;
    snprintf(why_text, sizeof why_text, "%zu blocks of %zu bytes are left", blocks,
             ck_tracked_heap_live_bytes(p->heap));
    return END_WRONG;
}

/* One life, from start to end; the heap goes whole after a crash and must be empty otherwise. */
static life_end live(world *w, uint32_t parallelism, trouble t) {
    process p;
    ck_error err = CK_ERROR_INIT;
    process_init(w, &p);
    arm(w, &p, t);
    ck_status s = start(w, &p, parallelism, &err);
    life_end end;
    if (crashed(&p))
        end = END_CRASHED;
    else if (s != CK_OK)
        end = t == TROUBLE_ERROR_POINT || t == TROUBLE_DISK ? END_FAILED : wrong("the job did not start", &err);
    else
        end = run(w, &p, t);
    if (end != END_CRASHED && end != END_WRONG) end = tear_down(&p, end);
    ck_simfs_fail(w->disk, 0, 0, false);
    ck_tracked_heap_free(p.heap);
    return end;
}

/* ---- the lives of a seed ---- */

static const char *const trouble_names[] = {"none", "crash", "crash point", "error point", "disk error", "cancel"};
static const char *const end_names[] = {"finished", "was finished", "crashed", "failed", "cancelled", "wrong"};

static bool check_output(world *w) {
    process p;
    ck_error err = CK_ERROR_INIT;
    process_init(w, &p);
    ck_status s = output_check(&p.proc, &w->plan, &err);
    ck_tracked_heap_free(p.heap);
    if (s != CK_OK) snprintf(why_text, sizeof why_text, "output: %s", err.msg);
    return s == CK_OK;
}

static bool run_lives(world *w) {
    life_end end = END_CRASHED;
    for (int life = 0; life < LIVES_MAX && end != END_FINISHED && end != END_WAS_FINISHED; life++) {
        trouble t = life == LIVES_MAX - 1 || !below(w, 12) ? TROUBLE_NONE : (trouble)(1 + below(w, 5));
        uint32_t parallelism = 1 + below(w, 4);
        if (w->o->verbose) printf("  life %d: parallelism %u, trouble: %s\n", life, parallelism, trouble_names[t]);
        end = live(w, parallelism, t);
        if (w->o->verbose)
            printf("  life %d: %s after %lld us\n", life, end_names[end], (long long)atomic_load(&w->clock.mono));
        if (end == END_WRONG) return false;
        if (end == END_CRASHED || below(w, 2)) ck_simfs_crash(w->disk); /* committed output must outlive the power */
    }
    if (end != END_FINISHED && end != END_WAS_FINISHED) {
        wrong("the last life did not finish", NULL);
        return false;
    }
    ck_simfs_crash(w->disk);
    if (!check_output(w)) return false;
    end = live(w, 1 + below(w, 4), TROUBLE_NONE); /* a finished job does nothing */
    if (end != END_WAS_FINISHED) {
        if (end != END_WRONG) wrong("a finished job ran again", NULL);
        return false;
    }
    return check_output(w);
}

static bool run_once(world *w) {
    life_end end = live(w, 1 + below(w, 4), TROUBLE_NONE);
    if (end != END_FINISHED && end != END_WRONG) wrong("the job did not finish", NULL);
    return end == END_FINISHED && check_output(w);
}

bool world_run(uint64_t seed, const world_options *o, const char **why) {
    world w = {.o = o, .seed = seed, .random = seed * 0x2545F4914F6CDD1DULL + 1};
    *why = why_text;
    why_text[0] = 0;
    make_plan(&w);
    if (o->verbose)
        printf("seed %llu: batch_rows %u,%s%s%s%s, interval %lld us, queues %zu\n", (unsigned long long)seed,
               w.plan.batch_rows, w.plan.with_counts ? " counts" : "", w.plan.with_rows ? " rows" : "",
               w.plan.with_limit ? " limit" : "", w.plan.final ? " final" : "", (long long)w.plan.interval_us,
               w.plan.queue_bytes);
    CK_ASSERT(ck_simfs_new(&w.disk, seed) == CK_OK);
    ck_manual_clock_init(&w.clock, 0, 1700000000000000);
    bool ok = o->no_checkpoints ? run_once(&w) : run_lives(&w);
    ck_simfs_free(w.disk);
    return ok;
}
