/* Operators of plugins: process functions, with state and timers for each key. A part of plugin.h, which says how it is
 * used. */
#ifndef CLINK_PLUGIN_OPERATORS_H
#define CLINK_PLUGIN_OPERATORS_H

#include "plugin_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept for each key. VALUE: one entry. MAP: entries in the order of a key of their own, the first field. LIST:
 * entries in the order they were appended. */
typedef enum clink_state_kind { CLINK_VALUE = 0, CLINK_MAP = 1, CLINK_LIST = 2 } clink_state_kind;

typedef struct clink_state {
    uint32_t struct_bytes;
    uint32_t kind;    /* clink_state_kind */
    const char *name; /* of the slot; it is in checkpoints */
    const char *type; /* of what is kept, for versions and migrations; NULL: as name */
    uint32_t version; /* of type; 0: 1 */
    uint32_t field_count;
    /* BOOLEAN, BIGINT, DOUBLE, VARCHAR or BYTES; zero, false or empty at first. The key of a MAP is the first and a
     * BIGINT or VARCHAR. */
    const clink_field *fields;
    int64_t ttl_ms; /* entries that no call has given out for so long go (it counts as written); 0: they stay */
} clink_state;

/* Which entry of a MAP (or LIST: i64, its position). */
struct clink_key {
    int64_t i64;
    clink_bytes text;
};

/* Timers that are due, in the order of their times. */
typedef struct clink_timers {
    uint32_t struct_bytes;
    uint32_t count;
    const int64_t *times_us;
    int32_t processing;
    uint32_t key_count;
    const clink_column *const *keys; /* row k is the key of timer k */
} clink_timers;

/* What an operator is called with. State and timers are those of the k-th row of the batch, or of the k-th timer. */
struct clink_context {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t reserved;
    int64_t watermark_us; /* rows at or below it are late; INT64_MIN: nothing known yet */
    int64_t now_us;       /* the wall clock, fixed within a call */
    void *self;           /* what open made */
    clink_error *error;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};

/* Rows to emit: clink_add_row, then every column of the row. They go when the call returns, or when there are many. */
struct clink_emitter {
    uint32_t column_count;
    uint32_t count, capacity;
    uint32_t reserved;
    clink_writer *const *columns;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
/* Port 0 is the main output, 1 and up are side outputs. NULL: there is none, or no memory. */
static inline clink_emitter *clink_out(clink_context *c, uint32_t port) { return c->engine->output(c, port); }
static inline clink_status clink_add_row(clink_emitter *o, uint32_t *row) {
    if (o->count == o->capacity) {
        clink_status s = o->engine->flush(o);
        if (s != CLINK_OK) return s;
    }
    *row = o->count++;
    return CLINK_OK;
}

/* VALUE: the entries of all rows, to be read and written with clink_state_i64(out, k, field) and the like. With create
 * those that are missing are made, and fresh[k] (optional) says which; without it out->states[k] is NULL for them.
 * Valid until the next call about the same state. */
static inline clink_status clink_values(clink_context *c, uint32_t state, int create, clink_groups *out,
                                        const uint8_t **fresh) {
    return c->engine->values(c, state, create, out, fresh);
}
/* VALUE: the k-th row's entry, which clink_values gave, is zero, false and empty again, and goes unless it is written
 * before the call returns. */
static inline clink_status clink_erase(clink_context *c, uint32_t state, uint32_t k) {
    return c->engine->erase(c, state, k);
}
/* MAP: the entry under `key`, as group 0 of *out, where field 0 is the key. Without create: out->states is NULL where
 * it is missing. Valid until the next call about the same state. */
static inline clink_status clink_entry(clink_context *c, uint32_t state, uint32_t k, const clink_key *key, int create,
                                       clink_groups *out) {
    return c->engine->entry(c, state, k, key, create, out);
}
/* LIST: a new entry behind the others, as group 0 of *out. Fields are numbered from 0. */
static inline clink_status clink_append(clink_context *c, uint32_t state, uint32_t k, clink_groups *out) {
    return c->engine->append(c, state, k, out);
}
/* MAP, LIST: the entries from low (inclusive; NULL: the first) to high (exclusive; NULL: the last) go. */
static inline clink_status clink_erase_entries(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                               const clink_key *high) {
    return c->engine->erase_entries(c, state, k, low, high);
}
/* MAP, LIST: a walk over them in order: begin it, then next until it gives 0. One walk at a time; entries may be
 * written meanwhile, not added or erased. */
static inline clink_status clink_walk(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                      const clink_key *high) {
    return c->engine->walk(c, state, k, low, high);
}
static inline int clink_next(clink_context *c, clink_key *key, clink_groups *out) {
    return c->engine->next(c, key, out);
}
/* A timer of the k-th row's key. One of a time that has come fires with the next watermark. Setting one that is set
 * changes nothing. Those of event time fire when the watermark comes to them, all that are left when the input has
 * ended; those of processing time by the clock. */
static inline clink_status clink_set_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 0, 1);
}
static inline clink_status clink_clear_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 0, 0);
}
static inline clink_status clink_set_clock_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 1, 1);
}
static inline clink_status clink_clear_clock_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 1, 0);
}
/* Adds to a counter of this operator. The name is a literal. */
static inline void clink_count(clink_context *c, const char *counter, uint64_t add) {
    c->engine->count(c, counter, add);
}

typedef struct clink_columns {
    const clink_field *fields; /* types as SQL writes them: "BIGINT NOT NULL" */
    uint32_t count;
} clink_columns;

/* How an instance begins. Borrowed until open returns. */
typedef struct clink_start {
    uint32_t struct_bytes;
    uint32_t input_count;
    const char *parameters; /* as the job gave them: JSON by convention; "" */
    const char *uid;
    uint32_t subtask, parallelism;
} clink_start;

/* An operator: one instance a subtask. With keyed input (clink_key_by) it has state and timers. */
typedef struct clink_operator {
    uint32_t struct_bytes;
    uint32_t input_count; /* 0: 1 */
    const char *name;
    /* What it needs of each input: columns by name and type, found wherever they stand, and given in this order.
     * Further ones are left out. Keyed: one or more columns named by the job; they must be among them. */
    const clink_columns *inputs;
    clink_columns output;
    const clink_columns *sides; /* side outputs, from port 1 on */
    uint32_t side_count;
    uint32_t state_count;
    const clink_state *const *states;                                                /* numbered as they stand here */
    clink_status (*open)(void **self, const clink_start *start, clink_error *error); /* optional */
    clink_status (*on_batch)(clink_context *c, const clink_batch *batch);
    clink_status (*on_timers)(clink_context *c, const clink_timers *timers); /* optional */
    /* Optional. The watermark has risen, and timers that were due have fired. */
    clink_status (*on_watermark)(clink_context *c, int64_t watermark_us);
    clink_status (*on_end)(clink_context *c); /* optional: all inputs have ended, all timers of event time have fired */
    void (*close)(void *self);                /* optional */
    const char *summary;                      /* one sentence; may be NULL */
} clink_operator;

#ifdef __cplusplus
}
#endif

#endif
