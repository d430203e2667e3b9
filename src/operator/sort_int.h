/* Sorting everything, from the inside: the other half of `sort`, whose first is in top_n.c. */
#ifndef CK_OPERATOR_SORT_INT_H
#define CK_OPERATOR_SORT_INT_H

#include "operator/top_n_int.h"

enum { CK_SORT_RANKED_MAX = 4096 }; /* rows a LIMIT asks for: up to here they are ranked as they come */

typedef struct ck_sort_row {
    uint64_t prefix; /* first bytes of the key, as a number */
    size_t at;       /* of the key */
    uint32_t bytes;
    const ck_row *row;
} ck_sort_row;

typedef struct ck_sort {
    ck_mem mem;
    ck_top_plan *plan; /* with a slot of its own */
    ck_table *table;
    ck_partition partition; /* of all rows; 0: none came */
    int64_t next;           /* number of the next row */
    bool sorted;
    ck_bytes keys;
    ck_sort_row *rows;
    uint64_t count, emitted;
} ck_sort;
/* The plan is of ck_top_plan_whole; its slot is replaced. */
CK_NODISCARD ck_status ck_sort_init(ck_sort *op, ck_top_plan *plan, ck_mem mem, ck_error *err);
void ck_sort_destroy(ck_sort *op); /* safe on zero */
CK_NODISCARD ck_status ck_sort_open(ck_sort *op, ck_op_ctx *ctx);
CK_NODISCARD ck_status ck_sort_batch(ck_sort *op, const ck_batch *b, ck_op_ctx *ctx);
/* About one batch a call; CK_MORE until all is said. */
CK_NODISCARD ck_status ck_sort_emit_all(ck_sort *op, ck_op_ctx *ctx);

#endif
