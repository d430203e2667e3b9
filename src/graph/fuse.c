/* From operators to vertices: see ck_graph_fuse in graph.h. */
#include "graph/graph.h"

static uint32_t parallelism_of(const ck_graph_op *op, uint32_t deflt) {
    return op->parallelism ? op->parallelism : deflt;
}

static ck_status check_parallelism(const ck_graph *g, const ck_graph_op *op, uint32_t deflt, ck_error *err) {
    uint32_t p = parallelism_of(op, deflt);
    if (p == 0 || p > CK_PARALLELISM_MAX || p > g->key_groups)
        return ck_fail(err, CK_INVALID, "operator %s: parallelism %u is not between 1 and the %u key groups", op->uid,
                       p, g->key_groups);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_op *from = ck_graph_find(g, op->inputs[i].uid);
        uint32_t q = parallelism_of(from, deflt);
        if (op->inputs[i].kind == CK_EDGE_FORWARD && p != q)
            return ck_fail(err, CK_INVALID, "operator %s has parallelism %u and cannot be forwarded to %s with %u",
                           from->uid, q, op->uid, p);
    }
    return CK_OK;
}

/* The producer whose subtask this operator joins, or NULL: it heads a vertex. */
static const ck_graph_op *joins(const ck_graph *g, const ck_graph_op *op, uint32_t deflt) {
    if (op->input_count != 1) return NULL;
    const ck_graph_op *from = ck_graph_find(g, op->inputs[0].uid);
    bool single = parallelism_of(op, deflt) == 1 && parallelism_of(from, deflt) == 1;
    return op->inputs[0].kind == CK_EDGE_FORWARD || single ? from : NULL;
}

ck_status ck_graph_fuse(ck_arena *a, const ck_graph *g, uint32_t default_parallelism, ck_vertex_plan *out,
                        ck_error *err) {
    *out = (ck_vertex_plan){.vertices = ck_arena_array(a, g->op_count, sizeof *out->vertices),
                            .vertex_of_op = ck_arena_array(a, g->op_count, sizeof *out->vertex_of_op)};
    if (!out->vertices || !out->vertex_of_op) return ck_nomem(err, a->mem, g->op_count * sizeof *out->vertices);
    for (uint32_t i = 0; i < g->op_count; i++) {
        const ck_graph_op *op = &g->ops[i];
        CK_TRY(check_parallelism(g, op, default_parallelism, err));
        const ck_graph_op *from = joins(g, op, default_parallelism);
        uint32_t v = from ? out->vertex_of_op[from - g->ops] : out->count++;
        out->vertex_of_op[i] = v;
        out->vertices[v].op_count++;
        if (from) continue;
        out->vertices[v].parallelism = parallelism_of(op, default_parallelism);
        out->vertices[v].id = ck_op_id(op->uid);
    }
    for (uint32_t i = 0; i < g->op_count; i++) {
        ck_vertex *v = &out->vertices[out->vertex_of_op[i]];
        if (!v->ops) {
            v->ops = ck_arena_array(a, v->op_count, sizeof *v->ops);
            if (!v->ops) return ck_nomem(err, a->mem, v->op_count * sizeof *v->ops);
            v->op_count = 0; /* counted again while filling */
        }
        v->ops[v->op_count++] = &g->ops[i];
    }
    return CK_OK;
}
