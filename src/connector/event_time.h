/* Event time at a source: the clock of each split - the greatest time seen in it - and the watermark made of them
 * (docs/decisions/0005). A split that has given no row yet holds the watermark back, a finished one and an idle one do
 * not; a watermark never goes back, since the runtime drops one that would.
 *
 * Thread: the source's subtask. */
#ifndef CK_CONNECTOR_EVENT_TIME_H
#define CK_CONNECTOR_EVENT_TIME_H

#include "expr/program.h"
#include "stream/descriptor.h"

struct yyjson_val;

/* What the planner says: parameter "event_time". */
typedef struct ck_event_time_spec {
    ck_expr *expr; /* over the table's columns: TIMESTAMP, TIMESTAMP_LTZ, or BIGINT of milliseconds */
    int64_t lag_us;
    int64_t idle_us; /* a split that was polled in vain for so long leaves the minimum; 0: never */
} ck_event_time_spec;
CK_NODISCARD ck_status ck_event_time_read(ck_arena *a, const ck_op_spec *spec, const ck_schema *table,
                                          struct yyjson_val *v, const ck_event_time_spec **out, ck_error *err);

typedef struct ck_split_clock {
    const char *name;       /* the split's id */
    int64_t max_us;         /* INT64_MIN: nothing seen */
    int64_t empty_since_us; /* monotonic; INT64_MIN: it had something when last polled */
    bool finished, idle;
} ck_split_clock;

typedef struct ck_event_time {
    const ck_event_time_spec *spec; /* NULL: the table has no event time, and nothing below does anything */
    ck_mem mem;
    ck_eval *eval; /* NULL: the time is a column */
    bool millis;
    ck_split_clock *clocks;
    uint32_t count, capacity;
    int64_t watermark;
} ck_event_time;

/* spec may be NULL. `a` must outlive it. */
CK_NODISCARD ck_status ck_event_time_init(ck_event_time *t, const ck_event_time_spec *spec, const ck_op_spec *op,
                                          ck_arena *a, ck_mem mem, ck_error *err);
void ck_event_time_destroy(ck_event_time *t); /* safe on zero */

/* A split is owned from now on. name: its id, borrowed for as long as t lives. max_us: as stored with its position,
 * INT64_MIN: none. Clocks are numbered from 0. */
CK_NODISCARD ck_status ck_event_time_add(ck_event_time *t, const char *name, int64_t max_us, bool finished,
                                         uint32_t *clock, ck_error *err);
/* A batch of the table's columns, before it goes out; counts `bad_times`. */
CK_NODISCARD ck_status ck_event_time_see(ck_event_time *t, uint32_t clock, const ck_batch *b, ck_op_ctx *ctx);
/* The split was polled and had nothing, at this monotonic time. *until_us is lowered to when that makes it idle. */
void ck_event_time_empty(ck_event_time *t, uint32_t clock, int64_t now_us, int64_t *until_us);
/* The split's source knows that no row older than this comes from it any more. */
void ck_event_time_raise(ck_event_time *t, uint32_t clock, int64_t to_us);
void ck_event_time_finish(ck_event_time *t, uint32_t clock);
/* Emits the watermark where it rose, or where the last split became idle or the first came back, and notes which split
 * holds it. After each batch. */
CK_NODISCARD ck_status ck_event_time_say(ck_event_time *t, ck_op_ctx *ctx);
/* What is stored with the split's position. */
static inline int64_t ck_event_time_max(const ck_event_time *t, uint32_t clock) {
    return t->spec ? t->clocks[clock].max_us : INT64_MIN;
}

#endif
