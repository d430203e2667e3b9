/* See connection.h.
 *
 *   NEW ---dial's first turn---> CONNECTING ---writable---> SHAKING ---TLS---> OPEN
 *    |                               |                         |               |
 *    +---------- close, failure, the loop's end ---------------+---------------+---> CLOSED (on_close)
 *
 * An accepted connection goes from NEW to SHAKING, and without TLS to OPEN, at once. The state and the socket are the
 * loop thread's; senders share with it only what stands under the lock. */
#include "net/connection.h"

#include <pthread.h>
#include <stdio.h>

#include "net/net_int.h"
#include "net/tls_int.h"
#include "os/clock.h"

enum {
    FRAMES_A_WRITE = 32,         /* two pieces each */
    READ_BYTES_A_TURN = 1 << 20, /* then the others' turn */
};

typedef enum conn_state { CONN_NEW, CONN_CONNECTING, CONN_SHAKING, CONN_OPEN, CONN_CLOSED } conn_state;

struct ck_connection {
    net_watch watch; /* first */
    _Atomic uint32_t refs;
    ck_proc *proc;
    ck_net_loop *loop; /* not to be touched once closed: references may outlive it */
    ck_connection_config cfg;
    char peer[256];
    /* of the loop's thread */
    conn_state state;
    ck_socket *socket;
    net_tls *tls;      /* NULL: none */
    bool shake_writes; /* SHAKING: it waits for room, else for bytes */
    bool unread;       /* with TLS: what has come may be there and not in the socket */
    ck_frame_reader reader;
    ck_net_timer timer;             /* of connecting, then of the greeting */
    bool reads, writes;             /* what the poller was told */
    bool paused;                    /* on_frame said CK_FULL */
    size_t head_sent;               /* bytes of the first frame that are out */
    bool is_stranger;               /* a greeting is awaited */
    net_acceptor *acceptor;         /* NULL: it was dialled */
    ck_connection *younger, *older; /* strangers of the same acceptor */
    ck_net_post note;               /* queued while `notified` */
    pthread_mutex_t lock;           /* guards everything below */
    ck_frame *head, *tail;
    size_t queued_bytes;
    bool notified, write_blocked; /* the loop will look at the queue anyhow */
    bool told_full;
    bool close_asked, close_flush;
    bool closed;
    unsigned resumes;
};

static ck_connection *of_watch(net_watch *w) { return (ck_connection *)w; }
static size_t bytes_of(const ck_frame *f) { return f->n + CK_FRAME_HEADER_BYTES; }

/* ---- references ---- */

ck_connection *ck_connection_ref(ck_connection *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void ck_connection_unref(ck_connection **pc) {
    ck_connection *c = *pc;
    *pc = NULL;
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
    CK_ASSERT(!c->head && !c->socket);
    pthread_mutex_destroy(&c->lock);
    ck_free(ck_proc_mem(c->proc, CK_MEM_PLAN), c, sizeof *c);
}

const char *ck_connection_peer(const ck_connection *c) { return c->peer; }

/* ---- strangers ---- */

static void await_greeting(ck_connection *c) {
    net_acceptor *a = c->acceptor;
    if (!c->cfg.greeting_bytes_max) return;
    c->is_stranger = true;
    c->reader.length_max = c->cfg.greeting_bytes_max;
    if (c->cfg.greeting_timeout_us > 0)
        ck_net_loop_at(c->loop, &c->timer, ck_mono_us(c->proc) + c->cfg.greeting_timeout_us);
    if (!a) return;
    a->stranger_count++;
    c->older = a->newest;
    *(c->older ? &c->older->younger : &a->oldest_stranger) = c;
    a->newest = c;
}

static void end_greeting(ck_connection *c) {
    net_acceptor *a = c->acceptor;
    ck_net_loop_cancel(c->loop, &c->timer);
    if (!c->is_stranger) return;
    c->is_stranger = false;
    c->reader.length_max = c->cfg.frame_bytes_max;
    if (!a) return;
    a->stranger_count--;
    *(c->older ? &c->older->younger : &a->oldest_stranger) = c->younger;
    *(c->younger ? &c->younger->older : &a->newest) = c->older;
    c->older = c->younger = NULL;
}

void ck_connection_trust(ck_connection *c) { end_greeting(c); }

/* ---- closing ---- */

static void drop_queue(ck_connection *c) {
    pthread_mutex_lock(&c->lock);
    ck_frame *f = c->head;
    c->head = c->tail = NULL;
    c->queued_bytes = 0;
    c->closed = true;
    pthread_mutex_unlock(&c->lock);
    while (f) {
        ck_frame *next = f->next;
        ck_frame_free(&f);
        f = next;
    }
}

/* The one way into CLOSED. */
static void finish(ck_connection *c, ck_status why, const ck_error *err) {
    CK_ASSERT(c->state != CONN_CLOSED);
    c->state = CONN_CLOSED;
    end_greeting(c);
    net_tls_free(c->tls);
    c->tls = NULL;
    ck_socket_close(c->socket);
    c->socket = NULL;
    ck_frame_reader_destroy(&c->reader);
    drop_queue(c);
    c->cfg.handler->on_close(c->cfg.arg, c, why, err);
    if (c->acceptor) c->acceptor->gone(c->acceptor);
    net_loop_retire(c->loop, &c->watch);
}

static void finish_failed(ck_connection *c, ck_status why, ck_error *err) {
    err->status = why;
    if (!err->msg[0]) ck_fail(err, why, "the connection to %s failed", c->peer);
    finish(c, why, err);
}

void net_connection_turn_away(ck_connection *c) {
    ck_error err = CK_ERROR_INIT;
    finish_failed(c, ck_fail(&err, CK_REFUSED, "it has not said who it is, and others wait"), &err);
}

static void stop_watch(net_watch *w) {
    ck_connection *c = of_watch(w);
    ck_error err = CK_ERROR_INIT;
    ck_fail(&err, CK_CANCELLED, "the connection to %s is closed: its network loop ends", c->peer);
    finish(c, CK_CANCELLED, &err);
}

static void retire_watch(net_watch *w) {
    ck_connection *c = of_watch(w);
    ck_connection_unref(&c);
}

/* ---- writing ---- */

static size_t pieces_to_write(ck_connection *c, ck_view parts[2 * FRAMES_A_WRITE]) {
    size_t n = 0, skip = c->head_sent;
    pthread_mutex_lock(&c->lock);
    for (const ck_frame *f = c->head; f && n + 2 <= 2 * FRAMES_A_WRITE; f = f->next) {
        ck_view pieces[2] = {{(const char *)f->header, CK_FRAME_HEADER_BYTES}, {(const char *)f->p, f->n}};
        for (int i = 0; i < 2; i++) {
            size_t cut = skip < pieces[i].n ? skip : pieces[i].n;
            skip -= cut;
            if (pieces[i].n > cut) parts[n++] = (ck_view){pieces[i].p + cut, pieces[i].n - cut};
        }
    }
    c->write_blocked = n > 0; /* the loop is at it: senders need not say so */
    pthread_mutex_unlock(&c->lock);
    return n;
}

/* Takes what was sent out of the queue; whether that made room somebody waits for. */
static bool advance(ck_connection *c, size_t sent) {
    ck_frame *done = NULL;
    pthread_mutex_lock(&c->lock);
    c->head_sent += sent;
    while (c->head && c->head_sent >= bytes_of(c->head)) {
        ck_frame *f = c->head;
        c->head_sent -= bytes_of(f);
        c->queued_bytes -= bytes_of(f);
        c->head = f->next;
        if (!c->head) c->tail = NULL;
        f->next = done, done = f;
    }
    bool room = c->told_full && c->queued_bytes <= c->cfg.queue_bytes_max / 2;
    if (room) c->told_full = false;
    pthread_mutex_unlock(&c->lock);
    while (done) {
        ck_frame *next = done->next;
        ck_frame_free(&done);
        done = next;
    }
    return room;
}

static ck_status write_some(ck_connection *c, ck_error *err) {
    for (;;) {
        ck_view parts[2 * FRAMES_A_WRITE];
        size_t count = pieces_to_write(c, parts), sent;
        if (count == 0) return CK_OK;
        ck_status s = c->tls ? net_tls_writev(c->tls, parts, count, &sent, err)
                             : ck_socket_writev(c->socket, parts, count, &sent, err);
        if (s == CK_AGAIN) return CK_OK; /* write_blocked stands: the poller says when */
        if (s != CK_OK) return s;
        if (advance(c, sent) && c->cfg.handler->on_room) c->cfg.handler->on_room(c->cfg.arg, c);
    }
}

/* ---- reading ---- */

/* Takes up one resume if there is one: then the CK_FULL that it answers is answered. */
static bool take_resume(ck_connection *c) {
    pthread_mutex_lock(&c->lock);
    bool resumed = c->resumes > 0;
    c->resumes -= resumed;
    pthread_mutex_unlock(&c->lock);
    return resumed;
}

static ck_status deliver_frames(ck_connection *c, ck_error *err) {
    for (;;) {
        ck_frame *f;
        ck_status s = ck_frame_reader_next(&c->reader, &f, err);
        if (s != CK_OK) return s == CK_AGAIN ? CK_OK : s;
        s = c->cfg.handler->on_frame(c->cfg.arg, c, &f, err);
        ck_frame_free(&f); /* not taken by one that failed */
        if (s == CK_FULL) {
            c->paused = !take_resume(c);
            if (c->paused) return CK_OK;
        } else if (s != CK_OK) {
            return s;
        }
    }
}

static ck_status read_some(ck_connection *c, ck_error *err) {
    c->unread = c->tls != NULL;
    for (size_t total = 0; total < READ_BYTES_A_TURN && !c->paused;) {
        void *p;
        size_t room, got;
        ck_status s = ck_frame_reader_space(&c->reader, &p, &room, err);
        if (s == CK_OK)
            s = c->tls ? net_tls_read(c->tls, p, room, &got, err) : ck_socket_read(c->socket, p, room, &got, err);
        if (s == CK_AGAIN) {
            c->unread = false;
            return CK_OK;
        }
        if (s == CK_CLOSED && !ck_frame_reader_between(&c->reader)) ck_error_prefix(err, "in the middle of a frame: ");
        if (s != CK_OK) return s;
        ck_frame_reader_filled(&c->reader, got);
        CK_TRY(deliver_frames(c, err));
        if (got < room && !c->tls) return CK_OK; /* that was all: the poller says when there is more */
        total += got;
    }
    return CK_OK;
}

/* ---- notes: the loop has something to do ---- */

/* Under the lock; true: post the note once it is released. */
static bool claim_note(ck_connection *c) {
    if (c->notified || c->closed) return false;
    c->notified = true;
    ck_connection_ref(c);
    return true;
}

static void post_note(ck_connection *c) {
    pthread_mutex_lock(&c->lock);
    bool note = claim_note(c);
    pthread_mutex_unlock(&c->lock);
    if (note) ck_net_loop_post(c->loop, &c->note);
}

/* ---- one turn ---- */

/* Tells the poller what is wanted now. */
static ck_status update_interest(ck_connection *c, ck_error *err) {
    pthread_mutex_lock(&c->lock);
    bool blocked = c->write_blocked;
    pthread_mutex_unlock(&c->lock);
    bool shaking = c->state == CONN_SHAKING;
    bool reads = shaking ? !c->shake_writes : c->state == CONN_OPEN && !c->paused;
    bool writes = shaking ? c->shake_writes : c->state == CONN_CONNECTING || blocked;
    if (reads == c->reads && writes == c->writes) return CK_OK;
    CK_TRY(ck_poller_set(net_loop_poller(c->loop), c->socket, reads, writes, &c->watch, err));
    c->reads = reads, c->writes = writes;
    return CK_OK;
}

/* Whether a close that was asked for is due. */
static bool close_is_due(ck_connection *c) {
    pthread_mutex_lock(&c->lock);
    bool due = c->close_asked && (!c->close_flush || (c->state == CONN_OPEN && !c->head));
    pthread_mutex_unlock(&c->lock);
    return due;
}

/* After anything was done: close for the reason s, or because it was asked for, or wait for more. */
static void settle(ck_connection *c, ck_status s, ck_error *err) {
    if (s == CK_OK && close_is_due(c)) {
        finish(c, CK_OK, NULL);
        return;
    }
    if (s == CK_OK) s = update_interest(c, err);
    if (s != CK_OK)
        finish_failed(c, s, err);
    else if (c->state == CONN_OPEN && c->unread && !c->paused)
        post_note(c); /* the poller would not say so */
}

static ck_status opened(ck_connection *c, ck_error *err) {
    if (!c->acceptor) {
        ck_net_loop_cancel(c->loop, &c->timer);
        await_greeting(c);
    }
    c->state = CONN_OPEN;
    c->unread = c->tls != NULL;
    if (c->cfg.handler->on_open) c->cfg.handler->on_open(c->cfg.arg, c);
    return write_some(c, err);
}

static ck_status shake(ck_connection *c, ck_error *err) {
    ck_status s = net_tls_shake(c->tls, &c->shake_writes, err);
    return s == CK_OK ? opened(c, err) : s == CK_AGAIN ? CK_OK : s;
}

/* The socket is connected. */
static ck_status connected(ck_connection *c, ck_error *err) {
    if (c->acceptor) await_greeting(c); /* its time begins with the handshake */
    if (!c->cfg.tls) return opened(c, err);
    c->state = CONN_SHAKING;
    CK_TRY(net_tls_new(c->cfg.tls, c->socket, c->acceptor ? NULL : c->peer, &c->tls, err));
    return shake(c, err);
}

static void ready_watch(net_watch *w, const ck_poll_event *e) {
    ck_connection *c = of_watch(w);
    ck_error err = CK_ERROR_INIT;
    ck_status s = CK_OK;
    if (c->state == CONN_CLOSED) return; /* by an earlier event of this turn */
    if (c->state == CONN_CONNECTING) {
        s = ck_socket_connected(c->socket, &err);
        if (s == CK_OK) s = connected(c, &err);
    } else if (c->state == CONN_SHAKING) {
        s = shake(c, &err);
    } else {
        if (e->closed && c->paused)
            s = ck_fail(&err, CK_CLOSED, "%s has reset the connection", c->peer); /* no reading would tell */
        else if (e->readable || e->closed)
            s = read_some(c, &err);
        if (s == CK_OK && e->writable) s = write_some(c, &err);
    }
    settle(c, s, &err);
}

static void timed_out(ck_net_timer *t) {
    ck_connection *c = (ck_connection *)((char *)t - offsetof(ck_connection, timer));
    ck_error err = CK_ERROR_INIT;
    if (c->state == CONN_OPEN || c->acceptor) {
        finish_failed(c,
                      ck_fail(&err, CK_REFUSED, "%s has not said who it is within %lld ms", c->peer,
                              (long long)(c->cfg.greeting_timeout_us / 1000)),
                      &err);
        return;
    }
    ck_fail(&err, CK_IO, "connecting to %s: no answer within %lld ms", c->peer,
            (long long)(c->cfg.connect_timeout_us / 1000));
    err.retriable = true;
    finish(c, CK_IO, &err);
}

static void begin(ck_connection *c) {
    net_loop_add(c->loop, &c->watch);
    c->state = CONN_CONNECTING;
    if (c->cfg.connect_timeout_us > 0)
        ck_net_loop_at(c->loop, &c->timer, ck_mono_us(c->proc) + c->cfg.connect_timeout_us);
}

/* Somebody sent, resumed, closed or dialled. */
static void run_note(ck_net_post *m) {
    ck_connection *c = (ck_connection *)((char *)m - offsetof(ck_connection, note));
    pthread_mutex_lock(&c->lock);
    c->notified = false;
    pthread_mutex_unlock(&c->lock);
    ck_error err = CK_ERROR_INIT;
    ck_status s = CK_OK;
    if (c->state == CONN_NEW) begin(c);
    if (c->state != CONN_CLOSED) {
        if (c->paused && take_resume(c)) {
            c->paused = false;
            s = deliver_frames(c, &err); /* those that had arrived already */
        }
        if (s == CK_OK && c->state == CONN_OPEN && c->unread && !c->paused) s = read_some(c, &err);
        if (s == CK_OK && c->state == CONN_OPEN) s = write_some(c, &err);
        settle(c, s, &err);
    }
    ck_connection_unref(&c); /* the note's */
}

/* ---- what others call ---- */

ck_status ck_connection_send(ck_connection *c, ck_frame **pf) {
    ck_frame *f = *pf;
    *pf = NULL;
    f->next = NULL;
    bool fits = f->n < c->cfg.frame_bytes_max;
    if (fits) ck_frame_header(f->header, f->kind, f->n);
    pthread_mutex_lock(&c->lock);
    bool taken = fits && !c->closed && !c->close_asked, full = false, note = false;
    if (taken) {
        if (c->tail)
            c->tail->next = f;
        else
            c->head = f;
        c->tail = f;
        c->queued_bytes += bytes_of(f);
        full = c->queued_bytes > c->cfg.queue_bytes_max;
        c->told_full = c->told_full || full;
        note = !c->write_blocked && claim_note(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (note) ck_net_loop_post(c->loop, &c->note);
    if (!taken) ck_frame_free(&f);
    return !fits ? CK_INVALID : !taken ? CK_CLOSED : full ? CK_FULL : CK_OK;
}

void ck_connection_resume(ck_connection *c) {
    pthread_mutex_lock(&c->lock);
    c->resumes++;
    bool note = claim_note(c);
    pthread_mutex_unlock(&c->lock);
    if (note) ck_net_loop_post(c->loop, &c->note);
}

void ck_connection_close(ck_connection *c, bool flush) {
    pthread_mutex_lock(&c->lock);
    c->close_flush = flush && (!c->close_asked || c->close_flush); /* a close at once overrules one that flushes */
    c->close_asked = true;
    bool note = claim_note(c);
    pthread_mutex_unlock(&c->lock);
    if (note) ck_net_loop_post(c->loop, &c->note);
}

/* ---- making them ---- */

/* Takes over s, also when it fails. */
static ck_status connection_new(ck_net_loop *l, ck_socket *s, const ck_connection_config *cfg, ck_connection **out,
                                ck_error *err) {
    CK_ASSERT(cfg->handler && cfg->handler->on_frame && cfg->handler->on_close && cfg->frame_bytes_max > 0);
    ck_mem mem = ck_proc_mem(net_loop_proc(l), CK_MEM_PLAN);
    ck_connection *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) {
        ck_socket_close(s);
        return ck_nomem(err, mem, sizeof *c);
    }
    c->watch = (net_watch){.ready = ready_watch, .stop = stop_watch, .retire = retire_watch};
    atomic_init(&c->refs, 1);
    c->proc = net_loop_proc(l), c->loop = l, c->cfg = *cfg, c->socket = s;
    c->note.run = run_note;
    c->timer.fire = timed_out;
    snprintf(c->peer, sizeof c->peer, "%s", ck_socket_address(s));
    ck_frame_reader_init(&c->reader, cfg->mem, cfg->frame_bytes_max);
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return CK_OK;
}

ck_status ck_connection_dial(ck_net_loop *l, const char *address, const ck_connection_config *cfg, ck_connection **out,
                             ck_error *err) {
    *out = NULL;
    ck_socket *s;
    CK_TRY(ck_socket_connect(net_loop_proc(l), address, &s, err));
    ck_connection *c;
    CK_TRY(connection_new(l, s, cfg, &c, err));
    *out = ck_connection_ref(c); /* the first one is the loop's */
    ck_connection_ref(c);        /* the note's */
    c->notified = true;
    ck_net_loop_post(l, &c->note);
    return CK_OK;
}

ck_status net_connection_adopt(ck_net_loop *l, ck_socket *s, const ck_connection_config *cfg, net_acceptor *a,
                               ck_error *err) {
    ck_connection *c;
    CK_TRY(connection_new(l, s, cfg, &c, err));
    c->acceptor = a;
    net_loop_add(l, &c->watch);
    ck_error why = CK_ERROR_INIT;
    settle(c, connected(c, &why), &why); /* a failure from here on is told by on_close */
    return CK_OK;
}
