/* What variances and standard deviations are made of: count, sum and sum of squares. Both sums have twice the digits of
 * a double, so that their difference keeps those of the result, also far from zero and after rows were taken back, and
 * so that order, windows and parallelism hardly matter. NaN, infinities and what has no square are counted apart so
 * that they can leave again, and everything is zero once nothing is left. */
#include "operator/accumulator.h"

#include <math.h>

enum { COUNT, SUM, SUM_LOW, SQUARES, SQUARES_LOW, SPECIAL, MOMENT_FIELDS };

/* ---- twice a double: high + low, low at most half a unit in the last place of high ---- */

typedef struct twice {
    double high, low;
} twice;

static inline twice sum_of(double a, double b) { /* exact */
    double s = a + b, t = s - a;
    return (twice){s, (a - (s - t)) + (b - t)};
}
static inline twice in_order(double high, double low) { /* exact where |high| >= |low| */
    double s = high + low;
    return (twice){s, low - (s - high)};
}
static inline twice square_of(double x) { /* exact */
    double p = x * x;
    return (twice){p, fma(x, x, -p)};
}
static inline twice add(twice a, twice b) {
    twice s = sum_of(a.high, b.high), t = sum_of(a.low, b.low);
    s = in_order(s.high, s.low + t.high);
    return in_order(s.high, s.low + t.low);
}
static inline twice negative(twice a) { return (twice){-a.high, -a.low}; }
static inline twice square(twice a) {
    twice p = square_of(a.high);
    return in_order(p.high, p.low + 2 * a.high * a.low);
}
static inline twice divide(twice a, double by) {
    double q = a.high / by, p = q * by;
    twice rest = add(a, (twice){-p, -fma(q, by, -p)});
    return in_order(q, rest.high / by);
}

/* ---- updating ---- */

static inline twice read(const ck_acc *a, const ck_row *row, int field) {
    return (twice){ck_row_f64(row, a->offset[field]), ck_row_f64(row, a->offset[field + 1])};
}
static inline void write(const ck_acc *a, ck_row *row, int field, twice v) {
    ck_row_set_f64(row, a->offset[field], v.high);
    ck_row_set_f64(row, a->offset[field + 1], v.low);
}

static inline void count(const ck_acc *a, ck_row *row, int field, int64_t more) {
    ck_row_set_i64(row, a->offset[field], ck_row_i64(row, a->offset[field]) + more);
}

static inline void put(const ck_acc *a, ck_row *row, twice sum, twice squares, int64_t n) {
    count(a, row, COUNT, n);
    bool none = ck_row_i64(row, a->offset[COUNT]) == 0;
    write(a, row, SUM, none ? (twice){0} : add(read(a, row, SUM), sum));
    write(a, row, SQUARES, none ? (twice){0} : add(read(a, row, SQUARES), squares));
}

static ck_status moments_update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                                ck_op_ctx *ctx) {
    (void)keys;
    (void)ctx;
    const double *v = b->columns[a->arg]->f64;
    for (uint32_t i = 0; i < lane->n; i++) {
        double x = v[ck_lane_at(lane, i)];
        int weight = ck_lane_weight(lane, i);
        twice sum = {x, 0}, squares = square_of(x);
        if (CK_UNLIKELY(squares.high - squares.high != 0)) {
            count(a, lane->rows[i], SPECIAL, weight);
        } else if (weight > 0) {
            put(a, lane->rows[i], sum, squares, 1);
        } else {
            put(a, lane->rows[i], negative(sum), negative(squares), -1);
        }
    }
    return CK_OK;
}

static ck_status moments_merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                               const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)from;
    (void)dst_keys;
    (void)ctx;
    for (uint32_t i = 0; i < src->n; i++) {
        const ck_row *row = src->rows[i];
        put(a, dst[i], read(a, row, SUM), read(a, row, SQUARES), ck_row_i64(row, a->offset[COUNT]));
        count(a, dst[i], SPECIAL, ck_row_i64(row, a->offset[SPECIAL]));
    }
    return CK_OK;
}

/* ---- reading ---- */

bool ck_acc_variance(const ck_acc *a, const ck_row *row, bool of_sample, double *out) {
    int64_t n = ck_row_i64(row, a->offset[COUNT]), special = ck_row_i64(row, a->offset[SPECIAL]);
    int64_t divisor = n + special - of_sample;
    *out = NAN;
    if (divisor <= 0) return false;
    if (special) return true;
    twice apart = add(read(a, row, SQUARES), negative(divide(square(read(a, row, SUM)), (double)n)));
    *out = apart.high > 0 ? apart.high / (double)divisor : 0; /* less than 0: what rounding left */
    return true;
}

/* Planned without a value of its own: results are variances. */
static ck_status no_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    (void)g;
    (void)type;
    (void)out;
    return ck_fail(ctx->error, CK_INVALID, "%s: moments are no result", a->field);
}

ck_status ck_acc_plan_moments(ck_acc *a, ck_arena *arena, ck_error *err) {
    static const char *const suffix[MOMENT_FIELDS] = {"", ".sum", ".sum_low", ".squares", ".squares_low", ".special"};
    if (ck_type_phys(a->arg_type) != CK_PHYS_F64)
        return ck_fail(err, CK_INVALID, "%s: a variance of %s is not possible", a->field,
                       ck_type_name(arena, a->arg_type));
    a->update = moments_update;
    a->merge = moments_merge;
    a->value = no_value;
    a->field_count = MOMENT_FIELDS;
    for (uint32_t i = 0; i < MOMENT_FIELDS; i++) {
        const char *name = ck_arena_printf(arena, "%s%s", a->field, suffix[i]);
        if (!name) return ck_nomem(err, arena->mem, CK_NAME_BYTES_MAX);
        bool whole = i == COUNT || i == SPECIAL;
        a->fields[i] = (ck_field){name, ck_type_simple(whole ? CK_TYPE_BIGINT : CK_TYPE_DOUBLE), false};
    }
    return CK_OK;
}
