/* Nodes without inputs: the columns of a table, rows written in the query. */
#include "sql/plan/plan_int.h"

ck_status ck_plan_scan(ck_plan *p, const ck_catalog_entry *table, ck_columns columns, bool bounded,
                       ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_new(p, CK_PLAN_SCAN, NULL, 0, &n));
    CK_TRY(ck_plan_schema_new(p, columns.count, &schema, &fields));
    const ck_schema *physical = table->table.decl.schema;
    for (uint32_t i = 0; i < columns.count; i++) fields[i] = physical->fields[columns.at[i]];
    n->schema = schema, n->bounded = bounded;
    const ck_connector_desc *c = table->table.connector;
    if (c && c->changes && c->changes(&table->table.decl)) n->mode = CK_MODE_RETRACT;
    n->scan.table = table, n->scan.columns = columns;
    ck_plan_canonical(n, ck_view_of(table->name));
    const char *identity = ck_arena_printf(p->arena, "source:%s", table->name);
    if (!identity) return ck_plan_nomem(p);
    CK_TRY(ck_plan_identify_as(p, n, identity, table->name));
    *out = n;
    return CK_OK;
}

ck_status ck_plan_values(ck_plan *p, const ck_schema *schema, ck_expr *const *rows, uint32_t row_count,
                         ck_plan_node **out) {
    ck_plan_node *n;
    CK_TRY(ck_plan_new(p, CK_PLAN_VALUES, NULL, 0, &n));
    n->schema = schema;
    n->values.rows = rows, n->values.row_count = row_count;
    CK_TRY(ck_plan_canonical_exprs(p, n, rows, row_count * schema->field_count, NULL));
    if (row_count <= 1 && !ck_plan_add_key(p, n, NULL, 0)) return CK_NOMEM;
    CK_TRY(ck_plan_identify_as(p, n, "source:values", "values"));
    *out = n;
    return CK_OK;
}
