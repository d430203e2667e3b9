/* Splits of sources that make rows from their numbers: split i of n has the rows i, i + n, i + 2n ..., so that any
 * parallelism makes the same rows, about in order. */
#ifndef CK_CONNECTOR_ROW_SPLITS_H
#define CK_CONNECTOR_ROW_SPLITS_H

#include "connector/event_time.h"
#include "stream/source.h"

typedef struct ck_row_split {
    char *id;
    uint64_t first, step, next; /* next: row not yet made */
    uint64_t end;               /* rows up to here are its own; UINT64_MAX: as far as the table goes */
    uint32_t clock;             /* in the source's event time */
} ck_row_split;

typedef struct ck_row_splits {
    ck_mem mem;
    ck_arena *arena;           /* ids */
    ck_event_time *event_time; /* the source's */
    uint64_t rows;             /* of the whole table; UINT64_MAX: for ever */
    ck_row_split *at;
    uint32_t count, capacity, turn;
} ck_row_splits;

/* None where the job continues: those it has are all rows, of whatever parallelism they were. */
CK_NODISCARD ck_status ck_row_splits_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out,
                                               ck_error *err);
/* Those of its rows that were made before (ck_op_desc.rewind). */
CK_NODISCARD ck_status ck_row_splits_rewind(const ck_op_spec *spec, const ck_split *stored, ck_split_list *out,
                                            ck_error *err);
void ck_row_splits_destroy(ck_row_splits *s);
CK_NODISCARD ck_status ck_row_splits_add(ck_row_splits *s, const ck_split *split, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_row_splits_snapshot(const ck_row_splits *s, ck_split_list *out, ck_op_ctx *ctx);
/* Whether some split has rows left. */
bool ck_row_splits_left(const ck_row_splits *s);
/* The next split that has rows left, one after the other; *n (how many are wanted) is cut to what it has. NULL: none.
 */
ck_row_split *ck_row_splits_next(ck_row_splits *s, uint32_t *n);
/* n rows of it are made. */
void ck_row_splits_took(ck_row_splits *s, ck_row_split *split, uint32_t n);

#endif
