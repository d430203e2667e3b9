/* Rule-based rewriting of the bound plan, in this order:
 *   simplify   constants folded, true conjuncts and needless projections dropped, rows of constants computed
 *   pushdown   filters as far down as they may go: never an expression that can fail below an aggregate or past a guard
 *   prepare    both sides of a join's equalities become columns; NULL keys that match nothing are dropped early
 *   merge      projections on projections become one
 *   prune      columns nobody reads disappear, down to the scan
 *   share      scans of one table become one; filters and projections settle once more
 * A node with several consumers is rewritten once and stays shared; filters stop above it. Stateful nodes keep the
 * identity of the bound plan. */
#ifndef CK_SQL_OPTIMISE_OPTIMISE_H
#define CK_SQL_OPTIMISE_OPTIMISE_H

#include "sql/bind/bind.h"

/* Rewrite the outputs' nodes, in two halves: simplify to merge, when nodes are what they will be and scans still have
 * all columns; and from prune on. CK_NOMEM, or what the plan's ceilings say. */
CK_NODISCARD ck_status ck_optimise_rows(ck_plan *p, ck_output *outputs, uint32_t count);
CK_NODISCARD ck_status ck_optimise_columns(ck_plan *p, ck_output *outputs, uint32_t count);

/* One pass bottom-up: fn makes the node that stands for n over the (rewritten) inputs. */
typedef ck_status (*ck_rewrite_fn)(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs,
                                   ck_plan_node **out);
CK_NODISCARD ck_status ck_rewrite_plan(ck_plan *p, ck_output *outputs, uint32_t count, ck_rewrite_fn fn, void *arg);

#endif
