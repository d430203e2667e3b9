/* Workers with real sessions, and task hosts that are models: of an attempt, process 0 takes the job's lock, restores,
 * and completes one checkpoint after the other while all its peers are there. */
#include <string.h>

#include "cluster_world.h"

enum { CHECKPOINT_UNITS_MAX = 40, CONNECT_MS = 8000 };

sim_job *job_of(world *w, uint64_t region) {
    for (uint32_t i = 0; i < w->job_count; i++)
        if (w->jobs[i].id == (region & (((uint64_t)1 << CK_CLUSTER_REGION_SHIFT) - 1))) return &w->jobs[i];
    return NULL;
}

static store *store_of(sim_job *j, const host *h) { return &j->stores[h->job >> CK_CLUSTER_REGION_SHIFT]; }

/* ---- workers ---- */

void worker_born(world *w, uint32_t number) {
    sim_worker *k = &w->workers[number];
    if (k->alive) return;
    char name[8] = {'w', (char)('0' + number), 0};
    k->alive = true;
    k->life++;
    k->conn = 0;
    ck_session_config cfg = {.mem = w->mem,
                             .worker = ck_view_of(name),
                             .address = ck_view_of(name),
                             .incarnation = (uint64_t)k->life << 8 | number,
                             .slots = SLOTS};
    if (ck_session_new(&cfg, &k->s, NULL) != CK_OK) world_broken(w, "no memory");
    world_at(w, w->now_us + world_delay(w), EVENT_WORKER_TICK, number, k->life, 0, NULL);
}

static void host_die(world *w, uint32_t number) {
    host *h = &w->hosts[number];
    if (h->state == HOST_DEAD) return;
    h->state = HOST_DEAD;
    sim_job *j = job_of(w, h->job);
    if (j && store_of(j, h)->lock == number + 1) store_of(j, h)->lock = 0;
}

/* With all its hosts: they end with their parent. */
void worker_kill(world *w, uint32_t number) {
    sim_worker *k = &w->workers[number];
    if (!k->alive) return;
    world_say(w, "worker %u dies", number);
    k->alive = false;
    net_process_died(w, (int32_t)number, 0);
    for (uint32_t i = 0; i < w->host_count; i++)
        if (w->hosts[i].worker == number && w->hosts[i].life == k->life && w->hosts[i].state != HOST_DEAD) {
            w->hosts[i].failed = true;
            host_die(w, i);
        }
    ck_session_free(k->s);
    k->s = NULL;
}

/* ---- what must never be ---- */

/* Away from who leads, now or a moment ago: it may have been taken for lost, and not have been told. */
bool worker_excused(const world *w, uint32_t number) {
    const sim_worker *k = &w->workers[number];
    if (!k->conn || w->conns[k->conn].leader != w->leader_count - 1) return true;
    return k->excused_until_us > w->now_us || k->suspended_until_us > w->now_us || k->partition_until_us > w->now_us;
}

/* A region restarts for something that happened to it: a host of it failed or went with its worker, which may have been
 * away, or have died before it could say that the host had ended; or not all of them were ever there, or another leader
 * did not find them. What happens to another region of the same job is no reason. */
static bool has_reason(const world *w, const host *n) {
    uint32_t hosts = 0, expected = 0;
    for (uint32_t i = 0; i < w->host_count; i++) {
        const host *h = &w->hosts[i];
        if (h->job != n->job || h->attempt + 1 != n->attempt) continue;
        hosts++, expected = h->process_count;
        if (h->failed || h->leaders != w->leader_count) return true;
        const sim_worker *k = &w->workers[h->worker];
        if (!k->alive || k->life != h->life || k->excused_until_us > h->born_us) return true;
    }
    return hosts == 0 || hosts < expected;
}

static void check_restart(world *w, const host *n) {
    const uint64_t mask = ((uint64_t)1 << CK_CLUSTER_REGION_SHIFT) - 1;
    if (n->attempt == 1) return;
    if (!has_reason(w, n))
        world_broken(w, "region %llx restarts as attempt %llu for nothing that happened to it",
                     (unsigned long long)n->job, (unsigned long long)n->attempt);
    for (uint32_t i = 0; i < w->host_count; i++) {
        const host *h = &w->hosts[i];
        if (h->job == n->job || (h->job & mask) != (n->job & mask) || h->state != HOST_RUNNING) continue;
        w->alone++;
        return;
    }
}

static void check_spawn(world *w, const host *n) {
    for (uint32_t i = 0; i < w->host_count; i++) {
        const host *h = &w->hosts[i];
        if (h == n || h->state == HOST_DEAD || h->job != n->job) continue;
        if (h->worker == n->worker)
            world_broken(w, "two hosts of region %llx on worker %u", (unsigned long long)n->job, n->worker);
        if (h->attempt < n->attempt && !worker_excused(w, h->worker))
            world_broken(w, "attempt %llu of region %llx begins while %llu works on worker %u, which was never away",
                         (unsigned long long)n->attempt, (unsigned long long)n->job, (unsigned long long)h->attempt,
                         h->worker);
        if (h->attempt != n->attempt) continue;
        for (uint32_t a = 0; a < h->task_count; a++)
            for (uint32_t b = 0; b < n->task_count; b++)
                if (h->tasks[a] == n->tasks[b]) world_broken(w, "task %u works twice", h->tasks[a]);
    }
}

/* ---- sessions' actions ---- */

static void spawn(world *w, uint32_t worker, const ck_frame *f) {
    ck_arena arena;
    ck_message m;
    ck_arena_init(&arena, w->mem, 64 << 20);
    if (w->host_count == HOSTS_MAX || ck_message_read(f, &arena, &m, NULL) != CK_OK) {
        world_broken(w, "too many hosts, or a bad DEPLOY");
        ck_arena_destroy(&arena);
        return;
    }
    const ck_msg_deploy *d = &m.as.deploy;
    host *h = &w->hosts[w->host_count];
    *h = (host){.worker = worker,
                .life = w->workers[worker].life,
                .job = d->fence.job,
                .attempt = d->fence.attempt,
                .process = (uint32_t)d->process,
                .process_count = (uint32_t)d->process_count,
                .restore = d->restore_from_checkpoint_id,
                .task_count = d->tasks.count,
                .born_us = w->now_us,
                .leaders = w->leader_count};
    for (uint32_t i = 0; i < d->tasks.count && i < TASKS_MAX; i++) h->tasks[i] = d->tasks.items[i];
    const ck_msg_submit said = client_job((uint32_t)(d->name.p[0] - 'a'), 1);
    const ck_msg_plugin *wanted = said.plugins.items, *got = d->plugins.items;
    if (d->plugins.count != said.plugins.count || (said.plugins.count && !ck_view_eq(got->hash, wanted->hash)))
        world_broken(w, "a host without its job's plugins");
    if (d->tasks.count == 0 || d->tasks.count > TASKS_MAX) world_broken(w, "a host with %u tasks", d->tasks.count);
    ck_arena_destroy(&arena);
    check_spawn(w, h);
    check_restart(w, h);
    if (!w->calm && dice_below(&w->dice, 6) == 0) {
        h->doomed = 1 + dice_below(&w->dice, 200);
        h->doom = dice_below(&w->dice, 8) == 0   ? CK_ENDED_DATA
                  : dice_below(&w->dice, 4) == 0 ? CK_ENDED_FINAL_CHECKPOINT
                                                 : 0;
        if (dice_below(&w->dice, 40) == 0) h->doom = CK_ENDED_FATAL;
    }
    world_at(w, w->now_us + world_delay(w), EVENT_HOST, w->host_count++, 0, 0, NULL);
}

static host *live_host(world *w, uint32_t worker, uint64_t job, uint64_t attempt) {
    for (uint32_t i = w->host_count; i-- > 0;) {
        host *h = &w->hosts[i];
        if (h->worker == worker && h->life == w->workers[worker].life && h->job == job && h->attempt == attempt)
            return h;
    }
    return NULL;
}

static void reap(world *w, host *h, ck_task_outcome outcome, uint64_t flags, const char *error) {
    uint32_t number = (uint32_t)(h - w->hosts), worker = h->worker;
    sim_worker *k = &w->workers[worker];
    bool mine = k->alive && h->life == k->life;
    h->failed = outcome == CK_TASK_FAILED;
    host_die(w, number);
    world_say(w, "host of region %llx attempt %llu on worker %u: %s", (unsigned long long)h->job,
              (unsigned long long)h->attempt, worker, error[0] ? error : "ends");
    if (mine && ck_session_host_ended(k->s, h->job, h->attempt, outcome, flags, ck_view_of(error), NULL) != CK_OK)
        world_broken(w, "no memory");
    if (mine) worker_drain(w, worker);
}

void worker_drain(world *w, uint32_t number) {
    sim_worker *k = &w->workers[number];
    for (ck_session_action *a; k->alive && (a = ck_session_next(k->s)) != NULL;) {
        host *h = live_host(w, number, a->job, a->attempt);
        if (a->kind == CK_SESSION_KILL && h && h->state != HOST_DEAD) /* it works on until it has been reaped */
            world_at(w, w->now_us + world_delay(w), EVENT_KILLED, (uint32_t)(h - w->hosts), 0, 0, NULL);
        if (a->kind == CK_SESSION_CLOSE && k->conn) { /* whoever leads now may be elsewhere */
            world_excuse(k, w->now_us);
            net_close(w, k->conn, false);
        } else if (a->kind == CK_SESSION_SEND && k->conn) {
            net_send(w, k->conn, true, a->frame);
            a->frame = NULL;
        } else if (a->kind == CK_SESSION_SPAWN) {
            spawn(w, number, a->frame);
        } else if (a->kind == CK_SESSION_START && h && h->state == HOST_READY) {
            h->state = HOST_RUNNING;
            h->started_us = w->now_us;
        }
        ck_session_action_free(k->s, a);
    }
}

void host_killed(world *w, uint32_t number) {
    if (w->hosts[number].state != HOST_DEAD) reap(w, &w->hosts[number], CK_TASK_CANCELLED, 0, "");
}

/* ---- hosts ---- */

typedef enum peers { PEERS_THERE, PEERS_COMING, PEERS_GONE } peers;

static peers look_at_peers(const world *w, const host *h) {
    uint32_t running = 0;
    for (uint32_t i = 0; i < w->host_count; i++) {
        const host *p = &w->hosts[i];
        if (p->job != h->job || p->attempt != h->attempt) continue;
        if (p->state == HOST_DEAD) return PEERS_GONE;
        running += p->state == HOST_RUNNING;
    }
    return running == h->process_count ? PEERS_THERE : PEERS_COMING;
}

/* Process 0: the lock, then the newest of the job's own checkpoints, which is at least the one it was told. */
static const char *take_lock(world *w, host *h, const sim_job *j, store *s) {
    uint32_t number = (uint32_t)(h - w->hosts);
    if (s->lock == number + 1) return NULL;
    if (s->lock) return "the directory is locked";
    if (s->fence > h->attempt) return "a newer attempt has had the directory";
    if (h->restore > s->checkpoint)
        world_broken(w, "region %llx is to restore checkpoint %llu, and %llu is the newest", (unsigned long long)h->job,
                     (unsigned long long)h->restore, (unsigned long long)s->checkpoint);
    s->lock = number + 1;
    s->fence = h->attempt;
    h->position = j->checkpointed ? s->position : 0;
    return NULL;
}

static void advance(world *w, host *h, const sim_job *j, store *s) {
    const char *why = take_lock(w, h, j, s);
    if (why) {
        reap(w, h, CK_TASK_FAILED, 0, why);
        return;
    }
    h->position += 1 + dice_below(&w->dice, CHECKPOINT_UNITS_MAX);
    if (h->position > s->length) h->position = s->length;
    if (h->doomed && h->position >= h->doomed) {
        reap(w, h, CK_TASK_FAILED, h->doom, "it was doomed");
        return;
    }
    s->position = h->position;
    s->finished = h->position == s->length;
    s->checkpoint++;
    sim_worker *k = &w->workers[h->worker];
    if (ck_session_host_checkpoint(k->s, h->job, h->attempt, s->checkpoint, NULL) != CK_OK)
        world_broken(w, "no memory");
    worker_drain(w, h->worker);
}

static void running(world *w, host *h, sim_job *j) {
    store *s = store_of(j, h);
    peers p = s->finished ? PEERS_THERE : look_at_peers(w, h);
    if (s->finished)
        reap(w, h, CK_TASK_FINISHED, 0, "");
    else if (p == PEERS_GONE)
        reap(w, h, CK_TASK_FAILED, 0, "a link broke");
    else if (p == PEERS_COMING && w->now_us - h->started_us > CONNECT_MS * MS)
        reap(w, h, CK_TASK_FAILED, 0, "a peer did not come");
    else if (p == PEERS_THERE && h->process == 0)
        advance(w, h, j, s);
}

void host_step(world *w, uint32_t number) {
    host *h = &w->hosts[number];
    sim_worker *k = &w->workers[h->worker];
    sim_job *j = job_of(w, h->job);
    if (h->state == HOST_DEAD) return;
    world_at(w, w->now_us + world_delay(w) * 4 + 50 * MS, EVENT_HOST, number, 0, 0, NULL);
    if (!j || k->suspended_until_us > w->now_us) return; /* who would hear of it is stopped */
    if (h->state == HOST_STARTING) {
        h->state = HOST_READY;
        if (ck_session_host_ready(k->s, h->job, h->attempt, CK_VIEW("x:1"), NULL) != CK_OK)
            world_broken(w, "no memory");
        worker_drain(w, h->worker);
    } else if (h->state == HOST_RUNNING) {
        running(w, h, j);
    }
}
