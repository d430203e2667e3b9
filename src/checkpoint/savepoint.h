/* What people do with checkpoints from outside a run: keep a savepoint elsewhere, give one up, look whether everything
 * is whole. All block.
 *
 * Threads: any; not two of them on one savepoint. */
#ifndef CK_CHECKPOINT_SAVEPOINT_H
#define CK_CHECKPOINT_SAVEPOINT_H

#include "checkpoint/directory.h"

/* Makes savepoint `id` of the directory `from` stand in `to` as well, complete by itself: its files as hard links, or
 * copied where that does not go, then job.json, then the manifest, exclusively. Again is fine. CK_REFUSED when `to`
 * belongs to another job. */
CK_NODISCARD ck_status ck_savepoint_export(ck_proc *proc, ck_mem mem, const char *from, uint64_t id, const char *to,
                                           ck_error *err);

/* The beginning of that, before there is a savepoint: makes `to`, and job.json in it, so that who stops a job with one
 * knows that the directory takes files and is no other job's. */
CK_NODISCARD ck_status ck_savepoint_prepare(ck_proc *proc, ck_mem mem, const char *from, const char *to, ck_error *err);

/* Removes a savepoint: its manifest durably, then the files no other manifest names. CK_REFUSED for what is no
 * savepoint, and for the newest checkpoint of a directory that a job runs in or would continue from: damaged, too, or
 * the job would begin with an older one and not know. Any other whose manifest is damaged goes, whatever it was. While
 * the job runs its files stay until a later run's retention. */
CK_NODISCARD ck_status ck_savepoint_dispose(ck_proc *proc, ck_mem mem, const char *dir, uint64_t id, ck_error *err);

/* One file of one checkpoint, or its manifest. damage NULL: whole; else a sentence. */
typedef struct ck_verified {
    uint64_t checkpoint, bytes;
    const char *path; /* relative to the directory */
    const char *damage;
    bool savepoint; /* of one; false of a manifest that is damaged */
} ck_verified;
typedef void (*ck_verify_fn)(void *arg, const ck_verified *v);
/* Every file of every manifest (id 0) or of one, against size and checksum. *damaged counts what is not whole. A
 * directory without checkpoints is CK_NOTFOUND: nothing verified is no success. Of a directory that a job runs in: what
 * retention takes meanwhile is left out, and what is published meanwhile is verified. */
CK_NODISCARD ck_status ck_checkpoint_verify(ck_proc *proc, ck_mem mem, const char *dir, uint64_t id, ck_verify_fn fn,
                                            void *arg, uint64_t *damaged, ck_error *err);

#endif
