/* Accumulators: the pieces aggregates are made of, each a few value fields in the row of a group (and, where a row
 * cannot hold it, a slot beside it). An accumulator is updated a batch at a time through a kernel picked when it was
 * planned by physical type and mode: a tight loop over row pointers, with nothing chosen per row.
 *
 *   name        argument      append input                 retract input
 *   count_star  none          n                            n
 *   count       any           n                            n
 *   sum         I64           s (NULL: no value yet), and the carry beyond 64 bits in a slot; retract: s alone
 *   sum         I128          as I64, carry beyond 128 bits
 *   sum         F64           s (NULL: no value yet)       s, compensation, counts of NaN, +Inf, -Inf
 *   moments     F64           count, sum and sum of squares at twice the digits, count of NaN and infinities
 *   min, max    scalar        m (NULL: no value yet)       a slot of values in order with counts
 *   ordered     any           a slot of values in the order asked for, with counts
 *   first, last any           as ordered, of each group the first or last row alone; append input
 *   distinct_sketch scalar    4 KiB of registers at most (NULL: no value yet); append input
 *   of a plugin  its own      the fields it names
 *
 * Over retract input a sum, a minimum or a maximum is NULL where the count of its argument is 0: that count is an
 * accumulator of its own, shared with COUNT(x). */
#ifndef CK_OPERATOR_ACCUMULATOR_H
#define CK_OPERATOR_ACCUMULATOR_H

#include "data/builder.h"
#include "state/state.h"
#include "stream/descriptor.h"

/* The rows of a batch that an accumulator takes: those that pass its filter and whose argument is not NULL. */
typedef struct ck_lane {
    ck_row **rows;         /* the group of the i-th */
    const uint16_t *at;    /* its physical row in the batch; NULL: i itself */
    const int8_t *weights; /* +1 or -1 for the i-th; NULL: all +1 */
    uint32_t n;
} ck_lane;
static inline uint32_t ck_lane_at(const ck_lane *l, uint32_t i) { return l->at ? l->at[i] : i; }
static inline int ck_lane_weight(const ck_lane *l, uint32_t i) { return l->weights ? l->weights[i] : 1; }

/* Some groups, their rows and keys: what is needed to read results. keys: live row i of `batch` under `spec` is the key
 * of rows[i]. */
typedef struct ck_groups {
    const ck_row *const *rows;
    uint32_t n;
    const ck_batch *batch;
    const ck_key_spec *spec;
    const ck_batch *named; /* what messages call them, where that is not their key; else NULL */
} ck_groups;

enum { CK_ACC_FIELDS_MAX = 6, CK_ACC_ORDER_MAX = 16 /* columns of ORDER BY, with the argument */ };

/* What names a group in the slots beside its own: the key, and in windows what tells the groups of one key apart. */
typedef struct ck_acc_scope {
    const ck_field *partition;
    uint32_t partition_count;
    const ck_order_field *within; /* slice end, window start; none: the key is the group */
    uint32_t within_count;
    int64_t ttl_us;
} ck_acc_scope;

typedef struct ck_acc ck_acc;
struct ck_acc {
    /* ---- planned ---- */
    const char *name;        /* "sum" */
    const char *field;       /* canonical name, of its first field too: "sum(price)" */
    const char *set_name;    /* argument and filter, what names a set of its values: "price FILTER (price > 3)" */
    int64_t arg;             /* input column, -1 */
    const ck_type *arg_type; /* NULL for count_star */
    uint32_t lane;           /* which rows it takes */
    int64_t filter;          /* columns and set that made the lane */
    int64_t distinct;
    bool retract;
    const struct ck_plugin_aggregate *plugin; /* NULL: built in */
    ck_field fields[CK_ACC_FIELDS_MAX]; /* its value fields in the group's slot ... */
    uint32_t field_count, first_field;  /* ... how many, and which of all is the first */
    const ck_slot_schema *side;         /* its own slot, NULL: none */
    ck_acc *non_null;                   /* count of the argument; NULL over append input */
    const ck_order_spec *by;            /* ordered values: input columns that tell their order, the argument one */
    uint32_t by_count, value_at;        /* ... and which of them it is */
    const char *order_text;             /* canonical, of those in front of the argument; NULL: it alone */
    uint32_t within;                    /* columns of the scope in front of the values in an ordered side slot */
    bool shares_side;                   /* another accumulator keeps the side slot: nothing to update */
    /* One batch's lane into the rows. b and keys: the batch the lane points into, to find rows of the side slot. */
    ck_status (*update)(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys, ck_op_ctx *ctx);
    /* Adds what the groups of src hold to dst[i]: what a window is put together with, slices and sessions. `from` is
     * the table of src's rows, a->table that of dst's; dst_keys under src->spec finds dst's rows in the side slot.
     * Sums may be called without keys (src->batch and dst_keys NULL): CK_MORE, nothing has changed and they are needed.
     * NULL: not possible (ordered values). */
    ck_status (*merge)(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src, const ck_batch *dst_keys,
                       ck_op_ctx *ctx);
    /* Takes away again what merge has added. NULL: not possible (the least of values, sums of doubles). */
    ck_status (*unmerge)(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src, const ck_batch *dst_keys,
                         ck_op_ctx *ctx);
    /* The value for each group as a column of its own: what the aggregate is when it is nothing but this. */
    ck_status (*value)(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx);
    /* ---- bound to the tables at open ---- */
    ck_table *table, *side_table;
    uint32_t offset[CK_ACC_FIELDS_MAX], null_bit[CK_ACC_FIELDS_MAX];
    uint32_t side_offset; /* of the side slot's value field */
    uint32_t side_field;
    bool error_null; /* a value out of range is NULL instead of an error */
};

/* Plans one accumulator (name, field, set_name, arg*, retract, non_null are set): picks kernels, names its value
 * fields, describes its side slot. Unknown names and types that cannot be
 * accumulated are CK_INVALID. Texts live in the arena. */
CK_NODISCARD ck_status ck_acc_plan(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err);
/* Finds its fields in the group's table and opens its side slot. */
CK_NODISCARD ck_status ck_acc_open(ck_acc *a, ck_table *table, ck_op_ctx *ctx);

/* ---- values in an ordered side slot: accumulator_values.c ---- */

/* The values that stand for these groups go. Groups of a key stand one behind the other, or are of windows that rows
 * carry. */
CK_NODISCARD ck_status ck_acc_erase_values(ck_acc *a, const ck_groups *g, ck_op_ctx *ctx);

/* A walk over the values of some groups, group after group: begin, then open and next, then end, also after a failure.
 * Nothing is written to the slot meanwhile. */
typedef struct ck_values_walk {
    ck_acc *acc;
    const ck_groups *groups;
    ck_partition *partitions; /* in ctx->arena */
    ck_partition partition;   /* of the group that is open, 0: it has no values */
    ck_bytes lo, hi;          /* its values are between these; empty: all of the partition */
    ck_range range;
} ck_values_walk;
CK_NODISCARD ck_status ck_values_begin(ck_values_walk *w, ck_acc *a, const ck_groups *g, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_values_open(ck_values_walk *w, uint32_t group, ck_op_ctx *ctx);
/* The next value whose count is positive: counts below zero wait for their other half. */
bool ck_values_next(ck_values_walk *w, ck_row **row, int64_t *count);
/* The last of the group that is open. */
bool ck_values_last(ck_values_walk *w, ck_row **row);
void ck_values_end(ck_values_walk *w);
/* The value of such a row into a builder. */
CK_NODISCARD static inline ck_status ck_values_build(const ck_acc *a, const ck_row *row, ck_column_builder *to) {
    return ck_table_gather_field(a->side_table, &row, 1, a->side_field, to);
}

/* Whether the group has no value in this accumulator (SUM of nothing). */
static inline bool ck_acc_is_null(const ck_acc *a, const ck_row *row) {
    return a->non_null ? ck_row_i64(row, a->non_null->offset[0]) <= 0 : ck_row_null(row, a->null_bit[0]);
}

/* ---- pieces shared by the accumulators and the results made of several of them ---- */

/* A name of at most 200 bytes: what is cut ends in a hash of the whole. NULL gives NULL. */
const char *ck_name_cut(ck_arena *arena, const char *name);
/* A slot name in its allowed alphabet and length: '|', '%' and newlines escaped, long ones cut. */
const char *ck_slot_name(ck_arena *arena, const char *prefix, const char *text, ck_error *err);

/* Rows of a side slot for these groups; NULL where there is none. out has room for g->n. */
CK_NODISCARD ck_status ck_groups_find(const ck_groups *g, ck_table *t, const ck_row **out, ck_op_ctx *ctx);
/* Hashes of the live rows of b, in ctx->arena. NULL without memory. */
uint64_t *ck_keys_hash(const ck_key_spec *spec, const ck_batch *b, const ck_table *t, ck_op_ctx *ctx);
/* Erase those of the rows (repeats allowed, all from the last call) whose counter at `offset` is zero. */
CK_NODISCARD ck_status ck_rows_erase_zero(ck_table *t, ck_row *const *rows, uint32_t n, uint32_t offset,
                                          ck_op_ctx *ctx);

/* carry[i] of a sum for each group; *any false: all are zero and carry is not filled. */
CK_NODISCARD ck_status ck_acc_carries(const ck_acc *a, const ck_groups *g, int64_t *carry, bool *any, ck_op_ctx *ctx);
/* A double sum as it reads: compensation and the counted NaN and infinities put together. */
double ck_acc_double(const ck_acc *a, const ck_row *row);

/* The sentence for a result that its type cannot hold, with the group's key. Returns CK_DATA. */
ck_status ck_acc_out_of_range(const char *what, const ck_type *type, const ck_groups *g, uint32_t i, ck_op_ctx *ctx);
/* The sentence for one that is larger than results may be ("64 MiB"). Returns CK_DATA. */
ck_status ck_acc_over_limit(const char *what, const char *limit, const ck_groups *g, uint32_t i, ck_op_ctx *ctx);
/* A slot whose only value field is a BIGINT, its order columns those of the scope and then `order`. Within a window its
 * rows are found by hash. NULL without memory. */
ck_slot_schema *ck_acc_side_slot(ck_arena *arena, const char *slot, const char *state_type, const ck_acc_scope *scope,
                                 const ck_order_field *order, uint32_t order_count, const char *value);

/* Of moments: false where there are too few values. */
bool ck_acc_variance(const ck_acc *a, const ck_row *row, bool of_sample, double *out);

/* The families. */
void ck_acc_plan_count(ck_acc *a);
CK_NODISCARD ck_status ck_acc_plan_sum(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err);
CK_NODISCARD ck_status ck_acc_plan_moments(ck_acc *a, ck_arena *arena, ck_error *err);
CK_NODISCARD ck_status ck_acc_plan_minmax(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err);
/* Values in the order of a->by (NULL: of the argument). */
CK_NODISCARD ck_status ck_acc_plan_values(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err);
CK_NODISCARD ck_status ck_acc_plan_sketch(ck_acc *a, ck_arena *arena, ck_error *err);
CK_NODISCARD ck_status ck_acc_plan_plugin(ck_acc *a, ck_arena *arena, ck_error *err);
/* Of a distinct_sketch. */
int64_t ck_acc_distinct_estimate(const ck_acc *a, const ck_row *row);

#endif
