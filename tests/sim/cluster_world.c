#include "cluster_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- time ---- */

static bool before(const event *a, const event *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void push(world *w, event e) {
    if (w->heap_count == w->heap_room) {
        w->heap_room = w->heap_room ? w->heap_room * 2 : 256;
        w->heap = realloc(w->heap, w->heap_room * sizeof *w->heap);
        CK_ASSERT(w->heap);
    }
    uint32_t i = w->heap_count++;
    for (; i > 0 && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

void world_at(world *w, int64_t at_us, event_kind kind, uint32_t a, uint32_t b, uint64_t number, ck_frame *frame) {
    push(w, (event){at_us, w->order++, kind, a, b, number, frame});
}

void world_hold(world *w, const event *e, int64_t until_us) {
    event later = *e;
    later.at_us = until_us;
    push(w, later);
}

static event take_event(world *w) {
    event top = w->heap[0], last = w->heap[--w->heap_count];
    uint32_t i = 0;
    for (uint32_t k; (k = 2 * i + 1) < w->heap_count; i = k) {
        if (k + 1 < w->heap_count && before(&w->heap[k + 1], &w->heap[k])) k++;
        if (!before(&w->heap[k], &last)) break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = last;
    return top;
}

/* Mostly short, now and then a second: with the time between two heartbeats still under their timeout, so that nobody
 * is lost for it. */
int64_t world_delay(world *w) {
    return (int64_t)dice_spread(&w->dice, w->calm ? 14 : dice_below(&w->dice, 50) ? 16 : 20);
}

void world_broken(world *w, const char *fmt, ...) {
    if (w->why[0]) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
}

void world_say(const world *w, const char *fmt, ...) {
    if (!w->verbose) return;
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%9.3f  ", (double)w->now_us / 1e6);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* ---- faults ---- */

/* A worker that is away may be taken for lost; what it runs goes on meanwhile, and until it has been told. */
void world_excuse(sim_worker *k, int64_t until_us) {
    until_us += 5000 * MS;
    if (until_us > k->excused_until_us) k->excused_until_us = until_us;
}

static void one_fault(world *w) {
    uint32_t number = dice_below(&w->dice, WORKERS), top = w->leader_count - 1;
    sim_worker *k = &w->workers[number];
    int64_t until_us = w->now_us + (int64_t)dice_below(&w->dice, 7000) * MS;
    switch (dice_below(&w->dice, 9)) {
    case 0:
    case 1:
        worker_kill(w, number);
        world_at(w, until_us, EVENT_WORKER_BORN, number, 0, 0, NULL);
        break;
    case 2:
        world_say(w, "worker %u is stopped until %.3f", number, (double)until_us / 1e6);
        if (k->suspended_until_us < until_us) k->suspended_until_us = until_us;
        world_excuse(k, until_us);
        break;
    case 3:
        world_say(w, "worker %u is cut off until %.3f", number, (double)until_us / 1e6);
        if (k->partition_until_us < until_us) k->partition_until_us = until_us;
        world_excuse(k, until_us);
        break;
    case 4:
        if (!k->conn) break;
        world_say(w, "the connection of worker %u breaks", number);
        world_excuse(k, w->now_us);
        net_close(w, k->conn, dice_below(&w->dice, 2));
        break;
    case 5:
        leader_kill(w, top);
        world_at(w, w->now_us + (until_us - w->now_us) / 4, EVENT_LEADER_BORN, 0, 0, 0, NULL);
        break;
    case 6:
        world_say(w, "leader %u hangs", top);
        w->leaders[top].suspended_until_us = FOREVER_US;
        world_at(w, w->now_us + (until_us - w->now_us) / 4, EVENT_LEADER_BORN, 0, 0, 0, NULL);
        break;
    case 7:
        world_say(w, "leader %u is stopped until %.3f", top, (double)until_us / 1e6);
        if (w->leaders[top].suspended_until_us < until_us) w->leaders[top].suspended_until_us = until_us;
        break;
    default:
        if (w->leaders[top].suspended_until_us > w->now_us || dice_below(&w->dice, 4) == 0)
            leader_born(w); /* two lead */
        break;
    }
}

static void fault(world *w) {
    if (w->calm) return;
    if (w->now_us > FAULTS_END_MS * MS) {
        world_say(w, "calm from here on");
        w->calm = true;
        for (uint32_t i = 0; i < WORKERS; i++) worker_born(w, i);
        if (!leader_is_there(w)) leader_born(w);
        return;
    }
    one_fault(w);
    world_at(w, w->now_us + (int64_t)dice_below(&w->dice, 4000) * MS, EVENT_FAULT, 0, 0, 0, NULL);
}

/* ---- events ---- */

static void leader_tick(world *w, uint32_t number) {
    leader *l = &w->leaders[number];
    if (!l->alive) return;
    if (l->suspended_until_us > w->now_us) { /* what came meanwhile is heard first */
        world_at(w, l->suspended_until_us + 1, EVENT_LEADER_TICK, number, 0, 0, NULL);
        return;
    }
    if (l->epoch < w->guard && dice_below(&w->dice, LEASE_TICKS) == 0) { /* though it has nothing to write */
        world_say(w, "leader %u finds that it leads no more", number);
        leader_kill(w, number);
        return;
    }
    if (ck_coordinator_tick(l->c, w->now_us, NULL) != CK_OK) world_broken(w, "no memory");
    leader_drain(w, number);
    world_at(w, w->now_us + 100 * MS, EVENT_LEADER_TICK, number, 0, 0, NULL);
}

static void worker_tick(world *w, uint32_t number, uint32_t life) {
    sim_worker *k = &w->workers[number];
    if (!k->alive || k->life != life) return;
    world_at(w, k->suspended_until_us > w->now_us ? k->suspended_until_us : w->now_us + 100 * MS, EVENT_WORKER_TICK,
             number, life, 0, NULL);
    if (k->suspended_until_us > w->now_us) return;
    if (ck_session_tick(k->s, w->now_us, NULL) != CK_OK) world_broken(w, "no memory");
    worker_drain(w, number);
    if (!k->conn) net_dial(w, number);
}

/* Nobody listens where a process was: only then a probe says so. */
static void probed(world *w, const event *e) {
    leader *l = &w->leaders[e->a];
    const sim_worker *k = &w->workers[e->b];
    if (!l->alive || (k->alive && k->life == e->number >> 8)) return;
    if (ck_coordinator_unreachable(l->c, w->now_us, e->number, NULL) != CK_OK) world_broken(w, "no memory");
    leader_drain(w, e->a);
}

static void happen(world *w, const event *e) {
    switch (e->kind) {
    case EVENT_LEADER_TICK: leader_tick(w, e->a); break;
    case EVENT_WORKER_TICK: worker_tick(w, e->a, e->b); break;
    case EVENT_DELIVER: net_deliver(w, e); break;
    case EVENT_CLOSED: net_closed(w, e); break;
    case EVENT_PROBED: probed(w, e); break;
    case EVENT_HOST: host_step(w, e->a); break;
    case EVENT_KILLED: host_killed(w, e->a); break;
    case EVENT_CLIENT: client_step(w); break;
    case EVENT_FAULT: fault(w); break;
    case EVENT_WORKER_BORN: worker_born(w, e->a); break;
    case EVENT_LEADER_BORN:
        if (!leader_is_there(w)) leader_born(w);
        break;
    }
}

/* ---- one seed ---- */

static void set_up(world *w, uint64_t seed, bool verbose) {
    memset(w, 0, sizeof *w);
    w->dice.state = seed;
    w->verbose = verbose;
    ck_budget_init(&w->budget, ck_heap_system(), 0);
    w->mem = (ck_mem){&w->budget, CK_MEM_PLAN};
    w->conn_count = 1; /* number 0 is none */
    w->job_count = 1 + dice_below(&w->dice, JOBS_MAX);
    for (uint32_t i = 0; i < w->job_count; i++) {
        w->jobs[i].checkpointed = dice_below(&w->dice, 6) != 0;
        w->jobs[i].regions = dice_below(&w->dice, 2) ? 1 : 2 + dice_below(&w->dice, REGIONS_MAX - 1);
        for (uint32_t r = 0; r < w->jobs[i].regions; r++)
            w->jobs[i].stores[r].length = 500 + dice_below(&w->dice, 8000);
    }
    leader_born(w);
    for (uint32_t i = 0; i < WORKERS; i++) worker_born(w, i);
    world_at(w, 0, EVENT_CLIENT, 0, 0, 0, NULL);
    world_at(w, (int64_t)dice_below(&w->dice, 3000) * MS, EVENT_FAULT, 0, 0, 0, NULL);
}

static bool all_over(const world *w) {
    for (uint32_t i = 0; i < w->job_count; i++)
        if (!w->jobs[i].submitted || !w->jobs[i].over) return false;
    return true;
}

/* What was committed is all of it, once, where the job says that it has finished; and nothing works any more. */
static void check_end(world *w) {
    for (uint32_t i = 0; i < w->job_count && !w->why[0]; i++) {
        const sim_job *j = &w->jobs[i];
        if (!j->submitted || !j->over) world_broken(w, "job %llu neither ends nor goes on", (unsigned long long)j->id);
        for (uint32_t r = 0; r < j->regions; r++)
            if (j->finished && !j->stores[r].finished)
                world_broken(w, "job %llu ended early", (unsigned long long)j->id);
    }
    for (uint32_t i = 0; i < w->host_count; i++)
        if (w->hosts[i].state != HOST_DEAD)
            world_broken(w, "a host of region %llx works on", (unsigned long long)w->hosts[i].job);
}

static void tear_down(world *w) {
    while (w->heap_count) {
        event e = take_event(w);
        ck_frame_free(&e.frame);
    }
    free(w->heap);
    for (uint32_t i = 0; i < w->leader_count; i++) ck_coordinator_free(w->leaders[i].c);
    for (uint32_t i = 0; i < WORKERS; i++) ck_session_free(w->workers[i].s);
    for (uint32_t i = 0; i < RECORDS_MAX; i++) ck_frame_free(&w->records[i]);
    if (ck_budget_total(&w->budget) != 0) world_broken(w, "%zu bytes are left", ck_budget_total(&w->budget));
}

static void count(const world *w, cluster_counts *n) {
    for (uint32_t i = 0; i < w->job_count; i++) {
        n->finished += w->jobs[i].finished;
        n->failed += w->jobs[i].failed;
        n->restarts += w->jobs[i].attempt > 1 ? w->jobs[i].attempt - 1 : 0;
    }
    n->jobs += w->job_count;
    n->leaders += w->leader_count - 1;
    n->alone += w->alone;
}

bool cluster_run(uint64_t seed, bool verbose, const char **why, cluster_counts *counts) {
    static world w;
    static char reason[sizeof w.why];
    int64_t rest_us = -1;
    set_up(&w, seed, verbose);
    while (w.heap_count && !w.why[0] && w.now_us < END_MS * MS) {
        event e = take_event(&w);
        if (e.at_us > w.now_us) w.now_us = e.at_us;
        happen(&w, &e);
        if (rest_us < 0 && w.calm && all_over(&w)) rest_us = w.now_us + 10000 * MS; /* for the last words */
        if (rest_us >= 0 && w.now_us > rest_us) break;
    }
    check_end(&w);
    count(&w, counts);
    tear_down(&w);
    memcpy(reason, w.why, sizeof reason);
    *why = reason;
    return !reason[0];
}
