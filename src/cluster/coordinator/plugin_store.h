/* Where a coordinator keeps the plugins of its jobs, by the SHA-256 of what they hold: beside the records in
 * --metadata-dir, in etcd (plugin_store_etcd.c), or in memory, where jobs end with the coordinator, too.
 *
 * Blocking. One thread at a time; where keeping is slow, threads may keep and read beside it. Hashes are 64 hex digits (base/sha256.h), which whoever calls has made sure of. */
#ifndef CK_CLUSTER_COORDINATOR_PLUGIN_STORE_H
#define CK_CLUSTER_COORDINATOR_PLUGIN_STORE_H

#include "base/proc.h"
#include "base/sha256.h"
#include "cluster/message.h"

typedef struct ck_plugin_store ck_plugin_store;

typedef struct ck_kept_plugin {
    char hash[CK_SHA256_CHARS + 1];
    uint64_t bytes;
    int64_t order; /* the oldest first */
} ck_kept_plugin;

typedef struct ck_plugin_store_vtbl {
    void (*close)(ck_plugin_store *s);
    ck_status (*keep)(ck_plugin_store *s, const char *hash, ck_view content, ck_error *err);
    ck_status (*read)(ck_plugin_store *s, const char *hash, uint64_t offset, size_t n, ck_arena *a, ck_view *out,
                      ck_error *err);
    ck_status (*list)(ck_plugin_store *s, ck_arena *a, ck_kept_plugin **out, uint32_t *count, ck_error *err);
    ck_status (*forget)(ck_plugin_store *s, const char *hash, ck_error *err);
} ck_plugin_store_vtbl;

struct ck_plugin_store {
    const ck_plugin_store_vtbl *v;
    uint64_t plugin_bytes_max; /* of one */
    uint64_t bytes_max;        /* of all that are not needed: who comes then drives out old ones */
    bool may_rot;              /* what is read may be something else than what was kept */
    bool is_slow;              /* keeping waits for a disk or for others: not where somebody waits */
};

CK_NODISCARD ck_status ck_plugin_store_memory(ck_proc *proc, ck_plugin_store **out, ck_error *err);
/* In DIR/plugins, as HASH.so. */
CK_NODISCARD ck_status ck_plugin_store_dir(ck_proc *proc, const char *dir, ck_plugin_store **out, ck_error *err);

static inline void ck_plugin_store_close(ck_plugin_store *s) { /* NULL is fine */
    if (s) s->v->close(s);
}
/* Whole and durable, or not at all. */
CK_NODISCARD static inline ck_status ck_plugin_store_keep(ck_plugin_store *s, const char *hash, ck_view content,
                                                          ck_error *err) {
    return s->v->keep(s, hash, content, err);
}
/* From offset, n bytes or up to the end. CK_NOTFOUND. */
CK_NODISCARD static inline ck_status ck_plugin_store_read(ck_plugin_store *s, const char *hash, uint64_t offset,
                                                          size_t n, ck_arena *a, ck_view *out, ck_error *err) {
    return s->v->read(s, hash, offset, n, a, out, err);
}
CK_NODISCARD static inline ck_status ck_plugin_store_list(ck_plugin_store *s, ck_arena *a, ck_kept_plugin **out,
                                                          uint32_t *count, ck_error *err) {
    return s->v->list(s, a, out, count, err);
}
/* One that is not is fine. */
CK_NODISCARD static inline ck_status ck_plugin_store_forget(ck_plugin_store *s, const char *hash, ck_error *err) {
    return s->v->forget(s, hash, err);
}

#endif
