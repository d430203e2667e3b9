/* A job as it is kept: its description as it was submitted, the sentinel of its restart policy and not what that
 * resolves to, the attempt, how far it was in a restart, and where its tasks are, so that the next leader finds them.
 */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

enum { JOB_BYTES_MAX = 64 << 20 };

void record_leader(ck_coordinator *c) {
    coordinator_persist(c, 0, &(ck_message){.kind = CK_MSG_RECORD_LEADER, .as.leader = {c->cfg.epoch, c->next_job}});
}

static bool describe_hosts(ck_coordinator *c, const job *j, ck_msg_record_job *r) {
    ck_msg_record_host *hosts = ck_arena_array(&c->scratch, j->host_count, sizeof *hosts);
    uint32_t *states = ck_arena_array(&c->scratch, j->task_count, sizeof *states);
    if (!hosts || !states) return false;
    for (uint32_t h = 0; h < j->host_count; h++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < j->task_count; i++) count += j->tasks[i].host == h;
        uint32_t *tasks = ck_arena_array(&c->scratch, count, sizeof *tasks);
        if (!tasks) return false;
        for (uint32_t i = 0, n = 0; i < j->task_count; i++)
            if (j->tasks[i].host == h) tasks[n++] = i;
        hosts[h] = (ck_msg_record_host){ck_view_of(j->hosts[h].worker_id), j->hosts[h].incarnation, {tasks, count}};
    }
    for (uint32_t i = 0; i < j->task_count; i++) states[i] = j->tasks[i].state;
    r->hosts = (ck_proto_list){hosts, j->host_count};
    r->states = (ck_proto_uints){states, j->task_count};
    return true;
}

void record_job(ck_coordinator *c, const job *j) {
    ck_message m = {.kind = CK_MSG_RECORD_JOB};
    ck_msg_record_job *r = &m.as.job;
    *r = (ck_msg_record_job){.job = j->spec,
                             .state = j->state,
                             .goal = j->goal,
                             .restart_attempts = j->restart_attempts,
                             .latest_completed_checkpoint_id = j->latest_completed_checkpoint_id,
                             .error = ck_view_of(j->error),
                             .skips = {j->skips, j->skip_count}};
    r->job.fence = coordinator_fence(c, j);
    if (j->dropped) return;
    if (!describe_hosts(c, j, r)) {
        c->out_of_memory = true;
        return;
    }
    coordinator_persist(c, j->id, &m);
}

/* ---- a job from its description ---- */

static bool keep_description(ck_coordinator *c, job *j, ck_view v) {
    j->description = ck_alloc(c->cfg.mem, v.n + 1);
    if (!j->description) return false;
    if (v.n) memcpy(j->description, v.p, v.n);
    j->spec.spec = (ck_view){j->description, v.n};
    return true;
}

void record_drop_description(ck_coordinator *c, job *j) {
    if (j->description) ck_free(c->cfg.mem, j->description, j->spec.spec.n + 1);
    j->description = NULL;
    j->spec.spec = (ck_view){0};
}

static ck_view keep(ck_arena *a, ck_view v, bool *whole) {
    char *p = ck_arena_strndup(a, v.p, v.n);
    *whole &= p != NULL;
    return (ck_view){p, p ? v.n : 0};
}

static bool keep_roles(job *j, const ck_proto_list *from) {
    bool whole = true;
    ck_msg_role *roles = ck_arena_array(&j->arena, from->count, sizeof *roles);
    if (!roles) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        const ck_msg_role *r = (const ck_msg_role *)from->items + i;
        uint32_t *peers = ck_arena_array(&j->arena, r->peers.count, sizeof *peers);
        if (!peers) return false;
        if (r->peers.count) memcpy(peers, r->peers.items, r->peers.count * sizeof *peers);
        roles[i] = (ck_msg_role){.name = keep(&j->arena, r->name, &whole),
                                 .parallelism = r->parallelism,
                                 .config = keep(&j->arena, r->config, &whole),
                                 .peers = {peers, r->peers.count}};
        j->task_count += (uint32_t)r->parallelism;
    }
    j->spec.roles = (ck_proto_list){roles, from->count};
    return whole;
}

static bool keep_plugins(job *j, const ck_proto_list *from) {
    bool whole = true;
    ck_msg_plugin *plugins = ck_arena_array(&j->arena, from->count, sizeof *plugins);
    if (!plugins) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        const ck_msg_plugin *p = (const ck_msg_plugin *)from->items + i;
        plugins[i] = (ck_msg_plugin){keep(&j->arena, p->hash, &whole), p->bytes, keep(&j->arena, p->name, &whole)};
    }
    j->spec.plugins = (ck_proto_list){plugins, from->count};
    return whole;
}

static bool make_tasks(job *j) {
    const ck_msg_role *roles = j->spec.roles.items;
    j->tasks = ck_arena_array(&j->arena, j->task_count, sizeof *j->tasks);
    j->hosts_room = j->task_count < CK_CLUSTER_WORKERS_MAX ? j->task_count : CK_CLUSTER_WORKERS_MAX;
    j->hosts = ck_arena_array(&j->arena, j->hosts_room, sizeof *j->hosts);
    if (!j->tasks || !j->hosts) return false;
    for (uint32_t r = 0, n = 0; r < j->spec.roles.count; r++)
        for (uint32_t i = 0; i < roles[r].parallelism; i++)
            j->tasks[n++] = (task){.state = TASK_RESTART_PENDING, .role = r, .index = i, .host = NO_HOST};
    return true;
}

static bool fill(ck_coordinator *c, job *j, const ck_msg_submit *m) {
    bool whole = true;
    j->spec = *m;
    j->spec.fence = (ck_msg_fence){0};
    j->spec.name = keep(&j->arena, m->name, &whole);
    j->spec.spec = (ck_view){0};
    j->spec.checkpoint_dir = keep(&j->arena, m->checkpoint_dir, &whole);
    j->spec.restore_from_dir = keep(&j->arena, m->restore_from_dir, &whole);
    snprintf(j->name, sizeof j->name, "%.*s", (int)m->name.n, m->name.p);
    return whole && keep_description(c, j, m->spec) && keep_roles(j, &m->roles) && keep_plugins(j, &m->plugins) &&
           make_tasks(j);
}

ck_status record_new_job(ck_coordinator *c, const ck_msg_submit *m, uint64_t id, job **out, ck_error *err) {
    job *j = ck_alloc_zero(c->cfg.mem, sizeof *j);
    *out = j;
    if (!j) return ck_nomem(err, c->cfg.mem, sizeof *j);
    j->id = id;
    ck_arena_init(&j->arena, c->cfg.mem, JOB_BYTES_MAX);
    if (!fill(c, j, m)) {
        record_drop_description(c, j);
        ck_arena_destroy(&j->arena);
        ck_free(c->cfg.mem, j, sizeof *j);
        *out = NULL;
        return ck_nomem(err, c->cfg.mem, 0);
    }
    *c->jobs_end = j, c->jobs_end = &j->next;
    c->job_count++;
    return CK_OK;
}

bool record_skip(job *j, ck_view record) {
    bool whole = true;
    if (!j->skips) j->skips = ck_arena_array(&j->arena, CK_CLUSTER_SKIPS_MAX, sizeof *j->skips);
    if (!j->skips) return false;
    CK_ASSERT(j->skip_count < CK_CLUSTER_SKIPS_MAX);
    j->skips[j->skip_count].record = keep(&j->arena, record, &whole);
    j->skip_count += whole;
    return whole;
}

/* ---- recovery ---- */

static ck_status bad(ck_error *err, const char *what) {
    return ck_fail(err, CK_CORRUPT, "the record of a job is damaged: %s", what);
}

static ck_status read_hosts(job *j, const ck_msg_record_job *r, ck_error *err) {
    if (r->hosts.count > j->hosts_room) return bad(err, "it has too many hosts");
    for (uint32_t h = 0; h < r->hosts.count; h++) {
        const ck_msg_record_host *from = (const ck_msg_record_host *)r->hosts.items + h;
        job_host *host = &j->hosts[j->host_count++];
        *host = (job_host){.incarnation = from->incarnation};
        snprintf(host->worker_id, sizeof host->worker_id, "%.*s", (int)from->worker.n, from->worker.p);
        for (uint32_t i = 0; i < from->tasks.count; i++) {
            if (from->tasks.items[i] >= j->task_count) return bad(err, "a host has a task that is none");
            j->tasks[from->tasks.items[i]].host = h;
        }
    }
    return CK_OK;
}

static ck_status read_tasks(job *j, const ck_msg_record_job *r, ck_error *err) {
    if (r->states.count != j->task_count) return bad(err, "it has not a state for each task");
    for (uint32_t i = 0; i < j->task_count; i++) {
        task *t = &j->tasks[i];
        if (r->states.items[i] >= TASK_STATE_COUNT) return bad(err, "a task in an unknown state");
        t->state = (task_state)r->states.items[i];
        if (task_is_active(t) && t->host == NO_HOST) return bad(err, "a task that runs nowhere");
        if (t->state == TASK_RUNNING) t->state = TASK_DEPLOYED; /* until its worker says so */
    }
    return CK_OK;
}

static ck_status recover_job(ck_coordinator *c, const ck_msg_record_job *r, ck_error *err) {
    job *j;
    const ck_msg_role *roles = r->job.roles.items;
    uint64_t tasks = 0;
    for (uint32_t i = 0; i < r->job.roles.count; i++) tasks += roles[i].parallelism;
    if (tasks == 0 || tasks > CK_CLUSTER_TASKS_MAX) return bad(err, "it has no tasks, or too many");
    if (r->state >= JOB_STATE_COUNT || r->goal >= GOAL_COUNT) return bad(err, "it is in an unknown state");
    if (r->job.fence.job == 0 || job_find(c, r->job.fence.job)) return bad(err, "its number is another's");
    CK_TRY(record_new_job(c, &r->job, r->job.fence.job, &j, err));
    j->attempt = r->job.fence.attempt;
    j->restart_attempts = (uint32_t)r->restart_attempts;
    j->latest_completed_checkpoint_id = r->latest_completed_checkpoint_id;
    j->goal = (job_goal)r->goal;
    j->state = (job_state)r->state;
    bool over = job_is_over(j) || j->state == JOB_SUSPENDED;
    if (job_is_over(j)) record_drop_description(c, j);
    if (!over) j->state = JOB_RECOVERING;
    snprintf(j->error, sizeof j->error, "%.*s", (int)r->error.n, r->error.p);
    const ck_msg_skip *skips = r->skips.items;
    for (uint32_t i = 0; i < r->skips.count; i++)
        if (!record_skip(j, skips[i].record)) return ck_nomem(err, c->cfg.mem, 0);
    if (j->id >= c->next_job) c->next_job = j->id + 1;
    CK_TRY(read_hosts(j, r, err));
    return read_tasks(j, r, err);
}

ck_status ck_coordinator_recover(ck_coordinator *c, const ck_message *record, ck_error *err) {
    CK_ASSERT(!c->begun);
    if (record->kind == CK_MSG_RECORD_JOB) return recover_job(c, &record->as.job, err);
    if (record->kind != CK_MSG_RECORD_LEADER) return ck_fail(err, CK_CORRUPT, "a record that is none");
    if (record->as.leader.epoch >= c->cfg.epoch)
        return ck_fail(err, CK_REFUSED, "leader %llu has been here, and this is %llu",
                       (unsigned long long)record->as.leader.epoch, (unsigned long long)c->cfg.epoch);
    if (record->as.leader.next_job > c->next_job) c->next_job = record->as.leader.next_job;
    return CK_OK;
}
