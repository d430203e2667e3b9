/* UNION ALL and LIMIT. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

/* Rows of a subtask go on in the same one; where one side runs once and the other does not, appended rows are dealt out
 * and changing ones go by their whole row, so that a row's changes stay in order. */
static ck_status union_input(ck_lower_state *s, const ck_plan_node *n, const ck_lowered *from, bool single,
                             ck_planned_input *in) {
    *in = (ck_planned_input){.op = from->op, .kind = CK_EDGE_FORWARD, .mode = n->mode, .bounded = n->bounded};
    if (s->ops[from->op].single == single) return CK_OK;
    if (n->mode == CK_MODE_APPEND) {
        in->kind = CK_EDGE_REBALANCE;
        return CK_OK;
    }
    uint32_t *all = CK_LOWER_ARRAY(s, n->schema->field_count, uint32_t);
    if (!all) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++) all[i] = i;
    in->kind = CK_EDGE_HASH;
    in->key = (ck_columns){all, n->schema->field_count};
    return CK_OK;
}

ck_status ck_lower_union(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    ck_lowered *from = CK_LOWER_ARRAY(s, n->input_count, ck_lowered);
    ck_planned_input *inputs = CK_LOWER_ARRAY(s, n->input_count, ck_planned_input);
    bool single = true;
    if (!from || !inputs) return CK_NOMEM;
    for (uint32_t i = 0; i < n->input_count; i++) {
        CK_TRY(ck_lower_node(s, n->inputs[i], &from[i]));
        if (!s->ops[from[i].op].single) single = false;
    }
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(union_input(s, n->inputs[i], &from[i], single, &inputs[i]));
    ck_lowered first = from[0];
    CK_TRY(ck_lower_chained(s, n, "union", "{}", ck_arena_printf(s->arena, "%u inputs", n->input_count), n->inputs[0],
                            &first, &out->op));
    ck_planned_op *op = &s->ops[out->op];
    op->inputs = inputs, op->input_count = n->input_count, op->single = single;
    return CK_OK;
}

static const char *limit_label(ck_lower_state *s, const ck_plan_node *n) {
    const char *limit =
        n->limit.limit == UINT64_MAX ? "" : ck_arena_printf(s->arena, "LIMIT %llu", (unsigned long long)n->limit.limit);
    if (!limit || !n->limit.offset) return limit;
    return ck_arena_printf(s->arena, "%s%sOFFSET %llu", limit, *limit ? " " : "", (unsigned long long)n->limit.offset);
}

ck_status ck_lower_limit(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    ck_lower_params p;
    CK_TRY(ck_lower_node(s, input, out));
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    if (!in) return CK_NOMEM;
    *in = (ck_planned_input){.op = out->op,
                             .kind = s->ops[out->op].single ? CK_EDGE_FORWARD : CK_EDGE_GATHER,
                             .mode = input->mode,
                             .bounded = input->bounded};
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = "limit",
                        .label = limit_label(s, n),
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .has_key = n->key_count > 0,
                        .stateful = true,
                        .single = true};
    if (n->key_count) op.key = n->keys[0];
    CK_TRY(ck_lower_params_begin(s, &p));
    bool fine = n->limit.limit == UINT64_MAX ? yyjson_mut_obj_add_null(p.doc, p.root, "limit")
                                             : yyjson_mut_obj_add_uint(p.doc, p.root, "limit", n->limit.limit);
    if (!fine || !yyjson_mut_obj_add_uint(p.doc, p.root, "offset", n->limit.offset) || !op.label)
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    out->hashed = false;
    return CK_OK;
}
