/* A batch in parts: where some row makes 64 MiB of text out of a few bytes and a batch has thousands, an eval says
 * CK_FULL. Then the operator takes fewer rows at a time, and says CK_MORE in between, so that what is behind takes what
 * was made. Zero is the state between two batches. */
#ifndef CK_OPERATOR_PARTS_INT_H
#define CK_OPERATOR_PARTS_INT_H

#include "stream/operator.h"

typedef struct ck_parts {
    uint32_t done; /* live rows of the batch in hand that have been said */
    uint32_t most; /* rows a time; 0: all that are left */
    uint16_t rows[CK_BATCH_ROWS_MAX];
} ck_parts;

/* A reference to the next part, the batch itself when that is all of it. NULL without memory. */
static inline ck_batch *ck_parts_next(ck_parts *p, ck_batch *b) {
    uint32_t left = b->sel_count - p->done, n = p->most && p->most < left ? p->most : left;
    if (n == b->sel_count) return ck_batch_ref(b);
    for (uint32_t k = 0; k < n; k++) p->rows[k] = (uint16_t)ck_batch_row(b, p->done + k);
    return ck_batch_select(b, p->rows, n);
}

/* After a part of n rows ended with s: true when it is to be tried with fewer. Else *out is the answer for the event.
 */
static inline bool ck_parts_again(ck_parts *p, const ck_batch *b, uint32_t n, ck_status s, ck_status *out,
                                  ck_error *err) {
    if (s == CK_FULL && n > 1) {
        if (err) *err = CK_ERROR_INIT;
        p->most = (n + 1) / 2;
        return true;
    }
    p->done += n;
    bool more = s == CK_OK && p->done < b->sel_count;
    if (!more) p->done = p->most = 0;
    *out = more ? CK_MORE : s;
    return false;
}

#endif
