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

static ck_msg_job_info info_of(const job *j) {
    ck_msg_job_info i = {
        .id = j->id,
        .name = ck_view_of(j->name),
        .state = ck_view_of(job_state_text(j)),
        .error = ck_view_of(j->error),
        .attempt = j->attempt,
        .restarts = j->restart_attempts,
        .restarts_max = ck_effective_max_restarts(j->spec.max_restarts_on_worker_loss, j->spec.checkpoint_dir),
        .tasks = j->task_count,
        .checkpoint = j->latest_completed_checkpoint_id,
        .progress = progress_of(j),
    };
    for (uint32_t t = 0; t < j->task_count; t++) i.tasks_running += j->tasks[t].state == TASK_RUNNING;
    return i;
}

static void reply_job(ck_coordinator *c, uint64_t conn, const job *j, uint64_t checkpoint) {
    ck_msg_job_info info = info_of(j);
    ck_msg_reply r = {.fence = coordinator_fence(c, j), .checkpoint = checkpoint, .jobs = {&info, 1}};
    if (checkpoint) r.checkpoint_dir = j->spec.checkpoint_dir;
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

static void reply_status(ck_coordinator *c, uint64_t conn, const job *j) {
    static const char *const states[TASK_STATE_COUNT] = {"waiting",  "deployed", "running",
                                                         "draining", "finished", "ended"};
    ck_msg_task_info *tasks = ck_arena_array(&c->scratch, j->task_count, sizeof *tasks);
    if (!tasks) {
        c->out_of_memory = true;
        return;
    }
    uint32_t count = 0;
    for (size_t bytes = 0; count < j->task_count && bytes < STATUS_BYTES_MAX; count++) {
        const task *t = &j->tasks[count];
        const ck_msg_role *role = (const ck_msg_role *)j->spec.roles.items + t->role;
        ck_msg_task_info *i = &tasks[count];
        *i = (ck_msg_task_info){.role = role->name,
                                .index = t->index,
                                .state = ck_view_of(states[t->state]),
                                .worker = task_is_active(t) ? ck_view_of(j->hosts[t->host].worker_id) : CK_VIEW(""),
                                .error = ck_view_of(t->error ? t->error : "")};
        bytes += 64 + i->role.n + i->worker.n + i->error.n;
    }
    ck_msg_job_info info = info_of(j);
    ck_msg_reply r = {.fence = coordinator_fence(c, j), .jobs = {&info, 1}, .tasks = {tasks, count}};
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
        if (!j->dropped) jobs[count++] = info_of(j);
    ck_msg_reply r = {.fence = coordinator_fence(c, NULL), .jobs = {jobs, count}};
    coordinator_send(c, conn, &(ck_message){.kind = CK_MSG_REPLY, .as.reply = r});
}

/* ---- who waits ---- */

static bool wait_for(ck_coordinator *c, job *j, uint64_t conn, waiter_kind kind, uint64_t request) {
    if (j->waiter_count == WAITERS_MAX) {
        reply(c, conn, j->id, CK_FULL, "%u clients wait for job %llu already", WAITERS_MAX, (unsigned long long)j->id);
        return false;
    }
    j->waiters[j->waiter_count++] = (waiter){kind, conn, request};
    return true;
}

static waiter take_waiter(job *j, uint32_t i) {
    waiter w = j->waiters[i];
    j->waiters[i] = j->waiters[--j->waiter_count];
    return w;
}

void commands_job_ended(ck_coordinator *c, job *j) {
    for (uint32_t i = 0; i < j->waiter_count;)
        if (j->waiters[i].kind == WAIT_END)
            reply_job(c, take_waiter(j, i).conn, j, 0);
        else
            i++;
}

void commands_attempt_over(ck_coordinator *c, job *j) {
    for (uint32_t i = 0; i < j->waiter_count;)
        if (j->waiters[i].kind == WAIT_SAVEPOINT)
            reply(c, take_waiter(j, i).conn, j->id, CK_CANCELLED, "job %llu is %s: the savepoint was not completed",
                  (unsigned long long)j->id, job_state_text(j));
        else
            i++;
}

void commands_savepoint_ended(ck_coordinator *c, job *j, const ck_msg_savepoint_ended *m) {
    for (uint32_t i = 0; i < j->waiter_count; i++) {
        if (j->waiters[i].kind != WAIT_SAVEPOINT || j->waiters[i].request != m->request) continue;
        uint64_t conn = take_waiter(j, i).conn;
        if (m->checkpoint)
            reply_job(c, conn, j, m->checkpoint);
        else
            reply(c, conn, j->id, CK_IO, "%.*s", (int)m->error.n, m->error.p);
        return;
    }
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
        if (!job_is_over(j) && ck_view_is(m->name, j->name))
            return ck_fail(err, CK_EXISTS, "job %llu of the same name, %s, is %s", (unsigned long long)j->id, j->name,
                           job_state_text(j));
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
        s = ck_fail(&why, CK_REFUSED, "no slot available: the job needs %u, and %u of %u workers' are free", needed,
                    deploy_free_slots(c), c->worker_count);
    if (s == CK_OK) s = record_new_job(c, m, c->next_job, &j, &why);
    if (s != CK_OK) {
        reply(c, conn, 0, s, "%s", why.msg);
        return CK_OK;
    }
    c->next_job++;
    record_leader(c);
    deploy(c, j);
    if (m->wait)
        (void)wait_for(c, j, conn, WAIT_END, 0);
    else
        reply_job(c, conn, j, 0);
    return CK_OK;
}

/* ---- COMMAND ---- */

static void cancel(ck_coordinator *c, uint64_t conn, job *j) {
    if (job_is_over(j)) {
        reply(c, conn, j->id, CK_REFUSED, "job %llu has ended: it is %s", (unsigned long long)j->id, job_state_text(j));
        return;
    }
    restart_drain(c, j, GOAL_CANCEL, false);
    reply_job(c, conn, j, 0);
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
        reply(c, conn, j->id, CK_INVALID, "'%.*s' is not SPLIT:OFFSET", (int)record.n, record.p);
    else if (j->skip_count == CK_CLUSTER_SKIPS_MAX)
        reply(c, conn, j->id, CK_REFUSED, "job %llu goes on without %d records already, which is the most",
              (unsigned long long)j->id, (int)CK_CLUSTER_SKIPS_MAX);
    else
        return true;
    return false;
}

static void resume(ck_coordinator *c, uint64_t conn, job *j, const ck_msg_command *m) {
    if (j->state != JOB_SUSPENDED) {
        reply(c, conn, j->id, CK_REFUSED, "job %llu is not suspended: it is %s", (unsigned long long)j->id,
              job_state_text(j));
        return;
    }
    if (!may_skip(c, conn, j, m->skip_record)) return;
    if (j->task_count > deploy_free_slots(c)) {
        reply(c, conn, j->id, CK_REFUSED, "no slot available: the job needs %u, and %u are free", j->task_count,
              deploy_free_slots(c));
        return;
    }
    if (m->skip_record.n && !record_skip(j, m->skip_record)) {
        c->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < j->task_count; i++) j->tasks[i].state = TASK_RESTART_PENDING;
    deploy(c, j);
    reply_job(c, conn, j, 0);
}

/* At once, whatever its tasks do: they are told to end, and their slots stay taken until they have. */
static void drop(ck_coordinator *c, uint64_t conn, job *j) {
    if (!job_is_over(j)) restart_drain(c, j, GOAL_CANCEL, false);
    if (!job_is_over(j)) job_move(c, j, JOB_CANCELLED);
    j->dropped = true;
    coordinator_act(c, CK_ACTION_FORGET, 0, j->id, NULL);
    reply(c, conn, j->id, CK_OK, "%s", "");
}

/* Process 0 leads the checkpoints of an attempt. */
static void savepoint(ck_coordinator *c, uint64_t conn, job *j, const ck_msg_command *m) {
    if (j->state != JOB_RUNNING || !j->spec.checkpoint_dir.n) {
        reply(c, conn, j->id, CK_REFUSED, "job %llu is %s%s: no savepoint can be taken", (unsigned long long)j->id,
              job_state_text(j), j->spec.checkpoint_dir.n ? "" : " without a checkpoint directory");
        return;
    }
    uint64_t request = c->next_request++;
    if (!wait_for(c, j, conn, WAIT_SAVEPOINT, request)) return;
    ck_msg_take_savepoint t = {.fence = coordinator_fence(c, j),
                               .request = request,
                               .stop = m->command == CK_COMMAND_STOP,
                               .timeout_ms = m->timeout_ms};
    coordinator_send(c, j->hosts[0].worker ? j->hosts[0].worker->conn : 0,
                     &(ck_message){.kind = CK_MSG_TAKE_SAVEPOINT, .as.take_savepoint = t});
}

static void wait_end(ck_coordinator *c, uint64_t conn, job *j) {
    if (job_is_over(j) || j->state == JOB_SUSPENDED)
        reply_job(c, conn, j, 0);
    else
        (void)wait_for(c, j, conn, WAIT_END, 0);
}

void commands_hear(ck_coordinator *c, uint64_t conn, const ck_msg_command *m) {
    if (m->command == CK_COMMAND_LIST) {
        reply_list(c, conn);
        return;
    }
    job *j = job_find(c, m->fence.job);
    if (!j || j->dropped) {
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
