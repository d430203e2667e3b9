/* Drains: everything that may work is told to end, and nothing is deployed before all of it has, or its worker is known
 * to be lost. What has not ended by the deadline fails the job: to deploy it again could let a task that is slow, but
 * alive, work twice. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

bool restart_allowed(const job *j) {
    return j->spec.checkpoint_dir.n &&
           j->restart_attempts < ck_effective_max_restarts(j->spec.max_restarts_on_worker_loss, j->spec.checkpoint_dir);
}

void restart_cancel_host(ck_coordinator *c, const job *j, uint32_t host) {
    const worker *w = j->hosts[host].worker;
    if (!w) return;
    coordinator_send(c, w->conn,
                     &(ck_message){.kind = CK_MSG_CANCEL_JOB, .as.cancel_job.fence = coordinator_fence(c, j)});
}

static void cancel_survivors(ck_coordinator *c, const job *j) {
    for (uint32_t h = 0; h < j->host_count; h++) {
        bool hosts = false;
        for (uint32_t i = 0; i < j->task_count; i++) hosts |= j->tasks[i].host == h && task_is_active(&j->tasks[i]);
        if (hosts) restart_cancel_host(c, j, h);
    }
}

/* Failing is not undone by a cancel, nor anything by a restart. */
static bool outranks(job_goal a, job_goal b) {
    static const int rank[GOAL_COUNT] = {
        [GOAL_RUN] = 0, [GOAL_RESTART] = 1, [GOAL_SUSPEND] = 2, [GOAL_CANCEL] = 3, [GOAL_FAIL] = 4};
    return rank[a] > rank[b];
}

void restart_drain(ck_coordinator *c, job *j, job_goal goal, bool whole) {
    bool draining = j->state == JOB_DRAINING;
    if (draining && !outranks(goal, j->goal)) return;
    for (uint32_t i = 0; i < j->task_count; i++) {
        task *t = &j->tasks[i];
        if (task_is_active(t)) t->state = TASK_DRAINING;
        if (goal == GOAL_RESTART && (t->state == TASK_ENDED || (whole && t->state == TASK_FINISHED)))
            t->state = TASK_RESTART_PENDING;
        if ((goal == GOAL_FAIL || goal == GOAL_CANCEL) && t->state == TASK_RESTART_PENDING) t->state = TASK_ENDED;
    }
    if (!draining) j->deadline_us = c->now_us + c->cfg.restart_drain_timeout_us;
    job_move(c, j, JOB_DRAINING);
    j->goal = goal;
    commands_attempt_over(c, j);
    record_job(c, j);
    cancel_survivors(c, j);
    restart_check_drained(c, j);
}

/* ---- drained ---- */

static void back_off(ck_coordinator *c, job *j) {
    const ck_coordinator_config *cfg = &c->cfg;
    bool stable = j->running_since_us && c->now_us - j->running_since_us >= cfg->restart_backoff_max_us;
    j->restarts_in_a_row = stable ? 1 : j->restarts_in_a_row + 1;
    j->running_since_us = 0;
    int64_t delay_us = ck_restart_delay_us(j->restarts_in_a_row, cfg->restart_backoff_us, cfg->restart_backoff_max_us,
                                           coordinator_random(c));
    if (delay_us < c->adopt_until_us - c->now_us) delay_us = c->adopt_until_us - c->now_us;
    j->deadline_us = c->now_us + delay_us;
    job_move(c, j, JOB_BACKING_OFF);
    if (delay_us == 0) deploy(c, j);
}

void restart_check_drained(ck_coordinator *c, job *j) {
    if (j->state != JOB_DRAINING || job_has(j, TASK_DRAINING)) return;
    switch (j->goal) {
    case GOAL_RESTART: back_off(c, j); break;
    case GOAL_SUSPEND: job_move(c, j, JOB_SUSPENDED); break;
    case GOAL_CANCEL: job_move(c, j, JOB_CANCELLED); break;
    default: job_move(c, j, JOB_FAILED); break;
    }
}

/* ---- deadlines ---- */

static void name_stuck(const ck_coordinator *c, const job *j, char *to, size_t room) {
    size_t n = (size_t)snprintf(to, room, "the drain took longer than %lld ms; still working:",
                                (long long)(c->cfg.restart_drain_timeout_us / 1000));
    for (uint32_t i = 0; i < j->task_count && n < room; i++) {
        const task *t = &j->tasks[i];
        const ck_msg_role *r = (const ck_msg_role *)j->spec.roles.items + t->role;
        if (t->state != TASK_DRAINING) continue;
        n += (size_t)snprintf(to + n, room - n, " %.*s[%u] on %s", (int)r->name.n, r->name.p, t->index,
                              j->hosts[t->host].worker_id);
    }
}

static void drain_is_overdue(ck_coordinator *c, job *j) {
    char stuck[CK_CLUSTER_ERROR_MAX / 2];
    name_stuck(c, j, stuck, sizeof stuck);
    job_add_error(j, "%s", stuck);
    job_move(c, j, j->goal == GOAL_CANCEL ? JOB_CANCELLED : JOB_FAILED);
}

/* Workers the last leader had, and that nobody has heard of: the time to come back is over. */
static void give_up_the_missing(ck_coordinator *c, job *j) {
    for (uint32_t h = 0; h < j->host_count; h++) {
        if (j->hosts[h].worker) continue;
        uint64_t attempt = j->attempt;
        job_lose_host(c, j, h, "worker lost (heartbeat timeout)");
        if (j->attempt != attempt) return;
    }
}

void restart_watch(ck_coordinator *c, job *j) {
    if (c->adopt_until_us && c->now_us >= c->adopt_until_us) give_up_the_missing(c, j);
    if (j->state == JOB_DRAINING && c->now_us >= j->deadline_us) drain_is_overdue(c, j);
    if (j->state == JOB_BACKING_OFF && c->now_us >= j->deadline_us) deploy(c, j);
    if (j->state == JOB_RUNNING && c->cfg.restart_budget_decay_us && j->restart_attempts &&
        c->now_us - j->running_since_us >= c->cfg.restart_budget_decay_us) {
        j->restart_attempts = 0;
        record_job(c, j);
    }
}

void restart_recover(ck_coordinator *c, job *j) {
    if (job_is_over(j)) return;
    if (regions_left_behind(j)) { /* the last leader had not come to this one */
        j->goal = GOAL_RUN;
        restart_drain(c, j, GOAL_CANCEL, false);
        return;
    }
    if (j->state == JOB_SUSPENDED || j->goal == GOAL_RUN) return;
    job_goal goal = j->goal;
    j->goal = GOAL_RUN;
    restart_drain(c, j, goal, false);
}
