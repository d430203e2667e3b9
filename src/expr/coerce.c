/* See coerce.h. */
#include "expr/coerce.h"

#include "base/limits.h"
#include "expr/tree_int.h"

static int max_int(int a, int b) { return a > b ? a : b; }
static int min_int(int a, int b) { return a < b ? a : b; }

static int integer_digits(ck_kind k) {
    switch (k) {
    case CK_TYPE_TINYINT: return 3;
    case CK_TYPE_SMALLINT: return 5;
    case CK_TYPE_INTEGER: return 10;
    default: return 19;
    }
}

const ck_type *ck_as_decimal(ck_arena *a, const ck_type *t) {
    if (t->kind == CK_TYPE_DECIMAL) return t;
    CK_ASSERT(ck_kind_is_integer(t->kind));
    return ck_type_decimal(a, integer_digits(t->kind), 0);
}

/* Holds the integer digits of both where it can, then as many of the fraction as fit (at least six of them). */
static const ck_type *common_decimal(ck_arena *a, const ck_type *x, const ck_type *y) {
    const ck_type *dx = ck_as_decimal(a, x), *dy = ck_as_decimal(a, y);
    if (!dx || !dy) return NULL;
    int scale = max_int(dx->scale, dy->scale);
    int whole = max_int(dx->precision - dx->scale, dy->precision - dy->scale);
    if (whole + scale > 38) scale = max_int(38 - whole, min_int(scale, 6));
    return ck_type_decimal(a, min_int(whole + scale, 38), scale);
}

static const ck_type *common_number(ck_arena *a, const ck_type *x, const ck_type *y) {
    if (ck_kind_is_float(x->kind) || ck_kind_is_float(y->kind))
        return ck_type_simple(x->kind == CK_TYPE_DOUBLE || y->kind == CK_TYPE_DOUBLE ? CK_TYPE_DOUBLE : CK_TYPE_REAL);
    if (x->kind == CK_TYPE_DECIMAL || y->kind == CK_TYPE_DECIMAL) return common_decimal(a, x, y);
    return ck_type_simple(x->kind > y->kind ? x->kind : y->kind);
}

static bool is_moment(ck_kind k) { return k == CK_TYPE_DATE || k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ; }

static const ck_type *common_moment(ck_arena *a, const ck_type *x, const ck_type *y) {
    ck_kind kind = x->kind > y->kind ? x->kind : y->kind;
    int px = x->kind == CK_TYPE_DATE ? 0 : x->precision, py = y->kind == CK_TYPE_DATE ? 0 : y->precision;
    return ck_type_with_precision(a, kind, max_int(px, py));
}

static const ck_type *common_nested(ck_arena *a, const ck_type *x, const ck_type *y) {
    if (x->field_count != y->field_count) return NULL;
    ck_field *fields = ck_arena_array(a, x->field_count, sizeof *fields);
    if (!fields) return NULL;
    for (uint32_t i = 0; i < x->field_count; i++) {
        const ck_type *t = ck_common_type(a, x->fields[i].type, y->fields[i].type);
        if (!t) return NULL;
        fields[i] = (ck_field){x->fields[i].name, t, x->fields[i].nullable || y->fields[i].nullable};
    }
    if (x->kind == CK_TYPE_ARRAY) return ck_type_array(a, fields[0].type, fields[0].nullable);
    if (x->kind == CK_TYPE_MAP) return ck_type_map(a, fields[0].type, fields[1].type, fields[1].nullable);
    return ck_type_row(a, fields, x->field_count);
}

const ck_type *ck_common_type(ck_arena *a, const ck_type *x, const ck_type *y) {
    if (x == y || y->kind == CK_TYPE_NULL || ck_type_eq(x, y)) return x;
    if (x->kind == CK_TYPE_NULL) return y;
    if (ck_kind_is_numeric(x->kind) && ck_kind_is_numeric(y->kind)) return common_number(a, x, y);
    if (is_moment(x->kind) && is_moment(y->kind)) return common_moment(a, x, y);
    if (x->kind != y->kind) return NULL;
    switch (x->kind) {
    case CK_TYPE_VARCHAR:
    case CK_TYPE_BYTES: /* 0 is without limit */
        if (!x->precision || !y->precision) return ck_type_simple(x->kind);
        return x->precision > y->precision ? x : y;
    case CK_TYPE_TIME: return x->precision > y->precision ? x : y;
    case CK_TYPE_ARRAY:
    case CK_TYPE_MAP:
    case CK_TYPE_ROW: return common_nested(a, x, y);
    default: return x;
    }
}

/* Literals cost so much that a call with a typed argument elsewhere decides, and VARCHAR is what they are. */
enum { COST_LITERAL = 40, COST_NULL = 1 };

int ck_implicit_cost(const ck_expr *e, ck_kind kind) {
    ck_kind from = e->type->kind;
    if (from == kind) return 0;
    if (from == CK_TYPE_NULL) return COST_NULL;
    if (ck_expr_is_text_literal(e)) return COST_LITERAL;
    if (ck_kind_is_numeric(from) && ck_kind_is_numeric(kind)) {
        static const int rank[CK_TYPE_COUNT] = {
            [CK_TYPE_TINYINT] = 1, [CK_TYPE_SMALLINT] = 2, [CK_TYPE_INTEGER] = 3, [CK_TYPE_BIGINT] = 4,
            [CK_TYPE_DECIMAL] = 5, [CK_TYPE_REAL] = 6,     [CK_TYPE_DOUBLE] = 7,
        };
        if (from == CK_TYPE_DECIMAL && kind == CK_TYPE_DOUBLE) return 1; /* DOUBLE is the preferred one, as in PG */
        return rank[kind] > rank[from] ? rank[kind] - rank[from] : -1;
    }
    if (is_moment(from) && is_moment(kind)) return kind > from ? (int)kind - (int)from : -1;
    return -1;
}

ck_status ck_coerce(ck_arena *a, ck_expr *e, const ck_type *to, bool lane, ck_expr **out, ck_error *err) {
    const ck_type *from = e->type;
    *out = e;
    if (from == to || ck_type_eq(from, to)) return CK_OK;
    if (ck_expr_is_null_literal(e)) {
        *out = ck_expr_null(a, to);
        return *out ? CK_OK : ck_nomem(err, a->mem, sizeof **out);
    }
    bool shares = (ck_kind_is_integer(from->kind) && ck_kind_is_integer(to->kind)) || from->kind == to->kind;
    if (lane && shares && to->kind != CK_TYPE_DECIMAL && !to->field_count) return CK_OK;
    ck_expr *cast;
    CK_TRY(ck_expr_cast(a, e, to, false, &cast, err));
    if (ck_expr_is_text_literal(e) && ck_expr_is_constant(cast) && cast->kind == CK_EXPR_CALL &&
        !ck_expr_any_flag(cast, CK_FN_ZONED))
        return ck_fail(err, CK_INVALID, "'%.*s' is not %s %s", (int)(e->value.str.n > 60 ? 60 : e->value.str.n),
                       e->value.str.p, ck_article(ck_type_name(a, to)), ck_type_name(a, to));
    *out = cast;
    return CK_OK;
}

const char *ck_article(const char *type_name) { return strchr("AI", type_name[0]) ? "an" : "a"; }

const char *ck_argument_types(ck_arena *a, ck_expr *const *args, uint32_t count) {
    ck_bytes b;
    ck_bytes_init(&b, a->mem, 4096);
    ck_status s = ck_bytes_char(&b, '(');
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        if (i) s = ck_bytes_str(&b, ", ");
        if (s == CK_OK) s = ck_bytes_str(&b, ck_type_name(a, args[i]->type));
    }
    if (s == CK_FULL) s = ck_bytes_str(&b, " ...");
    if (s == CK_OK) s = ck_bytes_char(&b, ')');
    char *z = s == CK_OK ? ck_arena_strndup(a, b.p, b.n) : NULL;
    ck_bytes_destroy(&b);
    return z ? z : "(...)";
}

static ck_status no_common(ck_bind_call *call, const ck_type *x, const ck_type *y, ck_error *err) {
    return ck_fail(err, CK_INVALID, "%s cannot mix %s and %s; cast one of them", call->fn->syntax,
                   ck_type_name(call->arena, x), ck_type_name(call->arena, y));
}

ck_status ck_unify(ck_bind_call *call, ck_expr **args, const uint32_t *which, uint32_t n, const ck_type **type,
                   ck_error *err) {
    const ck_type *t = NULL;
    bool text = false;
    for (uint32_t k = 0; k < n; k++) {
        const ck_expr *e = args[which ? which[k] : k];
        if (ck_expr_is_text_literal(e)) {
            text = true;
            continue;
        }
        const ck_type *both = t ? ck_common_type(call->arena, t, e->type) : e->type;
        if (!both) return no_common(call, t, e->type, err);
        t = both;
    }
    if (text && (!t || t->kind == CK_TYPE_NULL)) t = ck_type_simple(CK_TYPE_VARCHAR);
    if (!t) t = ck_type_simple(CK_TYPE_NULL);
    if (text && t->kind == CK_TYPE_VARCHAR) t = ck_type_simple(CK_TYPE_VARCHAR);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = which ? which[k] : k;
        CK_TRY(ck_coerce(call->arena, args[i], t, false, &args[i], err));
    }
    *type = t;
    return CK_OK;
}
