/* The running job: a task that takes what subtasks, disk and callers report, asks the checkpoint machine what follows,
 * and carries it out. The first failure decides how the job ends; then every subtask is told to stop, and when the last
 * has retired and the disk is quiet the outside is closed and the job has ended. */
#include "runtime/job_int.h"

#include <stdio.h>

#include "os/clock.h"

void ck_job_begin_end(ck_job *j, ck_job_state outcome) {
    if (j->ending) return;
    j->ending = true;
    j->outcome = outcome;
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (j->subtasks[i]) ck_subtask_stop(j->subtasks[i]);
    if (!j->links) return;
    if (outcome != CK_JOB_FINISHED) ck_job_tell_end(j);
    ck_links_end(j->links, outcome == CK_JOB_FINISHED);
}

void ck_job_fail(ck_job *j, const ck_error *e) {
    if (!j->ending) j->error = *e;
    ck_job_begin_end(j, CK_JOB_FAILED);
}

void ck_job_out_of_memory(ck_job *j) {
    ck_error e = CK_ERROR_INIT;
    (void)ck_nomem(&e, j->mem, 0);
    ck_job_fail(j, &e);
}

/* ---- telling subtasks ---- */

void ck_job_tell(ck_job *j, uint32_t subtask, const ck_tell *what) {
    if (!j->subtasks[subtask]) {
        ck_job_tell_peer(j, subtask, what);
        return;
    }
    ck_tell *t = ck_alloc(j->mem, sizeof *t);
    if (!t) {
        ck_job_out_of_memory(j);
        return;
    }
    *t = *what;
    ck_subtask_tell(j->subtasks[subtask], t);
}

static void tell_all(ck_job *j, ck_tell what) {
    for (uint32_t i = 0; i < j->subtask_count; i++) ck_job_tell(j, i, &what);
}

/* ---- acknowledgements ---- */

static ck_job_acks *find_acks(ck_job *j, uint64_t checkpoint) {
    for (ck_job_acks *a = j->acks; a; a = a->next)
        if (a->checkpoint == checkpoint) return a;
    return NULL;
}

static void drop_acks(ck_job *j, uint64_t from, uint64_t to) {
    for (ck_job_acks **at = &j->acks; *at;) {
        ck_job_acks *a = *at;
        if (a->checkpoint < from || a->checkpoint > to) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        ck_job_acks_unref(j, a);
    }
}

static ck_job_acks *new_acks(ck_job *j, uint64_t checkpoint, ck_barrier_kind kind) {
    ck_job_acks *a = ck_alloc_zero(j->mem, sizeof *a + j->subtask_count * sizeof *a->reports);
    if (!a) return NULL;
    a->refs = 1;
    a->checkpoint = checkpoint;
    a->kind = kind;
    a->started_us = ck_mono_us(j->proc);
    a->started_ms = ck_wall_us(j->proc) / 1000;
    a->next = j->acks;
    j->acks = a;
    return a;
}

/* ---- actions ---- */

static bool is_source(const ck_job *j, uint32_t subtask) {
    return j->plan.vertices[ck_job_vertex_of(j, subtask)].ops[0]->input_count == 0;
}

static void trigger(ck_job *j, const ck_checkpoints_action *a) {
    uint64_t checkpoint = a->checkpoint;
    if (ck_fault_hit(j->proc->faults, CK_FAULT_CHECKPOINT_BEFORE_TRIGGER) != CK_OK) {
        ck_fail(&j->disk_error, CK_IO, "the trigger of checkpoint %llu failed", (unsigned long long)checkpoint);
        j->failed_trigger = checkpoint;
        return;
    }
    if (!new_acks(j, checkpoint, a->barrier)) {
        ck_job_out_of_memory(j);
        return;
    }
    ck_tell what = {.kind = CK_TELL_TRIGGER,
                    .checkpoint = checkpoint,
                    .barrier = a->barrier,
                    .stop = a->stop,
                    .overtakes = a->overtakes};
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (is_source(j, i) || j->detached[i]) ck_job_tell(j, i, &what);
}

/* Everyone marks now, ahead of what is under way. Sources have their trigger; who has marked already does nothing. */
static void overtake(ck_job *j, const ck_checkpoints_action *a) {
    ck_job_acks *acks = find_acks(j, a->checkpoint);
    if (!acks) return; /* its trigger failed */
    acks->overtook = true;
    ck_tell what = {.kind = CK_TELL_OVERTAKE, .checkpoint = a->checkpoint, .barrier = a->barrier, .overtakes = true};
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (!is_source(j, i)) ck_job_tell(j, i, &what);
}

/* Behind FORWARD edges subtasks end one by one, and their barriers are not overtaken. */
static bool ends_are_mixed(const ck_job *j, const ck_job_acks *acks) {
    for (uint32_t v = 0; v < j->plan.count; v++) {
        const ck_vertex *vertex = &j->plan.vertices[v];
        bool exchanged = false;
        for (uint32_t i = 0; i < vertex->ops[0]->input_count; i++)
            exchanged |= vertex->ops[0]->inputs[i].kind != CK_EDGE_FORWARD;
        uint32_t ended = 0;
        for (uint32_t i = 0; i < vertex->parallelism; i++) ended += acks->reports[j->first_subtask[v] + i]->had_ended;
        if (exchanged && ended > 0 && ended < vertex->parallelism) return true;
    }
    return false;
}

/* request 0: all of them, and those to come. */
static void savepoint_done(ck_job *j, uint64_t request, ck_status status, uint64_t checkpoint, const char *reason) {
    pthread_mutex_lock(&j->lock);
    if (request == 0) j->no_savepoints = true;
    for (ck_job_savepoint_wait **at = &j->savepoints; *at;) {
        ck_job_savepoint_wait *w = *at;
        bool mine = request == 0 || w->request == request;
        if (mine && !w->done) {
            w->done = true;
            w->status = status;
            w->checkpoint = checkpoint;
            w->reason = reason;
        }
        if (!mine || !w->abandoned) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        ck_free(j->mem, w, sizeof *w);
    }
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static void fail_by_checkpoints(ck_job *j, const ck_checkpoints_action *a) {
    ck_error e = j->disk_error;
    if (e.status == CK_OK)
        ck_fail(&e, a->status, "%s", a->reason);
    else
        (void)ck_error_prefix(&e, "%s: ", a->reason);
    ck_job_fail(j, &e);
}

static void disk(ck_job *j, ck_disk_kind kind, uint64_t checkpoint, ck_job_acks *acks) {
    if (ck_job_do_disk(j, kind, checkpoint, acks) != CK_OK) ck_job_out_of_memory(j);
}

/* Who holds it up: a name, never silence. */
static void log_abort(ck_job *j, const ck_checkpoints_action *a, const ck_job_acks *acks) {
    char who[600] = "";
    uint32_t missing = 0;
    for (uint32_t i = 0; acks && i < j->subtask_count; i++) {
        if (acks->reports[i] || missing++) continue;
        uint32_t v = ck_job_vertex_of(j, i);
        snprintf(who, sizeof who, "; subtask %u of %.500s", i - j->first_subtask[v], j->plan.vertices[v].ops[0]->uid);
    }
    ck_log_line(j->proc->log, CK_LOG_WARN, "%s: checkpoint %llu was given up: %s%s%s%s (%u not acknowledged)",
                j->cfg.name, (unsigned long long)a->checkpoint, a->reason, j->disk_error.msg[0] ? ": " : "",
                j->disk_error.msg, who, missing);
}

static void tell_abort(ck_job *j, uint64_t checkpoint, const ck_job_acks *acks) {
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        bool gone = acks && acks->reports[i] && acks->reports[i]->gone;
        ck_job_tell(j, i, &(ck_tell){.kind = CK_TELL_ABORT, .checkpoint = checkpoint, .anew = gone});
    }
}

static void carry_out(ck_job *j, const ck_checkpoints_action *a) {
    ck_job_acks *acks = find_acks(j, a->checkpoint);
    switch (a->kind) {
    case CK_CKPT_DO_TRIGGER: trigger(j, a); break;
    case CK_CKPT_DO_OVERTAKE: overtake(j, a); break;
    case CK_CKPT_DO_WRITE_MANIFEST:
        if (acks->overtook && ends_are_mixed(j, acks)) {
            j->mixed_ends = a->checkpoint;
            break;
        }
        acks->acked_us = ck_mono_us(j->proc);
        disk(j, CK_DISK_MANIFEST, a->checkpoint, acks);
        break;
    case CK_CKPT_DO_COMPLETED:
        tell_all(j, (ck_tell){.kind = CK_TELL_COMPLETED, .checkpoint = a->checkpoint, .stop = a->stop});
        break;
    case CK_CKPT_DO_COMMIT: disk(j, CK_DISK_COMMIT, a->checkpoint, acks); break;
    case CK_CKPT_DO_MARK_COMMITTED: disk(j, CK_DISK_MARK, a->checkpoint, NULL); break;
    case CK_CKPT_DO_COMMITTED:
        j->disk_error = CK_ERROR_INIT; /* what failed before is behind us */
        tell_all(j, (ck_tell){.kind = CK_TELL_COMMITTED, .checkpoint = a->checkpoint});
        drop_acks(j, 0, a->checkpoint);
        break;
    case CK_CKPT_DO_ABORT:
        log_abort(j, a, acks);
        tell_abort(j, a->checkpoint, acks);
        drop_acks(j, a->checkpoint, a->checkpoint);
        break;
    case CK_CKPT_DO_RETAIN: disk(j, CK_DISK_RETAIN, 0, NULL); break;
    case CK_CKPT_DO_SAVEPOINT_DONE: savepoint_done(j, a->request, a->status, a->checkpoint, a->reason); break;
    case CK_CKPT_DO_FINISHED: ck_job_begin_end(j, CK_JOB_FINISHED); break;
    case CK_CKPT_DO_FAIL_JOB: fail_by_checkpoints(j, a); break;
    }
}

static void feed(ck_job *j, ck_checkpoints_event ev) {
    const ck_checkpoints_action *actions;
    if (j->ending) return;
    uint32_t n = ck_checkpoints_step(j->checkpoints, ck_mono_us(j->proc), &ev, &actions);
    for (uint32_t i = 0; i < n && !j->ending; i++) carry_out(j, &actions[i]);
    while (j->failed_trigger && !j->ending) {
        uint64_t checkpoint = j->failed_trigger;
        j->failed_trigger = 0;
        feed(j, (ck_checkpoints_event){.kind = CK_CKPT_NACK, .checkpoint = checkpoint, .status = CK_IO});
    }
    if (!j->mixed_ends || j->ending) return;
    uint64_t mixed = j->mixed_ends;
    j->mixed_ends = 0;
    feed(j, (ck_checkpoints_event){.kind = CK_CKPT_ENDS_MIXED, .checkpoint = mixed});
}

/* ---- reports ---- */

static void on_ack(ck_job *j, ck_report *r) {
    ck_job_acks *acks = find_acks(j, r->checkpoint);
    uint32_t number = r->subtask;
    if (!acks || acks->reports[number] || j->ending) {
        ck_report_free(r);
        return;
    }
    acks->reports[number] = r;
    feed(j, (ck_checkpoints_event){.kind = CK_CKPT_ACK, .checkpoint = r->checkpoint, .subtask = number});
}

static void on_nack(ck_job *j, ck_report *r) {
    ck_checkpoints_event ev = {.kind = CK_CKPT_NACK,
                               .checkpoint = r->checkpoint,
                               .subtask = r->subtask,
                               .status = r->error.status,
                               .retriable = r->error.retriable,
                               .fatal = r->error.fatal};
    if (find_acks(j, r->checkpoint)) j->disk_error = r->error;
    ck_report_free(r);
    feed(j, ev);
}

static void on_detached(ck_job *j, uint32_t subtask) {
    ck_checkpoints_view v;
    if (j->ending) return;
    j->detached[subtask] = true;
    ck_checkpoints_look(j->checkpoints, &v);
    if (!v.pending || !ck_checkpoints_waits_for(j->checkpoints, subtask)) return;
    ck_tell what = {
        .kind = CK_TELL_TRIGGER, .checkpoint = v.pending, .barrier = v.pending_kind, .overtakes = v.pending_overtakes};
    ck_job_tell(j, subtask, &what);
}

/* Takes r. */
void ck_job_take_report(ck_job *j, ck_report *r) {
    switch (r->kind) {
    case CK_REPORT_ACK: on_ack(j, r); return; /* keeps it */
    case CK_REPORT_NACK: on_nack(j, r); return;
    case CK_REPORT_FINISHED:
        feed(j, (ck_checkpoints_event){.kind = CK_CKPT_SUBTASK_FINISHED, .subtask = r->subtask});
        break;
    case CK_REPORT_DETACHED: on_detached(j, r->subtask); break;
    case CK_REPORT_FAILED: ck_job_fail(j, &r->error); break;
    }
    ck_report_free(r);
}

/* That another follower is gone may be the end of the job on its way here: only the leader knows. */
static void on_report(ck_job *j, ck_report *r) {
    if (!ck_job_follows(j) || (r->kind == CK_REPORT_FAILED && r != &j->peer_failed)) {
        ck_job_take_report(j, r);
        return;
    }
    if (!j->ending) ck_job_pass_on(j, r);
    ck_report_free(r);
}

void ck_job_report(void *job, ck_report *r) {
    ck_job *j = job;
    ck_mailbox_post(&j->reports, &r->msg);
    ck_task_notify(&j->actor);
}

void ck_job_link_retired(void *job) {
    ck_job *j = job;
    atomic_fetch_sub(&j->live_tasks, 1);
    ck_task_notify(&j->actor);
    ck_job_unref(j);
}

void ck_job_subtask_retired(void *job, ck_subtask *s) {
    (void)s;
    ck_job_link_retired(job);
}

void ck_job_link_failed(void *job, uint32_t peer, const ck_error *err) {
    ck_job *j = job;
    bool decides = !ck_job_follows(j) || peer == 0;
    if (atomic_exchange(decides ? &j->link_told : &j->peer_told, true)) return;
    ck_report *r = decides ? &j->link_failed : &j->peer_failed;
    *r = (ck_report){.kind = CK_REPORT_FAILED, .error = *err};
    ck_job_report(j, r);
}

void ck_job_disk_finished(ck_job *j, ck_job_disk *d) {
    static const ck_checkpoints_event_kind good[] = {[CK_DISK_MANIFEST] = CK_CKPT_MANIFEST_DONE,
                                                     [CK_DISK_COMMIT] = CK_CKPT_COMMIT_DONE,
                                                     [CK_DISK_MARK] = CK_CKPT_MARK_DONE};
    static const ck_checkpoints_event_kind bad[] = {[CK_DISK_MANIFEST] = CK_CKPT_MANIFEST_FAILED,
                                                    [CK_DISK_COMMIT] = CK_CKPT_COMMIT_FAILED,
                                                    [CK_DISK_MARK] = CK_CKPT_MARK_FAILED};
    if (d->kind == CK_DISK_CLOSE) {
        j->closed = true;
        return;
    }
    if (d->status != CK_OK && d->kind == CK_DISK_RETAIN) {
        ck_log_line(j->proc->log, CK_LOG_WARN, "%s: old checkpoints stay for now: %s", j->cfg.name, d->error.msg);
        return;
    }
    if (d->kind == CK_DISK_RETAIN) return;
    if (d->status != CK_OK) j->disk_error = d->error;
    feed(j, (ck_checkpoints_event){.kind = d->status == CK_OK ? good[d->kind] : bad[d->kind],
                                   .checkpoint = d->checkpoint,
                                   .status = d->status,
                                   .retriable = d->error.retriable,
                                   .fatal = d->error.fatal});
}

/* ---- the step ---- */

/* One request that is new, or that nobody waits for any more. */
static bool next_request(ck_job *j, ck_checkpoints_event *ev) {
    bool found = false;
    pthread_mutex_lock(&j->lock);
    for (ck_job_savepoint_wait **at = &j->savepoints; *at && !found;) {
        ck_job_savepoint_wait *w = *at;
        if (w->abandoned) {
            *ev = (ck_checkpoints_event){.kind = CK_CKPT_WITHDRAW, .request = w->request};
            found = w->asked;
            *at = w->next;
            ck_free(j->mem, w, sizeof *w);
            continue;
        }
        if (!w->asked) {
            *ev = (ck_checkpoints_event){
                .kind = w->stop ? CK_CKPT_STOP : CK_CKPT_SAVEPOINT, .request = w->request, .checkpoint = w->above};
            w->asked = found = true;
        }
        at = &w->next;
    }
    pthread_mutex_unlock(&j->lock);
    return found;
}

static void ask_for_savepoints(ck_job *j) {
    ck_checkpoints_event ev;
    while (next_request(j, &ev)) feed(j, ev);
}

static void note_progress(ck_job *j) {
    ck_checkpoints_view v;
    ck_checkpoints_look(j->checkpoints, &v);
    atomic_store_explicit(&j->checkpoints_completed, v.completed_count, memory_order_relaxed);
    atomic_store_explicit(&j->last_checkpoint, v.last_completed, memory_order_relaxed);
}

/* Everything has retired: close the outside, then tell. */
static ck_step finish(ck_job *j) {
    if (!j->closing) {
        j->closing = true;
        if (ck_job_do_disk(j, CK_DISK_CLOSE, 0, NULL) == CK_OK) return CK_STEP_WAIT_IO;
        ck_job_close_outside(j); /* without memory for a message: here, late is better than never */
        j->closed = true;
    }
    if (!j->closed) return CK_STEP_WAIT_IO;
    savepoint_done(j, 0, CK_CANCELLED, 0, "the job has ended");
    atomic_store(&j->state, j->outcome);
    if (j->cfg.on_end) j->cfg.on_end(j->cfg.on_end_arg, j);
    return CK_STEP_DONE;
}

static ck_step step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    ck_job *j = (ck_job *)t;
    (void)q;
    /* In this order: what a peer said stands before the report that its link broke. */
    ck_msg *reports = ck_mailbox_take(&j->reports);
    ck_job_hear_peers(j);
    for (ck_msg *m = reports, *next; m; m = next) {
        next = m->next;
        on_report(j, (ck_report *)m);
    }
    ck_job_take_disk_results(j);
    if (atomic_load(&j->cancel)) ck_job_begin_end(j, CK_JOB_CANCELLED);
    if (atomic_exchange(&j->savepoint_asked, false)) ask_for_savepoints(j);
    if (!j->ending && ck_mono_us(j->proc) >= ck_checkpoints_deadline(j->checkpoints))
        feed(j, (ck_checkpoints_event){.kind = CK_CKPT_TICK});
    note_progress(j);
    if (j->ending) {
        bool quiet = atomic_load(&j->live_tasks) == 0 && (j->disk_jobs == 0 || j->closing);
        return quiet ? finish(j) : CK_STEP_NEED_INPUT;
    }
    *until_us = ck_checkpoints_deadline(j->checkpoints);
    return CK_STEP_IDLE_UNTIL;
}

/* The job's last word: from here on the scheduler touches it no more. */
static void retired(ck_task *t) {
    ck_job *j = (ck_job *)t;
    pthread_mutex_lock(&j->lock);
    j->ended = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
    ck_job_unref(j);
}

/* Above every id in the directory, and above the one restored from, which may stand in another directory: barriers at
 * or below it are stale. */
static uint64_t next_id(const ck_job *j) {
    const ck_checkpoint_region region = ck_job_region_of_dir(j);
    uint64_t id = j->dir ? ck_checkpoint_dir_next_id(j->dir) : 1;
    if (j->restored && j->restored->checkpoint >= id) id = j->restored->checkpoint + 1;
    return ck_checkpoint_region_id(&region, id ? id : 1);
}

ck_status ck_job_make_actor(ck_job *j, ck_error *err) {
    const ck_checkpoint_config *c = &j->cfg.checkpoint;
    const ck_checkpoint_region region = ck_job_region_of_dir(j);
    ck_checkpoints_config cfg = {.enabled = j->dir && !ck_job_follows(j),
                                 .interval_us = c->interval_us,
                                 .first_at_once = j->begins_now,
                                 .timeout_us = c->timeout_us,
                                 .final_timeout_us = c->final_timeout_us,
                                 .tolerable_failed = c->tolerable_failed,
                                 .alignment = c->alignment,
                                 .stall_us = c->stall_us,
                                 .subtasks = j->subtask_count,
                                 .next_id = next_id(j),
                                 .id_step = ck_checkpoint_region_step(&region)};
    CK_TRY(ck_checkpoints_new(j->mem, &cfg, ck_mono_us(j->proc), &j->checkpoints, err));
    j->detached = ck_arena_array(&j->arena, j->subtask_count, sizeof *j->detached);
    if (!j->detached) return ck_nomem(err, j->mem, j->subtask_count);
    j->manifest_lane.end = &j->manifest_lane.first;
    j->commit_lane.end = &j->commit_lane.first;
    j->actor.step = step;
    j->actor.retired = retired;
    if (ck_task_add(&j->actor, j->scheduler) != CK_OK) {
        j->actor.scheduler = NULL;
        return ck_nomem(err, j->mem, 0);
    }
    return CK_OK;
}
