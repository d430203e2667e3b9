/* The same script under other code: a plugin, or clink itself, was built again, and its operators keep their state
 * otherwise. The graph says nothing of that; the fingerprints in it, and the versions in the checkpoint, do. See
 * evolve.h. */
#include "graph/fingerprint.h"
#include "runtime/evolve.h"

static ck_status described(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *g, const ck_graph_op *op,
                           const ck_slot_schema **slots, uint32_t *count, uint64_t *fingerprint, ck_error *err) {
    CK_TRY(ck_described_slots(cfg, a, g, op, slots, count, err));
    return ck_slots_fingerprint(a, *slots, *count, fingerprint) == CK_OK ? CK_OK : ck_nomem(err, a->mem, 0);
}

ck_status ck_described_as_stored(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *stored,
                                 const ck_graph_op *op, bool *out, ck_error *err) {
    const ck_slot_schema *slots;
    const ck_op_desc *d;
    uint32_t count;
    uint64_t fingerprint;
    *out = true;
    if (ck_registry_op(cfg->registry, op->type, &d, NULL) != CK_OK) return CK_OK; /* nobody can tell */
    CK_TRY(described(cfg, a, stored, op, &slots, &count, &fingerprint, err));
    *out = fingerprint == op->state_fingerprint;
    return CK_OK;
}

static bool version_differs(const ck_version_map *stored, uint64_t id, const ck_slot_schema *slot) {
    uint32_t was = ck_version_map_get(stored, id, slot->state_type, slot->slot);
    return slot->version != (was ? was : CK_STATE_VERSION_DEFAULT);
}

ck_status ck_state_is_kept_otherwise(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *stored, bool *out,
                                     ck_error *err) {
    ck_version_map versions;
    ck_version_map_init(&versions, a);
    CK_TRY(ck_version_map_decode(&versions, ck_view_of(cfg->manifest->state_versions), err));
    *out = false;
    for (uint32_t i = 0; i < cfg->wanted->op_count && !*out; i++) {
        const ck_graph_op *op = &cfg->wanted->ops[i], *was = ck_graph_find(stored, op->uid);
        const ck_slot_schema *slots;
        uint32_t count;
        uint64_t fingerprint;
        CK_TRY(described(cfg, a, cfg->wanted, op, &slots, &count, &fingerprint, err));
        *out = count && was && fingerprint != was->state_fingerprint;
        for (uint32_t k = 0; k < count; k++) *out |= version_differs(&versions, ck_op_id(op->uid), &slots[k]);
    }
    return CK_OK;
}

ck_status ck_pair_by_uid(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, ck_graph_pair **out,
                         uint32_t *count, ck_error *err) {
    *count = 0;
    if (!(*out = ck_arena_array(a, wanted->op_count + 1u, sizeof **out))) return ck_nomem(err, a->mem, 0);
    for (uint32_t i = 0; i < wanted->op_count; i++)
        (*out)[(*count)++] = (ck_graph_pair){
            .stored = ck_graph_find(stored, wanted->ops[i].uid), .wanted = &wanted->ops[i], .same_meaning = true};
    return CK_OK;
}
