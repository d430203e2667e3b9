/* Restoring from a manifest: which files hold an operator's key groups, read once each and dealt out to the subtasks of
 * this process. At any parallelism: a keyed row goes to the store whose range holds its group; operator rows go by the
 * mode of their slot - broadcast and union to every subtask, split row k of an operator (in the order of its field
 * `order`, then by row key) to subtask k mod parallelism.
 *
 *   ck_restore_new, ck_restore_target for every subtask here, ck_restore_run, ck_restore_committables for every sink;
 *   commit them, abort others; start.
 *
 * Every file is checked against size and checksum before its rows are used; damage is named and nothing starts. Rows of
 * slot clink.commit are collected and not put into stores: what a restored checkpoint carries is committed before
 * anything runs.
 *
 * Thread: one at a time; run blocks (I/O executor). The stores must not be in use. */
#ifndef CK_CHECKPOINT_RESTORE_H
#define CK_CHECKPOINT_RESTORE_H

#include "checkpoint/manifest.h"
#include "state/state_migration_on_restore.h"
#include "stream/committer.h"
#include "stream/source.h"

typedef struct ck_restore ck_restore;

/* dir is the manifest's directory. All borrowed until free. */
CK_NODISCARD ck_status ck_restore_new(ck_proc *proc, ck_mem mem, const char *dir, const ck_manifest *m,
                                      ck_restore **out, ck_error *err);

/* An operator of this job, and the stored one it continues: the same one, or one whose name it does not have. */
typedef struct ck_restore_as {
    uint64_t stored;
    const char *uid; /* of this job's; NULL: as stored */
} ck_restore_as;

typedef struct ck_restore_target {
    ck_state_store *store;
    const ck_restore_as *ops; /* of the subtask's chain; copied, the uids not */
    uint32_t op_count;
    uint32_t subtask, parallelism;
    ck_key_group_range range; /* as the store's */
} ck_restore_target;
CK_NODISCARD ck_status ck_restore_add(ck_restore *r, const ck_restore_target *t, ck_error *err);
/* Also read the committables of this stored operator, though no target here has it. */
CK_NODISCARD ck_status ck_restore_want_committables(ck_restore *r, uint64_t op_id, ck_error *err);

/* Also read the splits of this stored operator, though no target here has it. */
CK_NODISCARD ck_status ck_restore_want_splits(ck_restore *r, uint64_t op_id, ck_error *err);

/* Reads and fills every store, which another checkpoint goes on filling: of these operators nothing is in that. */
CK_NODISCARD ck_status ck_restore_fill(ck_restore *r, ck_error *err);
/* Reads, fills every store and ends its restoring (ck_state_restore_end). On failure the stores are of no use. */
CK_NODISCARD ck_status ck_restore_run(ck_restore *r, ck_error *err);

/* Of one stored operator, over all its subtasks, by checkpoint and name. They live as long as r. */
CK_NODISCARD ck_status ck_restore_committables(ck_restore *r, uint64_t op_id, const ck_committable **out,
                                               uint32_t *count);
/* The ids of a wanted operator's splits over all its subtasks, appended to *out in no order, their specs left empty.
 * *known: it was snapshotted as a source before, perhaps without any. */
CK_NODISCARD ck_status ck_restore_splits(const ck_restore *r, uint64_t op_id, ck_split_list *out, bool *known,
                                         ck_error *err);
/* The slots and versions a manifest's files hold, each once, by operator; read from the files' heads. In the arena. */
CK_NODISCARD ck_status ck_manifest_stored(ck_proc *proc, ck_arena *a, const char *dir, const ck_manifest *m,
                                          ck_stored_state *out, ck_error *err);
typedef struct ck_restore_stats {
    uint64_t files, bytes, rows, rows_kept;
} ck_restore_stats;
ck_restore_stats ck_restore_stats_of(const ck_restore *r);
void ck_restore_free(ck_restore *r); /* NULL is fine */

#endif
