/* The job graph: operators with uid, type, parameters, inputs, key, parallelism, schema and fingerprints. SQL compiles
 * to it, the C API builds it, the runtime runs it, the manifest stores it, a restore compares it. As JSON it is a
 * public format (docs/formats.md, "Job graph"). Immutable after ck_graph_check; everything lives in the arena. */
#ifndef CK_GRAPH_GRAPH_H
#define CK_GRAPH_GRAPH_H

#include "stream/descriptor.h"

enum {
    CK_GRAPH_OPS_MAX = 4096,
    CK_GRAPH_INPUTS_MAX = 1024, /* of one operator */
};
/* min_parallelism, max_parallelism: absent, the engine's default applies. */
#define CK_PARALLELISM_DEFAULT UINT32_MAX

typedef enum ck_edge_kind {
    CK_EDGE_FORWARD,   /* subtask i to subtask i; same parallelism */
    CK_EDGE_HASH,      /* by key group of the key columns */
    CK_EDGE_REBALANCE, /* round robin by batch; append edges only */
    CK_EDGE_BROADCAST, /* everything to everyone */
    CK_EDGE_GATHER,    /* to the one subtask there is */
} ck_edge_kind;

typedef struct ck_graph_input {
    const char *uid; /* of the producer */
    uint32_t port;   /* of the producer, 0 = main */
    ck_edge_kind kind;
    const uint32_t *key; /* HASH: columns of the producer's schema */
    uint32_t key_count;  /* HASH with 0: everything to the owner of the empty key */
    ck_edge_mode mode;
    bool bounded;
} ck_graph_input;

typedef struct ck_graph_op {
    const char *uid;
    const char *type;   /* name in the registry: "source.file", "filter", "group_agg", "sink.print" ... */
    const char *params; /* JSON object, the operator's own */
    const char *label;  /* for people: "GROUP BY usr"; EXPLAIN and progress show it */
    ck_graph_input *inputs;
    uint32_t input_count;
    const ck_schema *schema; /* of the main output; sinks: of what they take */
    const uint32_t *key;     /* output columns that are a key of the output; NULL = none */
    uint32_t key_count;
    /* parallelism 0: the job's (1 behind a GATHER edge); bounds 0/0: not scalable */
    uint32_t parallelism, min_parallelism, max_parallelism;
    bool final;                    /* emits once, at END (decisions 3); over unbounded input: EMIT ON CLOSE */
    uint64_t state_fingerprint;    /* of the slots' schemas: ck_slots_fingerprint; 0 = no state */
    uint64_t semantic_fingerprint; /* of everything that changes results: expressions, modes, final, settings */
    const uint64_t *branches;      /* what it would be over each branch of a UNION ALL alone; none: count 0 */
    uint32_t branch_count;
} ck_graph_op;

typedef struct ck_graph {
    const char *name;
    ck_graph_op *ops; /* topological: inputs before users */
    uint32_t op_count;
    uint32_t key_groups;
    const char *timezone;
    const char *settings; /* JSON object of SET values that shape results */
    uint64_t hash;        /* ck_graph_hash; check fills it */
} ck_graph;

/* Builds in an arena: add ops in any order, then check sorts (stably) and validates: unknown or repeated uids, cycles,
 * key columns out of range, parameters that are no JSON object, modes and parallelisms that do not fit. It fills what
 * was left 0 or NULL: params "{}", timezone "UTC", key_groups, the semantic fingerprint. Errors are CK_INVALID and name
 * the operator. What ck_graph_add returned may be changed until check; afterwards it is dead. */
typedef struct ck_graph_builder {
    ck_arena *arena;
    ck_graph *graph; /* name, key_groups, timezone, settings: set them before check */
    ck_graph_op **ops;
    uint32_t count, capacity;
} ck_graph_builder;
CK_NODISCARD ck_status ck_graph_builder_init(ck_graph_builder *b, ck_arena *arena, const char *name);
/* Copies shallowly. CK_FULL past CK_GRAPH_OPS_MAX. */
CK_NODISCARD ck_status ck_graph_add(ck_graph_builder *b, const ck_graph_op *op, ck_graph_op **out);
CK_NODISCARD ck_status ck_graph_check(ck_graph_builder *b, ck_graph **out, ck_error *err);

const ck_graph_op *ck_graph_find(const ck_graph *g, const char *uid); /* NULL when absent */
/* What an instance of op is made from, as far as the graph says it; how many there are, where and for which job is the
 * caller's to add. Borrows from g. NULL without memory. */
ck_op_spec *ck_graph_op_spec(ck_arena *a, const ck_graph *g, const ck_graph_op *op);
const char *ck_edge_kind_name(ck_edge_kind k); /* as in JSON: "hash", "append" */
const char *ck_edge_mode_name(ck_edge_mode m);

/* JSON both ways; decode validates as check does and names the offending member; members it does not know are ignored.
 * encode may fail with CK_NOMEM, or CK_FULL past the ceiling of `out`. */
CK_NODISCARD ck_status ck_graph_encode(const ck_graph *g, ck_bytes *out);
CK_NODISCARD ck_status ck_graph_decode(ck_arena *a, ck_view json, ck_graph **out, ck_error *err);
/* FNV-1a 64 of the canonical JSON: without the name, labels and fingerprints, and without parallelism, so that the same
 * job at another -p is the same job. */
static inline uint64_t ck_graph_hash(const ck_graph *g) { return g->hash; }

/* Vertices: an operator with one input runs in its producer's subtask when the edge is FORWARD between equal
 * parallelism, or of any kind between 1 and 1. So a vertex is a tree of operators, and only its head has inputs from
 * outside. Named by the head's uid. */
typedef struct ck_vertex {
    const ck_graph_op **ops; /* chain order, head first, producers before consumers */
    uint32_t op_count;
    uint32_t parallelism;
    uint64_t id; /* ck_op_id of the head's uid */
} ck_vertex;
typedef struct ck_vertex_plan {
    ck_vertex *vertices; /* topological */
    uint32_t count;
    uint32_t *vertex_of_op; /* by op index in the graph */
} ck_vertex_plan;
/* CK_INVALID: a FORWARD edge between different parallelisms, one above the key groups, GATHER into more than one. */
CK_NODISCARD ck_status ck_graph_fuse(ck_arena *a, const ck_graph *g, uint32_t default_parallelism, ck_vertex_plan *out,
                                     ck_error *err);

#endif
