/* What the operators of a graph will open, from their parameters alone. See evolve.h. */
#include "runtime/evolve.h"

ck_status ck_described_slots(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *g, const ck_graph_op *op,
                             const ck_slot_schema **out, uint32_t *count, ck_error *err) {
    const ck_op_desc *d;
    *out = NULL, *count = 0;
    if (ck_registry_op(cfg->registry, op->type, &d, NULL) != CK_OK || !d->slots) return CK_OK;
    ck_op_spec *spec = ck_graph_op_spec(a, g, op);
    if (!spec) return ck_nomem(err, a->mem, sizeof *spec);
    spec->proc = cfg->proc;
    spec->settings = cfg->settings;
    ck_status s = d->slots(spec, a, out, count, err);
    if (s != CK_OK) (void)ck_error_prefix(err, "operator %s: ", op->uid);
    return s;
}

ck_status ck_expected_slots(const ck_evolve_config *cfg, ck_arena *a, const ck_expected_slot **out, uint32_t *count,
                            ck_error *err) {
    const ck_graph *g = cfg->wanted;
    const ck_slot_schema **slots = ck_arena_array(a, g->op_count + 1u, sizeof *slots);
    uint32_t *counts = ck_arena_array(a, g->op_count + 1u, sizeof *counts), n = 0;
    if (!slots || !counts) return ck_nomem(err, a->mem, 0);
    for (uint32_t i = 0; i < g->op_count; i++) {
        CK_TRY(ck_described_slots(cfg, a, g, &g->ops[i], &slots[i], &counts[i], err));
        n += counts[i];
    }
    ck_expected_slot *list = ck_arena_array(a, n + 1u, sizeof *list);
    if (!list) return ck_nomem(err, a->mem, 0);
    *out = list, *count = n;
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < counts[i]; k++)
            *list++ = (ck_expected_slot){ck_op_id(g->ops[i].uid), g->ops[i].uid, &slots[i][k]};
    return CK_OK;
}
