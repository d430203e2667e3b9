/* + - * / % of DECIMALs, integers counting as DECIMAL(19,0) and narrower. Result types as Flink's, cut to 38 digits
 * keeping min(scale, 6) of the fraction. Where 38 digits hold every exact result the loops are plain 128-bit ones that
 * cannot fail; the others go through decimal.h. */
#include "expr/arith_int.h"
#include "expr/coerce.h"
#include "expr/decimal.h"

static int max_int(int a, int b) { return a > b ? a : b; }
static int min_int(int a, int b) { return a < b ? a : b; }

/* ---- exact ---- */

static inline ck_i128 operand(const ck_column *c, size_t i) {
    return c->phys == CK_PHYS_I64 ? (ck_i128)c->i64[i] : c->i128[i];
}

/* out = a * x op b * y with wrapping arithmetic: rows without a value may hold anything. */
#define SCALED_SUM(NAME, A, B, SIGN)                                                                                   \
    static void NAME(ck_i128 *restrict out, const ck_column *a, size_t sa, ck_u128 x, const ck_column *b, size_t sb,   \
                     ck_u128 y, const ck_rows *rows) {                                                                 \
        for (CK_EACH_ROW(k, i, rows))                                                                                  \
            out[i] = (ck_i128)((ck_u128)(ck_i128)a->A[i * sa] * x SIGN(ck_u128)(ck_i128) b->B[i * sb] * y);            \
    }
SCALED_SUM(add_wide_wide, i128, i128, +)
SCALED_SUM(add_int_wide, i64, i128, +)
SCALED_SUM(add_wide_int, i128, i64, +)
SCALED_SUM(sub_wide_wide, i128, i128, -)
SCALED_SUM(sub_int_wide, i64, i128, -)
SCALED_SUM(sub_wide_int, i128, i64, -)

static ck_status kernel_exact_sum(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                  ck_vec *out, ck_error *err) {
    const ck_type *t = call->type;
    ck_u128 x = (ck_u128)ck_pow10(t->scale - call->args[0]->type->scale);
    ck_u128 y = (ck_u128)ck_pow10(t->scale - call->args[1]->type->scale);
    const ck_column *a = args[0].col, *b = args[1].col;
    size_t sa = !args[0].constant, sb = !args[1].constant;
    bool sub = call->impl->op == CK_SUB;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_i128 *r = out->col->i128;
    if (a->phys == CK_PHYS_I64)
        (sub ? sub_int_wide : add_int_wide)(r, a, sa, x, b, sb, y, rows);
    else if (b->phys == CK_PHYS_I64)
        (sub ? sub_wide_int : add_wide_int)(r, a, sa, x, b, sb, y, rows);
    else
        (sub ? sub_wide_wide : add_wide_wide)(r, a, sa, x, b, sb, y, rows);
    return CK_OK;
}

/* A column of integers times a constant that fits a word, either way round. */
static const ck_column *int_by_word(const ck_vec *args, int64_t *by) {
    for (int i = 0; i < 2; i++) {
        if (!args[1 - i].constant || args[i].constant || args[i].col->phys != CK_PHYS_I64) continue;
        ck_i128 v = operand(args[1 - i].col, 0);
        *by = (int64_t)v;
        if (v == *by) return args[i].col;
    }
    return NULL;
}

static ck_status kernel_exact_product(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                      ck_vec *out, ck_error *err) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_i128 *r = out->col->i128;
    int64_t by = 0;
    const ck_column *ints = rows->sel ? NULL : int_by_word(args, &by);
    if (ints) {
        ev->kernels->widen_mul(r, ints->i64, by, rows->n);
        return CK_OK;
    }
    const ck_column *a = args[0].col, *b = args[1].col;
    for (CK_EACH_ROW(k, i, rows))
        r[i] = (ck_i128)((ck_u128)operand(a, CK_AT(args[0], i)) * (ck_u128)operand(b, CK_AT(args[1], i)));
    return CK_OK;
}

/* ---- checked ---- */

/* A quotient whose dividend fits 128 bits, or 64. False: take the long way. */
static bool divide_short(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    int up = op->scale - op->scale_a + op->scale_b;
    ck_i128 n;
    if (up < 0 || up > CK_DECIMAL_DIGITS || __builtin_mul_overflow(a, ck_pow10(up), &n)) return false;
    ck_u128 x = ck_i128_abs(n), d = ck_i128_abs(b), q, r;
    if (x >> 64 || d >> 64)
        q = x / d, r = x % d;
    else
        q = (uint64_t)x / (uint64_t)d, r = (uint64_t)x % (uint64_t)d;
    if (r >= d - r) q++;
    if (q >= (ck_u128)ck_pow10(op->precision)) return false;
    *out = (n < 0) != (b < 0) ? -(ck_i128)q : (ck_i128)q;
    return true;
}

static bool compute(ck_arith op, const ck_decimal_op *d, ck_i128 a, ck_i128 b, ck_i128 *out) {
    switch (op) {
    case CK_ADD: return ck_decimal_add(d, a, b, out);
    case CK_SUB: return ck_decimal_sub(d, a, b, out);
    case CK_MUL: return ck_decimal_mul(d, a, b, out);
    case CK_DIV: return divide_short(d, a, b, out) || ck_decimal_div(d, a, b, out);
    default: return ck_decimal_mod(d, a, b, out);
    }
}

static ck_status kernel_checked(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                                ck_error *err) {
    ck_arith op = (ck_arith)call->impl->op;
    const ck_decimal_op d = {call->args[0]->type->scale, call->args[1]->type->scale, call->type->precision,
                             call->type->scale};
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_i128 a = operand(args[0].col, CK_AT(args[0], i)), b = operand(args[1].col, CK_AT(args[1], i));
        ck_mark mark = op >= CK_DIV && b == 0                      ? CK_MARK_DIVISION
                       : compute(op, &d, a, b, &out->col->i128[i]) ? CK_MARK_NONE
                                                                   : CK_MARK_OVERFLOW;
        if (mark != CK_MARK_NONE && s == CK_OK) s = ck_eval_mark(ev, out->col, i, mark, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static const ck_impl impl_exact[] = {
    {.kernel = kernel_exact_sum, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = CK_ADD},
    {.kernel = kernel_exact_sum, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = CK_SUB},
    {.kernel = kernel_exact_product, .flags = CK_FN_BLIND | CK_FN_CHEAP, .op = CK_MUL},
};
#define CHECKED(OP)                                                                                                    \
    { .kernel = kernel_checked, .flags = CK_FN_FALLIBLE, .op = OP }
static const ck_impl impl_checked[CK_ARITH_COUNT] = {CHECKED(CK_ADD), CHECKED(CK_SUB), CHECKED(CK_MUL), CHECKED(CK_DIV),
                                                     CHECKED(CK_MOD)};

/* ---- types ---- */

static ck_decimal_op result_of(ck_arith op, const ck_type *a, const ck_type *b) {
    int p1 = a->precision, s1 = a->scale, p2 = b->precision, s2 = b->scale;
    ck_decimal_op r = {s1, s2, 0, max_int(s1, s2)};
    switch (op) {
    case CK_ADD:
    case CK_SUB: r.precision = max_int(p1 - s1, p2 - s2) + r.scale + 1; break;
    case CK_MUL: r.scale = s1 + s2, r.precision = p1 + p2 + 1; break;
    case CK_DIV: r.scale = max_int(6, s1 + p2 + 1), r.precision = p1 - s1 + s2 + r.scale; break;
    default: r.precision = min_int(p1 - s1, p2 - s2) + r.scale; break;
    }
    return r;
}

ck_status ck_bind_decimal_arith(ck_bind_call *call, ck_arith op, ck_error *err) {
    const ck_type *a = ck_as_decimal(call->arena, call->args[0]->type);
    const ck_type *b = ck_as_decimal(call->arena, call->args[1]->type);
    if (!a || !b) return ck_nomem(err, call->arena->mem, sizeof *a);
    ck_decimal_op r = result_of(op, a, b);
    bool exact = op <= CK_MUL && r.precision <= CK_DECIMAL_DIGITS;
    if (r.precision > CK_DECIMAL_DIGITS) {
        r.scale = max_int(CK_DECIMAL_DIGITS - (r.precision - r.scale), min_int(r.scale, 6));
        r.precision = CK_DECIMAL_DIGITS;
    }
    if (r.precision < 1) r.precision = 1; /* the remainder by a number below one of a number below one */
    call->type = ck_type_decimal(call->arena, r.precision, r.scale);
    call->impl = exact ? &impl_exact[op] : &impl_checked[op];
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *a);
}
