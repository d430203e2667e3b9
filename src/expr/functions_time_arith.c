/* + and - of dates, times, timestamps and intervals; intervals times and by numbers.
 *
 *   DATE +- days (integer)            DATE           DATE - DATE              INTEGER days
 *   DATE +- months                    DATE           TIMESTAMP - TIMESTAMP    INTERVAL
 *   DATE +- interval                  DATE when the interval is a literal of whole days, else TIMESTAMP
 *   DATE + TIME                       TIMESTAMP      TIME - TIME              INTERVAL
 *   TIMESTAMP, LTZ +- interval        the same       TIME +- interval         TIME, round the clock
 *   interval +- interval, interval * number, interval / number
 *
 * Months are added on the calendar, the day kept within the month; to a TIMESTAMP_LTZ in the session's time zone. */
#include "expr/arith_int.h"
#include "expr/cast_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"
#include "expr/time_int.h"

unsigned ck_days_in_month(int64_t year, unsigned month) {
    static const unsigned days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

int64_t ck_add_months(int64_t days, int64_t months) {
    int64_t year;
    unsigned month, day;
    ck_civil_from_days(days, &year, &month, &day);
    int64_t at = year * 12 + (int64_t)month - 1 + months;
    year = ck_floor_div(at, 12), month = (unsigned)ck_floor_mod(at, 12) + 1;
    unsigned most = ck_days_in_month(year, month);
    return ck_days_from_civil(year, month, day < most ? day : most);
}

typedef enum time_op {
    DATE_DAYS,     /* and a number of days */
    DATE_INTERVAL, /* whole days of an interval */
    DATE_MOMENT,   /* to a timestamp */
    DATE_MONTHS,
    MOMENT_INTERVAL, /* also interval and interval */
    MOMENT_MONTHS,
    LTZ_MONTHS,
    TIME_INTERVAL,
    DATE_TIME,
    DIFFERENCE, /* of like values */
    SCALE_INT,  /* interval times integer */
    SCALE_DOUBLE,
    SPLIT_INT, /* interval by integer */
    SPLIT_DOUBLE,
    SUBTRACT = 64, /* added: the second operand is taken away */
} time_op;

static bool sum(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }

/* Years and months stay far inside of what the calendar's arithmetic can hold. */
static bool plus_months(int64_t days, int64_t months, int64_t *r) {
    if (months < -240000 || months > 240000) return false;
    *r = ck_add_months(days, months);
    return true;
}

static bool moment_months(int64_t us, int64_t months, int64_t *r) {
    int64_t day = ck_floor_div(us, CK_DAY_US), rest = ck_floor_mod(us, CK_DAY_US);
    if (!plus_months(day, months, &day)) return false;
    *r = day * CK_DAY_US + rest;
    return true;
}

static bool compute(const ck_eval *ev, time_op op, int64_t a, int64_t b, int64_t *r) {
    switch (op) {
    case DATE_DAYS:
    case MOMENT_INTERVAL: return sum(a, b, r);
    case DATE_INTERVAL: return sum(a, ck_floor_div(b, CK_DAY_US), r);
    case DATE_MOMENT:
    case DATE_TIME: return sum(a * CK_DAY_US, b, r);
    case DATE_MONTHS: return plus_months(a, b, r);
    case MOMENT_MONTHS: return moment_months(a, b, r);
    case LTZ_MONTHS:
        if (!moment_months(ck_timezone_local(ev->zone, a), b, r)) return false;
        *r = ck_timezone_utc(ev->zone, *r);
        return true;
    case TIME_INTERVAL: *r = ck_floor_mod(a + ck_floor_mod(b, CK_DAY_US), CK_DAY_US); return true;
    case DIFFERENCE: return sum(a, b, r);
    case SCALE_INT: return !__builtin_mul_overflow(a, b, r);
    case SPLIT_INT: return b == -1 ? !__builtin_sub_overflow(0, a, r) : (*r = a / b, true);
    default: return false;
    }
}

static bool in_range(ck_kind kind, int64_t v) {
    if (kind == CK_TYPE_DATE) return v >= CK_DATE_MIN && v <= CK_DATE_MAX;
    if (kind == CK_TYPE_TIMESTAMP || kind == CK_TYPE_TIMESTAMP_LTZ) return v >= CK_TIME_MIN_US && v <= CK_TIME_MAX_US;
    return true;
}

static ck_status kernel_time(CK_KERNEL_ARGS) {
    time_op op = (time_op)(call->impl->op & ~(uint32_t)SUBTRACT);
    bool subtract = call->impl->op & SUBTRACT;
    const int64_t *a = args[0].col->i64, *b = args[1].col->i64;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t x = a[CK_AT(args[0], i)], y = b[CK_AT(args[1], i)], r = 0;
        ck_mark m = CK_MARK_NONE;
        if (op == SPLIT_INT && y == 0)
            m = CK_MARK_DIVISION;
        else if (subtract && __builtin_sub_overflow(0, y, &y))
            m = CK_MARK_OVERFLOW;
        else if (!compute(ev, op, x, y, &r) || !in_range(call->type->kind, r))
            m = CK_MARK_OVERFLOW;
        out->col->i64[i] = r;
        if (m != CK_MARK_NONE && s == CK_OK) s = ck_eval_mark(ev, out->col, i, m, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status kernel_scale(CK_KERNEL_ARGS) {
    bool by = call->impl->op == SPLIT_DOUBLE;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double x = (double)args[0].col->i64[CK_AT(args[0], i)], y = args[1].col->f64[CK_AT(args[1], i)];
        double r = __builtin_rint(by ? x / y : x * y);
        bool fits = r >= -9223372036854775808.0 && r < 9223372036854775808.0;
        out->col->i64[i] = fits ? (int64_t)r : 0;
        ck_mark m = by && y == 0 ? CK_MARK_DIVISION : fits ? CK_MARK_NONE : CK_MARK_OVERFLOW;
        if (m != CK_MARK_NONE && s == CK_OK) s = ck_eval_mark(ev, out->col, i, m, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

#define TIME_OP(OP) [OP] = {.kernel = kernel_time, .flags = CK_FN_FALLIBLE, .op = OP}
#define TIME_OPS(OP)                                                                                                   \
    TIME_OP(OP), [OP + SUBTRACT] = {.kernel = kernel_time, .flags = CK_FN_FALLIBLE, .op = OP + SUBTRACT}
#define ZONED_FLAGS CK_FN_FALLIBLE | CK_FN_ZONED
static const ck_impl impl_time[2 * SUBTRACT] = {
    TIME_OPS(DATE_DAYS),
    TIME_OPS(DATE_INTERVAL),
    TIME_OPS(DATE_MOMENT),
    TIME_OPS(DATE_MONTHS),
    TIME_OPS(MOMENT_INTERVAL),
    TIME_OPS(MOMENT_MONTHS),
    TIME_OPS(TIME_INTERVAL),
    TIME_OPS(DIFFERENCE),
    TIME_OP(DATE_TIME),
    TIME_OP(SCALE_INT),
    TIME_OP(SPLIT_INT),
    [LTZ_MONTHS] = {.kernel = kernel_time, .flags = ZONED_FLAGS, .op = LTZ_MONTHS, .prepare = ck_prepare_zone},
    [LTZ_MONTHS + SUBTRACT] = {.kernel = kernel_time,
                               .flags = ZONED_FLAGS,
                               .op = LTZ_MONTHS + SUBTRACT,
                               .prepare = ck_prepare_zone},
    [SCALE_DOUBLE] = {.kernel = kernel_scale, .flags = CK_FN_FALLIBLE, .op = SCALE_DOUBLE},
    [SPLIT_DOUBLE] = {.kernel = kernel_scale, .flags = CK_FN_FALLIBLE, .op = SPLIT_DOUBLE},
};

/* ---- resolution ---- */

static bool is_interval(ck_kind k) { return k == CK_TYPE_INTERVAL_MONTH || k == CK_TYPE_INTERVAL_US; }
static bool is_stamp(ck_kind k) { return k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ; }

static bool set(ck_bind_call *call, int op, const ck_type *type) {
    call->impl = &impl_time[op];
    call->type = type;
    return true;
}

static bool whole_days(const ck_expr *e) {
    return e->kind == CK_EXPR_LITERAL && !e->value.null && e->value.i64 % CK_DAY_US == 0;
}

static void swap_args(ck_bind_call *call) {
    ck_expr *first = call->args[0];
    call->args[0] = call->args[1], call->args[1] = first;
}

/* x + y and x - y with x the date, time or timestamp. */
static bool bind_sum(ck_bind_call *call, int minus) {
    const ck_type *x = call->args[0]->type, *y = call->args[1]->type;
    bool us = y->kind == CK_TYPE_INTERVAL_US, months = y->kind == CK_TYPE_INTERVAL_MONTH;
    if (x->kind == CK_TYPE_DATE) {
        if (ck_kind_is_integer(y->kind)) return set(call, DATE_DAYS + minus, x);
        if (months) return set(call, DATE_MONTHS + minus, x);
        if (us && whole_days(call->args[1])) return set(call, DATE_INTERVAL + minus, x);
        if (us) return set(call, DATE_MOMENT + minus, ck_type_simple(CK_TYPE_TIMESTAMP));
        if (y->kind == CK_TYPE_TIME && !minus) return set(call, DATE_TIME, ck_type_simple(CK_TYPE_TIMESTAMP));
        return false;
    }
    if (is_stamp(x->kind)) {
        if (us) return set(call, MOMENT_INTERVAL + minus, x);
        if (months) return set(call, (x->kind == CK_TYPE_TIMESTAMP ? MOMENT_MONTHS : LTZ_MONTHS) + minus, x);
        return false;
    }
    if (x->kind == CK_TYPE_TIME && us) return set(call, TIME_INTERVAL + minus, x);
    if (is_interval(x->kind) && x->kind == y->kind) return set(call, MOMENT_INTERVAL + minus, x);
    return false;
}

/* The difference of two dates, times or timestamps. */
static ck_status bind_difference(ck_bind_call *call, bool *bound, ck_error *err) {
    for (int i = 0; i < 2; i++)
        if (ck_expr_is_text_literal(call->args[i]))
            CK_TRY(ck_coerce(call->arena, call->args[i], call->args[1 - i]->type, true, &call->args[i], err));
    const ck_type *x = call->args[0]->type, *y = call->args[1]->type;
    if (x->kind == CK_TYPE_DATE && y->kind == CK_TYPE_DATE) {
        *bound = set(call, DIFFERENCE + SUBTRACT, ck_type_simple(CK_TYPE_INTEGER));
        return CK_OK;
    }
    if (!ck_kind_is_datetime(x->kind) || !ck_kind_is_datetime(y->kind)) return CK_OK;
    const ck_type *both = ck_common_type(call->arena, x, y);
    if (!both) return CK_OK;
    for (int i = 0; i < 2; i++) CK_TRY(ck_coerce(call->arena, call->args[i], both, true, &call->args[i], err));
    *bound = set(call, DIFFERENCE + SUBTRACT, ck_type_simple(CK_TYPE_INTERVAL_US));
    return CK_OK;
}

static ck_status bind_scaled(ck_bind_call *call, ck_arith op, bool *bound, ck_error *err) {
    if (op == CK_MUL && is_interval(call->args[1]->type->kind)) swap_args(call);
    const ck_type *x = call->args[0]->type, *y = call->args[1]->type;
    if (!is_interval(x->kind) || !ck_kind_is_numeric(y->kind)) return CK_OK;
    if (ck_kind_is_integer(y->kind)) {
        *bound = set(call, op == CK_MUL ? SCALE_INT : SPLIT_INT, x);
        return CK_OK;
    }
    CK_TRY(ck_coerce(call->arena, call->args[1], ck_type_simple(CK_TYPE_DOUBLE), true, &call->args[1], err));
    *bound = set(call, op == CK_MUL ? SCALE_DOUBLE : SPLIT_DOUBLE, x);
    return CK_OK;
}

ck_status ck_bind_time_arith(ck_bind_call *call, ck_arith op, bool *bound, ck_error *err) {
    *bound = false;
    if (op == CK_MOD) return CK_OK;
    if (op == CK_MUL || op == CK_DIV) return bind_scaled(call, op, bound, err);
    if (op == CK_ADD) {
        /* A sum may be written either way round. */
        ck_kind x = call->args[0]->type->kind, y = call->args[1]->type->kind;
        bool turned = ck_kind_is_datetime(y) && (!ck_kind_is_datetime(x) || (x == CK_TYPE_TIME && y == CK_TYPE_DATE));
        if (turned) swap_args(call);
        *bound = bind_sum(call, 0);
        if (turned && !*bound) swap_args(call);
        return CK_OK;
    }
    *bound = bind_sum(call, SUBTRACT);
    return *bound ? CK_OK : bind_difference(call, bound, err);
}
