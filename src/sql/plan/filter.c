/* Filter and projection: stateless, one input. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"

/* x = 1: all rows that pass have one value there. */
static bool is_fixed(const ck_plan_node *n, uint32_t column) {
    for (uint32_t i = 0; i < n->filter.count; i++) {
        const ck_expr *e = n->filter.conjuncts[i];
        if (e->kind != CK_EXPR_CALL || e->arg_count != 2 || strcmp(e->fn->name, "=") != 0) continue;
        for (uint32_t k = 0; k < 2; k++)
            if (e->args[k]->kind == CK_EXPR_COLUMN && e->args[k]->column == column &&
                e->args[1 - k]->kind == CK_EXPR_LITERAL)
                return true;
    }
    return false;
}

/* A key is one without such columns, too: those of ROW_NUMBER() = 1 are the partition's. */
static ck_status shorter_keys(ck_plan *p, ck_plan_node *n) {
    for (uint32_t k = 0, all = n->key_count; k < all; k++) {
        uint32_t *rest = CK_PLAN_ARRAY(p, n->keys[k].count, uint32_t), count = 0;
        if (!rest) return CK_NOMEM;
        for (uint32_t i = 0; i < n->keys[k].count; i++)
            if (!is_fixed(n, n->keys[k].at[i])) rest[count++] = n->keys[k].at[i];
        if (count < n->keys[k].count && !ck_plan_add_key(p, n, rest, count)) return CK_NOMEM;
    }
    return CK_OK;
}

ck_status ck_plan_filter(ck_plan *p, ck_plan_node *input, ck_expr *const *conjuncts, uint32_t count,
                         ck_plan_node **out) {
    ck_plan_node *n;
    CK_TRY(ck_plan_new(p, CK_PLAN_FILTER, &input, 1, &n));
    n->schema = input->schema;
    n->filter.conjuncts = conjuncts, n->filter.count = count;
    memcpy(n->keys, input->keys, sizeof n->keys);
    n->key_count = input->key_count;
    CK_TRY(shorter_keys(p, n));
    const char *const *names = ck_plan_names(p, input);
    if (!names) return CK_NOMEM;
    CK_TRY(ck_plan_canonical_exprs(p, n, conjuncts, count, names));
    *out = n;
    return CK_OK;
}

/* The first output column from `from` on that passes on input column c, CK_NO_COLUMN when none does. */
static uint32_t output_of(ck_expr *const *exprs, uint32_t count, uint32_t c, uint32_t from) {
    for (uint32_t i = from; i < count; i++)
        if (exprs[i]->kind == CK_EXPR_COLUMN && exprs[i]->column == c) return i;
    return CK_NO_COLUMN;
}

/* A key's column that is passed on more than once names the row by any of its copies: a key with the first of each, and
 * one for each further copy. */
static ck_status map_keys(ck_plan *p, const ck_plan_node *input, ck_plan_node *n) {
    uint32_t count = n->schema->field_count;
    for (uint32_t k = 0; k < input->key_count; k++) {
        const ck_columns *key = &input->keys[k];
        uint32_t *mapped = CK_PLAN_ARRAY(p, key->count, uint32_t), i = 0;
        if (!mapped) return CK_NOMEM;
        for (; i < key->count; i++)
            if ((mapped[i] = output_of(n->project.exprs, count, key->at[i], 0)) == CK_NO_COLUMN) break;
        if (i < key->count) continue;
        if (!ck_plan_add_key(p, n, mapped, key->count)) return CK_NOMEM;
        for (i = 0; i < key->count; i++) {
            uint32_t first = mapped[i];
            while ((mapped[i] = output_of(n->project.exprs, count, key->at[i], mapped[i] + 1)) != CK_NO_COLUMN)
                if (!ck_plan_add_key(p, n, mapped, key->count)) return CK_NOMEM;
            mapped[i] = first;
        }
    }
    return CK_OK;
}

ck_status ck_plan_project(ck_plan *p, ck_plan_node *input, ck_expr *const *exprs, const char *const *names,
                          uint32_t count, ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_new(p, CK_PLAN_PROJECT, &input, 1, &n));
    CK_TRY(ck_plan_schema_new(p, count, &schema, &fields));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = names ? names[i] : NULL;
        if (!name) name = exprs[i]->kind == CK_EXPR_COLUMN ? input->schema->fields[exprs[i]->column].name : "";
        fields[i] = (ck_field){name, exprs[i]->type, exprs[i]->nullable};
    }
    n->schema = schema;
    n->project.exprs = exprs;
    CK_TRY(map_keys(p, input, n));
    const char *const *inner = ck_plan_names(p, input);
    if (!inner) return CK_NOMEM;
    CK_TRY(ck_plan_canonical_exprs(p, n, exprs, count, inner));
    *out = n;
    return CK_OK;
}
