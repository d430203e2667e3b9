/* What the passes share. */
#ifndef CK_SQL_OPTIMISE_OPTIMISE_INT_H
#define CK_SQL_OPTIMISE_OPTIMISE_INT_H

#include "sql/optimise/optimise.h"

/* The nodes below some outputs, inputs before users, and how many edges lead to each. */
typedef struct ck_reach {
    ck_plan_node **nodes;
    uint32_t count;
    uint32_t *uses; /* by node id */
} ck_reach;
CK_NODISCARD ck_status ck_reach_of(ck_plan *p, const ck_output *outputs, uint32_t count, ck_reach *out);

CK_NODISCARD ck_status ck_simplify(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_pushdown(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_prepare_joins(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_merge_projects(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_prune(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_share_scans(ck_plan *p, ck_output *outputs, uint32_t count);

/* ---- exprs.c ---- */
/* Nodes of an expression, counted up to `limit`. */
uint32_t ck_expr_size(const ck_expr *e, uint32_t limit);
/* e over the columns of a projection's input instead of its output; NULL without memory. */
ck_expr *ck_expr_through(ck_plan *p, const ck_plan_node *project, ck_expr *e);
/* e with column i renumbered to map[i]; NULL without memory. */
ck_expr *ck_expr_renumber(ck_plan *p, const uint32_t *map, ck_expr *e);
/* Folds what is constant; leaves what would fail, so that it fails only where it is evaluated. */
CK_NODISCARD ck_status ck_expr_simplify(ck_plan *p, ck_expr *e, ck_expr **out);

#endif
