/* The compiler's own state. */
#ifndef CK_EXPR_COMPILE_INT_H
#define CK_EXPR_COMPILE_INT_H

#include "expr/eval_int.h"

enum { CK_COMPILE_HEADS = 256 };

typedef struct ck_compiler {
    ck_arena *arena;
    ck_program *program;
    ck_code *code;
    ck_error *err;
    uint32_t step_capacity, node_capacity, scope_capacity, prepared_capacity;
    uint32_t *scope_parent;           /* the scope each one is a subset of */
    uint32_t heads[CK_COMPILE_HEADS]; /* nodes by hash, chained */
    uint32_t *chain;
} ck_compiler;

CK_NODISCARD ck_status ck_compile_step(ck_compiler *c, const ck_step *step);
CK_NODISCARD ck_status ck_compile_scope(ck_compiler *c, uint32_t parent, uint32_t *out);
/* The node of e for the rows of scope. */
CK_NODISCARD ck_status ck_compile_value(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out);
/* The node that holds e for the rows of scope already; CK_NONE: there is none. */
uint32_t ck_compile_find(const ck_compiler *c, const ck_expr *e, uint32_t scope);
CK_NODISCARD ck_status ck_compile_args(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t **out);
/* The number of what the call prepares, CK_NONE: nothing. */
CK_NODISCARD ck_status ck_compile_state(ck_compiler *c, const ck_expr *e, uint32_t *out);
CK_NODISCARD ck_status ck_compile_minus(ck_compiler *c, uint32_t from, uint32_t other, uint32_t marks, uint32_t *out);
/* Computing it for every row costs less than finding out which rows need it. */
bool ck_compile_is_cheap(const ck_expr *e);
/* The plainer form of BETWEEN, and of IN with a list that is not constant. */
CK_NODISCARD ck_status ck_compile_take_apart(ck_compiler *c, const ck_expr *e, ck_expr **out);
/* The scope of those rows of `scope` where e is TRUE; rows where it fails go to the mark list. */
CK_NODISCARD ck_status ck_compile_where(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks,
                                        uint32_t *out);

#endif
