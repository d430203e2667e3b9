/* See job.h: what the outside calls. */
#include "runtime/job_int.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "os/clock.h"
#include "os/random.h"
#include "runtime/wire.h"

enum { PLAN_BYTES_MAX = 1 << 30 };

/* ---- references: who may still touch the job ---- */

void ck_job_ref(void *job) {
    ck_job *j = job;
    pthread_mutex_lock(&j->lock);
    j->refs++;
    pthread_mutex_unlock(&j->lock);
}

void ck_job_unref(void *job) {
    ck_job *j = job;
    pthread_mutex_lock(&j->lock);
    if (--j->refs == 0) pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

/* ---- freeing ---- */

static void free_messages(ck_job *j) {
    for (ck_msg *m = ck_mailbox_take(&j->reports), *next; m; m = next) {
        next = m->next;
        ck_report_free((ck_report *)m);
    }
    ck_job_drop_peers(j);
    while (j->acks) {
        ck_job_acks *a = j->acks;
        j->acks = a->next;
        ck_job_acks_unref(j, a);
    }
    while (j->savepoints) {
        ck_job_savepoint_wait *w = j->savepoints;
        j->savepoints = w->next;
        ck_free(j->mem, w, sizeof *w);
    }
}

/* Nothing of it runs. */
static void destroy(ck_job *j) {
    if (j->links) ck_links_close(j->links); /* nothing comes in any more */
    for (uint32_t i = 0; j->subtasks && i < j->subtask_count; i++) ck_subtask_disconnect(j->subtasks[i]);
    free_messages(j);
    for (uint32_t i = 0; j->subtasks && i < j->subtask_count; i++) ck_subtask_free(j->subtasks[i]);
    if (j->actor.scheduler && !ck_task_is_retired(&j->actor)) ck_task_remove(&j->actor);
    ck_job_close_outside(j);
    ck_links_free(j->links);
    ck_bytes_destroy(&j->new_splits);
    ck_checkpoints_free(j->checkpoints);
    ck_arena_destroy(&j->arena);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    ck_rocks_free(j->rocks);
    CK_ASSERT(ck_budget_total(&j->budget) == 0); /* every byte was given back */
    ck_free(ck_proc_mem(j->proc, CK_MEM_PLAN), j, sizeof *j);
}

/* ---- starting ---- */

static ck_status new_job(ck_scheduler *s, const ck_registry *r, const ck_job_config *cfg, ck_job **out, ck_error *err) {
    ck_proc *proc = ck_scheduler_proc(s);
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_job *j = ck_alloc_zero(mem, sizeof *j);
    if (!j) return ck_nomem(err, mem, sizeof *j);
    j->proc = proc;
    j->scheduler = s;
    j->registry = r;
    ck_budget_init(&j->budget, proc->heap, cfg->memory_limit);
    j->mem = (ck_mem){&j->budget, CK_MEM_PLAN};
    j->queue_mem = (ck_mem){&j->budget, CK_MEM_QUEUE};
    j->error = j->disk_error = CK_ERROR_INIT;
    ck_arena_init(&j->arena, j->mem, PLAN_BYTES_MAX);
    ck_bytes_init(&j->new_splits, j->mem, CK_WIRE_SPLITS_BYTES_MAX);
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&j->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out = j;
    return CK_OK;
}

static ck_status look_at_sinks(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        const ck_job_op *o = &j->ops[i];
        if (!o->desc->look) continue;
        ck_op_spec *spec = ck_job_op_spec(j, o, 0, j->plan.vertices[o->vertex].parallelism);
        if (!spec) return ck_nomem(err, j->mem, sizeof *spec);
        ck_status s = o->desc->look(spec, err);
        if (s == CK_OK) continue;
        if (err && !err->place.object[0]) (void)snprintf(err->place.object, sizeof err->place.object, "%s", o->op->uid);
        return s;
    }
    return CK_OK;
}

static ck_status prepare(ck_job *j, const ck_graph *g, const ck_job_config *cfg, ck_error *err) {
    CK_TRY(ck_job_make_plan(j, g, cfg, err));
    CK_TRY(ck_job_make_links(j, err));
    if (ck_job_follows(j)) CK_TRY(ck_job_connect(j, err));
    CK_TRY(ck_job_open_dir(j, err));
    CK_TRY(ck_job_find_settling(j, err));
    if (j->settle_at) return CK_OK;
    if (ck_job_follows(j)) {
        j->settings.job_uuid = ck_links_word_of_leader(j->links)->uuid;
    } else if (j->dir) {
        j->settings.job_uuid = ck_checkpoint_dir_job_uuid(j->dir);
    } else {
        ck_random_uuid(j->proc, j->uuid);
        j->settings.job_uuid = j->uuid;
    }
    j->settings.checkpoint_dir = j->cfg.checkpoint.dir;
    CK_TRY(ck_job_backfill(j, err));
    if (!j->was_finished && !ck_job_follows(j)) CK_TRY(look_at_sinks(j, err));
    CK_TRY(ck_job_make_committers(j, err));
    if (!j->was_finished && j->cfg.rocksdb) CK_TRY(ck_rocks_new(j->proc, j->mem, j->cfg.spill_dir, &j->rocks, err));
    if (!j->was_finished) CK_TRY(ck_job_deploy(j, err));
    CK_TRY(ck_job_restore(j, err));
    CK_TRY(ck_job_drop_backfilled(j, err));
    CK_TRY(ck_job_abandon_newer(j, err));
    if (!j->was_finished) CK_TRY(ck_job_deal_splits(j, err));
    CK_TRY(ck_job_make_actor(j, err));
    return j->links && !ck_job_follows(j) ? ck_job_connect(j, err) : CK_OK;
}

static void start(ck_job *j) {
    uint32_t tasks = j->local_count + (j->links ? ck_links_task_count(j->links) : 0);
    atomic_store(&j->live_tasks, tasks);
    j->refs = tasks + 1; /* and the actor */
    if (j->was_finished) {
        j->ending = true;
        j->outcome = CK_JOB_FINISHED;
    }
    atomic_store(&j->state, j->was_finished ? CK_JOB_FINISHED : CK_JOB_RUNNING);
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (j->subtasks[i]) ck_task_notify(ck_subtask_task(j->subtasks[i]));
    if (j->links) ck_links_start(j->links);
    if (j->links && j->was_finished) ck_links_end(j->links, true);
    ck_task_notify(&j->actor);
}

/* Of the job that found so, which goes; what it was to be then goes on from the newest checkpoint of the directory. */
static ck_status settle(ck_job *j, const ck_graph *g, ck_job_config *cfg, ck_error *err) {
    ck_scheduler *s = j->scheduler;
    const ck_registry *r = j->registry;
    uint32_t parallelism = j->settle_at, regions = j->settle_regions;
    char at[60] = "the parallelism of each region";
    if (!regions) (void)snprintf(at, sizeof at, "parallelism %u", parallelism);
    ck_log_line(j->proc->log, CK_LOG_WARN,
                "%s: checkpoint %llu holds rows that were under way: they are worked off at %s, which it was "
                "made with, up to a savepoint that the job goes on from at %u",
                cfg->name, (unsigned long long)j->restored->checkpoint, at, cfg->parallelism);
    destroy(j);
    if (!regions) CK_TRY(ck_job_settle(s, r, g, cfg, cfg->region, parallelism, err));
    for (uint32_t i = 0; i < regions; i++) {
        CK_TRY(ck_job_settle(s, r, g, cfg, (ck_job_region){i, regions}, parallelism, err));
        cfg->checkpoint.fresh = false; /* the first of them has begun anew for all */
    }
    cfg->checkpoint.restore = NULL;
    cfg->checkpoint.fresh = false;
    return CK_OK;
}

ck_status ck_job_start(ck_scheduler *s, const ck_registry *r, const ck_graph *g, const ck_job_config *asked,
                       ck_job **out, ck_error *err) {
    ck_job_config now = *asked, *cfg = &now;
    ck_job *j = NULL;
    ck_status st;
    for (uint64_t below = 0;;) { /* ends: `below` falls */
        CK_TRY(new_job(s, r, cfg, &j, err));
        j->below = below;
        st = prepare(j, g, cfg, err);
        if (st == CK_OK && !j->settle_at) break;
        if (st == CK_OK) {
            CK_TRY(settle(j, g, cfg, err));
            below = 0;
            continue;
        }
        bool back = ck_job_may_go_back(j);
        below = j->tried;
        if (back)
            ck_log_line(j->proc->log, CK_LOG_WARN,
                        "%s: checkpoint %llu cannot be restored (%s); going back to the one before it", cfg->name,
                        (unsigned long long)below, err ? err->msg : ck_status_name(st));
        destroy(j);
        if (!back) return st;
        if (err) ck_error_reset(err);
    }
    *out = j;
    start(j);
    return CK_OK;
}

/* ---- looking and waiting ---- */

ck_job_state ck_job_state_of(const ck_job *j) { return (ck_job_state)atomic_load(&j->state); }
bool ck_job_was_finished(const ck_job *j) { return j->was_finished; }

void ck_job_cancel(ck_job *j) {
    atomic_store(&j->cancel, true);
    ck_task_notify(&j->actor);
}

ck_status ck_job_result(ck_job *j, ck_error *err) {
    switch (ck_job_state_of(j)) {
    case CK_JOB_FINISHED: return CK_OK;
    case CK_JOB_CANCELLED: return ck_fail(err, CK_CANCELLED, "job %s was cancelled", j->cfg.name);
    case CK_JOB_FAILED:
        if (err) *err = j->error;
        return j->error.status;
    case CK_JOB_STARTING:
    case CK_JOB_RUNNING: break;
    }
    return ck_fail(err, CK_AGAIN, "job %s still runs", j->cfg.name);
}

static struct timespec deadline_of(int64_t timeout_us) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* the condition variable's clock */
    ts.tv_sec += (time_t)(timeout_us / 1000000);
    ts.tv_nsec += (long)(timeout_us % 1000000) * 1000;
    if (ts.tv_nsec >= 1000000000) ts.tv_sec++, ts.tv_nsec -= 1000000000;
    return ts;
}

/* Until *flag (guarded by the lock) or the time is up. false: it is not set. The seeded scheduler has nobody else to
 * drive it, so waiting is turning it. */
static bool wait_for(ck_job *j, const bool *flag, int64_t timeout_us) {
    if (ck_scheduler_is_seeded(j->scheduler)) {
        int64_t until_us = timeout_us < 0 ? INT64_MAX : ck_mono_us(j->proc) + timeout_us;
        while (!*flag && ck_mono_us(j->proc) < until_us)
            if (!ck_scheduler_turn(j->scheduler, 1)) break;
        return *flag;
    }
    struct timespec ts = deadline_of(timeout_us < 0 ? 0 : timeout_us);
    int rc = 0;
    pthread_mutex_lock(&j->lock);
    while (!*flag && rc != ETIMEDOUT)
        rc = timeout_us < 0 ? pthread_cond_wait(&j->changed, &j->lock)
                            : pthread_cond_timedwait(&j->changed, &j->lock, &ts);
    bool set = *flag;
    pthread_mutex_unlock(&j->lock);
    return set;
}

ck_status ck_job_wait(ck_job *j, int64_t timeout_us, ck_error *err) {
    if (!wait_for(j, &j->ended, timeout_us)) return ck_fail(err, CK_AGAIN, "job %s still runs", j->cfg.name);
    return ck_job_result(j, err);
}

static ck_status savepoint_result(ck_job *j, ck_job_savepoint_wait *w, uint64_t *checkpoint, ck_error *err) {
    if (w->status == CK_OK) {
        *checkpoint = w->checkpoint;
        return CK_OK;
    }
    return ck_fail(err, w->status, "the savepoint of job %s failed: %s", j->cfg.name, w->reason ? w->reason : "");
}

ck_status ck_job_savepoint_above(ck_job *j, bool stop, uint64_t above, int64_t timeout_us, uint64_t *checkpoint,
                                 ck_error *err) {
    if (ck_job_follows(j))
        return ck_fail(err, CK_REFUSED, "savepoints of job %s are asked of its process 0", j->cfg.name);
    ck_job_savepoint_wait *w = ck_alloc_zero(j->mem, sizeof *w);
    if (!w) return ck_nomem(err, j->mem, sizeof *w);
    pthread_mutex_lock(&j->lock);
    bool refused = j->no_savepoints;
    w->request = ++j->next_request;
    w->stop = stop;
    w->above = above;
    w->next = j->savepoints;
    if (!refused) j->savepoints = w;
    pthread_mutex_unlock(&j->lock);
    if (refused) {
        ck_free(j->mem, w, sizeof *w);
        return ck_fail(err, CK_REFUSED, "job %s has ended", j->cfg.name);
    }
    atomic_store(&j->savepoint_asked, true);
    ck_task_notify(&j->actor);
    (void)wait_for(j, &w->done, timeout_us);
    ck_status s = CK_AGAIN;
    pthread_mutex_lock(&j->lock);
    w->abandoned = !w->done; /* the actor withdraws and frees it */
    if (w->done) {
        s = savepoint_result(j, w, checkpoint, err);
        ck_job_savepoint_wait **at = &j->savepoints;
        while (*at != w) at = &(*at)->next;
        *at = w->next;
        ck_free(j->mem, w, sizeof *w);
    }
    pthread_mutex_unlock(&j->lock);
    if (s != CK_AGAIN) return s;
    atomic_store(&j->savepoint_asked, true);
    ck_task_notify(&j->actor);
    return ck_fail(err, CK_AGAIN, "the savepoint of job %s was not complete in time", j->cfg.name);
}

ck_status ck_job_savepoint(ck_job *j, int64_t timeout_us, uint64_t *checkpoint, ck_error *err) {
    return ck_job_savepoint_above(j, false, 0, timeout_us, checkpoint, err);
}

ck_status ck_job_stop(ck_job *j, int64_t timeout_us, uint64_t *checkpoint, ck_error *err) {
    return ck_job_savepoint_above(j, true, 0, timeout_us, checkpoint, err);
}

void ck_job_free(ck_job *j) {
    if (!j) return;
    ck_job_cancel(j);
    bool ended = wait_for(j, &j->ended, -1);
    CK_ASSERT(ended); /* a job that cannot end is a bug; a crashed simulation drops its heap instead */
    pthread_mutex_lock(&j->lock);
    while (j->refs) pthread_cond_wait(&j->changed, &j->lock);
    pthread_mutex_unlock(&j->lock);
    destroy(j);
}
