/* UNNEST(array or map) in FROM, alone or beside the columns it is taken from. */
#include "sql/bind/bind_int.h"

bool ck_bind_is_unnest(const ck_ast_from *f) {
    return f->kind == CK_FROM_FUNCTION && ck_view_eq_nocase(f->call->name, CK_VIEW("unnest"));
}

/* What one element adds: a value, the fields of a ROW, or key and value. */
static ck_status element_fields(ck_binder *b, const ck_type *t, bool ordinality, bool outer, ck_field **out,
                                uint32_t *count) {
    const ck_type *element = t->fields[0].type;
    bool row = t->kind == CK_TYPE_ARRAY && element->kind == CK_TYPE_ROW;
    uint32_t n = t->kind == CK_TYPE_MAP ? 2 : row ? element->field_count : 1;
    ck_field *fields = CK_BIND_ARRAY(b, n + 1, ck_field);
    if (!fields) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        fields[i] = row ? element->fields[i] : t->fields[i];
        if (row && t->fields[0].nullable) fields[i].nullable = true; /* a NULL row has NULL fields */
        if (!row) fields[i].name = t->kind == CK_TYPE_ARRAY ? "value" : i == 0 ? "key" : "value";
        if (outer) fields[i].nullable = true;
    }
    if (ordinality) fields[n++] = (ck_field){"ordinality", ck_type_simple(CK_TYPE_BIGINT), outer};
    *out = fields, *count = n;
    return CK_OK;
}

static ck_status named(ck_binder *b, const ck_ast_from *f, ck_field *fields, uint32_t count) {
    uint32_t i = 0;
    if (f->alias_columns.count > count)
        return ck_bind_fail(b, f->alias_columns.first->ident.pos,
                            "UNNEST gives %u columns here, and %u names are given", count, f->alias_columns.count);
    for (const ck_ast_name *n = f->alias_columns.first; n; n = n->next, i++)
        if (!(fields[i].name = ck_arena_strndup(b->plan.arena, n->ident.text.p, n->ident.text.n)))
            return ck_bind_nomem(b);
    if (f->alias_columns.count == 0 && f->alias.text.n &&
        count == 1) /* UNNEST(x) AS tag: the column is called so, too */
        fields[0].name = ck_arena_strndup(b->plan.arena, f->alias.text.p, f->alias.text.n);
    return fields[0].name ? CK_OK : ck_bind_nomem(b);
}

ck_status ck_bind_unnest(ck_binder *b, const ck_ast_from *f, ck_scope *left, bool outer, ck_scope *out) {
    ck_bind_place place = {.scope = left, .clause = "UNNEST"};
    ck_expr *e;
    ck_field *fields;
    uint32_t count, width = left->node->schema->field_count;
    CK_TRY(ck_bind_needs(b, "unnest", f->call->sign, "UNNEST is"));
    if (f->call->args.count != 1 || f->call->call)
        return ck_bind_fail(b, f->call->sign, "UNNEST takes one ARRAY or MAP");
    CK_TRY(ck_bind_expr(b, &place, f->call->args.first, &e));
    if (e->type->kind != CK_TYPE_ARRAY && e->type->kind != CK_TYPE_MAP)
        return ck_bind_fail(b, f->call->args.first->pos, "UNNEST takes an ARRAY or a MAP, and this is %s",
                            ck_type_name(b->plan.arena, e->type));
    CK_TRY(element_fields(b, e->type, f->ordinality, outer, &fields, &count));
    CK_TRY(named(b, f, fields, count));
    ck_plan_node *n;
    CK_TRY(ck_plan_unnest(&b->plan, left->node, e, f->ordinality, outer, fields, count, &n));
    ck_scope_table *tables = CK_BIND_ARRAY(b, left->table_count + 1, ck_scope_table);
    bool *hidden = CK_BIND_ARRAY(b, width + count, bool);
    if (!tables || !hidden) return CK_NOMEM;
    if (left->table_count) memcpy(tables, left->tables, left->table_count * sizeof *tables);
    tables[left->table_count] = (ck_scope_table){f->alias.text, width, count, false};
    for (uint32_t i = 0; i < width; i++) hidden[i] = left->hidden && left->hidden[i];
    *out = (ck_scope){.node = n, .tables = tables, .table_count = left->table_count + 1, .hidden = hidden};
    return ck_scope_canonical(b, out);
}
