/* Casts among BOOLEAN, integers, REAL, DOUBLE and DECIMAL. To integers as PostgreSQL rounds: decimals half away from
 * zero, doubles half to even. */
#include "expr/arith_int.h"
#include "expr/bits_int.h"
#include "expr/cast_int.h"
#include "expr/decimal.h"

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status int_narrow(CK_KERNEL_ARGS) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    memcpy(out->col->i64, args[0].col->i64, rows->row_count * sizeof(int64_t));
    return drop_on(ck_mark_outside(ev, rows, out->col, call->type->kind, err), out);
}

static ck_status int_double(CK_KERNEL_ARGS) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    const int64_t *v = args[0].col->i64;
    if (!rows->sel)
        ev->kernels->i64_to_f64(out->col->f64, v, rows->n);
    else
        for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = (double)v[i];
    if (call->type->kind == CK_TYPE_REAL)
        for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = (double)(float)v[i];
    return CK_OK;
}

static ck_status int_decimal(CK_KERNEL_ARGS) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_u128 by = (ck_u128)ck_pow10(call->type->scale);
    for (CK_EACH_ROW(k, i, rows)) out->col->i128[i] = (ck_i128)((ck_u128)(ck_i128)args[0].col->i64[i] * by);
    return CK_OK;
}

static ck_status int_decimal_checked(CK_KERNEL_ARGS) {
    const ck_type *t = call->type;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows))
        if (!ck_decimal_rescale(args[0].col->i64[i], 0, t->precision, t->scale, &out->col->i128[i]) && s == CK_OK)
            s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    return drop_on(s, out);
}

static ck_status int_bool(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i, args[0].col->i64[i] != 0);
    return CK_OK;
}

static ck_status double_int(CK_KERNEL_ARGS) {
    int64_t low, high;
    ck_kind_int_range(call->type->kind, &low, &high);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double v = __builtin_rint(args[0].col->f64[i]); /* to even at a half, in the default rounding mode */
        bool fits = v >= -9223372036854775808.0 && v < 9223372036854775808.0;
        int64_t r = fits ? (int64_t)v : 0;
        out->col->i64[i] = r;
        if ((!fits || r < low || r > high) && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

/* A finite double above the greatest REAL does not fit. */
static ck_status double_real(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double v = args[0].col->f64[i], r = (double)(float)v;
        out->col->f64[i] = r;
        if (__builtin_isinf(r) && !__builtin_isinf(v) && s == CK_OK)
            s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

static ck_status double_decimal(CK_KERNEL_ARGS) {
    const ck_type *t = call->type;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows))
        if (!ck_decimal_from_double(args[0].col->f64[i], t->precision, t->scale, &out->col->i128[i]) && s == CK_OK)
            s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    return drop_on(s, out);
}

static ck_status double_bool(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i, args[0].col->f64[i] != 0);
    return CK_OK;
}

static ck_status decimal_int(CK_KERNEL_ARGS) {
    int64_t low, high;
    ck_kind_int_range(call->type->kind, &low, &high);
    int scale = call->args[0]->type->scale;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_i128 r = 0;
        bool fits = ck_decimal_rescale(args[0].col->i128[i], scale, CK_DECIMAL_DIGITS, 0, &r) && r >= low && r <= high;
        out->col->i64[i] = fits ? (int64_t)r : 0;
        if (!fits && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

static ck_status decimal_double(CK_KERNEL_ARGS) {
    int scale = call->args[0]->type->scale;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        double v = ck_decimal_to_double(args[0].col->i128[i], scale);
        out->col->f64[i] = call->type->kind == CK_TYPE_REAL ? (double)(float)v : v;
    }
    return CK_OK;
}

static ck_status decimal_decimal(CK_KERNEL_ARGS) {
    const ck_type *t = call->type;
    int scale = call->args[0]->type->scale;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows))
        if (!ck_decimal_rescale(args[0].col->i128[i], scale, t->precision, t->scale, &out->col->i128[i]) && s == CK_OK)
            s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    return drop_on(s, out);
}

static ck_status decimal_bool(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i, args[0].col->i128[i] != 0);
    return CK_OK;
}

static ck_status bool_int(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = ck_bit_get(args[0].col->bits, i);
    return CK_OK;
}

static ck_status bool_double(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = ck_bit_get(args[0].col->bits, i);
    return CK_OK;
}

static ck_status bool_decimal(CK_KERNEL_ARGS) {
    const ck_type *t = call->type;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I128, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        bool v = ck_bit_get(args[0].col->bits, i);
        out->col->i128[i] = v ? ck_pow10(t->scale) : 0;
        if (v && t->scale == t->precision && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

const ck_impl ck_cast_int_narrow = {.kernel = int_narrow, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_int_double = {.kernel = int_double, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_int_real = {.kernel = int_double, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_int_decimal = {.kernel = int_decimal, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_int_decimal_checked = {.kernel = int_decimal_checked, .flags = CK_FN_FALLIBLE},
              ck_cast_int_bool = {.kernel = int_bool, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_double_int = {.kernel = double_int, .flags = CK_FN_FALLIBLE},
              ck_cast_double_real = {.kernel = double_real, .flags = CK_FN_FALLIBLE},
              ck_cast_double_decimal = {.kernel = double_decimal, .flags = CK_FN_FALLIBLE},
              ck_cast_double_bool = {.kernel = double_bool, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_decimal_int = {.kernel = decimal_int, .flags = CK_FN_FALLIBLE},
              ck_cast_decimal_double = {.kernel = decimal_double}, ck_cast_decimal_real = {.kernel = decimal_double},
              ck_cast_decimal_decimal = {.kernel = decimal_decimal, .flags = CK_FN_FALLIBLE},
              ck_cast_decimal_bool = {.kernel = decimal_bool, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_bool_int = {.kernel = bool_int, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_bool_double = {.kernel = bool_double, .flags = CK_FN_BLIND | CK_FN_CHEAP},
              ck_cast_bool_decimal = {.kernel = bool_decimal, .flags = CK_FN_FALLIBLE};
