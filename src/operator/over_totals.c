/* Counts, sums and ranks along the rows of a key. One loop a total over all rows of the chunk: rows of a place in the
 * order come in, rows that leave the frame go out, then the place has its result. Integers and decimals are summed
 * exactly; doubles with a compensation, NaN and infinities counted apart, so that they can leave again. A sum of
 * doubles that has passed their range says nothing of the rows that stay when large ones leave: then the run is done
 * once more, from the rows of the frame and with the exponents of long double. */
#include "operator/over_int.h"

#include <math.h>

enum { N, SUM, REST, NANS, INFINITIES, NEGATIVE_INFINITIES };
enum { CARRY = REST };

/* Every kernel is this loop; ADD and PUT say what a row does and what a place shows. */
#define ALONG_RUN(op, r, ADD, PUT)                                                                                     \
    do {                                                                                                               \
        const int64_t *last_ = ck_over_i64(&(op)->last), *leave_ = ck_over_i64(&(op)->leave);                          \
        int64_t gone_ = 0;                                                                                             \
        for (size_t i = (r)->first; i < (r)->first + (r)->n;) {                                                        \
            size_t end_ = (size_t)last_[i] + 1;                                                                        \
            for (size_t k = i; k < end_; k++) ADD((op)->chunk.at[k], 1);                                               \
            for (; (op)->plan.bounded && gone_ < leave_[i]; gone_++)                                                   \
                ADD((op)->tails.at[(r)->tail + (size_t)gone_], -1);                                                    \
            for (; i < end_; i++) PUT(i);                                                                              \
        }                                                                                                              \
    } while (0)

static void count_run(const ck_over *op, const ck_over_total *t, ck_over_sum *out, const ck_over_run *r) {
    int64_t n = ck_row_i64(r->key, t->at[N]), *to = ck_over_i64(&out->n);
#define ADD(row, w) n += (t->arg < 0 || !ck_row_null(row, t->arg_null)) ? (w) : 0
#define PUT(i)      to[i] = n
    ALONG_RUN(op, r, ADD, PUT);
#undef ADD
#undef PUT
    ck_row_set_i64(r->key, t->at[N], n);
}

static void sum_i64_run(const ck_over *op, const ck_over_total *t, ck_over_sum *out, const ck_over_run *r) {
    int64_t n = ck_row_i64(r->key, t->at[N]), *counts = ck_over_i64(&out->n);
    ck_i128 sum = ck_row_i128(r->key, t->at[SUM]), *sums = ck_over_i128(&out->sum);
#define ADD(row, w)                                                                                                    \
    do {                                                                                                               \
        if (ck_row_null(row, t->arg_null)) break;                                                                      \
        sum += (w) * (ck_i128)ck_row_i64(row, t->arg_at);                                                              \
        n += (w);                                                                                                      \
    } while (0)
#define PUT(i) (counts[i] = n, sums[i] = sum)
    ALONG_RUN(op, r, ADD, PUT);
#undef ADD
#undef PUT
    ck_row_set_i64(r->key, t->at[N], n);
    ck_row_set_i128(r->key, t->at[SUM], sum);
}

/* sum + x in 128 bits, and what that passed them by. */
static inline ck_i128 add_wide(ck_i128 sum, ck_i128 x, int weight, int64_t *carry) {
    ck_i128 out;
    bool wrapped = weight > 0 ? __builtin_add_overflow(sum, x, &out) : __builtin_sub_overflow(sum, x, &out);
    if (wrapped) *carry += (x > 0) == (weight > 0) ? 1 : -1;
    return out;
}

static void sum_i128_run(const ck_over *op, const ck_over_total *t, ck_over_sum *out, const ck_over_run *r) {
    int64_t n = ck_row_i64(r->key, t->at[N]), carry = ck_row_i64(r->key, t->at[CARRY]);
    int64_t *counts = ck_over_i64(&out->n);
    ck_i128 sum = ck_row_i128(r->key, t->at[SUM]), *sums = ck_over_i128(&out->sum);
    uint8_t *in_range = ck_over_u8(&out->in_range);
#define ADD(row, w)                                                                                                    \
    do {                                                                                                               \
        if (ck_row_null(row, t->arg_null)) break;                                                                      \
        sum = add_wide(sum, ck_row_i128(row, t->arg_at), (w), &carry);                                                 \
        n += (w);                                                                                                      \
    } while (0)
#define PUT(i) (counts[i] = n, sums[i] = sum, in_range[i] = carry == 0)
    ALONG_RUN(op, r, ADD, PUT);
#undef ADD
#undef PUT
    ck_row_set_i64(r->key, t->at[N], n);
    ck_row_set_i128(r->key, t->at[SUM], sum);
    ck_row_set_i64(r->key, t->at[CARRY], carry);
}

typedef struct doubles {
    double sum, rest;
    int64_t n, nans, infinities, negative_infinities;
} doubles;

static inline void add_double(doubles *d, double x, int weight) {
    d->n += weight;
    if (CK_UNLIKELY(!isfinite(x))) {
        int64_t *special = isnan(x) ? &d->nans : x > 0 ? &d->infinities : &d->negative_infinities;
        *special += weight;
    } else {
        if (weight < 0) x = -x;
        double next = d->sum + x; /* Neumaier: the lost low part goes to the compensation */
        d->rest += fabs(d->sum) >= fabs(x) ? (d->sum - next) + x : (x - next) + d->sum;
        d->sum = next;
    }
    if (d->n == 0) d->sum = d->rest = 0;
}

/* What the rows make that are no numbers to add; 0: nothing. */
static inline double special_of(const doubles *d) {
    if (d->nans > 0 || (d->infinities > 0 && d->negative_infinities > 0)) return (double)NAN;
    return d->infinities > 0 ? (double)INFINITY : d->negative_infinities > 0 ? -(double)INFINITY : 0;
}

static inline double as_read(const doubles *d) {
    double special = special_of(d);
    if (special != 0) return special;
    return isfinite(d->sum) ? d->sum + d->rest : d->sum;
}

/* ---- past the range of doubles ---- */

typedef struct wide { /* as doubles, whose counts it has */
    long double sum, rest;
    doubles d;
} wide;

static void add_long(wide *w, long double x) {
    long double next = w->sum + x;
    w->rest += fabsl(w->sum) >= fabsl(x) ? (w->sum - next) + x : (x - next) + w->sum;
    w->sum = next;
}

static void add_wide_double(wide *w, double x, int weight) {
    if (isfinite(x)) {
        add_long(w, weight < 0 ? -(long double)x : (long double)x);
        w->d.n += weight;
    } else {
        add_double(&w->d, x, weight);
    }
    if (w->d.n == 0) w->sum = w->rest = 0;
}

static double wide_as_read(const wide *w) {
    double special = special_of(&w->d);
    return special != 0 ? special : (double)(w->sum + w->rest);
}

/* The sum of the frame before the run, from its rows: those that have been said and have not left it. */
static void wide_begin(wide *w, const ck_over *op, const ck_over_total *t, const ck_over_run *r, const doubles *was) {
    ck_range range;
    ck_row *row;
    *w = (wide){.d = *was};
    ck_range_open(&range, op->rows, r->partition, (ck_view){0}, (ck_view){0});
    for (int64_t i = 0; i < r->held && ck_range_next(&range, &row); i++) {
        if (i < r->left || ck_row_null(row, t->arg_null)) continue;
        double x = ck_row_f64(row, t->arg_at);
        if (isfinite(x)) add_long(w, x); /* the others are counted in was */
    }
}

/* *d was the total before the run and becomes the one behind it. Infinity stands for a total that no double holds: the
 * next run begins with the frame's rows again. */
static void sum_f64_again(const ck_over *op, const ck_over_total *t, ck_over_sum *out, const ck_over_run *r,
                          doubles *d) {
    int64_t *counts = ck_over_i64(&out->n);
    double *sums = ck_over_f64(&out->sum);
    wide w;
    wide_begin(&w, op, t, r, d);
#define ADD(row, weight)                                                                                               \
    do {                                                                                                               \
        if (!ck_row_null(row, t->arg_null)) add_wide_double(&w, ck_row_f64(row, t->arg_at), (weight));                 \
    } while (0)
#define PUT(i) (counts[i] = w.d.n, sums[i] = wide_as_read(&w))
    ALONG_RUN(op, r, ADD, PUT);
#undef ADD
#undef PUT
    *d = w.d;
    d->sum = (double)(w.sum + w.rest);
    d->rest = isfinite(d->sum) ? (double)((w.sum - d->sum) + w.rest) : 0;
}

static void sum_f64_run(const ck_over *op, const ck_over_total *t, ck_over_sum *out, const ck_over_run *r) {
    doubles d = {ck_row_f64(r->key, t->at[SUM]),        ck_row_f64(r->key, t->at[REST]),
                 ck_row_i64(r->key, t->at[N]),          ck_row_i64(r->key, t->at[NANS]),
                 ck_row_i64(r->key, t->at[INFINITIES]), ck_row_i64(r->key, t->at[NEGATIVE_INFINITIES])};
    const doubles was = d;
    int64_t *counts = ck_over_i64(&out->n);
    double *sums = ck_over_f64(&out->sum);
#define ADD(row, w)                                                                                                    \
    do {                                                                                                               \
        if (!ck_row_null(row, t->arg_null)) add_double(&d, ck_row_f64(row, t->arg_at), (w));                           \
    } while (0)
#define PUT(i) (counts[i] = d.n, sums[i] = as_read(&d))
    ALONG_RUN(op, r, ADD, PUT);
#undef ADD
#undef PUT
    if (CK_UNLIKELY(!isfinite(d.sum)) && op->plan.bounded) { /* else nothing leaves, and the rows are not kept */
        d = was;
        sum_f64_again(op, t, out, r, &d);
    }
    ck_row_set_i64(r->key, t->at[N], d.n);
    ck_row_set_f64(r->key, t->at[SUM], d.sum);
    ck_row_set_f64(r->key, t->at[REST], d.rest);
    ck_row_set_i64(r->key, t->at[NANS], d.nans);
    ck_row_set_i64(r->key, t->at[INFINITIES], d.infinities);
    ck_row_set_i64(r->key, t->at[NEGATIVE_INFINITIES], d.negative_infinities);
}

void ck_over_run_totals(ck_over *op) {
    typedef void (*kernel)(const ck_over *, const ck_over_total *, ck_over_sum *, const ck_over_run *);
    for (uint32_t i = 0; i < op->plan.total_count; i++) {
        const ck_over_total *t = &op->plan.totals[i];
        kernel k = t->phys == CK_PHYS_I64    ? sum_i64_run
                   : t->phys == CK_PHYS_I128 ? sum_i128_run
                   : t->phys == CK_PHYS_F64  ? sum_f64_run
                                             : count_run;
        for (uint32_t n = 0; n < op->run_count; n++) k(op, t, &op->sums[i], &op->runs[n]);
    }
}

/* ---- ranks ---- */

static void rank_run(const ck_over *op, ck_over_fn fn, int64_t *out, const ck_over_run *r) {
    const int64_t *last = ck_over_i64(&op->last);
    int64_t seen = ck_over_get(op, r->key, CK_OVER_SEEN), groups = ck_over_get(op, r->key, CK_OVER_GROUPS);
    for (size_t i = r->first; i < r->first + r->n;) {
        int64_t leading = seen;
        groups++;
        for (size_t end = (size_t)last[i] + 1; i < end; i++) {
            seen++;
            out[i] = fn == CK_OVER_ROW_NUMBER ? seen : fn == CK_OVER_RANK ? leading + 1 : groups;
        }
    }
}

void ck_over_run_ranks(ck_over *op) {
    const int64_t *last = ck_over_i64(&op->last);
    for (uint32_t i = 0; i < op->plan.call_count; i++) {
        ck_over_fn fn = op->plan.calls[i].fn;
        if (fn < CK_OVER_ROW_NUMBER || fn > CK_OVER_DENSE_RANK) continue;
        for (uint32_t n = 0; n < op->run_count; n++) rank_run(op, fn, ck_over_i64(&op->ranks[i]), &op->runs[n]);
    }
    for (uint32_t n = 0; n < op->run_count; n++) {
        const ck_over_run *r = &op->runs[n];
        int64_t groups = ck_over_get(op, r->key, CK_OVER_GROUPS);
        for (size_t i = r->first; i < r->first + r->n; i = (size_t)last[i] + 1) groups++;
        ck_over_set(op, r->key, CK_OVER_GROUPS, groups);
        ck_over_set(op, r->key, CK_OVER_SEEN, ck_over_get(op, r->key, CK_OVER_SEEN) + (int64_t)r->n);
    }
}
