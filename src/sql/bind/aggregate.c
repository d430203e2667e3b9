/* Aggregate calls: each distinct one is collected once and stands in its expression as a CK_BIND_AGGREGATE column. */
#include "sql/bind/bind_int.h"

static bool same_expr(const ck_expr *a, const ck_expr *b) { return a == b || (a && b && ck_expr_equal(a, b)); }

static ck_status may_stand_here(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e) {
    if (place->inside)
        return ck_bind_fail(b, e->sign,
                            "an aggregate cannot stand inside another one (%s); aggregate in a subquery first",
                            place->inside);
    if (place->calls) return CK_OK;
    if (strcmp(place->clause, "WHERE") == 0)
        return ck_bind_fail(b, e->sign,
                            "%.*s is an aggregate and cannot stand in WHERE; a condition on groups goes into HAVING",
                            ck_cut(e->name), e->name.p);
    return ck_bind_fail(b, e->sign, "%.*s is an aggregate and cannot stand in %s", ck_cut(e->name), e->name.p,
                        place->clause);
}

/* For messages. */
static const char *takes(const ck_aggregate *fn) {
    if (fn->order == CK_AGGREGATE_WITHIN) return "a fraction, and what it is of in WITHIN GROUP (ORDER BY x)";
    switch (fn->constant) {
    case CK_AGGREGATE_SEPARATOR: return "a value and a separator";
    case CK_AGGREGATE_FRACTION: return "a value and a fraction from 0 to 1";
    case CK_AGGREGATE_NO_CONSTANT: break;
    }
    return "one argument";
}

static ck_status constant_of(ck_binder *b, const ck_aggregate *fn, const ck_ast_expr *e, const ck_type *type,
                             ck_expr **out) {
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = fn->name};
    const char *what = fn->constant == CK_AGGREGATE_SEPARATOR ? "the separator" : "the fraction";
    if (ck_bind_expr(b, &place, e, out) != CK_OK || !ck_expr_is_constant(*out))
        return ck_bind_fail(b, e->pos, "%s of %s is a constant, the same for all rows", what, fn->name);
    CK_TRY(ck_bind_cast(b, *out, type, false, e->pos, out));
    CK_TRY(ck_bind_fold(b, *out, e->pos, out));
    if ((*out)->kind != CK_EXPR_LITERAL || (*out)->value.null)
        return ck_bind_fail(b, e->pos, "%s of %s is a constant that is not NULL", what, fn->name);
    return CK_OK;
}

/* The separator or fraction among the arguments, which is the last one or, in front of WITHIN GROUP, the only one. */
static ck_status constant(ck_binder *b, const ck_aggregate *fn, const ck_ast_expr *e, ck_bound_call *call) {
    const ck_ast_expr *at = e->args.last;
    ck_expr *v;
    call->separator = CK_VIEW(","), call->fraction = 0.5;
    if (fn->constant == CK_AGGREGATE_NO_CONSTANT) return CK_OK;
    bool number = fn->constant == CK_AGGREGATE_FRACTION;
    if (!number && e->args.count < 2) return CK_OK;
    CK_TRY(constant_of(b, fn, at, ck_type_simple(number ? CK_TYPE_DOUBLE : CK_TYPE_VARCHAR), &v));
    if (!number) {
        call->separator = v->value.str;
        return CK_OK;
    }
    call->fraction = v->value.f64;
    if (call->fraction >= 0 && call->fraction <= 1) return CK_OK;
    return ck_bind_fail(b, at->pos, "the fraction of %s is a number from 0 to 1", fn->name);
}

/* What is aggregated; NULL: no argument (*). */
static ck_status value_of(ck_binder *b, const ck_aggregate *fn, const ck_ast_expr *e, const ck_ast_expr **out) {
    const ck_ast_call *c = e->call;
    bool star = c && c->star;
    uint32_t given = star ? 0 : e->args.count;
    if (fn->order == CK_AGGREGATE_WITHIN) {
        if (given != 1 || !c || !c->within || c->order_by.count != 1)
            return ck_bind_fail(b, e->sign, "%s takes %s: %s(0.5) WITHIN GROUP (ORDER BY x)", fn->name, takes(fn),
                                fn->name);
        *out = c->order_by.first->expr;
        return CK_OK;
    }
    if (given == 0 && !star)
        return ck_bind_fail(b, e->sign,
                            fn->arg_min == 0 ? "%s takes an argument; %s(*) counts all rows" : "%s takes an argument",
                            fn->name, fn->name);
    if (given < fn->arg_min || given > fn->arg_max)
        return ck_bind_fail(b, e->sign, given == 0 ? "%s takes an argument, not *" : "%s takes %s", fn->name,
                            takes(fn));
    *out = given ? e->args.first : NULL;
    return CK_OK;
}

static ck_status argument(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                          ck_bound_call *call, ck_bound_aggregate *bound) {
    const ck_ast_expr *value = NULL;
    CK_TRY(value_of(b, fn, e, &value));
    if (value) CK_TRY(ck_bind_expr(b, place, value, &call->arg));
    CK_TRY(constant(b, fn, e, call));
    CK_TRY(ck_bind_at(b, e->sign,
                      ck_aggregate_bind(fn, b->plan.arena, call->arg ? call->arg->type : NULL,
                                        call->arg && call->arg->nullable, bound, b->err)));
    if (call->arg && bound->argument_type)
        CK_TRY(ck_bind_cast(b, call->arg, bound->argument_type, false, value->pos, &call->arg));
    if (!bound->of) return CK_OK;
    ck_expr *args[1] = {call->arg};
    return ck_bind_function(b, bound->of, args, 1, e->sign, &call->arg);
}

/* ---- the order of the values ---- */

/* With DISTINCT the order must be that of the values: of two rows with one value only one counts, and nobody says
 * which. */
static ck_status check_distinct_order(ck_binder *b, const ck_aggregate *fn, const ck_ast_call *c,
                                      const ck_bound_call *call) {
    if (!call->distinct || call->order_count == 0) return CK_OK;
    if (call->order_count == 1 && ck_expr_equal(call->order[0], call->arg)) return CK_OK;
    return ck_bind_fail(b, c->order_by.first->pos,
                        "with DISTINCT %s can be ordered only by its values, as they stand in front", fn->name);
}

static ck_status order_of(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                          ck_bound_call *call) {
    const ck_ast_call *c = e->call;
    bool any = c && c->order_by.count;
    if (fn->order == CK_AGGREGATE_BY && !any)
        return ck_bind_fail(b, e->sign,
                            "of a group %s needs an order: %s(x ORDER BY ts); over rows it is %s(x) OVER (...)",
                            fn->name, fn->name, fn->name);
    if (!any) return CK_OK;
    if (fn->order == CK_AGGREGATE_UNORDERED)
        return ck_bind_fail(b, c->order_by.first->pos, "ORDER BY inside %s changes nothing; remove it", fn->name);
    if (c->order_by.count > 15)
        return ck_bind_fail(b, c->order_by.first->pos, "%s is ordered by at most 15 expressions", fn->name);
    CK_TRY(ck_bind_directions(b, place, &c->order_by, &call->order, &call->directions));
    call->order_count = c->order_by.count;
    if (fn->order == CK_AGGREGATE_WITHIN) call->order[0] = call->arg; /* with the cast */
    if (fn->order == CK_AGGREGATE_WITHIN && !call->directions[0].descending) call->order_count = 0;
    return check_distinct_order(b, fn, c, call);
}

static ck_status extras(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                        ck_bound_call *call) {
    const ck_ast_call *c = e->call;
    if (c && c->nulls != CK_NULL_TREATMENT_NONE && !fn->keeps_nulls)
        return ck_bind_fail(b, e->sign, "%s takes no IGNORE or RESPECT NULLS", fn->name);
    call->ignores_nulls = c && c->nulls == CK_IGNORE_NULLS;
    if (c && c->distinct && !call->arg) return ck_bind_fail(b, e->sign, "DISTINCT takes an argument");
    call->distinct = c && c->distinct && fn->distinct_matters;
    CK_TRY(order_of(b, place, fn, e, call));
    if (!c || !c->filter) return CK_OK;
    ck_bind_place filter = *place;
    filter.clause = "FILTER";
    return ck_bind_condition(b, &filter, c->filter, &call->filter);
}

static ck_status guard(ck_binder *b, const ck_bound_call *call, ck_expr **e, ck_pos at) {
    if (!ck_expr_is_fallible(*e)) return CK_OK;
    ck_expr *args[2] = {call->filter, *e};
    return ck_bind_function(b, "case", args, 2, at, e);
}

/* An error in what is aggregated, or in its order, counts only for rows that the filter lets through. */
static ck_status guard_argument(ck_binder *b, ck_bound_call *call, ck_pos at) {
    if (!call->filter) return CK_OK;
    if (call->arg) CK_TRY(guard(b, call, &call->arg, at));
    for (uint32_t i = 0; i < call->order_count; i++) CK_TRY(guard(b, call, &call->order[i], at));
    return CK_OK;
}

static bool same_call(const ck_bound_call *x, const ck_bound_call *y) {
    bool same = x->fn == y->fn && x->grouping == y->grouping && x->distinct == y->distinct &&
                x->ignores_nulls == y->ignores_nulls && same_expr(x->arg, y->arg) && same_expr(x->filter, y->filter) &&
                x->order_count == y->order_count && ck_view_eq(x->separator, y->separator) &&
                x->fraction == y->fraction;
    for (uint32_t i = 0; same && i < x->order_count; i++)
        same = ck_expr_equal(x->order[i], y->order[i]) && x->directions[i].descending == y->directions[i].descending &&
               x->directions[i].nulls_first == y->directions[i].nulls_first;
    return same;
}

static ck_status collect(ck_binder *b, ck_bound_calls *list, const ck_bound_call *call, uint32_t *index) {
    for (uint32_t i = 0; i < list->count; i++) {
        *index = i;
        if (same_call(&list->at[i], call)) return CK_OK;
    }
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 8;
        ck_bound_call *more = CK_BIND_ARRAY(b, capacity, ck_bound_call);
        if (!more) return CK_NOMEM;
        if (list->count) memcpy(more, list->at, list->count * sizeof *more);
        list->at = more, list->capacity = capacity;
    }
    *index = list->count;
    list->at[list->count++] = *call;
    return CK_OK;
}

ck_status ck_bind_aggregate(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                            ck_expr **out) {
    ck_bound_call call = {.fn = fn, .name = fn->name, .at = e->sign};
    ck_bound_aggregate bound = {0};
    uint32_t index;
    CK_TRY(may_stand_here(b, place, e));
    ck_bind_place inner = {.scope = place->scope,
                           .clause = place->clause,
                           .shut = place->shut,
                           .inside = fn->name,
                           .aliases = place->aliases};
    CK_TRY(argument(b, &inner, fn, e, &call, &bound));
    CK_TRY(extras(b, &inner, fn, e, &call));
    CK_TRY(guard_argument(b, &call, e->sign));
    call.type = bound.type, call.nullable = bound.nullable;
    CK_TRY(collect(b, place->calls, &call, &index));
    *out = ck_expr_column(b->plan.arena, CK_BIND_AGGREGATE | index, call.type, call.nullable);
    if (!*out) return ck_bind_nomem(b);
    (*out)->line = e->pos.line, (*out)->col = e->pos.column;
    return CK_OK;
}

/* GROUPING(a, b): what it gives is known when the sets are. */
ck_status ck_bind_grouping(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_bound_call call = {.grouping = e, .type = ck_type_simple(CK_TYPE_BIGINT), .name = "grouping"};
    uint32_t index;
    if (e->call || e->args.count == 0 || e->args.count > 62)
        return ck_bind_fail(b, e->sign, "GROUPING takes what GROUP BY groups by");
    CK_TRY(may_stand_here(b, place, e));
    CK_TRY(collect(b, place->calls, &call, &index));
    *out = ck_expr_column(b->plan.arena, CK_BIND_AGGREGATE | index, call.type, false);
    return *out ? CK_OK : ck_bind_nomem(b);
}
