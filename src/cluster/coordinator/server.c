#include "cluster/coordinator/server.h"

#include <stdio.h>

#include "cluster/coordinator/records_dir.h"
#include "cluster/coordinator/records_etcd.h"
#include "cluster/coordinator/server_int.h"
#include "os/clock.h"
#include "os/random.h"

enum {
    CONNECTIONS_MAX = 2048,
    QUEUE_BYTES_MAX = 32 << 20,
    PROBE_US = 2000000,
    GREETING_BYTES_MAX = 512,
    GREETING_US = 10000000,
    HOST_BYTES_MAX = CK_CLUSTER_NAME_MAX - 8, /* with brackets and a port it is an address */
    ETCD_JOB_BYTES_MAX = 512 << 10,           /* its record grows by hosts and what is skipped, and stays below 1 MiB */
};

typedef struct probe {
    ck_coordinator_server *server;
    ck_connection *c;
    uint64_t incarnation;
    bool answered;
} probe;

/* ---- the end of leading ---- */

static void resign(ck_coordinator_server *s, ck_status why, const ck_error *err) {
    ck_coordinator_free(s->c);
    s->c = NULL;
    pthread_mutex_lock(&s->lock);
    s->status = why;
    s->error = *err;
    pthread_mutex_unlock(&s->lock);
    for (peer *p = s->peers; p; p = p->next) ck_connection_close(p->c, false);
}

/* ---- actions ---- */

static void drain(ck_coordinator_server *s);

static void probe_opened(void *arg, ck_connection *c) {
    ((probe *)arg)->answered = true;
    ck_connection_close(c, false);
}

static ck_status probe_frame(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    (void)arg, (void)c;
    ck_frame_free(f);
    return ck_fail(err, CK_CLOSED, "a probe has been answered");
}

static void nobody_there(ck_coordinator_server *s, uint64_t incarnation) {
    ck_error err = CK_ERROR_INIT;
    if (!s->c) return;
    ck_status st = ck_coordinator_unreachable(s->c, ck_mono_us(s->proc), incarnation, &err);
    if (st == CK_OK)
        drain(s);
    else
        resign(s, st, &err);
}

/* Only that nobody listens is an answer: silence has its own bound. */
static void probe_closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    probe *p = arg;
    ck_coordinator_server *s = p->server;
    (void)c, (void)err;
    if (!p->answered && why == CK_NOTFOUND) nobody_there(s, p->incarnation);
    ck_connection_unref(&p->c);
    ck_free(s->mem, p, sizeof *p);
}

static const ck_connection_handler probe_handler = {
    .on_open = probe_opened, .on_frame = probe_frame, .on_close = probe_closed};

static void start_probe(ck_coordinator_server *s, const ck_action *a) {
    probe *p = ck_alloc_zero(s->mem, sizeof *p);
    if (!p) return;
    p->server = s, p->incarnation = a->number;
    ck_connection_config cfg = {.handler = &probe_handler,
                                .arg = p,
                                .mem = s->mem,
                                .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                .queue_bytes_max = QUEUE_BYTES_MAX,
                                .connect_timeout_us = PROBE_US};
    ck_status st = ck_connection_dial(s->loop, a->address, &cfg, &p->c, NULL);
    if (st == CK_OK) return;
    ck_free(s->mem, p, sizeof *p);
    if (st == CK_NOTFOUND) s->nobody = a->number; /* the machine hears of it when it is done with its actions */
}

peer *server_peer(const ck_coordinator_server *s, uint64_t number) {
    for (peer *p = s->peers; p; p = p->next)
        if (p->number == number) return p;
    return NULL;
}

static ck_status perform(ck_coordinator_server *s, ck_action *a, ck_error *err) {
    peer *p = a->kind == CK_ACTION_SEND || a->kind == CK_ACTION_CLOSE ? server_peer(s, a->conn) : NULL;
    switch (a->kind) {
    case CK_ACTION_SEND: /* who does not read what is said to him is closed: he costs nobody else */
        if (p && ck_connection_send(p->c, &a->frame) == CK_FULL) ck_connection_close(p->c, false);
        return CK_OK;
    case CK_ACTION_CLOSE:
        if (p) ck_connection_close(p->c, true);
        return CK_OK;
    case CK_ACTION_PROBE: start_probe(s, a); return CK_OK;
    case CK_ACTION_PERSIST: return s->records ? ck_records_keep(s->records, a->number, a->frame, err) : CK_OK;
    case CK_ACTION_FORGET: return s->records ? ck_records_forget(s->records, a->number, err) : CK_OK;
    }
    return CK_OK;
}

/* false: not any more. Nothing is said then, since another one may have said something else. */
static bool may_lead(ck_coordinator_server *s) {
    ck_error err = CK_ERROR_INIT;
    ck_status st = s->c && s->records ? ck_records_hold(s->records, &err) : CK_OK;
    if (st != CK_OK) resign(s, st, &err);
    return st == CK_OK;
}

static void drain(ck_coordinator_server *s) {
    ck_error err = CK_ERROR_INIT;
    if (!may_lead(s)) return;
    for (ck_action *a; s->c && (a = ck_coordinator_next(s->c)) != NULL;) {
        ck_status st = perform(s, a, &err);
        ck_action_free(s->c, a);
        if (st == CK_OK && s->nobody) st = ck_coordinator_unreachable(s->c, ck_mono_us(s->proc), s->nobody, &err);
        s->nobody = 0;
        if (st != CK_OK) resign(s, st, &err);
    }
}

/* ---- connections ---- */

static void opened(void *arg, ck_connection *c) {
    peer *p = arg;
    ck_coordinator_server *s = p->server;
    p->c = ck_connection_ref(c);
    p->number = ++s->last_number;
    p->next = s->peers;
    s->peers = p;
}

static ck_status say_hello(peer *p, const ck_message *m, ck_error *err) {
    if (m->kind != CK_MSG_HELLO) return ck_fail(err, CK_REFUSED, "%s before HELLO", ck_message_name(m->kind));
    if (m->as.hello.version != CK_CLUSTER_VERSION)
        return ck_fail(err, CK_REFUSED, "the peer speaks version %llu, and this is %d",
                       (unsigned long long)m->as.hello.version, CK_CLUSTER_VERSION);
    p->roles = ck_tokens_roles(&p->server->tokens, m->as.hello.token);
    if (!p->roles) return ck_fail(err, CK_REFUSED, "the peer does not know the token");
    ck_connection_trust(p->c);
    return CK_OK;
}

ck_status server_send(peer *p, const ck_message *m, ck_error *err) {
    ck_frame *f;
    CK_TRY(ck_message_frame(p->server->mem, m, &f, err));
    if (ck_connection_send(p->c, &f) == CK_FULL) ck_connection_close(p->c, false);
    return CK_OK;
}

ck_status server_answer(peer *p, ck_status status, const char *why, bool wanted, ck_error *err) {
    const ck_message m = {.kind = CK_MSG_REPLY,
                          .as.reply = {.status = status, .error = ck_view_of(why), .wanted = wanted}};
    return server_send(p, &m, err);
}

ck_status server_refuse(peer *p, const ck_error *why, ck_error *err) {
    ck_log_line(p->server->proc->log, CK_LOG_DEBUG, "%s: %s", ck_connection_peer(p->c), why->msg);
    return server_answer(p, why->status, why->msg, false, err);
}

static bool may_ask(const peer *p, const ck_message *m, ck_error *err) {
    unsigned role;
    const char *what, *name = ck_role_wanted(m, &role, &what);
    if (p->roles & role) return true;
    (void)ck_fail(err, CK_REFUSED, "%s wants a token with the role %s, and this one has %s", what, name,
                  ck_roles_text(p->roles));
    return false;
}

static ck_status hear(peer *p, const ck_message *m, ck_error *err) {
    ck_coordinator_server *s = p->server;
    ck_error why = CK_ERROR_INIT;
    if (!p->roles) return say_hello(p, m, err);
    if (m->kind == CK_MSG_HELLO) return ck_fail(err, CK_CORRUPT, "a second HELLO");
    if (!may_ask(p, m, &why)) return server_refuse(p, &why, err);
    if (plugins_are_meant(m)) return plugins_hear(p, m, err);
    if (m->kind == CK_MSG_SUBMIT && ck_uploads_check(s->uploads, &m->as.submit.plugins, &why) != CK_OK)
        return server_refuse(p, &why, err);
    ck_status st = ck_coordinator_heard(s->c, ck_mono_us(s->proc), p->number, m, err);
    if (st == CK_NOMEM)
        resign(s, st, err);
    else
        drain(s);
    return st;
}

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    peer *p = arg;
    (void)c;
    ck_arena a;
    ck_message m;
    ck_arena_init(&a, p->server->mem, SERVER_ARENA_BYTES_MAX);
    ck_status s = p->server->c ? ck_message_read(*f, &a, &m, err) : ck_fail(err, CK_CLOSED, "this one leads no more");
    if (s == CK_OK) s = hear(p, &m, err);
    ck_arena_destroy(&a);
    ck_frame_free(f);
    return s;
}

static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    peer *p = arg;
    ck_coordinator_server *s = p->server;
    ck_error e = CK_ERROR_INIT;
    if (why == CK_REFUSED || why == CK_CORRUPT)
        ck_log_line(s->proc->log, CK_LOG_WARN, "%s was turned away: %s", ck_connection_peer(c), err ? err->msg : "");
    for (peer **link = &s->peers; *link; link = &(*link)->next)
        if (*link == p) {
            *link = p->next;
            break;
        }
    if (p->number) ck_uploads_closed(s->uploads, p->number);
    if (s->c && p->number && why != CK_CANCELLED) {
        ck_status st = ck_coordinator_closed(s->c, ck_mono_us(s->proc), p->number, &e);
        if (st == CK_OK)
            drain(s);
        else
            resign(s, st, &e);
    }
    ck_connection_unref(&p->c);
    ck_free(s->mem, p, sizeof *p);
}

static const ck_connection_handler peer_handler = {.on_open = opened, .on_frame = framed, .on_close = closed};

static bool accepted(void *arg, ck_connection_config *cfg) {
    ck_coordinator_server *s = arg;
    peer *p = ck_alloc_zero(s->mem, sizeof *p);
    if (!p) return false;
    p->server = s;
    *cfg = (ck_connection_config){.handler = &peer_handler,
                                  .arg = p,
                                  .mem = s->mem,
                                  .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                  .queue_bytes_max = QUEUE_BYTES_MAX,
                                  .greeting_bytes_max = GREETING_BYTES_MAX,
                                  .greeting_timeout_us = GREETING_US,
                                  .tls = s->tls};
    return true;
}

/* ---- time ---- */

static void ticked(ck_net_timer *t) {
    ck_coordinator_server *s = (ck_coordinator_server *)((char *)t - offsetof(ck_coordinator_server, timer));
    ck_error err = CK_ERROR_INIT;
    if (!s->c || !may_lead(s)) return;
    int64_t now_us = ck_mono_us(s->proc);
    ck_status st = ck_coordinator_tick(s->c, now_us, &err);
    if (st != CK_OK) {
        resign(s, st, &err);
        return;
    }
    drain(s);
    ck_net_loop_at(s->loop, t, now_us + s->interval_us);
}

static void start_ticking(ck_net_post *m) {
    ck_coordinator_server *s = (ck_coordinator_server *)((char *)m - offsetof(ck_coordinator_server, first));
    ck_net_loop_at(s->loop, &s->timer, ck_mono_us(s->proc) + s->interval_us);
}

/* ---- start and stop ---- */

static void address_of(const char *host, uint16_t port, char *out, size_t size) {
    (void)snprintf(out, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static ck_status open_etcd(ck_coordinator_server *s, const ck_coordinator_server_config *cfg,
                           ck_coordinator_config *machine, ck_error *err) {
    char address[300];
    const ck_records_etcd_config etcd = {.proc = s->proc, .url = cfg->ha, .address = address, .lease_s = cfg->lease_s};
    address_of(cfg->advertise ? cfg->advertise : cfg->host, cfg->port, address, sizeof address);
    machine->job_bytes_max = ETCD_JOB_BYTES_MAX;
    return ck_records_etcd_open(&etcd, &s->records, &machine->epoch, &s->own, err);
}

static bool is_named(void *arg, ck_view hash) {
    const ck_coordinator_server *s = arg;
    return s->c && ck_coordinator_names_plugin(s->c, hash);
}

static ck_status open_plugins(ck_coordinator_server *s, const ck_coordinator_server_config *cfg, ck_error *err) {
    ck_status st = cfg->ha             ? ck_plugin_store_etcd(s->proc, s->records, &s->plugins, err)
                   : cfg->metadata_dir ? ck_plugin_store_dir(s->proc, cfg->metadata_dir, &s->plugins, err)
                                       : ck_plugin_store_memory(s->proc, &s->plugins, err);
    if (st != CK_OK) return st;
    const ck_uploads_config uploads = {
        .proc = s->proc, .store = s->plugins, .allow = cfg->allow_plugins, .is_named = is_named, .arg = s};
    return ck_uploads_new(&uploads, &s->uploads, err);
}

/* The records, and an epoch above all that were here. */
static ck_status lead(ck_coordinator_server *s, const ck_coordinator_server_config *cfg, ck_error *err) {
    ck_coordinator_config machine = cfg->machine;
    ck_arena a;
    ck_arena_init(&a, s->mem, SERVER_ARENA_BYTES_MAX);
    machine.mem = s->mem;
    machine.seed = ck_random_u64(s->proc);
    machine.secrets = s->proc->random;
    machine.log = s->proc->log;
    machine.epoch = 1;
    ck_status st = CK_OK;
    if (cfg->metadata_dir) st = ck_records_dir_open(s->proc, cfg->metadata_dir, &s->records, &machine.epoch, err);
    if (cfg->ha) st = open_etcd(s, cfg, &machine, err);
    if (st == CK_OK) st = ck_coordinator_new(&machine, &s->c, err);
    if (st == CK_OK && s->records) st = ck_records_recover(s->records, s->c, err);
    if (st == CK_OK) st = open_plugins(s, cfg, err);
    if (st == CK_OK) st = ck_coordinator_begin(s->c, ck_mono_us(s->proc), err);
    if (st == CK_OK) {
        drain(s);
        st = ck_coordinator_server_state(s, err);
    }
    ck_arena_destroy(&a);
    return st;
}

static ck_status listen_at(ck_coordinator_server *s, const ck_coordinator_server_config *cfg, uint16_t *port,
                           ck_error *err) {
    char address[300];
    address_of(cfg->host, cfg->port, address, sizeof address);
    if (!cfg->ha) ck_token_make(s->proc, &s->own);
    const bool given = s->tokens.count > 0;
    if (!given) { /* before anybody can show one */
        s->tokens.token[0] = s->own;
        s->tokens.roles[0] = CK_ROLE_ALL;
        s->tokens.count = 1;
    }
    CK_TRY(ck_net_loop_new(s->proc, "coordinator", &s->loop, err));
    CK_TRY(ck_listener_open(s->loop, address, CONNECTIONS_MAX, accepted, s, &s->listener, port, err));
    if (!given) CK_TRY(ck_token_publish(s->proc, cfg->token_file, *port, &s->own, err));
    s->first.run = start_ticking;
    ck_net_loop_post(s->loop, &s->first);
    return CK_OK;
}

ck_status ck_coordinator_server_start(const ck_coordinator_server_config *cfg, ck_coordinator_server **out,
                                      uint16_t *port, ck_error *err) {
    *out = NULL;
    if (!ck_socket_is_loopback(cfg->host) && !cfg->tls.cert)
        return ck_fail(err, CK_REFUSED,
                       "--bind %s: without --tls-cert, --tls-key and --tls-ca only a loopback address is listened on",
                       cfg->host);
    if (cfg->advertise && (strcmp(cfg->advertise, "0.0.0.0") == 0 || strcmp(cfg->advertise, "::") == 0))
        return ck_fail(err, CK_REFUSED, "--advertise %s: it has to be one address, under which others reach this one",
                       cfg->advertise);
    if (strlen(cfg->host) > HOST_BYTES_MAX || (cfg->advertise && strlen(cfg->advertise) > HOST_BYTES_MAX))
        return ck_fail(err, CK_INVALID, "a host's name has at most %d bytes", HOST_BYTES_MAX);
    if (cfg->ha && cfg->metadata_dir)
        return ck_fail(err, CK_INVALID, "--ha and --metadata-dir are two places for the same");
    ck_mem mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN);
    ck_coordinator_server *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->proc = cfg->proc, s->mem = mem;
    s->interval_us = cfg->machine.watchdog_interval_us;
    s->timer.fire = ticked;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    ck_status st = ck_tls_new(s->proc, &cfg->tls, &s->tls, err);
    if (st == CK_OK && cfg->token_file) st = ck_tokens_read(s->proc, cfg->token_file, &s->tokens, err);
    if (st == CK_OK) st = lead(s, cfg, err);
    if (st == CK_OK) st = listen_at(s, cfg, port, err);
    if (st != CK_OK) {
        ck_coordinator_server_stop(s);
        return st;
    }
    *out = s;
    return CK_OK;
}

ck_status ck_coordinator_server_state(ck_coordinator_server *s, ck_error *err) {
    pthread_mutex_lock(&s->lock);
    ck_status st = s->status;
    if (st != CK_OK && err) *err = s->error;
    pthread_mutex_unlock(&s->lock);
    return st;
}

void ck_coordinator_server_stop(ck_coordinator_server *s) {
    if (!s) return;
    if (s->listener) ck_listener_close(s->listener);
    plugins_stop(s);
    ck_net_loop_free(s->loop); /* peers and probes close */
    ck_coordinator_free(s->c);
    ck_uploads_free(s->uploads);
    ck_plugin_store_close(s->plugins);
    ck_records_close(s->records);
    ck_tls_free(s->tls);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    ck_free(s->mem, s, sizeof *s);
}
