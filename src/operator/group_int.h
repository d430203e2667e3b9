/* GROUP BY from the inside: the plan made from the parameters, the lanes of a batch, the groups touched since the last
 * flush, and what is emitted. One idea a file: group_plan.c, group_lanes.c, group_touched.c, group_result.c,
 * group_ordered.c, group_emit.c; group_agg.c is the operator. */
#ifndef CK_OPERATOR_GROUP_INT_H
#define CK_OPERATOR_GROUP_INT_H

#include "expr/aggregate.h"
#include "operator/ttl_int.h"
#include "operator/accumulator.h"

struct yyjson_val;

/* ---- the plan: read-only after create, but for the accumulators' tables ---- */

typedef struct ck_lane_plan { /* which rows; -1: no such condition */
    int64_t filter;           /* BOOLEAN column that must be TRUE */
    int64_t not_null;         /* column that must not be NULL */
    int64_t distinct;         /* set in which the row's value must appear or vanish ... */
    uint32_t member;          /* ... under this filter of its */
} ck_lane_plan;

/* Over append input one set serves all filters of its argument: its rows say which of them the value has passed. */
enum { CK_DISTINCT_MEMBERS_MAX = 63 };
typedef struct ck_distinct_member {
    int64_t filter; /* BOOLEAN column, -1 */
    const char *filter_text;
    uint32_t lane; /* that the set makes for it */
} ck_distinct_member;

typedef struct ck_distinct_plan {
    const char *arg_text;
    int64_t not_null; /* as in a lane */
    ck_distinct_member *members;
    uint32_t member_count;
    uint32_t lane;    /* of the rows whose values are put in the set; several members: before their filters */
    ck_key_spec spec; /* keys, then the argument */
    const ck_slot_schema *slot;
} ck_distinct_plan;

typedef enum ck_finish {
    CK_FINISH_FIRST,
    CK_FINISH_AVG,
    CK_FINISH_VAR_POP,
    CK_FINISH_VAR_SAMP,
    CK_FINISH_STDDEV_POP,
    CK_FINISH_STDDEV_SAMP,
    CK_FINISH_DISTINCT_ESTIMATE,
    CK_FINISH_CONCAT, /* from here on of values in order: group_ordered.c */
    CK_FINISH_LIST,
    CK_FINISH_FIRST_VALUE,
    CK_FINISH_LAST_VALUE,
    CK_FINISH_PERCENTILE_CONT,
    CK_FINISH_PERCENTILE_DISC,
    CK_FINISH_APPROX_PERCENTILE,
} ck_finish;

typedef struct ck_result { /* one output column behind the keys */
    const char *text;      /* "avg(price)", for messages */
    ck_finish finish;
    ck_acc *parts[2];
    const ck_type *type;
    bool nullable;
    bool distinct;     /* of values in order: each once */
    ck_view separator; /* of CONCAT */
    double fraction;   /* of percentiles */
} ck_result;

typedef struct ck_group_plan {
    ck_arena *arena;
    const ck_schema *input;
    ck_key_spec keys;     /* columns of the input */
    ck_key_spec own_keys; /* the same keys as the first columns of an output batch */
    const ck_field *partition;
    ck_acc_scope scope;        /* of the slots beside the group's own */
    ck_key_spec side_keys;     /* what finds a row there: keys, then columns of the scope */
    ck_key_spec own_side_keys; /* the same as the first columns of a batch of groups */
    bool retract, final;
    ck_lane_plan *lanes;
    uint32_t lane_count;
    ck_distinct_plan *distincts;
    uint32_t distinct_count;
    ck_acc **accs; /* in order of update */
    uint32_t acc_count;
    ck_result *results;
    uint32_t result_count;
    ck_acc *row_count; /* the hidden COUNT(*) over retract input; NULL over append */
    ck_slot_schema slot;
    bool sets_in_order; /* values of a set stand in the order of scope and value: sessions, which meet */
    uint32_t capacity;  /* of distincts, their members and accs; twice of lanes */
    ck_op_ttl ttl;
    int64_t ttl_us; /* of its slots; 0: for ever */
} ck_group_plan;

static inline bool ck_group_is_global(const ck_group_plan *p) { return p->keys.count == 0; }
CK_NODISCARD ck_status ck_group_plan_make(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec, ck_error *err);
/* For operators that keep groups of a window: "keys" and "aggregates" of root, in a scope whose fields stand in columns
 * `within_columns` of the batches counted; slot is left to the caller but for its values. */
CK_NODISCARD ck_status ck_group_plan_make_within(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec,
                                                 struct yyjson_val *root, const ck_order_field *within,
                                                 const uint32_t *within_columns, uint32_t within_count,
                                                 bool sets_in_order, ck_error *err);
/* The same for those results of a plan alone whose values go through a set of DISTINCT. */
CK_NODISCARD ck_status ck_group_plan_make_sets(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec,
                                               struct yyjson_val *root, const ck_order_field *within,
                                               const uint32_t *within_columns, uint32_t within_count,
                                               const ck_group_plan *of, ck_error *err);
static inline bool ck_result_is_of_set(const ck_result *r) { return r->parts[0]->distinct >= 0; }
/* All slots, the group's own first. */
CK_NODISCARD ck_status ck_group_plan_slots(const ck_group_plan *p, ck_arena *a, const ck_slot_schema **slots,
                                           uint32_t *count, ck_error *err);

/* group_ordered.c: a result made of values in order. */
CK_NODISCARD ck_status ck_group_ordered(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx);
/* The result columns of these groups, references in out[0..result_count). */
CK_NODISCARD ck_status ck_group_results(const ck_group_plan *p, const ck_groups *g, ck_column **out, ck_op_ctx *ctx);
/* (low + carry * 2^128) / count at `digits` more decimal digits, HALF_UP; false when DECIMAL(38) cannot hold it. */
bool ck_decimal_average(ck_i128 low, int64_t carry, uint64_t count, int digits, ck_i128 *out);
/* Whether a group has rows; over append input each has. */
static inline bool ck_group_is_there(const ck_group_plan *p, const ck_row *row) {
    return row && (!p->row_count || ck_group_is_global(p) || ck_row_i64(row, p->row_count->offset[0]) > 0);
}

/* ---- lanes ---- */

typedef struct ck_lane_buffers {
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint16_t at[CK_BATCH_ROWS_MAX];
    int8_t weights[CK_BATCH_ROWS_MAX];
} ck_lane_buffers;

typedef struct ck_lanes {
    const ck_group_plan *plan;
    ck_mem mem;
    ck_lane *lanes; /* of the batch in hand, made when first asked for */
    bool *made;
    ck_lane_buffers **buffers; /* allocated when first needed */
    ck_table **sets;           /* tables of the DISTINCT sets */
} ck_lanes;
CK_NODISCARD ck_status ck_lanes_open(ck_lanes *l, const ck_group_plan *plan, ck_mem mem, ck_op_ctx *ctx);
void ck_lanes_destroy(ck_lanes *l);
/* A batch begins: rows[k] is the group of its k-th live row. */
CK_NODISCARD ck_status ck_lanes_begin(ck_lanes *l, const ck_batch *b, ck_row **rows, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_lanes_get(ck_lanes *l, uint32_t lane, const ck_batch *b, const ck_lane **out, ck_op_ctx *ctx);

/* ---- groups touched since the last flush, each with its result as last emitted ---- */

typedef struct ck_touched_slot { /* open addressing */
    uint64_t hash;
    uint32_t entry; /* + 1; 0 = free */
} ck_touched_slot;

typedef struct ck_touched_entry {
    uint64_t hash;
    uint32_t segment, row;
} ck_touched_entry;

typedef struct ck_touched_segment { /* the groups first touched by one batch */
    uint32_t n;
    ck_column **columns; /* keys, then results before the batch */
    uint8_t *existed;    /* 0: the group was not emitted before */
} ck_touched_segment;

typedef struct ck_touched {
    ck_mem mem;
    bool nullable_key;     /* some key column may be NULL */
    uint32_t column_count; /* keys and results */
    ck_touched_slot *slots;
    size_t slot_count;         /* a power of two, at most half full */
    ck_touched_entry *entries; /* in order of first touch */
    size_t count, capacity;
    ck_touched_segment *segments;
    size_t segment_count, segment_capacity;
    size_t column_bytes;
} ck_touched;
void ck_touched_init(ck_touched *t, ck_mem mem, bool nullable_key, uint32_t column_count);
void ck_touched_destroy(ck_touched *t);
void ck_touched_clear(ck_touched *t);
/* Enters those of the first n live rows that were not touched before; newly[] gets which of the live rows those are.
 * They become the rows of the next segment, which the caller must add. */
CK_NODISCARD ck_status ck_touched_enter(ck_touched *t, const ck_key_spec *spec, const ck_batch *b,
                                        const uint64_t *hashes, uint32_t n, uint16_t *newly, uint32_t *newly_count);
/* Takes over the columns (column_count of them); copies existed. */
CK_NODISCARD ck_status ck_touched_add_segment(ck_touched *t, ck_column **columns, const uint8_t *existed, uint32_t n);
/* A column of the entries [first, first + n) into a builder; identity[i] = i, for a whole batch. */
CK_NODISCARD ck_status ck_touched_gather(const ck_touched *t, size_t first, uint32_t n, uint32_t column,
                                         const uint16_t *identity, ck_column_builder *to);
static inline bool ck_touched_existed(const ck_touched *t, size_t entry) {
    return t->segments[t->entries[entry].segment].existed[t->entries[entry].row] != 0;
}
/* Whether so much has been gathered that it should be flushed before anybody asks. */
bool ck_touched_is_full(const ck_touched *t);

/* ---- the operator ---- */

typedef struct ck_group {
    ck_mem mem;
    ck_arena arena;
    ck_group_plan plan;
    ck_table *table;
    ck_lanes lanes;
    ck_touched touched;
    bool flushing;
    size_t flushed; /* entries of `touched` that are done */
    bool scanning;
    ck_table_scan scan;
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
    uint16_t newly[CK_BATCH_ROWS_MAX];
    uint16_t identity[CK_BATCH_ROWS_MAX];
} ck_group;

/* Before a batch is counted: rows (and fresh) of op are set for it. Remembers groups not touched before. */
CK_NODISCARD ck_status ck_group_touch(ck_group *op, const ck_batch *b, ck_op_ctx *ctx);
/* The global aggregate has a row even when nothing came: makes it, in the subtask that owns the empty key. */
CK_NODISCARD ck_status ck_group_touch_global(ck_group *op, ck_op_ctx *ctx);
/* Emits what changed in the touched groups: about one batch; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_group_flush(ck_group *op, ck_op_ctx *ctx);
/* Emits every group once: about one batch; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_group_emit_all(ck_group *op, ck_op_ctx *ctx);

#endif
