/* The snapshots of one subtask over time: when to write a base, when a delta, when nothing, and under which names. One
 * object beside the subtask's state store. Of changelog backends also what changelog.h has.
 *
 * Threads: everything is the subtask's, except ck_subtask_snapshot_run, which runs on one I/O thread between begin and
 * end. At most one snapshot is under way. */
#ifndef CK_CHECKPOINT_SUBTASK_H
#define CK_CHECKPOINT_SUBTASK_H

#include "checkpoint/snapshot.h"

typedef struct ck_subtask_snapshots ck_subtask_snapshots;
typedef struct ck_subtask_snapshot ck_subtask_snapshot;

enum { CK_DELTAS_MAX = 32 }; /* on one base; a new base also when the deltas hold half its bytes */

/* Segments of a changelog in place of deltas, and where all rows go (changelog.h). */
typedef enum ck_materialise { CK_MATERIALISE_NONE, CK_MATERIALISE_INSIDE, CK_MATERIALISE_EXTERNAL } ck_materialise;
enum { CK_MATERIALISE_EVERY = 10, CK_MATERIALISE_EVERY_MAX = 1000 };
typedef struct ck_changelog_config {
    ck_materialise where; /* NONE: bases and deltas */
    uint32_t every;       /* checkpoints; 0 = CK_MATERIALISE_EVERY; sooner when the log holds half the rows' bytes */
} ck_changelog_config;

typedef struct ck_subtask_snapshots_config {
    ck_proc *proc;
    ck_mem mem;      /* the job's account; categories are chosen inside */
    const char *dir; /* the checkpoint directory, borrowed */
    uint64_t vertex;
    uint32_t subtask, parallelism;
    uint32_t key_groups;
    ck_key_group_range range;
    ck_state_store *store; /* outlives this */
    ck_changelog_config changelog;
} ck_subtask_snapshots_config;

CK_NODISCARD ck_status ck_subtask_snapshots_new(const ck_subtask_snapshots_config *cfg, ck_subtask_snapshots **out,
                                                ck_error *err);
/* No snapshot may be under way. NULL is fine. */
void ck_subtask_snapshots_free(ck_subtask_snapshots *s);

/* After pre_snapshot, before the barrier is forwarded: marks the store (microseconds, whatever its size). */
CK_NODISCARD ck_status ck_subtask_snapshot_begin(ck_subtask_snapshots *s, uint64_t checkpoint, ck_barrier_kind kind,
                                                 ck_subtask_snapshot **out, ck_error *err);

/* What the manifest says about this subtask: its base and deltas in order of application, older ones included. Owned by
 * whoever holds it. */
typedef struct ck_subtask_files {
    ck_arena arena;
    ck_manifest_file *files;
    uint32_t file_count;
} ck_subtask_files;
void ck_subtask_files_free(ck_subtask_files *f); /* NULL is fine */

/* Blocking: writes what is to be written, durable when it returns CK_OK, and makes *files for the acknowledgement. */
CK_NODISCARD ck_status ck_subtask_snapshot_run(ck_subtask_snapshot *snap, ck_subtask_files **files, ck_error *err);
/* Releases the mark, however run went (also when it never ran), and frees snap. */
void ck_subtask_snapshot_end(ck_subtask_snapshots *s, ck_subtask_snapshot *snap);

/* The job's word on a checkpoint this subtask has begun (end may come before or after; unknown ids are ignored): its
 * manifest is durable, or it never will be. */
void ck_subtask_snapshots_completed(ck_subtask_snapshots *s, uint64_t checkpoint);
void ck_subtask_snapshots_aborted(ck_subtask_snapshots *s, uint64_t checkpoint);
/* Files of the newest completed checkpoint are gone: nothing is built on them, the next snapshot is a base. */
void ck_subtask_snapshots_anew(ck_subtask_snapshots *s);

#endif
