/* Expressions: one case a syntax node. Calls are in expr_call.c, names in scope.c, literals in literal.c. */
#include "expr/library.h"
#include "sql/bind/bind_int.h"

/* ---- what everything goes through ---- */

ck_status ck_bind_function(ck_binder *b, const char *name, ck_expr *const *args, uint32_t count, ck_pos at,
                           ck_expr **out) {
    ck_expr *made; /* *out may be one of the arguments */
    const ck_function *fn = ck_library_function(b->catalog->proc->library, name);
    CK_TRY(ck_bind_at(b, at,
                      fn ? ck_expr_call_of(b->plan.arena, fn, args, count, &made, b->err)
                         : ck_expr_call(b->plan.arena, name, args, count, &made, b->err)));
    if (b->catalog->settings.eval_error_null) ck_expr_fails_to_null(made, args, count);
    made->line = at.line, made->col = at.column;
    *out = made;
    return CK_OK;
}

ck_status ck_bind_cast(ck_binder *b, ck_expr *e, const ck_type *to, bool try_cast, ck_pos at, ck_expr **out) {
    ck_expr *made;
    CK_TRY(ck_bind_at(b, at, ck_expr_cast(b->plan.arena, e, to, try_cast, &made, b->err)));
    if (b->catalog->settings.eval_error_null) ck_expr_fails_to_null(made, &e, 1);
    if (made != e) made->line = at.line, made->col = at.column;
    *out = made;
    return CK_OK;
}

ck_status ck_bind_exprs(ck_binder *b, const ck_bind_place *place, const ck_ast_exprs *list, ck_expr ***out) {
    uint32_t n = 0;
    if (!(*out = CK_BIND_ARRAY(b, list->count, ck_expr *))) return CK_NOMEM;
    for (const ck_ast_expr *e = list->first; e; e = e->next) CK_TRY(ck_bind_expr(b, place, e, &(*out)[n++]));
    return CK_OK;
}

static ck_status call_of(ck_binder *b, const ck_bind_place *place, const char *name, const ck_ast_expr *e,
                         ck_expr **out) {
    ck_expr **args;
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    return ck_bind_function(b, name, args, e->args.count, e->sign, out);
}

static ck_status negated(ck_binder *b, const ck_ast_expr *e, ck_expr **out) {
    return e->negated ? ck_bind_function(b, "not", out, 1, e->sign, out) : CK_OK;
}

static ck_status must_be_condition(ck_binder *b, const char *what, ck_pos at, const ck_expr *e) {
    if (e->type->kind == CK_TYPE_BOOLEAN || e->type->kind == CK_TYPE_NULL) return CK_OK;
    return ck_bind_fail(b, at, "%s takes a condition, and this is %s", what, ck_type_name(b->plan.arena, e->type));
}

/* ---- conditions ---- */

ck_status ck_bind_condition(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    CK_TRY(ck_bind_expr(b, place, e, out));
    CK_TRY(must_be_condition(b, place->clause, e->pos, *out));
    return ck_bind_cast(b, *out, ck_type_simple(CK_TYPE_BOOLEAN), false, e->pos, out);
}

ck_status ck_bind_conjuncts(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr ***out,
                            uint32_t *count) {
    *count = 0;
    if (!(*out = CK_BIND_ARRAY(b, e->kind == CK_AST_AND ? e->args.count : 1, ck_expr *))) return CK_NOMEM;
    if (e->kind != CK_AST_AND) return ck_bind_condition(b, place, e, &(*out)[(*count)++]);
    for (const ck_ast_expr *c = e->args.first; c; c = c->next)
        CK_TRY(ck_bind_condition(b, place, c, &(*out)[(*count)++]));
    return CK_OK;
}

static ck_status logic(ck_binder *b, const ck_bind_place *place, const char *name, const ck_ast_expr *e,
                       ck_expr **out) {
    ck_expr **args;
    uint32_t n = 0;
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    for (const ck_ast_expr *a = e->args.first; a; a = a->next) {
        CK_TRY(must_be_condition(b, name[0] == 'a' ? "AND" : name[0] == 'o' ? "OR" : "NOT", a->pos, args[n]));
        n++;
    }
    return ck_bind_function(b, name, args, n, e->sign, out);
}

/* ---- operators ---- */

static const char *const operator_names[CK_OP_COUNT] = {[CK_OP_NEGATE] = "neg",
                                                        [CK_OP_ADD] = "+",
                                                        [CK_OP_SUBTRACT] = "-",
                                                        [CK_OP_MULTIPLY] = "*",
                                                        [CK_OP_DIVIDE] = "/",
                                                        [CK_OP_MODULO] = "%",
                                                        [CK_OP_POWER] = "power",
                                                        [CK_OP_CONCAT] = "||",
                                                        [CK_OP_EQ] = "=",
                                                        [CK_OP_NE] = "<>",
                                                        [CK_OP_LT] = "<",
                                                        [CK_OP_LE] = "<=",
                                                        [CK_OP_GT] = ">",
                                                        [CK_OP_GE] = ">=",
                                                        [CK_OP_MATCH] = "regexp_like",
                                                        [CK_OP_NOT_MATCH] = "regexp_like"};

static ck_status matches(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    bool nocase = e->what == CK_OP_MATCH_NOCASE || e->what == CK_OP_NOT_MATCH_NOCASE;
    bool not_match = e->what == CK_OP_NOT_MATCH || e->what == CK_OP_NOT_MATCH_NOCASE;
    ck_expr **args, *all[3];
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    all[0] = args[0], all[1] = args[1];
    if (nocase) CK_TRY(ck_bind_string(b, CK_VIEW("i"), e->sign, &all[2]));
    CK_TRY(ck_bind_function(b, "regexp_like", all, nocase ? 3 : 2, e->sign, out));
    return not_match ? ck_bind_function(b, "not", out, 1, e->sign, out) : CK_OK;
}

static bool is_number(const ck_ast_expr *e) {
    return e->kind == CK_AST_INTEGER || e->kind == CK_AST_DECIMAL || e->kind == CK_AST_DOUBLE;
}

static ck_status operator_of(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    const ck_ast_expr *a = e->args.first;
    switch (e->what) {
    case CK_OP_NEGATE:
        if (is_number(a)) return ck_bind_literal(b, a, true, out); /* so that the least BIGINT can be written */
        break;
    case CK_OP_PLUS_SIGN:
        CK_TRY(ck_bind_expr(b, place, a, out));
        if (!ck_kind_is_numeric((*out)->type->kind))
            return ck_bind_fail(b, e->sign, "+ takes a number, and this is %s",
                                ck_type_name(b->plan.arena, (*out)->type));
        return CK_OK;
    case CK_OP_MATCH:
    case CK_OP_MATCH_NOCASE:
    case CK_OP_NOT_MATCH:
    case CK_OP_NOT_MATCH_NOCASE: return matches(b, place, e, out);
    default: break;
    }
    return call_of(b, place, operator_names[e->what], e, out);
}

/* ---- predicates ---- */

static ck_status is_test(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    static const char *const names[][2] = {{"is_null", "is_not_null"},
                                           {"is_true", "is_not_true"},
                                           {"is_false", "is_not_false"},
                                           {"is_null", "is_not_null"}};
    ck_expr *arg;
    CK_TRY(ck_bind_expr(b, place, e->args.first, &arg));
    if (e->what != CK_TEST_NULL) CK_TRY(must_be_condition(b, "IS TRUE, FALSE, UNKNOWN", e->args.first->pos, arg));
    return ck_bind_function(b, names[e->what][e->negated], &arg, 1, e->sign, out);
}

static ck_status between(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_expr **args, *either[2];
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    CK_TRY(ck_bind_function(b, "between", args, 3, e->sign, out));
    if (e->flag) { /* SYMMETRIC */
        ck_expr *swapped[3] = {args[0], args[2], args[1]};
        either[0] = *out;
        CK_TRY(ck_bind_function(b, "between", swapped, 3, e->sign, &either[1]));
        CK_TRY(ck_bind_function(b, "or", either, 2, e->sign, out));
    }
    return negated(b, e, out);
}

static ck_status like(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_expr **args;
    if (e->what == CK_LIKE_SIMILAR)
        return ck_bind_refuse(b, e->sign, "SIMILAR TO is not supported; LIKE has patterns, ~ has regular expressions");
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    CK_TRY(ck_bind_function(b, e->what == CK_LIKE_ILIKE ? "ilike" : "like", args, e->args.count, e->sign, out));
    return negated(b, e, out);
}

/* CASE x WHEN v THEN ... compares x with each v. */
static ck_status case_of(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_expr **args, *operand = NULL;
    uint32_t n = 0;
    const ck_ast_expr *a = e->args.first;
    if (!(args = CK_BIND_ARRAY(b, e->args.count, ck_expr *))) return CK_NOMEM;
    if (e->flag) {
        CK_TRY(ck_bind_expr(b, place, a, &operand));
        a = a->next;
    }
    for (; a; a = a->next) {
        CK_TRY(ck_bind_expr(b, place, a, &args[n]));
        bool condition = n % 2 == 0 && a->next;
        if (condition && operand) {
            ck_expr *pair[2] = {operand, args[n]};
            CK_TRY(ck_bind_function(b, "=", pair, 2, a->pos, &args[n]));
        } else if (condition) {
            CK_TRY(must_be_condition(b, "WHEN", a->pos, args[n]));
        }
        n++;
    }
    return ck_bind_function(b, "case", args, n, e->sign, out);
}

static ck_status cast(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_expr *arg;
    const ck_type *to;
    CK_TRY(ck_bind_expr(b, place, e->args.first, &arg));
    CK_TRY(ck_bind_type(b, e->type, b->plan.arena, &to));
    return ck_bind_cast(b, arg, to, e->flag, e->pos, out);
}

static ck_status misplaced(ck_binder *b, const ck_ast_expr *e) {
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_STAR: return ck_bind_fail(b, e->pos, "* stands only for the columns of a SELECT list, and in COUNT(*)");
    case CK_AST_NAMED_ARG: return ck_bind_fail(b, e->sign, "only table functions take named arguments");
    case CK_AST_TABLE_ARG: return ck_bind_fail(b, e->pos, "only table functions take a table");
    default: return ck_bind_fail(b, e->pos, "this belongs into GROUP BY");
    }
}

ck_status ck_bind_expr(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_NAME:
    case CK_AST_FIELD: return ck_bind_name(b, place, e, out);
    case CK_AST_NULL:
    case CK_AST_BOOL:
    case CK_AST_INTEGER:
    case CK_AST_DECIMAL:
    case CK_AST_DOUBLE:
    case CK_AST_STRING:
    case CK_AST_BYTES:
    case CK_AST_TYPED:
    case CK_AST_INTERVAL: return ck_bind_literal(b, e, false, out);
    case CK_AST_CALL: return ck_bind_call_expr(b, place, e, out);
    case CK_AST_OPERATOR: return operator_of(b, place, e, out);
    case CK_AST_AND: return logic(b, place, "and", e, out);
    case CK_AST_OR: return logic(b, place, "or", e, out);
    case CK_AST_NOT: return logic(b, place, "not", e, out);
    case CK_AST_IS: return is_test(b, place, e, out);
    case CK_AST_DISTINCT_FROM:
        return call_of(b, place, e->negated ? "is_not_distinct_from" : "is_distinct_from", e, out);
    case CK_AST_BETWEEN: return between(b, place, e, out);
    case CK_AST_IN_LIST: CK_TRY(call_of(b, place, "in", e, out)); return negated(b, e, out);
    case CK_AST_LIKE: return like(b, place, e, out);
    case CK_AST_CASE: return case_of(b, place, e, out);
    case CK_AST_CAST: return cast(b, place, e, out);
    case CK_AST_ROW: return call_of(b, place, "row", e, out);
    case CK_AST_ARRAY: return call_of(b, place, "array", e, out);
    case CK_AST_MAP: return call_of(b, place, "map", e, out);
    case CK_AST_SUBSCRIPT: return call_of(b, place, "item", e, out);
    case CK_AST_IN_QUERY:
    case CK_AST_EXISTS:
    case CK_AST_SUBQUERY:
    case CK_AST_QUANTIFIED: return ck_bind_subquery(b, place, e, out);
    case CK_AST_STAR:
    case CK_AST_NAMED_ARG:
    case CK_AST_TABLE_ARG:
    case CK_AST_GROUPING_SETS: return misplaced(b, e);
    }
    ck_assert_failed(__FILE__, __LINE__, "every syntax node is bound");
}

/* ---- helpers of clauses ---- */

ck_status ck_bind_fold(ck_binder *b, ck_expr *e, ck_pos at, ck_expr **out) {
    ck_expr *made = e;
    ck_status s = ck_expr_fold(b->plan.arena, e, &made, b->err);
    *out = made;
    if (s != CK_DATA) return ck_bind_at(b, at, s);
    char *place = b->err ? strstr(b->err->msg, " (line ") : NULL; /* the same place, which now comes in front */
    if (place) *place = 0;
    ck_bind_at(b, at, s);
    if (b->err) b->err->status = CK_INVALID;
    return CK_INVALID;
}

ck_status ck_bind_count(ck_binder *b, const char *clause, const ck_ast_expr *e, uint64_t *out) {
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = clause};
    ck_expr *v;
    CK_TRY(ck_bind_expr(b, &place, e, &v));
    if (!ck_kind_is_integer(v->type->kind) || !ck_expr_is_constant(v))
        return ck_bind_fail(b, e->pos, "%s takes a whole number, and this is %s", clause,
                            ck_type_name(b->plan.arena, v->type));
    CK_TRY(ck_bind_fold(b, v, e->pos, &v));
    if (v->value.null || v->value.i64 < 0)
        return ck_bind_fail(b, e->pos, "%s takes a number that is not negative", clause);
    *out = (uint64_t)v->value.i64;
    return CK_OK;
}

ck_status ck_bind_common_type(ck_binder *b, ck_expr *const *examples, uint32_t count, const ck_type **out) {
    ck_expr **kinds = CK_BIND_ARRAY(b, count, ck_expr *), *all;
    uint32_t n = 0;
    if (!kinds) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < n && !seen; k++)
            seen = kinds[k]->kind == examples[i]->kind && ck_type_eq(kinds[k]->type, examples[i]->type);
        if (!seen) kinds[n++] = examples[i];
    }
    if (n == 1) {
        *out = examples[0]->type;
        return CK_OK;
    }
    CK_TRY(ck_expr_call(b->plan.arena, "coalesce", kinds, n, &all, b->err));
    *out = all->type;
    return CK_OK;
}

/* As PostgreSQL names them: the column, the function, the type of a cast. */
ck_status ck_bind_default_name(ck_binder *b, const ck_ast_expr *e, uint32_t index, const char **out) {
    ck_view name = {0};
    while (e->kind == CK_AST_CAST || e->kind == CK_AST_SUBSCRIPT) {
        if (e->kind == CK_AST_CAST) name = e->type->name;
        e = e->args.first;
    }
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_NAME:
    case CK_AST_FIELD: name = e->name; break;
    case CK_AST_CALL: name = e->name; break;
    case CK_AST_CASE: name = CK_VIEW("case"); break;
    case CK_AST_TYPED: name = e->type->name; break;
    case CK_AST_EXISTS: name = CK_VIEW("exists"); break;
    case CK_AST_ROW: name = CK_VIEW("row"); break;
    case CK_AST_ARRAY: name = CK_VIEW("array"); break;
    case CK_AST_MAP: name = CK_VIEW("map"); break;
    default: break;
    }
    char *copy =
        name.n ? ck_arena_strndup(b->plan.arena, name.p, name.n) : ck_arena_printf(b->plan.arena, "EXPR$%u", index);
    if (!copy) return ck_bind_nomem(b);
    bool keeps_case = e->kind == CK_AST_NAME || e->kind == CK_AST_FIELD;
    for (char *c = copy; name.n && !keeps_case && *c; c++) *c = ck_ascii_lower(*c);
    *out = copy;
    return CK_OK;
}
