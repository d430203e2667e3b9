/* What one operator of one subtask counts. Each number is a metric of the proc's registry, where there is one, with the
 * labels job, run, op, subtask; what the registry has no room for is counted all the same, beside it. One writer, the
 * subtask's step; readers: any thread. */
#ifndef CK_RUNTIME_OP_METRICS_H
#define CK_RUNTIME_OP_METRICS_H

#include <pthread.h>

#include "metrics/metrics.h"
#include "stream/operator.h"

/* Zero counts by itself. */
typedef struct ck_op_counter {
    ck_counter *shown; /* the registry's; NULL: own */
    ck_counter own;
} ck_op_counter;

static inline ck_counter *ck_op_counter_at(ck_op_counter *c) { return c->shown ? c->shown : &c->own; }
static inline uint64_t ck_op_counter_read(const ck_op_counter *c) {
    return atomic_load_explicit(&(c->shown ? c->shown : &c->own)->value, memory_order_relaxed);
}
static inline void ck_op_counter_add(ck_op_counter *c, uint64_t n) {
    _Atomic uint64_t *v = &ck_op_counter_at(c)->value;
    atomic_store_explicit(v, atomic_load_explicit(v, memory_order_relaxed) + n, memory_order_relaxed);
}
/* Registers it under a name; `ctx` says the labels. Before the first add, and before others may read it. */
void ck_op_counter_show(ck_op_counter *c, const ck_op_ctx *ctx, const char *name);
void ck_op_counter_release(ck_op_counter *c, ck_proc *proc); /* what was counted stays readable */

enum { CK_CLOCK_NAME_BYTES = 200 };

/* The newest ck_clock_note of a source, and gauges of it: watermark_us, idle_splits, and watermark_holder_us, the
 * largest time of the split that holds time back, with its name as the label "split" (a second old at most). */
typedef struct ck_op_clock {
    pthread_mutex_t lock; /* guards what follows */
    bool noted;
    ck_clock_note note; /* its strings are these: */
    char holder[CK_CLOCK_NAME_BYTES], idle[CK_CLOCK_NAME_BYTES];
    const char *holder_seen, *idle_seen; /* the source's, copied already */
    ck_gauge *watermark_us, *idle_splits;
    ck_gauge *held_us;   /* NULL: by nobody */
    const char *held_by; /* the source's string that its label was made of */
    int64_t held_since_us;
} ck_op_clock;

void ck_op_clock_init(ck_op_clock *c);
void ck_op_clock_destroy(ck_op_clock *c, ck_proc *proc);
void ck_op_clock_take(ck_op_clock *c, const ck_op_ctx *ctx, const ck_clock_note *note);
/* false: the source has no event time, or said nothing yet. The strings of *out lie in holder and idle. Thread: any. */
bool ck_op_clock_read(ck_op_clock *c, ck_clock_note *out, char holder[CK_CLOCK_NAME_BYTES],
                      char idle[CK_CLOCK_NAME_BYTES]);

/* How far a source is behind what it follows, and gauges of it: lag_records, lag_ms. One writer, the subtask's step. */
typedef struct ck_op_lag {
    _Atomic bool noted;
    _Atomic uint64_t records;
    _Atomic int64_t us;
    ck_gauge *shown_records, *shown_ms;
} ck_op_lag;

void ck_op_lag_destroy(ck_op_lag *l, ck_proc *proc);
void ck_op_lag_take(ck_op_lag *l, const ck_op_ctx *ctx, uint64_t records, int64_t us);

#endif
