/* What became of a slot's schema between the job that stored it and the one that opens it. One comparison: what
 * EXPLAIN --restore shows, what a restore refuses before anything runs and what opening the slot converts are the same.
 *
 * Value fields are found by name, their order is free. A field may go, an integer may grow wider, a length or a
 * precision greater, NOT NULL may be dropped. Partition and order fields keep their places: their types may only become
 * wider integers. A field the stored slot has not, a narrower type, another mode or state type is refused. Pure. */
#ifndef CK_STATE_SLOT_CHANGE_H
#define CK_STATE_SLOT_CHANGE_H

#include "base/arena.h"
#include "stream/slot.h"

typedef enum ck_slot_verdict {
    CK_SLOT_SAME,     /* stored rows are rows of this slot */
    CK_SLOT_CONVERTS, /* they become such by dropping, ordering and widening fields */
    CK_SLOT_REFUSED,
} ck_slot_verdict;

typedef struct ck_slot_change {
    ck_slot_verdict verdict;
    const char *what;         /* "drops 'max(x)'; 'n' INTEGER -> BIGINT"; refused: a sentence without its subject; "" */
    const uint32_t *value_of; /* not refused: by value field of the wanted schema, the stored one's number, or
                                 CK_FIELD_IS_NEW (state/schema_additive.h) */
} ck_slot_change;

/* CK_NOMEM only. `out` lives in the arena. */
CK_NODISCARD ck_status ck_slot_compare(ck_arena *a, const ck_slot_schema *stored, const ck_slot_schema *wanted,
                                       ck_slot_change *out);

#endif
