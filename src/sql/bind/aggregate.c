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

static ck_status argument(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                          ck_bound_call *call, ck_bound_aggregate *bound) {
    bool star = e->call && e->call->star;
    uint32_t given = star ? 0 : e->args.count;
    if (given == 0 && !star)
        return ck_bind_fail(b, e->sign,
                            fn->arg_min == 0 ? "%s takes an argument; %s(*) counts all rows" : "%s takes an argument",
                            fn->name, fn->name);
    if (given < fn->arg_min || given > fn->arg_max || given > 1)
        return ck_bind_fail(b, e->sign, given == 0 ? "%s takes an argument, not *" : "%s takes one argument", fn->name);
    if (given) CK_TRY(ck_bind_expr(b, place, e->args.first, &call->arg));
    CK_TRY(ck_bind_at(
        b, e->sign,
        fn->bind(b->plan.arena, call->arg ? call->arg->type : NULL, call->arg && call->arg->nullable, bound, b->err)));
    if (call->arg && bound->argument_type)
        CK_TRY(ck_bind_cast(b, call->arg, bound->argument_type, false, e->args.first->pos, &call->arg));
    return CK_OK;
}

static ck_status extras(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn, const ck_ast_expr *e,
                        ck_bound_call *call) {
    const ck_ast_call *c = e->call;
    if (!c) return CK_OK;
    if (c->order_by.count)
        return ck_bind_fail(b, c->order_by.first->pos, "ORDER BY inside %s changes nothing; remove it", fn->name);
    if (c->nulls != CK_NULL_TREATMENT_NONE)
        return ck_bind_fail(b, e->sign, "%s takes no IGNORE or RESPECT NULLS", fn->name);
    if (c->distinct && !call->arg) return ck_bind_fail(b, e->sign, "DISTINCT takes an argument");
    call->distinct = c->distinct && fn->distinct_matters;
    if (!c->filter) return CK_OK;
    ck_bind_place filter = *place;
    filter.clause = "FILTER";
    return ck_bind_condition(b, &filter, c->filter, &call->filter);
}

/* An error in an argument counts only for rows that the filter lets through. */
static ck_status guard_argument(ck_binder *b, ck_bound_call *call, ck_pos at) {
    if (!call->filter || !call->arg || !ck_expr_is_fallible(call->arg)) return CK_OK;
    ck_expr *args[2] = {call->filter, call->arg};
    return ck_bind_function(b, "case", args, 2, at, &call->arg);
}

static ck_status collect(ck_binder *b, ck_bound_calls *list, const ck_bound_call *call, uint32_t *index) {
    for (uint32_t i = 0; i < list->count; i++) {
        const ck_bound_call *o = &list->at[i];
        *index = i;
        if (o->fn == call->fn && o->grouping == call->grouping && o->distinct == call->distinct &&
            same_expr(o->arg, call->arg) && same_expr(o->filter, call->filter))
            return CK_OK;
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
    ck_bound_call call = {.fn = fn, .name = fn->name};
    ck_bound_aggregate bound = {0};
    uint32_t index;
    CK_TRY(may_stand_here(b, place, e));
    ck_bind_place inner = {
        .scope = place->scope, .clause = place->clause, .inside = fn->name, .aliases = place->aliases};
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
