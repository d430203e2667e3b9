/* Sinks that make output appear only when a checkpoint commits. At a barrier the sink records committables - what it
 * has prepared - as rows of the operator-state slot `clink.commit`; after the manifest is durable the committer makes
 * them real, and must find "already done" by looking, never by guessing. All calls may block; they run on the I/O
 * executor, one at a time per sink. */
#ifndef CK_STREAM_COMMITTER_H
#define CK_STREAM_COMMITTER_H

#include "base/arena.h"
#include "base/proc.h"

/* Slot `clink.commit`: partition (name VARCHAR), values (checkpoint BIGINT, payload VARCHAR). */
#define CK_COMMIT_SLOT "clink.commit"

typedef struct ck_committable {
    const char *name;    /* unique in the sink: for a file its final path */
    uint64_t checkpoint; /* the first checkpoint that carries it */
    const char *payload; /* the sink's JSON: staged path, bytes, checksum ... */
} ck_committable;

typedef enum ck_guarantee { CK_EXACTLY_ONCE, CK_AT_LEAST_ONCE, CK_NO_GUARANTEE } ck_guarantee;

typedef struct ck_committer_vtbl {
    uint32_t struct_bytes;
    /* Commit one. Idempotent: done before by looking at the outside is CK_OK. A state of affairs that is neither
     * "prepared" nor "done" is an error that names it. */
    ck_status (*commit)(void *self, const ck_committable *c, ck_error *err);
    /* At restore, after commit of all that the restored checkpoint carries: undo whatever this job (uuid) prepared that
     * is not in keep. Committed output that belongs to a later checkpoint than `restored` is CK_REFUSED unless the sink
     * can rewind or allow_duplicates. */
    ck_status (*abort_others)(void *self, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                              size_t keep_count, bool allow_duplicates, ck_error *err);
    void (*close)(void *self);
    /* Before anything is committed, where the restored checkpoint is another job's (an earlier identity of this
     * directory, another directory): CK_REFUSED where that job's sink has committed more than it had at `restored`.
     * Looks only. NULL: going back behind committed output does no harm, or cannot be told. */
    ck_status (*check_behind)(void *self, const char *job_uuid, const char *sink_uid, uint64_t restored, ck_error *err);
} ck_committer_vtbl;

#endif
