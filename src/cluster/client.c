#include "cluster/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/addresses.h"
#include "cluster/token.h"
#include "net/connection.h"
#include "os/clock.h"

enum { AGAIN_MS = 100, CONNECT_US = 10000000, QUEUE_BYTES_MAX = 32 << 20, PART_US = 60000000 };

/* A connection, on which one question is asked after the other. */
typedef struct asking {
    const ck_client_config *cfg;
    ck_net_loop *loop;
    ck_tls *tls;
    ck_connection *c;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    ck_frame *reply;
    bool closed;
    ck_status why;
    ck_error error;
} asking;

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    asking *q = arg;
    (void)c, (void)err;
    pthread_mutex_lock(&q->lock);
    if (!q->reply) q->reply = *f, *f = NULL;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    ck_frame_free(f);
    return CK_OK;
}

static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    asking *q = arg;
    (void)c;
    pthread_mutex_lock(&q->lock);
    q->why = why == CK_OK ? CK_CLOSED : why;
    if (err) q->error = *err;
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static const ck_connection_handler handler = {.on_frame = framed, .on_close = closed};

/* The reply, the caller's; NULL: not in time, or closed before. */
static ck_frame *wait_reply(asking *q, int64_t timeout_us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_us / 1000000;
    until.tv_nsec += timeout_us % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&q->lock);
    while (!q->reply && !q->closed)
        if (timeout_us < 0)
            pthread_cond_wait(&q->changed, &q->lock);
        else if (pthread_cond_timedwait(&q->changed, &q->lock, &until) == ETIMEDOUT)
            break;
    ck_frame *f = q->reply;
    q->reply = NULL;
    pthread_mutex_unlock(&q->lock);
    return f;
}

static ck_status send_message(const ck_client_config *cfg, ck_connection *c, const ck_message *m, ck_error *err) {
    ck_frame *f;
    CK_TRY(ck_message_frame(ck_proc_mem(cfg->proc, CK_MEM_PLAN), m, &f, err));
    ck_status s = ck_connection_send(c, &f);
    return s == CK_FULL || s == CK_CLOSED ? CK_OK : s; /* a closed one says so by itself */
}

static ck_status open_connection(asking *q, const ck_token *token, ck_error *err) {
    const ck_client_config *cfg = q->cfg;
    const ck_connection_config connection = {.handler = &handler,
                                             .arg = q,
                                             .mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN),
                                             .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                             .queue_bytes_max = QUEUE_BYTES_MAX,
                                             .connect_timeout_us = CONNECT_US,
                                             .tls = q->tls};
    const ck_message hello = {.kind = CK_MSG_HELLO,
                              .as.hello = {.version = CK_CLUSTER_VERSION, .token = ck_view_of(token->text)}};
    CK_TRY(ck_connection_dial(q->loop, cfg->address, &connection, &q->c, err));
    return send_message(cfg, q->c, &hello, err);
}

static ck_status no_reply(asking *q, ck_error *err) {
    const ck_client_config *cfg = q->cfg;
    pthread_mutex_lock(&q->lock);
    bool in_time = q->closed;
    ck_status why = q->why;
    ck_error error = q->error;
    pthread_mutex_unlock(&q->lock);
    if (!in_time || why == CK_CANCELLED) return ck_fail(err, CK_AGAIN, "no answer from %s in time", cfg->address);
    if (why == CK_CLOSED)
        return ck_fail(err, CK_CLOSED, "the coordinator at %s closed the connection: it has another token, or %s",
                       cfg->address, cfg->tls.cert ? "no TLS" : "wants TLS (--tls-cert, --tls-key, --tls-ca)");
    if (err) *err = error;
    return ck_error_prefix(err, "the coordinator at %s: ", cfg->address);
}

static ck_status read_reply(const ck_frame *f, ck_arena *a, ck_msg_reply *out, ck_error *err) {
    ck_message m;
    uint8_t *copy = ck_arena_alloc(a, f->n + 1);
    if (!copy) return ck_nomem(err, a->mem, f->n);
    if (f->n) memcpy(copy, f->p, f->n);
    const ck_frame whole = {.kind = f->kind, .p = copy, .n = f->n};
    CK_TRY(ck_message_read(&whole, a, &m, err));
    if (m.kind != CK_MSG_REPLY) return ck_fail(err, CK_CORRUPT, "a %s for an answer", ck_message_name(m.kind));
    *out = m.as.reply;
    if (out->status == CK_OK) return CK_OK;
    return ck_fail(err, (ck_status)out->status, "%.*s", (int)out->error.n, out->error.p);
}

static ck_status ask(asking *q, const ck_message *m, int64_t timeout_us, ck_arena *a, ck_msg_reply *out,
                     ck_error *err) {
    CK_TRY(send_message(q->cfg, q->c, m, err));
    ck_frame *f = wait_reply(q, timeout_us);
    ck_status s = f ? read_reply(f, a, out, err) : no_reply(q, err);
    ck_frame_free(&f);
    return s;
}

/* ---- plugins ---- */

static ck_status send_part(asking *q, const ck_client_plugin *p, size_t at, ck_msg_reply *out, ck_error *err) {
    const size_t left = p->content.n - at;
    const ck_message m = {
        .kind = CK_MSG_UPLOAD_PART,
        .as.upload_part = {
            .offset = at,
            .part = {p->content.p + at, left < CK_CLUSTER_PART_BYTES_MAX ? left : CK_CLUSTER_PART_BYTES_MAX}}};
    ck_arena a; /* the answer is OK, or a sentence that is copied */
    ck_arena_init(&a, ck_proc_mem(q->cfg->proc, CK_MEM_PLAN), CK_FRAME_CONTROL_BYTES_MAX);
    ck_status s = ask(q, &m, PART_US, &a, out, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status ship(asking *q, const ck_client_plugin *p, ck_msg_reply *out, ck_arena *a, ck_error *err) {
    const ck_message offer = {.kind = CK_MSG_OFFER_PLUGIN, .as.offer_plugin.plugin = p->said};
    CK_TRY(ask(q, &offer, PART_US, a, out, err));
    const bool wanted = out->wanted;
    for (size_t at = 0; wanted && at < p->content.n; at += CK_CLUSTER_PART_BYTES_MAX)
        CK_TRY(send_part(q, p, at, out, err));
    return CK_OK;
}

/* ---- one coordinator ---- */

typedef struct question {
    const ck_message *m;
    const ck_client_plugin *plugins;
    uint32_t plugin_count;
} question;

/* One address, once. CK_NOTFOUND: nobody listens there, and nobody was asked. */
static ck_status ask_one(const ck_client_config *cfg, const question *what, ck_arena *a, ck_msg_reply *out,
                         ck_error *err) {
    ck_token token;
    asking q = {.cfg = cfg, .lock = PTHREAD_MUTEX_INITIALIZER, .error = CK_ERROR_INIT};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q.changed, &attr);
    pthread_condattr_destroy(&attr);
    ck_status s = ck_token_find(cfg->proc, cfg->token_file, ck_address_port(cfg->address), &token, err);
    if (s == CK_OK) s = ck_tls_new(cfg->proc, &cfg->tls, &q.tls, err);
    if (s == CK_OK) s = ck_net_loop_new(cfg->proc, "client", &q.loop, err);
    if (s == CK_OK) s = open_connection(&q, &token, err);
    for (uint32_t i = 0; s == CK_OK && i < what->plugin_count; i++) s = ship(&q, &what->plugins[i], out, a, err);
    if (s == CK_OK) *out = (ck_msg_reply){0};
    if (s == CK_OK) s = ask(&q, what->m, cfg->timeout_us, a, out, err);
    ck_connection_unref(&q.c);
    ck_net_loop_free(q.loop);
    ck_tls_free(q.tls);
    ck_frame_free(&q.reply);
    pthread_cond_destroy(&q.changed);
    return s;
}

/* Asking twice is as good as once. */
static bool only_looks(const ck_message *m) {
    uint64_t command = m->as.command.command;
    return m->kind == CK_MSG_COMMAND &&
           (command == CK_COMMAND_LIST || command == CK_COMMAND_STATUS || command == CK_COMMAND_WAIT);
}

/* And whose answer comes at once, so that who takes longer may hang: there are others. */
static bool is_quick(const ck_message *m) { return only_looks(m) && m->as.command.command != CK_COMMAND_WAIT; }

static ck_status ask_any(const ck_client_config *cfg, const question *what, ck_arena *a, ck_msg_reply *out,
                         ck_error *err) {
    const uint32_t count = ck_addresses_count(cfg->address);
    const int64_t end_us = cfg->timeout_us < 0 ? INT64_MAX : ck_mono_us(cfg->proc) + cfg->timeout_us;
    const bool moves_on = count > 1 && cfg->timeout_us > 0 && is_quick(what->m);
    for (uint32_t turn = 0;; turn++) {
        char address[CK_ADDRESS_BYTES_MAX];
        ck_client_config one = *cfg;
        one.address = address;
        if (moves_on) one.timeout_us = cfg->timeout_us / (2 * count);
        *out = (ck_msg_reply){0};
        ck_addresses_at(cfg->address, turn, address);
        ck_status s = ask_one(&one, what, a, out, err);
        bool answered = out->status != CK_OK || s == CK_OK;
        bool died = s == CK_CLOSED || s == CK_IO; /* while it was asked, which may have been done */
        if (moves_on && s == CK_AGAIN) died = true;
        bool again = s == CK_NOTFOUND || (died && only_looks(what->m));
        if (answered || !again || count == 1) return s;
        if (turn % count < count - 1) continue;
        if (ck_mono_us(cfg->proc) >= end_us)
            return died ? s : ck_fail(err, CK_NOTFOUND, "no coordinator leads at any of %s", cfg->address);
        const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

ck_status ck_client_ask(const ck_client_config *cfg, const ck_message *m, ck_arena *a, ck_msg_reply *out,
                        ck_error *err) {
    return ask_any(cfg, &(question){.m = m}, a, out, err);
}

ck_status ck_client_submit(const ck_client_config *cfg, const ck_client_plugin *plugins, uint32_t count,
                           const ck_message *m, ck_arena *a, ck_msg_reply *out, ck_error *err) {
    return ask_any(cfg, &(question){m, plugins, count}, a, out, err);
}
