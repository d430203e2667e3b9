/* Values as text and back: the one place for how a number, a decimal, a timestamp reads and prints. Locale-independent.
 * Used by CSV, JSON, CAST, and everything that shows a value. */
#ifndef CK_DATA_TEXT_H
#define CK_DATA_TEXT_H

#include "data/column.h"

/* Parsers take the whole view (no surrounding space unless said) and return false when it is not exactly that. */
bool ck_parse_i64(ck_view v, int64_t *out); /* optional sign, digits; false on overflow */
/* Decimal or exponent (digits on one side of the point are enough), NaN, Infinity, -Infinity in any case. Rounded
 * correctly; false beyond the range of a double. */
bool ck_parse_f64(ck_view v, double *out);
bool ck_parse_bool(ck_view v, bool *out); /* true, false, t, f, yes, no, 1, 0 in any case */
/* To DECIMAL(precision, scale), HALF_UP, exact for any number of digits, an exponent allowed; false with *overflow when
 * it is a number that does not fit. */
bool ck_parse_decimal(ck_view v, int precision, int scale, ck_i128 *out, bool *overflow);
bool ck_parse_date(ck_view v, int64_t *days); /* YYYY-MM-DD, proleptic Gregorian, year 0001..9999 */
bool ck_parse_time(ck_view v, int64_t *us);   /* HH:MM[:SS[.fraction]], up to 9 digits, beyond microseconds cut */
/* ISO 8601: a date, T or a space, a time as above, optional Z or +hh[[:]mm]; a date alone is its midnight. zoned: says
 * whether there was a zone, which has been applied. Results outside years 0001..9999 are refused. */
bool ck_parse_timestamp(ck_view v, int64_t *us, bool *zoned);

/* Printers append nothing but the value. Buffers: 24 bytes for i64, 32 for f64, 48 for decimals, 32 for times; each
 * returns the length, no NUL. */
size_t ck_print_i64(char *p, int64_t v);
size_t ck_print_f64(
    char *p, double v); /* shortest that reads back; "NaN", "Infinity", "-Infinity"; 1e21-style exponents as JSON */
size_t ck_print_f32(char *p, float v);
size_t ck_print_decimal(char *p, ck_i128 v, int scale);
size_t ck_print_date(char *p, int64_t days);
size_t ck_print_time(char *p, int64_t us, int precision);
/* Cut to so many digits of a second, towards the past: what a column of that precision holds. */
int64_t ck_time_at_precision(int precision, int64_t us);
size_t ck_print_timestamp(char *p, int64_t us, int precision, char separator,
                          bool z); /* fraction: precision digits with trailing zeros cut in groups: 0, 3 or 6 */

/* Calendar, proleptic Gregorian. */
int64_t ck_days_from_civil(int64_t year, unsigned month, unsigned day);
void ck_civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day);

/* Any value as SQL would show it: strings bare, NULL as "NULL", bytes as base64, timestamps with a space (LTZ in UTC
 * with Z), intervals as "1-02" and "1 02:03:04.5"; nested values as JSON. For messages and the terminal. */
CK_NODISCARD ck_status ck_print_value(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out);

#endif
