/* Shared by the constructors. */
#ifndef CK_SQL_PLAN_PLAN_INT_H
#define CK_SQL_PLAN_PLAN_INT_H

#include "sql/plan/plan.h"

/* A node over these inputs (copied): depth, mode, boundedness, ancestors united; no schema, no keys. */
CK_NODISCARD ck_status ck_plan_new(ck_plan *p, ck_plan_kind kind, ck_plan_node *const *inputs, uint32_t count,
                                   ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_schema_new(ck_plan *p, uint32_t count, ck_schema **out, ck_field **fields);
/* Of a join, once it has its conditions. */
bool ck_plan_find_time_bounds(const ck_plan_node *join, ck_time_bounds *out);
bool ck_plan_add_key(ck_plan *p, ck_plan_node *n, const uint32_t *columns, uint32_t count); /* sorted copy */
/* identity = "<kind>(<key>)<-<ancestors>"; it becomes the one ancestor above. */
CK_NODISCARD ck_status ck_plan_identify(ck_plan *p, ck_plan_node *n, const char *kind, const char *key);
CK_NODISCARD ck_status ck_plan_identify_as(ck_plan *p, ck_plan_node *n, const char *identity, const char *ancestor);
/* canonical = hash(kind, text, inputs' canonical). */
void ck_plan_canonical(ck_plan_node *n, ck_view text);
CK_NODISCARD ck_status ck_plan_canonical_exprs(ck_plan *p, ck_plan_node *n, ck_expr *const *exprs, uint32_t count,
                                               const char *const *names);
/* over.c: whether event time settles the ranks of this top-N over `input`. */
bool ck_plan_top_is_timed(const ck_plan_node *input, const ck_plan_top *top);
/* Whether the end of a window is in the partition; then it says in *top which column it is. */
bool ck_plan_top_is_windowed(const ck_plan_node *input, ck_plan_top *top);
/* Whether something of every key is kept for ever. */
bool ck_plan_over_keeps(const ck_plan_node *over);

/* The names of columns, with commas: what a key is told by that has no text of its own. NULL: no memory. */
const char *ck_plan_key_names(ck_plan *p, const ck_plan_node *input, ck_columns keys);

#endif
