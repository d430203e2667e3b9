/* POSIX TZ strings, as RFC 8536 has them behind the data (hours of a change may be -167 to 167). */
#include "expr/timezone_int.h"

#include "data/text.h"

typedef struct reader {
    const char *p, *end;
} reader;

static bool next_is(reader *r, char c) {
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool number(reader *r, int64_t most, int64_t *out) {
    int64_t v = 0;
    const char *begin = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        v = v * 10 + (*r->p++ - '0');
        if (v > most) return false;
    }
    *out = v;
    return r->p > begin;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool clock_time(reader *r, int64_t hours_max, int64_t *out) {
    int64_t sign = next_is(r, '-') ? -1 : 1, h, m = 0, s = 0;
    if (sign > 0) (void)next_is(r, '+');
    if (!number(r, hours_max, &h)) return false;
    if (next_is(r, ':')) {
        if (!number(r, 59, &m)) return false;
        if (next_is(r, ':') && !number(r, 59, &s)) return false;
    }
    *out = sign * (h * 3600 + m * 60 + s);
    return true;
}

/* "CET" or "<+03>". */
static bool designation(reader *r) {
    const char *begin = r->p;
    if (next_is(r, '<')) {
        while (r->p < r->end && *r->p != '>') r->p++;
        return next_is(r, '>');
    }
    while (r->p < r->end && ((*r->p >= 'A' && *r->p <= 'Z') || (*r->p >= 'a' && *r->p <= 'z'))) r->p++;
    return r->p - begin >= 3;
}

static bool date(reader *r, ck_tz_date *d) {
    int64_t a, b = 0, c = 0;
    if (next_is(r, 'M')) {
        d->kind = CK_TZ_MONTH_WEEK_DAY;
        if (!number(r, 12, &a) || !next_is(r, '.') || !number(r, 5, &b) || !next_is(r, '.') || !number(r, 6, &c))
            return false;
        if (a < 1 || b < 1) return false;
        d->month = (int)a, d->week = (int)b, d->day = (int)c;
    } else {
        d->kind = next_is(r, 'J') ? CK_TZ_JULIAN : CK_TZ_DAY_OF_YEAR;
        if (!number(r, 365, &a) || (d->kind == CK_TZ_JULIAN && a < 1)) return false;
        d->day = (int)a;
    }
    d->time = 2 * 3600;
    return !next_is(r, '/') || clock_time(r, 167, &d->time);
}

bool ck_tz_rule_parse(ck_view text, ck_tz_rule *out) {
    reader r = {text.p, text.p + text.n};
    int64_t west;
    *out = (ck_tz_rule){0};
    if (!designation(&r) || !clock_time(&r, 24, &west)) return false;
    out->std_offset = -west;
    if (r.p == r.end) return true;
    out->has_dst = true;
    if (!designation(&r)) return false;
    out->dst_offset = out->std_offset + 3600;
    if (r.p < r.end && *r.p != ',') {
        if (!clock_time(&r, 24, &west)) return false;
        out->dst_offset = -west;
    }
    return next_is(&r, ',') && date(&r, &out->start) && next_is(&r, ',') && date(&r, &out->end) && r.p == r.end;
}

static bool is_leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

static int64_t day_of(const ck_tz_date *d, int64_t year) {
    int64_t first = ck_days_from_civil(year, 1, 1);
    if (d->kind == CK_TZ_DAY_OF_YEAR) return first + d->day;
    if (d->kind == CK_TZ_JULIAN) return first + d->day - 1 + (is_leap(year) && d->day >= 60);
    int64_t begin = ck_days_from_civil(year, (unsigned)d->month, 1);
    int64_t next =
        d->month == 12 ? ck_days_from_civil(year + 1, 1, 1) : ck_days_from_civil(year, (unsigned)d->month + 1, 1);
    int64_t weekday = (begin % 7 + 11) % 7; /* 1970-01-01 was a Thursday, 4 */
    int64_t day = begin + (d->day - weekday + 7) % 7 + 7 * (d->week - 1);
    while (day >= next) day -= 7; /* week 5 is the last one */
    return day;
}

void ck_tz_rule_year(const ck_tz_rule *r, int64_t year, int64_t *start, int64_t *end) {
    *start = day_of(&r->start, year) * 86400 + r->start.time - r->std_offset;
    *end = day_of(&r->end, year) * 86400 + r->end.time - r->dst_offset;
}
