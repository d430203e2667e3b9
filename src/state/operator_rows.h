/* The operator-state slots every source and every committing sink has: splits with their positions, and committables.
 * Both are `split` slots: on restore their rows are dealt out. The runtime keeps splits, sinks keep committables.
 *
 * Thread: the owning subtask. */
#ifndef CK_STATE_OPERATOR_ROWS_H
#define CK_STATE_OPERATOR_ROWS_H

#include "state/state.h"
#include "stream/committer.h"
#include "stream/source.h"

/* Slot clink.splits: (id VARCHAR) -> (order BIGINT, spec VARCHAR). Replaces all rows by these. */
#define CK_SPLIT_SLOT "clink.splits"
const ck_slot_schema *ck_split_slot(void);
CK_NODISCARD ck_status ck_splits_store(ck_state *st, const ck_split_list *splits, ck_error *err);
/* Appends what is stored, by order and id. *known: the slot exists, so this source was snapshotted before (perhaps with
 * no split for this subtask). */
CK_NODISCARD ck_status ck_splits_load(ck_state *st, ck_split_list *out, bool *known, ck_error *err);

/* Slot clink.commit: (name VARCHAR) -> (checkpoint BIGINT, payload VARCHAR). */
const ck_slot_schema *ck_commit_slot(void);
CK_NODISCARD ck_status ck_commits_put(ck_state *st, const ck_committable *c,
                                      ck_error *err); /* replaces an equal name */
/* Those of this checkpoint and older ones are committed. */
CK_NODISCARD ck_status ck_commits_forget(ck_state *st, uint64_t checkpoint, ck_error *err);
/* By checkpoint and name, copied into the arena. What the acknowledgement hands to the committer. */
CK_NODISCARD ck_status ck_commits_list(ck_state *st, ck_arena *a, ck_committable **out, uint32_t *count, ck_error *err);

#endif
