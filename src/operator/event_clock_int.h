/* How far event time has come for an operator: the watermark it has acted on, kept in its state, so that a restored one
 * does not open again what it had closed. */
#ifndef CK_OPERATOR_EVENT_CLOCK_INT_H
#define CK_OPERATOR_EVENT_CLOCK_INT_H

#include "state/state.h"
#include "stream/descriptor.h"

/* Slot clink.time: (name VARCHAR) -> (value BIGINT). A subtask's row is "watermark FIRST-LAST" with its key groups:
 * where barriers overtake, subtasks are at different times when they make their marks, and what is under way to one of
 * them is late for another. "watermark" alone, of earlier releases, is of all key groups. Restored is the least over
 * the groups a subtask has; the runtime restores subtasks that differ only with the groups they had (job_settle.c). */
#define CK_TIME_SLOT "clink.time"
const ck_slot_schema *ck_event_clock_slot(void);

typedef struct ck_event_clock {
    int64_t watermark; /* CK_WATERMARK_MIN: none yet */
    int64_t stored;
} ck_event_clock;

/* by_wall_clock: the operator's time is the clock; then of several the greatest is restored, since no window may get a
 * row behind its end. */
CK_NODISCARD ck_status ck_event_clock_open(ck_event_clock *c, bool by_wall_clock, ck_op_ctx *ctx);
/* By the wall clock subtasks are at different times in one checkpoint. How far each key group of this one had come; the
 * operator is restored to the least, and has to come to the greatest, without saying for a group what that had said,
 * before it takes a row or a snapshot. */
typedef struct ck_event_clock_each {
    int64_t *watermarks; /* by key group - first; NULL: all were at one time */
    uint32_t first, count;
    int64_t greatest;
} ck_event_clock_each;
CK_NODISCARD ck_status ck_event_clock_open_each(ck_event_clock *c, ck_mem mem, ck_event_clock_each *each,
                                                ck_op_ctx *ctx);
void ck_event_clock_each_close(ck_event_clock_each *each, ck_mem mem); /* also twice */
/* In pre_snapshot. */
CK_NODISCARD ck_status ck_event_clock_store(ck_event_clock *c, ck_op_ctx *ctx);

/* Processing time, for operators whose "watermark" is the clock: the millisecond in which rows that come now are, which
 * what is over has not reached, even where the clock went back. */
int64_t ck_event_clock_now_ms(const ck_event_clock *c, int64_t now_us);
/* Such an operator's watermark when the clock is there: no row will be of an earlier millisecond. It says it to those
 * behind it, also where it has no rows: others wait for the least of all subtasks. */
int64_t ck_event_clock_tick(int64_t now_us);
enum { CK_TICK_LEAST_US = 5000 }; /* not more often, however small the windows */

/* Whether everything before the instant `end` has been seen. */
static inline bool ck_event_clock_passed(int64_t watermark, int64_t end) { return end - 1 <= watermark; }

#endif
