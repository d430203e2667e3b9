/* What the files of this room share about trees. */
#ifndef CK_EXPR_TREE_INT_H
#define CK_EXPR_TREE_INT_H

#include "expr/function.h"

enum { CK_EXPR_DEPTH_MAX = 1000 }; /* of decoded documents; SQL text has a ceiling of its own below it */

/* The function's and the overload's flags of a call together; 0 for anything else. */
uint32_t ck_expr_flags(const ck_expr *e);
/* How many arguments are evaluated before the call: one for a set made of the others when it is prepared. */
static inline uint32_t ck_expr_computed_args(const ck_expr *e) {
    return e->arg_count && (ck_expr_flags(e) & CK_FN_FIRST) ? 1 : e->arg_count;
}
/* A call node over these (borrowed) arguments; nothing is resolved. NULL without memory. */
ck_expr *ck_expr_new_call(ck_arena *a, const ck_function *fn, const ck_impl *impl, ck_expr *const *args,
                          uint32_t arg_count, const ck_type *type, bool nullable);
/* Whether any call below has one of these flags. */
bool ck_expr_any_flag(const ck_expr *e, uint32_t flags);
/* A VARCHAR literal that is not NULL: SQL's untyped string, which takes the type its place wants. */
bool ck_expr_is_text_literal(const ck_expr *e);
/* A CK_TYPE_NULL expression or a NULL literal of any type. */
bool ck_expr_is_null_literal(const ck_expr *e);

#endif
