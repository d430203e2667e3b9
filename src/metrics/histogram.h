/* A histogram of unsigned values (bytes, microseconds) in log-linear buckets: 32 for each power of two, so a quantile
 * is at most 1/32 too high, for every value of 64 bits, in 15 KiB. Values under 32 are exact. */
#ifndef CK_METRICS_HISTOGRAM_H
#define CK_METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CK_HISTOGRAM_SUB_BITS = 5,
    CK_HISTOGRAM_BUCKETS = (64 - CK_HISTOGRAM_SUB_BITS + 1) << CK_HISTOGRAM_SUB_BITS,
};

/* Zero is empty. Thread: any. */
typedef struct ck_histogram {
    _Atomic uint64_t buckets[CK_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum; /* wraps at 2^64 */
    _Atomic uint64_t max;
} ck_histogram;

/* Which bucket a value falls into, and the greatest value of a bucket. */
static inline size_t ck_histogram_bucket(uint64_t v) {
    if (v < 1u << CK_HISTOGRAM_SUB_BITS) return (size_t)v;
    unsigned shift = 63 - (unsigned)__builtin_clzll(v) - CK_HISTOGRAM_SUB_BITS; /* leaves one bit above the sub bits */
    return ((size_t)shift << CK_HISTOGRAM_SUB_BITS) + (size_t)(v >> shift);
}
uint64_t ck_histogram_bucket_max(size_t bucket);

static inline void ck_histogram_record(ck_histogram *h, uint64_t v) {
    atomic_fetch_add_explicit(&h->buckets[ck_histogram_bucket(v)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, v, memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&h->max, memory_order_relaxed);
    while (v > max &&
           !atomic_compare_exchange_weak_explicit(&h->max, &max, v, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* What was recorded so far; values recorded meanwhile may be in it or not. A quantile is the greatest value of its
 * bucket, never over max; 0 when nothing was recorded. */
typedef struct ck_histogram_view {
    uint64_t count, sum, max;
    uint64_t p50, p90, p99, p999;
} ck_histogram_view;
void ck_histogram_look(const ck_histogram *h, ck_histogram_view *out);

#endif
