/* Plugins in etcd, for whichever coordinator leads:
 *
 *   PREFIX/plugin/HASH         how many bytes it has; with a minus in front while it is not all here
 *   PREFIX/plugin-part/HASH/N  256 KiB of it, N of four digits
 *
 * What a leader that died has begun is removed by the next one. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/coordinator/records_etcd.h"

enum { BYTES_MAX = 64 << 20, PLUGIN_BYTES_MAX = 16 << 20, ARENA_BYTES_MAX = 4 << 20, PART = CK_CLUSTER_PART_BYTES_MAX };

typedef struct etcd_store {
    ck_plugin_store base;
    ck_records *records;
    ck_mem mem;
    pthread_mutex_t keeping; /* one thread at a time */
} etcd_store;

typedef struct key {
    char text[128];
} key;

static key key_of(const char *hash) {
    key k;
    (void)snprintf(k.text, sizeof k.text, "plugin/%s", hash);
    return k;
}

static key key_of_part(const char *hash, uint64_t part) {
    key k;
    (void)snprintf(k.text, sizeof k.text, "plugin-part/%s/%04" PRIu64, hash, part);
    return k;
}

typedef ck_status put_fn(ck_records *r, const char *key, const ck_view *value, ck_error *err);

static ck_status put_size(const etcd_store *s, put_fn *put, const char *hash, bool whole, uint64_t bytes,
                          ck_error *err) {
    char text[32];
    const key k = key_of(hash);
    (void)snprintf(text, sizeof text, "%s%" PRIu64, whole ? "" : "-", bytes);
    const ck_view value = ck_view_of(text);
    return put(s->records, k.text, &value, err);
}

/* Its size goes last, so that whoever dies on the way is found out. */
static ck_status forget_parts(const etcd_store *s, const char *hash, uint64_t bytes, ck_error *err) {
    for (uint64_t at = 0; at < bytes; at += PART) {
        const key k = key_of_part(hash, at / PART);
        CK_TRY(ck_records_etcd_put(s->records, k.text, NULL, err));
    }
    const key k = key_of(hash);
    return ck_records_etcd_put(s->records, k.text, NULL, err);
}

static ck_status put_all(const etcd_store *s, const char *hash, ck_view content, ck_error *err) {
    CK_TRY(put_size(s, ck_records_etcd_put_aside, hash, false, content.n, err));
    for (size_t at = 0; at < content.n; at += PART) {
        const key k = key_of_part(hash, at / PART);
        const ck_view part = {content.p + at, content.n - at < PART ? content.n - at : PART};
        CK_TRY(ck_records_etcd_put_aside(s->records, k.text, &part, err));
    }
    return put_size(s, ck_records_etcd_put_aside, hash, true, content.n, err);
}

static ck_status keep(ck_plugin_store *base, const char *hash, ck_view content, ck_error *err) {
    etcd_store *s = (etcd_store *)base;
    pthread_mutex_lock(&s->keeping);
    ck_status st = put_all(s, hash, content, err);
    pthread_mutex_unlock(&s->keeping);
    return st;
}

static ck_status read_part(ck_plugin_store *base, const char *hash, uint64_t offset, size_t n, ck_arena *a,
                           ck_view *out, ck_error *err) {
    const etcd_store *s = (const etcd_store *)base;
    ck_etcd_pair *pairs;
    uint32_t count;
    const key k = key_of_part(hash, offset / PART);
    const size_t from = (size_t)(offset % PART);
    CK_TRY(ck_records_etcd_list(s->records, k.text, a, &pairs, &count, err));
    if (count != 1 || pairs[0].value.n < from) return ck_fail(err, CK_NOTFOUND, "plugin %s is not in etcd", hash);
    *out = (ck_view){pairs[0].value.p + from, pairs[0].value.n - from};
    if (out->n > n) out->n = n;
    return CK_OK;
}

static ck_status sizes(const etcd_store *s, ck_arena *a, ck_kept_plugin **out, bool **whole, uint32_t *count,
                       ck_error *err) {
    ck_etcd_pair *pairs;
    uint32_t n;
    CK_TRY(ck_records_etcd_list(s->records, "plugin/", a, &pairs, &n, err));
    *out = ck_arena_array(a, n, sizeof **out), *whole = ck_arena_array(a, n, sizeof **whole);
    if (!*out || !*whole) return ck_nomem(err, a->mem, n * sizeof **out);
    *count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *hash = pairs[i].key + strlen("plugin/"),
                   *text = ck_arena_strndup(a, pairs[i].value.p, pairs[i].value.n);
        if (!text) return ck_nomem(err, a->mem, 0);
        if (!ck_sha256_is_hex(ck_view_of(hash))) continue;
        (*whole)[*count] = *text != '-';
        ck_kept_plugin *p = *out + (*count)++;
        *p = (ck_kept_plugin){.bytes = strtoull(text + (*text == '-'), NULL, 10),
                              .order = (int64_t)pairs[i].create_revision};
        memcpy(p->hash, hash, sizeof p->hash);
        if (p->bytes > CK_CLUSTER_PLUGIN_BYTES_MAX) return ck_fail(err, CK_CORRUPT, "etcd: plugin/%s is no size", hash);
    }
    return CK_OK;
}

static ck_status list(ck_plugin_store *base, ck_arena *a, ck_kept_plugin **out, uint32_t *count, ck_error *err) {
    bool *whole;
    uint32_t n, kept = 0;
    CK_TRY(sizes((const etcd_store *)base, a, out, &whole, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (whole[i]) (*out)[kept++] = (*out)[i];
    *count = kept;
    return CK_OK;
}

static ck_status forget_which(const etcd_store *s, const char *hash, bool incomplete, ck_error *err) {
    ck_kept_plugin *plugins;
    ck_arena a;
    bool *whole;
    uint32_t count;
    ck_arena_init(&a, s->mem, ARENA_BYTES_MAX);
    ck_status st = sizes(s, &a, &plugins, &whole, &count, err);
    for (uint32_t i = 0; st == CK_OK && i < count; i++) {
        bool this_one = incomplete ? !whole[i] : strcmp(plugins[i].hash, hash) == 0;
        if (this_one && whole[i]) st = put_size(s, ck_records_etcd_put, plugins[i].hash, false, plugins[i].bytes, err);
        if (this_one && st == CK_OK) st = forget_parts(s, plugins[i].hash, plugins[i].bytes, err);
    }
    ck_arena_destroy(&a);
    return st;
}

static ck_status forget(ck_plugin_store *base, const char *hash, ck_error *err) {
    return forget_which((const etcd_store *)base, hash, false, err);
}

static void close_store(ck_plugin_store *base) {
    etcd_store *s = (etcd_store *)base;
    pthread_mutex_destroy(&s->keeping);
    ck_free(s->mem, s, sizeof *s);
}

static const ck_plugin_store_vtbl vtbl = {
    .close = close_store, .keep = keep, .read = read_part, .list = list, .forget = forget};

ck_status ck_plugin_store_etcd(ck_proc *proc, ck_records *records, ck_plugin_store **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    etcd_store *s = ck_alloc_zero(mem, sizeof *s);
    *out = NULL;
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->base =
        (ck_plugin_store){.v = &vtbl, .plugin_bytes_max = PLUGIN_BYTES_MAX, .bytes_max = BYTES_MAX, .is_slow = true};
    s->records = records, s->mem = mem;
    pthread_mutex_init(&s->keeping, NULL);
    ck_status st = forget_which(s, "", true, err);
    if (st != CK_OK)
        close_store(&s->base);
    else
        *out = &s->base;
    return st;
}
