/* What a coordinator says to plugins: which it takes, what is under way, which are here for its jobs and workers. It
 * never loads one. Connections are the driver's numbers.
 *
 * Bounds: a plugin and all that are kept by the store's ceilings, uploads under way by number and by what they have
 * announced; memory grows with what has arrived. What takes long - a hash of all of one, a disk - is work of its own,
 * to be run elsewhere. The rest blocks for a look into the store. One thread at a time but for ck_uploads_run. */
#ifndef CK_CLUSTER_COORDINATOR_UPLOADS_H
#define CK_CLUSTER_COORDINATOR_UPLOADS_H

#include "cluster/coordinator/plugin_store.h"

typedef struct ck_uploads ck_uploads;
typedef struct ck_uploads_work ck_uploads_work;

typedef struct ck_uploads_config {
    ck_proc *proc;
    ck_plugin_store *store; /* outlives it */
    const char *allow;      /* "any", or a file of SHA-256 sums, read each time; copied; NULL: none are taken */
    bool (*is_named)(void *arg, ck_view hash); /* a job needs it */
    void *arg;
} ck_uploads_config;

enum {
    CK_UPLOADS_MAX = 4,
    CK_UPLOADS_BYTES_MAX = 128 << 20,
    CK_UPLOAD_IDLE_US = 30000000, /* without a part; then it goes if another one needs the room */
};

/* CK_INVALID, CK_NOTFOUND: the file of sums cannot be read. */
CK_NODISCARD ck_status ck_uploads_new(const ck_uploads_config *cfg, ck_uploads **out, ck_error *err);
void ck_uploads_free(ck_uploads *u); /* no work is under way; NULL is fine */

/* What follows answers whoever asked: CK_OK, or the sentence of a refusal. CK_CORRUPT and CK_NOMEM: and the connection
 * is to be closed. CK_AGAIN: *work is to be run and to be ended, which has the answer; until then nothing else is heard
 * from that connection. */

/* *wanted: it is not here, and is taken in parts over this connection. *dropped: a connection whose upload had to go;
 * 0: none. */
CK_NODISCARD ck_status ck_uploads_offer(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_plugin *p,
                                        bool may_upload, bool *wanted, uint64_t *dropped, ck_uploads_work **work,
                                        ck_error *err);
/* The next part; with the last one the plugin is kept, if it is what it was said to be. */
CK_NODISCARD ck_status ck_uploads_part(ck_uploads *u, int64_t now_us, uint64_t conn, const ck_msg_upload_part *m,
                                       ck_uploads_work **work, ck_error *err);
void ck_uploads_closed(ck_uploads *u, uint64_t conn);
void ck_uploads_run(ck_uploads_work *w); /* thread: any; blocks */
/* Frees *w. The answer, to a connection that has not closed meanwhile. */
CK_NODISCARD ck_status ck_uploads_end(ck_uploads *u, int64_t now_us, ck_uploads_work **w, bool *wanted,
                                      uint64_t *dropped, ck_error *err);
void ck_uploads_drop(ck_uploads *u, ck_uploads_work **w); /* instead: nobody waits for the answer */
/* Of a job that is submitted: all are allowed, and here. */
CK_NODISCARD ck_status ck_uploads_check(ck_uploads *u, const ck_proto_list *plugins, ck_error *err);
/* For a worker. Views are the arena's. */
CK_NODISCARD ck_status ck_uploads_read(ck_uploads *u, const ck_msg_want_plugin *m, ck_arena *a, ck_view *part,
                                       ck_error *err);

#endif
