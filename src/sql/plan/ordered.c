/* Nodes that know an order or compare whole rows: sort, top-N, set operations; and UNNEST. */
#include "sql/plan/plan_int.h"

static ck_status order_text(ck_plan *p, const ck_plan_node *input, const ck_plan_order *order, uint32_t count,
                            ck_columns partition, const char **out) {
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < partition.count; i++)
        s = ck_bytes_printf(&text, "%s%s", i ? "," : "", input->schema->fields[partition.at[i]].name);
    for (uint32_t i = 0; s == CK_OK && i < count; i++)
        s = ck_bytes_printf(&text, "%s%s%s", i ? "," : ";", input->schema->fields[order[i].column].name,
                            order[i].descending ? " desc" : "");
    *out = s == CK_OK ? ck_arena_strndup(p->arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return *out ? CK_OK : ck_plan_nomem(p);
}

static ck_status one_row_key(ck_plan *p, ck_plan_node *n, uint64_t limit) {
    return limit > 1 || ck_plan_add_key(p, n, NULL, 0) ? CK_OK : CK_NOMEM;
}

ck_status ck_plan_sort(ck_plan *p, ck_plan_node *input, const ck_plan_order *order, uint32_t count, uint64_t limit,
                       uint64_t offset, ck_plan_node **out) {
    ck_plan_node *n;
    const char *text;
    CK_ASSERT(input->mode == CK_MODE_APPEND && input->bounded);
    CK_TRY(ck_plan_new(p, CK_PLAN_SORT, &input, 1, &n));
    n->schema = input->schema;
    n->order.by = order, n->order.count = count, n->order.limit = limit, n->order.offset = offset;
    n->final = true;
    memcpy(n->keys, input->keys, sizeof n->keys);
    n->key_count = input->key_count;
    CK_TRY(one_row_key(p, n, limit));
    CK_TRY(order_text(p, input, order, count, (ck_columns){0}, &text));
    ck_plan_canonical(n, ck_view_of(text));
    CK_TRY(ck_plan_identify(p, n, "sort", text));
    *out = n;
    return CK_OK;
}

static ck_status ranked_schema(ck_plan *p, ck_plan_node *n, const char *rank_name) {
    const ck_schema *in = n->inputs[0]->schema;
    n->schema = in;
    if (!rank_name) return CK_OK;
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_schema_new(p, in->field_count + 1, &schema, &fields));
    memcpy(fields, in->fields, in->field_count * sizeof *fields);
    fields[in->field_count] = (ck_field){rank_name, ck_type_simple(CK_TYPE_BIGINT), false};
    n->schema = schema;
    return CK_OK;
}

ck_status ck_plan_top_n(ck_plan *p, ck_plan_node *input, const ck_plan_top *top, const char *rank_name,
                        ck_plan_node **out) {
    ck_plan_node *n;
    const char *text;
    CK_TRY(ck_plan_new(p, CK_PLAN_TOP_N, &input, 1, &n));
    n->top = *top;
    n->top.rank_column = rank_name != NULL;
    CK_TRY(ranked_schema(p, n, rank_name));
    /* Its windows end, whatever the input does; those that change are said once where all of it ends. */
    bool ends = p->emit_on_close || (input->bounded && !p->changes);
    n->top.windowed = ck_plan_top_is_windowed(input, &n->top) && !(ends && input->mode == CK_MODE_RETRACT);
    n->final = ends && !n->top.windowed;
    n->top.by_time = !n->top.windowed && !p->emit_on_close && ck_plan_top_is_timed(input, top);
    n->top.timed = n->top.by_time && !n->final;
    bool once = n->final || n->top.timed || (n->top.windowed && input->mode == CK_MODE_APPEND);
    n->mode = once ? CK_MODE_APPEND : CK_MODE_RETRACT;
    memcpy(n->keys, input->keys, sizeof n->keys);
    n->key_count = input->key_count;
    if (top->rank == CK_RANK_ROW_NUMBER && top->limit <= 1 &&
        !ck_plan_add_key(p, n, top->partition.at, top->partition.count))
        return CK_NOMEM;
    if (top->rank == CK_RANK_ROW_NUMBER && rank_name) { /* partition and number name a row */
        uint32_t *key = CK_PLAN_ARRAY(p, top->partition.count + 1, uint32_t);
        if (!key) return CK_NOMEM;
        if (top->partition.count) memcpy(key, top->partition.at, top->partition.count * sizeof *key);
        key[top->partition.count] = n->schema->field_count - 1;
        if (!ck_plan_add_key(p, n, key, top->partition.count + 1)) return CK_NOMEM;
    }
    CK_TRY(order_text(p, input, top->order, top->order_count, top->partition, &text));
    ck_plan_canonical(n, ck_view_of(text));
    CK_TRY(ck_plan_identify(p, n, "top_n", text));
    *out = n;
    return CK_OK;
}

void ck_plan_top_ends(ck_plan_node *made, const ck_plan_node *n) {
    made->top.timed = made->top.windowed = false;
    made->top.by_time = n->top.by_time;
}

ck_status ck_plan_set_op(ck_plan *p, bool except, bool all, ck_plan_node *left, ck_plan_node *right,
                         ck_plan_node **out) {
    ck_plan_node *n, *inputs[2] = {left, right};
    CK_TRY(ck_plan_new(p, CK_PLAN_SET_OP, inputs, 2, &n));
    n->schema = left->schema;
    n->set_op.except = except, n->set_op.all = all;
    n->final = except && (p->emit_on_close || (n->bounded && !p->changes));
    if (except) n->mode = n->final ? CK_MODE_APPEND : CK_MODE_RETRACT;
    if (!all) {
        uint32_t width = left->schema->field_count, *key = CK_PLAN_ARRAY(p, width, uint32_t);
        if (!key) return CK_NOMEM;
        for (uint32_t i = 0; i < width; i++) key[i] = i;
        if (!ck_plan_add_key(p, n, key, width)) return CK_NOMEM;
    }
    ck_plan_canonical(n, all ? CK_VIEW("all") : CK_VIEW("distinct"));
    CK_TRY(ck_plan_identify(p, n, except ? "except" : "intersect", all ? "all" : ""));
    *out = n;
    return CK_OK;
}

ck_status ck_plan_unnest(ck_plan *p, ck_plan_node *input, ck_expr *e, bool ordinality, bool outer,
                         const ck_field *fields, uint32_t field_count, ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *all;
    uint32_t width = input->schema->field_count;
    CK_TRY(ck_plan_new(p, CK_PLAN_UNNEST, &input, 1, &n));
    CK_TRY(ck_plan_schema_new(p, width + field_count, &schema, &all));
    if (width) memcpy(all, input->schema->fields, width * sizeof *all);
    if (field_count) memcpy(all + width, fields, field_count * sizeof *all);
    n->schema = schema;
    n->unnest.expr = e, n->unnest.ordinality = ordinality, n->unnest.outer = outer;
    for (uint32_t k = 0; ordinality && k < input->key_count; k++) { /* a key and the number name an element */
        uint32_t count = input->keys[k].count, *key = CK_PLAN_ARRAY(p, count + 1, uint32_t);
        if (!key) return CK_NOMEM;
        if (count) memcpy(key, input->keys[k].at, count * sizeof *key);
        key[count] = width + field_count - 1;
        if (!ck_plan_add_key(p, n, key, count + 1)) return CK_NOMEM;
    }
    const char *const *names = ck_plan_names(p, input);
    if (!names) return CK_NOMEM;
    CK_TRY(ck_plan_canonical_exprs(p, n, &e, 1, names));
    *out = n;
    return CK_OK;
}
