/* Changelog backends: each checkpoint appends a segment with the changes since the one before, and all rows are written
 * - the state is materialised - only once in so many checkpoints: inside the snapshot that is due, or outside it,
 * beside the checkpoints that follow, so that none of them takes longer for it. A checkpoint is a materialisation and
 * the segments behind it (docs/formats.md, "Changelog files").
 *
 *   inside    [7: all rows] [8: changes] [9: changes] ... [17: all rows] [18: changes]
 *   external  [7: all rows] [8: changes] ... [17: changes] [18: changes] [materialized/17] [19: changes, named there]
 *                                             `- marked here, written meanwhile -' `- 19 is: materialized/17, 18, 19 */
#ifndef CK_CHECKPOINT_CHANGELOG_H
#define CK_CHECKPOINT_CHANGELOG_H

#include "checkpoint/subtask.h"

/* Marked with the last snapshot that was begun, and nobody writes it yet. Thread: the subtask. */
bool ck_materialisation_is_begun(const ck_subtask_snapshots *s);
/* Before run is handed to another thread: from here on the mark stays until end. Thread: the subtask. */
void ck_materialisation_start(ck_subtask_snapshots *s);
/* Blocking, on one I/O thread: writes it, durable when it returns CK_OK. */
CK_NODISCARD ck_status ck_materialisation_run(ck_subtask_snapshots *s, ck_error *err);
/* After run, or instead of it: releases the mark. What was written is what the next segment stands on, when its
 * checkpoint is complete and no other one has taken its place. Thread: the subtask. */
void ck_materialisation_end(ck_subtask_snapshots *s, ck_status status);
/* Memory is short, or nobody wants it any more: run returns soon with CK_CANCELLED. Thread: the subtask. */
void ck_materialisation_give_up(ck_subtask_snapshots *s);

#endif
