#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "dice.h"
#include "model.h"
#include "output.h"
#include "plan.h"
#include "process.h"

enum { LIVES_MAX = 7 };

typedef struct world {
    const world_options *o;
    uint64_t seed;
    dice dice;
    plan plan;
    ck_simfs *disk;
    ck_manual_clock clock;
} world;

static char why_text[1400];

static uint32_t below(world *w, uint32_t n) { return dice_below(&w->dice, n); }

static bool wrong(const char *what) {
    snprintf(why_text, sizeof why_text, "%s", what);
    return false;
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

/* ---- one life ---- */

static ck_status start(world *w, process *p, uint32_t parallelism, ck_error *err) {
    ck_graph *graph;
    CK_TRY(model_register(&p->registry, err));
    CK_TRY(plan_graph(&w->plan, &p->arena, &graph, err));
    CK_TRY(ck_scheduler_seeded(&p->proc, dice_draw(&w->dice), &p->scheduler, err));
    ck_job_config cfg = {.name = "simulated",
                         .parallelism = parallelism,
                         .batch_rows = w->plan.batch_rows,
                         .queue_bytes = w->plan.queue_bytes,
                         .checkpoint = {.dir = w->o->no_checkpoints ? NULL : "/checkpoints",
                                        .interval_us = w->plan.interval_us,
                                        .timeout_us = w->plan.timeout_us,
                                        .final_timeout_us = 600000000,
                                        .tolerable_failed = w->plan.tolerable_failed,
                                        .retained = 1 + below(w, 3),
                                        .alignment = (ck_alignment)below(w, 3),
                                        .stall_us = below(w, 2) ? 1 : 200 + below(w, 20000),
                                        .changelog = changelog_draw(&w->dice, w->o->fault_point)}};
    return ck_job_start(p->scheduler, &p->registry, graph, &cfg, &p->job, err);
}

/* From start to end; a failure's reason goes to why_text. */
static life_end live(world *w, uint32_t parallelism, trouble kind) {
    process p;
    ck_error err = CK_ERROR_INIT;
    trouble_plan t = trouble_draw(&w->dice, kind, w->o->fault_point, CK_FAULT_FILE_SINK_BEFORE_ROLL);
    if (w->o->verbose && kind != TROUBLE_NONE) printf("    "), trouble_print(&t);
    process_init(&p, w->disk, &w->clock, &w->dice, &t, w->o->verbose);
    ck_status s = start(w, &p, parallelism, &err);
    life_end end = s == CK_OK ? process_run(&p, NULL, NULL) : process_not_started(&p, s, &err);
    end = process_end(&p, end);
    if (end == END_WRONG) snprintf(why_text, sizeof why_text, "%s", p.why);
    return end;
}

/* ---- the lives of a seed ---- */

static bool check_output(world *w) {
    process p;
    ck_error err = CK_ERROR_INIT;
    trouble_plan none = {0};
    process_init(&p, w->disk, &w->clock, &w->dice, &none, false);
    ck_status s = output_check(&p.proc, &w->plan, &err);
    process_end(&p, END_FINISHED);
    if (s != CK_OK) snprintf(why_text, sizeof why_text, "output: %s", err.msg);
    return s == CK_OK;
}

static bool run_lives(world *w) {
    life_end end = END_CRASHED;
    for (int life = 0; life < LIVES_MAX && end != END_FINISHED && end != END_WAS_FINISHED; life++) {
        trouble t = life == LIVES_MAX - 1 || !below(w, 12) ? TROUBLE_NONE : (trouble)(1 + below(w, TROUBLE_MEMORY - 1));
        uint32_t parallelism = 1 + below(w, 4);
        if (w->o->verbose) printf("  life %d: parallelism %u, trouble: %s\n", life, parallelism, trouble_names[t]);
        end = live(w, parallelism, t);
        if (w->o->verbose)
            printf("  life %d: %s after %lld us\n", life, end_names[end], (long long)atomic_load(&w->clock.mono));
        if (end == END_WRONG) return false;
        if (below(w, 2))
            ck_simfs_crash(w->disk); /* committed output must outlive the power */
        else
            ck_simfs_kill(w->disk);
    }
    if (end != END_FINISHED && end != END_WAS_FINISHED) return wrong("the last life did not finish");
    ck_simfs_crash(w->disk);
    if (!check_output(w)) return false;
    end = live(w, 1 + below(w, 4), TROUBLE_NONE); /* a finished job does nothing */
    if (end != END_WAS_FINISHED) return end == END_WRONG ? false : wrong("a finished job ran again");
    return check_output(w);
}

static bool run_once(world *w) {
    life_end end = live(w, 1 + below(w, 4), TROUBLE_NONE);
    if (end != END_FINISHED && end != END_WRONG) return wrong("the job did not finish");
    return end == END_FINISHED && check_output(w);
}

bool world_run(uint64_t seed, const world_options *o, const char **why) {
    world w = {.o = o, .seed = seed, .dice = {seed * 0x2545F4914F6CDD1DULL + 1}};
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
