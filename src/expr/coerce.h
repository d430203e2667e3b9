/* Which types become which by themselves, as in PostgreSQL: numbers widen (TINYINT < SMALLINT < INTEGER < BIGINT <
 * DECIMAL < REAL < DOUBLE), DATE < TIMESTAMP < TIMESTAMP_LTZ, NULL takes any type, and a string literal takes the type
 * its place wants. */
#ifndef CK_EXPR_COERCE_H
#define CK_EXPR_COERCE_H

#include "expr/function.h"

/* The type both become, or NULL when there is none (CK_NOMEM is not told apart: the caller's next allocation fails
 * too). */
const ck_type *ck_common_type(ck_arena *a, const ck_type *x, const ck_type *y);
/* What an integer type is where a DECIMAL is wanted: BIGINT is DECIMAL(19,0). DECIMAL as it is. */
const ck_type *ck_as_decimal(ck_arena *a, const ck_type *t);

/* How far e is from `kind` as an argument: 0 exact, -1 impossible. */
int ck_implicit_cost(const ck_expr *e, ck_kind kind);
/* e as `to` for an implicit conversion: integers that share the lane are left alone when `lane` is set; a string
 * literal is parsed now and must parse. */
CK_NODISCARD ck_status ck_coerce(ck_arena *a, ck_expr *e, const ck_type *to, bool lane, ck_expr **out, ck_error *err);
/* All of args[0..n) to one common type, string literals last. `what` for the message: "CASE", "IN". */
CK_NODISCARD ck_status ck_unify(ck_bind_call *call, ck_expr **args, const uint32_t *which, uint32_t n,
                                const ck_type **type, ck_error *err);

/* "an" INTEGER, "a" DATE. */
const char *ck_article(const char *type_name);
/* "(BIGINT, VARCHAR)" of a call's arguments, in the arena. */
const char *ck_argument_types(ck_arena *a, ck_expr *const *args, uint32_t count);

#endif
