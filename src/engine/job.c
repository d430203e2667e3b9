/* A script under way: one runtime job after the other, what the caller waits on, and what it can ask. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/cluster_int.h"
#include "engine/engine_int.h"
#include "engine/evolve_int.h"
#include "os/clock.h"
#include "os/io.h"

/* ---- steps ---- */

static int64_t ms_or(int64_t ms, int64_t deflt) { return (ms ? ms : deflt) * 1000; }

/* By default as far from the checkpoints as what holds the state: what is out of memory takes longest to write. */
static ck_changelog_config changelog_config(const clink_run *r) {
    bool external =
        r->changelog == CLINK_MATERIALISE_EXTERNAL || (r->changelog == CLINK_MATERIALISE_AUTO && r->rocksdb);
    return (ck_changelog_config){
        .where = r->changelog == CLINK_NO_CHANGELOG ? CK_MATERIALISE_NONE
                 : external                         ? CK_MATERIALISE_EXTERNAL
                                                    : CK_MATERIALISE_INSIDE,
        .every = (uint32_t)r->materialisation_every,
    };
}

ck_checkpoint_config engine_checkpoint_config(const clink_run *r) {
    return (ck_checkpoint_config){
        .dir = r->checkpoint_dir,
        .interval_us = r->checkpoint_interval_ms < 0 ? 0 : ms_or(r->checkpoint_interval_ms, 10000),
        .timeout_us = ms_or(r->checkpoint_timeout_ms, 600000),
        .final_timeout_us = ms_or(r->final_checkpoint_timeout_ms, 300000),
        .tolerable_failed = r->tolerable_failed_checkpoints < 0 ? 0
                            : r->tolerable_failed_checkpoints   ? (uint32_t)r->tolerable_failed_checkpoints
                                                                : 3,
        .retained = r->checkpoint_retained > 0 ? (uint32_t)r->checkpoint_retained : 3,
        .alignment = r->alignment == CLINK_UNALIGNED  ? CK_UNALIGNED
                     : r->alignment == CLINK_ADAPTIVE ? CK_ALIGN_ADAPTIVE
                                                      : CK_ALIGNED,
        .stall_us = ms_or(r->alignment_stall_ms, 1000),
        .changelog = changelog_config(r),
        .restore = r->restore,
        .fresh = r->fresh != 0,
        .allow_duplicates = r->allow_duplicates != 0,
        .allow_semantic_change = r->allow_semantic_change != 0,
        .added = engine_added_state(r),
    };
}

/* The last touch of j by the engine: from here on the caller may free it. */
static void end_job(clink_job *j, ck_status s, const ck_error *err) {
    pthread_mutex_lock(&j->lock);
    j->ended = true;
    j->started |= s == CK_OK;
    j->status = s;
    j->error = *err;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static void on_step_end(void *arg, ck_job *runtime_job);

static ck_status start_step(clink_job *j, const ck_sql_step *step, ck_job **out, ck_error *err) {
    ck_job_config cfg = {
        .name = j->run.name,
        .parallelism = j->run.parallelism,
        .batch_rows = step->batch_rows,
        .flush_us = step->flush_us,
        .memory_limit = j->engine->memory_bytes,
        .spill_dir = j->run.spill_dir,
        .rocksdb = j->run.rocksdb != 0,
        .checkpoint = engine_checkpoint_config(&j->run),
        .job_data = &j->outputs,
        .on_end = on_step_end,
        .on_end_arg = j,
    };
    ck_memory_stage_free(&j->outputs.memory);
    j->outputs = (ck_job_outputs){.result = j->collectors[j->step]};
    if (ck_memory_stage_new(j->engine->memory, &j->outputs.memory) != CK_OK)
        return ck_fail(err, CK_NOMEM, "out of memory");
    return ck_job_start(j->engine->scheduler, &j->engine->registry, step->graph, &cfg, out, err);
}

static void finish_collectors(clink_job *j, uint32_t from, ck_status s, const ck_error *err) {
    for (uint32_t i = from; i < j->plan->step_count; i++)
        if (j->collectors[i]) ck_collector_finish(j->collectors[i], s, err);
}

static void free_advance(ck_io_job *io) { free(io); }
static void run_advance(ck_io_job *io);

/* Starts the current step's job. Whichever of this and the step's end comes second goes on. */
static ck_status begin_step(clink_job *j, bool *ended, ck_error *err) {
    *ended = false;
    engine_advance *a = malloc(sizeof *a);
    if (!a) return ck_fail(err, CK_NOMEM, "out of memory");
    *a = (engine_advance){.io = {.run = run_advance, .done = free_advance}, .job = j};
    pthread_mutex_lock(&j->lock);
    bool cancelled = j->cancelled;
    j->step_ended = false;
    j->advance = a;
    pthread_mutex_unlock(&j->lock);
    ck_job *started = NULL;
    ck_status s = cancelled ? ck_fail(err, CK_CANCELLED, "the job was cancelled")
                            : start_step(j, &j->plan->steps[j->step], &started, err);
    if (s != CK_OK) engine_place_table(j, s, err);
    pthread_mutex_lock(&j->lock);
    if (s == CK_OK) {
        j->running = started;
        j->started = true;
        *ended = j->step_ended;
        if (j->cancelled) ck_job_cancel(started);
    }
    if (s != CK_OK || *ended)
        j->advance = NULL;
    else
        a = NULL; /* on_step_end uses it */
    pthread_mutex_unlock(&j->lock);
    free(a);
    return s;
}

/* The current step's job has ended: takes it down. CK_OK: the next step may start. */
static ck_status finish_step(clink_job *j, ck_error *err) {
    pthread_mutex_lock(&j->lock);
    ck_job *done = j->running;
    j->running = NULL;
    while (j->savepoints) pthread_cond_wait(&j->changed, &j->lock);
    pthread_mutex_unlock(&j->lock);
    ck_status s = ck_job_result(done, err);
    bool did_nothing = s == CK_OK && ck_job_was_finished(done);
    ck_job_progress p;
    ck_job_progress_now(done, &p);
    if (s != CK_OK) engine_name_operator(j, err);
    ck_error note_error = CK_ERROR_INIT;
    ck_status noted = engine_note_step(j, done, j->plan->steps[j->step].graph, &note_error);
    if (s == CK_OK && noted != CK_OK) s = noted, *err = note_error;
    if (s == CK_OK) s = ck_memory_stage_commit(j->outputs.memory, err); /* whoever reads the end finds the rows */
    if (j->collectors[j->step]) ck_collector_finish(j->collectors[j->step], s, err);
    ck_job_free(done);
    pthread_mutex_lock(&j->lock);
    j->last_progress = p;
    if (did_nothing) j->was_finished = true;
    pthread_mutex_unlock(&j->lock);
    j->step++;
    return s;
}

static bool was_stopped(clink_job *j) {
    pthread_mutex_lock(&j->lock);
    bool stopped = j->stopped;
    pthread_mutex_unlock(&j->lock);
    return stopped;
}

void engine_job_advance(clink_job *j) {
    ck_error err = CK_ERROR_INIT;
    ck_status s = CK_OK;
    for (bool ended = true; s == CK_OK; s = finish_step(j, &err)) {
        if (was_stopped(j)) break;
        while (j->step < j->plan->step_count && j->plan->steps[j->step].kind != CK_SQL_JOB) j->step++;
        if (j->step == j->plan->step_count) break;
        s = begin_step(j, &ended, &err);
        if (s != CK_OK) break;
        if (!ended) return; /* on_step_end takes over */
    }
    finish_collectors(j, j->step, s, &err);
    end_job(j, s, &err);
}

static void run_first(ck_io_job *io) { engine_job_advance(((engine_advance *)io)->job); }

ck_status engine_job_start_later(clink_job *j, ck_error *err) {
    engine_advance *a = malloc(sizeof *a);
    if (!a) return ck_fail(err, CK_NOMEM, "out of memory");
    *a = (engine_advance){.io = {.run = run_first, .done = free_advance}, .job = j};
    j->engine->proc.io->submit(j->engine->proc.io, &a->io);
    return CK_OK;
}

static void run_advance(ck_io_job *io) {
    clink_job *j = ((engine_advance *)io)->job;
    ck_error err = CK_ERROR_INIT;
    ck_status s = finish_step(j, &err);
    if (s == CK_OK) {
        engine_job_advance(j);
        return;
    }
    finish_collectors(j, j->step, s, &err);
    end_job(j, s, &err);
}

/* From a scheduler thread, which must not block: the rest happens on the I/O executor. */
static void on_step_end(void *arg, ck_job *runtime_job) {
    clink_job *j = arg;
    (void)runtime_job;
    pthread_mutex_lock(&j->lock);
    engine_advance *a = j->running ? j->advance : NULL;
    j->advance = a ? NULL : j->advance;
    j->step_ended = true; /* begin_step goes on when it has not heard of the job yet */
    pthread_mutex_unlock(&j->lock);
    if (a) j->engine->proc.io->submit(j->engine->proc.io, &a->io);
}

/* ---- what the caller does with it ---- */

/* A script with nothing to run (SET, CREATE TABLE) leaves no job: calls on it do nothing, or say so. */
#define NO_JOB "job (the script had nothing to run?)"

static bool wait_changed(clink_job *j, int64_t timeout_ms) { /* lock held; false: the time is up */
    if (timeout_ms < 0) {
        while (!j->ended) pthread_cond_wait(&j->changed, &j->lock);
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    while (!j->ended)
        if (pthread_cond_timedwait(&j->changed, &j->lock, &until) == ETIMEDOUT) return j->ended;
    return true;
}

clink_status clink_job_wait(clink_job *j, int64_t timeout_ms, clink_error *error) {
    if (!j) return engine_refuse_null(NO_JOB, error);
    if (j->run.output == CLINK_OUTPUT_TABLE) {
        ck_error err = CK_ERROR_INIT;
        ck_status s = engine_print_tables(j, &timeout_ms, &err);
        if (s == CK_AGAIN) return CLINK_TIMEOUT;
        if (s == CK_CLOSED)
            clink_job_cancel(j); /* nobody reads the screen any more */
        else if (s != CK_OK)
            return engine_error(s, &err, error);
    }
    pthread_mutex_lock(&j->lock);
    bool ended = wait_changed(j, timeout_ms);
    ck_status s = j->status;
    ck_error err = j->error;
    pthread_mutex_unlock(&j->lock);
    return ended ? engine_error(s, &err, error) : CLINK_TIMEOUT;
}

void clink_job_cancel(clink_job *j) {
    if (!j) return;
    pthread_mutex_lock(&j->lock);
    j->cancelled = true;
    if (j->running) ck_job_cancel(j->running);
    pthread_mutex_unlock(&j->lock);
}

void clink_job_free(clink_job *j) {
    if (!j) return;
    clink_job_cancel(j);
    pthread_mutex_lock(&j->lock);
    wait_changed(j, -1);
    pthread_mutex_unlock(&j->lock);
    clink_engine *e = j->engine;
    pthread_mutex_lock(&e->lock);
    if (j->prev_link) {
        *j->prev_link = j->next;
        if (j->next) j->next->prev_link = j->prev_link;
    }
    pthread_mutex_unlock(&e->lock);
    for (uint32_t i = 0; j->collectors && i < j->plan->step_count; i++) ck_collector_unref(&j->collectors[i]);
    ck_table_view_destroy(&j->table);
    ck_memory_stage_free(&j->outputs.memory);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    ck_arena_destroy(&j->arena);
    free(j);
}

const char *clink_job_name(const clink_job *j) { return j ? j->run.name : ""; }
const char *clink_job_text(const clink_job *j) { return j && j->text ? j->text : ""; }

const char *clink_job_guarantee(const clink_job *j) {
    for (uint32_t i = 0; j && i < j->plan->step_count; i++)
        if (j->plan->steps[i].kind == CK_SQL_JOB && j->plan->steps[i].guarantee) return j->plan->steps[i].guarantee;
    return "";
}

const char *clink_job_guarantee_at(const clink_job *j, size_t n) {
    for (uint32_t i = 0; j && i < j->plan->step_count; i++) {
        const ck_sql_step *step = &j->plan->steps[i];
        if (n < step->guarantee_count) return step->guarantees[n];
        n -= step->guarantee_count;
    }
    return NULL;
}

const char *clink_job_warning(const clink_job *j, size_t n) {
    for (uint32_t i = 0; j && i < j->plan->step_count; i++) {
        if (n < j->plan->steps[i].warning_count) return j->plan->steps[i].warnings[n];
        n -= j->plan->steps[i].warning_count;
    }
    return NULL;
}

int32_t clink_job_started(clink_job *j) {
    if (!j) return 0;
    pthread_mutex_lock(&j->lock);
    bool started = j->started;
    pthread_mutex_unlock(&j->lock);
    return started;
}

int32_t clink_job_was_finished(clink_job *j) {
    if (!j) return 0;
    pthread_mutex_lock(&j->lock);
    bool was = j->was_finished;
    pthread_mutex_unlock(&j->lock);
    return was;
}

static const ck_sql_step *result_step(const clink_job *j) {
    for (uint32_t i = 0; i < j->plan->step_count; i++)
        if (j->plan->steps[i].has_result) return &j->plan->steps[i];
    return NULL;
}

int32_t clink_job_has_result(const clink_job *j) { return j && result_step(j) != NULL; }

static bool has_op(const ck_graph *g, const char *type) {
    for (uint32_t i = 0; g && i < g->op_count; i++)
        if (strcmp(g->ops[i].type, type) == 0) return true;
    return false;
}

int32_t clink_job_prints(const clink_job *j) {
    if (!j) return 0;
    if (j->run.output != CLINK_OUTPUT_STREAM && result_step(j)) return 1;
    for (uint32_t i = 0; i < j->plan->step_count; i++)
        if (has_op(j->plan->steps[i].graph, "sink.print")) return 1;
    return 0;
}

void clink_job_progress(clink_job *j, clink_progress *out) {
    ck_job_progress p;
    if (!j || !out) return;
    pthread_mutex_lock(&j->lock);
    if (j->running)
        ck_job_progress_now(j->running, &p);
    else
        p = j->last_progress;
    pthread_mutex_unlock(&j->lock);
    clink_progress g = {.struct_bytes = out->struct_bytes,
                        .rows_in = p.rows_in,
                        .rows_out = p.rows_out,
                        .bytes_in = p.bytes_in,
                        .bytes_total = p.bytes_total,
                        .bad_rows = p.bad_rows,
                        .dead_letters = p.dead_letters,
                        .late_rows = p.late_rows,
                        .bad_time_rows = p.bad_time_rows,
                        .checkpoints = p.checkpoints_completed,
                        .last_checkpoint = p.last_checkpoint,
                        .restored = p.restored,
                        .lag_records = p.follows ? (int64_t)p.lag_records : -1,
                        .lag_ms = p.follows ? p.lag_us / 1000 : -1};
    for (size_t i = 0; i < CK_MEM_CATEGORY_COUNT; i++) g.memory_bytes += p.memory_bytes[i];
    memcpy(out, &g, out->struct_bytes < sizeof g ? out->struct_bytes : sizeof g);
}
