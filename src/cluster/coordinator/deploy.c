/* From tasks without a place to running ones: round robin over free slots, one DEPLOY a worker, and when every expected
 * task is accounted for, START with the addresses of all. */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

uint32_t deploy_free_slots(const ck_coordinator *c) {
    uint32_t n = 0;
    for (const worker *w = c->workers; w; w = w->next) n += w->conn && w->used < w->slots ? w->slots - w->used : 0;
    return n;
}

uint32_t deploy_needs(const job *j) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->task_count; i++) n += j->tasks[i].state == TASK_RESTART_PENDING;
    return n;
}

/* ---- placement ---- */

/* The next worker with a free slot, in turn. */
static worker *next_worker(ck_coordinator *c) {
    for (uint32_t tries = 0; tries < c->worker_count; tries++) {
        uint32_t place = c->next_place++ % c->worker_count;
        worker *w = c->workers;
        while (place--) w = w->next;
        if (w->conn && w->used < w->slots) return w;
    }
    return NULL;
}

static uint32_t host_of(job *j, worker *w) {
    for (uint32_t h = 0; h < j->host_count; h++)
        if (j->hosts[h].worker == w) return h;
    job_host *h = &j->hosts[j->host_count];
    *h = (job_host){.worker = w, .incarnation = w->incarnation};
    snprintf(h->worker_id, sizeof h->worker_id, "%s", w->id);
    return j->host_count++;
}

static void place(ck_coordinator *c, job *j) {
    j->host_count = 0;
    for (uint32_t i = 0; i < j->task_count; i++) {
        task *t = &j->tasks[i];
        t->host = NO_HOST;
        if (t->state != TASK_RESTART_PENDING) continue;
        worker *w = next_worker(c);
        t->host = host_of(j, w);
        t->state = TASK_DEPLOYED;
        t->error = NULL;
        w->used++;
    }
}

static void fail_without_slots(ck_coordinator *c, job *j, uint32_t needed) {
    for (uint32_t i = 0; i < j->task_count; i++)
        if (j->tasks[i].state == TASK_RESTART_PENDING)
            j->tasks[i].state = TASK_ENDED, j->tasks[i].error = "no slot available";
    job_add_error(j, "no slot available: %u are needed, %u are free", needed, deploy_free_slots(c));
    job_move(c, j, JOB_FAILED);
}

/* ---- DEPLOY ---- */

/* Built anew from the job's templates: role, index, config and peers stay, addresses come with START. */
static void send_deploy(ck_coordinator *c, const job *j, uint32_t host, const char *secret) {
    uint32_t *tasks = ck_arena_array(&c->scratch, j->task_count, sizeof *tasks), count = 0;
    uint32_t *placement = ck_arena_array(&c->scratch, j->task_count, sizeof *placement);
    if (!tasks || !placement) {
        c->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < j->task_count; i++) {
        placement[i] = j->tasks[i].host;
        if (j->tasks[i].host == host) tasks[count++] = i;
    }
    bool own = j->latest_completed_checkpoint_id > 0;
    ck_msg_deploy d = {
        .fence = coordinator_fence(c, j),
        .name = j->spec.name,
        .spec = j->lead->spec.spec,
        .checkpoint_dir = j->spec.checkpoint_dir,
        .restore_from_dir = own ? j->spec.checkpoint_dir : j->spec.restore_from_dir,
        .restore_from_checkpoint_id = own ? j->latest_completed_checkpoint_id : j->spec.restore_from_checkpoint_id,
        .process = host,
        .process_count = j->host_count,
        .tasks = {tasks, count},
        .placement = {placement, j->task_count},
        .roles = j->spec.roles,
        .skips = {j->skips, j->skip_count},
        .secret = ck_view_of(secret),
        .plugins = j->spec.plugins,
        .region = j->region,
        .region_count = j->lead->region_count > 1 ? j->lead->region_count : 0,
    };
    coordinator_send(c, j->hosts[host].worker->conn, &(ck_message){.kind = CK_MSG_DEPLOY, .as.deploy = d});
}

/* Nobody but the attempt's hosts ever has it: a leader that comes later does not need it. */
static void make_secret(ck_coordinator *c, char out[CK_CLUSTER_SECRET_CHARS + 1]) {
    ck_random *r = c->cfg.secrets;
    for (int i = 0; i < CK_CLUSTER_SECRET_CHARS / 16; i++)
        snprintf(out + i * 16, 17, "%016llx", (unsigned long long)(r ? r->next(r) : coordinator_random(c)));
}

static void begin_attempt(ck_coordinator *c, job *j) {
    place(c, j);
    j->attempt++;
    j->error[0] = 0;
    j->goal = GOAL_RUN;
    if (j->state != JOB_DEPLOYING) job_move(c, j, JOB_DEPLOYING);
}

static void tell(ck_coordinator *c, const job *j) {
    ck_log_line(c->cfg.log, CK_LOG_INFO, "job %llu (%s): attempt %llu is sent to its workers, of which there are %u",
                (unsigned long long)j->lead->id, j->lead->name, (unsigned long long)j->attempt, j->host_count);
    char secret[CK_CLUSTER_SECRET_CHARS + 1];
    make_secret(c, secret);
    for (uint32_t h = 0; h < j->host_count; h++) send_deploy(c, j, h, secret);
}

void deploy(ck_coordinator *c, job *j) {
    uint32_t needed = deploy_needs(j);
    if (needed > deploy_free_slots(c)) {
        fail_without_slots(c, j, needed);
        return;
    }
    begin_attempt(c, j);
    record_job(c, j); /* whoever leads next knows of the attempt before any worker does */
    tell(c, j);
}

/* One record says that all of it is there. */
void deploy_all(ck_coordinator *c, job *lead) {
    for (job *j = lead; j; j = j->next_region) begin_attempt(c, j);
    record_job(c, lead);
    for (const job *j = lead; j; j = j->next_region) tell(c, j);
}

/* ---- readiness ---- */

void deploy_start_host(ck_coordinator *c, const job *j, uint32_t host) {
    ck_msg_text *addresses = ck_arena_array(&c->scratch, j->host_count, sizeof *addresses);
    if (!addresses) {
        c->out_of_memory = true;
        return;
    }
    for (uint32_t h = 0; h < j->host_count; h++) addresses[h].text = ck_view_of(j->hosts[h].address);
    coordinator_send(
        c, j->hosts[host].worker->conn,
        &(ck_message){.kind = CK_MSG_START,
                      .as.start = {.fence = coordinator_fence(c, j), .addresses = {addresses, j->host_count}}});
}

void deploy_check_ready(ck_coordinator *c, job *j) {
    if (j->state != JOB_DEPLOYING && j->state != JOB_RECOVERING) return;
    for (uint32_t i = 0; i < j->task_count; i++) {
        const task *t = &j->tasks[i];
        if (t->state == TASK_DEPLOYED || (task_is_active(t) && !j->hosts[t->host].worker)) return;
    }
    if (j->state == JOB_RECOVERING) job_move(c, j, JOB_DEPLOYING);
    job_move(c, j, JOB_RUNNING);
    for (uint32_t h = 0; h < j->host_count; h++)
        if (j->hosts[h].worker && j->hosts[h].ready) deploy_start_host(c, j, h);
}
