/* What a checkpoint holds, for people who look at it: a snapshot file, or a checkpoint of a directory (DIR: the newest,
 * DIR:N, or its manifest's path). Read whole, every file of a checkpoint against size and checksum. */
#ifndef CK_CHECKPOINT_INSPECT_H
#define CK_CHECKPOINT_INSPECT_H

#include "checkpoint/manifest.h"
#include "state/state_migration_on_restore.h"

typedef struct ck_inspected_slot {
    const ck_stored_slot *stored; /* of ck_inspection.state */
    uint32_t version;             /* 0: nobody says; it counts as 1 */
    uint64_t entries;             /* rows that were written whole */
    uint64_t changes;             /* puts and erases of deltas and changelogs on top of them */
} ck_inspected_slot;

typedef struct ck_inspection {
    const char *dir;                /* of a checkpoint; NULL: a file by itself */
    const ck_manifest *manifest;    /* of a checkpoint */
    ck_stored_state state;          /* slots that files describe, then those only their rows show */
    const ck_inspected_slot *slots; /* of them, by operator */
    uint32_t slot_count;
    uint64_t files, entries, changes;
} ck_inspection;

/* Everything lives in the arena. Errors as of reading snapshots and manifests: CK_CORRUPT, CK_NOTFOUND, CK_REFUSED (a
 * newer format), CK_IO. Blocks. */
CK_NODISCARD ck_status ck_inspect(ck_proc *proc, ck_arena *a, const char *path, ck_inspection *out, ck_error *err);

#endif
