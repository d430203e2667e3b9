/* Sessions from the inside: rows of a key belong together while less than a gap lies between them. session_rows.c puts
 * the rows of a batch into sessions, session_sets.c keeps the values of DISTINCT aggregates, session_late.c changes
 * what has been said, session_agg.c is the operator.
 *
 * The state is a row a session, in the order of their starts within a key. Sessions of a key neither overlap nor touch,
 * so they are in the order of their ends too, and the first one is due first. With allowed lateness a session stays
 * for so long behind its end, as one that has been said. */
#ifndef CK_OPERATOR_SESSION_INT_H
#define CK_OPERATOR_SESSION_INT_H

#include "operator/partition_timers_int.h"
#include "operator/window_int.h"

/* ---- the operator ---- */

typedef struct ck_session_row { /* a row of the batch in hand */
    ck_partition partition;
    int64_t us;
    uint16_t row; /* physical */
} ck_session_row;

typedef struct ck_session_agg {
    ck_mem mem;
    ck_arena arena;
    ck_window window; /* time, millis, type; the gap is its size */
    ck_group_plan plan;
    ck_late late;
    int64_t lateness_us;
    ck_event_clock clock;
    ck_table *table;
    ck_lanes lanes;
    ck_partition_timers timers;
    uint32_t start_at, end_at; /* offsets in a session's row */
    uint32_t said_at;          /* with allowed lateness */
    bool firing;
    int64_t target;
    ck_batch_builder out;
    ck_batch *was; /* what the piece in hand takes back */
    ck_session_row rows[CK_BATCH_ROWS_MAX], unsorted[CK_BATCH_ROWS_MAX];
    uint16_t slots[2 * CK_BATCH_ROWS_MAX]; /* open addressing: number of a partition's first row + 1 */
    uint16_t first_of[CK_BATCH_ROWS_MAX];  /* number of the first row of the same partition */
    uint32_t place[CK_BATCH_ROWS_MAX + 1]; /* by first row: where its partition's next row goes */
    uint16_t late_rows[CK_BATCH_ROWS_MAX]; /* of the batch in hand */
    uint32_t late_count;
    ck_row *found[CK_BATCH_ROWS_MAX];
    bool says[CK_BATCH_ROWS_MAX], goes[CK_BATCH_ROWS_MAX];
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    uint16_t identity[CK_BATCH_ROWS_MAX];
} ck_session_agg;

/* Counts a batch into sessions. */
CK_NODISCARD ck_status ck_session_count(ck_session_agg *op, const ck_batch *b, ck_op_ctx *ctx);
static inline bool ck_session_said(const ck_session_agg *op, const ck_row *row) {
    return op->lateness_us && ck_row_bool(row, op->said_at);
}
/* The next time that something happens to a session: its end, or the end of its lateness. */
static inline int64_t ck_session_due(const ck_session_agg *op, const ck_row *row) {
    return ck_row_i64(row, op->end_at) + (ck_session_said(op, row) ? op->lateness_us : 0);
}
/* Keys and starts of some sessions, as own_side_keys names them. */
CK_NODISCARD ck_status ck_instant_keys(const ck_session_agg *op, const ck_row *const *rows, uint32_t n, ck_batch **out,
                                       ck_op_ctx *ctx);
/* What stands beside sessions that go, those of one key one after the other. */
CK_NODISCARD ck_status ck_session_erase_beside(ck_session_agg *op, const ck_batch *keys, uint32_t n, ck_op_ctx *ctx);
/* Appends what some sessions say to op->out, which has room for them. keys: of them. */
CK_NODISCARD ck_status ck_session_put(ck_session_agg *op, ck_row *const *rows, const ck_batch *keys, uint32_t n,
                                      ck_op_ctx *ctx);

/* session_sets.c: the values of the session that `keys` (one row) names go to the one that starts at `to`, whose row is
 * dst: those it has not are counted there. */
CK_NODISCARD ck_status ck_session_sets_move(ck_session_agg *op, const ck_batch *keys, int64_t to, ck_row *dst,
                                            ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_session_sets_erase(ck_session_agg *op, const ck_batch *keys, uint32_t n, ck_op_ctx *ctx);

/* session_late.c. Of the sessions of p that start so, those that have said something take it back: op->was. */
CK_NODISCARD ck_status ck_session_take_back(ck_session_agg *op, ck_partition p, const int64_t *starts, uint32_t n,
                                            ck_op_ctx *ctx);
/* The session they have become says what it is, when it is over; op->was goes. */
CK_NODISCARD ck_status ck_session_say_anew(ck_session_agg *op, ck_partition p, int64_t start, ck_op_ctx *ctx);
/* Emits op->out when it has rows. */
CK_NODISCARD ck_status ck_session_emit(ck_session_agg *op, ck_op_ctx *ctx);

#endif
