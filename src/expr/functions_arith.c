/* + - * / % and unary minus. Integers are computed in the wider operand's type and overflow is an error; division by
 * zero is one for every type; REAL with REAL stays REAL, any other mixture with a REAL or DOUBLE is DOUBLE. */
#include "expr/arith_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"

static ck_form form_of(const ck_vec *args) {
    if (args[0].constant == args[1].constant) return CK_FORM_VV;
    return args[0].constant ? CK_FORM_SV : CK_FORM_VS;
}

/* ---- integers ---- */

ck_status ck_mark_outside(ck_eval *ev, const ck_rows *rows, ck_column *c, ck_kind kind, ck_error *err) {
    int64_t low, high;
    ck_kind_int_range(kind, &low, &high);
    if (!rows->sel && !ev->kernels->any_outside(c->i64, low, high, rows->n)) return CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        bool marked = c->err && c->err[i];
        if (!marked && (c->i64[i] < low || c->i64[i] > high)) CK_TRY(ck_eval_mark(ev, c, i, CK_MARK_OVERFLOW, err));
    }
    return CK_OK;
}

static bool overflows(ck_arith op, int64_t a, int64_t b, int64_t *r) {
    if (op == CK_ADD) return __builtin_add_overflow(a, b, r);
    if (op == CK_SUB) return __builtin_sub_overflow(a, b, r);
    return __builtin_mul_overflow(a, b, r);
}

/* Row by row: for selections, and to find the rows after the dense loop saw an overflow somewhere. */
static ck_status checked_rows(ck_eval *ev, ck_arith op, const ck_vec *args, const ck_rows *rows, ck_column *c,
                              ck_error *err) {
    const int64_t *a = args[0].col->i64, *b = args[1].col->i64;
    for (CK_EACH_ROW(k, i, rows))
        if (overflows(op, a[CK_AT(args[0], i)], b[CK_AT(args[1], i)], &c->i64[i]))
            CK_TRY(ck_eval_mark(ev, c, i, CK_MARK_OVERFLOW, err));
    return CK_OK;
}

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status kernel_checked(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                                ck_error *err) {
    ck_arith op = (ck_arith)call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    if (rows->sel) {
        s = checked_rows(ev, op, args, rows, out->col, err);
    } else if (ev->kernels->arith_i64[op][form_of(args)](out->col->i64, args[0].col->i64, args[1].col->i64, rows->n)) {
        s = checked_rows(ev, op, args, rows, out->col, err);
    }
    if (s == CK_OK && call->type->kind != CK_TYPE_BIGINT)
        s = ck_mark_outside(ev, rows, out->col, call->type->kind, err);
    return drop_on(s, out);
}

/* x % -1 is 0 and x / -1 is -x, neither of which the machine's division always survives. */
static ck_status divide_rows(ck_eval *ev, bool remainder, const ck_vec *args, const ck_rows *rows, ck_column *c,
                             ck_error *err) {
    const int64_t *a = args[0].col->i64, *b = args[1].col->i64;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t x = a[CK_AT(args[0], i)], y = b[CK_AT(args[1], i)];
        if (y == 0) {
            c->i64[i] = 0;
            CK_TRY(ck_eval_mark(ev, c, i, CK_MARK_DIVISION, err));
        } else if (y == -1) {
            c->i64[i] = remainder ? 0 : (int64_t)(0 - (uint64_t)x);
            if (!remainder && x == INT64_MIN) CK_TRY(ck_eval_mark(ev, c, i, CK_MARK_OVERFLOW, err));
        } else {
            c->i64[i] = remainder ? x % y : x / y;
        }
    }
    return CK_OK;
}

static ck_status kernel_divide(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err) {
    bool remainder = call->impl->op == CK_MOD;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    int64_t d = args[1].constant ? args[1].col->i64[0] : 0;
    ck_status s = CK_OK;
    if (!rows->sel && !args[0].constant && d != 0 && d != -1 && d != 1)
        ev->kernels->divide_i64[remainder](out->col->i64, args[0].col->i64, d, rows->n);
    else
        s = divide_rows(ev, remainder, args, rows, out->col, err);
    /* Only -128 / -1 and the like leave a narrow type. */
    if (s == CK_OK && !remainder && call->type->kind != CK_TYPE_BIGINT)
        s = ck_mark_outside(ev, rows, out->col, call->type->kind, err);
    return drop_on(s, out);
}

/* ---- doubles ---- */

static void round_to_real(double *v, const ck_rows *rows) {
    for (CK_EACH_ROW(k, i, rows)) v[i] = (double)(float)v[i];
}

static ck_status kernel_double(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err) {
    ck_arith op = (ck_arith)call->impl->op;
    const double *a = args[0].col->f64, *b = args[1].col->f64;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    double *r = out->col->f64;
    if (op == CK_MOD) {
        for (CK_EACH_ROW(k, i, rows)) r[i] = __builtin_fmod(a[CK_AT(args[0], i)], b[CK_AT(args[1], i)]);
    } else if (!rows->sel) {
        ev->kernels->arith_f64[op][form_of(args)](r, a, b, rows->n);
    } else {
        for (CK_EACH_ROW(k, i, rows)) {
            double x = a[CK_AT(args[0], i)], y = b[CK_AT(args[1], i)];
            r[i] = op == CK_ADD ? x + y : op == CK_SUB ? x - y : op == CK_MUL ? x * y : x / y;
        }
    }
    if (call->type->kind == CK_TYPE_REAL) round_to_real(r, rows);
    if (op != CK_DIV && op != CK_MOD) return CK_OK;
    if (!rows->sel && !ev->kernels->any_zero_f64(b, args[1].constant ? 1 : rows->n)) return CK_OK;
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        if (b[CK_AT(args[1], i)] == 0) s = ck_eval_mark(ev, out->col, i, CK_MARK_DIVISION, err);
    }
    return drop_on(s, out);
}

/* ---- resolution ---- */

#define CHECKED(OP)                                                                                                    \
    { .kernel = kernel_checked, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP, .op = OP }
static const ck_impl impl_int[CK_ARITH_COUNT] = {
    CHECKED(CK_ADD),
    CHECKED(CK_SUB),
    CHECKED(CK_MUL),
    {.kernel = kernel_divide, .flags = CK_FN_FALLIBLE | CK_FN_BLIND, .op = CK_DIV},
    {.kernel = kernel_divide, .flags = CK_FN_FALLIBLE | CK_FN_BLIND, .op = CK_MOD},
};
/* A constant divisor that is neither 0 nor -1 cannot fail, and is fast. */
static const ck_impl impl_int_by_constant[CK_ARITH_COUNT] = {
    [CK_DIV] = {.kernel = kernel_divide, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = CK_DIV},
    [CK_MOD] = {.kernel = kernel_divide, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = CK_MOD},
};
#define DOUBLE(OP)                                                                                                     \
    { .kernel = kernel_double, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = OP }
static const ck_impl impl_double[CK_ARITH_COUNT] = {
    DOUBLE(CK_ADD),
    DOUBLE(CK_SUB),
    DOUBLE(CK_MUL),
    {.kernel = kernel_double, .flags = CK_FN_FALLIBLE | CK_FN_BLIND, .op = CK_DIV},
    {.kernel = kernel_double, .flags = CK_FN_FALLIBLE | CK_FN_BLIND, .op = CK_MOD},
};

static bool safe_divisor(const ck_expr *e) {
    return e->kind == CK_EXPR_LITERAL && !e->value.null && e->value.i64 != 0 && e->value.i64 != -1;
}

static ck_status bind_numbers(ck_bind_call *call, ck_arith op, ck_error *err) {
    const ck_type *a = call->args[0]->type, *b = call->args[1]->type;
    if (ck_kind_is_float(a->kind) || ck_kind_is_float(b->kind)) {
        const ck_type *dbl = ck_type_simple(CK_TYPE_DOUBLE);
        for (int i = 0; i < 2; i++)
            if (!ck_kind_is_float(call->args[i]->type->kind))
                CK_TRY(ck_coerce(call->arena, call->args[i], dbl, false, &call->args[i], err));
        call->type = a->kind == CK_TYPE_REAL && b->kind == CK_TYPE_REAL ? a : dbl;
        call->impl = &impl_double[op];
        return CK_OK;
    }
    if (a->kind == CK_TYPE_DECIMAL || b->kind == CK_TYPE_DECIMAL) return ck_bind_decimal_arith(call, op, err);
    call->type = ck_type_simple(a->kind > b->kind ? a->kind : b->kind);
    call->impl = op >= CK_DIV && safe_divisor(call->args[1]) ? &impl_int_by_constant[op] : &impl_int[op];
    return CK_OK;
}

static ck_status no_operator(const ck_bind_call *call, ck_error *err) {
    const ck_type *a = call->args[0]->type, *b = call->args[1]->type;
    bool text = a->kind == CK_TYPE_VARCHAR || b->kind == CK_TYPE_VARCHAR;
    const char *advice = !text                          ? ""
                         : strcmp(call->name, "+") == 0 ? "; || joins texts, CAST makes a number of one"
                                                        : "; CAST makes a number of a text";
    return ck_fail(err, CK_INVALID, "no operator %s %s %s%s", ck_type_name(call->arena, a), call->name,
                   ck_type_name(call->arena, b), advice);
}

static ck_status bind_arith(ck_bind_call *call, ck_error *err) {
    static const char signs[CK_ARITH_COUNT] = {'+', '-', '*', '/', '%'};
    ck_arith op = (ck_arith)((const char *)memchr(signs, call->name[0], sizeof signs) - signs);
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    for (int i = 0; i < 2; i++) { /* NULL is a number if the other side is one, else what the other side is */
        const ck_type *other = call->args[1 - i]->type;
        const ck_type *to = other->kind == CK_TYPE_NULL ? ck_type_simple(CK_TYPE_INTEGER) : other;
        if (call->args[i]->type->kind == CK_TYPE_NULL ||
            (ck_expr_is_text_literal(call->args[i]) && ck_kind_is_numeric(other->kind)))
            CK_TRY(ck_coerce(call->arena, call->args[i], to, true, &call->args[i], err));
    }
    const ck_type *a = call->args[0]->type, *b = call->args[1]->type;
    if (ck_kind_is_numeric(a->kind) && ck_kind_is_numeric(b->kind)) return bind_numbers(call, op, err);
    bool bound = false;
    CK_TRY(ck_bind_time_arith(call, op, &bound, err));
    return bound ? CK_OK : no_operator(call, err);
}

/* ---- unary minus ---- */

static ck_status kernel_negate_i64(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                   ck_vec *out, ck_error *err) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    const int64_t *a = args[0].col->i64;
    ck_kind kind = call->type->kind;
    int64_t low = INT64_MIN, high;
    if (ck_kind_is_integer(kind)) ck_kind_int_range(kind, &low, &high);
    bool lowest = false;
    for (CK_EACH_ROW(k, i, rows)) {
        out->col->i64[i] = (int64_t)(0 - (uint64_t)a[i]);
        lowest |= a[i] == low;
    }
    ck_status s = CK_OK;
    if (lowest)
        for (CK_EACH_ROW(k, i, rows))
            if (s == CK_OK && a[i] == low) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    return drop_on(s, out);
}

static ck_status kernel_negate_f64(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                   ck_vec *out, ck_error *err) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = -args[0].col->f64[i];
    return CK_OK;
}

static ck_status kernel_negate_i128(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                    ck_vec *out, ck_error *err) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->i128[i] = (ck_i128)(0 - (ck_u128)args[0].col->i128[i]);
    return CK_OK;
}

const ck_impl ck_impl_negate_i64 = {.kernel = kernel_negate_i64, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP};
const ck_impl ck_impl_negate_f64 = {.kernel = kernel_negate_f64, .flags = CK_FN_BLIND | CK_FN_CHEAP};
const ck_impl ck_impl_negate_i128 = {.kernel = kernel_negate_i128, .flags = CK_FN_BLIND | CK_FN_CHEAP};

static ck_status bind_negate(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    if (call->args[0]->type->kind == CK_TYPE_NULL)
        CK_TRY(ck_coerce(call->arena, call->args[0], ck_type_simple(CK_TYPE_INTEGER), false, &call->args[0], err));
    call->type = call->args[0]->type;
    ck_kind kind = call->type->kind;
    if (ck_kind_is_float(kind))
        call->impl = &ck_impl_negate_f64;
    else if (kind == CK_TYPE_DECIMAL)
        call->impl = &ck_impl_negate_i128;
    else if (ck_kind_is_integer(kind) || kind == CK_TYPE_INTERVAL_MONTH || kind == CK_TYPE_INTERVAL_US)
        call->impl = &ck_impl_negate_i64;
    return call->impl ? CK_OK : ck_bind_mismatch(call, err);
}

#define OPERATOR(NAME, ALIASES, FLAGS, SUMMARY, EXAMPLE, RESULT)                                                       \
    {                                                                                                                  \
        .name = NAME, .aliases = ALIASES, .flags = FLAGS, .bind = bind_arith, .group = "numbers",                      \
        .syntax = "a " NAME " b", .summary = SUMMARY, .example = EXAMPLE, .result = RESULT                             \
    }

static const ck_function functions[] = {
    OPERATOR("+", NULL, CK_FN_INTERNAL, "Sum; also a date, time or timestamp plus an interval, a date plus days.",
             "0.10 + 2", "2.10"),
    OPERATOR("-", NULL, CK_FN_INTERNAL, "Difference; of two timestamps an interval, of two dates days.",
             "DATE '2024-03-01' - DATE '2024-02-01'", "29"),
    OPERATOR("*", NULL, CK_FN_INTERNAL, "Product; of integers an error when it does not fit.", "1.5 * 1.5", "2.25"),
    OPERATOR("/", NULL, CK_FN_INTERNAL, "Quotient; of integers cut toward zero; by zero an error.", "7 / 2", "3"),
    OPERATOR("%", "mod", 0, "Remainder with the sign of a, also MOD(a, b).", "-7 % 3", "-1"),
    {.name = "neg",
     .flags = CK_FN_INTERNAL,
     .bind = bind_negate,
     .group = "numbers",
     .syntax = "- a",
     .summary = "The negative of a number or an interval.",
     .example = "-(3 - 5)",
     .result = "2"},
};
const ck_function_table ck_functions_arith = {functions, CK_ARRAY_COUNT(functions)};
