/* Task hosts as the worker's loop sees them: a connection each, and a process that has been reaped or not. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cluster/worker/supervisor_int.h"

typedef struct host_conn {
    supervisor *s;
    hosted *host; /* once it has said who it is */
} host_conn;

hosted *hosts_find(const supervisor *s, uint64_t job, uint64_t attempt) {
    for (hosted *h = s->hosts; h; h = h->next)
        if (h->job == job && h->attempt == attempt) return h;
    return NULL;
}

static void kill_host(supervisor *s, hosted *h, const ck_session_action *a);

static void say_of(const supervisor *s, const hosted *h, const char *what) {
    ck_log_line(s->proc->log, CK_LOG_DEBUG, "job %llu, attempt %llu: %s", (unsigned long long)h->job,
                (unsigned long long)h->attempt, what);
}

/* ---- the session's actions ---- */

/* A host that does not listen is closed, and ends for it. */
static void give(hosted *h, ck_frame **f) {
    if (h && h->c && ck_connection_send(h->c, f) == CK_FULL) ck_connection_close(h->c, false);
}

void hosts_drain(supervisor *s) {
    for (ck_session_action *a; (a = ck_session_next(s->session)) != NULL; ck_session_action_free(s->session, a)) {
        hosted *h = hosts_find(s, a->job, a->attempt);
        switch (a->kind) {
        case CK_SESSION_SEND:
            if (s->up && ck_connection_send(s->up, &a->frame) == CK_FULL) ck_connection_close(s->up, false);
            break;
        case CK_SESSION_SPAWN: hosts_add(s, a->job, a->attempt, &a->frame); break;
        case CK_SESSION_START:
            if (h) say_of(s, h, "starts");
            give(h, &a->frame);
            break;
        case CK_SESSION_SAVEPOINT: give(h, &a->frame); break;
        case CK_SESSION_KILL: kill_host(s, h, a); break;
        case CK_SESSION_CLOSE: uplink_give_up(s); break;
        }
    }
}

/* What a DEPLOY says of plugins, for as long as the host is here. */
static ck_status note_plugins(supervisor *s, hosted *h, ck_arena *a, ck_error *err) {
    ck_message m;
    CK_TRY(ck_message_read(h->deploy, a, &m, err));
    const ck_proto_list *list = &m.as.deploy.plugins;
    if (list->count == 0) return CK_OK;
    if (!(h->plugins = ck_alloc_array(s->mem, list->count, sizeof *h->plugins)))
        return ck_nomem(err, s->mem, list->count * sizeof *h->plugins);
    h->plugin_count = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        const ck_msg_plugin *p = (const ck_msg_plugin *)list->items + i;
        if (!ck_sha256_is_hex(p->hash) || p->bytes == 0)
            return ck_fail(err, CK_CORRUPT, "a DEPLOY with a plugin that has no SHA-256, or no bytes");
        h->plugins[i] = (hosted_plugin){.bytes = p->bytes};
        memcpy(h->plugins[i].hash, p->hash.p, CK_SHA256_CHARS);
        snprintf(h->plugins[i].name, sizeof h->plugins[i].name, "%.*s", (int)p->name.n, p->name.p ? p->name.p : "");
    }
    return CK_OK;
}

void hosts_spawn(supervisor *s, hosted *h) {
    h->waiting = false;
    supervisor_spawn(s, h->job, h->attempt, (ck_view){(const char *)h->deploy->p, h->deploy->n});
}

void hosts_add(supervisor *s, uint64_t job, uint64_t attempt, ck_frame **deploy) {
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    hosted *h = ck_alloc_zero(s->mem, sizeof *h);
    if (!h) {
        supervisor_fail(s, ck_nomem(&err, s->mem, sizeof *h), &err);
        return;
    }
    h->job = job, h->attempt = attempt, h->deploy = *deploy, h->next = s->hosts;
    *deploy = NULL;
    s->hosts = h;
    h->waiting = true;
    ck_arena_init(&a, s->mem, ARENA_BYTES_MAX);
    ck_status st = note_plugins(s, h, &a, &err);
    ck_arena_destroy(&a);
    if (st == CK_NOMEM)
        supervisor_fail(s, st, &err);
    else if (st != CK_OK)
        hosts_fail_waiting(s, h, &err);
    else if (h->plugin_count)
        fetch_for(s, h);
    else
        hosts_spawn(s, h);
}

void hosts_free(supervisor *s, hosted *h) {
    ck_frame_free(&h->deploy);
    ck_connection_unref(&h->c);
    ck_free(s->mem, h->plugins, h->plugin_count * sizeof *h->plugins);
    ck_free(s->mem, h, sizeof *h);
}

/* ---- the end of one ---- */

static void describe_end(hosted *h) {
    int st = h->wait_status;
    h->outcome = CK_TASK_FAILED;
    if (st < 0)
        snprintf(h->error, sizeof h->error, "the task host could not be started: %s", strerror(-st));
    else if (WIFSIGNALED(st))
        snprintf(h->error, sizeof h->error, "the task host was killed by signal %d", WTERMSIG(st));
    else
        snprintf(h->error, sizeof h->error, "the task host ended with status %d", WEXITSTATUS(st));
}

static void end_if_over(supervisor *s, hosted *h) {
    ck_error err = CK_ERROR_INIT;
    if (!h->reaped || h->c) return;
    if (!h->told) describe_end(h);
    say_of(s, h, "has ended");
    for (hosted **link = &s->hosts; *link; link = &(*link)->next)
        if (*link == h) {
            *link = h->next;
            break;
        }
    ck_status st =
        ck_session_host_ended(s->session, h->job, h->attempt, h->outcome, h->flags, ck_view_of(h->error), &err);
    hosts_free(s, h);
    if (st != CK_OK)
        supervisor_fail(s, st, &err);
    else
        hosts_drain(s);
}

/* One that waits for plugins has no process, and never gets one. */
static void end_waiting(supervisor *s, hosted *h, ck_task_outcome outcome, const char *error) {
    h->waiting = false;
    h->reaped = h->told = true;
    h->outcome = outcome;
    snprintf(h->error, sizeof h->error, "%s", error);
    for (char *p = h->error; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
    end_if_over(s, h);
}

void hosts_fail_waiting(supervisor *s, hosted *h, const ck_error *why) { end_waiting(s, h, CK_TASK_FAILED, why->msg); }

static void kill_host(supervisor *s, hosted *h, const ck_session_action *a) {
    if (h && h->waiting)
        end_waiting(s, h, CK_TASK_CANCELLED, "");
    else
        supervisor_kill(s, a->job, a->attempt);
}

void hosts_reaped(supervisor *s, uint64_t job, uint64_t attempt, int wait_status) {
    hosted *h = hosts_find(s, job, attempt);
    if (!h) return;
    h->reaped = true;
    h->wait_status = wait_status;
    end_if_over(s, h);
}

/* ---- what it says ---- */

static ck_status say_hello(host_conn *k, ck_connection *c, const ck_message *m, ck_error *err) {
    hosted *h = m->kind == CK_MSG_HELLO ? hosts_find(k->s, m->as.fence.job, m->as.fence.attempt) : NULL;
    if (!h || h->c || !h->deploy) return ck_fail(err, CK_REFUSED, "this is no task host of this worker");
    k->host = h;
    h->c = ck_connection_ref(c);
    say_of(k->s, h, "its task host is here");
    give(h, &h->deploy);
    return CK_OK;
}

static ck_status hear(host_conn *k, const ck_message *m, ck_error *err) {
    hosted *h = k->host;
    ck_session *s = k->s->session;
    switch ((int)m->kind) {
    case CK_MSG_READY:
        say_of(k->s, h, "is ready");
        return ck_session_host_ready(s, h->job, h->attempt, m->as.ready.address, err);
    case CK_MSG_CHECKPOINT: return ck_session_host_checkpoint(s, h->job, h->attempt, m->as.checkpoint.checkpoint, err);
    case CK_MSG_SAVEPOINT_ENDED: return ck_session_host_savepoint(s, h->job, h->attempt, &m->as.savepoint_ended, err);
    case CK_MSG_PROGRESS: return ck_session_host_progress(s, h->job, h->attempt, &m->as.progress.progress, err);
    case CK_MSG_ENDED:
        h->told = true;
        h->outcome = (ck_task_outcome)m->as.ended.outcome;
        h->flags = m->as.ended.flags;
        snprintf(h->error, sizeof h->error, "%.*s", (int)m->as.ended.error.n, m->as.ended.error.p);
        return CK_OK;
    default: return ck_fail(err, CK_CORRUPT, "a %s, which is not for a worker", ck_message_name(m->kind));
    }
}

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    host_conn *k = arg;
    ck_arena a;
    ck_message m;
    ck_arena_init(&a, k->s->mem, ARENA_BYTES_MAX);
    ck_status s = ck_message_read(*f, &a, &m, err);
    if (s == CK_OK) s = k->host ? hear(k, &m, err) : say_hello(k, c, &m, err);
    if (s == CK_NOMEM) supervisor_fail(k->s, s, err);
    if (s == CK_OK) hosts_drain(k->s);
    ck_arena_destroy(&a);
    ck_frame_free(f);
    return s;
}

static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    host_conn *k = arg;
    supervisor *s = k->s;
    hosted *h = k->host;
    (void)c, (void)err;
    ck_free(s->mem, k, sizeof *k);
    if (!h) return;
    ck_connection_unref(&h->c);
    if (why != CK_CANCELLED) end_if_over(s, h);
}

static const ck_connection_handler handler = {.on_frame = framed, .on_close = closed};

static bool accepted(void *arg, ck_connection_config *cfg) {
    supervisor *s = arg;
    host_conn *k = ck_alloc_zero(s->mem, sizeof *k);
    if (!k) return false;
    k->s = s;
    *cfg = (ck_connection_config){.handler = &handler,
                                  .arg = k,
                                  .mem = s->mem,
                                  .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                  .queue_bytes_max = QUEUE_BYTES_MAX};
    return true;
}

ck_status hosts_listen(supervisor *s, ck_error *err) {
    return ck_listener_open(s->loop, s->socket, HOSTS_MAX, accepted, s, &s->listener, NULL, err);
}
