/* late_table: rows that would be dropped as too late go to another table, with the columns they had when they were
 * read.
 */
#include "sql/bind/create_int.h"

static const char *late_table_of(const ck_catalog_entry *t) {
    const ck_table_options *o = &t->table.decl.options;
    for (uint32_t i = 0; i < o->count; i++)
        if (strcmp(o->names[i], "late_table") == 0) return o->values[i];
    return NULL;
}

/* ---- does it fit ---- */

/* What is wrong with the option is placed where it is given. */
static ck_status misfit(ck_binder *b, const ck_catalog_entry *from, ck_status status, const char *fmt, ...)
    CK_PRINTF(4, 5);
static ck_status misfit(ck_binder *b, const ck_catalog_entry *from, ck_status status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    ck_vfail(b->err, status, fmt, ap);
    va_end(ap);
    return ck_table_place(&from->table, "late_table", status, b->err);
}

static ck_status find_target(ck_binder *b, const ck_catalog_entry *from, const char *name, ck_pos at,
                             const ck_catalog_entry **out) {
    const ck_catalog_entry *e = ck_catalog_find(b->catalog, ck_view_of(name), false);
    ck_suggest near;
    ck_suggest_init(&near, ck_view_of(name));
    if (!e) ck_catalog_offer(b->catalog, false, &near);
    if (!e || e->kind != CK_ENTRY_TABLE)
        return misfit(b, from, CK_INVALID, "table \"%s\": late_table = '%s' is no table%s", from->name, name,
                      e             ? ""
                      : near.best.n ? ck_bind_near(b, &near)
                                    : "; create it first");
    if (e == from)
        return misfit(b, from, CK_REFUSED,
                      "table \"%s\": late_table = '%s' is the table itself; late rows go to another one", from->name,
                      name);
    if (e->table.decl.primary_key_count)
        return misfit(b, from, CK_REFUSED,
                      "table \"%s\": late_table = '%s' has a PRIMARY KEY, and late rows would replace each "
                      "other; declare it without one",
                      from->name, name);
    *out = e;
    return ck_bind_check_sink(b, &e->table, at);
}

static const ck_table_column *column_named(const ck_table_def *t, const char *name) {
    for (uint32_t i = 0; i < t->column_count; i++)
        if (strcmp(t->columns[i].name, name) == 0) return &t->columns[i];
    return NULL;
}

static bool is_kind(const ck_field *f) { return strcmp(f->name, "op") == 0 && f->type->kind == CK_TYPE_VARCHAR; }

/* The value of one column of the late table; NULL: the kind of change. */
static ck_status value_for(ck_binder *b, const ck_catalog_entry *from, const ck_catalog_entry *late, const ck_field *f,
                           ck_expr **out) {
    const ck_table_column *c = column_named(&from->table, f->name);
    *out = NULL;
    if (!c && is_kind(f)) return CK_OK;
    if (!c)
        return misfit(b, from, CK_INVALID,
                      "table \"%s\": its late_table \"%s\" has a column \"%s\", which it has not; a late table has "
                      "columns of the table, and may have op VARCHAR, the kind of change",
                      from->name, late->name, f->name);
    if (!ck_type_eq(c->type, f->type))
        return misfit(b, from, CK_INVALID, "table \"%s\": \"%s\" is %s, and %s in its late_table \"%s\"", from->name,
                      f->name, ck_type_name(b->plan.arena, c->type), ck_type_name(b->plan.arena, f->type), late->name);
    if (c->nullable && !f->nullable)
        return misfit(b, from, CK_INVALID, "table \"%s\": \"%s\" may be NULL, and is NOT NULL in its late_table \"%s\"",
                      from->name, f->name, late->name);
    *out = c->computed ? c->computed : ck_expr_column(b->plan.arena, (uint32_t)c->physical, c->type, c->nullable);
    return *out ? CK_OK : ck_bind_nomem(b);
}

/* ---- where the window's rows are from ---- */

/* The table with a late_table among those whose rows n has. */
static const ck_catalog_entry *late_origin(const ck_plan_node *n, uint32_t column) {
    ck_time_origin o = ck_plan_time_of(n, column);
    const ck_catalog_entry *found = NULL;
    if (o.role == CK_TIME_NONE || !o.node) return NULL;
    if (o.node->kind == CK_PLAN_WINDOW) return late_origin(o.node->inputs[0], o.node->window.of.time);
    if (o.node->kind == CK_PLAN_SCAN) return late_table_of(o.table) ? o.table : NULL;
    if (o.node->kind != CK_PLAN_UNION) return NULL;
    for (uint32_t i = 0; i < o.node->input_count && !found; i++)
        for (uint32_t k = 0; k < o.node->schema->field_count && !found; k++)
            if (ck_plan_time_of(o.node->inputs[i], k).role == CK_TIME_ROW) found = late_origin(o.node->inputs[i], k);
    return found;
}

const char *ck_bind_late_table_of(const ck_plan_node *n, uint32_t time) {
    const ck_catalog_entry *from = late_origin(n, time);
    return from ? late_table_of(from) : NULL;
}

static ck_status values_for(ck_binder *b, const ck_catalog_entry *from, const ck_catalog_entry *late, ck_expr **values,
                            uint32_t *place, uint32_t *count) {
    const ck_schema *s = late->table.decl.schema;
    *count = 0;
    for (uint32_t i = 0; i < s->field_count; i++) {
        CK_TRY(value_for(b, from, late, &s->fields[i], &values[*count]));
        place[i] = values[*count] ? (*count)++ : CK_NO_COLUMN;
    }
    return CK_OK;
}

ck_status ck_bind_late_rows(ck_binder *b, uint32_t time, ck_pos at, ck_plan_node **n, ck_plan_late *out) {
    const ck_catalog_entry *from = late_origin(*n, time), *late = NULL;
    *out = (ck_plan_late){0};
    if (!from) return CK_OK;
    const char *name = late_table_of(from);
    CK_TRY(find_target(b, from, name, at, &late));
    uint32_t width = late->table.decl.schema->field_count, count;
    ck_expr **values = CK_BIND_ARRAY(b, width, ck_expr *);
    uint32_t *place = CK_BIND_ARRAY(b, width, uint32_t), *columns = CK_BIND_ARRAY(b, width, uint32_t);
    bool fine, kind = false;
    if (!values || !place || !columns) return CK_NOMEM;
    CK_TRY(values_for(b, from, late, values, place, &count));
    CK_TRY(ck_plan_carry(&b->plan, n, from, values, count, columns, &fine));
    if (!fine)
        return ck_bind_warn(b,
                            "late rows of \"%s\" are only counted here, not put into \"%s\": what comes here are no "
                            "longer rows of that table alone",
                            from->name, name);
    for (uint32_t i = 0; i < width; i++) {
        kind |= place[i] == CK_NO_COLUMN;
        place[i] = place[i] == CK_NO_COLUMN ? CK_NO_COLUMN : columns[place[i]];
    }
    if ((*n)->mode == CK_MODE_RETRACT && !kind)
        return ck_bind_refuse(b, at,
                              "rows of \"%s\" change here, and its late_table \"%s\" cannot tell a row that comes from "
                              "one that goes; give it a column op VARCHAR",
                              from->name, name);
    *out = (ck_plan_late){late, {place, width}};
    return CK_OK;
}
