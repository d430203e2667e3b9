/* The worker's connection to the coordinator: dialled until somebody is there, and again when it breaks. */
#include "cluster/addresses.h"
#include "cluster/token.h"
#include "cluster/worker/supervisor_int.h"
#include "os/clock.h"

enum { REDIAL_US = 200000, TURN_US = 50000, CONNECT_US = 5000000 };

static void failed(supervisor *s, ck_status st, const ck_error *err) {
    if (st == CK_NOMEM) supervisor_fail(s, st, err);
}

static void opened(void *arg, ck_connection *c) {
    supervisor *s = arg;
    ck_error err = CK_ERROR_INIT;
    (void)c;
    s->up_open = true;
    s->silent = false;
    failed(s, ck_session_connected(s->session, ck_mono_us(s->proc), &err), &err);
    hosts_drain(s);
    fetch_connected(s);
}

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    supervisor *s = arg;
    ck_arena a;
    ck_message m;
    (void)c;
    ck_arena_init(&a, s->mem, ARENA_BYTES_MAX);
    ck_status st = ck_message_read(*f, &a, &m, err);
    if (st == CK_OK && m.kind == CK_MSG_REPLY) /* why nothing more will come */
        st = ck_fail(err, CK_REFUSED, "%.*s", (int)m.as.reply.error.n, m.as.reply.error.p);
    if (st == CK_OK)
        st = m.kind == CK_MSG_PLUGIN_PART ? fetch_heard(s, &m.as.plugin_part, err)
                                          : ck_session_heard(s->session, ck_mono_us(s->proc), &m, err);
    if (st == CK_OK) s->gave_up = false;
    hosts_drain(s);
    if (err) failed(s, st, err);
    ck_arena_destroy(&a);
    ck_frame_free(f);
    return st;
}

static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    supervisor *s = arg;
    (void)c;
    ck_connection_unref(&s->up);
    s->up_open = false;
    ck_session_disconnected(s->session);
    fetch_disconnected(s);
    s->turn++;
    if (why == CK_CANCELLED || s->silent) return;
    s->silent = true; /* once for each time it goes away */
    ck_log_line(s->proc->log, CK_LOG_WARN, "no coordinator at %s%s%s; trying on", s->cfg->coordinator,
                err && err->msg[0] ? ": " : "", err ? err->msg : "");
}

static const ck_connection_handler handler = {.on_open = opened, .on_frame = framed, .on_close = closed};

void uplink_give_up(supervisor *s) {
    char address[CK_ADDRESS_BYTES_MAX];
    if (!s->up) return;
    ck_addresses_at(s->cfg->coordinator, s->turn, address);
    if (!s->gave_up)
        ck_log_line(s->proc->log, CK_LOG_WARN, "the coordinator at %s does not answer; looking for who leads", address);
    s->gave_up = s->silent = true; /* until somebody does */
    ck_connection_close(s->up, false);
}

static void give_up_dialling(supervisor *s, const ck_error *err) {
    if (!s->silent)
        ck_log_line(s->proc->log, CK_LOG_WARN, "no coordinator at %s: %s; trying on", s->cfg->coordinator, err->msg);
    s->silent = true;
    s->turn++;
}

/* The token is read each time: a coordinator that is started again has another one. */
static void dial(supervisor *s) {
    ck_token token;
    ck_frame *f;
    ck_error err = CK_ERROR_INIT;
    const ck_connection_config cfg = {.handler = &handler,
                                      .arg = s,
                                      .mem = s->mem,
                                      .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                      .queue_bytes_max = QUEUE_BYTES_MAX,
                                      .connect_timeout_us = CONNECT_US,
                                      .tls = s->tls};
    char address[CK_ADDRESS_BYTES_MAX];
    ck_addresses_at(s->cfg->coordinator, s->turn, address);
    ck_status st = ck_token_find(s->proc, s->cfg->token_file, ck_address_port(address), &token, &err);
    if (st == CK_OK) st = ck_connection_dial(s->loop, address, &cfg, &s->up, &err);
    if (st == CK_OK) {
        const ck_message hello = {.kind = CK_MSG_HELLO,
                                  .as.hello = {.version = CK_CLUSTER_VERSION, .token = ck_view_of(token.text)}};
        st = ck_message_frame(s->mem, &hello, &f, &err);
        if (st == CK_OK && ck_connection_send(s->up, &f) == CK_CLOSED) st = CK_OK; /* which says so by itself */
    }
    if (st != CK_OK) give_up_dialling(s, &err);
    failed(s, st, &err);
}

static void turned(ck_net_timer *t) {
    supervisor *s = (supervisor *)((char *)t - offsetof(supervisor, timer));
    ck_error err = CK_ERROR_INIT;
    int64_t now_us = ck_mono_us(s->proc);
    if (!s->up) dial(s);
    failed(s, ck_session_tick(s->session, now_us, &err), &err);
    hosts_drain(s);
    int64_t due_us = ck_session_due(s->session), next_us = now_us + (s->up_open ? TURN_US : REDIAL_US);
    ck_net_loop_at(s->loop, t, due_us < next_us ? due_us : next_us);
}

static void begin(ck_net_post *m) {
    supervisor *s = (supervisor *)((char *)m - offsetof(supervisor, first));
    turned(&s->timer);
}

void uplink_start(supervisor *s) {
    s->timer.fire = turned;
    s->first.run = begin;
    ck_net_loop_post(s->loop, &s->first);
}
