/* A job as it is kept: its description as it was submitted, the sentinel of its restart policy and not what that
 * resolves to, the attempt, how far it was in a restart, and where its tasks are, so that the next leader finds them.
 */
#include "cluster/coordinator/coordinator_int.h"

#include <stdio.h>

enum { JOB_BYTES_MAX = 64 << 20 };

void record_leader(ck_coordinator *c) {
    coordinator_persist(c, 0, &(ck_message){.kind = CK_MSG_RECORD_LEADER, .as.leader = {c->cfg.epoch, c->next_job}});
}

static bool describe_hosts(ck_coordinator *c, const job *j, ck_proto_list *to_hosts, ck_proto_uints *to_states) {
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
    *to_hosts = (ck_proto_list){hosts, j->host_count};
    *to_states = (ck_proto_uints){states, j->task_count};
    return true;
}

static bool describe_regions(ck_coordinator *c, const job *lead, ck_proto_list *to) {
    if (lead->region_count == 1) return true;
    ck_msg_record_region *regions = ck_arena_array(&c->scratch, lead->region_count, sizeof *regions);
    if (!regions) return false;
    for (const job *j = lead->next_region; j; j = j->next_region) {
        ck_msg_record_region *r = &regions[j->region - 1];
        *r = (ck_msg_record_region){.attempt = j->attempt,
                                    .state = j->state,
                                    .goal = j->goal,
                                    .restart_attempts = j->restart_attempts,
                                    .latest_completed_checkpoint_id = j->latest_completed_checkpoint_id,
                                    .error = ck_view_of(j->error),
                                    .skips = {j->skips, j->skip_count}};
        if (!describe_hosts(c, j, &r->hosts, &r->states)) return false;
    }
    *to = (ck_proto_list){regions, lead->region_count - 1};
    return true;
}

void record_job(ck_coordinator *c, const job *any) {
    const job *j = any->lead;
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
    r->job.roles = j->roles;
    if (j->dropped) return;
    if (!describe_hosts(c, j, &r->hosts, &r->states) || !describe_regions(c, j, &r->regions)) {
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
                                 .peers = {peers, r->peers.count},
                                 .region = r->region};
        if (r->region >= j->region_count) j->region_count = (uint32_t)r->region + 1;
    }
    j->roles = (ck_proto_list){roles, from->count};
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

/* The roles of a region; peers are numbered among them. */
static bool choose_roles(job *j) {
    const job *lead = j->lead;
    const ck_msg_role *all = lead->roles.items;
    uint32_t *number = ck_arena_array(&j->lead->arena, lead->roles.count, sizeof *number), count = 0;
    ck_msg_role *roles = ck_arena_array(&j->lead->arena, lead->roles.count, sizeof *roles);
    if (!number || !roles) return false;
    for (uint32_t i = 0; i < lead->roles.count; i++) {
        if (all[i].region != j->region) continue;
        j->task_count += (uint32_t)all[i].parallelism;
        number[i] = count;
        roles[count++] = all[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        const ck_proto_uints from = roles[i].peers;
        uint32_t *peers = ck_arena_array(&j->lead->arena, from.count, sizeof *peers);
        if (!peers) return false;
        for (uint32_t k = 0; k < from.count; k++) peers[k] = number[from.items[k]];
        roles[i].peers = (ck_proto_uints){peers, from.count};
    }
    j->spec.roles = (ck_proto_list){roles, count};
    return true;
}

static bool make_tasks(job *j) {
    if (!choose_roles(j)) return false;
    const ck_msg_role *roles = j->spec.roles.items;
    j->tasks = ck_arena_array(&j->lead->arena, j->task_count, sizeof *j->tasks);
    j->hosts_room = j->task_count < CK_CLUSTER_WORKERS_MAX ? j->task_count : CK_CLUSTER_WORKERS_MAX;
    j->hosts = ck_arena_array(&j->lead->arena, j->hosts_room, sizeof *j->hosts);
    if (!j->tasks || !j->hosts) return false;
    for (uint32_t r = 0, n = 0; r < j->spec.roles.count; r++)
        for (uint32_t i = 0; i < roles[r].parallelism; i++)
            j->tasks[n++] = (task){.state = TASK_RESTART_PENDING, .role = r, .index = i, .host = NO_HOST};
    return true;
}

static bool add_regions(ck_coordinator *c, job *lead) {
    job *last = lead;
    for (uint32_t i = 1; i < lead->region_count; i++) {
        job *j = ck_alloc_zero(c->cfg.mem, sizeof *j);
        if (!j) return false;
        last = last->next_region = last->next = j;
        j->lead = lead;
        j->region = i;
        j->id = ck_region_number(lead->id, i);
        j->spec = lead->spec;
        j->spec.spec = (ck_view){0};
        if (!make_tasks(j)) return false;
    }
    return true;
}

static bool fill(ck_coordinator *c, job *j, const ck_msg_submit *m) {
    bool whole = true;
    j->lead = j;
    j->region_count = 1;
    j->spec = *m;
    j->spec.fence = (ck_msg_fence){0};
    j->spec.name = keep(&j->arena, m->name, &whole);
    j->spec.spec = (ck_view){0};
    j->spec.checkpoint_dir = keep(&j->arena, m->checkpoint_dir, &whole);
    j->spec.restore_from_dir = keep(&j->arena, m->restore_from_dir, &whole);
    snprintf(j->name, sizeof j->name, "%.*s", (int)m->name.n, m->name.p);
    return whole && keep_description(c, j, m->spec) && keep_roles(j, &m->roles) && keep_plugins(j, &m->plugins) &&
           make_tasks(j) && add_regions(c, j);
}

void record_free_job(ck_coordinator *c, job *lead) {
    record_drop_description(c, lead);
    ck_arena_destroy(&lead->arena);
    for (job *j = lead, *next; j; j = next) {
        next = j->next_region;
        ck_free(c->cfg.mem, j, sizeof *j);
    }
}

ck_status record_new_job(ck_coordinator *c, const ck_msg_submit *m, uint64_t id, job **out, ck_error *err) {
    job *j = ck_alloc_zero(c->cfg.mem, sizeof *j);
    *out = j;
    if (!j) return ck_nomem(err, c->cfg.mem, sizeof *j);
    j->id = id;
    ck_arena_init(&j->arena, c->cfg.mem, JOB_BYTES_MAX);
    if (!fill(c, j, m)) {
        record_free_job(c, j);
        *out = NULL;
        return ck_nomem(err, c->cfg.mem, 0);
    }
    *c->jobs_end = j;
    while (j->next) j = j->next;
    c->jobs_end = &j->next;
    c->job_count++;
    return CK_OK;
}

bool record_skip(job *j, ck_view record) {
    bool whole = true;
    ck_arena *a = &j->lead->arena;
    if (!j->skips) j->skips = ck_arena_array(a, CK_CLUSTER_SKIPS_MAX, sizeof *j->skips);
    if (!j->skips) return false;
    CK_ASSERT(j->skip_count < CK_CLUSTER_SKIPS_MAX);
    j->skips[j->skip_count].record = keep(a, record, &whole);
    j->skip_count += whole;
    return whole;
}

/* ---- recovery ---- */

static ck_status bad(ck_error *err, const char *what) {
    return ck_fail(err, CK_CORRUPT, "the record of a job is damaged: %s", what);
}

static ck_status read_hosts(job *j, const ck_msg_record_region *r, ck_error *err) {
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

static ck_status read_tasks(job *j, const ck_msg_record_region *r, ck_error *err) {
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

/* The first region stands in the record itself. */
static ck_msg_record_region region_of(const ck_msg_record_job *r, uint32_t number) {
    if (number > 0) return ((const ck_msg_record_region *)r->regions.items)[number - 1];
    return (ck_msg_record_region){.attempt = r->job.fence.attempt,
                                  .state = r->state,
                                  .goal = r->goal,
                                  .restart_attempts = r->restart_attempts,
                                  .latest_completed_checkpoint_id = r->latest_completed_checkpoint_id,
                                  .error = r->error,
                                  .skips = r->skips,
                                  .hosts = r->hosts,
                                  .states = r->states};
}

static ck_status recover_region(ck_coordinator *c, job *j, const ck_msg_record_region *r, ck_error *err) {
    if (r->state >= JOB_STATE_COUNT || r->goal >= GOAL_COUNT) return bad(err, "it is in an unknown state");
    j->attempt = r->attempt;
    j->restart_attempts = (uint32_t)r->restart_attempts;
    j->latest_completed_checkpoint_id = r->latest_completed_checkpoint_id;
    j->goal = (job_goal)r->goal;
    j->state = (job_state)r->state;
    if (!job_is_over(j) && j->state != JOB_SUSPENDED) j->state = JOB_RECOVERING;
    snprintf(j->error, sizeof j->error, "%.*s", (int)r->error.n, r->error.p);
    const ck_msg_skip *skips = r->skips.items;
    for (uint32_t i = 0; i < r->skips.count; i++)
        if (!record_skip(j, skips[i].record)) return ck_nomem(err, c->cfg.mem, 0);
    CK_TRY(read_hosts(j, r, err));
    return read_tasks(j, r, err);
}

static ck_status check_roles(const ck_msg_record_job *r, ck_error *err) {
    const ck_msg_role *roles = r->job.roles.items;
    uint64_t tasks = 0;
    uint32_t known[CK_CLUSTER_REGIONS_MAX] = {0};
    for (uint32_t i = 0; i < r->job.roles.count; i++) {
        tasks += roles[i].parallelism;
        if (roles[i].region > r->regions.count) return bad(err, "it has not a state for each region");
        known[roles[i].region]++;
        for (uint32_t k = 0; k < roles[i].peers.count; k++) {
            uint32_t peer = roles[i].peers.items[k];
            if (peer >= r->job.roles.count || roles[peer].region != roles[i].region)
                return bad(err, "it has a peer in no region, or in another");
        }
    }
    if (tasks == 0 || tasks > CK_CLUSTER_TASKS_MAX) return bad(err, "it has no tasks, or too many");
    for (uint32_t i = 0; i <= r->regions.count; i++)
        if (!known[i]) return bad(err, "it has a region without roles");
    return CK_OK;
}

static ck_status recover_job(ck_coordinator *c, const ck_msg_record_job *r, ck_error *err) {
    job *lead;
    CK_TRY(check_roles(r, err));
    if (r->job.fence.job == 0 || r->job.fence.job >> CK_CLUSTER_REGION_SHIFT || job_find(c, r->job.fence.job))
        return bad(err, "its number is another's");
    CK_TRY(record_new_job(c, &r->job, r->job.fence.job, &lead, err));
    if (lead->id >= c->next_job) c->next_job = lead->id + 1;
    for (job *j = lead; j; j = j->next_region) {
        const ck_msg_record_region region = region_of(r, j->region);
        CK_TRY(recover_region(c, j, &region, err));
    }
    if (regions_are_over(lead)) record_drop_description(c, lead);
    return CK_OK;
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
