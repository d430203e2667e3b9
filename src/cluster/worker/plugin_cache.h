/* The plugins a worker has: DIR/HASH.so, for the worker's user alone, by the SHA-256 of what they hold. A file is
 * looked at whole before it is used for the first time in a process, so that nothing need be made durable: what a crash
 * has left half written is fetched again. Blocking; one thread at a time. */
#ifndef CK_CLUSTER_WORKER_PLUGIN_CACHE_H
#define CK_CLUSTER_WORKER_PLUGIN_CACHE_H

#include "base/proc.h"
#include "base/sha256.h"
#include "cluster/message.h"

typedef struct ck_plugin_cache ck_plugin_cache;

enum { CK_PLUGIN_CACHE_BYTES_MAX = 256 << 20 };

/* dir is made with the first plugin. bytes_max: of what is kept beside what is needed. */
CK_NODISCARD ck_status ck_plugin_cache_new(ck_proc *proc, const char *dir, uint64_t bytes_max, ck_plugin_cache **out,
                                           ck_error *err);
void ck_plugin_cache_free(ck_plugin_cache *c); /* the files stay; NULL is fine */
/* *has: it is there, and what its name says. What is not goes. */
CK_NODISCARD ck_status ck_plugin_cache_has(ck_plugin_cache *c, const char *hash, uint64_t bytes, bool *has,
                                           ck_error *err);
/* content has this hash. Others that nobody needs go, the oldest first, while there is too much. */
CK_NODISCARD ck_status ck_plugin_cache_keep(ck_plugin_cache *c, const char *hash, ck_view content,
                                            bool (*is_needed)(void *arg, const char *hash), void *arg, ck_error *err);

#endif
