/* DECIMAL arithmetic on unscaled 128-bit integers, exact in 256 bits before the one rounding (HALF_UP, away from zero
 * at a half) to the result's scale. Every function returns false when the result has more digits than it may have. */
#ifndef CK_EXPR_DECIMAL_H
#define CK_EXPR_DECIMAL_H

#include "data/column.h"

enum { CK_DECIMAL_DIGITS = 38 };

ck_i128 ck_pow10(int n); /* 0..38 */
static inline ck_u128 ck_i128_abs(ck_i128 v) { return v < 0 ? 0 - (ck_u128)v : (ck_u128)v; }
static inline bool ck_decimal_fits(ck_i128 v, int precision) { return ck_i128_abs(v) < (ck_u128)ck_pow10(precision); }

/* Operands' scales and what the result is. */
typedef struct ck_decimal_op {
    int scale_a, scale_b;
    int precision, scale; /* of the result */
} ck_decimal_op;

bool ck_decimal_add(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out);
bool ck_decimal_sub(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out);
bool ck_decimal_mul(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out);
bool ck_decimal_div(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out); /* b is not 0 */
bool ck_decimal_mod(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out); /* sign of a; b is not 0 */
/* To another scale and precision. */
bool ck_decimal_rescale(ck_i128 v, int from_scale, int precision, int scale, ck_i128 *out);
/* -1, 0, 1 whatever the scales. */
int ck_decimal_compare(ck_i128 a, int scale_a, ck_i128 b, int scale_b);
double ck_decimal_to_double(ck_i128 v, int scale); /* nearest */
/* From the shortest decimal that reads back as v. NaN and infinities do not fit. */
bool ck_decimal_from_double(double v, int precision, int scale, ck_i128 *out);

#endif
