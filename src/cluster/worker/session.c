#include "cluster/worker/session.h"

#include <stdio.h>

enum {
    PROGRESS_US = 1000000, /* between heartbeats that come early for somebody's progress */
    SILENCE_US = 5000000,  /* of whoever has not yet said what its timeout is */
};

typedef struct host {
    struct host *next;
    uint64_t job, attempt, checkpoint;
    ck_host_phase phase;
    bool spawned; /* there is a process */
    bool killed;
    bool ended;           /* no process any more; it stays until a coordinator is known to have heard so */
    bool said;            /* its end, over the present connection: */
    uint64_t said_behind; /* so many heartbeats */
    ck_frame *deploy;
    char address[CK_CLUSTER_NAME_MAX + 1];
    ck_progress progress; /* its note is the one below */
    bool unsaid;          /* progress: to the present coordinator */
    char note[CK_CLUSTER_NOTE_MAX + 1];
    ck_task_outcome outcome;
    uint64_t flags;
    char error[CK_CLUSTER_ERROR_MAX + 1];
} host;

struct ck_session {
    ck_mem mem;
    char worker[CK_CLUSTER_NAME_MAX + 1], address[CK_CLUSTER_NAME_MAX + 1];
    uint64_t incarnation;
    uint32_t slots;
    uint64_t epoch; /* of the newest leader heard */
    bool connected, welcome;
    uint64_t turn; /* of the connections there were */
    int64_t heartbeat_us, beat_at_us;
    uint64_t beats, beats_answered; /* over the present connection */
    int64_t timeout_us, heard_us, ticked_us;
    host *hosts; /* newest first */
    ck_session_action *first, **end;
    bool out_of_memory;
};

ck_status ck_session_new(const ck_session_config *cfg, ck_session **out, ck_error *err) {
    CK_ASSERT(cfg->incarnation);
    ck_session *s = ck_alloc_zero(cfg->mem, sizeof *s);
    *out = s;
    if (!s) return ck_nomem(err, cfg->mem, sizeof *s);
    s->mem = cfg->mem;
    s->incarnation = cfg->incarnation;
    s->slots = cfg->slots;
    s->timeout_us = SILENCE_US;
    snprintf(s->worker, sizeof s->worker, "%.*s", (int)cfg->worker.n, cfg->worker.p);
    snprintf(s->address, sizeof s->address, "%.*s", (int)cfg->address.n, cfg->address.p);
    s->end = &s->first;
    return CK_OK;
}

static void free_host(ck_session *s, host *h) {
    host **link = &s->hosts;
    while (*link != h) link = &(*link)->next;
    *link = h->next;
    ck_frame_free(&h->deploy);
    ck_free(s->mem, h, sizeof *h);
}

void ck_session_free(ck_session *s) {
    if (!s) return;
    for (ck_session_action *a; (a = ck_session_next(s)) != NULL;) ck_session_action_free(s, a);
    while (s->hosts) free_host(s, s->hosts);
    ck_free(s->mem, s, sizeof *s);
}

uint32_t ck_session_host_count(const ck_session *s) {
    uint32_t n = 0;
    for (const host *h = s->hosts; h; h = h->next) n += !h->ended;
    return n;
}

/* ---- actions ---- */

/* Takes f. */
static void act(ck_session *s, ck_session_action_kind kind, const host *h, ck_frame *f) {
    ck_session_action *a = ck_alloc_zero(s->mem, sizeof *a);
    if (!a) {
        s->out_of_memory = true;
        ck_frame_free(&f);
        return;
    }
    a->kind = kind, a->frame = f;
    if (h) a->job = h->job, a->attempt = h->attempt;
    *s->end = a, s->end = &a->next;
}

static void act_message(ck_session *s, ck_session_action_kind kind, const host *h, const ck_message *m) {
    ck_frame *f;
    if (ck_message_frame(s->mem, m, &f, NULL) == CK_OK)
        act(s, kind, h, f);
    else
        s->out_of_memory = true;
}

ck_session_action *ck_session_next(ck_session *s) {
    ck_session_action *a = s->first;
    if (!a) return NULL;
    s->first = a->next;
    if (!s->first) s->end = &s->first;
    a->next = NULL;
    return a;
}

void ck_session_action_free(ck_session *s, ck_session_action *a) {
    ck_frame_free(&a->frame);
    ck_free(s->mem, a, sizeof *a);
}

static ck_status done(const ck_session *s, ck_error *err) {
    return s->out_of_memory ? ck_nomem(err, s->mem, 0) : CK_OK;
}

static ck_msg_fence fence(const ck_session *s, const host *h) {
    return (ck_msg_fence){s->epoch, h ? h->job : 0, h ? h->attempt : 0};
}

/* ---- the connection ---- */

static host *find(const ck_session *s, uint64_t job, uint64_t attempt) {
    for (host *h = s->hosts; h; h = h->next)
        if (h->job == job && h->attempt == attempt) return h;
    return NULL;
}

/* A heartbeat, with the progress of `only` (NULL: of all) that has not been said. */
static void say_heartbeat(ck_session *s, const host *only) {
    ck_msg_progress *list = NULL;
    uint32_t count = 0, n = 0;
    for (const host *h = s->hosts; h; h = h->next) count += h->unsaid && (!only || h == only);
    if (count > CK_CLUSTER_SLOTS_MAX) count = CK_CLUSTER_SLOTS_MAX; /* the rest with the next one */
    if (count && !(list = ck_alloc_array(s->mem, count, sizeof *list))) {
        s->out_of_memory = true;
        return;
    }
    for (host *h = s->hosts; h && n < count; h = h->next) {
        if (!h->unsaid || (only && h != only)) continue;
        list[n++] = (ck_msg_progress){{.job = h->job, .attempt = h->attempt}, h->progress};
        h->unsaid = false;
    }
    s->beats++;
    act_message(
        s, CK_SESSION_SEND, NULL,
        &(ck_message){.kind = CK_MSG_HEARTBEAT, .as.heartbeat = {.fence = fence(s, NULL), .progress = {list, n}}});
    ck_free(s->mem, list, count * sizeof *list);
}

/* Its last progress comes before its end. What was said may be lost: with a leader that was stopped, or died before it
 * had read so far. A heartbeat that is answered tells that all before it was heard, and is kept. */
static void say_ended(ck_session *s, host *h) {
    if (h->unsaid) say_heartbeat(s, h);
    h->said = true;
    h->said_behind = s->beats;
    act_message(s, CK_SESSION_SEND, h,
                &(ck_message){.kind = CK_MSG_ENDED,
                              .as.ended = {.fence = fence(s, h),
                                           .outcome = h->outcome,
                                           .flags = h->flags,
                                           .error = ck_view_of(h->error)}});
}

static void on_answered(ck_session *s) {
    s->beats_answered++;
    for (host *h = s->hosts, *next; h; h = next) {
        next = h->next;
        if (h->said && s->beats_answered > h->said_behind) free_host(s, h);
    }
}

static void say_ready(ck_session *s, const host *h) {
    act_message(s, CK_SESSION_SEND, h,
                &(ck_message){.kind = CK_MSG_READY, .as.ready = {fence(s, h), ck_view_of(h->address)}});
}

ck_status ck_session_connected(ck_session *s, int64_t now_us, ck_error *err) {
    ck_msg_hosted *hosted = NULL;
    uint32_t count = 0, n = 0;
    for (const host *h = s->hosts; h; h = h->next) count++;
    hosted = ck_alloc_array(s->mem, count, sizeof *hosted);
    if (!hosted) return ck_nomem(err, s->mem, count * sizeof *hosted);
    for (const host *h = s->hosts; h; h = h->next)
        hosted[n++] = (ck_msg_hosted){h->job, h->attempt, h->phase, ck_view_of(h->address), h->checkpoint};
    s->connected = true, s->welcome = false;
    s->beats = s->beats_answered = 0;
    for (host *h = s->hosts; h; h = h->next) h->said = false;
    s->heard_us = s->ticked_us = now_us;
    act_message(s, CK_SESSION_SEND, NULL,
                &(ck_message){.kind = CK_MSG_REGISTER,
                              .as.reg = {.fence.epoch = s->epoch,
                                         .worker = ck_view_of(s->worker),
                                         .incarnation = s->incarnation,
                                         .slots = s->slots,
                                         .address = ck_view_of(s->address),
                                         .hosted = {hosted, count},
                                         .turn = ++s->turn}});
    ck_free(s->mem, hosted, count * sizeof *hosted);
    return done(s, err);
}

void ck_session_disconnected(ck_session *s) { s->connected = s->welcome = false; }

static ck_status on_welcome(ck_session *s, int64_t now_us, const ck_msg_welcome *m, ck_error *err) {
    if (m->fence.epoch < s->epoch)
        return ck_fail(err, CK_REFUSED, "coordinator %llu leads no more: %llu does", (unsigned long long)m->fence.epoch,
                       (unsigned long long)s->epoch);
    s->epoch = m->fence.epoch;
    s->welcome = true;
    s->heartbeat_us = (int64_t)(m->heartbeat_ms ? m->heartbeat_ms : 1) * 1000;
    if (m->timeout_ms) s->timeout_us = (int64_t)m->timeout_ms * 1000;
    s->beat_at_us = now_us + s->heartbeat_us;
    for (host *h = s->hosts; h; h = h->next) { /* what could not be said meanwhile, or may not have been heard */
        h->unsaid = h->progress.known;
        if (h->ended)
            say_ended(s, h);
        else if (h->phase == CK_HOST_READY)
            say_ready(s, h);
    }
    return CK_OK;
}

static int64_t beat_due(const ck_session *s) {
    bool unsaid = false;
    for (const host *h = s->hosts; h; h = h->next) unsaid |= h->unsaid;
    if (!s->welcome) return INT64_MAX;
    return unsaid && s->heartbeat_us > PROGRESS_US ? s->beat_at_us - s->heartbeat_us + PROGRESS_US : s->beat_at_us;
}

int64_t ck_session_due(const ck_session *s) {
    if (!s->connected) return INT64_MAX;
    int64_t beat_us = beat_due(s), look_us = s->ticked_us + s->timeout_us / 3;
    return beat_us < look_us ? beat_us : look_us;
}

static bool is_silent(ck_session *s, int64_t now_us) {
    if (now_us - s->ticked_us > s->timeout_us / 2) s->heard_us = now_us;
    s->ticked_us = now_us;
    return now_us - s->heard_us > s->timeout_us;
}

ck_status ck_session_tick(ck_session *s, int64_t now_us, ck_error *err) {
    if (!s->connected) return CK_OK;
    if (is_silent(s, now_us)) {
        ck_session_disconnected(s);
        act(s, CK_SESSION_CLOSE, NULL, NULL);
    } else if (now_us >= beat_due(s)) {
        s->beat_at_us = now_us + s->heartbeat_us;
        say_heartbeat(s, NULL);
    }
    return done(s, err);
}

/* ---- hosts ---- */

/* Ends it. One that has no process yet never gets one. */
static void kill_host(ck_session *s, host *h) {
    if (h->killed || h->ended) return;
    h->killed = true;
    if (h->spawned) {
        act(s, CK_SESSION_KILL, h, NULL);
        return;
    }
    h->ended = true;
    h->outcome = CK_TASK_CANCELLED;
    if (s->welcome) say_ended(s, h);
}

/* The newest attempt of a job, once no older one has a process. */
static void spawn_next(ck_session *s, uint64_t job) {
    host *newest = NULL;
    for (host *h = s->hosts; h; h = h->next) {
        if (h->job != job || h->ended) continue;
        if (h->spawned) return;
        if (!newest || h->attempt > newest->attempt) newest = h;
    }
    if (!newest) return;
    newest->spawned = true;
    ck_frame *f = newest->deploy;
    newest->deploy = NULL;
    act(s, CK_SESSION_SPAWN, newest, f);
}

static void on_deploy(ck_session *s, const ck_message *m) {
    const ck_msg_fence *f = &m->as.fence;
    for (const host *h = s->hosts; h; h = h->next)
        if (h->job == f->job && h->attempt >= f->attempt) return; /* it has been overtaken, or came twice */
    host *n = ck_alloc_zero(s->mem, sizeof *n);
    if (!n || ck_message_frame(s->mem, m, &n->deploy, NULL) != CK_OK) {
        ck_free(s->mem, n, sizeof *n);
        s->out_of_memory = true;
        return;
    }
    n->job = f->job, n->attempt = f->attempt, n->next = s->hosts;
    s->hosts = n;
    for (host *h = s->hosts, *next; h; h = next) {
        next = h->next;
        if (h->job == f->job && h != n) kill_host(s, h);
    }
    spawn_next(s, f->job);
}

static void on_start(ck_session *s, const ck_message *m) {
    host *h = find(s, m->as.fence.job, m->as.fence.attempt);
    if (!h || h->phase != CK_HOST_READY || h->killed || h->ended) return;
    h->phase = CK_HOST_STARTED;
    act_message(s, CK_SESSION_START, h, m);
}

static void on_take_savepoint(ck_session *s, const ck_message *m) {
    const host *h = find(s, m->as.fence.job, m->as.fence.attempt);
    if (h && h->phase == CK_HOST_STARTED && !h->ended) act_message(s, CK_SESSION_SAVEPOINT, h, m);
}

ck_status ck_session_heard(ck_session *s, int64_t now_us, const ck_message *m, ck_error *err) {
    s->heard_us = now_us;
    if (m->kind == CK_MSG_WELCOME) {
        CK_TRY(on_welcome(s, now_us, &m->as.welcome, err));
        return done(s, err);
    }
    if (!s->welcome) return ck_fail(err, CK_CORRUPT, "a %s before WELCOME", ck_message_name(m->kind));
    if (m->as.fence.epoch != s->epoch) return CK_OK; /* a word of the past */
    host *h;
    switch ((int)m->kind) {
    case CK_MSG_HEARTBEAT: on_answered(s); break;
    case CK_MSG_DEPLOY: on_deploy(s, m); break;
    case CK_MSG_START: on_start(s, m); break;
    case CK_MSG_TAKE_SAVEPOINT: on_take_savepoint(s, m); break;
    case CK_MSG_CANCEL_JOB:
        h = find(s, m->as.fence.job, m->as.fence.attempt);
        if (h) kill_host(s, h);
        break;
    default: return ck_fail(err, CK_CORRUPT, "a %s, which is not for a worker", ck_message_name(m->kind));
    }
    return done(s, err);
}

ck_status ck_session_host_ready(ck_session *s, uint64_t job, uint64_t attempt, ck_view address, ck_error *err) {
    host *h = find(s, job, attempt);
    if (!h || h->ended || h->phase != CK_HOST_DEPLOYED) return CK_OK;
    h->phase = CK_HOST_READY;
    snprintf(h->address, sizeof h->address, "%.*s", (int)address.n, address.p);
    if (s->welcome) say_ready(s, h);
    return done(s, err);
}

ck_status ck_session_host_checkpoint(ck_session *s, uint64_t job, uint64_t attempt, uint64_t checkpoint,
                                     ck_error *err) {
    host *h = find(s, job, attempt);
    if (!h || h->ended) return CK_OK;
    h->checkpoint = checkpoint;
    if (s->welcome)
        act_message(s, CK_SESSION_SEND, h,
                    &(ck_message){.kind = CK_MSG_CHECKPOINT, .as.checkpoint = {fence(s, h), checkpoint}});
    return done(s, err);
}

ck_status ck_session_host_savepoint(ck_session *s, uint64_t job, uint64_t attempt, const ck_msg_savepoint_ended *m,
                                    ck_error *err) {
    const host *h = find(s, job, attempt);
    ck_message out = {.kind = CK_MSG_SAVEPOINT_ENDED, .as.savepoint_ended = *m};
    out.as.fence = fence(s, h);
    if (h && !h->ended && s->welcome) act_message(s, CK_SESSION_SEND, h, &out);
    return done(s, err);
}

ck_status ck_session_host_progress(ck_session *s, uint64_t job, uint64_t attempt, const ck_progress *p, ck_error *err) {
    host *h = find(s, job, attempt);
    if (!h || h->ended) return CK_OK;
    const bool first = p->rows_in && !h->progress.rows_in;
    h->progress = *p;
    snprintf(h->note, sizeof h->note, "%.*s", (int)p->note.n, p->note.p ? p->note.p : "");
    h->progress.note = ck_view_of(h->note);
    h->unsaid = true;
    if (first && s->welcome) say_heartbeat(s, h);
    return done(s, err);
}

ck_status ck_session_host_ended(ck_session *s, uint64_t job, uint64_t attempt, ck_task_outcome outcome, uint64_t flags,
                                ck_view error, ck_error *err) {
    host *h = find(s, job, attempt);
    if (!h || h->ended) return CK_OK;
    h->ended = true;
    h->outcome = h->killed ? CK_TASK_CANCELLED : outcome;
    h->flags = h->killed ? 0 : flags;
    snprintf(h->error, sizeof h->error, "%.*s", (int)error.n, error.p);
    if (s->welcome) say_ended(s, h);
    spawn_next(s, job);
    return done(s, err);
}
