/* GROUP BY, the global aggregate, DISTINCT (an aggregate without calls). */
#include "data/text.h"
#include "sql/plan/plan_int.h"

static ck_status append_constant(const ck_plan_aggregate *c, ck_bytes *text) {
    char number[40];
    switch (c->fn->constant) {
    case CK_AGGREGATE_NO_CONSTANT: return CK_OK;
    case CK_AGGREGATE_FRACTION: return ck_bytes_printf(text, ", %.*s", (int)ck_print_f64(number, c->fraction), number);
    case CK_AGGREGATE_SEPARATOR: break;
    }
    CK_TRY(ck_bytes_str(text, ", '"));
    for (size_t i = 0; i < c->separator.n; i++) {
        if (c->separator.p[i] == '\'') CK_TRY(ck_bytes_char(text, '\''));
        CK_TRY(ck_bytes_char(text, c->separator.p[i]));
    }
    return ck_bytes_char(text, '\'');
}

const char *ck_plan_call_text(ck_arena *a, const ck_plan_aggregate *c) {
    ck_bytes text;
    ck_bytes_init(&text, a->mem, SIZE_MAX);
    ck_status s =
        ck_bytes_printf(&text, "%s(%s%s", c->fn->name, c->distinct ? "DISTINCT " : "", c->arg_text ? c->arg_text : "*");
    if (s == CK_OK) s = append_constant(c, &text);
    if (s == CK_OK && c->order_text) s = ck_bytes_printf(&text, " ORDER BY %s", c->order_text);
    if (s == CK_OK) s = ck_bytes_str(&text, c->ignores_nulls && c->fn->keeps_nulls ? " IGNORE NULLS)" : ")");
    const char *out = s == CK_OK ? ck_arena_strndup(a, text.p, text.n) : NULL;
    ck_bytes_destroy(&text);
    return out;
}

bool ck_plan_call_keeps(const ck_plan_node *input, const ck_plan_aggregate *c) {
    bool all = c->fn->order == CK_AGGREGATE_ORDERED || c->fn->order == CK_AGGREGATE_WITHIN ||
               strcmp(c->fn->name, "median") == 0;
    return all || c->distinct || (c->fn->order == CK_AGGREGATE_BY && input->mode == CK_MODE_RETRACT);
}

bool ck_plan_keeps_values(const ck_plan_node *n) {
    for (uint32_t i = 0; i < n->aggregate.call_count; i++)
        if (ck_plan_call_keeps(n->inputs[0], &n->aggregate.calls[i])) return true;
    return false;
}

ck_status ck_plan_move_call(ck_plan *p, ck_plan_aggregate *c, const uint32_t *map) {
    ck_plan_order *order = CK_PLAN_ARRAY(p, c->order_count, ck_plan_order);
    if (!order) return CK_NOMEM;
    for (uint32_t i = 0; i < c->order_count; i++) {
        order[i] = c->order[i];
        order[i].column = map[order[i].column];
    }
    c->order = order;
    if (c->arg != CK_NO_COLUMN) c->arg = map[c->arg];
    if (c->filter != CK_NO_COLUMN) c->filter = map[c->filter];
    return CK_OK;
}

static ck_status schema_of(ck_plan *p, const ck_plan_node *input, ck_columns keys, const ck_plan_aggregate *calls,
                           uint32_t call_count, const char *const *call_names, const ck_schema **out) {
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_schema_new(p, keys.count + call_count, &schema, &fields));
    for (uint32_t i = 0; i < keys.count; i++) fields[i] = input->schema->fields[keys.at[i]];
    for (uint32_t i = 0; i < call_count; i++)
        fields[keys.count + i] = (ck_field){call_names[i], calls[i].type, calls[i].nullable};
    *out = schema;
    return CK_OK;
}

const char *ck_plan_key_names(ck_plan *p, const ck_plan_node *input, ck_columns keys) {
    size_t bytes = 1;
    for (uint32_t i = 0; i < keys.count; i++) bytes += strlen(input->schema->fields[keys.at[i]].name) + 1;
    char *text = ck_arena_alloc(p->arena, bytes), *at = text;
    for (uint32_t i = 0; text && i < keys.count; i++) {
        const char *name = input->schema->fields[keys.at[i]].name;
        if (i) *at++ = ',';
        memcpy(at, name, strlen(name)), at += strlen(name);
    }
    if (text) *at = 0;
    return text;
}

static ck_status canonical_of(ck_plan *p, ck_plan_node *n, const char *key_text) {
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = ck_bytes_str(&text, key_text);
    for (uint32_t i = 0; s == CK_OK && i < n->aggregate.call_count; i++) {
        const ck_plan_aggregate *c = &n->aggregate.calls[i];
        const char *call = ck_plan_call_text(p->arena, c);
        s = call ? ck_bytes_printf(&text, ";%s %s", call, c->filter_text ? c->filter_text : "") : CK_NOMEM;
    }
    if (s == CK_OK) ck_plan_canonical(n, ck_bytes_as_view(&text));
    ck_bytes_destroy(&text);
    return s == CK_OK ? CK_OK : ck_plan_nomem(p);
}

ck_status ck_plan_aggregate_node(ck_plan *p, ck_plan_node *input, ck_columns keys, const ck_plan_aggregate *calls,
                                 uint32_t call_count, const char *key_text, const char *const *call_names,
                                 ck_plan_node **out) {
    ck_plan_node *n;
    CK_TRY(ck_plan_new(p, CK_PLAN_AGGREGATE, &input, 1, &n));
    CK_TRY(schema_of(p, input, keys, calls, call_count, call_names, &n->schema));
    n->aggregate.keys = keys, n->aggregate.calls = calls, n->aggregate.call_count = call_count;
    /* DISTINCT of appended rows says each row once, when it comes: nothing to wait for. */
    bool first_only = call_count == 0 && input->mode == CK_MODE_APPEND;
    n->final = !first_only && (p->emit_on_close || (input->bounded && !p->changes));
    n->mode = first_only || n->final ? CK_MODE_APPEND : CK_MODE_RETRACT;
    uint32_t *key = CK_PLAN_ARRAY(p, keys.count, uint32_t);
    if (!key) return CK_NOMEM;
    for (uint32_t i = 0; i < keys.count; i++) key[i] = i;
    if (!ck_plan_add_key(p, n, key, keys.count)) return CK_NOMEM;
    if (!key_text && !(key_text = ck_plan_key_names(p, input, keys))) return ck_plan_nomem(p);
    CK_TRY(canonical_of(p, n, key_text));
    CK_TRY(ck_plan_identify(p, n, call_count ? "group_agg" : "distinct", key_text));
    *out = n;
    return CK_OK;
}
