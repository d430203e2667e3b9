/* Top-N from the inside. Two ways to keep rows:
 *
 *   ranked  (top_n_rows.c) rows of a partition in their order, in an ordered slot: row -> count. Over append input only
 *           what can still matter, over retract input everything. top_n_walk.c reads the top of a partition with its
 *           ranks; top_n_touched.c keeps what was emitted of the partitions a flush has to look at; top_n_emit.c says
 *           the difference, or everything once.
 *   first   (top_n_first.c, top_n_first_emit.c) one row a partition over append input, in a hash slot.
 *
 * Partitions may be of windows (top_n_window.c): a column says when theirs is over, and then they go. Over append input
 * that is also when they are said, once.
 *
 * top_n_plan.c decides which, from the parameters; top_n.c is the operator. `sort` with a limit is a ranked top-N too.
 */
#ifndef CK_OPERATOR_TOP_N_INT_H
#define CK_OPERATOR_TOP_N_INT_H

#include "operator/params_int.h"
#include "operator/partition_timers_int.h"
#include "operator/ttl_int.h"
#include "operator/window_int.h"

/* ---- the plan ---- */

typedef enum ck_top_rank { CK_TOP_ROW_NUMBER, CK_TOP_RANK, CK_TOP_DENSE_RANK } ck_top_rank;

typedef struct ck_top_plan {
    ck_arena *arena;
    const ck_schema *input, *output; /* output: the input's columns, and the rank behind them with rank_column */
    ck_key_spec partition;           /* columns of the input */
    ck_key_spec own_partition;       /* the same as the first columns of a batch of keys */
    ck_order_spec *order;            /* what orders rows and tells them apart: order columns, then all others */
    uint32_t order_count;
    uint32_t peer_count; /* so many of them decide the rank */
    uint32_t *field_of;  /* slot field of each input column */
    uint64_t limit, offset;
    uint64_t keep; /* offset + limit, UINT64_MAX: all */
    ck_top_rank rank;
    bool rank_column, retract, final;
    bool first; /* one row a partition, in a hash slot */
    /* of windows */
    bool windowed;       /* the partition names a window */
    bool at_end;         /* windowed over append input: said when the window is over */
    uint32_t window_end; /* column of the partition */
    int64_t lateness_us; /* for so long behind its end a window changes */
    ck_late late;
    ck_slot_schema slot;
    ck_op_ttl ttl;
} ck_top_plan;

/* An order from the parameters, as in "keys" of sort. */
typedef struct ck_top_key {
    uint32_t column;
    bool descending, nulls_first;
} ck_top_key;
CK_NODISCARD ck_status ck_top_read_keys(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root,
                                        const char *member, ck_top_key **out, uint32_t *count, ck_error *err);
/* From the parameters of `top_n`. */
CK_NODISCARD ck_status ck_top_plan_make(ck_top_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err);
/* The first `keep` rows of all, ranked, final: `sort` with a limit. */
CK_NODISCARD ck_status ck_top_plan_whole(ck_top_plan *p, ck_arena *a, const ck_op_spec *spec, const ck_top_key *keys,
                                         uint32_t count, uint64_t limit, uint64_t offset, ck_error *err);
/* Order columns, then all columns that are neither among them nor among `without`, ascending: a total order of rows.
 * Order columns said twice or among `without` are left out. *peers: how many of them are order columns. */
CK_NODISCARD ck_status ck_top_total_order(ck_arena *a, const ck_schema *s, const ck_top_key *keys, uint32_t count,
                                          const uint32_t *without, uint32_t without_count, ck_order_spec **out,
                                          uint32_t *out_count, uint32_t *peers);

/* ---- reading the top of a partition ---- */

typedef struct ck_top_entry {
    ck_row *row;
    uint64_t rank;   /* of its first copy */
    uint64_t copies; /* how many of its copies are in the window */
} ck_top_entry;

typedef struct ck_top_walk {
    const ck_top_plan *plan;
    ck_table *table;
    ck_range range;
    uint64_t before;  /* rows in front of this one */
    uint64_t groups;  /* peers counted */
    uint64_t leading; /* rows in front of this row's peers */
    ck_row *last;
} ck_top_walk;
void ck_top_walk_open(ck_top_walk *w, const ck_top_plan *plan, ck_table *t, ck_partition p);
/* The next row of the window (offset, offset + limit]; false at its end. */
bool ck_top_walk_next(ck_top_walk *w, ck_top_entry *out);
/* Whether two rows of a partition are equal in the order columns. */
bool ck_top_are_peers(const ck_top_plan *plan, const ck_table *t, const ck_row *a, const ck_row *b);

/* ---- partitions touched since the last flush, each with its top as last emitted ---- */

typedef struct ck_top_image { /* one row, as bytes */
    size_t at;                /* of its order key */
    uint32_t bytes;
    uint64_t rank, copies;
} ck_top_image;

typedef struct ck_top_images {
    ck_bytes keys; /* order keys */
    ck_mem mem;
    ck_top_image *at;
    size_t count, capacity;
} ck_top_images;
void ck_top_images_init(ck_top_images *m, ck_mem mem);
void ck_top_images_destroy(ck_top_images *m);
void ck_top_images_clear(ck_top_images *m);
/* The top of a partition (0: none) behind what is there. */
CK_NODISCARD ck_status ck_top_images_add(ck_top_images *m, const ck_top_plan *plan, ck_table *t, ck_partition p);
static inline ck_view ck_top_image_key(const ck_top_images *m, const ck_top_image *i) {
    return (ck_view){m->keys.p + i->at, i->bytes};
}

typedef struct ck_top_touched_entry {
    uint64_t hash;
    size_t key_at; /* its user key in keys */
    uint32_t key_bytes;
    size_t first, count; /* in images */
} ck_top_touched_entry;

typedef struct ck_top_touched {
    ck_mem mem;
    ck_bytes keys; /* user keys */
    ck_top_images images;
    ck_touched_slot *slots; /* open addressing */
    size_t slot_count;      /* a power of two, at most half full */
    ck_top_touched_entry *entries;
    size_t count, capacity;
} ck_top_touched;
void ck_top_touched_init(ck_top_touched *t, ck_mem mem);
void ck_top_touched_destroy(ck_top_touched *t);
void ck_top_touched_clear(ck_top_touched *t);
/* Before the partition p of row `row` changes: keeps its top if it was not touched before. */
CK_NODISCARD ck_status ck_top_touch(ck_top_touched *t, const ck_top_plan *plan, ck_table *table, ck_partition p,
                                    uint64_t hash, const ck_batch *b, uint32_t row);
/* Whether so much has been gathered that it should be flushed before anybody asks. */
bool ck_top_touched_is_full(const ck_top_touched *t);

/* ---- ranked ---- */

typedef struct ck_top_pick { /* a row to emit: -1 as it is in the touched images, +1 as in the fresh ones */
    const ck_top_touched_entry *entry;
    size_t image;
    uint64_t copies; /* still to say */
    int weight;
} ck_top_pick;

typedef struct ck_top_flush { /* a flush under way */
    bool running;
    size_t done; /* touched entries compared */
    ck_partition partitions[256];
    size_t slice, slice_count; /* entries partitions[] are of */
    ck_top_images fresh;       /* tops as they are now, of the picks */
    ck_top_pick *picks;
    size_t pick_count, pick_capacity, picked;
} ck_top_flush;

typedef struct ck_top_windows { /* of partitions that are of windows */
    ck_event_clock clock;
    ck_partition_timers timers; /* by partition: the last instant of its window, and the lateness */
    uint32_t end_at;          /* offset of the window's end in a row */
    bool coming;              /* to `target`, with more than one call */
    int64_t target;
    ck_partition over[CK_BATCH_ROWS_MAX]; /* those that are being said, and go then */
    uint32_t over_count;
} ck_top_windows;

typedef struct ck_top {
    ck_mem mem;
    ck_top_plan plan;
    ck_top_windows windows;
    ck_table *table;
    uint32_t count_at; /* offset of the count in a row */
    ck_top_touched touched;
    ck_top_flush flush;
    ck_bytes key, other; /* order keys, during one call */
    int64_t negative;    /* rows with a count below zero, of those this instance has seen */
    /* emitting everything */
    bool scanning, walking;
    ck_table_scan scan;
    ck_top_walk walk;
    ck_top_entry rest; /* copies of a row not emitted yet */
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
} ck_top;
/* The plan is made already. */
void ck_top_init(ck_top *op, ck_mem mem);
CK_NODISCARD ck_status ck_top_open(ck_top *op, ck_op_ctx *ctx);
void ck_top_destroy(ck_top *op);
CK_NODISCARD ck_status ck_top_batch(ck_top *op, const ck_batch *b, ck_op_ctx *ctx);
/* About one batch a call; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_top_flush_touched(ck_top *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_top_emit_all(ck_top *op, ck_op_ctx *ctx);
/* The same of the partitions whose window is over at windows.target, which go. */
CK_NODISCARD ck_status ck_top_emit_over(ck_top *op, ck_op_ctx *ctx);
void ck_top_flush_destroy(ck_top_flush *f, ck_mem mem);

/* ---- windows ---- */

/* A timer for each partition in the table; the table is open. */
CK_NODISCARD ck_status ck_top_windows_open(ck_top *op, ck_op_ctx *ctx);
/* The rows of b whose window is not closed, *out NULL: none; others are counted, and go where the plan says. */
CK_NODISCARD ck_status ck_top_windows_on_time(ck_top *op, ck_batch *b, ck_batch **out, ck_op_ctx *ctx);
/* Timers for op->partitions, which are those of b's live rows. */
CK_NODISCARD ck_status ck_top_windows_note(ck_top *op, const ck_batch *b, ck_op_ctx *ctx);
/* The next partition that is over; false: none, or too many that have not gone yet. */
bool ck_top_windows_next(ck_top *op, ck_partition *p);
/* What is over goes. */
CK_NODISCARD ck_status ck_top_windows_drop(ck_top *op, ck_op_ctx *ctx);
/* Time comes to a watermark: what is over is said, where it was not before, and goes. CK_MORE: call again. */
CK_NODISCARD ck_status ck_top_windows_come_to(ck_top *op, int64_t watermark, ck_op_ctx *ctx);

/* ---- first ---- */

typedef struct ck_first {
    ck_mem mem;
    const ck_top_plan *plan;
    ck_table *table;
    ck_row_field *fields; /* of a row */
    ck_touched touched;
    bool flushing;
    size_t flushed; /* entries of `touched` that are done */
    bool scanning;
    ck_table_scan scan;
    /* the batch in hand: rows that may win, then those that do */
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
    uint16_t at[CK_BATCH_ROWS_MAX]; /* its physical row in the batch */
    uint16_t slots[2 * CK_BATCH_ROWS_MAX];
    uint16_t newly[CK_BATCH_ROWS_MAX], identity[CK_BATCH_ROWS_MAX];
} ck_first;
CK_NODISCARD ck_status ck_first_new(const ck_top_plan *plan, ck_mem mem, ck_first **out, ck_error *err);
void ck_first_free(ck_first *f); /* NULL is fine */
CK_NODISCARD ck_status ck_first_open(ck_first *f, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_first_batch(ck_first *f, const ck_batch *b, ck_op_ctx *ctx);
/* Before the first n of rows, hashes, fresh and at are written: keeps what was emitted of those not touched before. */
CK_NODISCARD ck_status ck_first_touch(ck_first *f, const ck_batch *b, uint32_t n, ck_op_ctx *ctx);
/* About one batch a call; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_first_flush(ck_first *f, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_first_emit_all(ck_first *f, ck_op_ctx *ctx);
bool ck_first_is_full(const ck_first *f);

#endif
