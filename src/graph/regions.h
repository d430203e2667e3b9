/* The regions of a graph: its weakly connected components. Operators of different regions share no rows, no barrier and
 * no state, so that each region can be restarted, and its checkpoints be taken, without the others
 * (docs/decisions/0025-regions.md).
 *
 * They are numbered by their first operators in the graph's order, which is the same wherever the graph is read: region
 * 0 has operator 0. Parallelism plays no part. Pure; everything lives in the arena. */
#ifndef CK_GRAPH_REGIONS_H
#define CK_GRAPH_REGIONS_H

#include "graph/graph.h"

typedef struct ck_graph_regions {
    uint32_t count;         /* at least 1 */
    const uint32_t *of_op;  /* by operator of the graph */
    const uint64_t *op_ids; /* ck_op_id of each, likewise */
} ck_graph_regions;
CK_NODISCARD ck_status ck_graph_regions_of(ck_arena *a, const ck_graph *g, ck_graph_regions *out, ck_error *err);

/* The graph of one region: its operators, in the same order, with all that the graph says for them. Of a graph that is
 * one region: that graph itself. Operators are copied shallowly. */
CK_NODISCARD ck_status ck_graph_region(ck_arena *a, const ck_graph *g, const ck_graph_regions *r, uint32_t region,
                                       const ck_graph **out, ck_error *err);

#endif
