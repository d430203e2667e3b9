/* Pace of a source with a rate limit: so many rows a second for the whole table, shared evenly by those of its subtasks
 * that have rows to give - not by those without splits, or whose splits have ended. Zero is no limit. */
#ifndef CK_CONNECTOR_PACER_H
#define CK_CONNECTOR_PACER_H

#include "stream/descriptor.h"

typedef struct ck_pacer {
    double us_per_row;      /* of all subtasks of this process together; 0: no limit */
    uint32_t subtasks;      /* of this process */
    ck_source_peers *peers; /* NULL (a test): all of them have rows */
    bool shares;            /* this one is counted there */
    double next_us;         /* monotonic: when the next row may go */
} ck_pacer;

enum { CK_PACER_SLICE_US = 5000 }; /* rows of so much time go together */

static inline ck_pacer ck_pacer_of(double rows_per_second, const ck_op_spec *spec) {
    if (rows_per_second <= 0) return (ck_pacer){0};
    uint32_t here = spec->peers ? spec->peers->subtasks : spec->parallelism;
    return (ck_pacer){1e6 / rows_per_second * spec->parallelism / here, here, spec->peers, false, 0};
}
/* Says whether this subtask has rows to give. Before the pacer goes: false. */
static inline void ck_pacer_share(ck_pacer *p, bool shares) {
    if (!p->peers || p->shares == shares) return;
    p->shares = shares;
    if (shares) {
        atomic_fetch_add_explicit(&p->peers->giving, 1, memory_order_relaxed);
    } else {
        atomic_fetch_sub_explicit(&p->peers->giving, 1, memory_order_relaxed);
    }
}
static inline double ck_pacer_us_per_row(const ck_pacer *p) {
    uint32_t giving = p->peers ? atomic_load_explicit(&p->peers->giving, memory_order_relaxed) : p->subtasks;
    return p->us_per_row * (giving ? giving : 1);
}
/* How many rows to make at once, at most most. */
static inline uint32_t ck_pacer_rows(const ck_pacer *p, uint32_t most) {
    if (p->us_per_row <= 0) return most;
    double n = CK_PACER_SLICE_US / ck_pacer_us_per_row(p);
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
    p->next_us = from + rows * ck_pacer_us_per_row(p);
}

#endif
