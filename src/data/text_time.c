/* See text.h: dates, times and timestamps, and the proleptic Gregorian calendar behind them. Parsing is strict: what is
 * not exactly one of the forms, or names no moment (month 13, hour 24), is refused. */
#include "data/text.h"

static const int64_t second_us = 1000000, day_us = 86400000000;

/* ---- calendar ---- */

/* Days are counted in eras of 400 years (146,097 days) with years that begin in March, so that the leap day is the last
 * of its year and the days before a month are (153 m + 2) / 5. Day 0 is 1970-01-01, 719,468 days after 0000-03-01. */
enum { ERA_DAYS = 146097, EPOCH_DAYS = 719468 };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

int64_t ck_days_from_civil(int64_t year, unsigned month, unsigned day) {
    year -= month <= 2;
    int64_t era = floor_div(year, 400), in_era = year - era * 400;
    int64_t march_month = (month + 9) % 12;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;
    return era * ERA_DAYS + in_era * 365 + in_era / 4 - in_era / 100 + day_of_year - EPOCH_DAYS;
}

void ck_civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day) {
    int64_t era = floor_div(days, ERA_DAYS), in_era = days % ERA_DAYS; /* in this order nothing overflows */
    in_era += (in_era < 0 ? ERA_DAYS : 0) + EPOCH_DAYS;
    era += in_era / ERA_DAYS;
    in_era %= ERA_DAYS;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t day_of_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;
    *day = (unsigned)(day_of_year - (153 * march_month + 2) / 5 + 1);
    *month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9);
    *year = era * 400 + y + (*month <= 2);
}

static unsigned days_in_month(unsigned year, unsigned month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

/* ---- parsing ---- */

/* Exactly `count` digits; each of these takes what it read off *v. */
static bool eat_digits(ck_view *v, unsigned count, unsigned *out) {
    if (v->n < count) return false;
    unsigned x = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned d = (unsigned char)(v->p[i] - '0');
        if (d > 9) return false;
        x = x * 10 + d;
    }
    *v = (ck_view){v->p + count, v->n - count};
    *out = x;
    return true;
}

static bool eat_char(ck_view *v, char c) {
    if (v->n == 0 || v->p[0] != c) return false;
    *v = (ck_view){v->p + 1, v->n - 1};
    return true;
}

static bool eat_date(ck_view *v, int64_t *days) {
    unsigned y, m, d;
    if (!eat_digits(v, 4, &y) || !eat_char(v, '-') || !eat_digits(v, 2, &m) || !eat_char(v, '-') ||
        !eat_digits(v, 2, &d))
        return false;
    if (y == 0 || m == 0 || m > 12 || d == 0 || d > days_in_month(y, m)) return false;
    *days = ck_days_from_civil(y, m, d);
    return true;
}

static bool eat_fraction(ck_view *v, int64_t *us) {
    unsigned digit, count = 0, x = 0;
    for (; eat_digits(v, 1, &digit); count++)
        if (count < 6) x = x * 10 + digit;
    if (count == 0 || count > 9) return false;
    for (unsigned i = count; i < 6; i++) x *= 10;
    *us += x;
    return true;
}

static bool eat_time(ck_view *v, int64_t *us) {
    unsigned h, m, s = 0;
    if (!eat_digits(v, 2, &h) || !eat_char(v, ':') || !eat_digits(v, 2, &m)) return false;
    bool seconds = eat_char(v, ':');
    if (seconds && !eat_digits(v, 2, &s)) return false;
    if (h > 23 || m > 59 || s > 59) return false;
    *us = ((int64_t)h * 3600 + m * 60 + s) * second_us;
    return !(seconds && eat_char(v, '.')) || eat_fraction(v, us);
}

/* Z, +hh, +hhmm or +hh:mm, up to 18 hours. */
static bool eat_zone(ck_view *v, int64_t *offset_us) {
    *offset_us = 0;
    if (eat_char(v, 'Z')) return true;
    bool west = v->n && v->p[0] == '-';
    if (!west && !(v->n && v->p[0] == '+')) return false;
    *v = (ck_view){v->p + 1, v->n - 1};
    unsigned h, m = 0;
    if (!eat_digits(v, 2, &h)) return false;
    if (v->n) {
        eat_char(v, ':');
        if (!eat_digits(v, 2, &m)) return false;
    }
    if (m > 59 || h * 60 + m > 18 * 60) return false;
    *offset_us = (int64_t)(h * 60 + m) * 60 * second_us * (west ? -1 : 1);
    return true;
}

bool ck_parse_date(ck_view v, int64_t *days) {
    int64_t d;
    if (!eat_date(&v, &d) || v.n) return false;
    *days = d;
    return true;
}

bool ck_parse_time(ck_view v, int64_t *us) {
    int64_t t;
    if (!eat_time(&v, &t) || v.n) return false;
    *us = t;
    return true;
}

bool ck_parse_timestamp(ck_view v, int64_t *us, bool *zoned) {
    int64_t days, time_us = 0, offset_us = 0;
    if (!eat_date(&v, &days)) return false;
    *zoned = false;
    if (v.n) {
        if (!(eat_char(&v, 'T') || eat_char(&v, ' ')) || !eat_time(&v, &time_us)) return false;
        if (v.n) {
            if (!eat_zone(&v, &offset_us) || v.n) return false;
            *zoned = true;
        }
    }
    int64_t t = days * day_us + time_us - offset_us;
    if (t < ck_days_from_civil(1, 1, 1) * day_us || t >= ck_days_from_civil(10000, 1, 1) * day_us) return false;
    *us = t;
    return true;
}

/* ---- printing ---- */

static void two_digits(char *p, unsigned v) {
    p[0] = (char)('0' + v / 10);
    p[1] = (char)('0' + v % 10);
}

size_t ck_print_date(char *p, int64_t days) {
    int64_t year;
    unsigned month, day;
    ck_civil_from_days(days, &year, &month, &day);
    size_t n = 0;
    if (year >= 0 && year <= 9999) {
        two_digits(p, (unsigned)year / 100);
        two_digits(p + 2, (unsigned)year % 100);
        n = 4;
    } else {
        n = ck_print_i64(p, year);
    }
    p[n] = '-';
    two_digits(p + n + 1, month);
    p[n + 3] = '-';
    two_digits(p + n + 4, day);
    return n + 6;
}

/* .fff or .ffffff, as many as are not zero and not beyond the precision. */
static size_t print_fraction(char *p, unsigned us, int precision) {
    unsigned shown = us % 1000 ? 6 : us ? 3 : 0;
    if (shown > (unsigned)precision) shown = (unsigned)precision;
    if (shown == 0) return 0;
    char digits[6];
    for (int i = 5; i >= 0; i--, us /= 10) digits[i] = (char)('0' + us % 10);
    p[0] = '.';
    memcpy(p + 1, digits, shown);
    return 1 + shown;
}

size_t ck_print_time(char *p, int64_t us, int precision) {
    static const int64_t units[] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    us -= us % units[precision < 0 ? 0 : precision > 6 ? 6 : precision];
    unsigned seconds = (unsigned)(us / second_us);
    two_digits(p, seconds / 3600);
    p[2] = ':';
    two_digits(p + 3, seconds / 60 % 60);
    p[5] = ':';
    two_digits(p + 6, seconds % 60);
    return 8 + print_fraction(p + 8, (unsigned)(us % second_us), precision);
}

size_t ck_print_timestamp(char *p, int64_t us, int precision, char separator, bool z) {
    size_t n = ck_print_date(p, floor_div(us, day_us));
    p[n++] = separator;
    n += ck_print_time(p + n, (us % day_us + day_us) % day_us, precision);
    if (z) p[n++] = 'Z';
    return n;
}
