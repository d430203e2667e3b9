/* What becomes of stored state under the schemas a job has now. One comparison, ck_slot_plan_of, slot by slot: the gate
 * before a job is deployed, EXPLAIN --restore, check-savepoint and the migration after a restore all ask it, so they
 * cannot tell different things.
 *
 *   the same version     the fields may differ as state/slot_change.h lets them
 *   an earlier version   a chain of registered steps, explicit before additive (state/state_migrations.h)
 *                        - none where the slot says that it reads that version as its own (reads_from)
 *   no version           version 1. A slot that describes itself is held against the layouts that are known instead;
 *                        where there is none to hold it against it is refused, not assumed
 *   another name         the type or slot was renamed in the registry
 *
 * A later version, a missing chain, a layout that is not that of its version are refused by name. */
#ifndef CK_STATE_STATE_MIGRATION_ON_RESTORE_H
#define CK_STATE_STATE_MIGRATION_ON_RESTORE_H

#include "state/schema_version.h"
#include "state/slot_change.h"
#include "state/state.h"
#include "state/state_migrations.h"

typedef struct ck_slot_plan {
    ck_slot_verdict verdict;
    const char *what;  /* as ck_slot_change; with versions "'type' version 1 -> 3"; "" */
    uint32_t from, to; /* versions */
    ck_migration_chain chain;
    const uint32_t *value_of; /* no chain and CK_SLOT_CONVERTS: as ck_slot_change */
} ck_slot_plan;

/* stored NULL: a slot that does not describe itself. version 0: nobody says which. CK_NOMEM only. Pure. */
CK_NODISCARD ck_status ck_slot_plan_of(ck_arena *a, const ck_state_migrations *m, const ck_slot_schema *stored,
                                       uint32_t version, const ck_slot_schema *wanted, ck_slot_plan *out);

/* A slot found in a file. */
typedef struct ck_stored_slot {
    uint64_t op_id;
    const char *uid, *op_type; /* "" when the file does not say */
    const ck_slot_schema *schema;
    bool raw; /* rows without a description: the schema has only its name */
} ck_stored_slot;

/* What a checkpoint holds, from the heads of its files. */
typedef struct ck_stored_state {
    const ck_stored_slot *slots;
    uint32_t slot_count;
    const ck_version_map *versions; /* NULL: none */
    bool silent; /* no file describes its slots: what is not listed may be there all the same, as version 1 */
} ck_stored_state;

/* What an operator will open. */
typedef struct ck_expected_slot {
    uint64_t op_id; /* in the stored state */
    const char *uid;
    const ck_slot_schema *schema;
} ck_expected_slot;

typedef struct ck_incompatible_slot {
    uint64_t op_id;
    const char *uid, *state_type, *slot;
    uint32_t from, to;
    const char *why; /* a sentence without its subject */
} ck_incompatible_slot;

/* The stored slot an expected one goes on from, under its name or the one it had; NULL: none. */
const ck_stored_slot *ck_stored_slot_of(const ck_stored_state *stored, const ck_state_migrations *m,
                                        const ck_expected_slot *want);
/* The plan of an expected slot; *there false: nothing is stored of it and there is no plan. CK_NOMEM only. Pure. */
CK_NODISCARD ck_status ck_slot_plan_expected(ck_arena *a, const ck_stored_state *stored, const ck_state_migrations *m,
                                             const ck_expected_slot *want, ck_slot_plan *plan, bool *there);
/* Another of the expected slots that goes on from the same stored one; NULL: none. Renamed slots may meet so, where the
 * name they had is another slot's now, and which of them has the rows cannot be told. */
const ck_expected_slot *ck_expected_slot_rival(const ck_stored_state *stored, const ck_state_migrations *m,
                                               const ck_expected_slot *expected, uint32_t count,
                                               const ck_expected_slot *of);
/* What the registry cannot bridge; *count 0: the restore is compatible. CK_NOMEM only. In the arena. Pure. */
CK_NODISCARD ck_status ck_check_restore_compatibility(ck_arena *a, const ck_stored_state *stored,
                                                      const ck_expected_slot *expected, uint32_t expected_count,
                                                      const ck_state_migrations *m, const ck_incompatible_slot **out,
                                                      uint32_t *count);

/* After the restore of a store (ck_state_restore_end) and before any operator opens a slot: brings the slots of these
 * operators to the expected schemas, all of them or none, and stamps the versions for the snapshots to come; other
 * slots keep their bytes and their stamps. On a store where nothing was restored it only stamps. `expected` has the
 * operator's id in the store. CK_REFUSED: incompatible, named; CK_NOMEM; whatever a step says. Thread: the store's. */
CK_NODISCARD ck_status ck_migrate_restored_state(ck_state_store *s, const ck_expected_slot *expected, uint32_t count,
                                                 const ck_state_migrations *m, ck_error *err);

#endif
