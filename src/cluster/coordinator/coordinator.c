/* Events come in, actions go out; what they mean is in the other files. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

enum { SCRATCH_BYTES_MAX = 64 << 20 };

ck_coordinator_config ck_coordinator_defaults(ck_mem mem, uint64_t epoch) {
    return (ck_coordinator_config){
        .mem = mem,
        .epoch = epoch,
        .watchdog_interval_us = 100000,
        .heartbeat_timeout_us = 2000000,
        .restart_drain_timeout_us = 30000000,
        .restart_backoff_us = 100000,
        .restart_backoff_max_us = 10000000,
    };
}

ck_status ck_coordinator_new(const ck_coordinator_config *cfg, ck_coordinator **out, ck_error *err) {
    ck_coordinator *c = ck_alloc_zero(cfg->mem, sizeof *c);
    *out = c;
    if (!c) return ck_nomem(err, cfg->mem, sizeof *c);
    c->cfg = *cfg;
    c->random = cfg->seed;
    c->next_job = c->next_request = 1;
    c->workers_end = &c->workers, c->jobs_end = &c->jobs, c->end = &c->first;
    ck_arena_init(&c->scratch, cfg->mem, SCRATCH_BYTES_MAX);
    return CK_OK;
}

void ck_coordinator_free(ck_coordinator *c) {
    if (!c) return;
    for (ck_action *a; (a = ck_coordinator_next(c)) != NULL;) ck_action_free(c, a);
    while (c->jobs) job_free(c, c->jobs->lead);
    for (worker *w; (w = c->workers) != NULL;) {
        c->workers = w->next;
        ck_free(c->cfg.mem, w, sizeof *w);
    }
    ck_arena_destroy(&c->scratch);
    ck_free(c->cfg.mem, c, sizeof *c);
}

/* ---- actions ---- */

static ck_action *push(ck_coordinator *c, ck_action_kind kind, uint64_t conn, uint64_t number) {
    ck_action *a = ck_alloc_zero(c->cfg.mem, sizeof *a);
    if (!a) {
        c->out_of_memory = true;
        return NULL;
    }
    a->kind = kind, a->conn = conn, a->number = number;
    *c->end = a, c->end = &a->next;
    return a;
}

static void push_frame(ck_coordinator *c, ck_action_kind kind, uint64_t conn, uint64_t number, const ck_message *m) {
    ck_action *a = push(c, kind, conn, number);
    if (a && ck_message_frame(c->cfg.mem, m, &a->frame, NULL) != CK_OK) c->out_of_memory = true;
}

void coordinator_send(ck_coordinator *c, uint64_t conn, const ck_message *m) {
    if (conn) push_frame(c, CK_ACTION_SEND, conn, 0, m);
}

void coordinator_persist(ck_coordinator *c, uint64_t number, const ck_message *m) {
    push_frame(c, CK_ACTION_PERSIST, 0, number, m);
}

void coordinator_act(ck_coordinator *c, ck_action_kind kind, uint64_t conn, uint64_t number, const char *address) {
    ck_action *a = push(c, kind, conn, number);
    if (a && address) snprintf(a->address, sizeof a->address, "%s", address);
}

ck_action *ck_coordinator_next(ck_coordinator *c) {
    ck_action *a = c->first;
    if (!a) return NULL;
    c->first = a->next;
    if (!c->first) c->end = &c->first;
    a->next = NULL;
    return a;
}

void ck_action_free(ck_coordinator *c, ck_action *a) {
    if (!a) return;
    ck_frame_free(&a->frame);
    ck_free(c->cfg.mem, a, sizeof *a);
}

uint64_t coordinator_random(ck_coordinator *c) { /* splitmix64 */
    c->random += 0x9E3779B97F4A7C15ULL;
    uint64_t z = c->random;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

ck_msg_fence coordinator_fence(const ck_coordinator *c, const job *j) {
    return (ck_msg_fence){c->cfg.epoch, j ? j->id : 0, j ? j->attempt : 0};
}

/* ---- events ---- */

static void arrive(ck_coordinator *c, int64_t now_us) {
    CK_ASSERT(now_us >= c->now_us);
    c->now_us = now_us;
}

static ck_status done(ck_coordinator *c, ck_error *err) {
    ck_arena_destroy(&c->scratch);
    ck_arena_init(&c->scratch, c->cfg.mem, SCRATCH_BYTES_MAX);
    job_sweep(c);
    return c->out_of_memory ? ck_nomem(err, c->cfg.mem, 0) : CK_OK;
}

ck_status ck_coordinator_begin(ck_coordinator *c, int64_t now_us, ck_error *err) {
    arrive(c, now_us);
    c->begun = true;
    c->last_tick_us = now_us;
    record_leader(c);
    c->adopt_until_us = now_us + (c->jobs ? c->cfg.heartbeat_timeout_us : 0);
    for (job *j = c->jobs; j; j = j->next) restart_recover(c, j);
    return done(c, err);
}

/* A process that was stopped has heard nothing, which says nothing of those who spoke. */
static void forgive(ck_coordinator *c) {
    int64_t late_us = c->now_us - c->last_tick_us;
    for (worker *w = c->workers; w; w = w->next) w->last_seen_us = c->now_us;
    for (job *j = c->jobs; j; j = j->next) j->deadline_us += late_us;
    c->adopt_until_us += late_us;
}

ck_status ck_coordinator_tick(ck_coordinator *c, int64_t now_us, ck_error *err) {
    arrive(c, now_us);
    if (now_us - c->last_tick_us > c->cfg.heartbeat_timeout_us / 2) forgive(c);
    c->last_tick_us = now_us;
    workers_watch(c);
    for (job *j = c->jobs; j; j = j->next) restart_watch(c, j);
    return done(c, err);
}

/* Words of another leader's time, of another attempt, or from a worker that is not in this attempt have no effect. */
static job *current_job(const ck_coordinator *c, const worker *w, const ck_msg_fence *f) {
    if (f->epoch != c->cfg.epoch) return NULL;
    job *j = job_find(c, f->job);
    if (!j || j->attempt != f->attempt) return NULL;
    for (uint32_t h = 0; h < j->host_count; h++)
        if (j->hosts[h].worker == w) return j;
    return NULL;
}

static void on_ready(ck_coordinator *c, job *j, const worker *w, const ck_msg_ready *m) {
    for (uint32_t h = 0; h < j->host_count; h++) {
        if (j->hosts[h].worker != w || j->hosts[h].ready) continue;
        snprintf(j->hosts[h].address, sizeof j->hosts[h].address, "%.*s", (int)m->address.n, m->address.p);
        j->hosts[h].ready = true;
        for (uint32_t i = 0; i < j->task_count; i++)
            if (j->tasks[i].host == h && j->tasks[i].state == TASK_DEPLOYED) j->tasks[i].state = TASK_RUNNING;
    }
    deploy_check_ready(c, j);
}

void coordinator_on_checkpoint(ck_coordinator *c, job *j, uint64_t checkpoint) {
    if (job_is_over(j) || checkpoint <= j->latest_completed_checkpoint_id) return; /* ids never go back */
    j->latest_completed_checkpoint_id = checkpoint;
    record_job(c, j);
}

/* A heartbeat is of no job; the progress in it is, each of its own. */
static void on_heartbeat(ck_coordinator *c, const worker *w, const ck_msg_heartbeat *m) {
    const ck_msg_progress *list = m->progress.items;
    for (uint32_t i = 0; i < m->progress.count; i++) {
        const ck_msg_fence f = {m->fence.epoch, list[i].fence.job, list[i].fence.attempt};
        job *j = current_job(c, w, &f);
        if (j) progress_heard(j, w, &list[i].progress);
    }
}

static ck_status worker_said(ck_coordinator *c, uint64_t conn, const ck_message *m, ck_error *err) {
    worker *w = workers_of_conn(c, conn);
    if (!w) return ck_fail(err, CK_REFUSED, "a %s from a worker that is not registered", ck_message_name(m->kind));
    w->last_seen_us = c->now_us;
    if (m->kind == CK_MSG_HEARTBEAT) {
        on_heartbeat(c, w, &m->as.heartbeat);
        coordinator_send(c, conn,
                         &(ck_message){.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence = coordinator_fence(c, NULL)});
        return CK_OK;
    }
    job *j = current_job(c, w, &m->as.fence);
    if (!j) return CK_OK;
    switch ((int)m->kind) {
    case CK_MSG_READY: on_ready(c, j, w, &m->as.ready); break;
    case CK_MSG_ENDED: job_on_ended(c, j, w, &m->as.ended); break;
    case CK_MSG_CHECKPOINT: coordinator_on_checkpoint(c, j, m->as.checkpoint.checkpoint); break;
    case CK_MSG_SAVEPOINT_ENDED: commands_savepoint_ended(c, j, &m->as.savepoint_ended); break;
    }
    return CK_OK;
}

static ck_status dispatch(ck_coordinator *c, uint64_t conn, const ck_message *m, ck_error *err) {
    switch ((int)m->kind) {
    case CK_MSG_REGISTER: return workers_register(c, conn, &m->as.reg, err);
    case CK_MSG_HEARTBEAT:
    case CK_MSG_READY:
    case CK_MSG_ENDED:
    case CK_MSG_CHECKPOINT:
    case CK_MSG_SAVEPOINT_ENDED: return worker_said(c, conn, m, err);
    case CK_MSG_SUBMIT: return commands_submit(c, conn, &m->as.submit, err);
    case CK_MSG_COMMAND: commands_hear(c, conn, &m->as.command); return CK_OK;
    default: return ck_fail(err, CK_CORRUPT, "a %s, which is not for a coordinator", ck_message_name(m->kind));
    }
}

ck_status ck_coordinator_heard(ck_coordinator *c, int64_t now_us, uint64_t conn, const ck_message *m, ck_error *err) {
    CK_ASSERT(c->begun && conn);
    arrive(c, now_us);
    ck_status s = dispatch(c, conn, m, err);
    ck_status after = done(c, err);
    return after != CK_OK ? after : s;
}

/* Evidence at once: whoever closed may have died, so somebody looks, and looks again at each watch. One that lives
 * comes back over another connection, and silence stays the bound. */
ck_status ck_coordinator_closed(ck_coordinator *c, int64_t now_us, uint64_t conn, ck_error *err) {
    arrive(c, now_us);
    commands_forget_conn(c, conn);
    worker *w = workers_of_conn(c, conn);
    if (w) {
        w->conn = 0;
        coordinator_act(c, CK_ACTION_PROBE, 0, w->incarnation, w->address);
    }
    return done(c, err);
}

ck_status ck_coordinator_unreachable(ck_coordinator *c, int64_t now_us, uint64_t incarnation, ck_error *err) {
    arrive(c, now_us);
    for (worker *w = c->workers, *next; w; w = next) {
        next = w->next;
        if (w->incarnation == incarnation && w->conn == 0) workers_lose(c, w, "worker lost (connection closed)");
    }
    return done(c, err);
}

uint32_t ck_coordinator_worker_count(const ck_coordinator *c) { return c->worker_count; }
uint32_t ck_coordinator_free_slots(const ck_coordinator *c) { return deploy_free_slots(c); }

bool ck_coordinator_names_plugin(const ck_coordinator *c, ck_view hash) {
    for (const job *j = c->jobs; j; j = j->next) {
        const ck_msg_plugin *plugins = j->spec.plugins.items;
        if (job_is_over(j)) continue;
        for (uint32_t i = 0; i < j->spec.plugins.count; i++)
            if (ck_view_eq(plugins[i].hash, hash)) return true;
    }
    return false;
}
