/* A slot whose rows become rows of another schema: built beside the old table, then put in its place, so that many can
 * be built before the first is replaced. */
#ifndef CK_STATE_REBUILD_INT_H
#define CK_STATE_REBUILD_INT_H

#include "state/state_int.h"
#include "state/state_migrations.h"

/* How values get from one schema to the other; all empty: they are the same bytes. */
typedef struct ck_slot_way {
    const char *uid;                 /* for messages; NULL: the store's */
    const uint32_t *value_of;        /* ck_slot_change */
    const ck_migration_chain *chain; /* instead; NULL or empty: none */
    bool renamed;                    /* the slot gets the schema's name */
} ck_slot_way;

typedef struct ck_slot_build {
    ck_state *st;
    ck_state_slot *slot, made; /* what is there, and what takes its place */
} ck_slot_build;

/* The old slot stays as it is. On failure nothing is left. CK_REFUSED: rows that do not fit; whatever a step says. */
CK_NODISCARD ck_status ck_slot_build_rows(ck_state *st, ck_state_slot *slot, const ck_slot_schema *schema,
                                          const ck_slot_way *way, ck_slot_build *out, ck_error *err);
/* Fails only where rows in RocksDB could not be taken away; the store is of no use then. */
CK_NODISCARD ck_status ck_slot_build_adopt(ck_slot_build *b, ck_error *err);
void ck_slot_build_drop(ck_slot_build *b);

#endif
