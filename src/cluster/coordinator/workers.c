/* Who is there. A worker is known by its id, and one process of it by its incarnation: when the id comes back with
 * another one, the old process and all it ran are gone. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

worker *workers_of_conn(const ck_coordinator *c, uint64_t conn) {
    for (worker *w = c->workers; w; w = w->next)
        if (w->conn == conn) return w;
    return NULL;
}

static worker *find(const ck_coordinator *c, ck_view id) {
    for (worker *w = c->workers; w; w = w->next)
        if (ck_view_is(id, w->id)) return w;
    return NULL;
}

void workers_lose(ck_coordinator *c, worker *w, const char *why) {
    worker **link = &c->workers;
    ck_log_line(c->cfg.log, CK_LOG_WARN, "%s: %s", w->id, why);
    while (*link != w) link = &(*link)->next;
    *link = w->next;
    if (!w->next) c->workers_end = link;
    c->worker_count--;
    if (w->conn) coordinator_act(c, CK_ACTION_CLOSE, w->conn, 0, NULL);
    w->conn = 0; /* nothing is sent there for a region that ends with another's */
    for (job *j = c->jobs; j; j = j->next) job_lose_worker(c, j, w, why);
    ck_free(c->cfg.mem, w, sizeof *w);
}

void workers_watch(ck_coordinator *c) {
    for (worker *w = c->workers, *next; w; w = next) {
        next = w->next;
        if (c->now_us - w->last_seen_us > c->cfg.heartbeat_timeout_us)
            workers_lose(c, w, "worker lost (heartbeat timeout)");
        else if (!w->conn) /* a process that dies may close its connection before the address it can be probed at */
            coordinator_act(c, CK_ACTION_PROBE, 0, w->incarnation, w->address);
    }
}

/* ---- registration ---- */

static worker *add(ck_coordinator *c, const ck_msg_register *m) {
    worker *w = ck_alloc_zero(c->cfg.mem, sizeof *w);
    if (!w) {
        c->out_of_memory = true;
        return NULL;
    }
    snprintf(w->id, sizeof w->id, "%.*s", (int)m->worker.n, m->worker.p);
    w->incarnation = m->incarnation;
    *c->workers_end = w, c->workers_end = &w->next;
    c->worker_count++;
    return w;
}

static void welcome(ck_coordinator *c, const worker *w) {
    coordinator_send(c, w->conn,
                     &(ck_message){.kind = CK_MSG_WELCOME,
                                   .as.welcome = {.fence = coordinator_fence(c, NULL),
                                                  .heartbeat_ms = (uint64_t)(c->cfg.heartbeat_timeout_us / 3000),
                                                  .timeout_ms = (uint64_t)(c->cfg.heartbeat_timeout_us / 1000)}});
}

/* What a worker says it runs, of one attempt; NULL: nothing. */
static const ck_msg_hosted *hosted_of(const ck_msg_register *m, const job *j) {
    const ck_msg_hosted *h = m->hosted.items;
    for (uint32_t i = 0; i < m->hosted.count; i++)
        if (h[i].job == j->id && h[i].attempt == j->attempt) return &h[i];
    return NULL;
}

/* What was said while the connection was down is said again. */
static void take_up(ck_coordinator *c, job *j, uint32_t host, const ck_msg_hosted *hosted) {
    job_host *h = &j->hosts[host];
    h->ready = hosted->phase >= CK_HOST_READY;
    snprintf(h->address, sizeof h->address, "%.*s", (int)hosted->address.n, hosted->address.p);
    coordinator_on_checkpoint(c, j, hosted->checkpoint);
    if (job_is_over(j) || j->state == JOB_DRAINING) {
        restart_cancel_host(c, j, host);
        return;
    }
    for (uint32_t i = 0; h->ready && i < j->task_count; i++)
        if (j->tasks[i].host == host && j->tasks[i].state == TASK_DEPLOYED) j->tasks[i].state = TASK_RUNNING;
    if (j->state == JOB_RUNNING && hosted->phase == CK_HOST_READY) deploy_start_host(c, j, host);
    deploy_check_ready(c, j);
}

static uint32_t active_on(const job *j, uint32_t host) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->task_count; i++) n += j->tasks[i].host == host && task_is_active(&j->tasks[i]);
    return n;
}

/* Each job compares what it expects of the worker with what runs there. */
static void compare(ck_coordinator *c, job *j, worker *w, const ck_msg_register *m) {
    for (uint32_t h = 0; h < j->host_count; h++) {
        job_host *host = &j->hosts[h];
        if (strcmp(host->worker_id, w->id) != 0) continue;
        uint32_t active = active_on(j, h);
        if (host->worker != w && (host->worker || !active)) continue;
        const ck_msg_hosted *hosted = host->incarnation == w->incarnation ? hosted_of(m, j) : NULL;
        if (!host->worker) { /* after a change of leaders */
            host->worker = w;
            w->used += active;
        }
        if (hosted)
            take_up(c, j, h, hosted);
        else
            job_lose_host(c, j, h, "the worker does not run it any more");
        return;
    }
}

/* Hosts of another attempt, or of no job there is: they are told to end. */
static void cancel_strays(ck_coordinator *c, const worker *w, const ck_msg_register *m) {
    const ck_msg_hosted *h = m->hosted.items;
    for (uint32_t i = 0; i < m->hosted.count; i++) {
        job *j = job_find(c, h[i].job);
        bool ours = false;
        for (uint32_t k = 0; j && j->attempt == h[i].attempt && k < j->host_count; k++) ours |= j->hosts[k].worker == w;
        if (ours) continue;
        coordinator_send(
            c, w->conn,
            &(ck_message){.kind = CK_MSG_CANCEL_JOB, .as.cancel_job.fence = {c->cfg.epoch, h[i].job, h[i].attempt}});
    }
}

ck_status workers_register(ck_coordinator *c, uint64_t conn, const ck_msg_register *m, ck_error *err) {
    if (m->worker.n == 0 || m->incarnation == 0 || m->slots == 0)
        return ck_fail(err, CK_CORRUPT, "a REGISTER without a name, an incarnation or slots");
    if (m->fence.epoch > c->cfg.epoch)
        return ck_fail(err, CK_REFUSED, "worker %.*s has heard leader %llu, and this is %llu", (int)m->worker.n,
                       m->worker.p, (unsigned long long)m->fence.epoch, (unsigned long long)c->cfg.epoch);
    if (workers_of_conn(c, conn)) return ck_fail(err, CK_CORRUPT, "a second REGISTER over one connection");
    worker *w = find(c, m->worker);
    if (w && w->incarnation == m->incarnation && m->turn < w->turn)
        return ck_fail(err, CK_REFUSED, "worker %s has registered over another connection since", w->id);
    if (w && w->incarnation != m->incarnation) {
        workers_lose(c, w, "worker lost (registered again)");
        w = NULL;
    }
    if (!w && c->worker_count == CK_CLUSTER_WORKERS_MAX)
        return ck_fail(err, CK_REFUSED, "there are %u workers, and there cannot be more", c->worker_count);
    if (w && w->conn) coordinator_act(c, CK_ACTION_CLOSE, w->conn, 0, NULL);
    if (!w) w = add(c, m);
    if (!w) return CK_OK;
    w->conn = conn;
    w->turn = m->turn;
    w->slots = (uint32_t)m->slots;
    w->last_seen_us = c->now_us;
    snprintf(w->address, sizeof w->address, "%.*s", (int)m->address.n, m->address.p);
    welcome(c, w);
    for (job *j = c->jobs; j; j = j->next) compare(c, j, w, m);
    cancel_strays(c, w, m);
    return CK_OK;
}
