/* CREATE TABLE ... AS: the columns are the query's, and its rows go into the table. */
#include "sql/bind/create_int.h"

static ck_status columns_of(ck_binder *b, ck_catalog_entry *e, const ck_plan_node *n, const ck_ast_query *q,
                            ck_table_column *columns) {
    const ck_schema *schema = ck_schema_copy(&e->arena, n->schema);
    if (!schema) return ck_bind_nomem(b);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const ck_field *f = &schema->fields[i];
        columns[i] = (ck_table_column){f->name, f->type, f->nullable, (int32_t)i, NULL, NULL, NULL, NULL};
        for (uint32_t k = 0; k < i; k++)
            if (ck_view_eq_nocase(ck_view_of(columns[k].name), ck_view_of(f->name)))
                return ck_bind_fail(b, q->pos, "two columns of this query are \"%s\"; name one otherwise with AS",
                                    f->name);
    }
    e->table.decl.schema = schema;
    e->table.columns = columns, e->table.column_count = schema->field_count;
    return CK_OK;
}

/* The statement that makes the table alone, without its rows. */
static ck_status keep_text(ck_binder *b, ck_catalog_entry *e) {
    ck_bytes text;
    ck_bytes_init(&text, e->arena.mem, SIZE_MAX);
    ck_status s = ck_table_text(e, &text);
    e->sql = s == CK_OK ? ck_arena_strndup(&e->arena, text.p, text.n) : NULL;
    ck_bytes_destroy(&text);
    return e->sql ? CK_OK : ck_bind_nomem(b);
}

ck_status ck_bind_create_as(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t, ck_pos pos,
                            ck_output *out) {
    ck_plan_node *n;
    ck_ast_insert rows = {.query = t->query};
    ck_pos at = t->name.first->ident.pos;
    CK_TRY(ck_bind_query(b, t->query, true, &n));
    CK_TRY(ck_bind_typed_nulls(b, &n, t->query->pos));
    ck_table_column *columns = ck_arena_array(&e->arena, n->schema->field_count, sizeof *columns);
    if (!columns) return ck_bind_nomem(b);
    CK_TRY(columns_of(b, e, n, t->query, columns));
    CK_TRY(ck_bind_table_key(b, e, t, columns, e->table.column_count));
    e->table.decl.name = e->name;
    e->temporary = t->temporary;
    e->table.comment = ck_arena_strndup(&e->arena, t->comment.p ? t->comment.p : "", t->comment.n);
    if (!e->table.comment) return ck_bind_nomem(b);
    CK_TRY(ck_bind_options(b, &t->options, e, at, pos));
    CK_TRY(ck_bind_state_ttl(b, e, t));
    CK_TRY(ck_bind_event_time(b, e, t));
    CK_TRY(ck_bind_check_sink(b, &e->table, at));
    CK_TRY(keep_text(b, e));
    return ck_bind_rows_into(b, e, &rows, n, pos, out);
}
