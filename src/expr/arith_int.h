/* + - * / % of each family of types: functions_arith.c chooses, the others bind. */
#ifndef CK_EXPR_ARITH_INT_H
#define CK_EXPR_ARITH_INT_H

#include "expr/eval_int.h"

/* Both are integers or DECIMALs, at least one a DECIMAL. */
CK_NODISCARD ck_status ck_bind_decimal_arith(ck_bind_call *call, ck_arith op, ck_error *err);
/* Dates, times, intervals; *bound says whether the types are such. */
CK_NODISCARD ck_status ck_bind_time_arith(ck_bind_call *call, ck_arith op, bool *bound, ck_error *err);
/* Unary minus and ABS of a DECIMAL, an interval. */
extern const ck_impl ck_impl_negate_i128, ck_impl_negate_i64, ck_impl_negate_f64;
/* Marks the rows whose value is outside of the range of an integer type (by ck_kind), where no mark stands yet. */
CK_NODISCARD ck_status ck_mark_outside(ck_eval *ev, const ck_rows *rows, ck_column *c, ck_kind kind, ck_error *err);

#endif
