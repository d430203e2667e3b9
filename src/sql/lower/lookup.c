/* Joins with what is found outside: an operator behind the left side, which has the table's parameters. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

/* The table's columns the right side gives, through projections that only choose and name. */
static ck_status columns_of(ck_lower_state *s, const ck_plan_node *n, ck_columns *out, const ck_plan_node **scan) {
    if (n->kind == CK_PLAN_SCAN) {
        *scan = n;
        *out = n->scan.columns;
        return CK_OK;
    }
    if (n->kind != CK_PLAN_PROJECT) return ck_fail(s->err, CK_INVALID, "a table that is looked up in is a scan");
    ck_columns below;
    CK_TRY(columns_of(s, n->inputs[0], &below, scan));
    uint32_t width = n->schema->field_count, *at = CK_LOWER_ARRAY(s, width, uint32_t);
    if (!at) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        if (n->project.exprs[i]->kind != CK_EXPR_COLUMN)
            return ck_fail(s->err, CK_INVALID, "a table that is looked up in has no computed columns");
        at[i] = below.at[n->project.exprs[i]->column];
    }
    *out = (ck_columns){at, width};
    return CK_OK;
}

ck_status ck_lower_lookup(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    uint32_t keys = n->join.as_of.key_count, left = n->inputs[0]->schema->field_count;
    uint32_t *left_at = CK_LOWER_ARRAY(s, keys, uint32_t), *right_at = CK_LOWER_ARRAY(s, keys, uint32_t);
    const ck_plan_node *scan = NULL;
    ck_columns columns;
    ck_lowered from;
    ck_lower_params p;
    ck_join_pair pair;
    const char *params;
    if (!left_at || !right_at) return CK_NOMEM;
    CK_TRY(columns_of(s, n->inputs[1], &columns, &scan));
    for (uint32_t i = 0; i < keys; i++) {
        bool both = ck_join_equality(n->join.on[i], left, &pair) && pair.left->kind == CK_EXPR_COLUMN &&
                    pair.right->kind == CK_EXPR_COLUMN;
        CK_ASSERT(both); /* the optimiser made them columns, the binder one type */
        left_at[i] = pair.left->column;
        right_at[i] = pair.right->column - left;
    }
    CK_TRY(ck_lower_node(s, n->inputs[0], &from));
    CK_TRY(ck_lower_params_begin(s, &p));
    if (!yyjson_mut_obj_add_str(p.doc, p.root, "kind", ck_join_kind_name(n->join.kind))) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, &p, "left_keys", (ck_columns){left_at, keys}));
    CK_TRY(ck_lower_params_columns(s, &p, "right_keys", (ck_columns){right_at, keys}));
    CK_TRY(ck_lower_params_exprs(s, &p, "residual", n->join.on + keys, n->join.on_count - keys));
    ck_lower_params source = {p.doc, yyjson_mut_obj_add_obj(p.doc, p.root, "source")};
    if (!source.root) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_source(s, &source, &scan->scan.table->table, columns));
    CK_TRY(ck_lower_params_end(s, &p, &params));
    const char *on = ck_lower_join_label(s, n);
    const char *label = on ? ck_arena_printf(s->arena, "%s %s", scan->scan.table->name, on) : NULL;
    if (!label) return ck_lower_nomem(s);
    CK_TRY(ck_lower_chained(s, n, scan->scan.table->table.connector->lookup_type, params, label, n->inputs[0], &from,
                            &out->op));
    out->hashed = from.hashed, out->hash = from.hash;
    return CK_OK;
}
