/* Predicates straight to scopes, without a column of truth values in between: comparisons, AND, OR and NOT of them. */
#include "expr/compile_int.h"

#include "expr/lazy.h"

static ck_status where_value(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    uint32_t node;
    CK_TRY(ck_compile_value(c, e, scope, &node));
    CK_TRY(ck_compile_scope(c, scope, out));
    return ck_compile_step(
        c, &(ck_step){
               .op = CK_STEP_WHERE, .where = CK_WHERE_TRUE, .node = node, .from = scope, .to = *out, .marks = marks});
}

/* Taking the rows where the left side is TRUE to the right side leaves out those where it is NULL. For these the answer
 * is not TRUE either way, but the right side might fail, and AND evaluates it unless the left side is FALSE. */
static bool shrinks_exactly(const ck_expr *e) {
    bool null_before = e->args[0]->nullable;
    for (uint32_t i = 1; i < e->arg_count; i++) {
        if (null_before && ck_expr_is_fallible(e->args[i])) return false;
        null_before |= e->args[i]->nullable;
    }
    return true;
}

static ck_status where_all(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    for (uint32_t i = 0; i < e->arg_count; i++) {
        CK_TRY(ck_compile_where(c, e->args[i], scope, marks, out));
        scope = *out;
    }
    return CK_OK;
}

static ck_status where_any(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    uint32_t all, left = scope, hit;
    CK_TRY(ck_compile_where(c, e->args[0], scope, marks, &hit));
    all = hit;
    for (uint32_t i = 1; i < e->arg_count; i++) {
        CK_TRY(ck_compile_minus(c, left, hit, marks, &left)); /* what is taken away is always a part of what is left */
        CK_TRY(ck_compile_where(c, e->args[i], left, marks, &hit));
        uint32_t both;
        CK_TRY(ck_compile_scope(c, scope, &both));
        CK_TRY(ck_compile_step(c, &(ck_step){.op = CK_STEP_UNION, .from = all, .other = hit, .to = both}));
        all = both;
    }
    *out = all;
    return CK_OK;
}

static ck_status where_call(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    ck_step step = {
        .op = CK_STEP_SELECT, .from = scope, .expr = e, .arg_count = ck_expr_computed_args(e), .marks = marks};
    uint32_t *args = NULL;
    CK_TRY(ck_compile_args(c, e, scope, &args));
    CK_TRY(ck_compile_state(c, e, &step.state));
    CK_TRY(ck_compile_scope(c, scope, out));
    step.args = args, step.to = *out;
    return ck_compile_step(c, &step);
}

/* NOT of a comparison is the opposite comparison: both are not TRUE where a side is NULL. */
static ck_status opposite(ck_compiler *c, const ck_expr *e, ck_expr **out) {
    static const char *const pairs[][2] = {{"=", "<>"}, {"<", ">="}, {"<=", ">"}, {"is_null", "is_not_null"}};
    *out = NULL;
    if (e->kind != CK_EXPR_CALL) return CK_OK;
    for (size_t i = 0; i < CK_ARRAY_COUNT(pairs); i++)
        for (size_t k = 0; k < 2; k++)
            if (strcmp(e->fn->name, pairs[i][k]) == 0)
                return ck_expr_call(c->arena, pairs[i][1 - k], e->args, e->arg_count, out, c->err);
    return CK_OK;
}

ck_status ck_compile_where(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    if (e->kind != CK_EXPR_CALL || ck_compile_find(c, e, scope) != CK_NONE || ck_expr_is_constant(e))
        return where_value(c, e, scope, marks, out);
    if (e->impl->select) return where_call(c, e, scope, marks, out);
    if (strcmp(e->fn->name, "not") == 0) {
        ck_expr *flipped;
        CK_TRY(opposite(c, e->args[0], &flipped));
        if (flipped) return ck_compile_where(c, flipped, scope, marks, out);
    }
    if (e->impl->kernel) return where_value(c, e, scope, marks, out);
    switch ((ck_lazy_form)e->impl->op) {
    case CK_LAZY_AND:
        return shrinks_exactly(e) ? where_all(c, e, scope, marks, out) : where_value(c, e, scope, marks, out);
    case CK_LAZY_OR:
        return ck_compile_is_cheap(e) ? where_value(c, e, scope, marks, out) : where_any(c, e, scope, marks, out);
    case CK_LAZY_BETWEEN:
    case CK_LAZY_IN: {
        ck_expr *plain;
        CK_TRY(ck_compile_take_apart(c, e, &plain));
        return ck_compile_where(c, plain, scope, marks, out);
    }
    default: return where_value(c, e, scope, marks, out);
    }
}
