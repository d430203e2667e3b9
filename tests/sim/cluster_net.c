/* Connections between workers, the client and leaders. Frames of one connection and direction arrive in order, after
 * any time; a connection breaks with what is on its way; a partition holds frames back and lets nobody dial; a process
 * that is suspended hears later what came meanwhile. */
#include <string.h>

#include "cluster_world.h"

enum { TO_OTHER = 0, TO_LEADER = 1 };

/* ---- frames ---- */

void net_send(world *w, uint32_t conn_number, bool to_leader, ck_frame *f) {
    conn *c = &w->conns[conn_number];
    if (!c->open[to_leader ? 1 : 0]) { /* the sender's end */
        ck_frame_free(&f);
        return;
    }
    int64_t at_us = w->now_us + world_delay(w);
    if (at_us <= c->last_us[to_leader]) at_us = c->last_us[to_leader] + 1;
    c->last_us[to_leader] = at_us;
    world_at(w, at_us, EVENT_DELIVER, conn_number, to_leader, 0, f);
}

/* Until when whoever is to hear something cannot; 0: he can. */
static int64_t held_until(const world *w, const conn *c, bool leader_hears) {
    int64_t until_us = leader_hears     ? w->leaders[c->leader].suspended_until_us
                       : c->worker >= 0 ? w->workers[c->worker].suspended_until_us
                                        : 0;
    if (c->worker >= 0 && w->workers[c->worker].partition_until_us > until_us)
        until_us = w->workers[c->worker].partition_until_us;
    return until_us > w->now_us ? until_us : 0;
}

static void leader_hears(world *w, uint32_t number, uint32_t conn_number, const ck_message *m) {
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_coordinator_heard(w->leaders[number].c, w->now_us, conn_number, m, &err);
    leader_drain(w, number);
    if (s != CK_OK && w->leaders[number].alive) {
        world_say(w, "leader %u closes connection %u: %s", number, conn_number, err.msg);
        net_close(w, conn_number, true);
    }
}

void net_deliver(world *w, const event *e) {
    conn *c = &w->conns[e->a];
    ck_frame *f = e->frame;
    int64_t until_us = held_until(w, c, e->b);
    if (until_us && c->open[e->b ? 0 : 1]) {
        world_hold(w, e, until_us);
        return;
    }
    ck_arena arena;
    ck_message m;
    ck_error err = CK_ERROR_INIT;
    ck_arena_init(&arena, w->mem, 64 << 20);
    bool there = c->open[e->b ? 0 : 1];
    if (there && ck_message_read(f, &arena, &m, &err) != CK_OK) world_broken(w, "%s", err.msg);
    if (there)
        world_say(w, "%s %d %s %u: %s job %llu attempt %llu", e->b ? "worker" : "to worker", c->worker,
                  e->b ? "to leader" : "from leader", c->leader, ck_message_name(m.kind),
                  (unsigned long long)m.as.fence.job, (unsigned long long)m.as.fence.attempt);
    if (!there) {
        /* it was on its way when the connection broke */
    } else if (e->b) {
        leader_hears(w, c->leader, e->a, &m);
    } else if (c->worker < 0) {
        client_heard(w, &m);
    } else {
        if (ck_session_heard(w->workers[c->worker].s, w->now_us, &m, &err) != CK_OK) {
            world_say(w, "worker %d closes: %s", c->worker, err.msg);
            net_close(w, e->a, false);
        }
        worker_drain(w, (uint32_t)c->worker);
    }
    ck_arena_destroy(&arena);
    ck_frame_free(&f);
}

/* ---- closing ---- */

static void after_close(world *w, uint32_t conn_number, bool leader_end) {
    conn *c = &w->conns[conn_number];
    if (leader_end) {
        leader *l = &w->leaders[c->leader];
        if (!l->alive) return;
        if (ck_coordinator_closed(l->c, w->now_us, conn_number, NULL) != CK_OK) world_broken(w, "no memory");
        leader_drain(w, c->leader);
    } else if (c->worker < 0) {
        if (w->client_conn == conn_number) w->client_conn = 0;
    } else if (w->workers[c->worker].conn == conn_number) {
        w->workers[c->worker].conn = 0;
        ck_session_disconnected(w->workers[c->worker].s);
    }
}

void net_close(world *w, uint32_t conn_number, bool by_leader) {
    conn *c = &w->conns[conn_number];
    int mine = by_leader ? 0 : 1;
    if (!c->open[mine]) return;
    c->open[mine] = false;
    world_at(w, w->now_us + world_delay(w), EVENT_CLOSED, conn_number, !by_leader, 0, NULL);
    after_close(w, conn_number, by_leader);
}

/* b: whose end hears it: 1 the leader's. */
void net_closed(world *w, const event *e) {
    conn *c = &w->conns[e->a];
    int end = e->b ? 0 : 1;
    int64_t until_us = held_until(w, c, e->b);
    if (!c->open[end]) return;
    if (until_us) {
        world_hold(w, e, until_us);
        return;
    }
    c->open[end] = false;
    after_close(w, e->a, e->b);
}

void net_process_died(world *w, int32_t worker, uint32_t leader_number) {
    for (uint32_t i = 1; i < w->conn_count; i++) {
        conn *c = &w->conns[i];
        bool leader_died = worker < 0;
        if (leader_died ? c->leader != leader_number : c->worker != worker) continue;
        if (!c->open[leader_died ? 0 : 1]) continue;
        c->open[leader_died ? 0 : 1] = false;
        world_at(w, w->now_us + world_delay(w), EVENT_CLOSED, i, !leader_died, 0, NULL);
    }
}

/* ---- dialling ---- */

static uint32_t dial(world *w, int32_t worker, uint32_t number) {
    if (!w->leaders[number].alive) return 0;
    if (w->leaders[number].suspended_until_us > w->now_us && (w->calm || dice_below(&w->dice, 2))) return 0;
    if (w->conn_count == CONNS_MAX) {
        world_broken(w, "more than %d connections", CONNS_MAX);
        return 0;
    }
    w->conns[w->conn_count] = (conn){.worker = worker, .leader = number, .open = {true, true}};
    return w->conn_count++;
}

/* One that is stopped takes connections, as its kernel does; and who led before may still listen. */
void net_dial(world *w, uint32_t worker) {
    sim_worker *k = &w->workers[worker];
    uint32_t number = w->leader_count - 1;
    if (k->partition_until_us > w->now_us) return;
    if (number > 0 && !w->calm && dice_below(&w->dice, 8) == 0) number--;
    k->conn = dial(w, (int32_t)worker, number);
    if (!k->conn) return;
    world_excuse(k, w->now_us);
    if (ck_session_connected(k->s, w->now_us, NULL) != CK_OK) world_broken(w, "no memory");
    worker_drain(w, worker);
}

void net_dial_client(world *w) {
    w->client_conn = dial(w, -1, w->leader_count - 1);
    w->client_heard_us = w->now_us;
}

/* ---- leaders ---- */

void leader_kill(world *w, uint32_t number) {
    leader *l = &w->leaders[number];
    if (!l->alive) return;
    world_say(w, "leader %u dies", number);
    l->alive = false;
    ck_coordinator_free(l->c);
    l->c = NULL;
    net_process_died(w, -1, number);
}

/* A leader closes the connection of a worker that it takes for lost. */
static void check_loss(world *w, uint32_t conn_number) {
    int32_t worker = w->conns[conn_number].worker;
    if (worker >= 0 && w->workers[worker].alive && w->workers[worker].conn == conn_number &&
        !worker_excused(w, (uint32_t)worker))
        world_broken(w, "worker %d was never away, and is taken for lost", worker);
}

static void probe(world *w, uint32_t number, const ck_action *a) {
    world_at(w, w->now_us + world_delay(w), EVENT_PROBED, number, (uint32_t)(a->number & 255), a->number, NULL);
}

/* The store takes no record from a leader when a newer one has begun. false: this leader is none any more. */
static bool keep(world *w, const leader *l, ck_action *a) {
    if (l->epoch < w->guard) return false;
    w->guard = l->epoch;
    if (a->number >= RECORDS_MAX) {
        world_broken(w, "a record %llu", (unsigned long long)a->number);
        return false;
    }
    ck_frame_free(&w->records[a->number]);
    if (a->kind == CK_ACTION_PERSIST) w->records[a->number] = a->frame, a->frame = NULL;
    return true;
}

void leader_drain(world *w, uint32_t number) {
    leader *l = &w->leaders[number];
    if (l->busy) return; /* whoever is taking actions takes these, too */
    l->busy = true;
    for (ck_action *a; l->alive && (a = ck_coordinator_next(l->c)) != NULL;) {
        bool lives = true;
        if (!w->calm && dice_below(&w->dice, 4000) == 0) { /* between any two actions */
            world_say(w, "leader %u dies between two actions", number);
            lives = false;
        } else if (a->kind == CK_ACTION_SEND) {
            net_send(w, (uint32_t)a->conn, false, a->frame);
            a->frame = NULL;
        } else if (a->kind == CK_ACTION_CLOSE) {
            check_loss(w, (uint32_t)a->conn);
            net_close(w, (uint32_t)a->conn, true);
        } else if (a->kind == CK_ACTION_PROBE) {
            probe(w, number, a);
        } else {
            lives = keep(w, l, a);
        }
        ck_action_free(l->c, a);
        if (lives) continue;
        leader_kill(w, number);
        if (number == w->leader_count - 1) world_at(w, w->now_us + 200 * MS, EVENT_LEADER_BORN, 0, 0, 0, NULL);
    }
    l->busy = false;
}

bool leader_is_there(const world *w) {
    const leader *l = &w->leaders[w->leader_count - 1];
    return l->alive && l->suspended_until_us < FOREVER_US;
}

/* Over the records that stand. */
void leader_born(world *w) {
    if (w->leader_count == LEADERS_MAX) return;
    uint32_t number = w->leader_count++;
    leader *l = &w->leaders[number];
    *l = (leader){.alive = true, .epoch = w->guard + 1};
    ck_coordinator_config cfg = ck_coordinator_defaults(w->mem, l->epoch);
    cfg.seed = dice_draw(&w->dice);
    cfg.max_restarts = dice_below(&w->dice, 2);
    ck_arena arena;
    ck_error err = CK_ERROR_INIT;
    ck_arena_init(&arena, w->mem, 64 << 20);
    if (ck_coordinator_new(&cfg, &l->c, &err) != CK_OK) world_broken(w, "%s", err.msg);
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        ck_message m;
        if (!w->records[i]) continue;
        if (ck_message_read(w->records[i], &arena, &m, &err) != CK_OK ||
            ck_coordinator_recover(l->c, &m, &err) != CK_OK)
            world_broken(w, "record %u: %s", i, err.msg);
    }
    ck_arena_destroy(&arena);
    world_say(w, "leader %u is born", number);
    if (ck_coordinator_begin(l->c, w->now_us, &err) != CK_OK) world_broken(w, "%s", err.msg);
    w->guard = l->epoch; /* elected: it has the store from here on */
    leader_drain(w, number);
    world_at(w, w->now_us + 100 * MS, EVENT_LEADER_TICK, number, 0, 0, NULL);
}
