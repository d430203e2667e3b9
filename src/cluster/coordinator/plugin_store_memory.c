#include "base/bytes.h"
#include "cluster/coordinator/plugin_store.h"

enum { BYTES_MAX = 128 << 20 };

typedef struct kept {
    struct kept *next;
    char hash[CK_SHA256_CHARS + 1];
    ck_bytes content;
    int64_t order;
} kept;

typedef struct memory_store {
    ck_plugin_store base;
    ck_mem mem;
    kept *first;
    int64_t last_order;
} memory_store;

static kept **find(memory_store *s, const char *hash) {
    kept **link = &s->first;
    while (*link && strcmp((*link)->hash, hash) != 0) link = &(*link)->next;
    return link;
}

static ck_status forget(ck_plugin_store *base, const char *hash, ck_error *err) {
    memory_store *s = (memory_store *)base;
    kept **link = find(s, hash), *k = *link;
    (void)err;
    if (!k) return CK_OK;
    *link = k->next;
    ck_bytes_destroy(&k->content);
    ck_free(s->mem, k, sizeof *k);
    return CK_OK;
}

static ck_status keep(ck_plugin_store *base, const char *hash, ck_view content, ck_error *err) {
    memory_store *s = (memory_store *)base;
    CK_TRY(forget(base, hash, err));
    kept *k = ck_alloc_zero(s->mem, sizeof *k);
    if (!k) return ck_nomem(err, s->mem, sizeof *k);
    memcpy(k->hash, hash, sizeof k->hash);
    ck_bytes_init(&k->content, s->mem, CK_CLUSTER_PLUGIN_BYTES_MAX);
    if (ck_bytes_view(&k->content, content) != CK_OK) {
        ck_bytes_destroy(&k->content);
        ck_free(s->mem, k, sizeof *k);
        return ck_nomem(err, s->mem, content.n);
    }
    k->order = ++s->last_order;
    k->next = s->first;
    s->first = k;
    return CK_OK;
}

static ck_status read_part(ck_plugin_store *base, const char *hash, uint64_t offset, size_t n, ck_arena *a,
                           ck_view *out, ck_error *err) {
    const kept *k = *find((memory_store *)base, hash);
    if (!k || offset > k->content.n) return ck_fail(err, CK_NOTFOUND, "plugin %s is not here", hash);
    if (n > k->content.n - offset) n = k->content.n - (size_t)offset;
    char *copy = ck_arena_strndup(a, k->content.p + offset, n);
    *out = (ck_view){copy, n};
    return copy ? CK_OK : ck_nomem(err, a->mem, n);
}

static ck_status list(ck_plugin_store *base, ck_arena *a, ck_kept_plugin **out, uint32_t *count, ck_error *err) {
    const memory_store *s = (const memory_store *)base;
    uint32_t n = 0;
    for (const kept *k = s->first; k; k = k->next) n++;
    if (!(*out = ck_arena_array(a, n, sizeof **out))) return ck_nomem(err, a->mem, n * sizeof **out);
    *count = 0;
    for (const kept *k = s->first; k; k = k->next) {
        ck_kept_plugin *p = *out + (*count)++;
        *p = (ck_kept_plugin){.bytes = k->content.n, .order = k->order};
        memcpy(p->hash, k->hash, sizeof p->hash);
    }
    return CK_OK;
}

static void close_store(ck_plugin_store *base) {
    memory_store *s = (memory_store *)base;
    while (s->first) (void)forget(base, s->first->hash, NULL);
    ck_free(s->mem, s, sizeof *s);
}

static const ck_plugin_store_vtbl vtbl = {
    .close = close_store, .keep = keep, .read = read_part, .list = list, .forget = forget};

ck_status ck_plugin_store_memory(ck_proc *proc, ck_plugin_store **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    memory_store *s = ck_alloc_zero(mem, sizeof *s);
    *out = NULL;
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->base = (ck_plugin_store){.v = &vtbl, .plugin_bytes_max = CK_CLUSTER_PLUGIN_BYTES_MAX, .bytes_max = BYTES_MAX};
    s->mem = mem;
    *out = &s->base;
    return CK_OK;
}
