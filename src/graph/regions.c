/* See regions.h. */
#include "graph/regions.h"

static uint32_t index_of(const ck_graph *g, const char *uid) {
    const ck_graph_op *op = ck_graph_find(g, uid);
    CK_ASSERT(op); /* ck_graph_check has seen it */
    return (uint32_t)(op - g->ops);
}

/* The least operator of what is joined to this one so far. */
static uint32_t root_of(uint32_t *parent, uint32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) {
    a = root_of(parent, a), b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

ck_status ck_graph_regions_of(ck_arena *a, const ck_graph *g, ck_graph_regions *out, ck_error *err) {
    uint32_t n = g->op_count;
    uint32_t *parent = ck_arena_array(a, n + 1u, sizeof *parent), *of_op = ck_arena_array(a, n + 1u, sizeof *of_op);
    uint64_t *ids = ck_arena_array(a, n + 1u, sizeof *ids);
    if (!parent || !of_op || !ids) return ck_nomem(err, a->mem, (n + 1u) * sizeof *ids);
    for (uint32_t i = 0; i < n; i++) parent[i] = i, ids[i] = ck_op_id(g->ops[i].uid);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < g->ops[i].input_count; k++) join(parent, i, index_of(g, g->ops[i].inputs[k].uid));
    *out = (ck_graph_regions){.count = 0, .of_op = of_op, .op_ids = ids};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = root_of(parent, i); /* never behind i */
        of_op[i] = root == i ? out->count++ : of_op[root];
    }
    if (out->count == 0) out->count = 1;
    return CK_OK;
}

ck_status ck_graph_region(ck_arena *a, const ck_graph *g, const ck_graph_regions *r, uint32_t region,
                          const ck_graph **out, ck_error *err) {
    ck_graph_builder b;
    ck_graph *part;
    CK_ASSERT(region < r->count);
    *out = g;
    if (r->count == 1) return CK_OK;
    if (ck_graph_builder_init(&b, a, g->name) != CK_OK) return ck_nomem(err, a->mem, sizeof *g);
    b.graph->key_groups = g->key_groups;
    b.graph->timezone = g->timezone;
    b.graph->settings = g->settings;
    for (uint32_t i = 0; i < g->op_count; i++)
        if (r->of_op[i] == region && ck_graph_add(&b, &g->ops[i], NULL) != CK_OK)
            return ck_nomem(err, a->mem, sizeof g->ops[i]);
    CK_TRY(ck_graph_check(&b, &part, err));
    *out = part;
    return CK_OK;
}
