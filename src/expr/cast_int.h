/* Casts: functions_cast.c chooses by the pair of types, the kernels stand in cast_number.c, cast_text.c, cast_time.c.
 */
#ifndef CK_EXPR_CAST_INT_H
#define CK_EXPR_CAST_INT_H

#include "expr/eval_int.h"

extern const ck_impl ck_cast_none; /* the same values: a wider integer, a REAL as DOUBLE */
extern const ck_impl ck_cast_int_narrow, ck_cast_int_double, ck_cast_int_real, ck_cast_int_decimal,
    ck_cast_int_decimal_checked, ck_cast_int_bool, ck_cast_double_int, ck_cast_double_real, ck_cast_double_decimal,
    ck_cast_double_bool, ck_cast_decimal_int, ck_cast_decimal_double, ck_cast_decimal_real, ck_cast_decimal_decimal,
    ck_cast_decimal_bool, ck_cast_bool_int, ck_cast_bool_double, ck_cast_bool_decimal;
extern const ck_impl ck_cast_text_bool, ck_cast_text_int, ck_cast_text_double, ck_cast_text_decimal, ck_cast_text_bytes,
    ck_cast_text_date, ck_cast_text_time, ck_cast_text_timestamp, ck_cast_text_ltz, ck_cast_text_months,
    ck_cast_text_interval, ck_cast_text_text, ck_cast_bytes_text, ck_cast_bytes_bytes, ck_cast_int_text,
    ck_cast_any_text, ck_cast_ltz_text;
extern const ck_impl
    ck_assign_text; /* to VARCHAR(n), BYTES(n): what is longer is an error, spaces at the end are cut */
extern const ck_impl ck_cast_date_timestamp, ck_cast_date_ltz, ck_cast_timestamp_date, ck_cast_timestamp_time,
    ck_cast_timestamp_ltz, ck_cast_ltz_date, ck_cast_ltz_time, ck_cast_ltz_timestamp, ck_cast_precision;

/* ARRAY, MAP, ROW: of the same shape, every leaf with a cast. */
extern const ck_impl ck_cast_nested, ck_assign_nested;
bool ck_cast_nested_possible(const ck_type *from, const ck_type *to);
/* The cast's overload for a pair of types; NULL: there is none. */
const ck_impl *ck_cast_impl(const ck_type *from, const ck_type *to);

/* prepare of kernels that need the session's zone: loads ev->zone. */
CK_NODISCARD ck_status ck_prepare_zone(ck_eval *ev, const ck_expr *call, void **state, ck_error *err);

#endif
