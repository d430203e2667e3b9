/* The body of a restore. restore.c reads files and hands out keyed rows, operator_rows.c keeps operator rows and deals
 * them out. */
#ifndef CK_CHECKPOINT_RESTORE_INT_H
#define CK_CHECKPOINT_RESTORE_INT_H

#include "base/map.h"
#include "checkpoint/restore.h"
#include "checkpoint/snapshot.h"

enum { CK_RESTORE_PENDING = 256 };

typedef struct ck_restore_into { /* a target */
    ck_state_store *store;
    uint32_t subtask, parallelism;
    ck_key_group_range range;
    struct ck_restore_into *next;
    uint64_t pending_op; /* rows to put, all of it */
    uint32_t pending_count;
    ck_stored_row pending[CK_RESTORE_PENDING];
} ck_restore_into;

typedef struct ck_target_ref {
    ck_restore_into *target;
    struct ck_target_ref *next;
} ck_target_ref;

/* One operator row; the newest of its chain, then of the job. */
typedef struct ck_operator_row {
    ck_view slot, row_key, stored_key, value; /* in the restore's arena */
    bool erased;
} ck_operator_row;

typedef struct ck_restore_op {
    uint64_t id, as; /* stored; in the targets' stores */
    const char *uid; /* in the targets' stores; NULL: as stored */
    bool want_committables;
    ck_target_ref *targets;
    ck_restore_into **owner; /* by key group: the target whose range holds it; NULL: another process's */
    ck_map slots;            /* by name: ck_stored_slot */
    ck_map rows;             /* operator rows by stored key: ck_operator_row */
    ck_committable *committables;
    uint32_t committable_count;
} ck_restore_op;

struct ck_restore {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    const char *dir;
    const ck_manifest *m;
    ck_restore_into *targets;
    ck_map ops;             /* by id */
    ck_restore_op *last_op; /* rows come operator by operator; NULL: nobody's */
    uint64_t last_id;
    bool last_known;
    const char *handle; /* the materialisation that the file being read names; NULL: none */
    ck_version_map versions;
    ck_map chain;    /* operator rows of the chain being read: op id and stored key */
    ck_restore_stats stats;
    bool done;
};

ck_restore_op *ck_restore_op_find(const ck_restore *r, uint64_t id);
CK_NODISCARD ck_status ck_operator_row_seen(ck_restore *r, uint64_t op, const ck_stored_key *k,
                                            const ck_snapshot_row *row, ck_error *err);
/* A row of kind 4: those seen so far in the chain. */
void ck_operator_rows_erased(ck_restore *r, uint64_t op, ck_view from, ck_view to);
/* The chain has been read: its rows join those of the other subtasks. */
CK_NODISCARD ck_status ck_operator_rows_merge(ck_restore *r, ck_error *err);
/* All have been read: to the targets by mode, committables apart. */
CK_NODISCARD ck_status ck_operator_rows_deal(ck_restore *r, ck_error *err);

#endif
