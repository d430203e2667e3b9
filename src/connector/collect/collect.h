/* Rows handed to the embedding program: a bounded queue between the `collect` sink and a reader outside the job.
 * Refcounted: the job's sink holds one, the reader another; whichever goes first, the other stays safe. */
#ifndef CK_CONNECTOR_COLLECT_COLLECT_H
#define CK_CONNECTOR_COLLECT_COLLECT_H

#include "base/proc.h"
#include "connector/outputs.h"
#include "data/batch.h"

typedef struct ck_collector ck_collector;

/* One batch of results. kinds[k] (enum ck_change) of the k-th live row; NULL: all inserts. */
typedef struct ck_collected {
    ck_batch *batch;
    uint8_t *kinds; /* batch->sel_count of them, from mem */
    ck_mem mem;
} ck_collected;
void ck_collected_destroy(ck_collected *c); /* safe twice */

/* bytes_max bounds what waits in the queue: beyond it the sink is told to wait (CK_AGAIN), which is backpressure for
 * the whole job. */
CK_NODISCARD ck_status ck_collector_new(ck_proc *proc, ck_mem mem, size_t bytes_max, ck_collector **out);
ck_collector *ck_collector_ref(ck_collector *c);
void ck_collector_unref(ck_collector **c); /* NULL is fine */

/* Reader side; thread: any, one at a time. Blocks until rows come (CK_OK), the end (CK_CLOSED), the job's failure (its
 * status and error), or timeout_us passed (CK_AGAIN; -1: never). */
CK_NODISCARD ck_status ck_collector_next(ck_collector *c, int64_t timeout_us, ck_collected *out, ck_error *err);
/* The reader wants no more: the sink closes its input. */
void ck_collector_close(ck_collector *c);
/* The job has ended, by the engine: CK_OK or how it failed. Rows that wait are still delivered first. */
void ck_collector_finish(ck_collector *c, ck_status status, const ck_error *err);

#endif
