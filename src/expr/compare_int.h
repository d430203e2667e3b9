/* What comparisons share with IN and others. */
#ifndef CK_EXPR_COMPARE_INT_H
#define CK_EXPR_COMPARE_INT_H

#include "expr/eval_int.h"

/* Casts call->args[0] and [1] to types whose values compare directly. */
CK_NODISCARD ck_status ck_unify_comparison(ck_bind_call *call, ck_error *err);
/* Bytewise order of two strings: -1, 0, 1. */
int ck_compare_views(const ck_column *a, uint32_t i, const ck_column *b, uint32_t j);
/* The order of two scalar values of one type, neither NULL: -1, 0, 1. */
int ck_compare_values(const ck_column *a, uint32_t i, const ck_column *b, uint32_t j);
/* IN over literals: unifies the types and chooses a set; leaves call->impl alone when the types do not allow one. */
CK_NODISCARD ck_status ck_bind_in_set(ck_bind_call *call, ck_error *err);

#endif
