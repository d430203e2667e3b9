/* A job's states, the ends of its tasks, and what becomes of a failure. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

/* ---- states ---- */

#define TO(state) (1u << JOB_##state)
static const unsigned moves[JOB_STATE_COUNT] = {
    [JOB_DEPLOYING] = TO(RUNNING) | TO(DRAINING) | TO(FINISHED),
    [JOB_RUNNING] = TO(DRAINING) | TO(FINISHED),
    [JOB_DRAINING] = TO(DRAINING) | TO(BACKING_OFF) | TO(SUSPENDED) | TO(FAILED) | TO(CANCELLED),
    [JOB_BACKING_OFF] = TO(DEPLOYING) | TO(DRAINING) | TO(FAILED),
    [JOB_RECOVERING] = TO(DEPLOYING) | TO(DRAINING) | TO(FINISHED),
    [JOB_SUSPENDED] = TO(DEPLOYING) | TO(DRAINING),
};

static const char *const names[JOB_STATE_COUNT] = {"deploying", "running",  "draining", "restarting", "recovering",
                                                   "suspended", "finished", "failed",   "cancelled"};

bool job_is_over(const job *j) {
    return j->state == JOB_FINISHED || j->state == JOB_FAILED || j->state == JOB_CANCELLED;
}

const char *job_state_text(const job *j) {
    static const char *const goals[GOAL_COUNT] = {"draining", "awaiting_restart", "suspending", "cancelling",
                                                  "failing"};
    return j->state == JOB_DRAINING ? goals[j->goal] : names[j->state];
}

static void say(const ck_coordinator *c, const job *j, const char *what) {
    const job *lead = j->lead;
    char region[32] = "";
    if (lead->region_count > 1) (void)snprintf(region, sizeof region, ", region %u,", j->region);
    ck_log_line(c->cfg.log, CK_LOG_WARN, "job %llu (%s)%s %s: %s", (unsigned long long)lead->id, lead->name, region,
                what, j->error);
}

void job_move(ck_coordinator *c, job *j, job_state to) {
    CK_ASSERT(moves[j->state] & 1u << to);
    j->state = to;
    if (to == JOB_RUNNING) j->running_since_us = c->now_us;
    if (to == JOB_RUNNING || to == JOB_FINISHED || to == JOB_CANCELLED)
        ck_log_line(c->cfg.log, CK_LOG_INFO, "job %llu (%s) is %s", (unsigned long long)j->lead->id, j->lead->name,
                    names[to]);
    if (!job_is_over(j) && to != JOB_SUSPENDED) return;
    j->goal = to == JOB_SUSPENDED ? GOAL_SUSPEND : GOAL_RUN;
    if (to == JOB_FAILED) say(c, j, "has failed");
    if (to == JOB_SUSPENDED) say(c, j, "is suspended");
    if (regions_are_over(j)) record_drop_description(c, j->lead); /* it is the most of a job, and of its record */
    record_job(c, j);
    if (to == JOB_FINISHED) commands_region_finished(c, j);
    if (to == JOB_FAILED) regions_follow(c, j);
    commands_job_ended(c, j);
}

job *job_find(const ck_coordinator *c, uint64_t id) {
    for (job *j = c->jobs; j; j = j->next)
        if (j->id == id) return j;
    return NULL;
}

static void vadd_error(job *j, const char *fmt, va_list ap) {
    size_t n = strlen(j->error);
    if (n) n += (size_t)snprintf(j->error + n, sizeof j->error - n, "; ");
    if (n < sizeof j->error) vsnprintf(j->error + n, sizeof j->error - n, fmt, ap);
}

void job_set_error(job *j, const char *fmt, ...) {
    if (j->error[0]) return;
    va_list ap;
    va_start(ap, fmt);
    vadd_error(j, fmt, ap);
    va_end(ap);
}

void job_add_error(job *j, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vadd_error(j, fmt, ap);
    va_end(ap);
}

/* ---- tasks ---- */

bool task_is_active(const task *t) {
    return t->state == TASK_DEPLOYED || t->state == TASK_RUNNING || t->state == TASK_DRAINING;
}

void task_release(job *j, task *t, task_state to) {
    CK_ASSERT(task_is_active(t));
    worker *w = j->hosts[t->host].worker;
    if (w) w->used--;
    t->state = to;
}

bool job_has(const job *j, task_state s) {
    for (uint32_t i = 0; i < j->task_count; i++)
        if (j->tasks[i].state == s) return true;
    return false;
}

static bool all_finished(const job *j) {
    for (uint32_t i = 0; i < j->task_count; i++)
        if (j->tasks[i].state != TASK_FINISHED) return false;
    return true;
}

/* Where a task that was told to end has ended. */
static task_state after_drain(const job *j, bool finished) {
    if (!job_is_over(j) && j->goal == GOAL_RESTART) return TASK_RESTART_PENDING;
    return finished ? TASK_FINISHED : TASK_ENDED;
}

/* ---- failures ---- */

static void fail_job(ck_coordinator *c, job *j, const char *why) {
    job_set_error(j, "%s", why);
    if (j->restart_attempts > 0)
        job_add_error(j, "the job was restarted %u times, and may not be once more", j->restart_attempts);
    restart_drain(c, j, GOAL_FAIL, false);
}

static void restart_after(ck_coordinator *c, job *j, const char *why, bool whole) {
    job_set_error(j, "%s", why);
    say(c, j, "restarts");
    restart_drain(c, j, GOAL_RESTART, whole);
}

static bool is_of(const ck_msg_ended *m, uint32_t number) {
    for (uint32_t i = 0; i < m->tasks.count; i++)
        if (m->tasks.items[i] == number) return true;
    return m->tasks.count == 0;
}

static bool has_failed(const job *j, uint32_t number, const worker *w, const ck_msg_ended *m) {
    const task *t = &j->tasks[number];
    return t->state == TASK_ENDED && t->host != NO_HOST && j->hosts[t->host].worker == w && is_of(m, number);
}

/* Tasks that failed together have each its own budget, and each spends one of it. false: one has none left. */
static bool take_retries(const ck_coordinator *c, job *j, const worker *w, const ck_msg_ended *m) {
    for (uint32_t i = 0; i < j->task_count; i++)
        if (has_failed(j, i, w, m) && j->tasks[i].retries >= c->cfg.max_restarts) return false;
    for (uint32_t i = 0; i < j->task_count; i++) j->tasks[i].retries += has_failed(j, i, w, m);
    return true;
}

/* The task's own budget comes first, then the job's. A record that fails will fail again: no budget is spent on it. */
static void on_failure(ck_coordinator *c, job *j, const worker *w, const ck_msg_ended *m) {
    char why[CK_CLUSTER_ERROR_MAX + 1];
    snprintf(why, sizeof why, "%.*s", (int)m->error.n, m->error.p);
    if (!why[0]) snprintf(why, sizeof why, "a task ended without a word");
    if (m->flags & CK_ENDED_FATAL) { /* whatever is left of the budget */
        job_set_error(j, "%s", why);
        restart_drain(c, j, GOAL_FAIL, false);
    } else if (!j->spec.checkpoint_dir.n) {
        fail_job(c, j, why);
    } else if (m->flags & CK_ENDED_DATA) {
        job_set_error(j, "%s", why);
        restart_drain(c, j, GOAL_SUSPEND, false);
    } else if (take_retries(c, j, w, m)) {
        restart_after(c, j, why, true);
    } else if (restart_allowed(j)) {
        j->restart_attempts++;
        restart_after(c, j, why, true);
    } else {
        fail_job(c, j, why);
    }
}

/* Its worker forgets it when it knows that it was heard: whoever leads next has to read of it. */
static void part_finished(ck_coordinator *c, job *j) {
    record_job(c, j);
    deploy_check_ready(c, j);
}

void job_on_ended(ck_coordinator *c, job *j, worker *w, const ck_msg_ended *m) {
    bool failed = false, finished = m->outcome == CK_TASK_FINISHED, waited = j->state == JOB_DRAINING || job_is_over(j);
    for (uint32_t i = 0; i < j->task_count; i++) {
        task *t = &j->tasks[i];
        if (!task_is_active(t) || j->hosts[t->host].worker != w || !is_of(m, i)) continue;
        if (waited) {
            task_release(j, t, after_drain(j, finished));
            continue;
        }
        task_release(j, t, finished ? TASK_FINISHED : TASK_ENDED);
        if (finished) continue;
        t->error = j->error;
        failed = true;
    }
    if (job_is_over(j)) return;
    if (waited)
        restart_check_drained(c, j);
    else if (failed)
        on_failure(c, j, w, m);
    else if (all_finished(j))
        job_move(c, j, JOB_FINISHED);
    else
        part_finished(c, j);
}

/* ---- loss ---- */

void job_lose_host(ck_coordinator *c, job *j, uint32_t host, const char *why) {
    bool waited = j->state == JOB_DRAINING || job_is_over(j), lost = false;
    bool restarts = !waited && restart_allowed(j);
    for (uint32_t i = 0; i < j->task_count; i++) {
        task *t = &j->tasks[i];
        if (!task_is_active(t) || t->host != host) continue;
        lost = true;
        task_release(j, t, waited ? after_drain(j, false) : restarts ? TASK_RESTART_PENDING : TASK_ENDED);
        if (t->state == TASK_ENDED) t->error = why;
    }
    j->hosts[host].worker = NULL;
    if (!lost || job_is_over(j)) return;
    if (waited) { /* the same restart, now of both losses */
        restart_check_drained(c, j);
    } else if (restarts) {
        j->restart_attempts++;
        restart_after(c, j, why, false);
    } else {
        fail_job(c, j, why);
    }
}

void job_lose_worker(ck_coordinator *c, job *j, const worker *w, const char *why) {
    for (uint32_t h = 0; h < j->host_count; h++) {
        if (j->hosts[h].worker != w) continue;
        job_lose_host(c, j, h, why);
        return; /* a worker has one host of a job; a new attempt may have other hosts already */
    }
}

/* ---- the end of what is known of a job ---- */

void job_free(ck_coordinator *c, job *lead) {
    job **link = &c->jobs, *last = lead;
    while (*link != lead) link = &(*link)->next;
    while (last->next_region) last = last->next_region;
    *link = last->next;
    if (!last->next) c->jobs_end = link;
    c->job_count--;
    record_free_job(c, lead);
}

static bool works(const job *lead) {
    for (const job *j = lead; j; j = j->next_region)
        for (uint32_t i = 0; i < j->task_count; i++)
            if (task_is_active(&j->tasks[i])) return true;
    return false;
}

static job *next_lead(const job *j) {
    do j = j->next;
    while (j && j->lead != j);
    return (job *)(uintptr_t)j;
}

void job_sweep(ck_coordinator *c) {
    uint32_t ended = 0;
    for (job *j = c->jobs; j; j = next_lead(j)) ended += regions_are_over(j) && !j->dropped;
    for (job *j = c->jobs, *next; j; j = next) {
        next = next_lead(j);
        if (!regions_are_over(j) || works(j)) continue;
        bool oldest = !j->dropped && ended > ENDED_JOBS_KEPT;
        if (!j->dropped && !oldest) continue;
        ended -= oldest;
        if (oldest) coordinator_act(c, CK_ACTION_FORGET, 0, j->id, NULL);
        job_free(c, j);
    }
}
