/* The vocabulary of a stream: what travels in band, in order. Event time is int64 microseconds. */
#ifndef CK_STREAM_EVENT_H
#define CK_STREAM_EVENT_H

#include "data/batch.h"

#define CK_WATERMARK_MIN INT64_MIN /* nothing known yet */
#define CK_WATERMARK_MAX INT64_MAX /* the end of time: every timer fires */

/* Event times that are reckoned with: the years 1 to 9999. Others, and NULL, move no watermark and are in no window; a
 * source and an operator of time ask the same test. */
#define CK_EVENT_TIME_MIN (-62135596800000000LL)
#define CK_EVENT_TIME_MAX 253402300799999999LL
static inline bool ck_event_time_usable(int64_t us) { return us >= CK_EVENT_TIME_MIN && us <= CK_EVENT_TIME_MAX; }
/* Epoch milliseconds (a BIGINT as event time); what microseconds cannot hold is not usable. */
static inline int64_t ck_event_time_of_ms(int64_t ms) {
    return ms >= CK_EVENT_TIME_MIN / 1000 && ms <= CK_EVENT_TIME_MAX / 1000 ? ms * 1000 : INT64_MAX;
}
/* What start, end and time of a window are where its rows have a time of type t, a BIGINT of milliseconds or NULL for
 * the clock among them: they show milliseconds also where the rows do not. NULL when the arena has no memory. */
static inline const ck_type *ck_event_window_type(ck_arena *a, const ck_type *t) {
    if (!t || t->kind == CK_TYPE_BIGINT) return ck_type_with_precision(a, CK_TYPE_TIMESTAMP_LTZ, 3);
    return t->precision < 3 ? ck_type_with_precision(a, t->kind, 3) : t;
}

typedef enum ck_event_kind {
    CK_EVENT_BATCH,
    CK_EVENT_WATERMARK,
    CK_EVENT_BARRIER,
    CK_EVENT_CANCEL_BARRIER,
    CK_EVENT_ROUTE, /* hot rescale: the routing table changes here */
    CK_EVENT_FLUSH,
    CK_EVENT_DRAIN, /* the producer stops after this, state stays (rescale, stop with savepoint) */
    CK_EVENT_END,   /* no more input from this producer; followed by nothing but barriers */
} ck_event_kind;

typedef enum ck_barrier_kind { CK_BARRIER_PERIODIC, CK_BARRIER_SAVEPOINT, CK_BARRIER_FINAL } ck_barrier_kind;

typedef struct ck_event {
    ck_event_kind kind;
    union {
        ck_batch *batch; /* on_event borrows it; queues own a reference */
        struct {
            int64_t value; /* us; rows at or below it are late from here on */
            bool idle;     /* the input leaves the minimum until its next batch or watermark */
        } watermark;
        struct {
            uint64_t checkpoint;
            uint64_t after; /* the newest checkpoint that was complete when this one began; 0: none */
            ck_barrier_kind kind;
            bool overtakes; /* unaligned: who gets it does not wait for the others, what they still bring is stored */
        } barrier;          /* CANCEL_BARRIER uses checkpoint */
        uint64_t flush_seq;
        uint64_t route_epoch;
    };
} ck_event;

static inline ck_event ck_event_batch(ck_batch *b) { return (ck_event){.kind = CK_EVENT_BATCH, .batch = b}; }
static inline ck_event ck_event_end(void) { return (ck_event){.kind = CK_EVENT_END}; }
static inline ck_event ck_event_flush(uint64_t seq) { return (ck_event){.kind = CK_EVENT_FLUSH, .flush_seq = seq}; }
static inline ck_event ck_event_watermark(int64_t value, bool idle) {
    return (ck_event){.kind = CK_EVENT_WATERMARK, .watermark = {value, idle}};
}
static inline ck_event ck_event_barrier(uint64_t checkpoint, ck_barrier_kind kind) {
    return (ck_event){.kind = CK_EVENT_BARRIER, .barrier = {.checkpoint = checkpoint, .kind = kind}};
}

#endif
