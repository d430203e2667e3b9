/* What clients ask, and who waits for an answer. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

#include "base/sha256.h"

enum { STATUS_BYTES_MAX = 8 << 20 }; /* of a job with more tasks than fit, the first ones are shown */

/* ---- answers ---- */

static void reply(ck_coordinator *c, uint64_t conn, uint64_t request, ck_status s, const char *fmt, ...)
    CK_PRINTF(5, 6);
static void reply(ck_coordinator *c, uint64_t conn, uint64_t request, ck_status s, const char *fmt, ...) {
    char text[CK_CLUSTER_ERROR_MAX + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ck_msg_reply r = {.fence = {c->cfg.epoch, request, 0}, .status = s, .error = ck_view_of(text)};
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

static ck_msg_region_info region_info(const job *j) {
    ck_msg_region_info i = {
        .state = ck_view_of(job_state_text(j)),
        .error = ck_view_of(j->error),
        .attempt = j->attempt,
        .restarts = j->restart_attempts,
        .tasks = j->task_count,
        .checkpoint = j->latest_completed_checkpoint_id,
    };
    for (uint32_t t = 0; t < j->task_count; t++) i.tasks_running += j->tasks[t].state == TASK_RUNNING;
    return i;
}

static ck_msg_job_info info_of(const job *lead) {
    ck_msg_job_info i = {
        .id = lead->id,
        .name = ck_view_of(lead->name),
        .state = ck_view_of(regions_state_text(lead)),
        .error = ck_view_of(regions_error(lead)),
        .restarts_max = ck_effective_max_restarts(lead->spec.max_restarts_on_worker_loss, lead->spec.checkpoint_dir),
        .checkpoint = regions_checkpoint(lead),
        .progress = progress_of(lead),
    };
    for (const job *j = lead; j; j = j->next_region) {
        const ck_msg_region_info r = region_info(j);
        if (r.attempt > i.attempt) i.attempt = r.attempt;
        if (r.restarts > i.restarts) i.restarts = r.restarts;
        i.tasks += r.tasks;
        i.tasks_running += r.tasks_running;
    }
    return i;
}

/* With its regions, where it has some. */
static ck_msg_job_info whole_info_of(ck_coordinator *c, const job *lead) {
    ck_msg_job_info i = info_of(lead);
    if (lead->region_count == 1) return i;
    ck_msg_region_info *regions = ck_arena_array(&c->scratch, lead->region_count, sizeof *regions);
    if (!regions) {
        c->out_of_memory = true;
        return i;
    }
    for (const job *j = lead; j; j = j->next_region) regions[j->region] = region_info(j);
    i.regions = (ck_proto_list){regions, lead->region_count};
    return i;
}

static void reply_job(ck_coordinator *c, uint64_t conn, const job *j, uint64_t checkpoint) {
    ck_msg_job_info info = whole_info_of(c, j);
    ck_msg_reply r = {.fence = coordinator_fence(c, j), .checkpoint = checkpoint, .jobs = {&info, 1}};
    if (checkpoint) r.checkpoint_dir = j->spec.checkpoint_dir;
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

static ck_msg_task_info task_info(const job *j, const task *t) {
    static const char *const states[TASK_STATE_COUNT] = {"waiting",  "deployed", "running",
                                                         "draining", "finished", "ended"};
    const ck_msg_role *role = (const ck_msg_role *)j->spec.roles.items + t->role;
    return (ck_msg_task_info){.role = role->name,
                              .index = t->index,
                              .region = j->region,
                              .state = ck_view_of(states[t->state]),
                              .worker = task_is_active(t) ? ck_view_of(j->hosts[t->host].worker_id) : CK_VIEW(""),
                              .error = ck_view_of(t->error ? t->error : "")};
}

static void reply_status(ck_coordinator *c, uint64_t conn, const job *lead) {
    ck_msg_job_info info = whole_info_of(c, lead);
    ck_msg_task_info *tasks = ck_arena_array(&c->scratch, (size_t)info.tasks, sizeof *tasks);
    if (!tasks) {
        c->out_of_memory = true;
        return;
    }
    uint32_t count = 0;
    size_t bytes = 0;
    for (const job *j = lead; j; j = j->next_region)
        for (uint32_t t = 0; t < j->task_count && bytes < STATUS_BYTES_MAX; t++) {
            const ck_msg_task_info i = task_info(j, &j->tasks[t]);
            bytes += 64 + i.role.n + i.worker.n + i.error.n;
            tasks[count++] = i;
        }
    ck_msg_reply r = {.fence = coordinator_fence(c, lead), .jobs = {&info, 1}, .tasks = {tasks, count}};
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

static void reply_list(ck_coordinator *c, uint64_t conn) {
    ck_msg_job_info *jobs = ck_arena_array(&c->scratch, c->job_count, sizeof *jobs);
    uint32_t count = 0;
    if (!jobs) {
        c->out_of_memory = true;
        return;
    }
    for (const job *j = c->jobs; j; j = j->next)
        if (j->lead == j && !j->dropped) jobs[count++] = info_of(j);
    ck_msg_reply r = {.fence = coordinator_fence(c, NULL), .jobs = {jobs, count}};
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

/* ---- who waits ---- */

static bool has_room(ck_coordinator *c, const job *j, uint64_t conn) {
    uint64_t id = j->lead->id;
    if (j->waiter_count < WAITERS_MAX) return true;
    reply(c, conn, id, CK_FULL, "%u clients wait for job %llu already", WAITERS_MAX, (unsigned long long)id);
    return false;
}

static void wait_for(job *j, waiter w) { j->waiters[j->waiter_count++] = w; }

static waiter take_waiter(job *j, uint32_t i) {
    waiter w = j->waiters[i];
    j->waiters[i] = j->waiters[--j->waiter_count];
    return w;
}

void commands_job_ended(ck_coordinator *c, job *j) {
    job *lead = j->lead;
    for (uint32_t i = 0; i < lead->waiter_count && regions_are_settled(lead);) {
        if (lead->waiters[i].kind == WAIT_SAVEPOINT) {
            i++;
            continue;
        }
        const waiter w = take_waiter(lead, i);
        reply_job(c, w.conn, lead, w.checkpoint);
    }
}

static waiter *savepoint_of(job *j, uint64_t request) {
    for (uint32_t i = 0; i < j->waiter_count; i++)
        if (j->waiters[i].kind == WAIT_SAVEPOINT && j->waiters[i].request == request) return &j->waiters[i];
    return NULL;
}

/* One region has none: then the job has none, whatever the others say later. */
static void give_up_savepoint(job *lead, uint64_t request) {
    waiter *w;
    for (job *r = lead; r; r = r->next_region)
        if ((w = savepoint_of(r, request)) != NULL) (void)take_waiter(r, (uint32_t)(w - r->waiters));
}

/* Who has asked for the job's end hears of it when it has come. */
static void reply_savepoint(ck_coordinator *c, job *lead, waiter w) {
    w.kind = WAIT_STOP;
    if (w.stop && !regions_are_over(lead) && lead->waiter_count < WAITERS_MAX)
        wait_for(lead, w);
    else
        reply_job(c, w.conn, lead, w.checkpoint);
}

/* One region has its own: the job's is there with the last one. */
static void savepoint_taken(ck_coordinator *c, job *j, waiter *at, uint64_t checkpoint) {
    waiter w = take_waiter(j, (uint32_t)(at - j->waiters)), *other;
    bool last = true;
    if (w.checkpoint < checkpoint) w.checkpoint = checkpoint;
    for (job *r = j->lead; r; r = r->next_region) {
        if (!(other = savepoint_of(r, w.request))) continue;
        other->checkpoint = w.checkpoint;
        last = false;
    }
    if (last) reply_savepoint(c, j->lead, w);
}

/* Of a stop that came to nothing: each region ends by itself, and nobody calls the others back. */
static const char *rest_of_stop(const job *lead, const waiter *w) {
    if ((!w->stop && w->kind != WAIT_STOP) || lead->region_count == 1) return "";
    return "; regions that have theirs end all the same: cancel the job and submit it again, and each goes on from its "
           "newest checkpoint";
}

static void give_up_stops(ck_coordinator *c, job *lead) {
    for (uint32_t i = 0; i < lead->waiter_count;) {
        if (lead->waiters[i].kind != WAIT_STOP) {
            i++;
            continue;
        }
        const waiter w = take_waiter(lead, i);
        reply(c, w.conn, lead->id, CK_CANCELLED,
              "savepoint %llu is complete, and job %llu did not end with it: it is %s%s",
              (unsigned long long)w.checkpoint, (unsigned long long)lead->id, regions_state_text(lead),
              rest_of_stop(lead, &w));
    }
}

void commands_attempt_over(ck_coordinator *c, job *j) {
    job *lead = j->lead;
    if (!job_is_over(j)) give_up_stops(c, lead);
    for (uint32_t i = 0; i < j->waiter_count;) {
        const waiter w = j->waiters[i];
        if (w.kind != WAIT_SAVEPOINT) {
            i++;
            continue;
        }
        give_up_savepoint(lead, w.request);
        reply(c, w.conn, lead->id, CK_CANCELLED, "job %llu is %s: the savepoint was not completed%s",
              (unsigned long long)lead->id, regions_state_text(lead), rest_of_stop(lead, &w));
    }
}

/* Nothing follows its last checkpoint, and nobody removes that. */
void commands_region_finished(ck_coordinator *c, job *j) {
    if (j->lead->region_count == 1) {
        commands_attempt_over(c, j);
        return;
    }
    for (uint32_t i = 0; i < j->waiter_count;)
        if (j->waiters[i].kind == WAIT_SAVEPOINT)
            savepoint_taken(c, j, &j->waiters[i], j->latest_completed_checkpoint_id);
        else
            i++;
}

void commands_savepoint_ended(ck_coordinator *c, job *j, const ck_msg_savepoint_ended *m) {
    waiter *w = savepoint_of(j, m->request);
    if (!w) return;
    if (m->checkpoint) {
        savepoint_taken(c, j, w, m->checkpoint);
        return;
    }
    const waiter asked = *w;
    give_up_savepoint(j->lead, m->request);
    reply(c, asked.conn, j->lead->id, CK_IO, "%.*s%s", (int)m->error.n, m->error.p, rest_of_stop(j->lead, &asked));
}

void commands_forget_conn(ck_coordinator *c, uint64_t conn) {
    for (job *j = c->jobs; j; j = j->next)
        for (uint32_t i = 0; i < j->waiter_count;)
            if (j->waiters[i].conn == conn)
                (void)take_waiter(j, i);
            else
                i++;
}

/* ---- SUBMIT ---- */

static ck_status check_plugins(const ck_msg_submit *m, ck_error *err) {
    const ck_msg_plugin *plugins = m->plugins.items;
    for (uint32_t i = 0; i < m->plugins.count; i++)
        if (!ck_sha256_is_hex(plugins[i].hash) || plugins[i].bytes == 0)
            return ck_fail(err, CK_INVALID, "a plugin that has no SHA-256, or no bytes");
    return CK_OK;
}

/* They are numbered without a gap, and no edge leads from one to another. */
static ck_status check_regions(const ck_msg_submit *m, ck_error *err) {
    const ck_msg_role *roles = m->roles.items;
    bool known[CK_CLUSTER_REGIONS_MAX] = {false};
    uint64_t count = 0;
    for (uint32_t i = 0; i < m->roles.count; i++) {
        count += !known[roles[i].region];
        known[roles[i].region] = true;
        for (uint32_t k = 0; k < roles[i].peers.count; k++)
            if (roles[roles[i].peers.items[k]].region != roles[i].region)
                return ck_fail(err, CK_INVALID, "a peer in another region");
    }
    for (uint32_t i = 0; i < m->roles.count; i++)
        if (roles[i].region >= count) return ck_fail(err, CK_INVALID, "a region without roles");
    return CK_OK;
}

static ck_status check(const ck_coordinator *c, const ck_msg_submit *m, uint32_t *tasks, ck_error *err) {
    const ck_msg_role *roles = m->roles.items;
    uint64_t n = 0;
    if (m->name.n == 0) return ck_fail(err, CK_INVALID, "a job without a name");
    if (m->max_restarts_on_worker_loss < CK_RESTART_AUTO || m->max_restarts_on_worker_loss > UINT32_MAX)
        return ck_fail(err, CK_INVALID, "a job with %lld restarts", (long long)m->max_restarts_on_worker_loss);
    for (uint32_t i = 0; i < m->roles.count; i++) {
        if (roles[i].parallelism == 0) return ck_fail(err, CK_INVALID, "a role without tasks");
        for (uint32_t k = 0; k < roles[i].peers.count; k++)
            if (roles[i].peers.items[k] >= m->roles.count) return ck_fail(err, CK_INVALID, "a peer that is no role");
        n += roles[i].parallelism;
    }
    if (n == 0) return ck_fail(err, CK_INVALID, "a job without tasks");
    CK_TRY(check_regions(m, err));
    if (n > CK_CLUSTER_TASKS_MAX)
        return ck_fail(err, CK_REFUSED, "the job has %llu tasks; at most %d are taken", (unsigned long long)n,
                       CK_CLUSTER_TASKS_MAX);
    CK_TRY(check_plugins(m, err));
    size_t bytes_max = c->cfg.job_bytes_max ? c->cfg.job_bytes_max : CK_CLUSTER_SPEC_MAX;
    if (ck_message_bytes(&(ck_message){.kind = CK_MSG_SUBMIT, .as.submit = *m}) > bytes_max)
        return ck_fail(err, CK_FULL, "the job's description is longer than %zu bytes", bytes_max);
    if (c->job_count >= CK_CLUSTER_JOBS_MAX)
        return ck_fail(err, CK_FULL, "there are %u jobs; drop some that have ended", c->job_count);
    *tasks = (uint32_t)n;
    return CK_OK;
}

/* A name is a job's directory of checkpoints to its user: two that run must not share one. */
static ck_status check_name(const ck_coordinator *c, const ck_msg_submit *m, ck_error *err) {
    for (const job *j = c->jobs; j; j = j->next)
        if (j->lead == j && !regions_are_over(j) && ck_view_is(m->name, j->name))
            return ck_fail(err, CK_EXISTS, "job %llu of the same name, %s, is %s", (unsigned long long)j->id, j->name,
                           regions_state_text(j));
    return CK_OK;
}

ck_status commands_submit(ck_coordinator *c, uint64_t conn, const ck_msg_submit *m, ck_error *err) {
    uint32_t needed = 0;
    job *j = NULL;
    ck_error why = CK_ERROR_INIT;
    (void)err;
    ck_status s = check(c, m, &needed, &why);
    if (s == CK_OK) s = check_name(c, m, &why);
    if (s == CK_OK && needed > deploy_free_slots(c))
        s = ck_fail(&why, CK_REFUSED, "no slot available: the job needs %u, and %u are free; workers here: %u", needed,
                    deploy_free_slots(c), c->worker_count);
    if (s == CK_OK) s = record_new_job(c, m, c->next_job, &j, &why);
    if (s != CK_OK) {
        reply(c, conn, 0, s, "%s", why.msg);
        return CK_OK;
    }
    c->next_job++;
    record_leader(c);
    deploy_all(c, j);
    if (m->wait)
        wait_for(j, (waiter){.kind = WAIT_END, .conn = conn});
    else
        reply_job(c, conn, j, 0);
    return CK_OK;
}

/* ---- COMMAND ---- */

static void cancel(ck_coordinator *c, uint64_t conn, job *lead) {
    if (regions_are_over(lead)) {
        reply(c, conn, lead->id, CK_REFUSED, "job %llu has ended: it is %s", (unsigned long long)lead->id,
              regions_state_text(lead));
        return;
    }
    for (job *j = lead; j; j = j->next_region)
        if (!job_is_over(j)) restart_drain(c, j, GOAL_CANCEL, false);
    reply_job(c, conn, lead, 0);
}

/* SPLIT:OFFSET, with digits behind the last colon. */
static bool names_a_record(ck_view v) {
    size_t digits = 0;
    while (digits < v.n && v.p[v.n - 1 - digits] >= '0' && v.p[v.n - 1 - digits] <= '9') digits++;
    return digits > 0 && digits < 20 && v.n > digits + 1 && v.p[v.n - 1 - digits] == ':';
}

/* false: answered. */
static bool may_skip(ck_coordinator *c, uint64_t conn, const job *j, ck_view record) {
    if (record.n == 0) return true;
    if (!names_a_record(record))
        reply(c, conn, j->lead->id, CK_INVALID, "'%.*s' is not SPLIT:OFFSET", (int)record.n, record.p);
    else if (j->skip_count == CK_CLUSTER_SKIPS_MAX)
        reply(c, conn, j->lead->id, CK_REFUSED, "job %llu goes on without %d records already, which is the most",
              (unsigned long long)j->lead->id, (int)CK_CLUSTER_SKIPS_MAX);
    else
        return true;
    return false;
}

/* false: answered. Those that are suspended; the others have gone on meanwhile. */
static bool may_resume(ck_coordinator *c, uint64_t conn, const job *lead, ck_view record) {
    uint32_t needed = 0;
    for (const job *j = lead; j; j = j->next_region) {
        if (j->state != JOB_SUSPENDED) continue;
        if (!may_skip(c, conn, j, record)) return false;
        needed += j->task_count;
    }
    if (needed == 0)
        reply(c, conn, lead->id, CK_REFUSED, "job %llu is not suspended: it is %s", (unsigned long long)lead->id,
              regions_state_text(lead));
    else if (needed > deploy_free_slots(c))
        reply(c, conn, lead->id, CK_REFUSED, "no slot available: the job needs %u, and %u are free", needed,
              deploy_free_slots(c));
    else
        return true;
    return false;
}

static void resume(ck_coordinator *c, uint64_t conn, job *lead, const ck_msg_command *m) {
    if (!may_resume(c, conn, lead, m->skip_record)) return;
    for (job *j = lead; j; j = j->next_region) {
        if (j->state != JOB_SUSPENDED) continue;
        if (m->skip_record.n && !record_skip(j, m->skip_record)) {
            c->out_of_memory = true;
            return;
        }
        for (uint32_t i = 0; i < j->task_count; i++) j->tasks[i].state = TASK_RESTART_PENDING;
        deploy(c, j);
    }
    reply_job(c, conn, lead, 0);
}

/* At once, whatever its tasks do: they are told to end, and their slots stay taken until they have. */
static void drop(ck_coordinator *c, uint64_t conn, job *lead) {
    for (job *j = lead; j; j = j->next_region) {
        if (!job_is_over(j)) restart_drain(c, j, GOAL_CANCEL, false);
        if (!job_is_over(j)) job_move(c, j, JOB_CANCELLED);
    }
    lead->dropped = true;
    coordinator_act(c, CK_ACTION_FORGET, 0, lead->id, NULL);
    reply(c, conn, lead->id, CK_OK, "%s", "");
}

/* false: answered. Those that have finished have their last checkpoint for one. */
static bool may_take_savepoint(ck_coordinator *c, uint64_t conn, const job *lead) {
    bool any = false, all = true;
    for (const job *j = lead; j; j = j->next_region) {
        any |= j->state == JOB_RUNNING;
        all &= j->state == JOB_RUNNING || j->state == JOB_FINISHED;
    }
    if (!any || !all || !lead->spec.checkpoint_dir.n) {
        reply(c, conn, lead->id, CK_REFUSED, "job %llu is %s%s: no savepoint can be taken",
              (unsigned long long)lead->id, regions_state_text(lead),
              lead->spec.checkpoint_dir.n ? "" : " without a checkpoint directory");
        return false;
    }
    for (const job *j = lead; j; j = j->next_region)
        if (!has_room(c, j, conn)) return false;
    return true;
}

/* Process 0 leads the checkpoints of an attempt. */
static void savepoint(ck_coordinator *c, uint64_t conn, job *lead, const ck_msg_command *m) {
    if (!may_take_savepoint(c, conn, lead)) return;
    const bool stop = m->command == CK_COMMAND_STOP;
    waiter w = {.kind = WAIT_SAVEPOINT, .conn = conn, .request = c->next_request++, .stop = stop};
    for (const job *j = lead; j; j = j->next_region)
        if (j->state == JOB_FINISHED && j->latest_completed_checkpoint_id > w.checkpoint)
            w.checkpoint = j->latest_completed_checkpoint_id;
    ck_msg_take_savepoint t = {.request = w.request,
                               .stop = stop,
                               .timeout_ms = m->timeout_ms,
                               .above = lead->region_count > 1 ? regions_checkpoint(lead) : 0};
    for (job *j = lead; j; j = j->next_region) {
        if (j->state != JOB_RUNNING) continue;
        wait_for(j, w);
        t.fence = coordinator_fence(c, j);
        coordinator_send(c, j->hosts[0].worker ? j->hosts[0].worker->conn : 0,
                         &(ck_message){.kind = CK_MSG_TAKE_SAVEPOINT, .as.take_savepoint = t});
    }
}

static void wait_end(ck_coordinator *c, uint64_t conn, job *lead) {
    if (regions_are_settled(lead))
        reply_job(c, conn, lead, 0);
    else if (has_room(c, lead, conn))
        wait_for(lead, (waiter){.kind = WAIT_END, .conn = conn});
}

void commands_hear(ck_coordinator *c, uint64_t conn, const ck_msg_command *m) {
    if (m->command == CK_COMMAND_LIST) {
        reply_list(c, conn);
        return;
    }
    job *j = job_find(c, m->fence.job);
    if (!j || j->lead != j || j->dropped) {
        reply(c, conn, m->fence.job, CK_NOTFOUND, "there is no job %llu", (unsigned long long)m->fence.job);
        return;
    }
    switch ((int)m->command) {
    case CK_COMMAND_STATUS: reply_status(c, conn, j); break;
    case CK_COMMAND_CANCEL: cancel(c, conn, j); break;
    case CK_COMMAND_RESUME: resume(c, conn, j, m); break;
    case CK_COMMAND_DROP: drop(c, conn, j); break;
    case CK_COMMAND_SAVEPOINT:
    case CK_COMMAND_STOP: savepoint(c, conn, j, m); break;
    case CK_COMMAND_WAIT: wait_end(c, conn, j); break;
    default: reply(c, conn, j->id, CK_INVALID, "an unknown command %llu", (unsigned long long)m->command); break;
    }
}
