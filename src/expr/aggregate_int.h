/* The aggregates' table in its parts. */
#ifndef CK_EXPR_AGGREGATE_INT_H
#define CK_EXPR_AGGREGATE_INT_H

#include "expr/aggregate.h"

/* "no aggregate avg(VARCHAR); avg takes a number" */
ck_status ck_aggregate_refuse(const char *name, const ck_type *arg, ck_arena *a, const char *takes, ck_error *err);
bool ck_aggregate_has_order(const ck_type *t);

/* aggregate_ordered.c */
extern const ck_aggregate ck_aggregates_ordered[];
extern const size_t ck_aggregates_ordered_count;

#endif
