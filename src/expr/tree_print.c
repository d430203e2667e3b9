/* SQL text of an expression. Operators inside operators stand in parentheses, functions are lower case, names are
 * quoted only where they must be. The canonical text names value fields of state and goes into uids and fingerprints:
 * it changes only with a version of those formats. The one for people may change. */
#include "expr/tree_int.h"

#include "data/text.h"
#include "expr/lazy.h"

typedef struct printer {
    const char *const *names;
    ck_bytes *out;
    bool for_people;
} printer;

static ck_status print(const printer *p, const ck_expr *e, bool inside);

static ck_status quoted(ck_bytes *out, ck_view v, char quote) {
    CK_TRY(ck_bytes_char(out, quote));
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == quote) CK_TRY(ck_bytes_char(out, quote));
        CK_TRY(ck_bytes_char(out, v.p[i]));
    }
    return ck_bytes_char(out, quote);
}

static bool is_plain_name(const char *z, bool dotted) {
    if (!((*z >= 'a' && *z <= 'z') || (*z >= 'A' && *z <= 'Z') || *z == '_')) return false;
    for (; *z; z++)
        if (!((*z >= 'a' && *z <= 'z') || (*z >= 'A' && *z <= 'Z') || (*z >= '0' && *z <= '9') || *z == '_' ||
              (dotted && *z == '.')))
            return false;
    return true;
}

static ck_status print_column(const printer *p, uint32_t column) {
    const char *name = p->names ? p->names[column] : NULL;
    if (!name) return ck_bytes_printf(p->out, "$%u", column);
    return is_plain_name(name, p->for_people) ? ck_bytes_str(p->out, name) : quoted(p->out, ck_view_of(name), '"');
}

static ck_status print_hex(ck_bytes *out, ck_view v) {
    static const char digits[] = "0123456789abcdef";
    CK_TRY(ck_bytes_str(out, "x'"));
    for (size_t i = 0; i < v.n; i++) {
        CK_TRY(ck_bytes_char(out, digits[(unsigned char)v.p[i] >> 4]));
        CK_TRY(ck_bytes_char(out, digits[(unsigned char)v.p[i] & 15]));
    }
    return ck_bytes_char(out, '\'');
}

/* A double shows that it is one: an exponent, or the words of NaN and infinity in a cast. */
static ck_status print_double(ck_bytes *out, double v, const char *type) {
    char text[40];
    size_t n = ck_print_f64(text, v);
    ck_view t = {text, n};
    if (v != v || __builtin_isinf(v)) return ck_bytes_printf(out, "cast('%.*s' AS %s)", (int)n, text, type);
    bool exponent = memchr(text, 'e', n) || memchr(text, 'E', n);
    CK_TRY(ck_bytes_view(out, t));
    return exponent ? CK_OK : ck_bytes_str(out, "e0");
}

/* In the largest unit that holds it: INTERVAL '10' MINUTE. */
static ck_status print_interval(int64_t us, ck_bytes *out) {
    static const struct {
        int64_t us;
        const char *word;
    } units[] = {{86400000000LL, "DAY"}, {3600000000LL, "HOUR"}, {60000000LL, "MINUTE"}};
    char text[48];
    for (size_t i = 0; us != 0 && i < CK_ARRAY_COUNT(units); i++)
        if (us % units[i].us == 0)
            return ck_bytes_printf(out, "INTERVAL '%lld' %s", (long long)(us / units[i].us), units[i].word);
    size_t n = ck_print_decimal(text, us, 6);
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    return ck_bytes_printf(out, "INTERVAL '%.*s' SECOND", (int)n, text);
}

static ck_status print_literal(const printer *p, const ck_expr *e) {
    ck_bytes *out = p->out;
    const ck_datum *v = &e->value;
    char text[48];
    if (v->null) {
        if (e->type->kind == CK_TYPE_NULL) return ck_bytes_str(out, "NULL");
        CK_TRY(ck_bytes_str(out, "cast(NULL AS "));
        CK_TRY(ck_type_print(e->type, out));
        return ck_bytes_char(out, ')');
    }
    int digits = e->type->precision;
    size_t n;
    switch (e->type->kind) {
    case CK_TYPE_BOOLEAN: return ck_bytes_str(out, v->b ? "TRUE" : "FALSE");
    case CK_TYPE_REAL: return print_double(out, v->f64, "REAL");
    case CK_TYPE_DOUBLE: return print_double(out, v->f64, "DOUBLE");
    case CK_TYPE_DECIMAL: n = ck_print_decimal(text, v->i128, e->type->scale); break;
    case CK_TYPE_VARCHAR: return quoted(out, v->str, '\'');
    case CK_TYPE_BYTES: return print_hex(out, v->str);
    case CK_TYPE_DATE: n = ck_print_date(text, v->i64); return ck_bytes_printf(out, "DATE '%.*s'", (int)n, text);
    case CK_TYPE_TIME:
        n = ck_print_time(text, v->i64, digits);
        return ck_bytes_printf(out, "TIME '%.*s'", (int)n, text);
    case CK_TYPE_TIMESTAMP:
        n = ck_print_timestamp(text, v->i64, digits, ' ', false);
        return ck_bytes_printf(out, "TIMESTAMP '%.*s'", (int)n, text);
    case CK_TYPE_TIMESTAMP_LTZ:
        n = ck_print_timestamp(text, v->i64, digits, ' ', true);
        return ck_bytes_printf(out, "TIMESTAMP_LTZ '%.*s'", (int)n, text);
    case CK_TYPE_INTERVAL_MONTH: return ck_bytes_printf(out, "INTERVAL '%lld' MONTH", (long long)v->i64);
    case CK_TYPE_INTERVAL_US:
        if (p->for_people) return print_interval(v->i64, out);
        n = ck_print_decimal(text, v->i64, 6);
        return ck_bytes_printf(out, "INTERVAL '%.*s' SECOND", (int)n, text);
    default: n = ck_print_i64(text, v->i64); break;
    }
    return ck_bytes_view(out, (ck_view){text, n});
}

static ck_status print_list(const printer *p, ck_expr *const *args, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) CK_TRY(ck_bytes_str(p->out, ", "));
        CK_TRY(print(p, args[i], false));
    }
    return CK_OK;
}

static ck_status print_cast(const printer *p, const ck_expr *e) {
    CK_TRY(ck_bytes_printf(p->out, "%s(", e->fn->name));
    CK_TRY(print(p, e->args[0], false));
    CK_TRY(ck_bytes_str(p->out, " AS "));
    CK_TRY(ck_type_print(e->type, p->out));
    return ck_bytes_char(p->out, ')');
}

static ck_status print_case(const printer *p, const ck_expr *e) {
    CK_TRY(ck_bytes_str(p->out, "CASE"));
    for (uint32_t i = 0; i + 1 < e->arg_count; i += 2) {
        CK_TRY(ck_bytes_str(p->out, " WHEN "));
        CK_TRY(print(p, e->args[i], false));
        CK_TRY(ck_bytes_str(p->out, " THEN "));
        CK_TRY(print(p, e->args[i + 1], false));
    }
    if (e->arg_count % 2) {
        CK_TRY(ck_bytes_str(p->out, " ELSE "));
        CK_TRY(print(p, e->args[e->arg_count - 1], false));
    }
    return ck_bytes_str(p->out, " END");
}

/* "a + b + c": the arguments with a word between them. */
static ck_status print_infix(const printer *p, const ck_expr *e, const char *word, bool inside) {
    if (inside) CK_TRY(ck_bytes_char(p->out, '('));
    for (uint32_t i = 0; i < e->arg_count; i++) {
        if (i) CK_TRY(ck_bytes_printf(p->out, " %s ", word));
        CK_TRY(print(p, e->args[i], true));
    }
    return inside ? ck_bytes_char(p->out, ')') : CK_OK;
}

static ck_status print_around(const printer *p, const char *before, const ck_expr *e, const char *after, bool inside) {
    if (inside) CK_TRY(ck_bytes_char(p->out, '('));
    CK_TRY(ck_bytes_str(p->out, before));
    CK_TRY(print(p, e, true));
    CK_TRY(ck_bytes_str(p->out, after));
    return inside ? ck_bytes_char(p->out, ')') : CK_OK;
}

static ck_status print_like(const printer *p, const ck_expr *e, const char *word, bool inside) {
    if (inside) CK_TRY(ck_bytes_char(p->out, '('));
    CK_TRY(print(p, e->args[0], true));
    CK_TRY(ck_bytes_printf(p->out, " %s ", word));
    CK_TRY(print(p, e->args[1], true));
    if (e->arg_count == 3) {
        CK_TRY(ck_bytes_str(p->out, " ESCAPE "));
        CK_TRY(print(p, e->args[2], true));
    }
    return inside ? ck_bytes_char(p->out, ')') : CK_OK;
}

static ck_status print_membership(const printer *p, const ck_expr *e, bool between, bool inside) {
    if (inside) CK_TRY(ck_bytes_char(p->out, '('));
    CK_TRY(print(p, e->args[0], true));
    if (between) {
        CK_TRY(ck_bytes_str(p->out, " BETWEEN "));
        CK_TRY(print(p, e->args[1], true));
        CK_TRY(ck_bytes_str(p->out, " AND "));
        CK_TRY(print(p, e->args[2], true));
    } else {
        CK_TRY(ck_bytes_str(p->out, " IN ("));
        CK_TRY(print_list(p, e->args + 1, e->arg_count - 1));
        CK_TRY(ck_bytes_char(p->out, ')'));
    }
    return inside ? ck_bytes_char(p->out, ')') : CK_OK;
}

static ck_status print_nested(const printer *p, const ck_expr *e) {
    if (strcmp(e->fn->name, "field") == 0) {
        CK_TRY(print(p, e->args[0], true));
        CK_TRY(ck_bytes_char(p->out, '.'));
        ck_view name = e->args[1]->value.str;
        return quoted(p->out, name, '"');
    }
    if (strcmp(e->fn->name, "item") == 0) {
        CK_TRY(print(p, e->args[0], true));
        CK_TRY(ck_bytes_char(p->out, '['));
        CK_TRY(print(p, e->args[1], false));
        return ck_bytes_char(p->out, ']');
    }
    CK_TRY(ck_bytes_printf(p->out, "%s[", strcmp(e->fn->name, "map") == 0 ? "MAP" : "ARRAY"));
    CK_TRY(print_list(p, e->args, e->arg_count));
    return ck_bytes_char(p->out, ']');
}

typedef enum shape { INFIX, POSTFIX, PREFIX, LIKE, BETWEEN, IN, CASE, CAST, NESTED } shape;
static const struct {
    const char *name;
    shape shape;
    const char *word;
} shapes[] = {
    {"=", INFIX, "="},
    {"<>", INFIX, "<>"},
    {"<", INFIX, "<"},
    {"<=", INFIX, "<="},
    {">", INFIX, ">"},
    {">=", INFIX, ">="},
    {"+", INFIX, "+"},
    {"-", INFIX, "-"},
    {"*", INFIX, "*"},
    {"/", INFIX, "/"},
    {"%", INFIX, "%"},
    {"||", INFIX, "||"},
    {"and", INFIX, "AND"},
    {"or", INFIX, "OR"},
    {"is_distinct_from", INFIX, "IS DISTINCT FROM"},
    {"is_not_distinct_from", INFIX, "IS NOT DISTINCT FROM"},
    {"at_time_zone", INFIX, "AT TIME ZONE"},
    {"~", INFIX, "~"},
    {"~*", INFIX, "~*"},
    {"is_null", POSTFIX, " IS NULL"},
    {"is_not_null", POSTFIX, " IS NOT NULL"},
    {"is_true", POSTFIX, " IS TRUE"},
    {"is_not_true", POSTFIX, " IS NOT TRUE"},
    {"is_false", POSTFIX, " IS FALSE"},
    {"is_not_false", POSTFIX, " IS NOT FALSE"},
    {"not", PREFIX, "NOT "},
    {"neg", PREFIX, "-"},
    {"like", LIKE, "LIKE"},
    {"ilike", LIKE, "ILIKE"},
    {"between", BETWEEN, NULL},
    {"in", IN, NULL},
    {"case", CASE, NULL},
    {"cast", CAST, NULL},
    {"try_cast", CAST, NULL},
    {"assign", CAST, NULL},
    {"array", NESTED, NULL},
    {"map", NESTED, NULL},
    {"item", NESTED, NULL},
    {"field", NESTED, NULL},
};

static ck_status print_call(const printer *p, const ck_expr *e, bool inside) {
    size_t i = 0;
    while (i < CK_ARRAY_COUNT(shapes) && strcmp(shapes[i].name, e->fn->name) != 0) i++;
    if (i < CK_ARRAY_COUNT(shapes)) switch (shapes[i].shape) {
        case INFIX: return print_infix(p, e, shapes[i].word, inside);
        case POSTFIX: return print_around(p, "", e->args[0], shapes[i].word, inside);
        case PREFIX: return print_around(p, shapes[i].word, e->args[0], "", inside);
        case LIKE: return print_like(p, e, shapes[i].word, inside);
        case BETWEEN: return print_membership(p, e, true, inside);
        case IN: return print_membership(p, e, false, inside);
        case CASE: return print_case(p, e);
        case CAST: return print_cast(p, e);
        case NESTED: return print_nested(p, e);
        }
    CK_TRY(ck_bytes_printf(p->out, "%s(", e->fn->name));
    CK_TRY(print_list(p, e->args, e->arg_count));
    return ck_bytes_char(p->out, ')');
}

static ck_status print(const printer *p, const ck_expr *e, bool inside) {
    if (e->kind == CK_EXPR_COLUMN) return print_column(p, e->column);
    return e->kind == CK_EXPR_LITERAL ? print_literal(p, e) : print_call(p, e, inside);
}

ck_status ck_expr_print(const ck_expr *e, const char *const *names, ck_bytes *out) {
    const printer p = {names, out, false};
    return print(&p, e, false);
}

ck_status ck_expr_print_for_people(const ck_expr *e, const char *const *names, ck_bytes *out) {
    const printer p = {names, out, true};
    return print(&p, e, false);
}
