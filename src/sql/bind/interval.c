/* INTERVAL literals: '5' SECOND, '1-2' YEAR TO MONTH, '1 02:03:04.5' DAY TO SECOND, '5 minutes 3 seconds'. Any number
 * of digits that a 64-bit count of months or microseconds can hold. */
#include "sql/bind/bind_int.h"

static const int64_t unit_size[] = {
    /* months up to MONTH, microseconds from WEEK on */
    [CK_UNIT_YEAR] = 12,
    [CK_UNIT_QUARTER] = 3,
    [CK_UNIT_MONTH] = 1,
    [CK_UNIT_WEEK] = 7 * 86400000000LL,
    [CK_UNIT_DAY] = 86400000000LL,
    [CK_UNIT_HOUR] = 3600000000LL,
    [CK_UNIT_MINUTE] = 60000000LL,
    [CK_UNIT_SECOND] = 1000000LL,
    [CK_UNIT_MILLISECOND] = 1000LL,
    [CK_UNIT_MICROSECOND] = 1LL,
};
static bool is_months(ck_ast_unit u) { return u <= CK_UNIT_MONTH; }

typedef struct reader {
    const char *p, *end;
    bool negative, overflow;
    bool any_months, any_micros;
    ck_i128 months, micros;
} reader;

static void skip_space(reader *r) {
    while (r->p < r->end && *r->p == ' ') r->p++;
}

static bool take_sign(reader *r) {
    if (r->p < r->end && (*r->p == '-' || *r->p == '+')) return *r->p++ == '-';
    return false;
}

/* Digits with an optional fraction, in units of `size`; fractions are cut at its smallest part. */
static bool take_amount(reader *r, int64_t size, bool fraction, ck_i128 *out) {
    const char *from = r->p;
    ck_i128 v = 0, limit = (ck_i128)INT64_MAX;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if ((v = v * 10 + (*r->p - '0')) > limit) v = limit, r->overflow = true;
    if (r->p == from) return false;
    v *= size;
    if (fraction && r->p < r->end && *r->p == '.') {
        const char *digits = ++r->p;
        int64_t scale = size;
        for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) v += (scale /= 10) * (*r->p - '0');
        if (r->p == digits) return false;
    }
    *out = v;
    return true;
}

static void add(reader *r, ck_ast_unit unit, ck_i128 v) {
    if (is_months(unit)) {
        r->months += v, r->any_months = true;
    } else {
        r->micros += v, r->any_micros = true;
    }
}

static ck_ast_unit unit_word(ck_view w) {
    static const char *const names[] = {"",     "year",   "quarter", "month",       "week",       "day",
                                        "hour", "minute", "second",  "millisecond", "microsecond"};
    if (w.n > 1 && ck_ascii_lower(w.p[w.n - 1]) == 's') w.n--;
    for (size_t i = 1; i < CK_ARRAY_COUNT(names); i++)
        if (ck_view_eq_nocase(w, ck_view_of(names[i]))) return (ck_ast_unit)i;
    return CK_UNIT_NONE;
}

/* '5 minutes -3 seconds', as PostgreSQL writes them. */
static bool read_words(reader *r) {
    bool any = false;
    for (skip_space(r); r->p < r->end; skip_space(r)) {
        bool minus = take_sign(r);
        const char *at = r->p;
        ck_i128 v;
        if (!take_amount(r, 1, true, &v)) return false;
        skip_space(r);
        const char *word = r->p;
        while (r->p < r->end && ((*r->p >= 'a' && *r->p <= 'z') || (*r->p >= 'A' && *r->p <= 'Z'))) r->p++;
        const char *after = r->p;
        ck_ast_unit unit = unit_word((ck_view){word, (size_t)(after - word)});
        if (!unit) return false;
        r->p = at; /* again, now in that unit */
        if (!take_amount(r, unit_size[unit], !is_months(unit), &v)) return false;
        r->p = after;
        add(r, unit, minus ? -v : v);
        any = true;
    }
    return any;
}

/* 'Y-M', 'D H:M:S' and their parts, from unit `from` down to unit `to`. */
static bool read_parts(reader *r, ck_ast_unit from, ck_ast_unit to) {
    static const ck_ast_unit order[] = {CK_UNIT_YEAR, CK_UNIT_MONTH,  CK_UNIT_DAY,
                                        CK_UNIT_HOUR, CK_UNIT_MINUTE, CK_UNIT_SECOND};
    bool minus = take_sign(r), first = true;
    for (size_t i = 0; i < CK_ARRAY_COUNT(order); i++) {
        if (order[i] < from || order[i] > to) continue;
        ck_i128 v;
        if (!first) {
            char separator = order[i] == CK_UNIT_MONTH ? '-' : order[i] == CK_UNIT_HOUR ? ' ' : ':';
            if (r->p >= r->end || *r->p++ != separator) return false;
        }
        if (!take_amount(r, unit_size[order[i]], order[i] == CK_UNIT_SECOND, &v)) return false;
        add(r, order[i], minus ? -v : v);
        first = false;
    }
    return !first && r->p == r->end;
}

static bool read_one(reader *r, ck_ast_unit unit) {
    bool minus = take_sign(r);
    ck_i128 v;
    if (!take_amount(r, unit_size[unit], !is_months(unit), &v) || r->p != r->end) return false;
    add(r, unit, minus ? -v : v);
    return true;
}

ck_status ck_bind_interval(ck_binder *b, const ck_ast_expr *e, ck_expr **out) {
    ck_ast_unit from = (ck_ast_unit)e->what, to = (ck_ast_unit)e->what2;
    if (to && (from >= to || is_months(from) != is_months(to) || from == CK_UNIT_QUARTER || from == CK_UNIT_WEEK))
        return ck_bind_fail(b, e->pos,
                            "an INTERVAL goes from a larger to a smaller unit: YEAR TO MONTH, DAY TO SECOND");
    reader r = {.p = e->name.p, .end = e->name.p + e->name.n};
    bool fine = to ? read_parts(&r, from, to) : from ? read_one(&r, from) : read_words(&r);
    if (!fine)
        return ck_bind_fail(b, e->pos, "'%.*s' is not an INTERVAL; write INTERVAL '5' SECOND or '1-2' YEAR TO MONTH",
                            ck_cut(e->name), e->name.p);
    if (r.any_months && r.any_micros)
        return ck_bind_refuse(b, e->pos,
                              "an INTERVAL is of months or of time, not of both: a month has no fixed length; add two");
    ck_i128 v = r.any_months ? r.months : r.micros;
    if (r.overflow || v > INT64_MAX || v < INT64_MIN) return ck_bind_fail(b, e->pos, "this INTERVAL is too long");
    *out = ck_expr_literal(b->plan.arena, ck_type_simple(r.any_months ? CK_TYPE_INTERVAL_MONTH : CK_TYPE_INTERVAL_US),
                           (ck_datum){.i64 = (int64_t)v});
    if (!*out) return ck_bind_nomem(b);
    (*out)->line = e->pos.line, (*out)->col = e->pos.column;
    return CK_OK;
}
