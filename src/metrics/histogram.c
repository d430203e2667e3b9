/* See histogram.h. */
#include "metrics/histogram.h"

enum { SUB_COUNT = 1 << CK_HISTOGRAM_SUB_BITS };

uint64_t ck_histogram_bucket_max(size_t bucket) {
    if (bucket < SUB_COUNT) return bucket;
    unsigned shift = (unsigned)(bucket >> CK_HISTOGRAM_SUB_BITS) - 1;
    uint64_t low = (uint64_t)(SUB_COUNT + (bucket & (SUB_COUNT - 1)));
    return ((low + 1) << shift) - 1; /* of the last bucket 2^64 - 1, by wrapping to 0 */
}

static uint64_t load(const _Atomic uint64_t *v) { return atomic_load_explicit(v, memory_order_relaxed); }

/* The rank of a quantile in thousandths, 1-based and rounded up, without overflow. */
static uint64_t rank_of(uint64_t count, uint64_t thousandths) {
    uint64_t rank = count / 1000 * thousandths + (count % 1000 * thousandths + 999) / 1000;
    return rank ? rank : 1;
}

void ck_histogram_look(const ck_histogram *h, ck_histogram_view *out) {
    *out = (ck_histogram_view){.sum = load(&h->sum), .max = load(&h->max)};
    uint64_t seen[CK_HISTOGRAM_BUCKETS]; /* counted and walked from the same numbers */
    for (size_t i = 0; i < CK_HISTOGRAM_BUCKETS; i++) {
        seen[i] = load(&h->buckets[i]);
        out->count += seen[i];
    }
    if (out->count == 0) return;
    static const uint64_t thousandths[] = {500, 900, 990, 999};
    uint64_t *quantiles[] = {&out->p50, &out->p90, &out->p99, &out->p999};
    uint64_t below = 0;
    size_t q = 0;
    for (size_t i = 0; i < CK_HISTOGRAM_BUCKETS && q < 4; i++) {
        below += seen[i];
        while (q < 4 && below >= rank_of(out->count, thousandths[q])) {
            uint64_t v = ck_histogram_bucket_max(i);
            *quantiles[q++] = v < out->max ? v : out->max;
        }
    }
}
