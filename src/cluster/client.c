#include "cluster/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/addresses.h"
#include "cluster/token.h"
#include "net/connection.h"
#include "os/clock.h"

enum { AGAIN_MS = 100, CONNECT_US = 10000000, QUEUE_BYTES_MAX = 32 << 20 };

typedef struct asking {
    pthread_mutex_t lock; /* guards all */
    pthread_cond_t changed;
    ck_frame *reply;
    bool ended;
    ck_status why;
    ck_error error;
} asking;

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    asking *q = arg;
    (void)c, (void)err;
    pthread_mutex_lock(&q->lock);
    if (!q->reply) q->reply = *f, *f = NULL;
    q->ended = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    ck_frame_free(f);
    return CK_OK;
}

static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    asking *q = arg;
    (void)c;
    pthread_mutex_lock(&q->lock);
    if (!q->ended) q->why = why == CK_OK ? CK_CLOSED : why;
    if (!q->ended && err) q->error = *err;
    q->ended = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static const ck_connection_handler handler = {.on_frame = framed, .on_close = closed};

/* false: not in time. */
static bool wait_end(asking *q, int64_t timeout_us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_us / 1000000;
    until.tv_nsec += timeout_us % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&q->lock);
    while (!q->ended)
        if (timeout_us < 0)
            pthread_cond_wait(&q->changed, &q->lock);
        else if (pthread_cond_timedwait(&q->changed, &q->lock, &until) == ETIMEDOUT)
            break;
    bool ended = q->ended;
    pthread_mutex_unlock(&q->lock);
    return ended;
}

static ck_status send_message(const ck_client_config *cfg, ck_connection *c, const ck_message *m, ck_error *err) {
    ck_frame *f;
    CK_TRY(ck_message_frame(ck_proc_mem(cfg->proc, CK_MEM_PLAN), m, &f, err));
    ck_status s = ck_connection_send(c, &f);
    return s == CK_FULL || s == CK_CLOSED ? CK_OK : s; /* a closed one says so by itself */
}

static ck_status ask(const ck_client_config *cfg, ck_net_loop *loop, ck_tls *tls, const ck_token *token,
                     const ck_message *m, asking *q, bool *in_time, ck_error *err) {
    ck_connection *c;
    const ck_connection_config connection = {.handler = &handler,
                                             .arg = q,
                                             .mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN),
                                             .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                             .queue_bytes_max = QUEUE_BYTES_MAX,
                                             .connect_timeout_us = CONNECT_US,
                                             .tls = tls};
    const ck_message hello = {.kind = CK_MSG_HELLO,
                              .as.hello = {.version = CK_CLUSTER_VERSION, .token = ck_view_of(token->text)}};
    CK_TRY(ck_connection_dial(loop, cfg->address, &connection, &c, err));
    ck_status s = send_message(cfg, c, &hello, err);
    if (s == CK_OK) s = send_message(cfg, c, m, err);
    if (s == CK_OK) *in_time = wait_end(q, cfg->timeout_us);
    ck_connection_unref(&c);
    return s;
}

static ck_status read_reply(const ck_client_config *cfg, asking *q, ck_arena *a, ck_msg_reply *out, ck_error *err) {
    ck_message m;
    if (!q->reply) {
        if (!q->ended || q->why == CK_CANCELLED)
            return ck_fail(err, CK_AGAIN, "no answer from %s in time", cfg->address);
        if (q->why == CK_CLOSED)
            return ck_fail(err, CK_CLOSED, "the coordinator at %s closed the connection: it has another token, or %s",
                           cfg->address, cfg->tls.cert ? "no TLS" : "wants TLS (--tls-cert, --tls-key, --tls-ca)");
        *err = q->error;
        return ck_error_prefix(err, "the coordinator at %s: ", cfg->address);
    }
    uint8_t *copy = ck_arena_alloc(a, q->reply->n + 1);
    if (!copy) return ck_nomem(err, a->mem, q->reply->n);
    if (q->reply->n) memcpy(copy, q->reply->p, q->reply->n);
    const ck_frame f = {.kind = q->reply->kind, .p = copy, .n = q->reply->n};
    CK_TRY(ck_message_read(&f, a, &m, err));
    if (m.kind != CK_MSG_REPLY) return ck_fail(err, CK_CORRUPT, "a %s for an answer", ck_message_name(m.kind));
    *out = m.as.reply;
    if (out->status == CK_OK) return CK_OK;
    return ck_fail(err, (ck_status)out->status, "%.*s", (int)out->error.n, out->error.p);
}

/* One address, once. CK_NOTFOUND: nobody listens there, and nobody was asked. */
static ck_status ask_one(const ck_client_config *cfg, const ck_message *m, ck_arena *a, ck_msg_reply *out,
                         ck_error *err) {
    ck_token token;
    ck_net_loop *loop = NULL;
    ck_tls *tls = NULL;
    asking q = {.lock = PTHREAD_MUTEX_INITIALIZER, .error = CK_ERROR_INIT};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q.changed, &attr);
    pthread_condattr_destroy(&attr);
    ck_status s = ck_token_find(cfg->proc, cfg->token_file, ck_address_port(cfg->address), &token, err);
    if (s == CK_OK) s = ck_tls_new(cfg->proc, &cfg->tls, &tls, err);
    if (s == CK_OK) s = ck_net_loop_new(cfg->proc, "client", &loop, err);
    bool in_time = false;
    if (s == CK_OK) s = ask(cfg, loop, tls, &token, m, &q, &in_time, err);
    ck_net_loop_free(loop);
    ck_tls_free(tls);
    if (s == CK_OK) {
        q.ended = in_time;
        s = read_reply(cfg, &q, a, out, err);
    }
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

ck_status ck_client_ask(const ck_client_config *cfg, const ck_message *m, ck_arena *a, ck_msg_reply *out,
                        ck_error *err) {
    const uint32_t count = ck_addresses_count(cfg->address);
    const int64_t end_us = cfg->timeout_us < 0 ? INT64_MAX : ck_mono_us(cfg->proc) + cfg->timeout_us;
    const bool moves_on = count > 1 && cfg->timeout_us > 0 && is_quick(m);
    for (uint32_t turn = 0;; turn++) {
        char address[CK_ADDRESS_BYTES_MAX];
        ck_client_config one = *cfg;
        one.address = address;
        if (moves_on) one.timeout_us = cfg->timeout_us / (2 * count);
        *out = (ck_msg_reply){0};
        ck_addresses_at(cfg->address, turn, address);
        ck_status s = ask_one(&one, m, a, out, err);
        bool answered = out->status != CK_OK || s == CK_OK;
        bool died = s == CK_CLOSED || s == CK_IO; /* while it was asked, which may have been done */
        if (moves_on && s == CK_AGAIN) died = true;
        bool again = s == CK_NOTFOUND || (died && only_looks(m));
        if (answered || !again || count == 1) return s;
        if (turn % count < count - 1) continue;
        if (ck_mono_us(cfg->proc) >= end_us)
            return died ? s : ck_fail(err, CK_NOTFOUND, "no coordinator leads at any of %s", cfg->address);
        const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}
