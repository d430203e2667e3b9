/* The accepting side of connection.h. It lives as long as its loop's watch, its connections and its owner's handle do:
 * each connection reports back when it is gone, so that the ceiling counts those alive. */
#include <pthread.h>

#include "net/net_int.h"
#include "os/clock.h"

enum { ACCEPTS_A_TURN = 16, BACK_OFF_US = 100 * 1000, STRANGERS_SHARE = 8, STRANGERS_MIN = 64 };

struct ck_listener {
    net_watch watch; /* first */
    net_acceptor acceptor;
    ck_net_loop *loop;
    ck_socket *socket; /* NULL once closed */
    unsigned connections, connections_max;
    unsigned refs; /* the watch and each connection; the loop's thread counts */
    ck_accept_fn on_accept;
    void *arg;
    ck_net_timer again; /* after the system had no more descriptors */
};

static void unref(ck_listener *l) {
    if (--l->refs > 0) return;
    ck_free(ck_proc_mem(net_loop_proc(l->loop), CK_MEM_PLAN), l, sizeof *l);
}

static void connection_gone(net_acceptor *a) {
    ck_listener *l = (ck_listener *)((char *)a - offsetof(ck_listener, acceptor));
    l->connections--;
    unref(l);
}

static bool has_room(ck_listener *l) {
    unsigned share = l->connections_max / STRANGERS_SHARE, strangers = l->acceptor.stranger_count;
    if (l->connections >= l->connections_max ? strangers > 0
                                             : strangers >= (share > STRANGERS_MIN ? share : STRANGERS_MIN))
        net_connection_turn_away(l->acceptor.oldest_stranger);
    return l->connections < l->connections_max;
}

static void take_in(ck_listener *l, ck_socket *s) {
    ck_proc *proc = net_loop_proc(l->loop);
    ck_connection_config cfg = {0};
    if (!has_room(l)) {
        ck_log_line(proc->log, CK_LOG_WARN, "%s is turned away: %u connections are open, the most allowed",
                    ck_socket_address(s), l->connections);
        ck_socket_close(s);
        return;
    }
    if (!l->on_accept(l->arg, &cfg)) {
        ck_socket_close(s);
        return;
    }
    l->connections++, l->refs++;
    ck_error err = CK_ERROR_INIT;
    if (net_connection_adopt(l->loop, s, &cfg, &l->acceptor, &err) != CK_OK) {
        ck_log_line(proc->log, CK_LOG_WARN, "a connection is turned away: %s", err.msg);
        connection_gone(&l->acceptor);
    }
}

static void accept_some(net_watch *w, const ck_poll_event *e) {
    (void)e;
    ck_listener *l = (ck_listener *)w;
    for (int i = 0; i < ACCEPTS_A_TURN && l->socket; i++) { /* on_accept may close us */
        ck_socket *s;
        ck_error err = CK_ERROR_INIT;
        ck_status status = ck_socket_accept(l->socket, &s, &err);
        if (status == CK_AGAIN) return;
        if (status == CK_OK) {
            take_in(l, s);
            continue;
        }
        /* Most likely no descriptor is free: the peer waits in the queue, and so do we, without spinning. */
        ck_proc *proc = net_loop_proc(l->loop);
        ck_log_line(proc->log, CK_LOG_WARN, "%s", err.msg);
        ck_poller_remove(net_loop_poller(l->loop), l->socket);
        ck_net_loop_at(l->loop, &l->again, ck_mono_us(proc) + BACK_OFF_US);
        return;
    }
}

static void accept_again(ck_net_timer *t) {
    ck_listener *l = (ck_listener *)((char *)t - offsetof(ck_listener, again));
    ck_error err = CK_ERROR_INIT;
    if (ck_poller_set(net_loop_poller(l->loop), l->socket, true, false, &l->watch, &err) == CK_OK) return;
    ck_log_line(net_loop_proc(l->loop)->log, CK_LOG_WARN, "%s", err.msg);
    ck_net_loop_at(l->loop, t, ck_mono_us(net_loop_proc(l->loop)) + BACK_OFF_US);
}

static void stop_listening(net_watch *w) {
    ck_listener *l = (ck_listener *)w;
    ck_net_loop_cancel(l->loop, &l->again);
    ck_socket_close(l->socket);
    l->socket = NULL;
    net_loop_retire(l->loop, w);
}

static void retire_listener(net_watch *w) { unref((ck_listener *)w); }

/* ---- doing something on the loop's thread and waiting for it ---- */

typedef struct call {
    ck_net_post post; /* first */
    ck_listener *l;
    void (*fn)(struct call *c);
    ck_status status;
    ck_error *err;
    pthread_mutex_t lock; /* guards done */
    pthread_cond_t changed;
    bool done;
} call;

static void run_call(ck_net_post *m) {
    call *c = (call *)m;
    c->fn(c);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static ck_status on_loop(ck_listener *l, void (*fn)(call *c), ck_error *err) {
    call c = {.post = {.run = run_call}, .l = l, .fn = fn, .err = err};
    ck_net_loop *loop = l->loop;
    if (ck_net_loop_is_current(loop)) {
        fn(&c);
        return c.status;
    }
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.changed, NULL);
    ck_net_loop_post(loop, &c.post);
    pthread_mutex_lock(&c.lock);
    while (!c.done) pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
    return c.status;
}

static void start_listening(call *c) {
    ck_listener *l = c->l;
    c->status = ck_poller_set(net_loop_poller(l->loop), l->socket, true, false, &l->watch, c->err);
    if (c->status == CK_OK) net_loop_add(l->loop, &l->watch);
}

static void close_listener(call *c) { stop_listening(&c->l->watch); }

ck_status ck_listener_on(ck_net_loop *loop, ck_socket **ps, unsigned connections_max, ck_accept_fn on_accept, void *arg,
                         ck_listener **out, ck_error *err) {
    ck_socket *socket = *ps;
    *ps = NULL, *out = NULL;
    ck_mem mem = ck_proc_mem(net_loop_proc(loop), CK_MEM_PLAN);
    ck_listener *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) {
        ck_socket_close(socket);
        return ck_nomem(err, mem, sizeof *l);
    }
    l->watch = (net_watch){.ready = accept_some, .stop = stop_listening, .retire = retire_listener};
    l->acceptor.gone = connection_gone;
    l->loop = loop, l->socket = socket, l->connections_max = connections_max, l->refs = 1;
    l->on_accept = on_accept, l->arg = arg;
    l->again.fire = accept_again;
    ck_status s = on_loop(l, start_listening, err);
    if (s != CK_OK) {
        ck_socket_close(l->socket);
        ck_free(mem, l, sizeof *l);
        return s;
    }
    *out = l;
    return CK_OK;
}

ck_status ck_listener_open(ck_net_loop *loop, const char *address, unsigned connections_max, ck_accept_fn on_accept,
                           void *arg, ck_listener **out, uint16_t *bound_port, ck_error *err) {
    ck_socket *s;
    *out = NULL;
    CK_TRY(ck_socket_listen(net_loop_proc(loop), address, &s, bound_port, err));
    return ck_listener_on(loop, &s, connections_max, on_accept, arg, out, err);
}

void ck_listener_close(ck_listener *l) {
    if (!l) return;
    ck_status s = on_loop(l, close_listener, NULL);
    CK_ASSERT(s == CK_OK);
}
