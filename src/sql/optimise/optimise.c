/* See optimise.h. */
#include "sql/optimise/optimise_int.h"

static void visit(ck_plan_node *n, bool *seen, ck_plan_node **by_id, uint32_t *uses) {
    uses[n->id]++;
    if (seen[n->id]) return;
    seen[n->id] = true;
    by_id[n->id] = n;
    for (uint32_t i = 0; i < n->input_count; i++) visit(n->inputs[i], seen, by_id, uses);
}

/* Ids grow from inputs to users, so that order by id is the order wanted. */
ck_status ck_reach_of(ck_plan *p, const ck_output *outputs, uint32_t count, ck_reach *out) {
    uint32_t n = p->node_count;
    bool *seen = CK_PLAN_ARRAY(p, n, bool);
    *out = (ck_reach){CK_PLAN_ARRAY(p, n, ck_plan_node *), 0, CK_PLAN_ARRAY(p, n, uint32_t)};
    if (!seen || !out->nodes || !out->uses) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) visit(outputs[i].node, seen, out->nodes, out->uses);
    for (uint32_t i = 0; i < n; i++)
        if (seen[i]) out->nodes[out->count++] = out->nodes[i];
    return CK_OK;
}

ck_status ck_rewrite_plan(ck_plan *p, ck_output *outputs, uint32_t count, ck_rewrite_fn fn, void *arg) {
    ck_reach r;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    ck_plan_node **made = CK_PLAN_ARRAY(p, p->node_count, ck_plan_node *);
    if (!made) return CK_NOMEM;
    for (uint32_t i = 0; i < r.count; i++) {
        const ck_plan_node *n = r.nodes[i];
        ck_plan_node **inputs = CK_PLAN_ARRAY(p, n->input_count, ck_plan_node *);
        if (!inputs) return CK_NOMEM;
        for (uint32_t k = 0; k < n->input_count; k++) inputs[k] = made[n->inputs[k]->id];
        CK_TRY(fn(p, arg, n, inputs, &made[n->id]));
    }
    for (uint32_t i = 0; i < count; i++) outputs[i].node = made[outputs[i].node->id];
    return CK_OK;
}

ck_status ck_optimise_rows(ck_plan *p, ck_output *outputs, uint32_t count) {
    CK_TRY(ck_simplify(p, outputs, count));
    CK_TRY(ck_pushdown(p, outputs, count));
    CK_TRY(ck_prepare_joins(p, outputs, count));
    return ck_merge_projects(p, outputs, count);
}

ck_status ck_optimise_columns(ck_plan *p, ck_output *outputs, uint32_t count) {
    CK_TRY(ck_prune(p, outputs, count));
    CK_TRY(ck_share_scans(p, outputs, count));
    CK_TRY(ck_pushdown(p, outputs, count)); /* past the projections that sharing brought */
    CK_TRY(ck_merge_projects(p, outputs, count));
    return ck_simplify(p, outputs, count);
}
