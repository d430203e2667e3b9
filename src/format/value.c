/* See value_int.h. */
#include "format/value_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "data/text.h"

enum { SHOWN_BYTES_MAX = 64 };

ck_status ck_why_set(ck_why *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(w->text, sizeof w->text, fmt, ap);
    va_end(ap);
    if (n < 0) w->text[0] = 0;
    return CK_DATA;
}

/* The value as a sentence may show it: bounded, cut between characters, control characters as dots. */
static void show(ck_view v, bool quoted, char *out, size_t out_bytes) {
    size_t n = v.n, at = 0;
    if (n > SHOWN_BYTES_MAX) {
        n = SHOWN_BYTES_MAX;
        while (n > 0 && ((uint8_t)v.p[n] & 0xC0) == 0x80) n--;
    }
    if (quoted) out[at++] = '"';
    for (size_t i = 0; i < n && at + 6 < out_bytes; i++)
        out[at++] = (uint8_t)v.p[i] < 0x20 || v.p[i] == 0x7F ? '.' : v.p[i];
    if (n < v.n) memcpy(out + at, "...", 3), at += 3;
    if (quoted) out[at++] = '"';
    out[at] = 0;
}

/* "BIGINT", "DECIMAL(10,2)" with its article. */
static void type_with_article(const ck_type *t, ck_mem mem, char *out, size_t out_bytes) {
    if (t->kind == CK_TYPE_BYTES) {
        (void)snprintf(out, out_bytes, "BYTES in base64");
        return;
    }
    ck_bytes name;
    ck_bytes_init(&name, mem, 4096);
    const char *text = "value of its type";
    if (ck_type_print(t, &name) == CK_OK && ck_bytes_terminate(&name) == CK_OK) text = name.p;
    bool vowel = strchr("AEIOU", text[0]) != NULL;
    (void)snprintf(out, out_bytes, "%s %.160s", vowel ? "an" : "a", text);
    ck_bytes_destroy(&name);
}

ck_status ck_why_not_a(ck_why *w, const ck_type *t, ck_view value, bool quoted) {
    char shown[SHOWN_BYTES_MAX + 16], type[192];
    show(value, quoted, shown, sizeof shown);
    type_with_article(t, w->mem, type, sizeof type);
    return ck_why_set(w, "%s is not %s", shown, type);
}

ck_status ck_why_range(ck_why *w, const ck_type *t, ck_view value, bool quoted) {
    char shown[SHOWN_BYTES_MAX + 16], type[192];
    show(value, quoted, shown, sizeof shown);
    type_with_article(t, w->mem, type, sizeof type);
    return ck_why_set(w, "%s is out of range for %s", shown, strchr(type, ' ') + 1);
}

/* ---- numbers ---- */

static ck_status integer(const ck_type *t, ck_view v, const ck_number *n, bool quoted, int64_t *out, ck_why *w) {
    int64_t lo, hi;
    bool range;
    ck_kind_int_range(t->kind, &lo, &hi);
    if (!ck_number_i64(n, out, &range)) return range ? ck_why_range(w, t, v, quoted) : ck_why_not_a(w, t, v, quoted);
    if (*out < lo || *out > hi) return ck_why_range(w, t, v, quoted);
    return CK_OK;
}

static ck_status real(const ck_type *t, ck_view v, double d, bool finite, bool quoted, double *out, ck_why *w) {
    if (t->kind == CK_TYPE_REAL) d = (double)(float)d;
    if (finite && !isfinite(d)) return ck_why_range(w, t, v, quoted);
    *out = d;
    return CK_OK;
}

static const uint64_t power_of_ten[] = {1ULL,
                                        10ULL,
                                        100ULL,
                                        1000ULL,
                                        10000ULL,
                                        100000ULL,
                                        1000000ULL,
                                        10000000ULL,
                                        100000000ULL,
                                        1000000000ULL,
                                        10000000000ULL,
                                        100000000000ULL,
                                        1000000000000ULL,
                                        10000000000000ULL,
                                        100000000000000ULL,
                                        1000000000000000ULL,
                                        10000000000000000ULL,
                                        100000000000000000ULL,
                                        1000000000000000000ULL};

bool ck_value_decimal(const ck_type *t, const ck_number *n, ck_i128 *out) {
    int64_t shift = n->exponent + t->scale;
    if (!n->exact || shift < 0 || shift > 18) return false;
    uint64_t v;
    if (__builtin_mul_overflow(n->digits, power_of_ten[shift], &v)) return false;
    if (v >= power_of_ten[t->precision < 18 ? t->precision : 18]) return false;
    *out = n->negative ? -(ck_i128)v : (ck_i128)v;
    return true;
}

static ck_status decimal(const ck_type *t, ck_view v, const ck_number *n, bool quoted, ck_i128 *out, ck_why *w) {
    bool overflow = false;
    if (ck_value_decimal(t, n, out)) return CK_OK;
    if (ck_parse_decimal(v, t->precision, t->scale, out, &overflow)) return CK_OK;
    return overflow ? ck_why_range(w, t, v, quoted) : ck_why_not_a(w, t, v, quoted);
}

ck_status ck_value_number(const ck_type *t, ck_view v, const ck_number *n, bool quoted, ck_scalar *out, ck_why *w) {
    if (ck_kind_is_integer(t->kind)) return integer(t, v, n, quoted, &out->i64, w);
    if (ck_kind_is_float(t->kind)) {
        double d;
        const uint8_t *p = (const uint8_t *)v.p;
        if (!ck_number_f64(n, &d) && !ck_number_f64_exact(p, p + v.n, &d) && !ck_parse_f64(v, &d))
            return ck_why_range(w, t, v, quoted); /* it is a number */
        return real(t, v, d, true, quoted, &out->f64, w);
    }
    if (t->kind == CK_TYPE_DECIMAL) return decimal(t, v, n, quoted, &out->i128, w);
    return ck_why_not_a(w, t, v, quoted);
}

/* ---- text ---- */

static ck_view trimmed(ck_view v) {
    while (v.n > 0 && (v.p[0] == ' ' || v.p[0] == '\t')) v.p++, v.n--;
    while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t')) v.n--;
    return v;
}

static bool is_float_word(ck_view v) {
    return ck_view_is(v, "NaN") || ck_view_is(v, "Infinity") || ck_view_is(v, "-Infinity");
}

/* A number by JSON's grammar; lenient: also with a plus or zeros in front. */
static bool scan(ck_view v, bool lenient, ck_number *n) {
    const uint8_t *p = (const uint8_t *)v.p, *end = p + v.n, *at;
    bool minus = false;
    if (lenient && v.n > 0) {
        minus = *p == '-';
        p += *p == '-' || *p == '+';
        while (end - p > 1 && p[0] == '0' && p[1] >= '0' && p[1] <= '9') p++;
        if (p == end || *p == '-') return false;
    }
    if (p == end || ck_number_scan(p, n, &at) != end) return false;
    n->negative |= minus;
    return true;
}

static ck_status number_text(const ck_type *t, ck_view v, bool lenient, ck_scalar *out, ck_why *w) {
    ck_number n;
    double d;
    if (scan(v, lenient, &n)) return ck_value_number(t, v, &n, true, out, w);
    if (ck_kind_is_float(t->kind) && (lenient || is_float_word(v)) && ck_parse_f64(v, &d))
        return real(t, v, d, isfinite(d), true, &out->f64, w); /* .5, 5., words */
    bool overflow = false;
    if (t->kind == CK_TYPE_DECIMAL && ck_parse_decimal(v, t->precision, t->scale, &out->i128, &overflow)) return CK_OK;
    return overflow ? ck_why_range(w, t, v, true) : ck_why_not_a(w, t, v, true);
}

ck_status ck_value_text(const ck_type *t, ck_view v, bool lenient, ck_scalar *out, ck_why *w) {
    bool ok = false, zoned;
    ck_view text = lenient ? trimmed(v) : v;
    switch (t->kind) {
    case CK_TYPE_BOOLEAN: ok = lenient && ck_parse_bool(text, &out->b); break;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT:
        if (lenient) return number_text(t, text, true, out, w);
        break;
    case CK_TYPE_REAL:
    case CK_TYPE_DOUBLE:
        if (lenient) return number_text(t, text, true, out, w);
        ok = is_float_word(text) && ck_parse_f64(text, &out->f64);
        break;
    case CK_TYPE_DECIMAL: return number_text(t, text, lenient, out, w);
    case CK_TYPE_DATE: ok = ck_parse_date(text, &out->i64); break;
    case CK_TYPE_TIME:
        ok = ck_parse_time(text, &out->i64);
        if (ok) out->i64 = ck_time_at_precision(t->precision, out->i64);
        break;
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ:
        ok = ck_parse_timestamp(text, &out->i64, &zoned);
        if (ok) out->i64 = ck_time_at_precision(t->precision, out->i64);
        break;
    default: break;
    }
    return ok ? CK_OK : ck_why_not_a(w, t, v, true);
}
