/* Doubles in buckets: those that agree in sign, exponent and the first seven bits behind it share one, so that a bucket
 * is less than 1/128 of its values wide. Numbers of buckets are in the order of the values (NaN above all), small whole
 * numbers have buckets of their own, and no library of mathematics has a say, so that every machine counts alike. */
#ifndef CK_EXPR_APPROX_H
#define CK_EXPR_APPROX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CK_APPROX_SHIFT = 45 };

static inline int64_t ck_approx_bucket(double x) {
    uint64_t bits;
    if (isnan(x)) x = (double)NAN;
    memcpy(&bits, &x, 8);
    int64_t bucket = (int64_t)((bits & ~(1ULL << 63)) >> CK_APPROX_SHIFT);
    return bits >> 63 && !isnan(x) ? -bucket : bucket;
}

/* The value of a bucket that is nearest to zero. */
static inline double ck_approx_value(int64_t bucket) {
    uint64_t bits = (uint64_t)(bucket < 0 ? -bucket : bucket) << CK_APPROX_SHIFT;
    double x;
    memcpy(&x, &bits, 8);
    return bucket < 0 ? -x : x;
}

#endif
