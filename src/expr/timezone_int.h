/* The rule at the end of a TZif file: "CET-1CEST,M3.5.0,M10.5.0/3". */
#ifndef CK_EXPR_TIMEZONE_INT_H
#define CK_EXPR_TIMEZONE_INT_H

#include "base/view.h"

enum { CK_RULE_CHANGES_MAX = 810 }; /* two a year for 400 years and some */

typedef struct ck_tz_date {
    enum { CK_TZ_MONTH_WEEK_DAY, CK_TZ_JULIAN, CK_TZ_DAY_OF_YEAR } kind; /* Mm.w.d, Jn (no 29 February), n (from 0) */
    int month, week, day;
    int64_t time; /* seconds of that day, in the local time before the change */
} ck_tz_date;

typedef struct ck_tz_rule {
    int64_t std_offset, dst_offset; /* seconds east */
    bool has_dst;
    ck_tz_date start, end; /* of daylight saving time */
} ck_tz_rule;

bool ck_tz_rule_parse(ck_view text, ck_tz_rule *out);
/* The instants (seconds, UTC) at which daylight saving time starts and ends in a year. */
void ck_tz_rule_year(const ck_tz_rule *r, int64_t year, int64_t *start, int64_t *end);

#endif
