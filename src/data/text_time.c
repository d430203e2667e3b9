/* See text.h: dates, times and timestamps, and the proleptic Gregorian calendar behind them. Parsing is strict: what is
 * not exactly one of the forms, or names no moment (month 13, hour 24), is refused. */
#include "data/text.h"

#include "data/digits_int.h"

static const int64_t second_us = 1000000, day_us = 86400000000;
static const int64_t first_us = -719162 * 86400000000, last_us = 2932897 * 86400000000 - 1; /* years 1 to 9999 */

/* ---- calendar ---- */

/* Days are counted in eras of 400 years (146,097 days) with years that begin in March, so that the leap day is the last
 * of its year and the days before a month are (153 m + 2) / 5. Day 0 is 1970-01-01, 719,468 days after 0000-03-01. */
enum { ERA_DAYS = 146097, EPOCH_DAYS = 719468 };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static uint32_t day_of_era(uint32_t year_of_era, unsigned month, unsigned day) {
    uint32_t march_month = month > 2 ? month - 3 : month + 9;
    return year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * march_month + 2) / 5 + day - 1;
}

int64_t ck_days_from_civil(int64_t year, unsigned month, unsigned day) {
    year -= month <= 2;
    int64_t era = floor_div(year, 400);
    return era * ERA_DAYS + day_of_era((uint32_t)(year - era * 400), month, day) - EPOCH_DAYS;
}

void ck_civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day) {
    int64_t era = floor_div(days, ERA_DAYS), of_era = days % ERA_DAYS; /* in this order nothing overflows */
    of_era += (of_era < 0 ? ERA_DAYS : 0) + EPOCH_DAYS;
    era += of_era / ERA_DAYS;
    uint32_t d = (uint32_t)of_era % ERA_DAYS, y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    uint32_t day_of_year = d - (365 * y + y / 4 - y / 100), march_month = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * march_month + 2) / 5 + 1;
    *month = march_month < 10 ? march_month + 3 : march_month - 9;
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
    static const uint32_t units[] = {0, 100000, 10000, 1000, 100, 10, 1}; /* of the last of so many digits */
    uint32_t x = 0, count = 0;
    while (count < v->n && (uint8_t)(v->p[count] - '0') < 10) {
        if (count < 6) x = x * 10 + (uint8_t)(v->p[count] - '0');
        count++;
    }
    if (count == 0 || count > 9) return false;
    *v = (ck_view){v->p + count, v->n - count};
    *us += x * units[count < 6 ? count : 6];
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

/* The nineteen characters nearly every timestamp begins with, all at once. false: it may still be another form. */
static bool eat_common(ck_view *v, int64_t *days, int64_t *us) {
    const char *p = v->p;
    if (v->n < 19 || p[4] != '-' || p[7] != '-' || (p[10] != 'T' && p[10] != ' ') || p[13] != ':' || p[16] != ':')
        return false;
    static const uint8_t at[] = {0, 2, 5, 8, 11, 14, 17}; /* century, year, month, day, hour, minute, second */
    uint32_t x[7], wrong = 0;
    for (unsigned i = 0; i < 7; i++) {
        uint32_t tens = (uint8_t)(p[at[i]] - '0'), ones = (uint8_t)(p[at[i] + 1] - '0');
        wrong |= (tens > 9) | (ones > 9);
        x[i] = tens * 10 + ones;
    }
    uint32_t year = x[0] * 100 + x[1], month = x[2];
    if (wrong || year == 0 || month - 1 > 11 || x[4] > 23 || x[5] > 59 || x[6] > 59) return false;
    if (x[3] - 1 >= days_in_month(year, month)) return false;
    year -= month <= 2;
    uint32_t era = year / 400;
    *days = (int64_t)(era * ERA_DAYS + day_of_era(year - era * 400, month, x[3])) - EPOCH_DAYS;
    *us = (int64_t)(x[4] * 3600 + x[5] * 60 + x[6]) * second_us;
    *v = (ck_view){p + 19, v->n - 19};
    return !eat_char(v, '.') || eat_fraction(v, us);
}

static bool eat_any(ck_view *v, int64_t *days, int64_t *us) {
    *us = 0;
    if (!eat_date(v, days)) return false;
    return v->n == 0 || ((eat_char(v, 'T') || eat_char(v, ' ')) && eat_time(v, us));
}

bool ck_parse_timestamp(ck_view v, int64_t *us, bool *zoned) {
    int64_t days, time_us, offset_us = 0;
    ck_view all = v;
    if (!eat_common(&v, &days, &time_us)) {
        v = all;
        if (!eat_any(&v, &days, &time_us)) return false;
    }
    *zoned = v.n > 0;
    if (v.n && (!eat_zone(&v, &offset_us) || v.n)) return false;
    int64_t t = days * day_us + time_us - offset_us;
    if (t < first_us || t > last_us) return false;
    *us = t;
    return true;
}

/* ---- printing ---- */

size_t ck_print_date(char *p, int64_t days) {
    int64_t year;
    unsigned month, day;
    ck_civil_from_days(days, &year, &month, &day);
    size_t n = 0;
    if (year >= 0 && year <= 9999) {
        ck_put_4(p, (uint32_t)year);
        n = 4;
    } else {
        n = ck_print_i64(p, year);
    }
    p[n] = '-';
    ck_put_2(p + n + 1, month);
    p[n + 3] = '-';
    ck_put_2(p + n + 4, day);
    return n + 6;
}

/* .fff or .ffffff, as many as are not zero and not beyond the precision. */
static size_t print_fraction(char *p, uint32_t us, unsigned precision) {
    unsigned shown = us % 1000 ? 6 : us ? 3 : 0;
    if (shown > precision) shown = precision;
    if (shown == 0) return 0;
    char digits[6];
    ck_put_2(digits, us / 10000);
    ck_put_4(digits + 2, us % 10000);
    p[0] = '.';
    memcpy(p + 1, digits, shown);
    return 1 + shown;
}

int64_t ck_time_at_precision(int precision, int64_t us) {
    static const int64_t units[] = {1000000, 100000, 10000, 1000, 100, 10};
    if (precision < 0 || precision > 5) return us;
    int64_t rest = us % units[precision];
    return us - (rest < 0 ? rest + units[precision] : rest);
}

size_t ck_print_time(char *p, int64_t us, int precision) {
    static const uint32_t units[] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    unsigned places = precision < 0 ? 0 : precision > 6 ? 6 : (unsigned)precision;
    uint32_t seconds = (uint32_t)((uint64_t)us / (uint64_t)second_us) % 86400; /* a time of day, whatever comes */
    uint32_t fraction = (uint32_t)((uint64_t)us % (uint64_t)second_us);
    if (places < 6) fraction -= fraction % units[places];
    ck_put_2(p, seconds / 3600);
    p[2] = ':';
    ck_put_2(p + 3, seconds / 60 % 60);
    p[5] = ':';
    ck_put_2(p + 6, seconds % 60);
    return 8 + print_fraction(p + 8, fraction, places);
}

size_t ck_print_timestamp(char *p, int64_t us, int precision, char separator, bool z) {
    int64_t time_us = us % day_us;
    time_us += time_us < 0 ? day_us : 0;
    size_t n = ck_print_date(p, floor_div(us, day_us));
    p[n++] = separator;
    n += ck_print_time(p + n, time_us, precision);
    if (z) p[n++] = 'Z';
    return n;
}
