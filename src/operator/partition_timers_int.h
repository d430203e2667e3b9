/* Which partition of an ordered table is due when: a heap of (time, partition), each partition in it once with its
 * valid time. Of sessions, OVER, ranks of windows, joins in time and operators of plugins, whose partitions are keys with rows in the order
 * of time. Not in a checkpoint: it is made anew from the rows. */
#ifndef CK_OPERATOR_PARTITION_TIMERS_INT_H
#define CK_OPERATOR_PARTITION_TIMERS_INT_H

#include "state/table.h"
#include "stream/operator.h"

typedef struct ck_partition_timer {
    int64_t us;
    ck_partition partition;
} ck_partition_timer;

typedef struct ck_partition_timers {
    ck_mem mem;
    ck_partition_timer *heap;
    uint32_t count, capacity;
    int64_t *due; /* by partition; INT64_MAX: none */
    uint32_t due_count;
} ck_partition_timers;

void ck_partition_timers_init(ck_partition_timers *t, ck_mem mem);
void ck_partition_timers_destroy(ck_partition_timers *t);
/* The partition is due at `us`, and at no later time asked for before. */
CK_NODISCARD ck_status ck_partition_timers_set(ck_partition_timers *t, ck_partition p, int64_t us);
/* When the first is due; INT64_MAX: none. May be early: who asked then asks again. */
int64_t ck_partition_timers_first(const ck_partition_timers *t);
/* The earliest partition due at or before `us`, taken out. */
bool ck_partition_timers_take(ck_partition_timers *t, int64_t us, ck_partition *p);

/* When the first row of a restored partition wants to be looked at. */
typedef int64_t (*ck_first_due_fn)(const void *arg, const ck_row *first);
/* A timer for every partition of t that has rows; what memory is short of may leave meanwhile. room: for
 * CK_BATCH_ROWS_MAX partitions. */
CK_NODISCARD ck_status ck_partition_timers_restore(ck_partition_timers *t, ck_table *table, ck_partition *room,
                                                   ck_first_due_fn due, const void *arg, ck_op_ctx *ctx);

/* An instant, or another BIGINT, as an order key, as data/key.h writes an integer. */
enum { CK_INSTANT_KEY_BYTES = 8 };
ck_view ck_instant_key(int64_t us, char out[CK_INSTANT_KEY_BYTES]);

#endif
