/* Replacing parts of bound expressions. See tree.h. */
#include "expr/tree_int.h"

ck_expr *ck_expr_rewrite(ck_arena *a, ck_expr *e, ck_expr *(*fn)(void *arg, const ck_expr *e), void *arg) {
    ck_expr *instead = fn(arg, e);
    if (instead || e->kind != CK_EXPR_CALL) return instead ? instead : e;
    ck_expr **args = NULL;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        ck_expr *made = ck_expr_rewrite(a, e->args[i], fn, arg);
        if (!made) return NULL;
        if (made == e->args[i]) continue;
        if (!args) {
            if (!(args = ck_arena_array(a, e->arg_count, sizeof(ck_expr *)))) return NULL;
            memcpy(args, e->args, e->arg_count * sizeof(ck_expr *));
        }
        args[i] = made;
    }
    if (!args) return e;
    ck_expr *copy = ck_expr_new_call(a, e->fn, e->impl, args, e->arg_count, e->type, e->nullable);
    if (copy) copy->line = e->line, copy->col = e->col, copy->fails_to_null = e->fails_to_null;
    return copy;
}
