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
    case CK_PLAN_SORT:
        return ck_plan_sort(p, inputs[0], n->order.by, n->order.count, n->order.limit, n->order.offset, out);
    case CK_PLAN_TOP_N:
        return ck_plan_top_n(p, inputs[0], &n->top,
                             n->top.rank_column ? n->schema->fields[n->schema->field_count - 1].name : NULL, out);
    case CK_PLAN_JOIN: return ck_plan_join_again(p, n, inputs[0], inputs[1], n->join.on, n->join.on_count, NULL, out);
    case CK_PLAN_SET_OP: return ck_plan_set_op(p, n->set_op.except, n->set_op.all, inputs[0], inputs[1], out);
    case CK_PLAN_UNNEST: {
        uint32_t width = n->inputs[0]->schema->field_count;
        CK_TRY(ck_plan_unnest(p, inputs[0], n->unnest.expr, n->unnest.ordinality, n->unnest.outer,
                              n->schema->fields + width, n->schema->field_count - width, out));
        (*out)->unnest.unused = n->unnest.unused;
        return CK_OK;
    }
    case CK_PLAN_OVER: {
        const char *const *names = ck_plan_names(p, n);
        if (!names) return CK_NOMEM;
        return ck_plan_over_node(p, inputs[0], &n->over, names + n->inputs[0]->schema->field_count, out);
    }
    case CK_PLAN_WINDOW: return ck_plan_window_rows(p, inputs[0], &n->window.of, out);
    case CK_PLAN_WINDOW_AGG: {
        const char *const *names = ck_plan_names(p, n);
        if (!names) return CK_NOMEM;
        return ck_plan_window_agg(p, inputs[0], &n->window.of, n->window.keys, n->window.calls, n->window.call_count,
                                  "", names + n->window.keys.count + CK_WINDOW_FIELDS, out);
    }
    }
    ck_assert_failed(__FILE__, __LINE__, "every kind is rebuilt");
}

ck_status ck_plan_with_inputs(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    ck_plan_node *made;
    CK_TRY(again(p, n, inputs, &made));
    ck_plan_keep_identity(made, n);
    made->final = n->final;
    if (n->final && made->kind == CK_PLAN_TOP_N) ck_plan_top_ends(made, n);
    if (n->final) made->mode = n->mode; /* whatever made it so: EMIT ON CLOSE is the query's, not the plan's */
    *out = made;
    return CK_OK;
}
