/* The job of a seed: which pipelines, how much of what. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "graph/graph.h"

typedef struct plan {
    const char *out; /* directory of the sinks: out/a, out/b, out/c */
    uint32_t batch_rows;
    bool with_counts, with_rows, with_limit; /* pipelines a, b, c; one at least */
    bool final;                              /* counts are final */
    uint32_t a_splits, a_rows, a_keys;
    uint32_t b_splits, b_rows;
    uint32_t c_splits, c_limit;
    const char *c_more; /* the source of c goes slowly and finds one more split for each byte of this file; or NULL */
    int64_t interval_us, timeout_us;
    uint32_t tolerable_failed;
    size_t queue_bytes;
} plan;

/*  a: source -(hash k)-> count -> sink out/a
 *  b: source -> pass -(rebalance)-> pass -> sink out/b
 *  c: endless source -(gather)-> limit -> sink out/c   */
ck_status plan_graph(const plan *p, ck_arena *a, ck_graph **out, ck_error *err);

#endif
