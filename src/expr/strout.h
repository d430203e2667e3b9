/* Writing a column of strings. Up to 12 bytes go inline, longer ones into buffers of the writer, or they point into the
 * heaps of an argument (shared). Owner: a kernel, on its stack, for one call. begin, then a put a row, then finish (or
 * abandon after a failure). */
#ifndef CK_EXPR_STROUT_H
#define CK_EXPR_STROUT_H

#include "expr/eval_int.h"

enum { CK_STRING_BYTES_MAX = CK_RECORD_BYTES_MAX, CK_STROUT_SHARES = 4 };

typedef struct ck_strout {
    ck_eval *ev;
    ck_column *col;
    ck_error *err;
    const ck_heaps *shared[CK_STROUT_SHARES]; /* arguments' heaps, in front of the writer's own */
    uint32_t shared_base[CK_STROUT_SHARES];
    uint32_t shared_count, shared_buffers;
    ck_buffer **own;
    uint32_t own_count, own_capacity;
    uint32_t used; /* of the newest own buffer */
    bool too_much; /* no room, since the batch's texts would pass what an eval makes at once */
} ck_strout;

CK_NODISCARD ck_status ck_strout_begin(ck_strout *w, ck_eval *ev, const ck_rows *rows, ck_error *err);
/* Rows may from now on be given as parts of c's strings. */
void ck_strout_share(ck_strout *w, const ck_column *c);
/* Room for n bytes, to be filled and then taken with as many or fewer. NULL without memory. */
char *ck_strout_room(ck_strout *w, size_t n);
void ck_strout_take(ck_strout *w, uint32_t row, const char *p, size_t n); /* p: what room gave */
CK_NODISCARD ck_status ck_strout_put(ck_strout *w, uint32_t row, ck_view v);
/* Bytes [from, from + n) of row `at` of the column shared as number `share`. */
void ck_strout_part(ck_strout *w, uint32_t row, const ck_column *c, uint32_t share, uint32_t at, size_t from, size_t n);
CK_NODISCARD ck_status ck_strout_null(ck_strout *w, uint32_t row);
CK_NODISCARD ck_status ck_strout_mark(ck_strout *w, uint32_t row, ck_mark mark); /* and an empty string */
/* The column into *out, or the failure. Either way the writer is empty. */
CK_NODISCARD ck_status ck_strout_finish(ck_strout *w, ck_status status, ck_vec *out);

#endif
