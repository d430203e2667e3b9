/* Types as written become types. */
#include "base/suggest.h"
#include "sql/bind/bind_int.h"
#include "sql/foreign.h"

typedef struct type_word {
    const char *word;
    ck_kind kind;
    int params_max;
} type_word;

/* The canonical words first: they win among equally near ones. */
static const type_word words[] = {
    {"BOOLEAN", CK_TYPE_BOOLEAN, 0},
    {"TINYINT", CK_TYPE_TINYINT, 0},
    {"SMALLINT", CK_TYPE_SMALLINT, 0},
    {"INTEGER", CK_TYPE_INTEGER, 0},
    {"BIGINT", CK_TYPE_BIGINT, 0},
    {"REAL", CK_TYPE_REAL, 0},
    {"DOUBLE", CK_TYPE_DOUBLE, 0},
    {"DECIMAL", CK_TYPE_DECIMAL, 2},
    {"VARCHAR", CK_TYPE_VARCHAR, 1},
    {"BYTES", CK_TYPE_BYTES, 1},
    {"DATE", CK_TYPE_DATE, 0},
    {"TIME", CK_TYPE_TIME, 1},
    {"TIMESTAMP", CK_TYPE_TIMESTAMP, 1},
    {"TIMESTAMP_LTZ", CK_TYPE_TIMESTAMP_LTZ, 1},
    {"BOOL", CK_TYPE_BOOLEAN, 0},
    {"INT", CK_TYPE_INTEGER, 0},
    {"INT2", CK_TYPE_SMALLINT, 0},
    {"INT4", CK_TYPE_INTEGER, 0},
    {"INT8", CK_TYPE_BIGINT, 0},
    {"FLOAT", CK_TYPE_DOUBLE, 1},
    {"FLOAT4", CK_TYPE_REAL, 0},
    {"FLOAT8", CK_TYPE_DOUBLE, 0},
    {"NUMERIC", CK_TYPE_DECIMAL, 2},
    {"DEC", CK_TYPE_DECIMAL, 2},
    {"CHAR", CK_TYPE_VARCHAR, 1},
    {"STRING", CK_TYPE_VARCHAR, 0},
    {"TEXT", CK_TYPE_VARCHAR, 0},
    {"BYTEA", CK_TYPE_BYTES, 0},
    {"BINARY", CK_TYPE_BYTES, 1},
    {"VARBINARY", CK_TYPE_BYTES, 1},
    {"BLOB", CK_TYPE_BYTES, 0},
    {"DATETIME", CK_TYPE_TIMESTAMP, 1},
    {"TIMESTAMPTZ", CK_TYPE_TIMESTAMP_LTZ, 1},
};

static ck_status unknown_type(ck_binder *b, const ck_ast_type *t) {
    static const char *const others[] = {"json", "uuid", "raw", "symbol"};
    ck_suggest near;
    ck_suggest_init(&near, t->name);
    for (size_t i = 0; i < CK_ARRAY_COUNT(others); i++)
        if (ck_view_eq_nocase(t->name, ck_view_of(others[i])))
            return ck_bind_refuse(b, t->pos, "there is no type %.*s here; VARCHAR holds such values as text",
                                  ck_cut(t->name), t->name.p);
    if (ck_view_eq_nocase(t->name, CK_VIEW("multiset")))
        return ck_bind_refuse(
            b, t->pos,
            "there is no type MULTISET here; MAP<t, BIGINT> holds elements with how often each occurs, "
            "ARRAY<t> all of them");
    const char *advice = ck_foreign_name(CK_FOREIGN_TYPE, t->name);
    if (advice) return ck_bind_fail(b, t->pos, "unknown type \"%.*s\"; %s", ck_cut(t->name), t->name.p, advice);
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++) ck_suggest_offer(&near, ck_view_of(words[i].word));
    if (near.best.n)
        return ck_bind_fail(b, t->pos, "unknown type \"%.*s\"; did you mean \"%.*s\"?", ck_cut(t->name), t->name.p,
                            (int)near.best.n, near.best.p);
    return ck_bind_fail(b, t->pos, "unknown type \"%.*s\"", ck_cut(t->name), t->name.p);
}

static ck_status decimal(ck_binder *b, const ck_ast_type *t, ck_arena *arena, const ck_type **out) {
    int64_t precision = t->param_count > 0 ? t->params[0] : 10, scale = t->param_count > 1 ? t->params[1] : 0;
    if (precision < 1 || precision > 38)
        return ck_bind_fail(b, t->pos, "the precision of a DECIMAL is 1 to 38, not %lld", (long long)precision);
    if (scale > precision)
        return ck_bind_fail(b, t->pos, "the scale of a DECIMAL is at most its precision %lld, not %lld",
                            (long long)precision, (long long)scale);
    *out = ck_type_decimal(arena, (int)precision, (int)scale);
    return *out ? CK_OK : ck_bind_nomem(b);
}

static ck_status datetime(ck_binder *b, const ck_ast_type *t, ck_kind kind, ck_arena *arena, const ck_type **out) {
    int64_t precision = t->param_count ? t->params[0] : 6;
    if (precision > 6)
        return ck_bind_refuse(b, t->pos, "%lld fractional digits are too many: times have microseconds; write %.*s(6)",
                              (long long)precision, ck_cut(t->name), t->name.p);
    if (t->zone == CK_TZ_WITH || t->zone == CK_TZ_WITH_LOCAL) {
        if (kind == CK_TYPE_TIME)
            return ck_bind_refuse(b, t->pos, "TIME WITH TIME ZONE is not supported; TIMESTAMP_LTZ has a zone");
        kind = CK_TYPE_TIMESTAMP_LTZ;
    }
    *out = ck_type_with_precision(arena, kind, (int)precision);
    return *out ? CK_OK : ck_bind_nomem(b);
}

static bool is_month_unit(ck_ast_unit u) { return u >= CK_UNIT_YEAR && u <= CK_UNIT_MONTH; }

static ck_status interval(ck_binder *b, const ck_ast_type *t, const ck_type **out) {
    ck_ast_unit from = t->from_unit, to = t->to_unit ? t->to_unit : t->from_unit;
    if (from && is_month_unit(from) != is_month_unit(to))
        return ck_bind_fail(b, t->pos, "an INTERVAL is of years and months or of days and smaller, not of both");
    *out = ck_type_simple(from && is_month_unit(from) ? CK_TYPE_INTERVAL_MONTH : CK_TYPE_INTERVAL_US);
    return CK_OK;
}

static ck_status row(ck_binder *b, const ck_ast_type *t, ck_arena *arena, const ck_type **out) {
    if (t->field_count > CK_SQL_COLUMNS_MAX)
        return ck_bind_fail(b, t->pos, "a ROW of %u fields is too wide; at most %d are allowed", t->field_count,
                            CK_SQL_COLUMNS_MAX);
    ck_field *fields = ck_arena_array(arena, t->field_count, sizeof *fields);
    uint32_t n = 0;
    if (!fields) return ck_bind_nomem(b);
    for (const ck_ast_type *f = t->fields; f; f = f->next, n++) {
        fields[n].name = ck_arena_strndup(arena, f->field_name.text.p, f->field_name.text.n);
        if (!fields[n].name) return ck_bind_nomem(b);
        fields[n].nullable = !f->not_null;
        CK_TRY(ck_bind_type(b, f, arena, &fields[n].type));
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(fields[k].name, fields[n].name) == 0)
                return ck_bind_fail(b, f->field_name.pos, "field \"%s\" stands twice in this ROW", fields[n].name);
    }
    *out = ck_type_row(arena, fields, n);
    return *out ? CK_OK : ck_bind_nomem(b);
}

static ck_status nested(ck_binder *b, const ck_ast_type *t, ck_arena *arena, const ck_type **out) {
    const ck_type *a, *c = NULL;
    if (ck_view_is(t->name, "row")) return row(b, t, arena, out);
    CK_TRY(ck_bind_type(b, t->fields, arena, &a));
    if (ck_view_is(t->name, "array")) {
        *out = ck_type_array(arena, a, !t->fields->not_null);
    } else {
        CK_TRY(ck_bind_type(b, t->fields->next, arena, &c));
        *out = ck_type_map(arena, a, c, !t->fields->next->not_null);
    }
    return *out ? CK_OK : ck_bind_nomem(b);
}

ck_status ck_bind_type(ck_binder *b, const ck_ast_type *t, ck_arena *arena, const ck_type **out) {
    if (t->fields) return nested(b, t, arena, out);
    if (ck_view_eq_nocase(t->name, CK_VIEW("interval"))) return interval(b, t, out);
    const type_word *w = NULL;
    for (size_t i = 0; i < CK_ARRAY_COUNT(words) && !w; i++)
        if (ck_view_eq_nocase(t->name, ck_view_of(words[i].word))) w = &words[i];
    if (!w) return unknown_type(b, t);
    if ((int)t->param_count > w->params_max)
        return ck_bind_fail(b, t->pos,
                            w->params_max ? "%.*s takes fewer numbers in parentheses" : "%.*s takes no number",
                            ck_cut(t->name), t->name.p);
    switch (w->kind) {
    case CK_TYPE_DECIMAL: return decimal(b, t, arena, out);
    case CK_TYPE_TIME:
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return datetime(b, t, w->kind, arena, out);
    case CK_TYPE_DOUBLE:
        *out = ck_type_simple(t->param_count && t->params[0] <= 24 ? CK_TYPE_REAL : CK_TYPE_DOUBLE);
        return CK_OK;
    case CK_TYPE_VARCHAR:
    case CK_TYPE_BYTES:
        if (t->param_count && t->params[0] == 0)
            return ck_bind_fail(b, t->pos, "the length of a %.*s is at least 1", ck_cut(t->name), t->name.p);
        if (!t->param_count || t->params[0] == INT32_MAX) {
            *out = ck_type_simple(w->kind);
        } else {
            *out = ck_type_with_precision(arena, w->kind, (int)t->params[0]);
        }
        return *out ? CK_OK : ck_bind_nomem(b);
    default: *out = ck_type_simple(w->kind); return CK_OK;
    }
}
