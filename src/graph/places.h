/* Where the operators of a graph stand that keep something: who feeds whom, over what keeps nothing (projections,
 * filters, unions). Two operators that do the same are told from each other by it (match.h). */
#ifndef CK_GRAPH_PLACES_H
#define CK_GRAPH_PLACES_H

#include "graph/graph.h"

/* Operators by their number in the graph. */
typedef struct ck_graph_edge {
    uint32_t from, from_port, to;
    uint32_t input; /* of `to` */
    uint64_t path;  /* of what is between; 0 where there are too many ways */
} ck_graph_edge;

typedef struct ck_graph_places {
    const ck_graph *graph;
    const bool *keeps; /* by operator: it has state, reads or writes */
    ck_graph_edge *edges;
    uint32_t count;
} ck_graph_places;

/* In the arena. CK_NOMEM. */
CK_NODISCARD ck_status ck_graph_places_of(ck_arena *a, const ck_graph *g, ck_graph_places *out);

#endif
