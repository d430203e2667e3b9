/* What of a comparison, and of a stored graph, is of one region. See evolve.h. */
#include "graph/regions.h"
#include "runtime/evolve.h"

enum { GRAPH_JSON_BYTES_MAX = 64 << 20 };

/* By operator of the part what was by operator of the whole. */
static ck_status cut_rewound(ck_arena *a, const ck_graph *wanted, const ck_graph *part, ck_evolution *e,
                             ck_error *err) {
    ck_rewound *cut = ck_arena_array(a, part->op_count + 1u, sizeof *cut);
    if (!cut) return ck_nomem(err, a->mem, part->op_count * sizeof *cut);
    for (uint32_t i = 0; i < part->op_count; i++)
        cut[i] = e->rewound[ck_graph_find(wanted, part->ops[i].uid) - wanted->ops];
    e->rewound = cut;
    return CK_OK;
}

ck_status ck_evolve_cut(ck_arena *a, const ck_graph *wanted, const ck_graph *part, ck_evolution *e, ck_error *err) {
    if (part == wanted) return CK_OK;
    ck_evolve_op *ops = ck_arena_array(a, e->count + 1u, sizeof *ops);
    uint32_t n = 0;
    if (!ops) return ck_nomem(err, a->mem, e->count * sizeof *ops);
    for (uint32_t i = 0; i < e->count; i++) {
        ck_evolve_op op = e->ops[i];
        if (op.wanted && !(op.wanted = ck_graph_find(part, op.wanted->uid))) continue;
        ops[n++] = op;
    }
    e->ops = ops, e->count = n;
    return e->rewound ? cut_rewound(a, wanted, part, e, err) : CK_OK;
}

ck_status ck_evolve_cut_manifest(ck_arena *a, ck_manifest *m, ck_error *err) {
    ck_graph *all;
    const ck_graph *part;
    ck_graph_regions regions;
    ck_bytes text;
    if (ck_graph_decode(a, ck_view_of(m->graph), &all, NULL) != CK_OK) return CK_OK; /* ck_evolve says why */
    CK_TRY(ck_graph_regions_of(a, all, &regions, err));
    if (regions.count != m->regions)
        return ck_fail(err, CK_CORRUPT, "checkpoint %llu says it is of %u regions, and its graph has %u",
                       (unsigned long long)m->checkpoint, m->regions, regions.count);
    CK_TRY(ck_graph_region(a, all, &regions, m->region, &part, err));
    ck_bytes_init(&text, a->mem, GRAPH_JSON_BYTES_MAX);
    ck_status s = ck_graph_encode(part, &text);
    const char *json = s == CK_OK ? ck_arena_strndup(a, text.p, text.n) : NULL;
    ck_bytes_destroy(&text);
    if (!json) return ck_nomem(err, a->mem, 0);
    m->graph = json;
    return CK_OK;
}
