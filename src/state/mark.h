/* Marks: the state of a whole store as it was at a barrier, readable while the task goes on. Taking one costs a copy of
 * the page directories' roots. Pages written afterwards are copied first; what a copy replaces is freed when the mark
 * is released.
 *
 * Threads: take, release, completed, aborted - the owning subtask. The scans - one background thread, between take and
 * release. */
#ifndef CK_STATE_MARK_H
#define CK_STATE_MARK_H

#include "state/state.h"

typedef struct ck_state_mark ck_state_mark;

/* At most a few marks live at a time (CK_FULL beyond). checkpoint 0: a mark beside the checkpoints, to be read whole
 * (CK_MARK_BASE); no delta ever counts from it, and it may live long. */
CK_NODISCARD ck_status ck_state_mark_take(ck_state_store *s, uint64_t checkpoint, ck_state_mark **out, ck_error *err);
void ck_state_mark_release(ck_state_mark *m);

/* Deltas: what changed since the last completed checkpoint is kept until told. completed(N): later deltas count from N.
 * aborted(N): N's changes are merged into the next delta; nothing is lost. */
void ck_state_completed(ck_state_store *s, uint64_t checkpoint);
void ck_state_aborted(ck_state_store *s, uint64_t checkpoint);
/* The completed checkpoint a delta of this mark counts from; 0: none, only a base can be written. */
uint64_t ck_state_mark_parent(const ck_state_mark *m);
/* Whether anything changed between that checkpoint and this mark; and sizes to choose base or delta by. */
bool ck_state_mark_changed(const ck_state_mark *m);
uint64_t ck_state_mark_rows(const ck_state_mark *m);
uint64_t ck_state_mark_changed_rows(const ck_state_mark *m); /* puts plus erases, at most */

/* The slots of the marked store, for the file's metadata. */
typedef struct ck_marked_slot {
    uint64_t op_id;
    const char *uid, *op_type;
    const ck_slot_schema *schema;
} ck_marked_slot;
/* Versions of what is not among the slots; constant once anything is marked. */
struct ck_version_map;
const struct ck_version_map *ck_state_mark_versions(const ck_state_mark *m);
uint32_t ck_state_mark_slots(const ck_state_mark *m, const ck_marked_slot **slots);

/* Rows in pieces, by operator and slot. kind: 1 put, 2 erase (deltas only). Views are valid until the next call.
 * Expired rows (TTL at the barrier's time) are left out. */
typedef enum ck_mark_scan_kind { CK_MARK_BASE, CK_MARK_DELTA } ck_mark_scan_kind;
typedef struct ck_mark_row {
    uint64_t op_id;
    ck_view key, value;
    uint8_t kind;
} ck_mark_row;
typedef struct ck_mark_scan ck_mark_scan;
CK_NODISCARD ck_status ck_mark_scan_new(ck_state_mark *m, ck_mark_scan_kind kind, ck_mark_scan **out, ck_error *err);
/* *count 0 at the end. */
CK_NODISCARD ck_status ck_mark_scan_next(ck_mark_scan *s, const ck_mark_row **rows, uint32_t *count, ck_error *err);
void ck_mark_scan_free(ck_mark_scan *s);

#endif
