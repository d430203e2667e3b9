/* Casts from and to VARCHAR and BYTES. Text may have spaces around the value. */
#include "expr/arith_int.h"
#include "expr/bits_int.h"
#include "expr/cast_int.h"
#include "expr/decimal.h"
#include "expr/interval_text.h"
#include "expr/strout.h"
#include "expr/time_int.h"
#include "expr/utf8.h"

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static ck_view trimmed(const ck_column *c, uint32_t row) {
    ck_view v = ck_column_str(c, row);
    while (v.n && is_space(v.p[0])) v.p++, v.n--;
    while (v.n && is_space(v.p[v.n - 1])) v.n--;
    return v;
}

/* ---- from text ---- */

static ck_status text_bool(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        bool v = false;
        bool good = ck_parse_bool(trimmed(args[0].col, i), &v);
        ck_bit_put(out->col->bits, i, v);
        if (!good && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_CAST, err);
    }
    return drop_on(s, out);
}

static bool is_number(ck_view v) {
    if (v.n && (*v.p == '-' || *v.p == '+')) v.p++, v.n--;
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < '0' || v.p[i] > '9') return false;
    return v.n > 0;
}

static ck_status text_int(CK_KERNEL_ARGS) {
    int64_t low, high;
    ck_kind_int_range(call->type->kind, &low, &high);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t v = 0;
        ck_view t = trimmed(args[0].col, i);
        ck_mark m = CK_MARK_NONE;
        if (!ck_parse_i64(t, &v))
            m = is_number(t) ? CK_MARK_OVERFLOW : CK_MARK_CAST;
        else if (v < low || v > high)
            m = CK_MARK_OVERFLOW;
        out->col->i64[i] = v;
        if (m != CK_MARK_NONE && s == CK_OK) s = ck_eval_mark(ev, out->col, i, m, err);
    }
    return drop_on(s, out);
}

static ck_status text_double(CK_KERNEL_ARGS) {
    bool real = call->type->kind == CK_TYPE_REAL;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double v = 0;
        bool good = ck_parse_f64(trimmed(args[0].col, i), &v);
        double r = real ? (double)(float)v : v;
        out->col->f64[i] = r;
        ck_mark m = !good ? CK_MARK_CAST : __builtin_isinf(r) && !__builtin_isinf(v) ? CK_MARK_OVERFLOW : CK_MARK_NONE;
        if (m != CK_MARK_NONE && s == CK_OK) s = ck_eval_mark(ev, out->col, i, m, err);
    }
    return drop_on(s, out);
}

static ck_status text_decimal(CK_KERNEL_ARGS) {
    const ck_type *t = call->type;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        bool overflow = false;
        bool good = ck_parse_decimal(trimmed(args[0].col, i), t->precision, t->scale, &out->col->i128[i], &overflow);
        if (!good && s == CK_OK) s = ck_eval_mark(ev, out->col, i, overflow ? CK_MARK_OVERFLOW : CK_MARK_CAST, err);
    }
    return drop_on(s, out);
}

typedef enum text_time { TO_DATE, TO_TIME, TO_TIMESTAMP, TO_LTZ, TO_MONTHS, TO_INTERVAL } text_time;

/* A zone in the text of a TIMESTAMP is refused: it would be lost. */
static bool parse_moment(const ck_eval *ev, text_time kind, ck_view t, int64_t *v) {
    bool zoned;
    switch (kind) {
    case TO_DATE:
        if (ck_parse_date(t, v)) return true;
        if (!ck_parse_timestamp(t, v, &zoned) || zoned) return false;
        *v = ck_floor_div(*v, CK_DAY_US);
        return true;
    case TO_TIME: return ck_parse_time(t, v);
    case TO_TIMESTAMP: return ck_parse_timestamp(t, v, &zoned) && !zoned;
    case TO_LTZ:
        if (!ck_parse_timestamp(t, v, &zoned)) return false;
        if (!zoned) *v = ck_timezone_utc(ev->zone, *v);
        return true;
    case TO_MONTHS: return ck_parse_months(t, v);
    case TO_INTERVAL: return ck_parse_interval(t, v);
    }
    return false;
}

static ck_status text_moment(CK_KERNEL_ARGS) {
    static const int64_t unit[7] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    text_time kind = (text_time)call->impl->op;
    bool cuts = kind == TO_TIME || kind == TO_TIMESTAMP || kind == TO_LTZ;
    int64_t grain = cuts ? unit[call->type->precision] : 1;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t v = 0;
        bool good = parse_moment(ev, kind, trimmed(args[0].col, i), &v);
        out->col->i64[i] = v - ck_floor_mod(v, grain);
        if (!good && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_CAST, err);
    }
    return drop_on(s, out);
}

/* ---- among texts ---- */

/* VARCHAR(n), BYTES(n): what is longer is cut. */
static ck_status text_text(CK_KERNEL_ARGS) {
    size_t limit = (size_t)call->type->precision;
    bool bytes = call->type->kind == CK_TYPE_BYTES;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = ck_column_str(args[0].col, i);
        size_t n = v.n <= limit || !limit ? v.n : bytes ? limit : ck_utf8_prefix(v, limit);
        ck_strout_part(&w, i, args[0].col, 0, i, 0, n);
    }
    return ck_strout_finish(&w, CK_OK, out);
}

/* The same for a value on its way into a column: only spaces may go. */
static ck_status text_fits(CK_KERNEL_ARGS) {
    size_t limit = (size_t)call->type->precision;
    bool bytes = call->type->kind == CK_TYPE_BYTES;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = ck_column_str(args[0].col, i);
        size_t n = v.n <= limit ? v.n : bytes ? limit : ck_utf8_prefix(v, limit), end = v.n;
        while (!bytes && end > n && v.p[end - 1] == ' ') end--;
        if (end > n) {
            if (s == CK_OK) s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
        } else {
            ck_strout_part(&w, i, args[0].col, 0, i, 0, n);
        }
    }
    return ck_strout_finish(&w, s, out);
}

static ck_status bytes_text(CK_KERNEL_ARGS) {
    size_t limit = (size_t)call->type->precision;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = ck_column_str(args[0].col, i);
        if (!ck_utf8_valid(v)) {
            if (s == CK_OK) s = ck_strout_mark(&w, i, CK_MARK_CAST);
            continue;
        }
        ck_strout_part(&w, i, args[0].col, 0, i, 0, limit ? ck_utf8_prefix(v, limit) : v.n);
    }
    return ck_strout_finish(&w, s, out);
}

/* ---- to text ---- */

static ck_status int_text(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        char text[24];
        size_t n = ck_print_i64(text, args[0].col->i64[i]);
        if (s == CK_OK) s = ck_strout_put(&w, i, (ck_view){text, n});
    }
    return ck_strout_finish(&w, s, out);
}

static ck_status any_text(CK_KERNEL_ARGS) {
    size_t limit = (size_t)call->type->precision;
    ck_bytes b;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_bytes_init(&b, ev->mem, CK_STRING_BYTES_MAX);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_bytes_clear(&b);
        s = ck_print_value(call->args[0]->type, args[0].col, i, &b);
        ck_view v = ck_bytes_as_view(&b);
        if (limit) v.n = ck_utf8_prefix(v, limit);
        if (s == CK_FULL)
            s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
        else if (s == CK_OK)
            s = ck_strout_put(&w, i, v);
    }
    ck_bytes_destroy(&b);
    return ck_strout_finish(&w, s, out);
}

/* In the session's zone: "2024-03-01 12:00:00+01:00", with Z for UTC. */
static size_t print_ltz(char *p, ck_zone_cache *zone, int64_t us, int precision) {
    int64_t local = ck_zone_local(zone, us), offset = local - us;
    size_t n = ck_print_timestamp(p, local, precision, ' ', offset == 0);
    if (offset == 0) return n;
    int64_t minutes = (offset < 0 ? -offset : offset) / CK_MINUTE_US;
    p[n++] = offset < 0 ? '-' : '+';
    p[n++] = (char)('0' + minutes / 600), p[n++] = (char)('0' + minutes / 60 % 10), p[n++] = ':';
    p[n++] = (char)('0' + minutes % 60 / 10), p[n++] = (char)('0' + minutes % 10);
    return n;
}

static ck_status ltz_text(CK_KERNEL_ARGS) {
    size_t limit = (size_t)call->type->precision;
    ck_zone_cache zone = ck_zone_cache_of(ev->zone);
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        char text[48];
        size_t n = print_ltz(text, &zone, args[0].col->i64[i], call->args[0]->type->precision);
        if (limit && n > limit) n = limit;
        if (s == CK_OK) s = ck_strout_put(&w, i, (ck_view){text, n});
    }
    return ck_strout_finish(&w, s, out);
}

const ck_impl ck_cast_text_bool = {.kernel = text_bool, .flags = CK_FN_FALLIBLE},
              ck_cast_text_int = {.kernel = text_int, .flags = CK_FN_FALLIBLE},
              ck_cast_text_double = {.kernel = text_double, .flags = CK_FN_FALLIBLE},
              ck_cast_text_decimal = {.kernel = text_decimal, .flags = CK_FN_FALLIBLE},
              ck_cast_text_date = {.kernel = text_moment, .flags = CK_FN_FALLIBLE, .op = TO_DATE},
              ck_cast_text_time = {.kernel = text_moment, .flags = CK_FN_FALLIBLE, .op = TO_TIME},
              ck_cast_text_timestamp = {.kernel = text_moment, .flags = CK_FN_FALLIBLE, .op = TO_TIMESTAMP},
              ck_cast_text_ltz = {.kernel = text_moment,
                                  .flags = CK_FN_FALLIBLE | CK_FN_ZONED,
                                  .op = TO_LTZ,
                                  .prepare = ck_prepare_zone},
              ck_cast_text_months = {.kernel = text_moment, .flags = CK_FN_FALLIBLE, .op = TO_MONTHS},
              ck_cast_text_interval = {.kernel = text_moment, .flags = CK_FN_FALLIBLE, .op = TO_INTERVAL},
              ck_cast_text_text = {.kernel = text_text}, ck_cast_bytes_bytes = {.kernel = text_text},
              ck_cast_text_bytes = {.kernel = text_text},
              ck_assign_text = {.kernel = text_fits, .flags = CK_FN_FALLIBLE | CK_FN_FIRST},
              ck_cast_bytes_text = {.kernel = bytes_text, .flags = CK_FN_FALLIBLE},
              ck_cast_int_text = {.kernel = int_text}, ck_cast_any_text = {.kernel = any_text},
              ck_cast_ltz_text = {.kernel = ltz_text, .flags = CK_FN_ZONED, .prepare = ck_prepare_zone};
