#include "cluster/coordinator/records_etcd.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "cluster/coordinator/etcd.h"
#include "os/clock.h"
#include "os/thread.h"

enum { ARENA_BYTES_MAX = 256 << 20, AGAIN_MS = 50 };

typedef struct records_etcd {
    ck_records base;
    ck_proc *proc;
    ck_mem mem;
    ck_etcd *etcd, *aside; /* aside: for another thread */
    const char *prefix;    /* of sentences: the address as it was given */
    ck_arena arena;        /* of the whole */
    int64_t lease, lease_us;
    uint64_t revision; /* of PREFIX/leader */

    /* the thread that keeps the lease alive; with an etcd of its own */
    ck_etcd *keeper;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stop;
    int64_t until_us; /* monotonic: so long nobody else can lead */
    bool lost;
} records_etcd;

/* ---- the lease ---- */

static int64_t until_of(const records_etcd *r, int64_t asked_us) {
    return asked_us + r->lease_us - r->lease_us / 4; /* its clock and ours go alike, but not quite */
}

/* false: it is time to end. */
static bool pause_until(records_etcd *r, int64_t due_us) {
    struct timespec ts = {.tv_sec = (time_t)(due_us / 1000000), .tv_nsec = (long)(due_us % 1000000) * 1000};
    pthread_mutex_lock(&r->lock);
    while (!r->stop && pthread_cond_timedwait(&r->changed, &r->lock, &ts) != ETIMEDOUT) {
    }
    bool go_on = !r->stop && !r->lost;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

static void *keep_alive(void *arg) {
    records_etcd *r = arg;
    int64_t due_us = ck_mono_us(r->proc);
    while (pause_until(r, due_us)) {
        int64_t asked_us = ck_mono_us(r->proc);
        ck_error err = CK_ERROR_INIT;
        ck_status s = ck_etcd_keep_alive(r->keeper, r->lease, &err);
        pthread_mutex_lock(&r->lock);
        if (s == CK_OK) r->until_us = until_of(r, asked_us);
        r->lost |= s == CK_NOTFOUND;
        pthread_mutex_unlock(&r->lock);
        due_us = s == CK_OK ? asked_us + r->lease_us / 4 : ck_mono_us(r->proc) + AGAIN_MS * 1000;
    }
    return NULL;
}

static ck_status hold(ck_records *base, ck_error *err) {
    records_etcd *r = (records_etcd *)base;
    int64_t now_us = ck_mono_us(r->proc);
    pthread_mutex_lock(&r->lock);
    bool lost = r->lost, late = now_us >= r->until_us;
    pthread_mutex_unlock(&r->lock);
    if (!lost && !late) return CK_OK;
    ck_status s =
        lost ? ck_fail(err, CK_REFUSED, "the lease in %s has expired: another coordinator may lead", r->prefix)
             : ck_fail(err, CK_REFUSED, "%s has not answered for so long that another coordinator may lead", r->prefix);
    if (err) err->retriable = true; /* this one may lead another time */
    return s;
}

/* ---- writing ---- */

/* Tried as long as it leads: what was done without an answer is done again, which changes nothing. */
static ck_status change_by(records_etcd *r, ck_etcd *etcd, const ck_etcd_change *c, ck_error *err) {
    for (;;) {
        bool done;
        uint64_t revision;
        ck_error_reset(err);
        ck_status s = ck_etcd_change_if(etcd, "leader", r->revision, c, &done, &revision, err);
        if (s == CK_OK && !done)
            return ck_fail(err, CK_REFUSED, "another coordinator leads: %s has its address", r->prefix);
        if (s != CK_IO) return s;
        CK_TRY(hold(&r->base, err));
        (void)pause_until(r, ck_mono_us(r->proc) + AGAIN_MS * 1000);
    }
}

static ck_status change(records_etcd *r, const ck_etcd_change *c, ck_error *err) {
    return change_by(r, r->etcd, c, err);
}

static void name_record(char *name, size_t size, uint64_t number) {
    if (number == 0)
        (void)snprintf(name, size, "leader.rec");
    else
        (void)snprintf(name, size, "job-%llu.rec", (unsigned long long)number);
}

static ck_status keep(ck_records *base, uint64_t number, const ck_frame *f, ck_error *err) {
    records_etcd *r = (records_etcd *)base;
    char name[40];
    uint8_t *bytes = ck_alloc(r->mem, f->n + CK_RECORD_HEAD_BYTES);
    if (!bytes) return ck_nomem(err, r->mem, f->n);
    ck_record_head(f, bytes);
    if (f->n) memcpy(bytes + CK_RECORD_HEAD_BYTES, f->p, f->n);
    const ck_view value = {(const char *)bytes, f->n + CK_RECORD_HEAD_BYTES};
    name_record(name, sizeof name, number);
    ck_status s = change(r, &(ck_etcd_change){.key = name, .value = &value}, err);
    ck_free(r->mem, bytes, f->n + CK_RECORD_HEAD_BYTES);
    return s;
}

static ck_status forget(ck_records *base, uint64_t number, ck_error *err) {
    char name[40];
    name_record(name, sizeof name, number);
    return change((records_etcd *)base, &(ck_etcd_change){.key = name}, err);
}

ck_status ck_records_etcd_put(ck_records *r, const char *key, const ck_view *value, ck_error *err) {
    return change((records_etcd *)r, &(ck_etcd_change){.key = key, .value = value}, err);
}

ck_status ck_records_etcd_put_aside(ck_records *base, const char *key, const ck_view *value, ck_error *err) {
    records_etcd *r = (records_etcd *)base;
    return change_by(r, r->aside, &(ck_etcd_change){.key = key, .value = value}, err);
}

/* ---- reading ---- */

ck_status ck_records_etcd_list(ck_records *r, const char *key, ck_arena *a, ck_etcd_pair **out, uint32_t *count,
                               ck_error *err) {
    return ck_etcd_list(((records_etcd *)r)->etcd, key, a, out, count, err);
}

static ck_status read_pair(records_etcd *r, const ck_etcd_pair *pair, ck_arena *a, ck_message *out, ck_error *err) {
    const char *name = ck_arena_printf(a, "%s: record %s", r->prefix, pair->key);
    return name ? ck_record_read(pair->value, name, a, out, err) : ck_nomem(err, r->mem, 0);
}

static ck_status recover_all(records_etcd *r, ck_coordinator *c, ck_arena *a, ck_error *err) {
    static const char *const kinds[] = {"leader.rec", "job-"};
    for (size_t k = 0; k < CK_ARRAY_COUNT(kinds); k++) {
        ck_etcd_pair *pairs;
        uint32_t count;
        CK_TRY(ck_etcd_list(r->etcd, kinds[k], a, &pairs, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            ck_message m;
            CK_TRY(read_pair(r, &pairs[i], a, &m, err));
            if (ck_coordinator_recover(c, &m, err) != CK_OK)
                return ck_error_prefix(err, "%s: record %s: ", r->prefix, pairs[i].key);
        }
    }
    return CK_OK;
}

static ck_status recover(ck_records *base, ck_coordinator *c, ck_error *err) {
    records_etcd *r = (records_etcd *)base;
    ck_arena a;
    ck_arena_init(&a, r->mem, ARENA_BYTES_MAX);
    ck_status s = recover_all(r, c, &a, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- who leads ---- */

static ck_status find_leader(records_etcd *r, ck_etcd_pair *out, bool *found, ck_error *err) {
    ck_etcd_pair *pairs;
    uint32_t count;
    CK_TRY(ck_etcd_list(r->etcd, "leader", &r->arena, &pairs, &count, err));
    *found = false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(pairs[i].key, "leader") == 0) *out = pairs[i], *found = true;
    return CK_OK;
}

/* CK_AGAIN: with who does; CK_OK: nobody. */
static ck_status look_for_leader(records_etcd *r, ck_error *err) {
    ck_etcd_pair leader;
    bool found;
    CK_TRY(find_leader(r, &leader, &found, err));
    return found ? ck_fail(err, CK_AGAIN, "%.*s leads", (int)leader.value.n, leader.value.p) : CK_OK;
}

static ck_status stand_for_election(records_etcd *r, const ck_records_etcd_config *cfg, ck_error *err) {
    bool done = false;
    const ck_view address = ck_view_of(cfg->address);
    CK_TRY(look_for_leader(r, err));
    int64_t asked_us = ck_mono_us(r->proc);
    CK_TRY(ck_etcd_grant(r->etcd, cfg->lease_s, &r->lease, err));
    CK_TRY(ck_etcd_change_if(r->etcd, "leader", 0,
                             &(ck_etcd_change){.key = "leader", .value = &address, .lease = r->lease}, &done,
                             &r->revision, err));
    r->until_us = until_of(r, asked_us);
    if (done) return CK_OK;
    CK_TRY(look_for_leader(r, err)); /* somebody was quicker */
    return ck_fail(err, CK_AGAIN, "another coordinator leads");
}

static ck_status last_epoch(records_etcd *r, uint64_t *epoch, ck_error *err) {
    ck_etcd_pair *pairs;
    uint32_t count;
    ck_message m;
    *epoch = 1;
    CK_TRY(ck_etcd_list(r->etcd, "leader.rec", &r->arena, &pairs, &count, err));
    if (count == 0) return CK_OK;
    CK_TRY(read_pair(r, &pairs[0], &r->arena, &m, err));
    return ck_record_next_epoch(&m, pairs[0].key, epoch, err);
}

static ck_status agree_on_token(records_etcd *r, ck_token *token, ck_error *err) {
    ck_etcd_pair *pairs;
    uint32_t count;
    bool done;
    uint64_t revision;
    ck_token_make(r->proc, token);
    const ck_view ours = ck_view_of(token->text);
    CK_TRY(ck_etcd_change_if(r->etcd, "token", 0, &(ck_etcd_change){.key = "token", .value = &ours}, &done, &revision,
                             err));
    CK_TRY(ck_etcd_list(r->etcd, "token", &r->arena, &pairs, &count, err));
    if (count != 1 || pairs[0].value.n != CK_TOKEN_CHARS)
        return ck_fail(err, CK_CORRUPT, "%s: token is none", r->prefix);
    *token = (ck_token){{0}};
    memcpy(token->text, pairs[0].value.p, CK_TOKEN_CHARS);
    return CK_OK;
}

/* ---- open and close ---- */

static void close_etcd(ck_records *base) {
    records_etcd *r = (records_etcd *)base;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->started) pthread_join(r->thread, NULL);
    ck_error lost = CK_ERROR_INIT;
    if (r->lease && ck_etcd_revoke(r->etcd, r->lease, &lost) != CK_OK)
        ck_log_line(r->proc->log, CK_LOG_INFO, "the lease in %s runs out by itself: %s", r->prefix, lost.msg);
    ck_etcd_free(r->keeper);
    ck_etcd_free(r->aside);
    ck_etcd_free(r->etcd);
    ck_arena_destroy(&r->arena);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    ck_free(r->mem, r, sizeof *r);
}

static const ck_records_vtbl vtbl = {
    .close = close_etcd, .recover = recover, .keep = keep, .forget = forget, .hold = hold};

static void init(records_etcd *r, const ck_records_etcd_config *cfg) {
    pthread_condattr_t attr;
    r->base.v = &vtbl;
    r->proc = cfg->proc;
    r->lease_us = cfg->lease_s * 1000000;
    ck_arena_init(&r->arena, r->mem, ARENA_BYTES_MAX);
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static ck_status open_etcd(records_etcd *r, const ck_records_etcd_config *cfg, uint64_t *epoch, ck_token *token,
                           ck_error *err) {
    if (cfg->lease_s < 2 || cfg->lease_s > 600) return ck_fail(err, CK_INVALID, "the lease is 2 to 600 seconds");
    r->prefix = ck_arena_strdup(&r->arena, cfg->url);
    if (!r->prefix) return ck_nomem(err, r->mem, 0);
    CK_TRY(ck_etcd_new(cfg->proc, cfg->url, &r->etcd, err));
    CK_TRY(ck_etcd_new(cfg->proc, cfg->url, &r->keeper, err));
    CK_TRY(ck_etcd_new(cfg->proc, cfg->url, &r->aside, err));
    CK_TRY(stand_for_election(r, cfg, err));
    CK_TRY(ck_thread_start(&r->thread, "lease", keep_alive, r, err));
    r->started = true;
    CK_TRY(last_epoch(r, epoch, err));
    return agree_on_token(r, token, err);
}

ck_status ck_records_etcd_open(const ck_records_etcd_config *cfg, ck_records **out, uint64_t *epoch, ck_token *token,
                               ck_error *err) {
    ck_mem mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN);
    records_etcd *r = ck_alloc_zero(mem, sizeof *r);
    *out = NULL;
    if (!r) return ck_nomem(err, mem, sizeof *r);
    r->mem = mem;
    init(r, cfg);
    ck_status s = open_etcd(r, cfg, epoch, token, err);
    if (s != CK_OK)
        close_etcd(&r->base);
    else
        *out = &r->base;
    return s;
}
