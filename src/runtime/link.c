/* See link.h: making links, connections and their handshake. Everything that happens on the net loop's thread stands
 * here; it only puts frames into inboxes and notifies. */
#include "runtime/link_int.h"

#include <errno.h>
#include <time.h>

#include "os/clock.h"

enum {
    CONNECTION_QUEUE_BYTES = 4 << 20,
    REDIAL_US = 20000,
    LAST_WORDS_US = 1000000,
    CONNECT_TIMEOUT_US = 2000000,
    STRANGERS_MAX = 64,
    GREETING_BYTES_MAX = 512, /* a HELLO without splits */
    GREETING_US = 10000000,
};

/* One connection on its way to a link, or in it. Freed by its last callback. */
typedef struct wire {
    ck_links *group;
    ck_link *link; /* NULL until HELLO says who it is */
    bool dialled;  /* we know whom we dialled */
    uint32_t peer;
} wire;

/* ---- inboxes ---- */

static void inbox_init(ck_link_inbox *in) {
    pthread_mutex_init(&in->lock, NULL);
    in->end = &in->first;
}

void ck_link_inbox_put(ck_link_inbox *in, ck_frame *f) {
    f->next = NULL;
    pthread_mutex_lock(&in->lock);
    *in->end = f;
    in->end = &f->next;
    pthread_mutex_unlock(&in->lock);
}

ck_frame *ck_link_inbox_take(ck_link_inbox *in) {
    pthread_mutex_lock(&in->lock);
    ck_frame *f = in->first;
    in->first = NULL;
    in->end = &in->first;
    pthread_mutex_unlock(&in->lock);
    return f;
}

void ck_link_inbox_clear(ck_link_inbox *in) {
    for (ck_frame *f = ck_link_inbox_take(in), *next; f; f = next) {
        next = f->next;
        ck_frame_free(&f);
    }
}

/* ---- failing, for the tasks ---- */

void ck_link_fail(ck_link *k, const ck_error *err) {
    ck_error e = *err;
    (void)ck_error_prefix(&e, "the link to process %u: ", k->peer);
    k->group->cfg.failed(k->group->cfg.arg, k->peer, &e);
}

/* ---- callbacks, on the loop's thread ---- */

static void say_hello(wire *w, ck_connection *c) {
    ck_links *l = w->group;
    ck_wire_hello hello = {.version = CK_WIRE_VERSION,
                           .process = l->cfg.process,
                           .graph_hash = l->cfg.graph_hash,
                           .secret = ck_view_of(l->cfg.secret ? l->cfg.secret : "")};
    if (l->cfg.process == 0) {
        hello.restored = l->word.restored;
        hello.splits = l->word.splits;
        memcpy(hello.uuid, l->word.uuid, sizeof hello.uuid);
    }
    ck_frame *f = ck_wire_hello_frame(l->cfg.queue_mem, &hello);
    if (!f || ck_connection_send(c, &f) == CK_CLOSED) ck_connection_close(c, false);
}

/* Who dials speaks first; nobody else learns the secret before he has shown it. */
static void on_open(void *arg, ck_connection *c) {
    wire *w = arg;
    if (w->dialled) say_hello(w, c);
}

/* In a time that does not depend on where they differ. */
static bool same_secret(ck_view a, ck_view b) {
    unsigned char differ = a.n != b.n;
    for (size_t i = 0; i < a.n && i < b.n; i++) differ |= (unsigned char)(a.p[i] ^ b.p[i]);
    return !differ;
}

static ck_status check_hello(wire *w, ck_connection *c, const ck_wire_hello *h, ck_error *err) {
    const ck_links_config *cfg = &w->group->cfg;
    if (h->version != CK_WIRE_VERSION)
        return ck_fail(err, CK_REFUSED, "a peer speaks version %u of the data wire, not %d", h->version,
                       CK_WIRE_VERSION);
    if (!same_secret(h->secret, ck_view_of(cfg->secret ? cfg->secret : "")))
        return ck_fail(err, CK_REFUSED, "a peer does not know this job's secret");
    if (!w->dialled) say_hello(w, c); /* whatever follows: so that it sees for itself what does not fit */
    bool fits = w->dialled ? h->process == w->peer : h->process > cfg->process && h->process < cfg->process_count;
    if (!fits) return ck_fail(err, CK_REFUSED, "process %u is not expected here", h->process);
    if (h->graph_hash != cfg->graph_hash) return ck_fail(err, CK_REFUSED, "process %u runs another graph", h->process);
    return CK_OK;
}

/* Under the lock, once: there is one connection to process 0. */
static ck_status take_word(ck_links *l, const ck_wire_hello *h, ck_error *err) {
    if (h->splits.n) {
        l->heard_splits = ck_alloc(l->cfg.mem, h->splits.n);
        if (!l->heard_splits) return ck_nomem(err, l->cfg.mem, h->splits.n);
        memcpy(l->heard_splits, h->splits.p, h->splits.n);
    }
    l->word = (ck_links_word){.restored = h->restored, .splits = {l->heard_splits, h->splits.n}};
    memcpy(l->word.uuid, h->uuid, sizeof l->word.uuid);
    return CK_OK;
}

static ck_status attach(wire *w, ck_connection *c, const ck_wire_hello *h, ck_error *err) {
    ck_links *l = w->group;
    ck_link *k = &l->links[h->process];
    ck_status s = CK_OK;
    pthread_mutex_lock(&l->lock);
    if (k->connection) {
        s = ck_fail(err, CK_REFUSED, "process %u is connected already", h->process);
    } else if (h->process != 0 || (s = take_word(l, h, err)) == CK_OK) {
        ck_connection_trust(c);
        k->connection = ck_connection_ref(c);
        w->link = k;
        l->up_count++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

static ck_status on_hello(wire *w, ck_connection *c, const ck_frame *f, ck_error *err) {
    ck_wire_hello hello;
    ck_status s = ck_wire_read_hello(f, &hello, err);
    if (s == CK_OK) s = check_hello(w, c, &hello, err);
    if (s == CK_OK) s = attach(w, c, &hello, err);
    if (s == CK_OK) return s;
    ck_log_line(w->group->cfg.proc->log, CK_LOG_WARN, "data connection with %s: %s", ck_connection_peer(c), err->msg);
    if (!w->dialled) { /* a stranger: not our failure */
        ck_connection_close(c, true);
        return CK_OK;
    }
    pthread_mutex_lock(&w->group->lock);
    w->group->refused = *err;
    pthread_cond_broadcast(&w->group->changed);
    pthread_mutex_unlock(&w->group->lock);
    return s;
}

/* Before the job starts nothing may run: what has come by then is seen by the notification of the start. */
static void notify(ck_link *k, ck_task *t) {
    if (atomic_load(&k->group->started)) ck_task_notify(t);
}

static ck_status on_frame(void *arg, ck_connection *c, ck_frame **pf, ck_error *err) {
    wire *w = arg;
    ck_link *k = w->link;
    ck_frame *f = *pf;
    *pf = NULL;
    if (!k) {
        ck_status s = on_hello(w, c, f, err);
        ck_frame_free(&f);
        return s;
    }
    if (f->kind == CK_WIRE_BYE) {
        pthread_mutex_lock(&k->group->lock);
        atomic_store(&k->heard_bye, true);
        pthread_cond_broadcast(&k->group->changed);
        pthread_mutex_unlock(&k->group->lock);
        notify(k, &k->up);
        notify(k, &k->down);
    }
    if (f->kind >= CK_WIRE_BYE) {
        ck_status s = w->group->cfg.heard(w->group->cfg.arg, k->peer, f, err);
        if (s == CK_OK) notify(k, w->group->cfg.boss);
        return s;
    }
    bool up = f->kind == CK_WIRE_CREDIT || f->kind == CK_WIRE_CLOSE;
    ck_link_inbox_put(up ? &k->up_inbox : &k->down_inbox, f);
    notify(k, up ? &k->up : &k->down);
    return CK_OK;
}

static void on_room(void *arg, ck_connection *c) {
    ck_link *k = ((wire *)arg)->link;
    (void)c;
    if (!k) return;
    atomic_store(&k->no_room, false);
    notify(k, &k->up);
}

static void on_close(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    wire *w = arg;
    ck_link *k = w->link;
    (void)c;
    if (k) {
        k->gone_error = CK_ERROR_INIT;
        if (why == CK_OK || why == CK_CLOSED || why == CK_CANCELLED)
            ck_fail(&k->gone_error, CK_CLOSED, "the other side is gone");
        else
            k->gone_error = *err;
        k->gone_error.retriable = true;
        pthread_mutex_lock(&k->group->lock);
        atomic_store(&k->gone, true);
        pthread_cond_broadcast(&k->group->changed);
        pthread_mutex_unlock(&k->group->lock);
        notify(k, &k->up);
        notify(k, &k->down);
    } else if (w->dialled) { /* to be dialled again */
        pthread_mutex_lock(&w->group->lock);
        w->group->links[w->peer].dialling = false;
        if (why != CK_OK && why != CK_CLOSED && why != CK_CANCELLED) w->group->not_reached = *err;
        pthread_cond_broadcast(&w->group->changed);
        pthread_mutex_unlock(&w->group->lock);
    }
    ck_free(w->group->cfg.mem, w, sizeof *w);
}

static const ck_connection_handler handler = {on_open, on_frame, on_room, on_close};

static bool fill_config(ck_links *l, ck_connection_config *out, bool dialled, uint32_t peer) {
    wire *w = ck_alloc(l->cfg.mem, sizeof *w);
    if (!w) return false;
    *w = (wire){l, NULL, dialled, peer};
    *out = (ck_connection_config){.handler = &handler,
                                  .arg = w,
                                  .mem = l->cfg.queue_mem,
                                  .frame_bytes_max = CK_FRAME_BYTES_MAX,
                                  .queue_bytes_max = CONNECTION_QUEUE_BYTES,
                                  .connect_timeout_us = CONNECT_TIMEOUT_US,
                                  .greeting_bytes_max = dialled && peer == 0 ? CK_FRAME_BYTES_MAX : GREETING_BYTES_MAX,
                                  .greeting_timeout_us = dialled ? 0 : GREETING_US,
                                  .tls = l->cfg.tls};
    return true;
}

static bool accept_one(void *arg, ck_connection_config *cfg) { return fill_config(arg, cfg, false, 0); }

/* ---- making ---- */

static size_t links_bytes(uint32_t n) { return sizeof(ck_links) + n * sizeof(ck_link); }

static void up_retired(ck_task *t) {
    ck_links *l = ((ck_link *)((char *)t - offsetof(ck_link, up)))->group;
    l->cfg.retired(l->cfg.arg);
}
static void down_retired(ck_task *t) {
    ck_links *l = ((ck_link *)((char *)t - offsetof(ck_link, down)))->group;
    l->cfg.retired(l->cfg.arg);
}

static ck_status add_tasks(ck_links *l, ck_link *k) {
    CK_TRY(ck_task_add(&k->up, l->cfg.scheduler));
    ck_status s = ck_task_add(&k->down, l->cfg.scheduler);
    if (s != CK_OK) {
        ck_task_remove(&k->up);
        return s;
    }
    k->added = true;
    return CK_OK;
}

ck_status ck_links_new(const ck_links_config *cfg, ck_links **out, ck_error *err) {
    ck_links *l = ck_alloc_zero(cfg->mem, links_bytes(cfg->process_count));
    if (!l) return ck_nomem(err, cfg->mem, links_bytes(cfg->process_count));
    l->cfg = *cfg;
    l->refused = l->not_reached = CK_ERROR_INIT;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    ck_status s = ck_net_loop_new(cfg->proc, "clink-data", &l->loop, err);
    for (uint32_t p = 0; p < cfg->process_count; p++) {
        ck_link *k = &l->links[p];
        k->group = l;
        k->peer = p;
        k->up.step = ck_link_up_step, k->up.retired = up_retired;
        k->down.step = ck_link_down_step, k->down.retired = down_retired;
        inbox_init(&k->up_inbox);
        inbox_init(&k->down_inbox);
        ck_credit_pool_init(&k->pool, cfg->floating_credits);
        if (s == CK_OK && p != cfg->process && add_tasks(l, k) != CK_OK) s = ck_nomem(err, cfg->mem, 0);
    }
    if (s != CK_OK) {
        ck_links_free(l);
        return s;
    }
    *out = l;
    return CK_OK;
}

ck_status ck_links_add_out(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema, bool weights,
                           ck_channel **out, ck_error *err) {
    ck_link *k = &l->links[peer];
    ck_link_out *o = ck_alloc_zero(l->cfg.mem, sizeof *o);
    if (!o) return ck_nomem(err, l->cfg.mem, sizeof *o);
    ck_status s = ck_wire_codec_new(l->cfg.queue_mem, schema, weights, &o->codec, err);
    if (s != CK_OK) {
        ck_free(l->cfg.mem, o, sizeof *o);
        return s;
    }
    o->number = number;
    ck_channel_init(&o->channel, l->cfg.queue_mem, l->cfg.bytes_max, l->cfg.events_max);
    o->channel.consumer = &k->up;
    o->next = k->outs;
    k->outs = o;
    *out = &o->channel;
    return CK_OK;
}

static void popped(void *arg) {
    ck_link_in *i = arg;
    atomic_fetch_add(&i->popped, 1);
    atomic_store(&i->link->consumed, true);
    ck_task_notify(&i->link->down);
}

ck_status ck_links_add_in(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema, bool weights,
                          ck_channel *to, ck_error *err) {
    ck_link *k = &l->links[peer];
    ck_link_in *i = ck_alloc_zero(l->cfg.mem, sizeof *i);
    if (!i) return ck_nomem(err, l->cfg.mem, sizeof *i);
    ck_status s = ck_wire_codec_new(l->cfg.queue_mem, schema, weights, &i->codec, err);
    if (s != CK_OK) {
        ck_free(l->cfg.mem, i, sizeof *i);
        return s;
    }
    i->link = k;
    i->number = number;
    i->to = to;
    to->producer = &k->down;
    to->closed_hint = &k->hint;
    to->popped = popped;
    to->popped_arg = i;
    ck_credit_edge_open(&k->pool, &i->credit);
    i->next = k->ins;
    k->ins = i;
    return CK_OK;
}

/* ---- connecting ---- */

/* Under the lock: dials every lower peer that is neither there nor being dialled. */
static ck_status dial_missing(ck_links *l, ck_error *err) {
    for (uint32_t p = 0; p < l->cfg.process; p++) {
        ck_link *k = &l->links[p];
        ck_connection_config cfg;
        ck_connection *c = NULL;
        if (k->connection || k->dialling) continue;
        if (!fill_config(l, &cfg, true, p)) return ck_nomem(err, l->cfg.mem, sizeof(wire));
        k->dialling = true;
        pthread_mutex_unlock(&l->lock); /* no callback and no lookup under a lock */
        ck_status s = ck_connection_dial(l->loop, l->cfg.addresses[p], &cfg, &c, err);
        if (s == CK_OK)
            ck_connection_unref(&c);
        else
            ck_free(l->cfg.mem, cfg.arg, sizeof(wire));
        pthread_mutex_lock(&l->lock);
        if (s != CK_IO && s != CK_NOTFOUND && s != CK_OK) return s;
        if (s == CK_OK) continue;
        k->dialling = false; /* it may not listen yet */
        l->not_reached = *err;
        ck_error_reset(err);
    }
    return CK_OK;
}

static void wait_a_little(ck_links *l, int64_t us) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* the condition variable's clock */
    ts.tv_nsec += (long)us * 1000;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&l->changed, &l->lock, &ts);
}

static ck_status connect_all(ck_links *l, int64_t timeout_us, ck_error *err) {
    int64_t until_us = ck_mono_us(l->cfg.proc) + timeout_us;
    ck_status s = CK_OK;
    pthread_mutex_lock(&l->lock);
    while (s == CK_OK && l->up_count + 1 < l->cfg.process_count) {
        if (l->refused.status != CK_OK) {
            *err = l->refused;
            s = err->status;
        } else if (ck_mono_us(l->cfg.proc) >= until_us) {
            const char *why = l->not_reached.status != CK_OK ? l->not_reached.msg : "";
            s = ck_fail(err, CK_IO, "%u of %u other processes of the job can be reached%s%s", l->up_count,
                        l->cfg.process_count - 1, why[0] ? ": " : "", why);
            err->retriable = true;
        } else {
            s = dial_missing(l, err);
            if (s == CK_OK) wait_a_little(l, REDIAL_US);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

static ck_status listen_for_peers(ck_links *l, ck_error *err) {
    unsigned most = 2 * l->cfg.process_count + STRANGERS_MAX;
    if (l->cfg.listening) return ck_listener_on(l->loop, l->cfg.listening, most, accept_one, l, &l->listener, err);
    return ck_listener_open(l->loop, l->cfg.addresses[l->cfg.process], most, accept_one, l, &l->listener, NULL, err);
}

ck_status ck_links_up(ck_links *l, int64_t timeout_us, ck_error *err) {
    ck_error local = CK_ERROR_INIT;
    if (!err) err = &local;
    if (l->cfg.process + 1 < l->cfg.process_count) CK_TRY(listen_for_peers(l, err));
    CK_TRY(connect_all(l, timeout_us, err));
    ck_listener_close(l->listener);
    l->listener = NULL;
    return CK_OK;
}

void ck_links_say(ck_links *l, const ck_links_word *w) { l->word = *w; }
const ck_links_word *ck_links_word_of_leader(const ck_links *l) { return &l->word; }

/* ---- running and ending ---- */

ck_status ck_links_send(ck_links *l, uint32_t peer, ck_frame **f) {
    if (!*f) return CK_NOMEM;
    ck_status s = ck_connection_send(l->links[peer].connection, f);
    return s == CK_FULL ? CK_OK : s; /* few and short: they need not wait */
}

uint32_t ck_links_task_count(const ck_links *l) { return 2 * (l->cfg.process_count - 1); }

static void notify_all(ck_links *l) {
    for (uint32_t p = 0; p < l->cfg.process_count; p++) {
        if (p == l->cfg.process) continue;
        ck_task_notify(&l->links[p].up);
        ck_task_notify(&l->links[p].down);
    }
}

void ck_links_start(ck_links *l) {
    atomic_store(&l->started, true);
    notify_all(l);
}

void ck_links_end(ck_links *l, bool finish) {
    atomic_store(finish ? &l->finish : &l->abort, true);
    notify_all(l);
}

void ck_links_say_last(ck_links *l, uint32_t peer, ck_frame **f) {
    ck_link *k = &l->links[peer];
    ck_frame *bye = ck_wire_bye_frame(l->cfg.queue_mem);
    if (ck_links_send(l, peer, f) == CK_OK && ck_links_send(l, peer, &bye) == CK_OK) atomic_store(&k->said_last, true);
    ck_frame_free(&bye);
}

/* A socket that is closed while something has come that nobody read takes back what was sent. So who has said why the
 * job ends leaves the closing to the peer, who does so when it has read it; one that heard a last word too is that
 * peer. */
static bool all_heard(const ck_links *l) {
    for (uint32_t p = 0; p < l->cfg.process_count; p++) {
        const ck_link *k = &l->links[p];
        if (k->connection && atomic_load(&k->said_last) && !atomic_load(&k->gone) && !atomic_load(&k->heard_bye))
            return false;
    }
    return true;
}

static bool all_gone(const ck_links *l) {
    for (uint32_t p = 0; p < l->cfg.process_count; p++)
        if (l->links[p].connection && !atomic_load(&l->links[p].gone)) return false;
    return true;
}

/* Under the lock. */
static void wait_for(ck_links *l, bool (*done)(const ck_links *l)) {
    int64_t until_us = ck_mono_us(l->cfg.proc) + LAST_WORDS_US;
    while (!done(l) && ck_mono_us(l->cfg.proc) < until_us) wait_a_little(l, REDIAL_US);
}

void ck_links_close(ck_links *l) {
    ck_listener_close(l->listener);
    l->listener = NULL;
    pthread_mutex_lock(&l->lock);
    wait_for(l, all_heard);
    pthread_mutex_unlock(&l->lock);
    for (uint32_t p = 0; p < l->cfg.process_count; p++)
        if (l->links[p].connection) ck_connection_close(l->links[p].connection, true);
    pthread_mutex_lock(&l->lock);
    wait_for(l, all_gone);
    pthread_mutex_unlock(&l->lock);
    ck_net_loop_free(l->loop);
    l->loop = NULL;
    for (uint32_t p = 0; p < l->cfg.process_count; p++) ck_connection_unref(&l->links[p].connection);
}

static void free_link(ck_links *l, ck_link *k) {
    for (ck_link_out *o = k->outs, *next; o; o = next) {
        next = o->next;
        ck_batch_unref(&o->batch);
        ck_channel_destroy(&o->channel);
        ck_wire_codec_free(o->codec);
        ck_free(l->cfg.mem, o, sizeof *o);
    }
    for (ck_link_in *i = k->ins, *next; i; i = next) {
        next = i->next;
        ck_wire_codec_free(i->codec);
        ck_free(l->cfg.mem, i, sizeof *i);
    }
    ck_link_inbox_clear(&k->up_inbox);
    ck_link_inbox_clear(&k->down_inbox);
    pthread_mutex_destroy(&k->up_inbox.lock);
    pthread_mutex_destroy(&k->down_inbox.lock);
    if (!k->added || atomic_load(&l->started)) return;
    ck_task_remove(&k->up);
    ck_task_remove(&k->down);
}

void ck_links_free(ck_links *l) {
    if (!l) return;
    ck_links_close(l);
    for (uint32_t p = 0; p < l->cfg.process_count; p++) free_link(l, &l->links[p]);
    if (l->heard_splits) ck_free(l->cfg.mem, l->heard_splits, l->word.splits.n);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    ck_free(l->cfg.mem, l, links_bytes(l->cfg.process_count));
}
