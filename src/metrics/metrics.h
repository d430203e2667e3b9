/* Counters, gauges and histograms, registered by name and labels on the proc's ck_metrics. Updates are single relaxed
 * atomics: any thread, no lock, never a signal between threads. Registration and looking take a lock and may allocate:
 * not per row, not per batch. */
#ifndef CK_METRICS_METRICS_H
#define CK_METRICS_METRICS_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/proc.h"
#include "metrics/histogram.h"

typedef struct ck_metrics ck_metrics;

CK_NODISCARD ck_status ck_metrics_new(ck_proc *proc, ck_metrics **out, ck_error *err);
void ck_metrics_free(ck_metrics *m); /* every metric goes with it; NULL is fine */

typedef struct ck_label {
    const char *key, *value;
} ck_label;

typedef enum ck_metric_kind { CK_METRIC_COUNTER, CK_METRIC_GAUGE, CK_METRIC_HISTOGRAM } ck_metric_kind;

/* What a user holds. Owned by the registry, alive until as many releases as registrations have come. */
typedef struct ck_counter {
    _Atomic uint64_t value;
} ck_counter;
typedef struct ck_gauge {
    _Atomic int64_t value;
} ck_gauge;

/* The metric of that name and those labels (their order counts), made when there is none; all who ask for it share it.
 * Names and keys: letters, digits, _, not beginning with a digit. CK_INVALID: not such a name, or it is of another
 * kind. CK_FULL: over 65,536 metrics. Thread: any. */
CK_NODISCARD ck_status ck_metrics_counter(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                                          ck_counter **out, ck_error *err);
CK_NODISCARD ck_status ck_metrics_gauge(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                                        ck_gauge **out, ck_error *err);
CK_NODISCARD ck_status ck_metrics_histogram(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                                            ck_histogram **out, ck_error *err);
/* One registration less; any of the three pointers above; NULL is fine. */
void ck_metrics_release(ck_metrics *m, void *metric);

static inline void ck_counter_add(ck_counter *c, uint64_t n) {
    atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}
static inline void ck_gauge_set(ck_gauge *g, int64_t v) { atomic_store_explicit(&g->value, v, memory_order_relaxed); }
static inline void ck_gauge_add(ck_gauge *g, int64_t n) {
    atomic_fetch_add_explicit(&g->value, n, memory_order_relaxed);
}

/* A look at all of them, sorted by name, then labels. */
typedef struct ck_metric_view {
    const char *name;
    const char *labels; /* key="value",... with \ and " and newlines in values escaped by \; "" without any */
    ck_metric_kind kind;
    uint64_t counter;
    int64_t gauge;
    ck_histogram_view histogram;
} ck_metric_view;
/* In `arena`. CK_NOMEM at its end. Thread: any. */
CK_NODISCARD ck_status ck_metrics_look(ck_metrics *m, ck_arena *arena, ck_metric_view **out, size_t *count,
                                       ck_error *err);

#endif
