/* Comparisons, BETWEEN, IN with constants, IS [NOT] DISTINCT FROM. Strings compare byte by byte; DECIMALs exactly
 * whatever their scales; doubles as PostgreSQL's (NaN is equal to itself and greatest). */
#include "expr/bits_int.h"
#include "expr/coerce.h"
#include "expr/compare_int.h"
#include "expr/decimal.h"
#include "expr/functions_int.h"
#include "expr/lazy.h"

static const ck_cmp mirrored[CK_CMP_COUNT] = {CK_CMP_EQ, CK_CMP_NE, CK_CMP_GT, CK_CMP_GE, CK_CMP_LT, CK_CMP_LE};

/* ---- numbers ---- */

/* Operands with a constant on the right, if there is one. */
typedef struct operands {
    const ck_column *a, *b;
    ck_cmp op;
    int form; /* 0: two columns, 1: a column and a value */
} operands;

static operands arrange(const ck_expr *call, const ck_vec *args) {
    ck_cmp op = (ck_cmp)call->impl->op;
    if (args[0].constant && !args[1].constant) return (operands){args[1].col, args[0].col, mirrored[op], 1};
    return (operands){args[0].col, args[1].col, op, args[1].constant && !args[0].constant};
}

static void number_bits(const ck_eval *ev, const operands *o, uint64_t *bits, size_t n) {
    const ck_kernels *k = ev->kernels;
    switch (o->a->phys) {
    case CK_PHYS_I64: k->cmp_i64[o->op][o->form](bits, o->a->i64, o->b->i64, n); break;
    case CK_PHYS_F64: k->cmp_f64[o->op][o->form](bits, o->a->f64, o->b->f64, n); break;
    default: k->cmp_i128[o->op][o->form](bits, o->a->i128, o->b->i128, n); break;
    }
}

static ck_status kernel_number(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err) {
    operands o = arrange(call, args);
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    if (!rows->sel) {
        number_bits(ev, &o, out->col->bits, rows->n);
        return CK_OK;
    }
    const ck_kernels *k = ev->kernels;
    uint16_t *sel = ev->rows[1];
    uint32_t n;
    switch (o.a->phys) {
    case CK_PHYS_I64: n = k->sel_i64[o.op][o.form](sel, o.a->i64, o.b->i64, rows->sel, rows->n); break;
    case CK_PHYS_F64: n = k->sel_f64[o.op][o.form](sel, o.a->f64, o.b->f64, rows->sel, rows->n); break;
    default: n = k->sel_i128[o.op][o.form](sel, o.a->i128, o.b->i128, rows->sel, rows->n); break;
    }
    k->sel_to_bits(out->col->bits, sel, n, rows->row_count);
    return CK_OK;
}

static uint32_t keep_valid(uint16_t *sel, uint32_t n, const uint64_t *valid) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint16_t row = sel[k];
        sel[kept] = row;
        kept += ck_bit_get(valid, row);
    }
    return kept;
}

static ck_status select_number(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                               const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)err;
    operands o = arrange(call, args);
    const ck_kernels *k = ev->kernels;
    if (!rows->sel) {
        uint64_t *bits = ev->words[1];
        number_bits(ev, &o, bits, rows->n);
        for (size_t w = 0, words = valid ? ck_bitmap_words(rows->n) : 0; w < words; w++) bits[w] &= valid[w];
        *sel_count = k->bits_to_sel(sel, bits, rows->n);
        return CK_OK;
    }
    uint32_t n;
    switch (o.a->phys) {
    case CK_PHYS_I64: n = k->sel_i64[o.op][o.form](sel, o.a->i64, o.b->i64, rows->sel, rows->n); break;
    case CK_PHYS_F64: n = k->sel_f64[o.op][o.form](sel, o.a->f64, o.b->f64, rows->sel, rows->n); break;
    default: n = k->sel_i128[o.op][o.form](sel, o.a->i128, o.b->i128, rows->sel, rows->n); break;
    }
    *sel_count = valid ? keep_valid(sel, n, valid) : n;
    return CK_OK;
}

static bool holds(int c, ck_cmp op) {
    switch (op) {
    case CK_CMP_EQ: return c == 0;
    case CK_CMP_NE: return c != 0;
    case CK_CMP_LT: return c < 0;
    case CK_CMP_LE: return c <= 0;
    case CK_CMP_GT: return c > 0;
    default: return c >= 0;
    }
}

/* DECIMALs (and integers among them) of scales that one type cannot hold together. */
static ck_i128 unscaled(const ck_vec *v, uint32_t i) {
    return v->col->phys == CK_PHYS_I64 ? v->col->i64[CK_AT(*v, i)] : v->col->i128[CK_AT(*v, i)];
}

static ck_status kernel_mixed(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                              ck_error *err) {
    ck_cmp op = (ck_cmp)call->impl->op;
    int sa = call->args[0]->type->scale, sb = call->args[1]->type->scale;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i,
                 holds(ck_decimal_compare(unscaled(&args[0], i), sa, unscaled(&args[1], i), sb), op));
    return CK_OK;
}

/* ---- booleans ---- */

static ck_status kernel_boolean(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                                ck_error *err) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    for (size_t w = 0, words = ck_bitmap_words(rows->row_count); w < words; w++) {
        uint64_t a = args[0].constant ? 0 - (args[0].col->bits[0] & 1) : args[0].col->bits[w];
        uint64_t b = args[1].constant ? 0 - (args[1].col->bits[0] & 1) : args[1].col->bits[w];
        uint64_t less = ~a & b, more = a & ~b;
        static const uint8_t wants[CK_CMP_COUNT] = {2, 5, 1, 3, 4, 6}; /* less 1, equal 2, more 4 */
        uint8_t want = wants[call->impl->op];
        out->col->bits[w] = (want & 1 ? less : 0) | (want & 2 ? ~(a ^ b) : 0) | (want & 4 ? more : 0);
    }
    return CK_OK;
}

/* ---- strings ---- */

/* Length and prefix in one word; equal words of short strings need one more comparison, of long ones their bytes. */
static inline uint64_t view_head(const ck_strview *v) {
    uint64_t w;
    memcpy(&w, v, sizeof w);
    return w;
}
static inline uint64_t view_tail(const ck_strview *v) {
    uint64_t w;
    memcpy(&w, (const char *)v + 8, sizeof w);
    return w;
}

static inline bool views_equal(const ck_column *a, uint32_t i, const ck_column *b, uint32_t j) {
    const ck_strview *u = &a->views[i], *v = &b->views[j];
    if (view_head(u) != view_head(v)) return false;
    if (u->length <= CK_STRVIEW_INLINE) return view_tail(u) == view_tail(v);
    return memcmp(ck_column_str(a, i).p, ck_column_str(b, j).p, (size_t)u->length) == 0;
}

int ck_compare_views(const ck_column *a, uint32_t i, const ck_column *b, uint32_t j) {
    const ck_strview *u = &a->views[i], *v = &b->views[j];
    uint32_t x, y; /* four bytes, zero behind the end of shorter strings */
    memcpy(&x, u->ref.prefix, 4), memcpy(&y, v->ref.prefix, 4);
    if (x != y) return __builtin_bswap32(x) < __builtin_bswap32(y) ? -1 : 1;
    return ck_view_cmp(ck_column_str(a, i), ck_column_str(b, j));
}

int ck_compare_values(const ck_column *a, uint32_t i, const ck_column *b, uint32_t j) {
    switch (a->phys) {
    case CK_PHYS_BOOL: return (int)ck_bit_get(a->bits, i) - (int)ck_bit_get(b->bits, j);
    case CK_PHYS_I64: return (a->i64[i] > b->i64[j]) - (a->i64[i] < b->i64[j]);
    case CK_PHYS_I128: return (a->i128[i] > b->i128[j]) - (a->i128[i] < b->i128[j]);
    case CK_PHYS_VIEW: return ck_compare_views(a, i, b, j);
    default: break;
    }
    double x = a->f64[i], y = b->f64[j];
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
}

static ck_status kernel_string(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err) {
    ck_cmp op = (ck_cmp)call->impl->op;
    const ck_column *a = args[0].col, *b = args[1].col;
    bool ca = args[0].constant, cb = args[1].constant;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    uint64_t *bits = out->col->bits;
    if (op == CK_CMP_EQ)
        CK_FILL_BITS(bits, rows, i, views_equal(a, ca ? 0 : i, b, cb ? 0 : i));
    else if (op == CK_CMP_NE)
        CK_FILL_BITS(bits, rows, i, !views_equal(a, ca ? 0 : i, b, cb ? 0 : i));
    else
        CK_FILL_BITS(bits, rows, i, holds(ck_compare_views(a, ca ? 0 : i, b, cb ? 0 : i), op));
    return CK_OK;
}

static ck_status select_string(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                               const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)ev, (void)err, (void)valid;
    ck_cmp op = (ck_cmp)call->impl->op;
    const ck_column *a = args[0].col, *b = args[1].col;
    bool ca = args[0].constant, cb = args[1].constant;
    if (op == CK_CMP_EQ)
        CK_FILL_ROWS(sel, sel_count, rows, i, views_equal(a, ca ? 0 : i, b, cb ? 0 : i));
    else if (op == CK_CMP_NE)
        CK_FILL_ROWS(sel, sel_count, rows, i, !views_equal(a, ca ? 0 : i, b, cb ? 0 : i));
    else
        CK_FILL_ROWS(sel, sel_count, rows, i, holds(ck_compare_views(a, ca ? 0 : i, b, cb ? 0 : i), op));
    return CK_OK;
}

/* Equal to a string of at most 12 bytes: sixteen bytes against sixteen, whatever stands there. Zero when equal. */
static inline uint64_t short_difference(const ck_strview *v, uint64_t head, uint64_t tail) {
    return (view_head(v) ^ head) | (view_tail(v) ^ tail);
}

static ck_status kernel_short(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                              ck_error *err) {
    operands o = arrange(call, args);
    const ck_strview *v = o.a->views;
    uint64_t head = view_head(o.b->views), tail = view_tail(o.b->views);
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    uint64_t *bits = out->col->bits;
    if (o.op == CK_CMP_EQ)
        CK_FILL_BITS(bits, rows, i, short_difference(&v[i], head, tail) == 0);
    else
        CK_FILL_BITS(bits, rows, i, short_difference(&v[i], head, tail) != 0);
    return CK_OK;
}

static ck_status select_short(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                              const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)ev, (void)err;
    operands o = arrange(call, args);
    const ck_strview *v = o.a->views;
    uint64_t head = view_head(o.b->views), tail = view_tail(o.b->views);
    uint32_t flip = o.op == CK_CMP_NE;
    CK_FILL_ROWS(sel, sel_count, rows, i, (uint32_t)(short_difference(&v[i], head, tail) == 0) ^ flip);
    if (valid) *sel_count = keep_valid(sel, *sel_count, valid);
    return CK_OK;
}

/* ---- nested values: equality only ---- */

static ck_status kernel_nested(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err) {
    bool equal = call->impl->op == CK_CMP_EQ;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i,
                 ck_column_rows_equal(args[0].col, CK_AT(args[0], i), args[1].col, CK_AT(args[1], i)) == equal);
    return CK_OK;
}

/* ---- resolution ---- */

#define SIX(...)                                                                                                       \
    {                                                                                                                  \
        {.op = CK_CMP_EQ, __VA_ARGS__}, {.op = CK_CMP_NE, __VA_ARGS__}, {.op = CK_CMP_LT, __VA_ARGS__},                \
            {.op = CK_CMP_LE, __VA_ARGS__}, {.op = CK_CMP_GT, __VA_ARGS__}, {                                          \
            .op = CK_CMP_GE, __VA_ARGS__                                                                               \
        }                                                                                                              \
    }
static const ck_impl impl_number[] =
    SIX(.kernel = kernel_number, .select = select_number, .flags = CK_FN_BLIND | CK_FN_CHEAP);
static const ck_impl impl_mixed[] = SIX(.kernel = kernel_mixed, .flags = CK_FN_BLIND);
static const ck_impl impl_boolean[] = SIX(.kernel = kernel_boolean, .flags = CK_FN_BLIND | CK_FN_CHEAP);
static const ck_impl impl_string[] = SIX(.kernel = kernel_string, .select = select_string);
static const ck_impl impl_short[] =
    SIX(.kernel = kernel_short, .select = select_short, .flags = CK_FN_BLIND | CK_FN_CHEAP);
static const ck_impl impl_nested[] = SIX(.kernel = kernel_nested);

static bool is_short_literal(const ck_expr *e) {
    return e->kind == CK_EXPR_LITERAL && !e->value.null && e->value.str.n <= CK_STRVIEW_INLINE;
}

static const ck_impl *impl_for(const ck_bind_call *call, ck_cmp op) {
    const ck_expr *a = call->args[0], *b = call->args[1];
    switch (ck_type_phys(a->type)) {
    case CK_PHYS_BOOL: return &impl_boolean[op];
    case CK_PHYS_I64:
    case CK_PHYS_I128:
        return a->type->scale == b->type->scale && ck_type_phys(a->type) == ck_type_phys(b->type) ? &impl_number[op]
                                                                                                  : &impl_mixed[op];
    case CK_PHYS_F64: return &impl_number[op];
    case CK_PHYS_VIEW:
        if ((op == CK_CMP_EQ || op == CK_CMP_NE) && (is_short_literal(a) || is_short_literal(b)))
            return &impl_short[op];
        return &impl_string[op];
    case CK_PHYS_NULL: return &impl_nested[op];
    default: return op == CK_CMP_EQ || op == CK_CMP_NE ? &impl_nested[op] : NULL;
    }
}

/* DECIMALs meet at the greater scale where 38 digits hold both, else they are compared as they are. */
static ck_status unify_decimals(ck_bind_call *call, ck_error *err) {
    ck_expr **args = call->args;
    const ck_type *a = ck_as_decimal(call->arena, args[0]->type), *b = ck_as_decimal(call->arena, args[1]->type);
    if (!a || !b) return ck_nomem(err, call->arena->mem, sizeof *a);
    int whole = a->precision - a->scale > b->precision - b->scale ? a->precision - a->scale : b->precision - b->scale;
    int scale = a->scale > b->scale ? a->scale : b->scale;
    if (a->scale == b->scale && args[0]->type->kind == args[1]->type->kind) return CK_OK;
    if (whole + scale > CK_DECIMAL_DIGITS) return CK_OK;
    for (int i = 0; i < 2; i++) {
        const ck_type *mine = i ? b : a;
        const ck_type *to = ck_type_decimal(call->arena, mine->precision - mine->scale + scale, scale);
        if (!to) return ck_nomem(err, call->arena->mem, sizeof *to);
        CK_TRY(ck_coerce(call->arena, args[i], to, false, &args[i], err));
    }
    return CK_OK;
}

ck_status ck_unify_comparison(ck_bind_call *call, ck_error *err) {
    ck_expr **args = call->args;
    for (int i = 0; i < 2; i++) { /* NULLs and string literals take the other side's type */
        const ck_type *other = args[1 - i]->type;
        if (ck_expr_is_null_literal(args[i]) || (ck_expr_is_text_literal(args[i]) && other->kind != CK_TYPE_NULL))
            CK_TRY(ck_coerce(call->arena, args[i],
                             other->kind == CK_TYPE_VARCHAR ? ck_type_simple(CK_TYPE_VARCHAR) : other, true, &args[i],
                             err));
    }
    const ck_type *a = args[0]->type, *b = args[1]->type;
    if (ck_kind_is_integer(a->kind) && ck_kind_is_integer(b->kind)) return CK_OK;
    if (ck_kind_is_numeric(a->kind) && ck_kind_is_numeric(b->kind)) {
        if (!ck_kind_is_float(a->kind) && !ck_kind_is_float(b->kind)) return unify_decimals(call, err);
        for (int i = 0; i < 2; i++)
            if (!ck_kind_is_float(args[i]->type->kind))
                CK_TRY(ck_coerce(call->arena, args[i], ck_type_simple(CK_TYPE_DOUBLE), false, &args[i], err));
        return CK_OK;
    }
    const ck_type *both = ck_common_type(call->arena, a, b);
    if (!both)
        return ck_fail(err, CK_INVALID, "cannot compare %s with %s; cast one side", ck_type_name(call->arena, a),
                       ck_type_name(call->arena, b));
    for (int i = 0; i < 2; i++) CK_TRY(ck_coerce(call->arena, args[i], both, true, &args[i], err));
    return CK_OK;
}

static const char *const names[CK_CMP_COUNT] = {"=", "<>", "<", "<=", ">", ">="};

static ck_status bind_compare(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    CK_TRY(ck_unify_comparison(call, err));
    size_t op = 0;
    while (strcmp(names[op], call->name) != 0) op++;
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->nullable = call->args[0]->nullable || call->args[1]->nullable;
    call->impl = impl_for(call, (ck_cmp)op);
    if (!call->impl)
        return ck_fail(err, CK_INVALID, "%s has no order; only = and <> compare it",
                       ck_type_name(call->arena, call->args[0]->type));
    return CK_OK;
}

/* ---- IS [NOT] DISTINCT FROM ---- */

static ck_status kernel_distinct(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                                 ck_error *err) {
    bool same = call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    int sa = call->args[0]->type->scale, sb = call->args[1]->type->scale;
    if (args[0].col->phys != CK_PHYS_NULL && args[1].col->phys != CK_PHYS_NULL &&
        (sa != sb || args[0].col->phys != args[1].col->phys)) {
        CK_FILL_BITS(
            out->col->bits, rows, i,
            (ck_column_is_null(args[0].col, CK_AT(args[0], i)) || ck_column_is_null(args[1].col, CK_AT(args[1], i))
                 ? ck_column_is_null(args[0].col, CK_AT(args[0], i)) ==
                       ck_column_is_null(args[1].col, CK_AT(args[1], i))
                 : ck_decimal_compare(unscaled(&args[0], i), sa, unscaled(&args[1], i), sb) == 0) == same);
        return CK_OK;
    }
    CK_FILL_BITS(out->col->bits, rows, i,
                 ck_column_rows_equal(args[0].col, CK_AT(args[0], i), args[1].col, CK_AT(args[1], i)) == same);
    return CK_OK;
}
static const ck_impl impl_distinct[] = {{.kernel = kernel_distinct, .flags = CK_FN_NULLS, .op = 0},
                                        {.kernel = kernel_distinct, .flags = CK_FN_NULLS, .op = 1}};

static ck_status bind_distinct(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    CK_TRY(ck_unify_comparison(call, err));
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->nullable = false;
    call->impl = &impl_distinct[strcmp(call->name, "is_not_distinct_from") == 0];
    return CK_OK;
}

/* ---- BETWEEN and IN: checked here, taken apart by the compiler ---- */

static const ck_impl impl_between = {.flags = CK_FN_NULLS | CK_FN_CHEAP, .op = CK_LAZY_BETWEEN};
static const ck_impl impl_in_any = {.flags = CK_FN_NULLS, .op = CK_LAZY_IN};

static ck_status check_pair(const ck_bind_call *call, const char *op, uint32_t i, ck_error *err) {
    ck_expr *pair[2] = {call->args[0], call->args[i]}, *e;
    return ck_expr_call(call->arena, op, pair, 2, &e, err);
}

static ck_status bind_between(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 3) return ck_bind_mismatch(call, err);
    CK_TRY(check_pair(call, ">=", 1, err));
    CK_TRY(check_pair(call, "<=", 2, err));
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->impl = &impl_between;
    return CK_OK;
}

/* x and the list in one type, when that takes nothing but literals' conversions. */
static ck_status bind_in(ck_bind_call *call, ck_error *err) {
    if (call->arg_count < 2) return ck_bind_mismatch(call, err);
    bool constant = true;
    const ck_type *checked = NULL; /* of the latest literal: the next of its type compares as well */
    for (uint32_t i = 1; i < call->arg_count; i++) {
        const ck_expr *e = call->args[i];
        bool literal = e->kind == CK_EXPR_LITERAL;
        bool parsed = ck_expr_is_text_literal(e) && call->args[0]->type->kind != CK_TYPE_VARCHAR;
        if (!literal || parsed || e->type != checked) CK_TRY(check_pair(call, "=", i, err));
        checked = literal && !parsed ? e->type : NULL;
        constant = constant && literal;
    }
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->impl = &impl_in_any;
    if (!constant || call->arg_count == 2) return CK_OK;
    return ck_bind_in_set(call, err);
}

#define COMPARISON(NAME, SUMMARY, EXAMPLE, RESULT)                                                                     \
    {                                                                                                                  \
        .name = NAME, .flags = CK_FN_INTERNAL, .bind = bind_compare, .group = "comparison", .syntax = "a " NAME " b",  \
        .summary = SUMMARY, .example = EXAMPLE, .result = RESULT                                                       \
    }

static const ck_function functions[] = {
    COMPARISON("=", "Whether a and b are the same value; NULL when one is NULL.", "2 = 2.0", "true"),
    COMPARISON("<>", "Whether a and b are different values; also written !=.", "'a' <> 'A'", "true"),
    COMPARISON("<", "Whether a comes before b; strings compare byte by byte.", "'apple' < 'banana'", "true"),
    COMPARISON("<=", "Whether a is not after b.", "1 <= 1", "true"),
    COMPARISON(">", "Whether a comes after b.", "DATE '2024-03-01' > DATE '2024-02-29'", "true"),
    COMPARISON(">=", "Whether a is not before b.", "1.5 >= 2", "false"),
    {.name = "is_distinct_from",
     .flags = CK_FN_INTERNAL,
     .bind = bind_distinct,
     .group = "comparison",
     .syntax = "a IS DISTINCT FROM b",
     .summary = "As <>, but NULL is a value like any other.",
     .example = "NULL IS DISTINCT FROM 1",
     .result = "true"},
    {.name = "is_not_distinct_from",
     .flags = CK_FN_INTERNAL,
     .bind = bind_distinct,
     .group = "comparison",
     .syntax = "a IS NOT DISTINCT FROM b",
     .summary = "As =, but NULL is a value like any other.",
     .example = "NULL IS NOT DISTINCT FROM NULL",
     .result = "true"},
    {.name = "between",
     .flags = CK_FN_LAZY | CK_FN_INTERNAL,
     .bind = bind_between,
     .group = "comparison",
     .syntax = "a BETWEEN low AND high",
     .summary = "Whether low <= a and a <= high.",
     .example = "5 BETWEEN 1 AND 10",
     .result = "true"},
    {.name = "in",
     .flags = CK_FN_LAZY | CK_FN_INTERNAL,
     .bind = bind_in,
     .group = "comparison",
     .syntax = "a IN (b, c, ...)",
     .summary = "Whether a equals one of the list; NULL when none does and one is NULL.",
     .example = "'b' IN ('a', 'b')",
     .result = "true"},
};
const ck_function_table ck_functions_compare = {functions, CK_ARRAY_COUNT(functions)};
