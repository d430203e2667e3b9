/* Where a query's rows go: INSERT INTO a table, or the result of a bare SELECT; and whether the sink can take them. */
#include "base/suggest.h"
#include "sql/bind/create_int.h"

/* ---- columns of the table from columns of the query ---- */

static ck_status unknown_column(ck_binder *b, const ck_table_def *t, const ck_ast_ident *name) {
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    for (uint32_t i = 0; i < t->column_count; i++) ck_suggest_offer(&near, ck_view_of(t->columns[i].name));
    if (near.best.n)
        return ck_bind_fail(b, name->pos, "table \"%s\" has no column \"%.*s\"; did you mean \"%.*s\"?", t->decl.name,
                            ck_cut(name->text), name->text.p, ck_cut(near.best), near.best.p);
    return ck_bind_fail(b, name->pos, "table \"%s\" has no column \"%.*s\"", t->decl.name, ck_cut(name->text),
                        name->text.p);
}

/* source[i]: the query's column for physical column i, CK_NO_COLUMN: NULL. */
static ck_status match_columns(ck_binder *b, const ck_ast_insert *i, const ck_table_def *t, const ck_plan_node *n,
                               uint32_t *source) {
    uint32_t given = 0, physical = t->decl.schema->field_count;
    for (uint32_t c = 0; c < physical; c++) source[c] = i->columns.count ? CK_NO_COLUMN : c;
    for (const ck_ast_name *c = i->columns.first; c; c = c->next, given++) {
        const ck_table_column *found = NULL;
        for (uint32_t k = 0; k < t->column_count && !found; k++)
            if (ck_view_eq_nocase(ck_view_of(t->columns[k].name), c->ident.text)) found = &t->columns[k];
        if (!found) return unknown_column(b, t, &c->ident);
        if (found->physical < 0)
            return ck_bind_fail(b, c->ident.pos, "column \"%s\" is computed and takes no values", found->name);
        if (source[found->physical] != CK_NO_COLUMN)
            return ck_bind_fail(b, c->ident.pos, "column \"%s\" stands twice", found->name);
        source[found->physical] = given;
    }
    uint32_t want = i->columns.count ? i->columns.count : physical;
    if (want != n->schema->field_count)
        return ck_bind_fail(b, i->query->pos, "table \"%s\" takes %u column%s here, and the query gives %u",
                            t->decl.name, want, want == 1 ? "" : "s", n->schema->field_count);
    return CK_OK;
}

static bool is_text(ck_kind k) { return k == CK_TYPE_VARCHAR || k == CK_TYPE_BYTES; }
static bool is_timestamp(ck_kind k) { return k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ; }

bool ck_bind_assigns(const ck_type *from, const ck_type *to) {
    if (from->kind == to->kind || from->kind == CK_TYPE_NULL) return true;
    if (ck_kind_is_numeric(from->kind) && ck_kind_is_numeric(to->kind)) return true;
    if (from->kind == CK_TYPE_DATE && is_timestamp(to->kind)) return true;
    if (is_timestamp(from->kind) && is_timestamp(to->kind)) return true;
    return is_text(from->kind) && is_text(to->kind) && from->kind == to->kind;
}

/* The value of a constant column, looking through projections; NULL when it is none. */
static const ck_expr *constant_of(const ck_plan_node *n, uint32_t column) {
    while (n->kind == CK_PLAN_PROJECT) {
        const ck_expr *e = n->project.exprs[column];
        if (e->kind == CK_EXPR_LITERAL) return e;
        if (e->kind != CK_EXPR_COLUMN) return NULL;
        column = e->column;
        n = n->inputs[0];
    }
    return n->kind == CK_PLAN_VALUES && n->values.row_count ? n->values.rows[column] : NULL;
}

/* Where the n-th column of a query is written. */
static ck_pos item_pos(const ck_ast_query *q, uint32_t n) {
    const ck_ast_item *i = q->kind == CK_QUERY_SELECT ? q->select->items.first : NULL;
    for (; i && i->expr->kind != CK_AST_STAR; i = i->next, n--)
        if (n == 0) return i->expr->pos;
    return q->pos;
}

static ck_status convert(ck_binder *b, const ck_ast_insert *i, const ck_table_def *t, const ck_plan_node *n,
                         uint32_t source, const ck_field *to, ck_expr **out) {
    if (source == CK_NO_COLUMN) {
        if (!to->nullable)
            return ck_bind_fail(b, i->columns.first->ident.pos, "column \"%s\" of \"%s\" is NOT NULL and gets no value",
                                to->name, t->decl.name);
        *out = ck_expr_null(b->plan.arena, to->type);
        return *out ? CK_OK : ck_bind_nomem(b);
    }
    ck_expr *e = ck_plan_column(&b->plan, n, source);
    if (!e) return CK_NOMEM;
    const ck_expr *constant = constant_of(n, source);
    bool untyped = constant && constant->type->kind == CK_TYPE_VARCHAR;
    if (!untyped && !ck_bind_assigns(e->type, to->type))
        return ck_bind_fail(b, item_pos(i->query, source),
                            "column %u (\"%s\") of \"%s\" is %s, and the query gives %s; CAST(... AS %s) "
                            "converts it",
                            source + 1, to->name, t->decl.name, ck_type_name(b->plan.arena, to->type),
                            ck_type_name(b->plan.arena, e->type), ck_type_name(b->plan.arena, to->type));
    ck_pos at = item_pos(i->query, source);
    ck_expr *made;
    CK_TRY(ck_bind_at(b, at, ck_expr_assign(b->plan.arena, e, to->type, to->name, &made, b->err)));
    if (b->catalog->settings.eval_error_null) ck_expr_fails_to_null(made, &e, 1);
    if (made != e) made->line = at.line, made->col = at.column;
    *out = made;
    return CK_OK;
}

static ck_status fit(ck_binder *b, const ck_ast_insert *i, const ck_table_def *t, ck_plan_node **n) {
    uint32_t physical = t->decl.schema->field_count;
    uint32_t *source = CK_BIND_ARRAY(b, physical, uint32_t);
    ck_expr **exprs = CK_BIND_ARRAY(b, physical, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, physical, const char *);
    if (!source || !exprs || !names) return CK_NOMEM;
    CK_TRY(match_columns(b, i, t, *n, source));
    for (uint32_t c = 0; c < physical; c++) {
        names[c] = t->decl.schema->fields[c].name;
        CK_TRY(convert(b, i, t, *n, source[c], &t->decl.schema->fields[c], &exprs[c]));
    }
    return ck_plan_project(&b->plan, *n, exprs, names, physical, n);
}

/* ---- changes into the sink ---- */

static const char *key_names(ck_binder *b, const ck_plan_node *n, const uint32_t *columns, uint32_t count) {
    ck_bytes text;
    ck_bytes_init(&text, b->plan.arena->mem, 1 << 16);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++)
        s = ck_bytes_printf(&text, "%s%s", i ? ", " : "", n->schema->fields[columns[i]].name);
    const char *out = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return out ? out : "?";
}

/* The GROUP BY under a query, or nothing. */
static bool over_half_a_window(const ck_plan_node *n) {
    while (n->input_count == 1 && n->kind != CK_PLAN_AGGREGATE) n = n->inputs[0];
    return ck_plan_groups_half_a_window(n);
}

static ck_status refuse_changes(ck_binder *b, const ck_table_def *t, const ck_plan_node *n, ck_pos at) {
    static const uint32_t first = 0; /* of a query of one row any column is a key */
    const char *key = !n->key_count      ? "..."
                      : n->keys[0].count ? key_names(b, n, n->keys[0].at, n->keys[0].count)
                                         : key_names(b, n, &first, 1);
    const char *window = over_half_a_window(n) ? "window_start and window_end, both" : "a time window";
    return ck_bind_refuse(
        b, at,
        "table \"%s\" only takes new rows, and the rows of this query change as input comes. Three ways out: give the "
        "table PRIMARY KEY (%s) NOT ENFORCED and a mode that updates rows; group by %s; or end the query "
        "with EMIT ON CLOSE, which says each row once, when the input has ended",
        t->decl.name, key, window);
}

static ck_status check_changes(ck_binder *b, const ck_table_def *t, const ck_plan_node *n, ck_pos at) {
    const ck_connector_desc *c = t->connector;
    if (n->mode == CK_MODE_APPEND) return CK_OK;
    if (c->accepts_changes && c->accepts_changes(&t->decl)) return CK_OK;
    bool upserts = t->decl.primary_key_count && c->accepts_upserts && c->accepts_upserts(&t->decl);
    return upserts ? CK_OK : refuse_changes(b, t, n, at);
}

ck_status ck_bind_check_sink(ck_binder *b, const ck_table_def *t, ck_pos at) {
    if (!t->connector->sink_type)
        return ck_bind_refuse(b, at, "table \"%s\" cannot be written: connector '%s' only makes rows", t->decl.name,
                              t->connector->name);
    return ck_bind_check_table(b, t, true);
}

ck_status ck_bind_rows_into(ck_binder *b, const ck_catalog_entry *e, const ck_ast_insert *i, ck_plan_node *n,
                            ck_pos pos, ck_output *out) {
    const ck_table_decl *t = &e->table.decl;
    CK_TRY(fit(b, i, &e->table, &n));
    CK_TRY(check_changes(b, &e->table, n, i->query->pos));
    *out = (ck_output){.node = n,
                       .table = e,
                       .schema = t->schema,
                       .key = t->primary_key,
                       .key_count = t->primary_key_count,
                       .pos = pos};
    return CK_OK;
}

ck_status ck_bind_insert(ck_binder *b, const ck_ast_insert *i, ck_pos pos, ck_output *out) {
    ck_catalog_entry *e;
    ck_plan_node *n;
    ck_pos at = i->table.first->ident.pos;
    CK_TRY(ck_bind_find_entry(b, &i->table, at, &e));
    if (e->kind == CK_ENTRY_VIEW)
        return ck_bind_fail(b, at, "\"%s\" is a view, and a view takes no rows; INSERT INTO the table below it",
                            e->name);
    if (i->overwrite) return ck_bind_refuse(b, pos, "INSERT OVERWRITE is not supported; INSERT INTO adds rows");
    if (i->hints)
        return ck_bind_refuse(b, i->hints->name.pos, "hint %.*s is not supported", ck_cut(i->hints->name.text),
                              i->hints->name.text.p);
    CK_TRY(ck_bind_check_sink(b, &e->table, at));
    CK_TRY(ck_bind_query(b, i->query, true, &n));
    return ck_bind_rows_into(b, e, i, n, pos, out);
}

/* ---- the result of a bare SELECT ---- */

/* Names of a result are different: a JSON object has each once. The map has the last number given to each name. */
static ck_status distinct_names(ck_binder *b, ck_plan_node **n) {
    const ck_schema *s = (*n)->schema;
    ck_arena *a = b->plan.arena;
    const char **names = CK_BIND_ARRAY(b, s->field_count, const char *);
    uint32_t *suffixes = CK_BIND_ARRAY(b, s->field_count, uint32_t), *last;
    ck_map taken;
    bool changed = false;
    if (!names || !suffixes) return CK_NOMEM;
    ck_map_init(&taken, a, false);
    for (uint32_t i = 0; i < s->field_count; i++) {
        names[i] = s->fields[i].name;
        for (last = ck_map_get(&taken, ck_view_of(names[i])); last && ck_map_find(&taken, ck_view_of(names[i]));) {
            names[i] = ck_arena_printf(a, "%s_%u", s->fields[i].name, ++*last);
            if (!names[i]) return ck_bind_nomem(b);
            changed = true;
        }
        if (ck_map_put(&taken, ck_view_of(names[i]), &suffixes[i], NULL) != CK_OK) return ck_bind_nomem(b);
    }
    return changed ? ck_bind_rename(b, *n, names, n) : CK_OK;
}

ck_status ck_bind_typed_nulls(ck_binder *b, ck_plan_node **n, ck_pos at) {
    const ck_schema *s = (*n)->schema;
    ck_expr **exprs = CK_BIND_ARRAY(b, s->field_count, ck_expr *);
    bool changed = false;
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < s->field_count; i++) {
        if (!(exprs[i] = ck_plan_column(&b->plan, *n, i))) return CK_NOMEM;
        if (s->fields[i].type->kind != CK_TYPE_NULL) continue;
        CK_TRY(ck_bind_cast(b, exprs[i], ck_type_simple(CK_TYPE_VARCHAR), false, at, &exprs[i]));
        changed = true;
    }
    const char *const *names = ck_plan_names(&b->plan, *n);
    if (!names) return CK_NOMEM;
    return changed ? ck_plan_project(&b->plan, *n, exprs, names, s->field_count, n) : CK_OK;
}

ck_status ck_bind_root_query(ck_binder *b, const ck_ast_query *q, ck_output *out) {
    ck_plan_node *n;
    CK_TRY(ck_bind_query(b, q, true, &n));
    CK_TRY(ck_bind_typed_nulls(b, &n, q->pos));
    CK_TRY(distinct_names(b, &n));
    *out = (ck_output){.node = n, .schema = n->schema, .pos = q->pos};
    if (n->key_count && n->keys[0].count) out->key = n->keys[0].at, out->key_count = n->keys[0].count;
    return CK_OK;
}
