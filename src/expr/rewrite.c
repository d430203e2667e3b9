/* Replacing parts of bound expressions. See tree.h. */
#include "expr/tree_int.h"

/* *out: e's arguments rewritten, e->args where nothing has changed. */
static ck_status rewrite_args(ck_arena *a, const ck_expr *e, ck_expr_rewriter fn, void *arg, ck_expr *const **out) {
    ck_expr **args = NULL;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        ck_expr *made;
        CK_TRY(ck_expr_rewrite(a, e->args[i], fn, arg, &made));
        if (made == e->args[i]) continue;
        if (!args) {
            if (!(args = ck_arena_array(a, e->arg_count, sizeof(ck_expr *)))) return CK_NOMEM;
            memcpy(args, e->args, e->arg_count * sizeof(ck_expr *));
        }
        args[i] = made;
    }
    *out = args ? args : e->args;
    return CK_OK;
}

ck_status ck_expr_rewrite(ck_arena *a, ck_expr *e, ck_expr_rewriter fn, void *arg, ck_expr **out) {
    ck_expr *instead = NULL;
    ck_expr *const *args = e->args;
    CK_TRY(fn(arg, e, &instead));
    if (!instead && e->kind == CK_EXPR_CALL) CK_TRY(rewrite_args(a, e, fn, arg, &args));
    if (!instead && args != e->args) {
        if (!(instead = ck_expr_new_call(a, e->fn, e->impl, args, e->arg_count, e->type, e->nullable))) return CK_NOMEM;
        instead->line = e->line, instead->col = e->col, instead->fails_to_null = e->fails_to_null;
    }
    *out = instead ? instead : e;
    return CK_OK;
}
