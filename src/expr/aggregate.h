/* The table of aggregate functions: types and documentation for the binder, and how each is made of accumulators (state
 * fields), which operator/ implements. AVG = avg(sum, count): fields are shared between aggregates of one GROUP BY. */
#ifndef CK_EXPR_AGGREGATE_H
#define CK_EXPR_AGGREGATE_H

#include "expr/tree.h"

/* An accumulator by name: "count_star", "count", "sum", "min", "max" ... operator/accumulator.h lists their fields and
 * kernels. */
typedef struct ck_aggregate_part {
    const char *accumulator;
    bool takes_argument; /* the aggregate's argument, cast to argument_type */
} ck_aggregate_part;

typedef struct ck_bound_aggregate {
    const struct ck_aggregate *fn;
    const ck_type *argument_type; /* what the argument is cast to; NULL: takes none */
    const ck_type *type;          /* result */
    bool nullable;
    const ck_aggregate_part *parts;
    uint32_t part_count;
    const char *finish; /* how parts become the result: "first" (part 0 as it is), "avg" ... known to operator/ */
} ck_bound_aggregate;

typedef struct ck_aggregate {
    const char *name;
    uint32_t arg_min, arg_max; /* COUNT(*) is arg 0 */
    bool distinct_matters;     /* false: DISTINCT changes nothing (MIN, MAX) */
    /* arg is NULL for COUNT(*); the number of arguments has been checked. */
    ck_status (*bind)(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err);
    const char *group, *syntax, *summary, *example, *result;
} ck_aggregate;

const ck_aggregate *ck_aggregate_find(const char *name); /* case ignored */
size_t ck_aggregate_count(void);
const ck_aggregate *ck_aggregate_at(size_t i);

#endif
