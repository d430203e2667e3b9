/* Overload resolution by declared signatures (function.h, ck_overload). */
#include "expr/coerce.h"
#include "expr/functions_int.h"
#include "expr/tree_int.h"

static const ck_type *letter_type(char c) {
    switch (c) {
    case 'b': return ck_type_simple(CK_TYPE_BOOLEAN);
    case 'i': return ck_type_simple(CK_TYPE_INTEGER);
    case 'l': return ck_type_simple(CK_TYPE_BIGINT);
    case 'f': return ck_type_simple(CK_TYPE_REAL);
    case 'd': return ck_type_simple(CK_TYPE_DOUBLE);
    case 's': return ck_type_simple(CK_TYPE_VARCHAR);
    case 'y': return ck_type_simple(CK_TYPE_BYTES);
    case 'D': return ck_type_simple(CK_TYPE_DATE);
    case 'T': return ck_type_simple(CK_TYPE_TIME);
    case 't': return ck_type_simple(CK_TYPE_TIMESTAMP);
    case 'z': return ck_type_simple(CK_TYPE_TIMESTAMP_LTZ);
    case 'm': return ck_type_simple(CK_TYPE_INTERVAL_MONTH);
    case 'u': return ck_type_simple(CK_TYPE_INTERVAL_US);
    default: CK_ASSERT(false && "a signature letter"); return NULL;
    }
}

static ck_kind letter_kind(char c) { return c == 'n' ? CK_TYPE_DECIMAL : letter_type(c)->kind; }

/* The parameter letter for argument i, 0 when there are fewer parameters. */
static char parameter(const char *sig, uint32_t i) {
    for (const char *p = sig; *p != '>'; p++) {
        if (*p == '*' || *p == '?') continue;
        if (i == 0 || p[1] == '*') return *p;
        i--;
    }
    return 0;
}

static bool count_fits(const char *sig, uint32_t n) {
    uint32_t least = 0, most = 0;
    for (const char *p = sig; *p != '>'; p++) {
        if (*p == '*') least--, most = UINT32_MAX;
        if (*p == '?') least--;
        if (*p == '*' || *p == '?') continue;
        least++;
        if (most != UINT32_MAX) most++;
    }
    return n >= least && n <= most;
}

/* Sum of the conversions' costs; -1: does not fit. */
static int cost_of(const ck_overload *o, const ck_bind_call *call) {
    if (!count_fits(o->signature, call->arg_count)) return -1;
    int total = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        int c = ck_implicit_cost(call->args[i], letter_kind(parameter(o->signature, i)));
        if (c < 0) return -1;
        total += c;
    }
    return total;
}

static void describe(const ck_overload *o, ck_bytes *b, ck_status *s) {
    if (*s == CK_OK) *s = ck_bytes_char(b, '(');
    bool first = true;
    for (const char *p = o->signature; *p != '>'; p++) {
        if (*p == '*' || *p == '?') continue;
        const char *name = *p == 'n' ? "DECIMAL" : *p == 'z' ? "TIMESTAMP_LTZ" : NULL;
        if (!name) {
            static const char *const names[CK_TYPE_COUNT] = {
                [CK_TYPE_BOOLEAN] = "BOOLEAN",
                [CK_TYPE_INTEGER] = "INTEGER",
                [CK_TYPE_BIGINT] = "BIGINT",
                [CK_TYPE_REAL] = "REAL",
                [CK_TYPE_DOUBLE] = "DOUBLE",
                [CK_TYPE_VARCHAR] = "VARCHAR",
                [CK_TYPE_BYTES] = "BYTES",
                [CK_TYPE_DATE] = "DATE",
                [CK_TYPE_TIME] = "TIME",
                [CK_TYPE_TIMESTAMP] = "TIMESTAMP",
                [CK_TYPE_INTERVAL_MONTH] = "INTERVAL YEAR TO MONTH",
                [CK_TYPE_INTERVAL_US] = "INTERVAL DAY TO SECOND",
            };
            name = names[letter_kind(*p)];
        }
        if (*s == CK_OK)
            *s = ck_bytes_printf(b, "%s%s%s", first ? "" : ", ", name,
                                 p[1] == '?'   ? " optional"
                                 : p[1] == '*' ? " ..."
                                               : "");
        first = false;
    }
    if (*s == CK_OK) *s = ck_bytes_char(b, ')');
}

ck_status ck_bind_mismatch(const ck_bind_call *call, ck_error *err) {
    const ck_function *fn = call->fn;
    const char *types = ck_argument_types(call->arena, call->args, call->arg_count);
    ck_bytes b;
    ck_bytes_init(&b, call->arena->mem, 512);
    ck_status s = CK_OK;
    if (!fn->overload_count) {
        s = ck_bytes_str(&b, fn->syntax);
    } else {
        for (uint32_t i = 0; i < fn->overload_count; i++) {
            if (i) s = s == CK_OK ? ck_bytes_str(&b, " or ") : s;
            describe(&fn->overloads[i], &b, &s);
        }
    }
    if (s == CK_OK || s == CK_FULL)
        s = ck_fail(err, CK_INVALID, "no function %s%s; %s takes %.*s", fn->name, types, fn->name, (int)b.n, b.p);
    ck_bytes_destroy(&b);
    return s;
}

static const ck_type *result_type(const ck_overload *o, const ck_bind_call *call) {
    char c = *(strchr(o->signature, '>') + 1);
    if (c != 'n') return letter_type(c);
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i]->type->kind == CK_TYPE_DECIMAL) return call->args[i]->type;
    CK_ASSERT(false && "a DECIMAL result needs a DECIMAL argument");
    return NULL;
}

static ck_status convert(ck_bind_call *call, uint32_t i, char letter, ck_error *err) {
    ck_expr *e = call->args[i];
    const ck_type *to;
    if (letter == 'n') {
        if (ck_kind_is_integer(e->type->kind))
            to = ck_as_decimal(call->arena, e->type);
        else if (e->type->kind == CK_TYPE_DECIMAL)
            to = e->type;
        else
            to = ck_type_decimal(call->arena, 38, 18); /* NULL or a string literal: PostgreSQL's numeric has no scale */
    } else {
        to = letter_type(letter);
    }
    if (!to) return ck_nomem(err, call->arena->mem, sizeof *to);
    return ck_coerce(call->arena, e, to, true, &call->args[i], err);
}

ck_status ck_bind_overloads(ck_bind_call *call, ck_error *err) {
    const ck_overload *best = NULL;
    int best_cost = -1;
    for (uint32_t i = 0; i < call->fn->overload_count; i++) {
        int c = cost_of(&call->fn->overloads[i], call);
        if (c < 0 || (best && c >= best_cost)) continue;
        best = &call->fn->overloads[i], best_cost = c;
    }
    if (!best) return ck_bind_mismatch(call, err);
    for (uint32_t i = 0; i < call->arg_count; i++) CK_TRY(convert(call, i, parameter(best->signature, i), err));
    call->type = result_type(best, call);
    call->impl = best->impl;
    call->nullable |= best->nullable;
    return CK_OK;
}
