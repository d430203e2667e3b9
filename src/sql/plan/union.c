/* UNION ALL and LIMIT. */
#include "sql/plan/plan_int.h"

ck_status ck_plan_union(ck_plan *p, ck_plan_node *const *inputs, uint32_t count, ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_new(p, CK_PLAN_UNION, inputs, count, &n));
    CK_TRY(ck_plan_schema_new(p, inputs[0]->schema->field_count, &schema, &fields));
    for (uint32_t c = 0; c < schema->field_count; c++) {
        fields[c] = inputs[0]->schema->fields[c];
        for (uint32_t i = 1; i < count; i++)
            if (inputs[i]->schema->fields[c].nullable) fields[c].nullable = true;
    }
    n->schema = schema;
    ck_plan_canonical(n, (ck_view){0});
    *out = n;
    return CK_OK;
}

ck_status ck_plan_limit(ck_plan *p, ck_plan_node *input, uint64_t limit, uint64_t offset, ck_plan_node **out) {
    ck_plan_node *n;
    CK_ASSERT(input->mode == CK_MODE_APPEND); /* over changes it is a top-N: the binder's to know */
    CK_TRY(ck_plan_new(p, CK_PLAN_LIMIT, &input, 1, &n));
    n->schema = input->schema;
    n->limit.limit = limit, n->limit.offset = offset;
    memcpy(n->keys, input->keys, sizeof n->keys);
    n->key_count = input->key_count;
    if (limit <= 1 && !ck_plan_add_key(p, n, NULL, 0)) return CK_NOMEM;
    const char *text = ck_arena_printf(p->arena, "%llu,%llu", (unsigned long long)limit, (unsigned long long)offset);
    if (!text) return ck_plan_nomem(p);
    ck_plan_canonical(n, ck_view_of(text));
    CK_TRY(ck_plan_identify(p, n, "limit", ""));
    *out = n;
    return CK_OK;
}
