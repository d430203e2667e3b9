/* Fingerprints: two numbers beside an operator's uid that decide what a restore may do with its state. The state
 * fingerprint says what the state looks like, the semantic one what it means. Both are stable across builds, hosts and
 * parallelism. */
#ifndef CK_GRAPH_FINGERPRINT_H
#define CK_GRAPH_FINGERPRINT_H

#include "graph/graph.h"

/* Of the layout of all slots of an operator: names, state types, modes, fields with their types and order. Versions and
 * TTL are left out: migration and expiry have their own rules. 0 for no slots, never 0 otherwise. The order of the list
 * does not matter. CK_NOMEM only. */
CK_NODISCARD ck_status ck_slots_fingerprint(ck_arena *scratch, const ck_slot_schema *slots, uint32_t count,
                                            uint64_t *out);

#endif
