/* GROUP BY, DISTINCT, the global aggregate: one operator behind a hash edge on the keys. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

static bool add_column(yyjson_mut_doc *doc, yyjson_mut_val *v, const char *name, uint32_t column) {
    return column == CK_NO_COLUMN ? yyjson_mut_obj_add_null(doc, v, name)
                                  : yyjson_mut_obj_add_uint(doc, v, name, column);
}

/* What only aggregates over values in order have. */
static bool add_order(yyjson_mut_doc *doc, yyjson_mut_val *v, const ck_plan_aggregate *c) {
    bool fine = true;
    if (c->order_count) fine = ck_lower_add_order(doc, v, "order", c->order, c->order_count);
    if (c->order_text) fine = fine && yyjson_mut_obj_add_str(doc, v, "order_text", c->order_text);
    if (c->ignores_nulls) fine = fine && yyjson_mut_obj_add_bool(doc, v, "ignore_nulls", true);
    if (c->fn->constant == CK_AGGREGATE_SEPARATOR)
        fine = fine && yyjson_mut_obj_add_strn(doc, v, "separator", c->separator.p, c->separator.n);
    if (c->fn->constant == CK_AGGREGATE_FRACTION)
        fine = fine && yyjson_mut_obj_add_real(doc, v, "fraction", c->fraction);
    return fine;
}

static bool add_call(yyjson_mut_doc *doc, yyjson_mut_val *list, const ck_plan_aggregate *c) {
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
    return v && yyjson_mut_obj_add_str(doc, v, "fn", c->fn->name) && add_column(doc, v, "arg", c->arg) &&
           add_column(doc, v, "filter", c->filter) && yyjson_mut_obj_add_bool(doc, v, "distinct", c->distinct) &&
           (!c->arg_text || yyjson_mut_obj_add_str(doc, v, "arg_text", c->arg_text)) &&
           (!c->filter_text || yyjson_mut_obj_add_str(doc, v, "filter_text", c->filter_text)) && add_order(doc, v, c);
}

ck_status ck_lower_params_calls(ck_lower_state *s, ck_lower_params *p, const ck_plan_aggregate *calls, uint32_t count) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(p->doc, p->root, "aggregates");
    if (!list) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < count; i++)
        if (!add_call(p->doc, list, &calls[i])) return ck_lower_nomem(s);
    return CK_OK;
}

/* "before: sum(amount), count(*)" */
const char *ck_label_calls(ck_lower_state *s, const char *before, const ck_plan_aggregate *calls, uint32_t count) {
    const char *text = before;
    for (uint32_t i = 0; text && i < count; i++) {
        const ck_plan_aggregate *c = &calls[i];
        const char *call = ck_plan_call_text(s->arena, c);
        text = call ? ck_arena_printf(s->arena, "%s%s %s", text, i ? "," : ":", call) : NULL;
        if (text && c->filter_text) text = ck_arena_printf(s->arena, "%s FILTER (%s)", text, c->filter_text);
    }
    return text;
}

static ck_status params_of(ck_lower_state *s, const ck_plan_node *n, const char **out) {
    ck_lower_params p;
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_columns(s, &p, "keys", n->aggregate.keys));
    CK_TRY(ck_lower_params_calls(s, &p, n->aggregate.calls, n->aggregate.call_count));
    bool goes_on = !n->final && (!n->bounded || s->l->options->changes); /* the one row without keys is always there */
    if (goes_on && n->aggregate.keys.count) CK_TRY(ck_lower_params_ttl(s, &p, "ttl_us", n->input_ttl_us[0]));
    return ck_lower_params_end(s, &p, out);
}

static const char *label_of(ck_lower_state *s, const ck_plan_node *n) {
    const char *keys = ck_label_columns(s, n->inputs[0]->schema, n->aggregate.keys);
    if (!keys) return NULL;
    const char *text = n->aggregate.call_count == 0   ? ck_arena_printf(s->arena, "DISTINCT %s", keys)
                       : n->aggregate.keys.count == 0 ? "one row"
                                                      : ck_arena_printf(s->arena, "GROUP BY %s", keys);
    return text ? ck_label_calls(s, text, n->aggregate.calls, n->aggregate.call_count) : NULL;
}

ck_status ck_lower_aggregate(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    uint32_t *own = CK_LOWER_ARRAY(s, n->aggregate.keys.count, uint32_t);
    if (!in || !own) return CK_NOMEM;
    CK_TRY(ck_lower_node(s, input, out));
    bool together = ck_lower_is_hashed_by(out, n->aggregate.keys);
    *in = (ck_planned_input){.op = out->op,
                             .kind = together ? CK_EDGE_FORWARD : CK_EDGE_HASH,
                             .key = together ? (ck_columns){0} : n->aggregate.keys,
                             .mode = input->mode,
                             .bounded = input->bounded};
    for (uint32_t i = 0; i < n->aggregate.keys.count; i++) own[i] = i;
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = "group_agg",
                        .label = label_of(s, n),
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .key = n->keys[0],
                        .has_key = true,
                        .final = n->final,
                        .stateful = true};
    if (!op.label) return ck_lower_nomem(s);
    CK_TRY(params_of(s, n, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    out->hashed = true, out->hash = (ck_columns){own, n->aggregate.keys.count};
    return CK_OK;
}
