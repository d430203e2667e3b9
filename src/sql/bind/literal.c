/* Literals: numbers, strings, bytes, typed strings, intervals. */
#include "data/text.h"
#include "sql/bind/bind_int.h"

static ck_status literal(ck_binder *b, const ck_type *type, ck_datum value, ck_pos at, ck_expr **out) {
    *out = type ? ck_expr_literal(b->plan.arena, type, value) : NULL;
    if (!*out) return ck_bind_nomem(b);
    (*out)->line = at.line, (*out)->col = at.column;
    return CK_OK;
}

ck_status ck_bind_string(ck_binder *b, ck_view text, ck_pos at, ck_expr **out) {
    return literal(b, ck_type_simple(CK_TYPE_VARCHAR), (ck_datum){.str = text}, at, out);
}

/* Digits without sign and point, as a decimal's unscaled value; at most 38 of them. */
static bool unscaled(ck_view digits, ck_i128 *out) {
    *out = 0;
    int count = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] == '.') continue;
        if (count == 38) return false;
        *out = *out * 10 + (digits.p[i] - '0');
        if (*out != 0) count++;
    }
    return true;
}

static ck_status decimal(ck_binder *b, const ck_ast_expr *e, bool negative, ck_expr **out) {
    const char *point = memchr(e->name.p, '.', e->name.n);
    int scale = point ? (int)(e->name.p + e->name.n - point - 1) : 0;
    ck_i128 v;
    if (scale > 38 || !unscaled(e->name, &v))
        return ck_bind_fail(b, e->pos, "this number has more than 38 digits; write it with an exponent for a DOUBLE");
    int digits = 0;
    for (ck_i128 x = v; x > 0; x /= 10) digits++;
    int precision = digits > scale ? digits : scale;
    return literal(b, ck_type_decimal(b->plan.arena, precision ? precision : 1, scale),
                   (ck_datum){.i128 = negative ? -v : v}, e->pos, out);
}

/* INTEGER where it fits, then BIGINT, then DECIMAL. */
static ck_status integer(ck_binder *b, const ck_ast_expr *e, bool negative, ck_expr **out) {
    ck_i128 v;
    if (!unscaled(e->name, &v)) return decimal(b, e, negative, out);
    if (negative) v = -v;
    if (v < INT64_MIN || v > INT64_MAX) return decimal(b, e, negative, out);
    ck_kind kind = v >= INT32_MIN && v <= INT32_MAX ? CK_TYPE_INTEGER : CK_TYPE_BIGINT;
    return literal(b, ck_type_simple(kind), (ck_datum){.i64 = (int64_t)v}, e->pos, out);
}

static ck_status number_with_exponent(ck_binder *b, const ck_ast_expr *e, bool negative, ck_expr **out) {
    double v;
    if (!ck_parse_f64(e->name, &v) || v - v != 0)
        return ck_bind_fail(b, e->pos, "%.*s is out of range for DOUBLE", ck_cut(e->name), e->name.p);
    return literal(b, ck_type_simple(CK_TYPE_DOUBLE), (ck_datum){.f64 = negative ? -v : v}, e->pos, out);
}

/* DATE '2020-01-01': a cast that must succeed now. */
static ck_status typed(ck_binder *b, const ck_ast_expr *e, ck_expr **out) {
    const ck_type *type;
    ck_expr *text;
    CK_TRY(ck_bind_type(b, e->type, b->plan.arena, &type));
    CK_TRY(ck_bind_string(b, e->name, e->pos, &text));
    CK_TRY(ck_bind_cast(b, text, type, false, e->pos, &text));
    ck_status s = ck_expr_fold(b->plan.arena, text, out, b->err);
    if (s == CK_DATA)
        return ck_bind_fail(b, e->pos, "'%.*s' is not a %s", ck_cut(e->name), e->name.p,
                            ck_type_name(b->plan.arena, type));
    return ck_bind_at(b, e->pos, s);
}

ck_status ck_bind_literal(ck_binder *b, const ck_ast_expr *e, bool negative, ck_expr **out) {
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_NULL: return literal(b, ck_type_simple(CK_TYPE_NULL), (ck_datum){.null = true}, e->pos, out);
    case CK_AST_BOOL: return literal(b, ck_type_simple(CK_TYPE_BOOLEAN), (ck_datum){.b = e->flag}, e->pos, out);
    case CK_AST_INTEGER: return integer(b, e, negative, out);
    case CK_AST_DECIMAL: return decimal(b, e, negative, out);
    case CK_AST_DOUBLE: return number_with_exponent(b, e, negative, out);
    case CK_AST_STRING: return ck_bind_string(b, e->name, e->pos, out);
    case CK_AST_BYTES: return literal(b, ck_type_simple(CK_TYPE_BYTES), (ck_datum){.str = e->name}, e->pos, out);
    case CK_AST_TYPED: return typed(b, e, out);
    default: CK_ASSERT(e->kind == CK_AST_INTERVAL); return ck_bind_interval(b, e, out);
    }
}
