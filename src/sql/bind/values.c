/* VALUES (1, 'a'), (2, 'b'): rows of constants, or, where a value is none, one projection a row. */
#include "sql/bind/bind_int.h"

static ck_status bind_rows(ck_binder *b, const ck_ast_query *q, uint32_t width, ck_expr **cells) {
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = "VALUES"};
    uint32_t n = 0;
    for (const ck_ast_expr *r = q->rows.first; r; r = r->next) {
        if (r->args.count != width)
            return ck_bind_fail(b, r->pos, "this row has %u values, and the first one has %u", r->args.count, width);
        for (const ck_ast_expr *v = r->args.first; v; v = v->next) CK_TRY(ck_bind_expr(b, &place, v, &cells[n++]));
    }
    return CK_OK;
}

/* Column c of all rows in one type; cells that are known now become literals. */
static ck_status unify(ck_binder *b, const ck_ast_query *q, ck_expr **cells, uint32_t width, uint32_t c, ck_field *f,
                       bool *constant) {
    uint32_t rows = q->rows.count, r = 0;
    ck_expr **column = CK_BIND_ARRAY(b, rows, ck_expr *);
    if (!column) return CK_NOMEM;
    for (uint32_t i = 0; i < rows; i++) column[i] = cells[i * width + c];
    CK_TRY(ck_bind_at(b, q->rows.first->pos, ck_bind_common_type(b, column, rows, &f->type)));
    for (const ck_ast_expr *row = q->rows.first; row; row = row->next, r++) {
        ck_expr **cell = &cells[r * width + c];
        CK_TRY(ck_bind_cast(b, *cell, f->type, false, row->pos, cell));
        if (ck_expr_is_constant(*cell)) CK_TRY(ck_bind_fold(b, *cell, row->pos, cell));
        if ((*cell)->kind != CK_EXPR_LITERAL) *constant = false;
        if ((*cell)->nullable) f->nullable = true;
    }
    return CK_OK;
}

static ck_status one_row_each(ck_binder *b, ck_expr *const *cells, const ck_schema *schema, uint32_t rows,
                              ck_plan_node **out) {
    ck_plan_node **arms = CK_BIND_ARRAY(b, rows, ck_plan_node *);
    const char **names = CK_BIND_ARRAY(b, schema->field_count, const char *);
    if (!arms || !names) return CK_NOMEM;
    for (uint32_t c = 0; c < schema->field_count; c++) names[c] = schema->fields[c].name;
    for (uint32_t r = 0; r < rows; r++) {
        ck_scope row;
        CK_TRY(ck_bind_from(b, NULL, &row));
        CK_TRY(ck_plan_project(&b->plan, row.node, cells + (size_t)r * schema->field_count, names, schema->field_count,
                               &arms[r]));
    }
    if (rows > 1) return ck_plan_union(&b->plan, arms, rows, out);
    *out = arms[0];
    return CK_OK;
}

ck_status ck_bind_values(ck_binder *b, const ck_ast_query *q, ck_plan_node **out) {
    uint32_t width = q->rows.first->args.count;
    if (width > CK_SQL_COLUMNS_MAX)
        return ck_bind_fail(b, q->pos, "%u columns are too many; at most %d are allowed", width, CK_SQL_COLUMNS_MAX);
    ck_expr **cells = CK_BIND_ARRAY(b, (size_t)width * q->rows.count, ck_expr *);
    ck_schema *schema = CK_BIND_ARRAY(b, 1, ck_schema);
    ck_field *fields = CK_BIND_ARRAY(b, width, ck_field);
    bool constant = true;
    if (!cells || !schema || !fields) return CK_NOMEM;
    *schema = (ck_schema){fields, width};
    CK_TRY(bind_rows(b, q, width, cells));
    for (uint32_t c = 0; c < width; c++) {
        fields[c].name = ck_arena_printf(b->plan.arena, "EXPR$%u", c);
        if (!fields[c].name) return ck_bind_nomem(b);
        CK_TRY(unify(b, q, cells, width, c, &fields[c], &constant));
    }
    return constant ? ck_plan_values(&b->plan, schema, cells, q->rows.count, out)
                    : one_row_each(b, cells, schema, q->rows.count, out);
}
