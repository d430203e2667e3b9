/* Joins from the inside: the plan made from the parameters, the sides and their tables, the run of a batch against the
 * other side, and what it emits. join_plan.c, join_side.c, join_run.c, join_emit.c, join_windows.c; join.c is the
 * operator.
 *
 * Two ways of working, chosen by the plan:
 *
 *   both   Every row of either side is kept and meets those of the other that came before. A padded row, and what semi
 *          and anti pass, is taken back or given when its number of partners leaves or reaches zero.
 *   build  One side (the build side) ends before anything is said. Rows of the other, the probe side, that come earlier
 *          wait in their table ("parked"); when the build side has ended they are run and erased, and those that come
 *          from then on are run and not kept. */
#ifndef CK_OPERATOR_JOIN_INT_H
#define CK_OPERATOR_JOIN_INT_H

#include "expr/program.h"
#include "operator/params_int.h"
#include "operator/ttl_int.h"
#include "state/state.h"

typedef enum ck_join_type {
    CK_JOIN_INNER,
    CK_JOIN_LEFT,
    CK_JOIN_RIGHT,
    CK_JOIN_FULL,
    CK_JOIN_SEMI,
    CK_JOIN_ANTI
} ck_join_type;
enum { CK_JOIN_BOTH = 2 }; /* in place of a build side */

/* ---- the plan: read-only after create ---- */

typedef struct ck_join_side {
    const ck_schema *schema;
    uint32_t width; /* columns */
    bool retract, bounded;
    bool preserved; /* its rows are padded when they have no partner */
    bool matches;   /* its rows carry the number of their partners */
    bool counted;   /* only keys are kept, with how many rows have them */
    ck_key_spec keys;
    ck_key_spec
        row_key; /* retract: keys, then all other columns; the zero column (behind the last) where there are none */
    ck_slot_schema slot;
    uint32_t *field_of; /* column -> field of the table */
    uint32_t count_field, matches_field;
    bool nested;         /* some column is a list or a row */
    uint32_t window_end; /* field of the table */
} ck_join_side;

typedef struct ck_join_plan {
    ck_arena *arena;
    ck_join_type type;
    ck_join_side sides[2];
    bool *null_safe;
    ck_expr **residual;
    uint32_t residual_count;
    uint8_t *residual_uses[2]; /* by column: the residual reads it */
    const char *const *names;  /* of left, then right columns */
    bool single, final;
    bool build_left; /* of two sides that end the left is read first: somebody needs the time of the right */
    uint32_t build;  /* side, or CK_JOIN_BOTH */
    const ck_schema *output;
    ck_op_ttl ttl;
    bool windowed;       /* rows go with their windows ... */
    int64_t lateness_us; /* ... which may change for so long after their end */
} ck_join_plan;

static inline bool ck_join_left_only(ck_join_type t) { return t == CK_JOIN_SEMI || t == CK_JOIN_ANTI; }
CK_NODISCARD ck_status ck_join_plan_make(ck_join_plan *p, ck_arena *arena, const ck_op_spec *spec, ck_error *err);

/* ---- a side's table ---- */

typedef struct ck_join_table {
    const ck_join_side *side;
    ck_table *table;
    uint32_t count_at, matches_at; /* offsets in its rows */
    bool ended;
} ck_join_table;

static inline int64_t ck_join_count(const ck_join_table *t, const ck_row *row) {
    return t->side->retract ? ck_row_i64(row, t->count_at) : 1;
}

/* ---- the run ---- */

enum { CK_JOIN_NO_ROW = UINT16_MAX };

typedef enum ck_join_run_kind {
    CK_JOIN_RUN_NONE,
    CK_JOIN_RUN_ROWS, /* rows of a batch against the other side's lists */
    CK_JOIN_RUN_KEYS, /* keys of the counted side that appeared (weight +1) or vanished (-1), against lists of the left
                       */
} ck_join_run_kind;

/* times: how often and with which sign. */
typedef struct ck_join_due {
    uint16_t key; /* k-th row of the batch; CK_JOIN_NO_ROW: NULLs */
    ck_row *row;  /* of the other side; NULL: NULLs */
    int64_t times;
} ck_join_due;

typedef struct ck_join_run {
    ck_join_run_kind kind;
    uint32_t side; /* of the batch */
    bool keeps;    /* its rows go into the table when they have met all their partners */
    ck_batch *batch;
    uint32_t n; /* live rows */
    uint32_t matchable_count;
    uint16_t matchable[CK_BATCH_ROWS_MAX]; /* those of the live rows without a NULL that keeps them from matching */
    uint16_t row[CK_BATCH_ROWS_MAX];       /* physical */
    int64_t weight[CK_BATCH_ROWS_MAX];
    int64_t partners[CK_BATCH_ROWS_MAX]; /* rows of the other side, met so far or counted */
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_list heads[CK_BATCH_ROWS_MAX]; /* of the other side */
    ck_list_walk walk;
    bool walked;
    uint32_t pair_count, pair_at;
    uint16_t pair_key[CK_BATCH_ROWS_MAX];
    ck_row *pair_row[CK_BATCH_ROWS_MAX];
    uint32_t finished; /* rows before it have met all their partners */
    ck_join_due due[3];
    uint32_t due_count, due_at;
} ck_join_run;

/* Rows to be emitted. */
typedef struct ck_join_entries {
    uint32_t n;
    bool minus;    /* some weigh -1 */
    bool no_key;   /* some have none */
    bool repeated; /* keys do not rise */
    uint16_t key[CK_BATCH_ROWS_MAX];
    ck_row *row[CK_BATCH_ROWS_MAX];
    int8_t weight[CK_BATCH_ROWS_MAX];
} ck_join_entries;

/* Rows of windows that are over go. */
typedef struct ck_join_sweep {
    bool on;
    int64_t to; /* watermark */
    uint32_t side;
    ck_table_scan scan;
    uint64_t left; /* rows that the last one has left */
} ck_join_sweep;

typedef struct ck_join {
    ck_mem mem;
    ck_arena arena;
    ck_join_plan plan;
    ck_join_table tables[2];
    ck_eval *eval; /* the residual; NULL: none */
    ck_join_run run;
    ck_join_entries entries;
    enum { CK_JOIN_END_NEW, CK_JOIN_END_PARKED, CK_JOIN_END_UNMATCHED } end_step;
    ck_table_scan scan;
    ck_join_sweep sweep;
    bool past_parked;  /* the build side has ended, and those that waited for that have been run */
    int64_t watermark; /* the last that came, said from then on; has_watermark */
    bool has_watermark, idle;
    ck_column *zeros; /* for rows that are all key; made when first needed */
    uint16_t at[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    ck_row *rows[CK_BATCH_ROWS_MAX];
    ck_list heads[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
    int64_t counts[CK_BATCH_ROWS_MAX];
} ck_join;

/* ---- join_side.c ---- */
CK_NODISCARD ck_status ck_join_table_open(ck_join *j, uint32_t side, ck_op_ctx *ctx);
/* Of a side whose rows may have been forgotten: *b without what takes back a row that is not there (counted). */
CK_NODISCARD ck_status ck_join_drop_unmatched(ck_join *j, uint32_t side, ck_batch **b, ck_op_ctx *ctx);
/* Rows live[0..n) of the run into the table of the run's side. */
CK_NODISCARD ck_status ck_join_store(ck_join *j, const uint16_t *live, uint32_t n, ck_op_ctx *ctx);
/* The counted side takes the run's matchable rows; the run becomes that of the keys that appeared or vanished. */
CK_NODISCARD ck_status ck_join_count_keys(ck_join *j, ck_op_ctx *ctx);
/* A key of the run's matchable rows with more than one row in the table of the run's side is a data error. */
CK_NODISCARD ck_status ck_join_check_single(ck_join *j, ck_op_ctx *ctx);
/* Takes the next rows out of a side's table, those without partners if `unmatched`: a batch of the side's columns with
 * j->counts beside it, NULL when there are none in this piece. *end: no more pieces. */
CK_NODISCARD ck_status ck_join_take_out(ck_join *j, uint32_t side, bool unmatched, ck_batch **out, bool *end,
                                        ck_op_ctx *ctx);

/* ---- join_run.c ---- */
/* A batch of a side begins. counts: by live row, in place of the batch's weights; NULL: those. */
CK_NODISCARD ck_status ck_join_run_begin(ck_join *j, uint32_t side, ck_batch *b, const int64_t *counts, ck_op_ctx *ctx);
/* Finds the other side's rows; without it the run's rows have none. */
CK_NODISCARD ck_status ck_join_look_up(ck_join *j, ck_op_ctx *ctx);
/* Fills the entries with what comes next, about one batch of it. *done: that was all. */
CK_NODISCARD ck_status ck_join_run_step(ck_join *j, bool *done, ck_op_ctx *ctx);
/* What was emitted need not be kept: over append input a key that is there stays, and rows of the left of semi and anti
 * that have passed, or never will, are erased. */
CK_NODISCARD ck_status ck_join_drop_settled(ck_join *j, ck_op_ctx *ctx);
void ck_join_run_end(ck_join *j);
/* Rows live[0..n) of the run as a selection of its batch, and the hashes of their keys in run.hashes. */
CK_NODISCARD ck_status ck_join_select(ck_join *j, const uint16_t *live, uint32_t n, ck_batch **out, ck_op_ctx *ctx);

/* ---- join_windows.c ---- */
struct yyjson_val;
CK_NODISCARD ck_status ck_join_windows_read(ck_join_plan *p, const ck_op_spec *spec, struct yyjson_val *root,
                                            ck_error *err);
/* CK_MORE: call again. */
CK_NODISCARD ck_status ck_join_windows_come_to(ck_join *j, int64_t watermark, ck_op_ctx *ctx);

/* ---- join_emit.c ---- */
/* Emits the entries. */
CK_NODISCARD ck_status ck_join_emit(ck_join *j, ck_op_ctx *ctx);
/* Of the pairs in hand those stay for which the residual is true. */
CK_NODISCARD ck_status ck_join_check_pairs(ck_join *j, ck_op_ctx *ctx);

#endif
