/* Pace of a source with a rate limit: so many rows a second for the whole table, shared evenly by its subtasks. Zero is
 * no limit. */
#ifndef CK_CONNECTOR_PACER_H
#define CK_CONNECTOR_PACER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ck_pacer {
    double us_per_row; /* of this subtask; 0: no limit */
    double next_us;    /* monotonic: when the next row may go */
} ck_pacer;

enum { CK_PACER_SLICE_US = 5000 }; /* rows of so much time go together */

static inline ck_pacer ck_pacer_of(double rows_per_second, uint32_t parallelism) {
    return (ck_pacer){rows_per_second > 0 ? 1e6 * parallelism / rows_per_second : 0, 0};
}
/* How many rows to make at once, at most most. */
static inline uint32_t ck_pacer_rows(const ck_pacer *p, uint32_t most) {
    if (p->us_per_row <= 0) return most;
    double n = CK_PACER_SLICE_US / p->us_per_row;
    return n < 1 ? 1 : n < most ? (uint32_t)n : most;
}
/* Whether rows may go now; if not, when. */
static inline bool ck_pacer_ready(const ck_pacer *p, int64_t now_us, int64_t *until_us) {
    if (p->us_per_row <= 0 || (double)now_us >= p->next_us) return true;
    *until_us = (int64_t)p->next_us + 1;
    return false;
}
static inline void ck_pacer_took(ck_pacer *p, int64_t now_us, uint32_t rows) {
    if (p->us_per_row <= 0) return;
    double from = p->next_us;
    if (from < (double)now_us - 2 * CK_PACER_SLICE_US) from = (double)now_us; /* what was missed is not made up for */
    p->next_us = from + rows * p->us_per_row;
}

#endif
