/* ABS, SIGN, CEIL, FLOOR, ROUND and TRUNCATE for every kind of number. Halves round away from zero. */
#include <math.h>

#include "expr/arith_int.h"
#include "expr/coerce.h"
#include "expr/decimal.h"
#include "expr/functions_int.h"

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

/* ---- ABS, SIGN ---- */

static ck_status kernel_abs(CK_KERNEL_ARGS) {
    ck_phys phys = args[0].col->phys;
    CK_TRY(ck_eval_result(ev, phys, rows, out, err));
    bool lowest = false;
    if (phys == CK_PHYS_F64) {
        for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = fabs(args[0].col->f64[i]);
    } else if (phys == CK_PHYS_I128) {
        for (CK_EACH_ROW(k, i, rows)) out->col->i128[i] = (ck_i128)ck_i128_abs(args[0].col->i128[i]);
    } else {
        for (CK_EACH_ROW(k, i, rows)) {
            int64_t v = args[0].col->i64[i];
            lowest |= v == INT64_MIN;
            out->col->i64[i] = v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
        }
    }
    ck_kind kind = call->type->kind;
    if (lowest || (ck_kind_is_integer(kind) && kind != CK_TYPE_BIGINT)) {
        /* The lowest number has no positive: it came out negative, below the range of any absolute value. */
        for (CK_EACH_ROW(k, i, rows)) {
            int64_t low, high;
            ck_kind_int_range(ck_kind_is_integer(kind) ? kind : CK_TYPE_BIGINT, &low, &high);
            if (out->col->i64[i] >= 0 && out->col->i64[i] <= high) continue;
            CK_TRY(drop_on(ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err), out));
        }
    }
    return CK_OK;
}
static const ck_impl impl_abs = {.kernel = kernel_abs, .flags = CK_FN_FALLIBLE | CK_FN_BLIND};

static ck_status bind_abs(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    const ck_type *t = call->args[0]->type;
    bool interval = t->kind == CK_TYPE_INTERVAL_MONTH || t->kind == CK_TYPE_INTERVAL_US;
    if (!ck_kind_is_numeric(t->kind) && !interval) return ck_bind_mismatch(call, err);
    call->type = t;
    call->impl = &impl_abs;
    return CK_OK;
}

static ck_status kernel_sign(CK_KERNEL_ARGS) {
    ck_phys phys = args[0].col->phys;
    CK_TRY(ck_eval_result(ev, phys == CK_PHYS_F64 ? CK_PHYS_F64 : CK_PHYS_I64, rows, out, err));
    (void)call;
    for (CK_EACH_ROW(k, i, rows)) {
        const ck_column *c = args[0].col;
        if (phys == CK_PHYS_F64)
            out->col->f64[i] = c->f64[i] > 0 ? 1 : c->f64[i] < 0 ? -1 : c->f64[i];
        else if (phys == CK_PHYS_I128)
            out->col->i64[i] = (c->i128[i] > 0) - (c->i128[i] < 0);
        else
            out->col->i64[i] = (c->i64[i] > 0) - (c->i64[i] < 0);
    }
    return CK_OK;
}
static const ck_impl impl_sign = {.kernel = kernel_sign, .flags = CK_FN_BLIND};

/* ---- to a number of digits ---- */

typedef enum round_op { FLOOR, CEIL, ROUND, TRUNCATE } round_op;

static double round_double(round_op op, double v) {
    switch (op) {
    case FLOOR: return floor(v);
    case CEIL: return ceil(v);
    case ROUND: return round(v);
    default: return trunc(v);
    }
}

/* At `digits` of the decimal a double is printed as, so that 2.675 at 2 is 2.68. */
static double round_digits(round_op op, double v, int64_t digits) {
    if (digits == 0) return round_double(op, v);
    if (!isfinite(v) || digits > 20 || fabs(v) >= 1e17) return digits > 0 ? v : digits < -308 ? 0 : v;
    if (digits < -17) return 0;
    ck_i128 d = 0;
    const int scale = 20;
    if (!ck_decimal_from_double(v, CK_DECIMAL_DIGITS, scale, &d)) return v;
    ck_i128 unit = ck_pow10((int)(scale - digits)), rest = d % unit;
    d -= rest;
    if (op == ROUND && ck_i128_abs(rest) * 2 >= (ck_u128)unit) d += v < 0 ? -unit : unit;
    return ck_decimal_to_double(d, scale);
}

static ck_status kernel_double(CK_KERNEL_ARGS) {
    round_op op = (round_op)call->impl->op;
    bool digits = call->arg_count == 2;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        double v = CK_ARG_F64(0, i);
        out->col->f64[i] = digits ? round_digits(op, v, CK_ARG_I64(1, i)) : round_double(op, v);
    }
    return CK_OK;
}

/* Unscaled v rounded to `drop` digits fewer, at the same scale. */
static bool round_i128(round_op op, ck_i128 v, int64_t drop, ck_i128 *out) {
    *out = v;
    if (drop <= 0) return true;
    if (drop > CK_DECIMAL_DIGITS) {
        *out = 0;
        return true;
    }
    ck_i128 unit = ck_pow10((int)drop), rest = v % unit;
    ck_i128 r = v - rest;
    bool away = op == ROUND   ? ck_i128_abs(rest) >= (ck_u128)unit - ck_i128_abs(rest)
                : op == CEIL  ? rest > 0
                : op == FLOOR ? rest < 0
                              : false;
    if (away) r += op == ROUND ? (v < 0 ? -unit : unit) : op == CEIL ? unit : -unit;
    *out = r;
    return true;
}

/* DECIMAL: rounded to the digits, then to the result's scale, which has room for them. */
static ck_status kernel_decimal(CK_KERNEL_ARGS) {
    round_op op = (round_op)call->impl->op;
    int from = call->args[0]->type->scale;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t digits = call->arg_count == 2 ? CK_ARG_I64(1, i) : 0;
        ck_i128 r = 0;
        digits = digits > 100 ? 100 : digits < -100 ? -100 : digits;
        bool fits = round_i128(op, args[0].col->i128[CK_AT(args[0], i)], from - digits, &r) &&
                    ck_decimal_rescale(r, from, call->type->precision, call->type->scale, &out->col->i128[i]);
        if (!fits && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

static ck_status kernel_integer(CK_KERNEL_ARGS) {
    round_op op = (round_op)call->impl->op;
    int64_t low, high;
    ck_kind_int_range(call->type->kind, &low, &high);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t digits = CK_ARG_I64(1, i);
        ck_i128 r = 0;
        (void)round_i128(op, CK_ARG_I64(0, i), digits < -100 ? 100 : -digits, &r);
        out->col->i64[i] = (int64_t)r;
        if ((r < low || r > high) && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

#define FOUR(KERNEL, FLAGS)                                                                                            \
    {                                                                                                                  \
        {.kernel = KERNEL, .flags = FLAGS, .op = FLOOR}, {.kernel = KERNEL, .flags = FLAGS, .op = CEIL},               \
            {.kernel = KERNEL, .flags = FLAGS, .op = ROUND}, {                                                         \
            .kernel = KERNEL, .flags = FLAGS, .op = TRUNCATE                                                           \
        }                                                                                                              \
    }
static const ck_impl impl_double[] = FOUR(kernel_double, 0), impl_decimal[] = FOUR(kernel_decimal, CK_FN_FALLIBLE),
                     impl_integer[] = FOUR(kernel_integer, CK_FN_FALLIBLE);

/* As Flink types it: the digits asked for when they are a literal, else the argument's scale. */
static ck_status decimal_result(ck_bind_call *call, ck_error *err) {
    const ck_type *t = call->args[0]->type;
    const ck_expr *n = call->arg_count == 2 ? call->args[1] : NULL;
    int64_t digits = !n ? 0 : n->kind == CK_EXPR_LITERAL && !n->value.null ? n->value.i64 : t->scale;
    if (digits >= t->scale) {
        call->type = t; /* nothing to round, or nobody knows yet: a carry may need a digit more */
        if (n && n->kind != CK_EXPR_LITERAL && t->precision < CK_DECIMAL_DIGITS)
            call->type = ck_type_decimal(call->arena, t->precision + 1, t->scale);
    } else {
        int scale = digits < 0 ? 0 : (int)digits, precision = 1 + t->precision - t->scale + scale;
        call->type = ck_type_decimal(call->arena, precision > CK_DECIMAL_DIGITS ? CK_DECIMAL_DIGITS : precision, scale);
    }
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *t);
}

static ck_status bind_round(ck_bind_call *call, ck_error *err) {
    static const char *const names[] = {"floor", "ceil", "round", "truncate"};
    size_t op = 0;
    while (strcmp(names[op], call->name) != 0) op++;
    if (call->arg_count < 1 || call->arg_count > (op >= ROUND ? 2U : 1U)) return ck_bind_mismatch(call, err);
    if (call->args[0]->type->kind == CK_TYPE_NULL || ck_expr_is_text_literal(call->args[0]))
        CK_TRY(ck_coerce(call->arena, call->args[0], ck_type_simple(CK_TYPE_DOUBLE), true, &call->args[0], err));
    const ck_type *t = call->args[0]->type;
    if (!ck_kind_is_numeric(t->kind)) return ck_bind_mismatch(call, err);
    if (call->arg_count == 2) {
        if (ck_implicit_cost(call->args[1], CK_TYPE_BIGINT) < 0) return ck_bind_mismatch(call, err);
        CK_TRY(ck_coerce(call->arena, call->args[1], ck_type_simple(CK_TYPE_BIGINT), true, &call->args[1], err));
    }
    call->type = t;
    if (ck_kind_is_integer(t->kind)) {
        if (call->arg_count == 1) call->instead = call->args[0];
        call->impl = &impl_integer[op];
        return CK_OK;
    }
    call->impl = t->kind == CK_TYPE_DECIMAL ? &impl_decimal[op] : &impl_double[op];
    return t->kind == CK_TYPE_DECIMAL ? decimal_result(call, err) : CK_OK;
}

static const ck_overload o_sign[] = {
    {"l>i", &impl_sign, false}, {"n>i", &impl_sign, false}, {"d>d", &impl_sign, false}};

static const ck_function functions[] = {
    {.name = "abs",
     .bind = bind_abs,
     .group = "numbers",
     .syntax = "ABS(x)",
     .summary = "The number or interval without its sign.",
     .example = "ABS(-2.5)",
     .result = "2.5"},
    {.name = "sign",
     .overloads = o_sign,
     .overload_count = 3,
     .group = "numbers",
     .syntax = "SIGN(x)",
     .summary = "-1, 0 or 1.",
     .example = "SIGN(-12)",
     .result = "-1"},
    {.name = "floor",
     .bind = bind_round,
     .group = "numbers",
     .syntax = "FLOOR(x)",
     .summary = "The greatest whole number not above x. FLOOR(time TO unit) cuts a time.",
     .example = "FLOOR(-1.5)",
     .result = "-2"},
    {.name = "ceil",
     .aliases = "ceiling",
     .bind = bind_round,
     .group = "numbers",
     .syntax = "CEIL(x)",
     .summary = "The least whole number not below x. CEIL(time TO unit) rounds a time up.",
     .example = "CEIL(1.2)",
     .result = "2"},
    {.name = "round",
     .bind = bind_round,
     .group = "numbers",
     .syntax = "ROUND(x [, digits])",
     .summary = "x at a number of digits behind the point (0; before it when negative), halves away from zero.",
     .example = "ROUND(2.345, 2)",
     .result = "2.35"},
    {.name = "truncate",
     .aliases = "trunc",
     .bind = bind_round,
     .group = "numbers",
     .syntax = "TRUNCATE(x [, digits])",
     .summary = "x without the digits behind a number of them.",
     .example = "TRUNCATE(-2.349, 2)",
     .result = "-2.34"},
};
const ck_function_table ck_functions_round = {functions, CK_ARRAY_COUNT(functions)};
