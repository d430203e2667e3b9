/* OVER from the inside: results beside each row, from the rows of its key that come before it. One idea a file:
 * over_plan.c (parameters, slots), over_rows.c (rows as they come), over_chunk.c (rows that are due, with their
 * frames), over_totals.c and over_picks.c (what the calls give), over_emit.c (output), over_prune.c (what need not be
 * kept), over.c (the operator).
 *
 * Rows of a key stand in order: those that have been said and that a later frame still needs, then those that have
 * not. What is due - event time the watermark has passed, rows just come where the order is processing time, everything
 * at END otherwise - is worked off in chunks of many keys: first all pointers to rows are gathered, then each call runs
 * over all of them, then output is built, then rows that no frame will see again go. Counts and sums are kept a key
 * beside the rows; what is a value of some row (MIN, FIRST_VALUE, LAG) is a pointer to that row, which is kept. */
#ifndef CK_OPERATOR_OVER_INT_H
#define CK_OPERATOR_OVER_INT_H

#include "operator/partition_timers_int.h"
#include "operator/top_n_int.h"
#include "operator/window_int.h"

/* ---- the plan ---- */

typedef enum ck_over_by {
    CK_OVER_EVENT_TIME,
    CK_OVER_PROCESSING_TIME,
    CK_OVER_END, /* all input first, in any order */
} ck_over_by;

typedef enum ck_over_fn {
    CK_OVER_COUNT,
    CK_OVER_SUM,
    CK_OVER_AVG,
    CK_OVER_ROW_NUMBER,
    CK_OVER_RANK,
    CK_OVER_DENSE_RANK,
    CK_OVER_MIN, /* from here on: a value of some row */
    CK_OVER_MAX,
    CK_OVER_FIRST_VALUE,
    CK_OVER_LAST_VALUE,
    CK_OVER_LAG,
} ck_over_fn;

/* A running count, and sum, of one argument: shared by the calls that need it. Its fields beside the rows of a key:
 * n, then over integers s; over decimals s and carry (times 2^128); over doubles s, its compensation and how many NaN,
 * +Inf and -Inf. */
typedef struct ck_over_total {
    int64_t arg;  /* input column; -1: every row */
    ck_phys phys; /* of what is summed; CK_PHYS_NULL: only counted */
    const ck_type *type;
    const char *text;          /* canonical, of the argument */
    uint32_t arg_at, arg_null; /* in a row: offset and null bit */
    uint32_t first_field;      /* of its fields among the values of the key's row */
    uint32_t field_count;
    uint32_t at[6]; /* offsets in the key's row */
} ck_over_total;

typedef struct ck_over_call {
    ck_over_fn fn;
    const char *text; /* "sum(price)", for messages */
    int64_t arg;
    const ck_type *type; /* of the result */
    uint64_t offset;     /* of LAG */
    uint32_t total;      /* its number; UINT32_MAX: none */
    uint32_t pick;       /* where its rows are in the chunk; UINT32_MAX: none */
} ck_over_call;

typedef struct ck_over_plan {
    ck_arena *arena;
    const ck_schema *input;
    ck_over_by by;
    ck_key_spec keys, own_keys;
    ck_order_spec *order; /* columns of the input, all but the keys: those it is ordered by, then the others */
    uint32_t order_count, peer_count;
    uint32_t *field_of;   /* slot field of each input column */
    ck_window time;       /* time and millis, by event time */
    uint32_t *values;     /* by processing time: columns kept as values */
    uint32_t value_count; /* 0 otherwise */
    bool range;           /* the frame is told by the order column's value; else by rows */
    bool groups;          /* rows with the same place in the order have one frame */
    bool bounded;         /* the frame begins `preceding` before the row */
    uint64_t preceding;
    ck_over_call *calls;
    uint32_t call_count;
    ck_over_total *totals;
    uint32_t total_count;
    uint32_t pick_count;
    uint64_t lag;       /* the longest look back */
    bool uses_frame;    /* some call depends on where the frame begins */
    bool uses_past;     /* some call looks at rows that have been said, one by one */
    bool keeps_numbers; /* something beside the rows is needed as long as the key may come */
    bool has_first;
    uint64_t limit; /* rows whose first call, a rank, is above it are not said; 0: none */
    bool hide;      /* the first call is no column */
    ck_late late;   /* by event time */
    ck_slot_schema rows, keyed;
} ck_over_plan;

/* Value fields of a key's row. */
enum {
    CK_OVER_UNTIL,  /* time of the last row said */
    CK_OVER_HELD,   /* rows said that are still there */
    CK_OVER_LEFT,   /* so many of them, the first, have left the frame */
    CK_OVER_SEEN,   /* rows said */
    CK_OVER_GROUPS, /* different places in the order among them */
    CK_OVER_FIELDS,
};

CK_NODISCARD ck_status ck_over_plan_make(ck_over_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err);

/* ---- the operator ---- */

typedef struct ck_over_run { /* rows [first, first + n) of the chunk, all of one key */
    ck_partition partition;
    ck_row *key;         /* what is kept beside its rows */
    size_t first, n;     /* n 0: nothing is due */
    size_t tail;         /* of the rows that leave, in tails[]: for its rows leave[] counts from here */
    size_t past, past_n; /* rows said before that are still there, in past[]; only when the plan uses them */
    int64_t held, left;
    bool goes_on; /* more of its rows are due */
} ck_over_run;

typedef struct ck_over_rows { /* pointers that grow */
    ck_row **at;
    size_t n, capacity;
} ck_over_rows;

/* Values by row of the chunk, in buffers that grow with it. */
typedef struct ck_over_sum { /* of one total */
    ck_bytes n;              /* int64_t */
    ck_bytes sum;            /* ck_i128, of doubles double */
    ck_bytes in_range;       /* uint8_t, of decimals */
} ck_over_sum;
static inline int64_t *ck_over_i64(const ck_bytes *b) { return (int64_t *)(void *)b->p; }
static inline ck_i128 *ck_over_i128(const ck_bytes *b) { return (ck_i128 *)(void *)b->p; }
static inline double *ck_over_f64(const ck_bytes *b) { return (double *)(void *)b->p; }
static inline uint8_t *ck_over_u8(const ck_bytes *b) { return (uint8_t *)b->p; }
static inline ck_row **ck_over_ptr(const ck_bytes *b) { return (ck_row **)(void *)b->p; }

enum { CK_OVER_RUNS_MAX = 512 };

typedef struct ck_over {
    ck_mem mem;
    ck_arena arena;
    ck_over_plan plan;
    ck_event_clock clock; /* by processing time: the last time given */
    int64_t next_seq;
    ck_table *rows, *keyed;
    uint32_t time_at, seq_at;          /* offsets in a row */
    uint32_t field_at[CK_OVER_FIELDS]; /* offsets in a key's row */
    ck_partition_timers timers;
    /* working off what is due */
    bool firing;
    int64_t target; /* time to come to */
    ck_partition due[CK_OVER_RUNS_MAX];
    uint32_t due_count, due_at;
    bool resumed;    /* the first of them has been said up to `resume` */
    ck_bytes resume; /* an order key */
    /* the chunk */
    ck_over_run runs[CK_OVER_RUNS_MAX];
    uint32_t run_count;
    ck_over_rows chunk, tails, past;
    ck_bytes last;      /* int64_t by row: the last row of its place in the order */
    ck_bytes leave;     /* int64_t by row: rows that have left its frame, counted from the run's tail */
    ck_over_sum *sums;  /* by total */
    ck_bytes *picks;    /* ck_row * by row; by pick */
    ck_bytes *ranks;    /* int64_t by row; by call, empty where it is no rank */
    ck_bytes deque;     /* ck_row * */
    bool chunked;       /* there is a chunk ... */
    size_t said;        /* ... of which so much has been said */
    ck_bytes key, keep; /* order keys, during one call */
    /* a batch in hand */
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    const ck_row *found[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    uint16_t late[CK_BATCH_ROWS_MAX];
} ck_over;

/* over_rows.c: rows into their places. */
CK_NODISCARD ck_status ck_over_take(ck_over *op, const ck_batch *b, ck_op_ctx *ctx);
/* The beginning of the order keys of rows at or behind a time; out has room for 8 bytes. */
ck_view ck_over_time_key(int64_t time, char *out);
/* The time column's value that stands for an instant. */
static inline int64_t ck_over_unit(const ck_over *op, int64_t us) {
    return op->plan.time.millis ? (us >= 0 ? us / 1000 : -((-us + 999) / 1000)) : us;
}
static inline int64_t ck_over_instant(const ck_over *op, int64_t unit) {
    return op->plan.time.millis ? unit * 1000 : unit;
}
static inline int64_t ck_over_get(const ck_over *op, const ck_row *key, int field) {
    return ck_row_i64(key, op->field_at[field]);
}
static inline void ck_over_set(const ck_over *op, ck_row *key, int field, int64_t v) {
    ck_row_set_i64(key, op->field_at[field], v);
}

/* over_chunk.c: gathers what is due, whole places in the order, about a batch of rows. No rows: nothing is due. */
CK_NODISCARD ck_status ck_over_gather(ck_over *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_over_push(ck_over *op, ck_over_rows *to, ck_row *row, ck_op_ctx *ctx);
/* over_totals.c, over_picks.c: the results of the chunk's rows. */
void ck_over_run_totals(ck_over *op);
void ck_over_run_ranks(ck_over *op);
CK_NODISCARD ck_status ck_over_run_picks(ck_over *op, ck_op_ctx *ctx);
/* over_emit.c: a batch of the chunk's rows. */
CK_NODISCARD ck_status ck_over_emit(ck_over *op, ck_op_ctx *ctx);
/* over_prune.c: after the chunk has been said. */
CK_NODISCARD ck_status ck_over_prune(ck_over *op, ck_op_ctx *ctx);

#endif
