/* A slot's schema: what one piece of state of one operator looks like. It travels in every snapshot, so that any tool
 * reads any state typed and a restore can check it. Immutable; lives in the plan's arena or is static. */
#ifndef CK_STREAM_SLOT_H
#define CK_STREAM_SLOT_H

#include <string.h>

#include "data/type.h"

typedef enum ck_slot_mode {
    CK_SLOT_KEYED,     /* partitioned by key group */
    CK_SLOT_BROADCAST, /* operator state, the same in every subtask; any copy restores */
    CK_SLOT_UNION,     /* operator state, restored whole by every subtask */
    CK_SLOT_SPLIT,     /* operator state, rows dealt out on restore */
} ck_slot_mode;

typedef struct ck_order_field {
    ck_field field;
    bool descending, nulls_first;
} ck_order_field;

/* What a restore knows of a value field beside its name. */
typedef struct ck_slot_origin {
    const char *was; /* the name it is stored under; NULL: its own */
    bool fresh;      /* stored values lack it rightly: it begins as in a new row (NULL; 0 where it is NOT NULL) */
    bool from_now;   /* they do not: it does all the same, because that was asked for */
} ck_slot_origin;

typedef struct ck_slot_schema {
    const char *slot;       /* no '|' and no newline */
    const char *state_type; /* names the value layout for versions and migration, e.g. "group_agg" */
    uint32_t version;       /* of state_type, default 1; 0 in a file that does not say */
    ck_slot_mode mode;
    const ck_field *partition; /* the user key; operator state: the row key, one VARCHAR NOT NULL */
    uint32_t partition_count;
    const ck_order_field *order; /* rows of one key are kept in this order */
    uint32_t order_count;
    const ck_field *values;
    uint32_t value_count;
    bool hashed;    /* partition and order columns together are the hash key: sets, no order inside a key */
    bool bucketed;  /* order[0] is a bucket (a slice end): one table a bucket in memory, dropped whole */
    bool listed;    /* the rows of a key are found as a list, in no order; with `hashed` each also by its whole key */
    int64_t ttl_us; /* 0 = rows live for ever */
    /* What a restore knows beside names. Of what is wanted, never of what is stored. */
    uint32_t reads_from;           /* values of versions from this one on have the same meaning; 0: of its own alone */
    const ck_slot_origin *origins; /* by value field; NULL: nothing */
    /* What its rows are of where the operator's parameters decide it and no field tells ("by window"): in its version,
     * and in those before that it reads. Of what a job has and had, by their graphs. NULL: fields tell all. */
    const char *kept, *kept_before;
    ck_slot_origin origin; /* of the slot: fresh: it begins empty where it is not stored */
} ck_slot_schema;

/* A slot of values only its operator understands: one field of this name, BYTES NOT NULL. */
#define CK_OPAQUE_FIELD "opaque"
static inline bool ck_slot_is_opaque(const ck_slot_schema *s) {
    const ck_field *f = s->values;
    return s->value_count == 1 && f->type->kind == CK_TYPE_BYTES && !f->nullable &&
           strcmp(f->name, CK_OPAQUE_FIELD) == 0;
}

#endif
