/* Filter and projection: chained behind their input. */
#include "sql/lower/lower_int.h"

ck_status ck_lower_filter(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    const char *params;
    ck_lower_params p;
    CK_TRY(ck_lower_node(s, input, out));
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_exprs(s, &p, "conjuncts", n->filter.conjuncts, n->filter.count));
    CK_TRY(ck_lower_params_end(s, &p, &params));
    const char *label = ck_label_exprs(s, "", " AND ", input, n->filter.conjuncts, n->filter.count, NULL);
    return ck_lower_chained(s, n, "filter", params, label, input, out, &out->op);
}

/* Where the rows stay hashed by columns that are passed on. */
static ck_status keep_hash(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    if (!out->hashed) return CK_OK;
    uint32_t *moved = CK_LOWER_ARRAY(s, out->hash.count, uint32_t);
    if (!moved) return CK_NOMEM;
    for (uint32_t k = 0; k < out->hash.count; k++) {
        uint32_t i = 0;
        for (; i < n->schema->field_count; i++)
            if (n->project.exprs[i]->kind == CK_EXPR_COLUMN && n->project.exprs[i]->column == out->hash.at[k]) break;
        if (i == n->schema->field_count) {
            out->hashed = false;
            return CK_OK;
        }
        moved[k] = i;
    }
    out->hash.at = moved;
    return CK_OK;
}

ck_status ck_lower_project(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    const char *params;
    ck_lower_params p;
    CK_TRY(ck_lower_node(s, input, out));
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_exprs(s, &p, "exprs", n->project.exprs, n->schema->field_count));
    CK_TRY(ck_lower_params_end(s, &p, &params));
    const char *label = ck_label_exprs(s, "", ", ", input, n->project.exprs, n->schema->field_count, n->schema);
    CK_TRY(ck_lower_chained(s, n, "project", params, label, input, out, &out->op));
    return keep_hash(s, n, out);
}
