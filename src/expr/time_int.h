/* Calendar and clock arithmetic the date and time functions share. Times are microseconds. */
#ifndef CK_EXPR_TIME_INT_H
#define CK_EXPR_TIME_INT_H

#include "data/text.h"
#include "expr/timezone.h"

#define CK_SECOND_US ((int64_t)1000000)
#define CK_MINUTE_US (60 * CK_SECOND_US)
#define CK_HOUR_US   (60 * CK_MINUTE_US)
#define CK_DAY_US    (24 * CK_HOUR_US)
/* 0001-01-01T00:00:00 and the last microsecond of 9999. */
#define CK_TIME_MIN_US (-62135596800 * CK_SECOND_US)
#define CK_TIME_MAX_US (253402300800 * CK_SECOND_US - 1)
#define CK_DATE_MIN    ((int64_t)-719162)
#define CK_DATE_MAX    ((int64_t)2932896)

static inline int64_t ck_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); } /* b > 0 */
static inline int64_t ck_floor_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r < 0 ? r + b : r;
}

/* The offset of a zone, looked up again only outside the interval it holds for. */
typedef struct ck_zone_cache {
    const ck_timezone *zone; /* NULL: UTC */
    int64_t from, until, offset;
} ck_zone_cache;

static inline ck_zone_cache ck_zone_cache_of(const ck_timezone *z) {
    return (ck_zone_cache){.zone = z, .from = INT64_MAX, .until = INT64_MIN};
}
static inline int64_t ck_zone_local(ck_zone_cache *c, int64_t utc_us) {
    if (!c->zone) return utc_us;
    if (utc_us < c->from || utc_us >= c->until) c->offset = ck_timezone_offset(c->zone, utc_us, &c->from, &c->until);
    return utc_us + c->offset;
}

/* Days of a month; a date moved by months, its day kept within the month. */
unsigned ck_days_in_month(int64_t year, unsigned month);
int64_t ck_add_months(int64_t days, int64_t months);

#endif
