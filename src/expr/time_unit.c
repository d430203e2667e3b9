/* See time_unit.h. */
#include "expr/time_unit.h"

#include "expr/time_int.h"

static const char *const names[CK_UNIT_COUNT] = {
    "microsecond", "millisecond", "second",     "minute", "hour",   "day", "week",    "month", "quarter",  "year",
    "decade",      "century",     "millennium", "dow",    "isodow", "doy", "isoyear", "epoch", "dayofweek"};

bool ck_unit_find(ck_view name, ck_unit *out) {
    for (int i = 0; i < CK_UNIT_COUNT; i++) {
        ck_view n = ck_view_of(names[i]), singular = name;
        if (i <= CK_UNIT_DECADE && name.n && ck_ascii_lower(name.p[name.n - 1]) == 's') singular.n--;
        if (!ck_view_eq_nocase(n, name) && !ck_view_eq_nocase(n, singular)) continue;
        *out = (ck_unit)i;
        return true;
    }
    return false;
}

typedef struct civil {
    int64_t days, year;
    unsigned month, day;
} civil;

static civil civil_of(int64_t local_us) {
    civil c = {.days = ck_floor_div(local_us, CK_DAY_US)};
    ck_civil_from_days(c.days, &c.year, &c.month, &c.day);
    return c;
}

/* The Thursday of a day's ISO week decides its year and number. */
static int64_t iso_thursday(int64_t days) { return days - ck_floor_mod(days + 3, 7) + 3; }

static int64_t iso_year(int64_t days) { return civil_of(iso_thursday(days) * CK_DAY_US).year; }

static int64_t iso_week(int64_t days) {
    int64_t thursday = iso_thursday(days);
    return (thursday - ck_days_from_civil(civil_of(thursday * CK_DAY_US).year, 1, 1)) / 7 + 1;
}

static int64_t calendar_part(ck_unit u, int64_t local_us) {
    civil c = civil_of(local_us);
    switch (u) {
    case CK_UNIT_DAY: return c.day;
    case CK_UNIT_WEEK: return iso_week(c.days);
    case CK_UNIT_MONTH: return c.month;
    case CK_UNIT_QUARTER: return (c.month - 1) / 3 + 1;
    case CK_UNIT_YEAR: return c.year;
    case CK_UNIT_DECADE: return ck_floor_div(c.year, 10);
    case CK_UNIT_CENTURY: return ck_floor_div(c.year - 1, 100) + 1;
    case CK_UNIT_MILLENNIUM: return ck_floor_div(c.year - 1, 1000) + 1;
    case CK_UNIT_DOW: return ck_floor_mod(c.days + 4, 7);
    case CK_UNIT_ISODOW: return ck_floor_mod(c.days + 3, 7) + 1;
    case CK_UNIT_DOY: return c.days - ck_days_from_civil(c.year, 1, 1) + 1;
    case CK_UNIT_ISOYEAR: return iso_year(c.days);
    default: return ck_floor_mod(c.days + 4, 7) + 1;
    }
}

int64_t ck_unit_part(ck_unit u, int64_t local_us) {
    switch (u) {
    case CK_UNIT_MICROSECOND: return ck_floor_mod(local_us, CK_MINUTE_US);
    case CK_UNIT_MILLISECOND: return ck_floor_mod(local_us, CK_MINUTE_US) / 1000;
    case CK_UNIT_SECOND: return ck_floor_mod(local_us, CK_MINUTE_US) / CK_SECOND_US;
    case CK_UNIT_MINUTE: return ck_floor_mod(local_us, CK_HOUR_US) / CK_MINUTE_US;
    case CK_UNIT_HOUR: return ck_floor_mod(local_us, CK_DAY_US) / CK_HOUR_US;
    case CK_UNIT_EPOCH: return ck_floor_div(local_us, CK_SECOND_US);
    default: return calendar_part(u, local_us);
    }
}

static int64_t fixed_us(ck_unit u) {
    static const int64_t us[] = {1, 1000, CK_SECOND_US, CK_MINUTE_US, CK_HOUR_US, CK_DAY_US, 7 * CK_DAY_US};
    return u <= CK_UNIT_WEEK ? us[u] : 0;
}

static int64_t unit_months(ck_unit u) {
    switch (u) {
    case CK_UNIT_MONTH: return 1;
    case CK_UNIT_QUARTER: return 3;
    case CK_UNIT_YEAR: return 12;
    case CK_UNIT_DECADE: return 120;
    case CK_UNIT_CENTURY: return 1200;
    default: return 12000;
    }
}

bool ck_unit_can_floor(ck_unit u) { return u <= CK_UNIT_MILLENNIUM; }

int64_t ck_unit_floor(ck_unit u, int64_t t) {
    if (u == CK_UNIT_WEEK) {
        int64_t day = ck_floor_div(t, CK_DAY_US);
        return (day - ck_floor_mod(day + 3, 7)) * CK_DAY_US;
    }
    if (u < CK_UNIT_WEEK) return t - ck_floor_mod(t, fixed_us(u));
    civil c = civil_of(t);
    int64_t first = u >= CK_UNIT_CENTURY; /* centuries begin with years 1, 101 ... */
    int64_t month = (c.year - first) * 12 + (int64_t)c.month - 1;
    month -= ck_floor_mod(month, unit_months(u));
    int64_t year = ck_floor_div(month, 12) + first;
    return ck_days_from_civil(year, (unsigned)ck_floor_mod(month, 12) + 1, 1) * CK_DAY_US;
}

bool ck_unit_add(ck_unit u, int64_t t, int64_t n, int64_t *out) {
    int64_t step;
    if (u <= CK_UNIT_WEEK) {
        if (__builtin_mul_overflow(n, fixed_us(u), &step) || __builtin_add_overflow(t, step, out)) return false;
    } else {
        if (__builtin_mul_overflow(n, unit_months(u), &step) || step < -240000 || step > 240000) return false;
        *out = ck_add_months(ck_floor_div(t, CK_DAY_US), step) * CK_DAY_US + ck_floor_mod(t, CK_DAY_US);
    }
    return *out >= CK_TIME_MIN_US && *out <= CK_TIME_MAX_US;
}

int64_t ck_unit_between(ck_unit u, int64_t a, int64_t b) {
    if (u <= CK_UNIT_WEEK) return (int64_t)(((__int128_t)b - a) / fixed_us(u));
    if (a > b) return -ck_unit_between(u, b, a);
    civil x = civil_of(a), y = civil_of(b);
    int64_t months = (y.year * 12 + (int64_t)y.month) - (x.year * 12 + (int64_t)x.month);
    /* A month is over on the day of the month it began on, or on the last one where there is no such day: where adding
     * months leads, too. */
    unsigned last = ck_days_in_month(y.year, y.month), day = x.day < last ? x.day : last;
    int64_t in_x = (int64_t)day * CK_DAY_US + ck_floor_mod(a, CK_DAY_US);
    int64_t in_y = (int64_t)y.day * CK_DAY_US + ck_floor_mod(b, CK_DAY_US);
    if (in_y < in_x) months--;
    return months / unit_months(u);
}
