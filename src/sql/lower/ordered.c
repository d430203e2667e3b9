/* Sort, top-N, UNNEST. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

bool ck_lower_add_order(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name, const ck_plan_order *order,
                        uint32_t count) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, name);
    for (uint32_t i = 0; list && i < count; i++) {
        yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
        if (!v || !yyjson_mut_obj_add_uint(doc, v, "col", order[i].column) ||
            !yyjson_mut_obj_add_bool(doc, v, "desc", order[i].descending) ||
            !yyjson_mut_obj_add_bool(doc, v, "nulls_first", order[i].nulls_first))
            return false;
    }
    return list != NULL;
}

static bool add_limit(yyjson_mut_doc *doc, yyjson_mut_val *root, uint64_t limit, uint64_t offset) {
    bool fine = limit == UINT64_MAX ? yyjson_mut_obj_add_null(doc, root, "limit")
                                    : yyjson_mut_obj_add_uint(doc, root, "limit", limit);
    return fine && yyjson_mut_obj_add_uint(doc, root, "offset", offset);
}

static const char *order_label(ck_lower_state *s, const ck_schema *schema, const char *before,
                               const ck_plan_order *order, uint32_t count, uint64_t limit, uint64_t offset) {
    ck_bytes text;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = ck_bytes_str(&text, before);
    for (uint32_t i = 0; st == CK_OK && i < count; i++)
        st = ck_bytes_printf(&text, "%s%s%s",
                             i        ? ", "
                             : text.n ? " ORDER BY "
                                      : "ORDER BY ",
                             schema->fields[order[i].column].name, order[i].descending ? " DESC" : "");
    if (st == CK_OK && limit != UINT64_MAX)
        st = ck_bytes_printf(&text, "%sLIMIT %llu", text.n ? " " : "", (unsigned long long)limit);
    if (st == CK_OK && offset) st = ck_bytes_printf(&text, " OFFSET %llu", (unsigned long long)offset);
    return ck_label_cut(s, &text, st);
}

static ck_planned_op op_of(const ck_plan_node *n, const char *type, const char *label, ck_planned_input *in) {
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = type,
                        .label = label,
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .has_key = n->key_count > 0,
                        .final = n->final,
                        .stateful = true};
    if (n->key_count) op.key = n->keys[0];
    return op;
}

ck_status ck_lower_sort(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    ck_lower_params p;
    CK_TRY(ck_lower_node(s, input, out));
    if (!in) return CK_NOMEM;
    *in = (ck_planned_input){.op = out->op,
                             .kind = s->ops[out->op].single ? CK_EDGE_FORWARD : CK_EDGE_GATHER,
                             .mode = input->mode,
                             .bounded = input->bounded};
    ck_planned_op op = op_of(
        n, "sort", order_label(s, n->schema, "", n->order.by, n->order.count, n->order.limit, n->order.offset), in);
    op.single = true;
    CK_TRY(ck_lower_params_begin(s, &p));
    if (!op.label || !ck_lower_add_order(p.doc, p.root, "keys", n->order.by, n->order.count) ||
        !add_limit(p.doc, p.root, n->order.limit, n->order.offset))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    out->hashed = false;
    return CK_OK;
}

ck_status ck_lower_top_n(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    bool timed = n->top.timed || (n->top.by_time && s->timed[n->id]);
    if (timed && n->top.limit > 0) return ck_lower_timed_rank(s, n, out);
    static const char *const ranks[] = {"row_number", "rank", "dense_rank"};
    const ck_plan_node *input = n->inputs[0];
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    ck_lower_params p;
    CK_TRY(ck_lower_node(s, input, out));
    const char *by = ck_label_columns(s, n->schema, n->top.partition);
    const char *before = !by || !n->top.partition.count ? by : ck_arena_printf(s->arena, "PARTITION BY %s", by);
    if (!in || !before) return ck_lower_nomem(s);
    bool together = ck_lower_is_hashed_by(out, n->top.partition);
    *in = (ck_planned_input){.op = out->op,
                             .kind = together ? CK_EDGE_FORWARD : CK_EDGE_HASH,
                             .key = together ? (ck_columns){0} : n->top.partition,
                             .mode = input->mode,
                             .bounded = input->bounded};
    const char *label =
        order_label(s, n->schema, before, n->top.order, n->top.order_count, n->top.limit, n->top.offset);
    if (label && n->top.windowed)
        label = ck_arena_printf(s->arena, "%s%s", label,
                                n->mode == CK_MODE_APPEND ? ", at the window's end" : ", until the window's end");
    ck_planned_op op = op_of(n, "top_n", label, in);
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_columns(s, &p, "partition", n->top.partition));
    if (!op.label || !ck_lower_add_order(p.doc, p.root, "order", n->top.order, n->top.order_count) ||
        !add_limit(p.doc, p.root, n->top.limit, n->top.offset) ||
        !yyjson_mut_obj_add_str(p.doc, p.root, "rank", ranks[n->top.rank]) ||
        !yyjson_mut_obj_add_bool(p.doc, p.root, "rank_column", n->top.rank_column))
        return ck_lower_nomem(s);
    if (n->top.windowed && (!yyjson_mut_obj_add_uint(p.doc, p.root, "window_end", n->top.window_end) ||
                            !yyjson_mut_obj_add_uint(p.doc, p.root, "lateness_us", (uint64_t)n->top.lateness_us)))
        return ck_lower_nomem(s);
    if (!n->top.windowed && !n->final && (!n->bounded || s->l->options->changes))
        CK_TRY(ck_lower_params_ttl(s, &p, "ttl_us", n->input_ttl_us[0]));
    CK_TRY(ck_lower_params_late(s, &p, n));
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    CK_TRY(ck_lower_late(s, n, out->op));
    out->hashed = true, out->hash = n->top.partition;
    return CK_OK;
}

ck_status ck_lower_unnest(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    const char *params;
    ck_lower_params p;
    struct yyjson_mut_val *v;
    CK_TRY(ck_lower_node(s, input, out));
    CK_TRY(ck_lower_params_begin(s, &p));
    if (ck_expr_to_json(n->unnest.expr, p.doc, &v) != CK_OK || !yyjson_mut_obj_add_val(p.doc, p.root, "expr", v) ||
        !yyjson_mut_obj_add_bool(p.doc, p.root, "ordinality", n->unnest.ordinality) ||
        !yyjson_mut_obj_add_bool(p.doc, p.root, "outer", n->unnest.outer))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, &p, "unused", n->unnest.unused));
    CK_TRY(ck_lower_params_end(s, &p, &params));
    const char *label = ck_label_exprs(s, "", ", ", input, &n->unnest.expr, 1, NULL);
    return ck_lower_chained(s, n, "unnest", params, label, input, out, &out->op);
}
