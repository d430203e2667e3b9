/* Plugins as the coordinator's server has them: offers, parts, and what workers want. What takes long is done on the
 * I/O executor, while the loop hears everybody but who waits for it. */
#include "cluster/coordinator/server_int.h"
#include "os/clock.h"
#include "os/io.h"

bool plugins_are_meant(const ck_message *m) {
    return m->kind == CK_MSG_OFFER_PLUGIN || m->kind == CK_MSG_UPLOAD_PART || m->kind == CK_MSG_WANT_PLUGIN;
}

static ck_status give_part(peer *p, const ck_msg_want_plugin *m, ck_error *err) {
    ck_coordinator_server *s = p->server;
    ck_error why = CK_ERROR_INIT;
    ck_arena a;
    ck_msg_plugin_part part = {.hash = m->hash, .offset = m->offset};
    ck_arena_init(&a, s->mem, SERVER_ARENA_BYTES_MAX);
    ck_status st = ck_uploads_read(s->uploads, m, &a, &part.part, &why);
    if (st != CK_OK) part.error = ck_view_of(why.msg);
    st = st == CK_NOMEM || st == CK_CORRUPT
             ? st
             : server_send(p, &(ck_message){.kind = CK_MSG_PLUGIN_PART, .as.plugin_part = part}, &why);
    if (st != CK_OK && err) *err = why;
    ck_arena_destroy(&a);
    return st;
}

/* A length or a hash that does not fit costs its connection, which is told why. */
static ck_status tell(peer *p, ck_status st, const ck_error *why, bool wanted, ck_error *err) {
    ck_coordinator_server *s = p->server;
    if (st == CK_OK) return server_answer(p, CK_OK, "", wanted, err);
    if (st == CK_NOMEM || server_refuse(p, why, err) != CK_OK) {
        if (err) *err = *why;
        return CK_NOMEM;
    }
    if (st != CK_CORRUPT) return CK_OK;
    ck_log_line(s->proc->log, CK_LOG_WARN, "%s was turned away: %s", ck_connection_peer(p->c), why->msg);
    ck_connection_close(p->c, true);
    return CK_OK;
}

static void close_idle(const ck_coordinator_server *s, uint64_t dropped) {
    peer *idle = dropped ? server_peer(s, dropped) : NULL;
    if (idle) ck_connection_close(idle->c, false);
}

/* ---- work elsewhere ---- */

typedef struct plugin_work {
    ck_io_job job; /* first */
    ck_net_post post;
    ck_coordinator_server *s;
    uint64_t number; /* of the peer that waits */
    ck_uploads_work *work;
} plugin_work;

static void run_work(ck_io_job *j) { ck_uploads_run(((plugin_work *)j)->work); }

static void post_work(ck_io_job *j) {
    plugin_work *w = (plugin_work *)j;
    ck_net_loop_post(w->s->loop, &w->post);
}

static void answer_work(plugin_work *w, peer *p) {
    ck_coordinator_server *s = w->s;
    ck_error why = CK_ERROR_INIT;
    bool wanted;
    uint64_t dropped;
    ck_status st = ck_uploads_end(s->uploads, ck_mono_us(s->proc), &w->work, &wanted, &dropped, &why);
    close_idle(s, dropped);
    if (tell(p, st, &why, wanted, NULL) != CK_OK) ck_connection_close(p->c, false);
    ck_connection_resume(p->c);
}

static void end_work(ck_net_post *m) {
    plugin_work *w = (plugin_work *)((char *)m - offsetof(plugin_work, post));
    ck_coordinator_server *s = w->s;
    peer *p = server_peer(s, w->number);
    if (p)
        answer_work(w, p);
    else
        ck_uploads_drop(s->uploads, &w->work);
    ck_free(s->mem, w, sizeof *w);
    pthread_mutex_lock(&s->lock);
    s->works--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static bool may_work(ck_coordinator_server *s) {
    pthread_mutex_lock(&s->lock);
    bool may = !s->stopping;
    s->works += may;
    pthread_mutex_unlock(&s->lock);
    return may;
}

/* Takes work. */
static ck_status begin_work(peer *p, ck_uploads_work *work, ck_error *err) {
    ck_coordinator_server *s = p->server;
    plugin_work *w = ck_alloc_zero(s->mem, sizeof *w);
    if (!w || !may_work(s)) {
        ck_status st = w ? ck_fail(err, CK_CLOSED, "the coordinator ends") : ck_nomem(err, s->mem, sizeof *w);
        ck_uploads_drop(s->uploads, &work);
        ck_free(s->mem, w, sizeof *w);
        return st;
    }
    *w = (plugin_work){{.run = run_work, .done = post_work}, {.run = end_work}, s, p->number, work};
    if (s->proc->io) {
        s->proc->io->submit(s->proc->io, &w->job);
    } else {
        run_work(&w->job);
        post_work(&w->job);
    }
    return CK_FULL;
}

void plugins_stop(ck_coordinator_server *s) {
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    while (s->works) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- what is said about them ---- */

ck_status plugins_hear(peer *p, const ck_message *m, ck_error *err) {
    ck_coordinator_server *s = p->server;
    ck_error why = CK_ERROR_INIT;
    bool wanted = false;
    uint64_t dropped = 0;
    ck_uploads_work *work = NULL;
    const int64_t now_us = ck_mono_us(s->proc);
    if (m->kind == CK_MSG_WANT_PLUGIN) return give_part(p, &m->as.want_plugin, err);
    ck_status st = m->kind == CK_MSG_OFFER_PLUGIN
                       ? ck_uploads_offer(s->uploads, now_us, p->number, &m->as.offer_plugin.plugin,
                                          (p->roles & CK_ROLE_PLUGIN) != 0, &wanted, &dropped, &work, &why)
                       : ck_uploads_part(s->uploads, now_us, p->number, &m->as.upload_part, &work, &why);
    close_idle(s, dropped);
    return st == CK_AGAIN ? begin_work(p, work, err) : tell(p, st, &why, wanted, err);
}
