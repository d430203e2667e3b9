/* Text as typed values, for both formats: what is a number, a date, a boolean of a given column, and the sentence when
 * it is not. Scalars only; strings are the formats' own. */
#ifndef CK_FORMAT_VALUE_INT_H
#define CK_FORMAT_VALUE_INT_H

#include "data/type.h"
#include "data/column.h"
#include "format/number_int.h"

/* Why a record is bad. */
typedef struct ck_why {
    ck_mem mem; /* for naming types */
    char text[512];
    int64_t column;    /* 1-based byte in the record, 0 = unknown */
    const char *field; /* NULL = none */
} ck_why;

/* A value on its way into a column. Views borrow from the record. */
typedef struct ck_scalar {
    union {
        bool b;
        int64_t i64;
        double f64;
        ck_i128 i128;
    };
} ck_scalar;

/* Sentences. quoted puts the value in quotes. All return CK_DATA. */
ck_status ck_why_set(ck_why *w, const char *fmt, ...) CK_PRINTF(2, 3);
ck_status ck_why_not_a(ck_why *w, const ck_type *t, ck_view value, bool quoted);
ck_status ck_why_range(ck_why *w, const ck_type *t, ck_view value, bool quoted);

/* A number (v: its text, n: what ck_number_scan made of it) for a numeric type. CK_DATA: *w says why. */
CK_NODISCARD ck_status ck_value_number(const ck_type *t, ck_view v, const ck_number *n, bool quoted, ck_scalar *out,
                                       ck_why *w);
/* Text for any scalar type but VARCHAR and BYTES. lenient: csv's reading (booleans in words, numbers as text, spaces
 * around); else json's of a string. */
CK_NODISCARD ck_status ck_value_text(const ck_type *t, ck_view v, bool lenient, ck_scalar *out, ck_why *w);

/* The common ways for decoders. A decimal of up to 18 digits; false: ck_value_number decides. */
bool ck_value_decimal(const ck_type *t, const ck_number *n, ck_i128 *out);
/* YYYY-MM-DD, T or a space, HH:MM:SS, an optional fraction and Z at p (32 bytes are readable): behind it, or NULL when
 * it is something else or names no moment. */
const uint8_t *ck_timestamp_scan(const uint8_t *p, int64_t *us);

#endif
