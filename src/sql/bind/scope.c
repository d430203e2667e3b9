/* Names: columns of the tables in FROM, fields of their rows. */
#include <stdio.h>

#include "base/suggest.h"
#include "sql/bind/bind_int.h"

uint32_t ck_bind_find_field(const ck_schema *s, uint32_t first, uint32_t count, ck_view name, bool quoted,
                            bool *twice) {
    uint32_t exact = CK_NO_COLUMN, near = CK_NO_COLUMN, exacts = 0, nears = 0;
    for (uint32_t i = first; i < first + count; i++) {
        ck_view n = ck_view_of(s->fields[i].name);
        if (ck_view_eq(n, name)) {
            exact = i, exacts++;
        } else if (!quoted && ck_view_eq_nocase(n, name)) {
            near = i, nears++;
        }
    }
    *twice = exacts ? exacts > 1 : nears > 1;
    return exacts ? exact : near;
}

/* Names that are the same in two tables are qualified in canonical texts. */
ck_status ck_scope_canonical(ck_binder *b, ck_scope *s) {
    const ck_schema *schema = s->node->schema;
    const char **names = CK_BIND_ARRAY(b, schema->field_count, const char *);
    if (!names) return CK_NOMEM;
    for (uint32_t t = 0; t < s->table_count; t++) {
        const ck_scope_table *table = &s->tables[t];
        for (uint32_t i = table->first; i < table->first + table->count; i++) {
            bool twice;
            ck_bind_find_field(schema, 0, schema->field_count, ck_view_of(schema->fields[i].name), true, &twice);
            names[i] = twice && table->name.n ? ck_arena_printf(b->plan.arena, "%.*s.%s", (int)table->name.n,
                                                                table->name.p, schema->fields[i].name)
                                              : schema->fields[i].name;
            if (!names[i]) return ck_bind_nomem(b);
        }
    }
    s->canonical = names;
    return CK_OK;
}

ck_status ck_scope_of_node(ck_binder *b, ck_plan_node *node, ck_view table, ck_scope *out) {
    ck_scope_table *t = CK_BIND_ARRAY(b, 1, ck_scope_table);
    if (!t) return CK_NOMEM;
    *t = (ck_scope_table){.name = table, .count = node->schema->field_count};
    *out = (ck_scope){.node = node, .tables = t, .table_count = 1};
    return ck_scope_canonical(b, out);
}

static const ck_scope_table *find_table(const ck_scope *s, ck_view name, bool quoted) {
    const ck_scope_table *near = NULL;
    for (uint32_t i = 0; i < s->table_count; i++) {
        if (s->tables[i].name.n == 0) continue;
        if (ck_view_eq(s->tables[i].name, name)) return &s->tables[i];
        if (!quoted && ck_view_eq_nocase(s->tables[i].name, name)) near = &s->tables[i];
    }
    return near;
}

static const ck_scope_table *table_of(const ck_scope *s, uint32_t column) {
    for (uint32_t i = 0; i < s->table_count; i++)
        if (column - s->tables[i].first < s->tables[i].count) return &s->tables[i];
    return NULL;
}

/* Columns that names can mean; joined subqueries stand behind them. */
static uint32_t named_width(const ck_scope *s) {
    uint32_t width = 0;
    for (uint32_t i = 0; i < s->table_count; i++)
        if (s->tables[i].first + s->tables[i].count > width) width = s->tables[i].first + s->tables[i].count;
    return width;
}

/* ---- messages ---- */

static bool is_alias(const ck_bind_place *place, ck_view name) {
    for (const ck_ast_item *i = place->aliases ? place->aliases->first : NULL; i; i = i->next)
        if (i->alias.text.n && ck_view_eq_nocase(i->alias.text, name)) return true;
    return false;
}

static ck_status unknown(ck_binder *b, const ck_bind_place *place, const ck_scope_table *table, const ck_ast_expr *e) {
    const ck_scope *s = place->scope;
    ck_suggest near;
    if (!table && is_alias(place, e->name))
        return ck_bind_fail(b, e->sign,
                            "\"%.*s\" is an alias of the SELECT list, which %s does not see; repeat the expression, or "
                            "put the SELECT into a subquery",
                            ck_cut(e->name), e->name.p, place->clause);
    if (!s->node || s->no_from)
        return ck_bind_fail(b, e->sign,
                            s->node ? "unknown column \"%.*s\": there is no FROM" : "column \"%.*s\" cannot stand here",
                            ck_cut(e->name), e->name.p);
    ck_suggest_init(&near, e->name);
    uint32_t first = table ? table->first : 0, count = table ? table->count : named_width(s);
    for (uint32_t i = first; i < first + count; i++)
        ck_suggest_offer(&near, ck_view_of(s->node->schema->fields[i].name));
    char where[160] = "";
    if (table) snprintf(where, sizeof where, " in \"%.*s\"", ck_cut(table->name), table->name.p);
    if (near.best.n)
        return ck_bind_fail(b, e->sign, "unknown column \"%.*s\"%s; did you mean \"%.*s\"?", ck_cut(e->name), e->name.p,
                            where, ck_cut(near.best), near.best.p);
    if (e->quoted && !table && ck_source_slice(b->source, e->pos).p[0] == '"')
        return ck_bind_fail(b, e->sign, "unknown column \"%.*s\"; a text is written in single quotes: '%.*s'",
                            ck_cut(e->name), e->name.p, ck_cut(e->name), e->name.p);
    return ck_bind_fail(b, e->sign, "unknown column \"%.*s\"%s", ck_cut(e->name), e->name.p, where);
}

static ck_status unknown_table(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e) {
    const ck_scope *s = place->scope;
    ck_suggest near;
    ck_suggest_init(&near, e->name);
    for (uint32_t i = 0; i < s->table_count; i++) ck_suggest_offer(&near, s->tables[i].name);
    for (uint32_t i = 0; s->node && i < named_width(s); i++)
        ck_suggest_offer(&near, ck_view_of(s->node->schema->fields[i].name));
    if (near.best.n)
        return ck_bind_fail(b, e->pos, "there is no table or column \"%.*s\" here; did you mean \"%.*s\"?",
                            ck_cut(e->name), e->name.p, ck_cut(near.best), near.best.p);
    return ck_bind_fail(b, e->pos, "there is no table or column \"%.*s\" here", ck_cut(e->name), e->name.p);
}

static ck_status ambiguous(ck_binder *b, const ck_scope *s, const ck_ast_expr *e) {
    const ck_schema *schema = s->node->schema;
    char text[300];
    size_t n = 0;
    const ck_scope_table *last = NULL;
    text[0] = 0;
    for (uint32_t i = 0; i < named_width(s) && n < sizeof text - 1; i++) {
        const ck_scope_table *t = table_of(s, i);
        if (!ck_view_eq_nocase(ck_view_of(schema->fields[i].name), e->name) || !t || !t->name.n) continue;
        if (t == last)
            return ck_bind_fail(b, e->sign,
                                "column \"%.*s\" is ambiguous: \"%.*s\" has two of that name; rename one with AS",
                                ck_cut(e->name), e->name.p, ck_cut(t->name), t->name.p);
        last = t;
        int w = snprintf(text + n, sizeof text - n, "%s%.*s.%s", n ? " or " : ": write ", ck_cut(t->name), t->name.p,
                         schema->fields[i].name);
        n += w > 0 ? (size_t)w : 0;
    }
    return ck_bind_fail(b, e->sign, "column \"%.*s\" is ambiguous%s", ck_cut(e->name), e->name.p, text);
}

/* ---- resolution ---- */

static ck_status found(ck_binder *b, const ck_scope *s, uint32_t column, const ck_ast_expr *e, ck_expr **out) {
    *out = ck_plan_column(&b->plan, s->node, column);
    if (!*out) return CK_NOMEM;
    (*out)->line = e->pos.line, (*out)->col = e->pos.column;
    return CK_OK;
}

static ck_status column_of_table(ck_binder *b, const ck_bind_place *place, const ck_scope_table *t,
                                 const ck_ast_expr *e, ck_expr **out) {
    const ck_scope *s = place->scope;
    bool twice;
    uint32_t c = ck_bind_find_field(s->node->schema, t->first, t->count, e->name, e->quoted, &twice);
    if (twice) return ambiguous(b, s, e);
    return c == CK_NO_COLUMN ? unknown(b, place, t, e) : found(b, s, c, e, out);
}

uint32_t ck_scope_find(const ck_scope *s, ck_view name, bool quoted, bool *twice) {
    uint32_t found_at = CK_NO_COLUMN, width = named_width(s);
    *twice = false;
    if (!s->node) return CK_NO_COLUMN;
    if (!s->hidden) return ck_bind_find_field(s->node->schema, 0, width, name, quoted, twice);
    for (uint32_t from = 0, to; from < width; from = to + 1) { /* runs between hidden columns */
        for (to = from; to < width && !s->hidden[to];) to++;
        bool again = false;
        uint32_t c = ck_bind_find_field(s->node->schema, from, to - from, name, quoted, &again);
        if (again || (c != CK_NO_COLUMN && found_at != CK_NO_COLUMN)) *twice = true;
        if (c != CK_NO_COLUMN) found_at = c;
    }
    return found_at;
}

ck_status ck_scope_extended(ck_binder *b, ck_scope *s, uint32_t old_width) {
    uint32_t width = s->node->schema->field_count;
    const char **canonical = CK_BIND_ARRAY(b, width, const char *);
    if (!canonical) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++)
        canonical[i] = i < old_width && s->canonical ? s->canonical[i] : s->node->schema->fields[i].name;
    s->canonical = canonical;
    return CK_OK;
}

/* An unqualified column; *out NULL: there is none of that name. */
static ck_status plain_column(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    const ck_scope *s = place->scope;
    bool twice = false;
    *out = NULL;
    if (!s->node) return CK_OK;
    uint32_t c = ck_scope_find(s, e->name, e->quoted, &twice);
    if (twice) return ambiguous(b, s, e);
    return c == CK_NO_COLUMN ? CK_OK : found(b, s, c, e, out);
}

/* A column of the query around, where it may be named; *out NULL: it has none of that name either. */
static ck_status outer_column(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *table, const ck_ast_expr *e,
                              ck_expr **out) {
    const ck_outer *o = place->outer ? place->outer : place->shut;
    ck_bind_place around = {.scope = o ? o->scope : NULL, .clause = place->clause};
    const ck_scope_table *t = NULL;
    *out = NULL;
    if (!o || !o->scope->node) return CK_OK;
    if (table && !(t = find_table(o->scope, table->name, table->quoted))) return CK_OK;
    CK_TRY(t ? column_of_table(b, &around, t, e, out) : plain_column(b, &around, e, out));
    if (!*out) return CK_OK;
    if (!place->outer)
        return ck_bind_refuse(b, e->pos,
                              "a column of the query around can be used in WHERE of the subquery only, not in %s",
                              place->clause);
    (*out)->column |= CK_BIND_OUTER;
    *out = ck_expr_column(b->plan.arena, (*out)->column, (*out)->type, (*out)->nullable);
    return *out ? CK_OK : ck_bind_nomem(b);
}

/* Functions that SQL calls without parentheses. */
static const char *bare_function(const ck_ast_expr *e) {
    static const char *const names[] = {"current_date", "current_time", "current_timestamp", "localtime",
                                        "localtimestamp"};
    for (size_t i = 0; !e->quoted && i < CK_ARRAY_COUNT(names); i++)
        if (ck_view_eq_nocase(e->name, ck_view_of(names[i]))) return names[i];
    return NULL;
}

static ck_status field_of(ck_binder *b, const ck_ast_expr *e, ck_expr *row, ck_expr **out) {
    if (row->type->kind != CK_TYPE_ROW)
        return ck_bind_fail(b, e->sign, "%s has no field \"%.*s\": only a ROW has fields",
                            ck_type_name(b->plan.arena, row->type), ck_cut(e->name), e->name.p);
    ck_schema s = {row->type->fields, row->type->field_count};
    bool twice;
    uint32_t c = ck_bind_find_field(&s, 0, s.field_count, e->name, e->quoted, &twice);
    if (c == CK_NO_COLUMN) {
        ck_suggest near;
        ck_suggest_init(&near, e->name);
        for (uint32_t i = 0; i < s.field_count; i++) ck_suggest_offer(&near, ck_view_of(s.fields[i].name));
        return near.best.n ? ck_bind_fail(b, e->sign, "unknown field \"%.*s\"; did you mean \"%.*s\"?", ck_cut(e->name),
                                          e->name.p, ck_cut(near.best), near.best.p)
                           : ck_bind_fail(b, e->sign, "unknown field \"%.*s\"", ck_cut(e->name), e->name.p);
    }
    ck_expr *args[2] = {row, NULL};
    CK_TRY(ck_bind_string(b, ck_view_of(s.fields[c].name), e->sign, &args[1]));
    return ck_bind_function(b, "field", args, 2, e->pos, out);
}

ck_status ck_bind_name(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_expr *base;
    if (e->kind == CK_AST_NAME) {
        CK_TRY(plain_column(b, place, e, out));
        if (!*out) CK_TRY(outer_column(b, place, NULL, e, out));
        if (*out) return CK_OK;
        const char *function = bare_function(e);
        return function ? ck_bind_function(b, function, NULL, 0, e->pos, out) : unknown(b, place, NULL, e);
    }
    const ck_ast_expr *inner = e->args.first;
    if (inner->kind == CK_AST_NAME) {
        const ck_scope_table *t = find_table(place->scope, inner->name, inner->quoted);
        if (t) return column_of_table(b, place, t, e, out);
        CK_TRY(outer_column(b, place, inner, e, out));
        if (*out) return CK_OK;
        CK_TRY(plain_column(b, place, inner, &base));
        if (!base) CK_TRY(outer_column(b, place, NULL, inner, &base));
        if (!base) return unknown_table(b, place, inner);
    } else {
        CK_TRY(ck_bind_expr(b, place, inner, &base));
    }
    return field_of(b, e, base, out);
}

ck_status ck_scope_star(ck_binder *b, ck_scope *s, const ck_ast_expr *star, uint32_t *columns, uint32_t *count) {
    const ck_ast_expr *of = star->args.first;
    uint32_t first = 0, end = s->node ? s->node->schema->field_count : 0;
    if (of) {
        if (of->kind != CK_AST_NAME)
            return ck_bind_refuse(b, of->pos, ".* takes a table; name the fields of a ROW one by one");
        const ck_scope_table *t = find_table(s, of->name, of->quoted);
        ck_bind_place place = {.scope = s, .clause = "SELECT"};
        if (!t) {
            ck_expr *column = NULL;
            CK_TRY(plain_column(b, &place, of, &column));
            if (!column) return unknown_table(b, &place, of);
            return ck_bind_refuse(b, of->pos, ".* takes a table; name the fields of a ROW one by one");
        }
        first = t->first, end = t->first + t->count;
    } else if (!s->node || s->no_from) {
        return ck_bind_fail(b, star->pos, "* stands for the columns of FROM, and there is no FROM");
    }
    if (of) {
        for (uint32_t i = first; i < end; i++) columns[(*count)++] = i;
        return CK_OK;
    }
    for (int merged = 1; merged >= 0; merged--)
        for (uint32_t t = 0; t < s->table_count; t++)
            for (uint32_t i = s->tables[t].first; i < s->tables[t].first + s->tables[t].count; i++)
                if (s->tables[t].merged == (merged == 1) && !(s->hidden && s->hidden[i])) columns[(*count)++] = i;
    return CK_OK;
}
