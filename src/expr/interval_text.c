/* See interval_text.h. */
#include "expr/interval_text.h"

#include "data/text.h"
#include "expr/time_int.h"

static void skip_spaces(ck_view *v) {
    while (v->n && *v->p == ' ') v->p++, v->n--;
}

static bool take(ck_view *v, char c) {
    if (!v->n || *v->p != c) return false;
    v->p++, v->n--;
    return true;
}

static bool digits(ck_view *v, int64_t *out) {
    size_t n = 0;
    while (n < v->n && v->p[n] >= '0' && v->p[n] <= '9') n++;
    if (!n || !ck_parse_i64((ck_view){v->p, n}, out)) return false;
    v->p += n, v->n -= n;
    return true;
}

/* The digits behind a point as microseconds, more than six cut. */
static int64_t fraction(ck_view *v) {
    int64_t us = 0, unit = 100000;
    while (v->n && *v->p >= '0' && *v->p <= '9') {
        us += (*v->p - '0') * unit;
        unit /= 10;
        v->p++, v->n--;
    }
    return us;
}

static bool add_scaled(int64_t *sum, int64_t n, int64_t unit) {
    int64_t product;
    return !__builtin_mul_overflow(n, unit, &product) && !__builtin_add_overflow(*sum, product, sum);
}

static bool unit_word(ck_view *v, const char *const *names, size_t count, size_t *which) {
    size_t n = 0;
    while (n < v->n && ck_ascii_lower(v->p[n]) >= 'a' && ck_ascii_lower(v->p[n]) <= 'z') n++;
    ck_view word = {v->p, n};
    if (n > 1 && ck_ascii_lower(v->p[n - 1]) == 's') word.n--;
    for (size_t i = 0; i < count; i++)
        if (ck_view_eq_nocase(word, ck_view_of(names[i]))) {
            *which = i;
            v->p += n, v->n -= n;
            return true;
        }
    return false;
}

/* "2 hours 30 minutes": numbers (with a fraction where micro is set) and units. */
static bool words(ck_view v, const char *const *names, const int64_t *units, size_t count, bool micro, int64_t *out) {
    *out = 0;
    while (v.n) {
        int64_t n, part = 0;
        size_t which;
        int64_t sign = take(&v, '-') ? -1 : 1;
        if (!digits(&v, &n)) return false;
        if (micro && take(&v, '.')) part = fraction(&v);
        skip_spaces(&v);
        if (!unit_word(&v, names, count, &which) || !add_scaled(out, sign * n, units[which])) return false;
        if (part && !add_scaled(out, sign, (int64_t)((__int128_t)part * units[which] / 1000000))) return false;
        skip_spaces(&v);
    }
    return true;
}

static bool signed_by(bool negative, int64_t v, int64_t *out) {
    *out = negative ? -v : v;
    return true;
}

bool ck_parse_months(ck_view v, int64_t *months) {
    static const char *const names[] = {"year", "month", "mon", "quarter", "decade", "century"};
    static const int64_t units[] = {12, 1, 1, 3, 120, 1200};
    if (!v.n) return false;
    ck_view rest = v;
    bool negative = take(&rest, '-');
    if (!negative) (void)take(&rest, '+');
    ck_view r = rest;
    int64_t years, extra = 0, sum = 0;
    if (digits(&r, &years) && take(&r, '-') && digits(&r, &extra) && !r.n) {
        if (extra > 11 || !add_scaled(&sum, years, 12) || !add_scaled(&sum, extra, 1)) return false;
        return signed_by(negative, sum, months);
    }
    return words(rest, names, units, CK_ARRAY_COUNT(names), false, &sum) && signed_by(negative, sum, months);
}

/* [days ]hh:mm[:ss[.fraction]] */
static bool clock_form(ck_view v, int64_t *us) {
    int64_t a, m, s = 0;
    *us = 0;
    if (!digits(&v, &a)) return false;
    if (take(&v, ' ')) {
        skip_spaces(&v);
        if (!add_scaled(us, a, CK_DAY_US) || !digits(&v, &a)) return false;
    }
    if (!take(&v, ':') || !digits(&v, &m) || m > 59) return false;
    if (take(&v, ':')) {
        if (!digits(&v, &s) || s > 59) return false;
        if (take(&v, '.') && !add_scaled(us, fraction(&v), 1)) return false;
    }
    return !v.n && add_scaled(us, a, CK_HOUR_US) && add_scaled(us, m, CK_MINUTE_US) && add_scaled(us, s, CK_SECOND_US);
}

bool ck_parse_interval(ck_view v, int64_t *us) {
    static const char *const names[] = {"week",   "day", "hour",        "minute",      "min",
                                        "second", "sec", "millisecond", "microsecond", "ms"};
    static const int64_t units[] = {7 * CK_DAY_US, CK_DAY_US, CK_HOUR_US, CK_MINUTE_US, CK_MINUTE_US, CK_SECOND_US,
                                    CK_SECOND_US,  1000,      1,          1000};
    if (!v.n) return false;
    bool negative = take(&v, '-');
    if (!negative) (void)take(&v, '+');
    int64_t sum;
    if (clock_form(v, &sum)) return signed_by(negative, sum, us);
    return words(v, names, units, CK_ARRAY_COUNT(names), true, &sum) && signed_by(negative, sum, us);
}
