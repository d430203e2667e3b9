#include "cluster/coordinator/uploads.h"

#include <stdio.h>

#include "base/bytes.h"
#include "os/fs.h"

enum { LIST_BYTES_MAX = 1 << 20, ARENA_BYTES_MAX = 8 << 20 };
#define NOBODY UINT64_MAX /* no connection's number */

typedef struct upload {
    struct upload *next;
    uint64_t conn;
    char hash[CK_SHA256_CHARS + 1], name[CK_CLUSTER_NAME_MAX + 1];
    uint64_t bytes; /* announced */
    ck_bytes content;
    int64_t heard_us;
    bool is_kept; /* just now, by work; its connection is 0 when that has closed meanwhile */
} upload;

struct ck_uploads_work {
    const ck_uploads *u;
    upload *x; /* to be kept; NULL: whether kept is what it is called */
    ck_kept_plugin kept;
    bool is_whole;
    ck_status status;
    ck_error error;
    /* of the offer: */
    uint64_t conn;
    bool may_upload;
    char name[CK_CLUSTER_NAME_MAX + 1];
};

struct ck_uploads {
    ck_uploads_config cfg;
    char *allow; /* a copy; NULL: none */
    ck_mem mem;
    upload *first;
};

/* ---- which are taken ---- */

/* A line each: the sum, and anything behind a space, as sha256sum prints it. */
static ck_status find_sum(ck_proc *proc, const char *path, ck_arena *a, ck_view hash, bool *found, ck_error *err) {
    ck_view text;
    uint32_t number = 0;
    *found = false;
    ck_status s = ck_fs_read_all(proc, path, LIST_BYTES_MAX, a, &text, err);
    if (s != CK_OK) ck_error_prefix(err, "--allow-plugins: ");
    if (s != CK_OK) return s;
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n, sum = 0;
        number++;
        while (sum < n && !strchr(" \t\r#", text.p[sum])) sum++;
        bool blank = sum == 0;
        if (!blank && !ck_sha256_is_hex((ck_view){text.p, sum}))
            return ck_fail(err, CK_INVALID,
                           "--allow-plugins: %s:%u: a line begins with a SHA-256, as sha256sum prints it", path,
                           number);
        *found |= !blank && ck_view_eq((ck_view){text.p, sum}, hash);
        text = (ck_view){text.p + n + (end != NULL), text.n - n - (end != NULL)};
    }
    return CK_OK;
}

static ck_status check_allowed(const ck_uploads *u, const ck_msg_plugin *p, ck_error *err) {
    const char *allow = u->allow;
    bool found = true;
    if (!allow)
        return ck_fail(
            err, CK_REFUSED,
            "plugin %.*s: this coordinator takes none; clink coordinator --allow-plugins any|FILE says which",
            (int)p->name.n, p->name.p);
    if (strcmp(allow, "any") == 0) return CK_OK;
    ck_arena a;
    ck_arena_init(&a, u->mem, 2 * LIST_BYTES_MAX);
    ck_status s = find_sum(u->cfg.proc, allow, &a, p->hash, &found, err);
    ck_arena_destroy(&a);
    if (s == CK_OK && !found)
        s = ck_fail(err, CK_REFUSED, "plugin %.*s: its SHA-256, %.*s, is not in %s (--allow-plugins)", (int)p->name.n,
                    p->name.p, (int)p->hash.n, p->hash.p, allow);
    return s;
}

/* ---- what is here ---- */

static ck_status find_kept(const ck_uploads *u, ck_arena *a, ck_view hash, const ck_kept_plugin **out, ck_error *err) {
    ck_kept_plugin *kept;
    uint32_t count;
    *out = NULL;
    CK_TRY(ck_plugin_store_list(u->cfg.store, a, &kept, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (ck_view_is(hash, kept[i].hash)) *out = &kept[i];
    return CK_OK;
}

/* Read again: it may be something else by now. */
static bool is_whole(const ck_uploads *u, const ck_kept_plugin *k) {
    ck_sha256 sum;
    char hex[CK_SHA256_CHARS + 1];
    uint64_t at = 0;
    ck_sha256_init(&sum);
    while (at < k->bytes) {
        ck_arena a;
        ck_view part;
        ck_arena_init(&a, u->mem, 2 * CK_CLUSTER_PART_BYTES_MAX);
        ck_status s = ck_plugin_store_read(u->cfg.store, k->hash, at, CK_CLUSTER_PART_BYTES_MAX, &a, &part, NULL);
        if (s == CK_OK) ck_sha256_add(&sum, part.p, part.n);
        at += s == CK_OK ? part.n : 0;
        bool stuck = s != CK_OK || part.n == 0;
        ck_arena_destroy(&a);
        if (stuck) return false;
    }
    ck_sha256_end(&sum, hex);
    return strcmp(hex, k->hash) == 0;
}

/* By its size. */
static ck_status is_here(const ck_uploads *u, const ck_msg_plugin *p, bool *here, ck_kept_plugin *kept, ck_error *err) {
    const ck_kept_plugin *k;
    ck_arena a;
    ck_arena_init(&a, u->mem, ARENA_BYTES_MAX);
    ck_status s = find_kept(u, &a, p->hash, &k, err);
    *here = s == CK_OK && k && k->bytes == p->bytes;
    if (*here) *kept = *k;
    ck_arena_destroy(&a);
    return s;
}

/* Drives out what no job needs, the oldest first. */
static ck_status make_room(const ck_uploads *u, ck_arena *a, uint64_t bytes, ck_error *err) {
    ck_kept_plugin *kept;
    uint32_t count;
    uint64_t all = 0;
    CK_TRY(ck_plugin_store_list(u->cfg.store, a, &kept, &count, err));
    for (uint32_t i = 0; i < count; i++) all += kept[i].bytes;
    for (const upload *x = u->first; x; x = x->next) all += x->is_kept ? x->bytes : 0;
    while (bytes > u->cfg.store->bytes_max || all > u->cfg.store->bytes_max - bytes) {
        ck_kept_plugin *oldest = NULL;
        for (uint32_t i = 0; i < count; i++)
            if (kept[i].bytes && (!oldest || kept[i].order < oldest->order) &&
                !u->cfg.is_named(u->cfg.arg, ck_view_of(kept[i].hash)))
                oldest = &kept[i];
        if (!oldest)
            return ck_fail(err, CK_FULL, "the plugins of the jobs here have %llu bytes, and %llu are the most",
                           (unsigned long long)all, (unsigned long long)u->cfg.store->bytes_max);
        CK_TRY(ck_plugin_store_forget(u->cfg.store, oldest->hash, err));
        all -= oldest->bytes;
        oldest->bytes = 0;
    }
    return CK_OK;
}

/* ---- what is under way ---- */

static upload *upload_of(const ck_uploads *u, uint64_t conn) {
    for (upload *x = u->first; x; x = x->next)
        if (x->conn == conn) return x;
    return NULL;
}

void ck_uploads_closed(ck_uploads *u, uint64_t conn) {
    for (upload **link = &u->first, *x; (x = *link) != NULL;) {
        if (x->conn != conn || x->is_kept) {
            if (x->conn == conn) x->conn = 0; /* its work ends it */
            link = &x->next;
            continue;
        }
        *link = x->next;
        ck_bytes_destroy(&x->content);
        ck_free(u->mem, x, sizeof *x);
    }
}

static void end_upload(ck_uploads *u, upload *x) {
    x->is_kept = false;
    x->conn = NOBODY;
    ck_uploads_closed(u, NOBODY);
}

static bool there_is_room(const ck_uploads *u, uint64_t bytes) {
    uint64_t all = bytes;
    uint32_t count = 1;
    for (const upload *x = u->first; x; x = x->next) all += x->bytes, count++;
    return count <= CK_UPLOADS_MAX && all <= CK_UPLOADS_BYTES_MAX;
}

/* One that stands still makes way. */
static ck_status wait_for_none(ck_uploads *u, int64_t now_us, uint64_t bytes, uint64_t *dropped, ck_error *err) {
    upload *stillest = NULL;
    if (there_is_room(u, bytes)) return CK_OK;
    for (upload *x = u->first; x; x = x->next)
        if (!x->is_kept && (!stillest || x->heard_us < stillest->heard_us)) stillest = x;
    if (stillest && now_us - stillest->heard_us >= CK_UPLOAD_IDLE_US) {
        *dropped = stillest->conn;
        ck_uploads_closed(u, stillest->conn);
    }
    if (there_is_room(u, bytes)) return CK_OK;
    return ck_fail(err, CK_FULL, "others upload plugins just now, and no more are taken at a time: try again");
}

static ck_status begin(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_plugin *p, ck_error *err) {
    upload *x = ck_alloc_zero(u->mem, sizeof *x);
    if (!x) return ck_nomem(err, u->mem, sizeof *x);
    x->conn = conn, x->bytes = p->bytes, x->heard_us = now_us;
    memcpy(x->hash, p->hash.p, CK_SHA256_CHARS);
    (void)snprintf(x->name, sizeof x->name, "%.*s", (int)p->name.n, p->name.p ? p->name.p : "");
    ck_bytes_init(&x->content, u->mem, (size_t)p->bytes);
    x->next = u->first;
    u->first = x;
    return CK_OK;
}

static ck_status make_room_for(const ck_uploads *u, uint64_t bytes, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, u->mem, ARENA_BYTES_MAX);
    ck_status s = make_room(u, &a, bytes, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status new_work(const ck_uploads *u, ck_uploads_work **out, ck_error *err) {
    ck_uploads_work *w = *out = ck_alloc_zero(u->mem, sizeof *w);
    if (!w) return ck_nomem(err, u->mem, sizeof *w);
    w->u = u;
    w->error = CK_ERROR_INIT;
    return CK_OK;
}

/* It is not here, or is not what it is called. */
static ck_status take_in(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_plugin *p, bool may_upload,
                         bool *wanted, uint64_t *dropped, ck_error *err) {
    if (!may_upload)
        return ck_fail(err, CK_REFUSED, "plugin %.*s is not here, and uploading it wants a token with the role plugin",
                       (int)p->name.n, p->name.p);
    if (p->bytes > u->cfg.store->plugin_bytes_max)
        return ck_fail(err, CK_REFUSED, "plugin %.*s has %llu bytes, and this coordinator takes %llu", (int)p->name.n,
                       p->name.p, (unsigned long long)p->bytes, (unsigned long long)u->cfg.store->plugin_bytes_max);
    CK_TRY(make_room_for(u, p->bytes, err));
    CK_TRY(wait_for_none(u, now_us, p->bytes, dropped, err));
    *wanted = true;
    return begin(u, now_us, conn, p, err);
}

static ck_status look_closer(const ck_uploads *u, uint64_t conn, const ck_msg_plugin *p, bool may_upload,
                             const ck_kept_plugin *kept, ck_uploads_work **work, ck_error *err) {
    CK_TRY(new_work(u, work, err));
    ck_uploads_work *w = *work;
    w->kept = *kept;
    w->conn = conn, w->may_upload = may_upload;
    (void)snprintf(w->name, sizeof w->name, "%.*s", (int)p->name.n, p->name.p ? p->name.p : "");
    return CK_AGAIN;
}

ck_status ck_uploads_offer(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_plugin *p, bool may_upload,
                           bool *wanted, uint64_t *dropped, ck_uploads_work **work, ck_error *err) {
    bool here;
    ck_kept_plugin kept;
    *wanted = false, *dropped = 0, *work = NULL;
    if (!ck_sha256_is_hex(p->hash) || p->bytes == 0)
        return ck_fail(err, CK_CORRUPT, "an offered plugin without a SHA-256, or without bytes");
    ck_uploads_closed(u, conn); /* one at a time; another offer gives the last one up */
    CK_TRY(check_allowed(u, p, err));
    CK_TRY(is_here(u, p, &here, &kept, err));
    if (here && u->cfg.store->may_rot) return look_closer(u, conn, p, may_upload, &kept, work, err);
    return here ? CK_OK : take_in(u, now_us, conn, p, may_upload, wanted, dropped, err);
}

/* It is all here. */
static ck_status finish(ck_uploads *u, upload *x, ck_uploads_work **work, ck_error *err) {
    CK_TRY(make_room_for(u, x->bytes, err)); /* others may have come meanwhile */
    CK_TRY(new_work(u, work, err));
    (*work)->x = x;
    x->is_kept = true;
    return CK_AGAIN;
}

ck_status ck_uploads_part(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_upload_part *m,
                          ck_uploads_work **work, ck_error *err) {
    upload *x = upload_of(u, conn);
    *work = NULL;
    if (!x || x->is_kept) return ck_fail(err, CK_CORRUPT, "a part of a plugin that was not asked for");
    if (m->offset != x->content.n || m->part.n == 0 || m->part.n > x->bytes - x->content.n)
        return ck_fail(err, CK_CORRUPT, "a part of plugin %s that does not fit behind what has come", x->name);
    if (ck_bytes_view(&x->content, m->part) != CK_OK) return ck_nomem(err, u->mem, m->part.n);
    x->heard_us = now_us;
    if (x->content.n < x->bytes) return CK_OK;
    ck_status s = finish(u, x, work, err);
    if (s != CK_AGAIN) ck_uploads_closed(u, conn);
    return s;
}

/* ---- what takes long ---- */

static ck_status keep(const ck_uploads *u, const upload *x, ck_error *err) {
    ck_status s = ck_plugin_store_keep(u->cfg.store, x->hash, ck_bytes_as_view(&x->content), err);
    if (s != CK_OK) ck_error_prefix(err, "plugin %s could not be kept: ", x->name);
    return s;
}

static ck_status check_hash(const upload *x, ck_error *err) {
    char hex[CK_SHA256_CHARS + 1];
    ck_sha256_of(ck_bytes_as_view(&x->content), hex);
    if (strcmp(hex, x->hash) == 0) return CK_OK;
    return ck_fail(err, CK_CORRUPT, "what came as plugin %s has another SHA-256 than was said", x->name);
}

void ck_uploads_run(ck_uploads_work *w) {
    if (!w->x) {
        w->is_whole = is_whole(w->u, &w->kept);
        return;
    }
    w->status = check_hash(w->x, &w->error);
    if (w->status == CK_OK && w->u->cfg.store->is_slow) w->status = keep(w->u, w->x, &w->error);
}

static ck_status end_keeping(ck_uploads *u, ck_uploads_work *w, ck_error *err) {
    if (w->status == CK_OK && !u->cfg.store->is_slow) w->status = keep(u, w->x, &w->error);
    end_upload(u, w->x);
    if (w->status != CK_OK && err) *err = w->error;
    return w->status;
}

/* The offer goes on where it was. */
static ck_status end_looking(ck_uploads *u, int64_t now_us, const ck_uploads_work *w, bool *wanted, uint64_t *dropped,
                             ck_error *err) {
    const ck_msg_plugin p = {ck_view_of(w->kept.hash), w->kept.bytes, ck_view_of(w->name)};
    return w->is_whole ? CK_OK : take_in(u, now_us, w->conn, &p, w->may_upload, wanted, dropped, err);
}

ck_status ck_uploads_end(ck_uploads *u, int64_t now_us, ck_uploads_work **pw, bool *wanted, uint64_t *dropped,
                         ck_error *err) {
    ck_uploads_work *w = *pw;
    *pw = NULL, *wanted = false, *dropped = 0;
    ck_status s = w->x ? end_keeping(u, w, err) : end_looking(u, now_us, w, wanted, dropped, err);
    ck_free(u->mem, w, sizeof *w);
    return s;
}

void ck_uploads_drop(ck_uploads *u, ck_uploads_work **pw) {
    ck_uploads_work *w = *pw;
    *pw = NULL;
    if (w->x) end_upload(u, w->x);
    ck_free(u->mem, w, sizeof *w);
}

/* ---- for jobs and workers ---- */

ck_status ck_uploads_check(ck_uploads *u, const ck_proto_list *plugins, ck_error *err) {
    for (uint32_t i = 0; i < plugins->count; i++) {
        const ck_msg_plugin *p = (const ck_msg_plugin *)plugins->items + i;
        const ck_kept_plugin *k = NULL;
        ck_arena a;
        CK_TRY(check_allowed(u, p, err));
        ck_arena_init(&a, u->mem, ARENA_BYTES_MAX);
        ck_status s = find_kept(u, &a, p->hash, &k, err);
        bool here = s == CK_OK && k && k->bytes == p->bytes;
        ck_arena_destroy(&a);
        if (s != CK_OK) return s;
        if (!here) return ck_fail(err, CK_REFUSED, "plugin %.*s is not here: submit again", (int)p->name.n, p->name.p);
    }
    return CK_OK;
}

ck_status ck_uploads_read(ck_uploads *u, const ck_msg_want_plugin *m, ck_arena *a, ck_view *part, ck_error *err) {
    char hash[CK_SHA256_CHARS + 1] = "";
    if (!ck_sha256_is_hex(m->hash)) return ck_fail(err, CK_CORRUPT, "a plugin is wanted by what is no SHA-256");
    memcpy(hash, m->hash.p, CK_SHA256_CHARS);
    CK_TRY(ck_plugin_store_read(u->cfg.store, hash, m->offset, CK_CLUSTER_PART_BYTES_MAX, a, part, err));
    if (part->n == 0)
        return ck_fail(err, CK_NOTFOUND, "plugin %s ends before %llu bytes", hash, (unsigned long long)m->offset);
    return CK_OK;
}

/* ---- init and free ---- */

ck_status ck_uploads_new(const ck_uploads_config *cfg, ck_uploads **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN);
    const char *allow = cfg->allow;
    bool found;
    *out = NULL;
    if (allow && strcmp(allow, "any") != 0) {
        ck_arena a;
        ck_arena_init(&a, mem, 2 * LIST_BYTES_MAX);
        ck_status s = find_sum(cfg->proc, allow, &a, (ck_view){NULL, 0}, &found, err);
        ck_arena_destroy(&a);
        if (s != CK_OK) return s;
    }
    ck_uploads *u = ck_alloc_zero(mem, sizeof *u);
    if (!u) return ck_nomem(err, mem, sizeof *u);
    u->cfg = *cfg, u->mem = mem;
    if (allow && (u->allow = ck_alloc(mem, strlen(allow) + 1)) == NULL) {
        ck_uploads_free(u);
        return ck_nomem(err, mem, strlen(allow));
    }
    if (allow) memcpy(u->allow, allow, strlen(allow) + 1);
    *out = u;
    return CK_OK;
}

void ck_uploads_free(ck_uploads *u) {
    if (!u) return;
    while (u->first) ck_uploads_closed(u, u->first->conn);
    if (u->allow) ck_free(u->mem, u->allow, strlen(u->allow) + 1);
    ck_free(u->mem, u, sizeof *u);
}
