/* CAST and TRY_CAST: which pairs of types there are. */
#include "expr/cast_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"

static ck_status kernel_none(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                             ck_error *err) {
    (void)ev, (void)call, (void)rows, (void)err;
    out->col = ck_column_ref(args[0].col);
    return CK_OK;
}
const ck_impl ck_cast_none = {.kernel = kernel_none, .flags = CK_FN_BLIND | CK_FN_CHEAP};

static int int_digits(ck_kind k) {
    return k == CK_TYPE_TINYINT ? 3 : k == CK_TYPE_SMALLINT ? 5 : k == CK_TYPE_INTEGER ? 10 : 19;
}

static const ck_impl *from_integer(const ck_type *from, const ck_type *to) {
    switch (to->kind) {
    case CK_TYPE_BOOLEAN: return &ck_cast_int_bool;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT: return to->kind >= from->kind ? &ck_cast_none : &ck_cast_int_narrow;
    case CK_TYPE_REAL: return &ck_cast_int_real;
    case CK_TYPE_DOUBLE: return &ck_cast_int_double;
    case CK_TYPE_DECIMAL:
        return to->precision - to->scale >= int_digits(from->kind) ? &ck_cast_int_decimal
                                                                   : &ck_cast_int_decimal_checked;
    case CK_TYPE_VARCHAR: return to->precision ? &ck_cast_any_text : &ck_cast_int_text;
    default: return NULL;
    }
}

static const ck_impl *from_double(const ck_type *from, const ck_type *to) {
    switch (to->kind) {
    case CK_TYPE_BOOLEAN: return &ck_cast_double_bool;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT: return &ck_cast_double_int;
    case CK_TYPE_REAL: return from->kind == CK_TYPE_REAL ? &ck_cast_none : &ck_cast_double_real;
    case CK_TYPE_DOUBLE: return &ck_cast_none;
    case CK_TYPE_DECIMAL: return &ck_cast_double_decimal;
    case CK_TYPE_VARCHAR: return &ck_cast_any_text;
    default: return NULL;
    }
}

static const ck_impl *from_decimal(const ck_type *from, const ck_type *to) {
    switch (to->kind) {
    case CK_TYPE_BOOLEAN: return &ck_cast_decimal_bool;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT: return &ck_cast_decimal_int;
    case CK_TYPE_REAL: return &ck_cast_decimal_real;
    case CK_TYPE_DOUBLE: return &ck_cast_decimal_double;
    case CK_TYPE_DECIMAL:
        if (from->scale == to->scale && from->precision <= to->precision) return &ck_cast_none;
        return &ck_cast_decimal_decimal;
    case CK_TYPE_VARCHAR: return &ck_cast_any_text;
    default: return NULL;
    }
}

static const ck_impl *from_boolean(const ck_type *to) {
    if (ck_kind_is_integer(to->kind)) return &ck_cast_bool_int;
    if (ck_kind_is_float(to->kind)) return &ck_cast_bool_double;
    if (to->kind == CK_TYPE_DECIMAL) return &ck_cast_bool_decimal;
    return to->kind == CK_TYPE_VARCHAR ? &ck_cast_any_text : NULL;
}

static const ck_impl *from_text(const ck_type *from, const ck_type *to) {
    switch (to->kind) {
    case CK_TYPE_BOOLEAN: return &ck_cast_text_bool;
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT: return &ck_cast_text_int;
    case CK_TYPE_REAL:
    case CK_TYPE_DOUBLE: return &ck_cast_text_double;
    case CK_TYPE_DECIMAL: return &ck_cast_text_decimal;
    case CK_TYPE_VARCHAR:
        return !to->precision || (from->precision && from->precision <= to->precision) ? &ck_cast_none
                                                                                       : &ck_cast_text_text;
    case CK_TYPE_BYTES: return &ck_cast_text_bytes;
    case CK_TYPE_DATE: return &ck_cast_text_date;
    case CK_TYPE_TIME: return &ck_cast_text_time;
    case CK_TYPE_TIMESTAMP: return &ck_cast_text_timestamp;
    case CK_TYPE_TIMESTAMP_LTZ: return &ck_cast_text_ltz;
    case CK_TYPE_INTERVAL_MONTH: return &ck_cast_text_months;
    case CK_TYPE_INTERVAL_US: return &ck_cast_text_interval;
    default: return NULL;
    }
}

static const ck_impl *from_time(const ck_type *from, const ck_type *to) {
    ck_kind k = from->kind;
    bool finer = to->precision < from->precision;
    switch (to->kind) {
    case CK_TYPE_VARCHAR: return k == CK_TYPE_TIMESTAMP_LTZ ? &ck_cast_ltz_text : &ck_cast_any_text;
    case CK_TYPE_DATE:
        return k == CK_TYPE_TIMESTAMP ? &ck_cast_timestamp_date : k == CK_TYPE_TIMESTAMP_LTZ ? &ck_cast_ltz_date : NULL;
    case CK_TYPE_TIME:
        if (k == CK_TYPE_TIME) return finer ? &ck_cast_precision : &ck_cast_none;
        return k == CK_TYPE_TIMESTAMP ? &ck_cast_timestamp_time : k == CK_TYPE_TIMESTAMP_LTZ ? &ck_cast_ltz_time : NULL;
    case CK_TYPE_TIMESTAMP:
        if (k == CK_TYPE_TIMESTAMP) return finer ? &ck_cast_precision : &ck_cast_none;
        return k == CK_TYPE_DATE ? &ck_cast_date_timestamp : k == CK_TYPE_TIMESTAMP_LTZ ? &ck_cast_ltz_timestamp : NULL;
    case CK_TYPE_TIMESTAMP_LTZ:
        if (k == CK_TYPE_TIMESTAMP_LTZ) return finer ? &ck_cast_precision : &ck_cast_none;
        return k == CK_TYPE_DATE ? &ck_cast_date_ltz : k == CK_TYPE_TIMESTAMP ? &ck_cast_timestamp_ltz : NULL;
    default: return NULL;
    }
}

const ck_impl *ck_cast_impl(const ck_type *from, const ck_type *to) {
    if (ck_kind_is_integer(from->kind)) return from_integer(from, to);
    if (ck_kind_is_float(from->kind)) return from_double(from, to);
    if (ck_kind_is_datetime(from->kind)) return from_time(from, to);
    switch (from->kind) {
    case CK_TYPE_DECIMAL: return from_decimal(from, to);
    case CK_TYPE_BOOLEAN: return from_boolean(to);
    case CK_TYPE_VARCHAR: return from_text(from, to);
    case CK_TYPE_BYTES:
        if (to->kind == CK_TYPE_VARCHAR) return &ck_cast_bytes_text;
        if (to->kind == CK_TYPE_BYTES) return to->precision ? &ck_cast_bytes_bytes : &ck_cast_none;
        return NULL;
    default:
        if (ck_cast_nested_possible(from, to)) return &ck_cast_nested;
        return to->kind == CK_TYPE_VARCHAR ? &ck_cast_any_text : NULL;
    }
}

static ck_status by_name(ck_bind_call *call, ck_error *err) {
    return ck_fail(err, CK_INVALID, "%s needs a type; it is not called by name", call->fn->syntax);
}

enum { CAST_FUNCTION, TRY_CAST_FUNCTION };
static const ck_function functions[] = {
    [CAST_FUNCTION] = {.name = "cast",
                       .flags = CK_FN_INTERNAL,
                       .bind = by_name,
                       .group = "conversions",
                       .syntax = "CAST(a AS type)",
                       .summary = "a as a value of another type, an error where it cannot be; strings may have spaces "
                                  "around the value. Also a::type.",
                       .example = "CAST('12' AS BIGINT) + 1",
                       .result = "13"},
    [TRY_CAST_FUNCTION] = {.name = "try_cast",
                           .flags = CK_FN_INTERNAL | CK_FN_TRY,
                           .bind = by_name,
                           .group = "conversions",
                           .syntax = "TRY_CAST(a AS type)",
                           .summary = "As CAST, but NULL where the value cannot be converted.",
                           .example = "TRY_CAST('abc' AS BIGINT)",
                           .result = "NULL"},
};
const ck_function_table ck_functions_cast = {functions, CK_ARRAY_COUNT(functions)};

ck_status ck_expr_cast(ck_arena *a, ck_expr *e, const ck_type *to, bool try_cast, ck_expr **out, ck_error *err) {
    *out = e;
    if (ck_type_eq(e->type, to)) return CK_OK;
    if (e->type->kind == CK_TYPE_NULL || (ck_expr_is_null_literal(e) && ck_cast_impl(e->type, to))) {
        *out = ck_expr_null(a, to);
        return *out ? CK_OK : ck_nomem(err, a->mem, sizeof **out);
    }
    const ck_impl *impl = ck_cast_impl(e->type, to);
    if (!impl)
        return ck_fail(err, CK_INVALID, "cannot cast %s to %s%s", ck_type_name(a, e->type), ck_type_name(a, to),
                       ck_kind_is_integer(e->type->kind) && ck_kind_is_datetime(to->kind)
                           ? "; TO_TIMESTAMP_LTZ(x, 3) makes a timestamp of epoch milliseconds"
                           : "");
    if (e->kind == CK_EXPR_LITERAL && impl == &ck_cast_none) { /* the same value under another type */
        *out = ck_expr_literal(a, to, e->value);
        if (*out) (*out)->line = e->line, (*out)->col = e->col;
        return *out ? CK_OK : ck_nomem(err, a->mem, sizeof **out);
    }
    bool may_fail = try_cast && (impl->flags & CK_FN_FALLIBLE);
    *out = ck_expr_new_call(a, &functions[may_fail ? TRY_CAST_FUNCTION : CAST_FUNCTION], impl, &e, 1, to,
                            e->nullable || may_fail);
    if (!*out) return ck_nomem(err, a->mem, sizeof **out);
    (*out)->line = e->line, (*out)->col = e->col;
    if (e->kind != CK_EXPR_LITERAL) return CK_OK;
    /* A literal that converts is a literal; one that does not fails, if ever, when it is evaluated. */
    ck_expr *folded;
    ck_status s = ck_expr_fold(a, *out, &folded, NULL);
    if (s == CK_OK) *out = folded;
    return s == CK_NOMEM ? ck_nomem(err, a->mem, sizeof **out) : CK_OK;
}

/* Of no use to people, so not in the table: the binder makes it, and documents of expressions name it. */
static const ck_function assign_function = {
    .name = "assign", .flags = CK_FN_INTERNAL, .bind = by_name, .syntax = "assign"};

/* Whether a cast would cut a text that an assignment has to keep. */
static bool cuts(const ck_type *from, const ck_type *to) {
    if (to->kind == CK_TYPE_VARCHAR || to->kind == CK_TYPE_BYTES)
        return to->precision && !(from->kind == to->kind && from->precision && from->precision <= to->precision);
    for (uint32_t i = 0; from->kind == to->kind && i < to->field_count && i < from->field_count; i++)
        if (cuts(from->fields[i].type, to->fields[i].type)) return true;
    return false;
}

ck_status ck_expr_assign(ck_arena *a, ck_expr *e, const ck_type *to, const char *column, ck_expr **out, ck_error *err) {
    if (ck_expr_is_null_literal(e) || ck_type_eq(e->type, to) || !cuts(e->type, to))
        return ck_expr_cast(a, e, to, false, out, err);
    bool text = to->kind == CK_TYPE_VARCHAR || to->kind == CK_TYPE_BYTES;
    if (text) CK_TRY(ck_expr_cast(a, e, ck_type_simple(to->kind), false, &e, err));
    if (!text && !ck_cast_nested_possible(e->type, to)) return ck_expr_cast(a, e, to, false, out, err);
    ck_expr *name = ck_expr_literal(a, ck_type_simple(CK_TYPE_VARCHAR), (ck_datum){.str = ck_view_of(column)});
    ck_expr *args[] = {e, name};
    *out = name ? ck_expr_new_call(a, &assign_function, text ? &ck_assign_text : &ck_assign_nested, args, 2, to,
                                   e->nullable)
                : NULL;
    if (!*out) return ck_nomem(err, a->mem, sizeof **out);
    (*out)->line = e->line, (*out)->col = e->col;
    return CK_OK;
}
