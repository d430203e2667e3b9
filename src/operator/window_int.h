/* Windows over time from the inside - event time, or the clock as rows come. One idea a file: window_plan.c
 * (parameters), window_rows.c (which rows of a batch belong to which window), window_slices.c (which
 * buckets are slices), window_fire.c (what a window says when it
 * is over), window_said.c (as batches), window_late.c (what it says afterwards), window_merge.c, window_halves.c,
 * window_sets.c, window_lists.c and window_rolled.c (slices put together), window_agg.c (the operator), window_assign.c
 * (windows as columns).
 *
 * The state is a bucket a window - its groups by key - named by the window's end: what is due is a prefix of the
 * buckets, and a window that is over is dropped whole. Where groups can be merged, windows that overlap share slices: a
 * row is counted once, into the bucket of its slice. A hop is put together of slices when it fires; a cumulating window
 * hands what it has on to the next step when it has fired. Where windows have buckets beside their slices - what was
 * said and may still change, what an earlier build counted - a slice is named by its last microsecond. */
#ifndef CK_OPERATOR_WINDOW_INT_H
#define CK_OPERATOR_WINDOW_INT_H

#include "operator/event_clock_int.h"
#include "operator/group_int.h"
#include "operator/late_int.h"

enum { CK_WINDOWS_OF_ROW_MAX = 10000 }; /* size / slide: how often a row may have to be counted */
enum { CK_WINDOW_COLUMNS = 3 };         /* window_start, window_end, window_time */

/* Of the slot "window": 1 has windows or slices, both named by their ends, so that the job's graph has to tell which;
 * 2 both. */
enum { CK_WINDOW_APART_VERSION = 2 };

typedef enum ck_window_kind { CK_WINDOW_TUMBLE, CK_WINDOW_HOP, CK_WINDOW_CUMULATE, CK_WINDOW_ATTACHED } ck_window_kind;

typedef struct ck_window {
    ck_window_kind kind;
    uint32_t time;       /* column; not of attached ones */
    bool millis;         /* it is BIGINT */
    bool ends;           /* it is the end of a window */
    bool processing;     /* rows are of the time at which they come */
    int64_t now_us;      /* processing: of the batch in hand */
    uint32_t start, end; /* columns of attached ones */
    int64_t size_us, slide_us, offset_us;
    int64_t unit_us;     /* what divides both: all times between two multiples are in the same windows */
    int64_t slice_us;    /* 0: each window counts for itself; else the unit */
    int64_t apart_us;    /* 1: windows have buckets beside those of slices, which are named by their last microsecond */
    const ck_type *type; /* of window columns */
} ck_window;

/* Member "window" of root. */
CK_NODISCARD ck_status ck_window_read(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, bool attached,
                                      ck_window *out, ck_error *err);
/* The output of an aggregation of windows: keys, start, end and time of the window, results. */
CK_NODISCARD ck_status ck_window_check_output(const ck_group_plan *p, const ck_type *window, const ck_op_spec *spec,
                                              ck_error *err);
/* A window's length at most: so that ends never overflow. */
#define CK_WINDOW_SIZE_MAX (CK_EVENT_TIME_MAX)
#define CK_WINDOW_END_MAX  (2 * CK_EVENT_TIME_MAX + 1)

static inline int64_t ck_window_floor(int64_t us, int64_t unit, int64_t offset) {
    int64_t r = (us - offset) % unit;
    return us - r - (r < 0 ? unit : 0);
}
/* Ends of the windows a time is in: first, first + slide, ... last; none: first > last. */
typedef struct ck_window_ends {
    int64_t first, last;
} ck_window_ends;
static inline ck_window_ends ck_window_ends_of(const ck_window *w, int64_t us) {
    if (w->kind == CK_WINDOW_CUMULATE) {
        int64_t last = ck_window_floor(us, w->size_us, w->offset_us) + w->size_us;
        int64_t behind = (last - us - 1) / w->slide_us * w->slide_us;
        return (ck_window_ends){last - behind, last};
    }
    int64_t last = ck_window_floor(us, w->slide_us, w->offset_us) + w->size_us;
    int64_t behind = last > us ? (last - us - 1) / w->slide_us * w->slide_us : -w->slide_us;
    return (ck_window_ends){last - behind, last};
}
/* Whether a bucket is a slice, where windows have buckets beside them. */
static inline bool ck_window_is_slice(const ck_window *w, int64_t bucket) {
    return w->apart_us && bucket <= CK_WINDOW_END_MAX &&
           ck_window_floor(bucket + 1, w->slice_us, w->offset_us) == bucket + 1;
}
static inline int64_t ck_window_start_of(const ck_window *w, int64_t end) {
    return w->kind == CK_WINDOW_CUMULATE ? ck_window_floor(end - 1, w->size_us, w->offset_us) : end - w->size_us;
}
/* How many windows a row may be in. */
static inline int64_t ck_window_passes(const ck_window *w) {
    bool overlap = w->slice_us == 0 && (w->kind == CK_WINDOW_HOP || w->kind == CK_WINDOW_CUMULATE);
    return overlap ? (w->size_us + w->slide_us - 1) / w->slide_us : 1;
}
/* The first window that ends at or after an instant. */
static inline int64_t ck_window_end_from(const ck_window *w, int64_t us) {
    int64_t end = ck_window_floor(us - w->size_us, w->slide_us, w->offset_us) + w->size_us;
    return end < us ? end + w->slide_us : end;
}
/* By processing time: when the next window ends for all subtasks alike, whether they have rows in it or not. */
static inline int64_t ck_window_next_tick(const ck_window *w, int64_t watermark) {
    if (watermark == CK_WATERMARK_MIN) return CK_EVENT_TIME_MIN; /* at once */
    int64_t end = ck_window_end_from(w, watermark + 2), least = watermark + 1 + CK_TICK_LEAST_US;
    return end > least ? end : least;
}
/* The last whole millisecond in front of an end: a session of microseconds ends between two, and a watermark that has
 * not closed it is not past this one. */
static inline int64_t ck_window_time_of(int64_t end) { return ck_window_floor(end - 1, 1000, 0); }

/* The column of a batch that has its rows' times; processing: none. */
static inline const ck_column *ck_window_times(const ck_window *w, const ck_batch *b) {
    return w->processing ? NULL : b->columns[w->time];
}

/* The time of a row; false: it has none. */
static inline bool ck_window_row_time(const ck_window *w, const ck_column *c, uint32_t row, int64_t *us) {
    if (w->processing) {
        *us = w->now_us;
        return true;
    }
    if (ck_column_is_null(c, row)) return false;
    *us = w->millis ? ck_event_time_of_ms(c->i64[row]) : c->i64[row];
    return ck_event_time_usable(*us) || (w->ends && *us > CK_EVENT_TIME_MAX && *us <= CK_WINDOW_END_MAX);
}

/* ---- rows of a batch by window ---- */

typedef struct ck_window_run { /* rows [first, first + n) of ck_window_rows.rows are in the window that ends here */
    int64_t end;
    uint32_t first, n;
} ck_window_run;

typedef struct ck_window_rows {
    uint32_t run_count;
    ck_window_run runs[CK_BATCH_ROWS_MAX];
    uint16_t rows[CK_BATCH_ROWS_MAX];      /* physical rows, by run, in order */
    uint16_t run_of[CK_BATCH_ROWS_MAX];    /* of the k-th live row; UINT16_MAX: none */
    uint16_t slots[2 * CK_BATCH_ROWS_MAX]; /* open addressing: run + 1 */
    uint16_t late[CK_BATCH_ROWS_MAX];
    uint32_t late_count, bad_count;
    bool again; /* slices: some row is in more windows that have been said */
} ck_window_rows;

/* How far windows are, by their ends: at or below. */
typedef struct ck_window_passed {
    int64_t closed, said; /* no row is counted any more; rows change what was said */
} ck_window_passed;

/* The pass-th window of each row (0: the first); with slices pass 0 is the slice, if a window of it has not been said,
 * and the others are windows that have been said. With pass 0 rows without a time are counted as bad, rows all of whose
 * windows are closed listed as late. ends[row] (physical) gets the bucket; NULL: it is a column of b. */
void ck_window_rows_find(ck_window_rows *r, const ck_window *w, const ck_batch *b, int64_t pass,
                         ck_window_passed passed, int64_t *ends);

/* ---- the operator ---- */

/* window_halves.c: what the windows of a hop have in common, in buckets that no snapshot has. */
enum { CK_WINDOW_FRONTS_MAX = 1100 };
enum { CK_WINDOW_KEPT_ROWS = 65536 };
typedef struct ck_window_halves {
    int64_t boundary;   /* INT64_MIN: nothing is kept */
    int64_t back_to;    /* the slices from the boundary up to it are in the back */
    uint64_t groups;    /* in the last window */
    uint64_t kept_rows; /* where fronts have no more rows than about this, all are kept */
    uint32_t base;      /* fronts are kept at powers of it; 0: only the next */
    uint32_t count;
    int64_t starts[CK_WINDOW_FRONTS_MAX]; /* of the fronts that are kept, the next one last */
    bool making, copied, filled;          /* where a piece of work has stopped: in starts[count] ... */
    int64_t step, next;                   /* ... in the slices from `next` of this step */
} ck_window_halves;

/* window_slices.c: buckets that are slices, in order, where others stand between them. */
typedef struct ck_window_slices {
    int64_t *names;
    uint32_t first, count, capacity; /* names[first .. first + count) */
    int64_t windows_to;              /* the last window that had a bucket when the state was opened */
} ck_window_slices;

/* window_rolled.c: the DISTINCT aggregates of a hop whose windows are made of halves, for themselves: sets of slices
 * roll, in tables that no snapshot has rows of. */
typedef struct ck_window_rolled {
    bool on;
    ck_group_plan plan; /* those aggregates, as over input that changes */
    ck_table *table, **sets;
    int64_t to; /* the sets of slices up to it are in there, but for those that have gone; INT64_MIN: none are */
    bool moving, folding; /* sets of slices are going in, or into a window that has a bucket */
    int64_t slice;        /* the one being read */
} ck_window_rolled;

/* window_lists.c: the values of a set that slices have, while no snapshot is near. */
typedef struct ck_window_list { /* of one slice */
    int64_t slice;
    uint32_t *refs;               /* rows of the set in the scratch bucket */
    uint32_t n, capacity, stored; /* stored: the first of them are in the slice's set, too */
    uint32_t id;
    bool merged; /* into the window */
} ck_window_list;
typedef struct ck_window_lists {
    ck_window_list *at; /* by slice: at[first .. first + count) */
    uint32_t first, count, capacity, last_id;
    bool tight; /* some count is near its end */
} ck_window_lists;

/* window_said.c: groups that have been said and are not yet in a batch. */
typedef struct ck_window_said {
    bool on; /* all a group is stands in its row, but for its keys' texts */
    uint32_t n, room, entry_bytes;
    uint8_t *entries; /* each the end of its window, then the row */
} ck_window_said;

typedef struct ck_window_agg {
    ck_mem mem;
    ck_arena arena;
    ck_window window;
    ck_group_plan plan;
    uint32_t ends_column;    /* of a batch that is counted: the window's end */
    ck_key_spec bucket_keys; /* what finds a group in its bucket: keys, and the start of attached ones */
    int64_t lateness_us;
    ck_late late;
    ck_event_clock clock;
    ck_event_clock_each behind; /* by the clock: key groups that have said more than others */
    ck_table *table;
    ck_table **sets; /* of the DISTINCT sets: each a bucket a window */
    ck_lanes lanes;
    ck_window_rows *rows;
    int64_t pass; /* of a batch whose windows are not all counted */
    /* firing */
    bool firing;
    int64_t target; /* watermark to come to */
    bool open;      /* the window that ends at `end` is being said */
    int64_t end;
    int64_t made;         /* the bucket it was put together in, a slice, or its own */
    int64_t from;         /* the bucket it is said from: that one or its own */
    bool folding;         /* from one into the other */
    int64_t forgotten_to; /* windows below it that were closed are gone */
    ck_window_slices slices;
    ck_window_rolled rolled;
    /* a hop whose groups can be unmerged: what the last window and the next have in common stays in the scratch bucket
     */
    bool rolling;
    bool halved; /* ... and one whose groups cannot */
    ck_window_halves halves;
    int64_t rolled_to; /* slices up to it, those that have not gone, are in there; INT64_MIN: it is not there */
    bool moving;       /* slices are being put together, or handed on */
    int64_t slice;     /* the one being read */
    ck_table_scan scan;
    uint32_t set; /* of DISTINCT, where its slices go over before its groups */
    ck_table_scan set_scan;
    ck_batch_builder out;
    ck_window_said said;
    bool listing;           /* it rolls, and slices have lists of values and not sets */
    ck_window_lists *lists; /* of each set */
    uint64_t lists_most;    /* in so many a value may be before all are forgotten */
    uint32_t lists_again;   /* how often values may be in one again */
    /* scratch */
    ck_row *found[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint8_t fresh[CK_BATCH_ROWS_MAX];
    uint16_t identity[CK_BATCH_ROWS_MAX];
} ck_window_agg;

/* Points accumulators and sets to the tables of one bucket; create: sets that are missing are made. */
CK_NODISCARD ck_status ck_window_enter(ck_window_agg *op, int64_t end, ck_table *bucket, bool create, ck_op_ctx *ctx);
/* Appends some groups of the entered bucket, which is named `beside`, to op->out as groups of the window that ends at
 * `end`; those without rows are left out. */
CK_NODISCARD ck_status ck_window_put_groups(ck_window_agg *op, int64_t end, int64_t beside, ck_table *bucket,
                                            ck_row **rows, uint32_t n, ck_op_ctx *ctx);
/* window_said.c: the same, in the batch that waits; while there is nothing beside the groups. */
void ck_window_said_open(ck_window_agg *op);
void ck_window_said_close(ck_window_agg *op);
bool ck_window_said_takes(const ck_window_agg *op);
CK_NODISCARD ck_status ck_window_said_add(ck_window_agg *op, int64_t end, const ck_table *bucket, ck_row *const *rows,
                                          uint32_t n, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_said_emit(ck_window_agg *op, ck_op_ctx *ctx);
/* The end of the first window that has not been said. */
bool ck_window_next_end(const ck_window_agg *op, int64_t *end);
/* Emits op->out or what waits, whichever has rows. */
CK_NODISCARD ck_status ck_window_emit(ck_window_agg *op, ck_op_ctx *ctx);
/* Says and drops what is due at op->target: about one batch; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_window_fire(ck_window_agg *op, ck_op_ctx *ctx);

/* window_merge.c: the slices of the window that ends at op->end into one bucket, which becomes op->made; and what a
 * step has into the next. CK_MORE: call again. */
enum { CK_WINDOW_MERGED_ROWS = 16384 }; /* in one call */
enum { CK_WINDOW_ROLLS_FROM = 8 };      /* slices in a window */
/* Buckets behind all slices, which no snapshot has: where a hop is put together; what is behind a boundary; fronts. */
#define CK_WINDOW_SCRATCH (INT64_MAX - CK_WINDOW_FRONTS_MAX - 2)
#define CK_WINDOW_BACK    (CK_WINDOW_SCRATCH + 1)
#define CK_WINDOW_FRONTS  (CK_WINDOW_SCRATCH + 2)
/* window_slices.c. The first slice in [from, to], by its bucket. */
bool ck_window_next_slice(const ck_window_agg *op, int64_t from, int64_t to, int64_t *slice);
/* A window that had a bucket when the state was opened, and has not been said since: the first one. */
bool ck_window_next_counted(const ck_window_agg *op, int64_t from, int64_t *end);
CK_NODISCARD ck_status ck_window_slices_open(ck_window_agg *op, ck_op_ctx *ctx);
void ck_window_slices_close(ck_window_agg *op);
/* A bucket has been made, or dropped. */
/* A row of count things of size bytes from place *first on, with a place behind them: row itself, moved to its front, or
 * one of twice the capacity. NULL: no memory, and nothing has changed. */
CK_NODISCARD void *ck_window_row_room(void *row, size_t size, uint32_t *first, uint32_t count, uint32_t *capacity,
                                      ck_mem mem);
CK_NODISCARD ck_status ck_window_slices_add(ck_window_agg *op, int64_t bucket, ck_op_ctx *ctx);
void ck_window_slices_drop(ck_window_agg *op, int64_t bucket);
/* What is left of a bucket by op->scan into (sign -1: out of) another, which is made; CK_MORE after many rows. */
CK_NODISCARD ck_status ck_window_merge_bucket(ck_window_agg *op, int sign, int64_t slice, int64_t to_end,
                                              uint32_t *merged, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_gather_slices(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_hand_on(ck_window_agg *op, ck_op_ctx *ctx);
/* Takes the slices that no later window has out of the scratch bucket, and drops them. CK_MORE: call again. */
CK_NODISCARD ck_status ck_window_roll_off(ck_window_agg *op, ck_op_ctx *ctx);
/* The scratch bucket is not what it should be any more, or must not be there. */
CK_NODISCARD ck_status ck_window_unroll(ck_window_agg *op, ck_op_ctx *ctx);
/* window_sets.c: what is left of the sets of a slice, from op->set and op->set_scan on, which the caller resets when
 * the slice is over. */
CK_NODISCARD ck_status ck_window_merge_sets(ck_window_agg *op, int sign, int64_t slice, int64_t to_end,
                                            uint32_t *merged, ck_op_ctx *ctx);
/* What sets go into: one of a plan's, in its tables. */
typedef struct ck_window_sets {
    const ck_group_plan *plan;
    ck_table *table, **sets;
    uint32_t set, from; /* its number, and that of the slices' one */
    int32_t member;     /* the filter of that which a value must have passed; -1: any */
} ck_window_sets;
CK_NODISCARD ck_status ck_window_merge_set(ck_window_agg *op, const ck_window_sets *to, int sign, int64_t slice,
                                           int64_t to_end, uint32_t *merged, ck_op_ctx *ctx);
/* Values of a set that have become new in a bucket, or (sign -1) have gone, into its groups. rows: of `from`, keys and
 * values as in any set of it. Writes to op->found. */
CK_NODISCARD ck_status ck_window_count_values(ck_window_agg *op, const ck_window_sets *sets, const ck_table *from,
                                              ck_row *const *rows, uint32_t n, int sign, int64_t to_end,
                                              ck_op_ctx *ctx);
/* window_lists.c, where op->listing. Rows of one slice into its lists; a list into the window or out of it, which ends
 * it (CK_MORE: call again, from op->set_scan on); none is in it any more; all into the sets of their slices. */
CK_NODISCARD ck_status ck_window_lists_open(ck_window_agg *op, ck_op_ctx *ctx);
void ck_window_lists_close(ck_window_agg *op);
CK_NODISCARD ck_status ck_window_lists_add(ck_window_agg *op, int64_t slice, const ck_batch *b, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_lists_merge(ck_window_agg *op, uint32_t number, int sign, int64_t slice,
                                             uint32_t *merged, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_lists_leave(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_lists_forget(ck_window_agg *op, ck_op_ctx *ctx);
/* Whether they should be forgotten before the next batch. */
bool ck_window_lists_are_tight(const ck_window_agg *op);
/* window_rolled.c */
CK_NODISCARD ck_status ck_window_rolled_plan(ck_window_agg *op, ck_arena *a, const ck_op_spec *spec,
                                             struct yyjson_val *root, const ck_order_field *within,
                                             const uint32_t *columns, uint32_t n, ck_error *err);
CK_NODISCARD ck_status ck_window_rolled_open(ck_window_agg *op, ck_op_ctx *ctx);
/* The sets of the window that ends at op->end; of slices that no later window has, which go. CK_MORE: call again. */
CK_NODISCARD ck_status ck_window_rolled_gather(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_rolled_end(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_rolled_forget(ck_window_agg *op, ck_op_ctx *ctx);
/* Takes the place of results whose values go through a set. */
CK_NODISCARD ck_status ck_window_rolled_results(ck_window_agg *op, int64_t end, ck_table *bucket, ck_row **rows,
                                                uint32_t n, ck_column **results, ck_op_ctx *ctx);
/* window_fire.c: a bucket of a plan's tables goes. */
CK_NODISCARD ck_status ck_window_drop_of(ck_window_agg *op, const ck_group_plan *p, ck_table *table, ck_table **sets,
                                         int64_t end, ck_op_ctx *ctx);
/* window_halves.c: the same for windows in halves; when the window has been said; before rows come for a slice that may
 * have been merged; before a snapshot. */
CK_NODISCARD ck_status ck_window_gather_halves(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_end_halves(ck_window_agg *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_slice_changes(ck_window_agg *op, int64_t slice, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_forget_halves(ck_window_agg *op, ck_op_ctx *ctx);
/* window_fire.c */
CK_NODISCARD ck_status ck_window_field_of(const ck_table *t, ck_row *const *rows, uint32_t n, uint32_t field,
                                          const ck_type *type, ck_column **out, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_keys_of(const ck_window_agg *op, int64_t end, const ck_table *bucket,
                                         ck_row *const *rows, uint32_t n, ck_batch **out, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_window_drop(ck_window_agg *op, int64_t end, ck_op_ctx *ctx);

/* window_late.c: counts rows into a window that has fired, and emits how its groups change. */
CK_NODISCARD ck_status ck_window_count_late(ck_window_agg *op, int64_t end, ck_table *bucket, const ck_batch *b,
                                            ck_op_ctx *ctx);
/* window_agg.c: rows of b, found in op->found, into their groups. */
CK_NODISCARD ck_status ck_window_count(ck_window_agg *op, const ck_batch *b, ck_op_ctx *ctx);

#endif
