/* Units of time by name, and what they do to a local time. */
#ifndef CK_EXPR_TIME_UNIT_H
#define CK_EXPR_TIME_UNIT_H

#include "base/view.h"

typedef enum ck_unit {
    CK_UNIT_MICROSECOND,
    CK_UNIT_MILLISECOND,
    CK_UNIT_SECOND,
    CK_UNIT_MINUTE,
    CK_UNIT_HOUR,
    CK_UNIT_DAY,
    CK_UNIT_WEEK, /* from Monday */
    CK_UNIT_MONTH,
    CK_UNIT_QUARTER,
    CK_UNIT_YEAR,
    CK_UNIT_DECADE,
    CK_UNIT_CENTURY,
    CK_UNIT_MILLENNIUM,
    /* only parts */
    CK_UNIT_DOW,         /* 0 Sunday .. 6 */
    CK_UNIT_ISODOW,      /* 1 Monday .. 7 */
    CK_UNIT_DOY,         /* 1 .. 366 */
    CK_UNIT_ISOYEAR,     /* of the ISO week */
    CK_UNIT_EPOCH,       /* seconds since 1970 */
    CK_UNIT_DAY_OF_WEEK, /* 1 Sunday .. 7: DAYOFWEEK() */
    CK_UNIT_COUNT
} ck_unit;

bool ck_unit_find(ck_view name, ck_unit *out); /* case ignored, plural allowed */
/* A part of a local time; of a date the time is midnight. */
int64_t ck_unit_part(ck_unit u, int64_t local_us);
/* The beginning of the unit around a local time; 0 for what cannot begin (DOW ...). */
bool ck_unit_can_floor(ck_unit u);
int64_t ck_unit_floor(ck_unit u, int64_t local_us);
/* n units later. false: out of range. */
bool ck_unit_add(ck_unit u, int64_t local_us, int64_t n, int64_t *out);
/* Whole units from a to b, toward zero. */
int64_t ck_unit_between(ck_unit u, int64_t a_us, int64_t b_us);

#endif
