/* Plugins that hosts to come need and the worker does not have: asked of the coordinator part by part, one plugin at a
 * time, and put into the cache when they are what they are called. Whoever waits for one is started when it has all of
 * its own. A connection that breaks has it asked for from the beginning, of whoever leads then. */
#include "cluster/worker/supervisor_int.h"

#include "base/bytes.h"

struct fetch {
    struct fetch *next;
    char hash[CK_SHA256_CHARS + 1], name[CK_CLUSTER_NAME_MAX + 1];
    uint64_t bytes;
    ck_bytes content;
    bool asked;
};

static bool needs(const hosted *h, const char *hash) {
    for (uint32_t i = 0; i < h->plugin_count; i++)
        if (strcmp(h->plugins[i].hash, hash) == 0) return true;
    return false;
}

static bool is_needed(void *arg, const char *hash) {
    const supervisor *s = arg;
    for (const hosted *h = s->hosts; h; h = h->next)
        if (needs(h, hash)) return true;
    return false;
}

static void free_first(supervisor *s) {
    fetch *f = s->fetches;
    s->fetches = f->next;
    ck_bytes_destroy(&f->content);
    ck_free(s->mem, f, sizeof *f);
}

void fetch_free_all(supervisor *s) {
    while (s->fetches) free_first(s);
}

/* ---- asking ---- */

static void ask_next(supervisor *s) {
    ck_error err = CK_ERROR_INIT;
    ck_frame *frame;
    while (s->fetches && !s->fetches->asked && !is_needed(s, s->fetches->hash))
        free_first(s); /* who wanted it has been told to end */
    fetch *f = s->fetches;
    if (!f || f->asked || !s->up_open) return;
    const ck_message m = {.kind = CK_MSG_WANT_PLUGIN,
                          .as.want_plugin = {.hash = ck_view_of(f->hash), .offset = f->content.n}};
    ck_status st = ck_message_frame(s->mem, &m, &frame, &err);
    if (st != CK_OK) {
        supervisor_fail(s, st, &err);
        return;
    }
    f->asked = true;
    if (ck_connection_send(s->up, &frame) == CK_FULL) ck_connection_close(s->up, false);
}

void fetch_connected(supervisor *s) { ask_next(s); }

void fetch_disconnected(supervisor *s) {
    for (fetch *f = s->fetches; f; f = f->next) {
        ck_bytes_clear(&f->content);
        f->asked = false;
    }
}

static ck_status add(supervisor *s, const hosted_plugin *p, ck_error *err) {
    fetch **end = &s->fetches;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->hash, p->hash) == 0) return CK_OK;
    fetch *f = ck_alloc_zero(s->mem, sizeof *f);
    if (!f) return ck_nomem(err, s->mem, sizeof *f);
    memcpy(f->hash, p->hash, sizeof f->hash);
    memcpy(f->name, p->name, sizeof f->name);
    f->bytes = p->bytes;
    ck_bytes_init(&f->content, s->mem, (size_t)p->bytes);
    *end = f;
    return CK_OK;
}

/* ---- hosts that wait ---- */

/* Starts it, or asks for what it lacks. */
static ck_status look_at(supervisor *s, hosted *h, ck_error *err) {
    bool all = true;
    for (uint32_t i = 0; i < h->plugin_count; i++) {
        bool has;
        CK_TRY(ck_plugin_cache_has(s->plugins, h->plugins[i].hash, h->plugins[i].bytes, &has, err));
        if (!has) CK_TRY(add(s, &h->plugins[i], err));
        all &= has;
    }
    if (all) hosts_spawn(s, h);
    return CK_OK;
}

void fetch_for(supervisor *s, hosted *h) {
    ck_error err = CK_ERROR_INIT;
    ck_status st = look_at(s, h, &err);
    if (st == CK_NOMEM)
        supervisor_fail(s, st, &err);
    else if (st != CK_OK)
        hosts_fail_waiting(s, h, &err);
    else
        ask_next(s);
}

static hosted *waiting_for(const supervisor *s, const char *hash) {
    for (hosted *h = s->hosts; h; h = h->next)
        if (h->waiting && needs(h, hash)) return h;
    return NULL;
}

/* It will not come. */
static void fail_all(supervisor *s, const char *hash, const ck_error *why) {
    for (hosted *h; (h = waiting_for(s, hash)) != NULL;) hosts_fail_waiting(s, h, why);
}

/* It is here: who waited for it may start. One that cannot ends, and the list with it is another one. */
static void start_all(supervisor *s, const char *hash) {
    for (hosted *h = s->hosts; h; h = h->next) h->looked_at = false;
    for (hosted *h = s->hosts; h;) {
        if (!h->waiting || h->looked_at || !needs(h, hash)) {
            h = h->next;
            continue;
        }
        h->looked_at = true;
        fetch_for(s, h);
        h = s->hosts;
    }
}

/* ---- what comes ---- */

static ck_status finish(supervisor *s, const fetch *f, ck_error *err) {
    char hex[CK_SHA256_CHARS + 1];
    ck_sha256_of(ck_bytes_as_view(&f->content), hex);
    if (strcmp(hex, f->hash) != 0)
        return ck_fail(err, CK_CORRUPT, "plugin %s: what the coordinator has under its SHA-256 is something else",
                       f->name);
    ck_status st = ck_plugin_cache_keep(s->plugins, f->hash, ck_bytes_as_view(&f->content), is_needed, s, err);
    if (st != CK_OK) ck_error_prefix(err, "plugin %s: ", f->name);
    return st;
}

ck_status fetch_heard(supervisor *s, const ck_msg_plugin_part *m, ck_error *err) {
    fetch *f = s->fetches;
    if (!f || !f->asked || !ck_view_is(m->hash, f->hash)) return CK_OK; /* nobody waits for it any more */
    char hash[CK_SHA256_CHARS + 1];
    ck_error why = CK_ERROR_INIT;
    ck_status st = CK_OK;
    memcpy(hash, f->hash, sizeof hash);
    f->asked = false;
    if (m->error.n) {
        st = ck_fail(&why, CK_NOTFOUND, "plugin %s: %.*s", f->name, (int)m->error.n, m->error.p);
    } else {
        if (m->offset != f->content.n || m->part.n == 0 || m->part.n > f->bytes - f->content.n)
            return ck_fail(err, CK_CORRUPT, "a part of plugin %s that does not fit behind what has come", f->name);
        if (ck_bytes_view(&f->content, m->part) != CK_OK) return ck_nomem(err, s->mem, m->part.n);
        if (f->content.n < f->bytes) {
            ask_next(s);
            return CK_OK;
        }
        st = finish(s, f, &why);
    }
    free_first(s);
    if (st == CK_NOMEM) {
        *err = why;
        return st;
    }
    if (st == CK_OK)
        start_all(s, hash);
    else
        fail_all(s, hash, &why);
    ask_next(s);
    return CK_OK;
}
