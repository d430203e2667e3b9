/* For the programs here that run jobs on a pool of threads and the real disk. */
#ifndef SIM_KIT_H
#define SIM_KIT_H

#include <setjmp.h>
#include <stddef.h>
#include <stdarg.h>
#include <cmocka.h>

#include "model.h"
#include "os/io.h"
#include "os/test_proc.h"
#include "output.h"
#include "plan.h"
#include "runtime/job.h"

typedef struct fixture {
    ck_test_proc t;
    ck_scheduler *scheduler;
    ck_arena arena;
    ck_registry registry;
    plan plan;
    char out[128], checkpoints[128];
    int rounds;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), 64 << 20);
    ck_registry_init(&f.registry, &f.arena);
    *state = &f;
    return ck_io_pool_new(&f.t.proc, 4, &f.t.proc.io, NULL) == CK_OK &&
                   ck_scheduler_pool(&f.t.proc, 3, &f.scheduler, NULL) == CK_OK &&
                   model_register(&f.registry, NULL) == CK_OK
               ? 0
               : -1;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_scheduler_free(f->scheduler);
    ck_io_pool_free(f->t.proc.io);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* A plan with an output directory of its own. */
static inline plan *new_plan(fixture *f) {
    snprintf(f->out, sizeof f->out, "%s/out%d", ck_test_dir(&f->t), f->rounds);
    snprintf(f->checkpoints, sizeof f->checkpoints, "%s/checkpoints%d", ck_test_dir(&f->t), f->rounds++);
    f->plan = (plan){.out = f->out,
                     .batch_rows = 4096,
                     .a_splits = 5,
                     .a_rows = 20000,
                     .a_keys = 40,
                     .b_splits = 4,
                     .b_rows = 10000,
                     .c_splits = 2,
                     .c_limit = 1000};
    return &f->plan;
}

static inline ck_status start(fixture *f, uint32_t parallelism, const ck_job_config *more, ck_job **out,
                              ck_error *err) {
    ck_graph *g;
    ck_job_config cfg = more ? *more : (ck_job_config){0};
    if (!cfg.name) cfg.name = "pooled";
    cfg.parallelism = parallelism;
    cfg.batch_rows = f->plan.batch_rows;
    if (plan_graph(&f->plan, &f->arena, &g, err) != CK_OK) fail_msg("%s", err->msg);
    return ck_job_start(f->scheduler, &f->registry, g, &cfg, out, err);
}

static inline void finish(ck_job *j) {
    ck_error err = CK_ERROR_INIT;
    if (ck_job_wait(j, 300000000, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_job_state_of(j), CK_JOB_FINISHED);
}

static inline void check_output(fixture *f) {
    ck_error err = CK_ERROR_INIT;
    if (output_check(&f->t.proc, &f->plan, &err) != CK_OK) fail_msg("%s", err.msg);
}

#endif
