/* A node again over other inputs: what every rewrite ends with. */
#include "sql/plan/plan_int.h"

static const char *const *call_names(ck_plan *p, const ck_plan_node *n) {
    const char **names = CK_PLAN_ARRAY(p, n->aggregate.call_count, const char *);
    for (uint32_t i = 0; names && i < n->aggregate.call_count; i++)
        names[i] = n->schema->fields[n->aggregate.keys.count + i].name;
    return names;
}

static ck_status again(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    switch (n->kind) {
    case CK_PLAN_SCAN: return ck_plan_scan(p, n->scan.table, n->scan.columns, n->bounded, out);
    case CK_PLAN_VALUES: return ck_plan_values(p, n->schema, n->values.rows, n->values.row_count, out);
    case CK_PLAN_FILTER: return ck_plan_filter(p, inputs[0], n->filter.conjuncts, n->filter.count, out);
    case CK_PLAN_PROJECT: {
        const char *const *names = ck_plan_names(p, n);
        if (!names) return CK_NOMEM;
        return ck_plan_project(p, inputs[0], n->project.exprs, names, n->schema->field_count, out);
    }
    case CK_PLAN_AGGREGATE: {
        const char *const *names = call_names(p, n);
        if (!names) return CK_NOMEM;
        return ck_plan_aggregate_node(p, inputs[0], n->aggregate.keys, n->aggregate.calls, n->aggregate.call_count, "",
                                      names, out);
    }
    case CK_PLAN_UNION: return ck_plan_union(p, inputs, n->input_count, out);
    case CK_PLAN_LIMIT: return ck_plan_limit(p, inputs[0], n->limit.limit, n->limit.offset, out);
    }
    ck_assert_failed(__FILE__, __LINE__, "every kind is rebuilt");
}

ck_status ck_plan_with_inputs(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    ck_plan_node *made;
    CK_TRY(again(p, n, inputs, &made));
    ck_plan_keep_identity(made, n);
    made->final = n->final, made->mode = n->mode;
    *out = made;
    return CK_OK;
}
