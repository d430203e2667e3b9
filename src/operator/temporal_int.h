/* As-of joins from the inside. temporal_join.c is the operator and its left side, temporal_versions.c the right one. */
#ifndef CK_OPERATOR_TEMPORAL_INT_H
#define CK_OPERATOR_TEMPORAL_INT_H

#include "operator/time_side_int.h"

enum { CK_TEMPORAL_LAST_SLOTS = 2 * CK_BATCH_ROWS_MAX };

typedef struct ck_temporal_join {
    ck_mem mem;
    ck_arena arena;
    bool outer; /* a row without a version is said with NULLs */
    bool now;
    bool right_ends, right_changes;
    ck_time_side left, right;
    const ck_schema *output;
    ck_eval *eval; /* of the residual; NULL: none */
    ck_late late;  /* rows of the left */
    ck_event_clock clock;
    int64_t next_seq;
    bool ended[2];
    bool settling;
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_row *waited[CK_BATCH_ROWS_MAX];  /* left rows that are due */
    ck_row *version[CK_BATCH_ROWS_MAX]; /* what each meets; NULL: nothing */
    int64_t us[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    uint16_t lone[CK_BATCH_ROWS_MAX];
    uint16_t late_rows[CK_BATCH_ROWS_MAX];
    uint16_t last[CK_TEMPORAL_LAST_SLOTS]; /* open addressing by partition: live row + 1 */
    ck_bytes is, was;                      /* order keys of two values that are compared */
} ck_temporal_join;

/* A batch of versions, each with its time; of two of one time the greater one, whichever came first. */
CK_NODISCARD ck_status ck_temporal_take_versions(ck_temporal_join *op, const ck_batch *b, ck_op_ctx *ctx);
/* A batch of what is now: rows put and taken back. */
CK_NODISCARD ck_status ck_temporal_take_current(ck_temporal_join *op, const ck_batch *b, ck_op_ctx *ctx);

#endif
