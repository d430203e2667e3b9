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
    const char *finish;     /* how parts become the result: "first" (part 0 as it is), "avg" ... known to operator/ */
    const char *of;         /* a function of the argument that is accumulated in its place; NULL: the argument itself */
    const ck_type *of_type; /* what it gives */
    const struct ck_plugin_aggregate *plugin; /* its only part is a plugin's; NULL: built in */
} ck_bound_aggregate;

/* In which order values are taken. */
typedef enum ck_aggregate_order {
    CK_AGGREGATE_UNORDERED, /* it does not matter */
    CK_AGGREGATE_ORDERED,   /* ORDER BY may stand behind the arguments or in WITHIN GROUP; ties are in the order of the
                             * values */
    CK_AGGREGATE_BY,        /* it must stand there: nobody but the query knows which is first */
    CK_AGGREGATE_WITHIN,    /* WITHIN GROUP orders by the argument, which stands nowhere else */
} ck_aggregate_order;

/* What stands beside the argument, the same for all rows. */
typedef enum ck_aggregate_constant {
    CK_AGGREGATE_NO_CONSTANT,
    CK_AGGREGATE_SEPARATOR, /* a text, ',' when it is missing */
    CK_AGGREGATE_FRACTION,  /* a number from 0 to 1 */
} ck_aggregate_constant;

typedef struct ck_aggregate {
    const char *name;
    uint32_t arg_min, arg_max; /* COUNT(*) is arg 0; the constant is one of them */
    bool distinct_matters;     /* false: DISTINCT changes nothing (MIN, MAX) */
    /* arg is NULL for COUNT(*); the number of arguments has been checked. */
    ck_status (*bind)(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err);
    const char *group, *syntax, *summary, *example, *result;
    ck_aggregate_order order;
    ck_aggregate_constant constant;
    bool keeps_nulls;                         /* NULL is a value like others, unless IGNORE NULLS says otherwise */
    bool append_only;                         /* what has been taken cannot be taken back */
    const struct ck_plugin_aggregate *plugin; /* in place of bind; NULL: built in */
} ck_aggregate;

/* As fn->bind, for those of plugins too. */
CK_NODISCARD ck_status ck_aggregate_bind(const ck_aggregate *fn, ck_arena *a, const ck_type *arg, bool arg_nullable,
                                         ck_bound_aggregate *out, ck_error *err);

const ck_aggregate *ck_aggregate_find(const char *name); /* case ignored */
size_t ck_aggregate_count(void);
const ck_aggregate *ck_aggregate_at(size_t i);

#endif
