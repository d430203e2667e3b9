/* Sources: tables (the optimiser has made one scan of all scans of a table) and rows of constants. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

/* ---- the source's parameters ---- */

static bool add_field(ck_lower_state *s, yyjson_mut_doc *doc, yyjson_mut_val *list, const ck_field *f) {
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
    const char *type = ck_plan_type_text(s->l->plan, f->type);
    return v && type && yyjson_mut_obj_add_str(doc, v, "name", f->name) &&
           yyjson_mut_obj_add_str(doc, v, "type", type) && yyjson_mut_obj_add_bool(doc, v, "nullable", f->nullable);
}

/* What state calls a column that has another name now. */
static bool add_rename(ck_lower_params *p, yyjson_mut_val *list, const ck_table_def *def, uint32_t physical) {
    const char *was = ck_table_state_name(def, physical);
    return was == def->decl.schema->fields[physical].name ||
           yyjson_mut_obj_add_str(p->doc, yyjson_mut_arr_get_last(list), "renamed_from", was);
}

/* Whether the column is read for the time of its row. */
typedef struct time_column {
    uint32_t column;
    bool found;
} time_column;
static void look(void *arg, uint32_t column) {
    time_column *t = (time_column *)arg;
    if (t->column == column) t->found = true;
}

static bool is_checked(const ck_table_def *def, uint32_t column) {
    const ck_table_decl *t = &def->decl;
    time_column time = {column, false};
    if (def->time.expr) ck_expr_visit_columns(def->time.expr, look, &time);
    if (time.found) return true;
    for (uint32_t i = 0; i < t->primary_key_count; i++)
        if (t->primary_key[i] == column) return true;
    return !t->schema->fields[column].nullable;
}

static bool add_event_time(ck_lower_params *p, const ck_table_time *t) {
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(p->doc, p->root, "event_time"), *e;
    return v && ck_expr_to_json(t->expr, p->doc, &e) == CK_OK && yyjson_mut_obj_add_val(p->doc, v, "expr", e) &&
           yyjson_mut_obj_add_uint(p->doc, v, "lag_us", (uint64_t)t->lag_us) &&
           yyjson_mut_obj_add_uint(p->doc, v, "idle_us", (uint64_t)t->idle_us);
}

static bool is_replayed(const ck_lower_state *s, const ck_table_decl *t) {
    const char *name = s->l->options->replay_table;
    return name && ck_view_eq_nocase(ck_view_of(t->name), ck_view_of(name));
}

/* The table's options; of one that is replayed, those that say how a record is read, and the file it is read from. */
static bool add_options(const ck_lower_state *s, yyjson_mut_doc *doc, yyjson_mut_val *to, const ck_table_decl *t) {
    static const char *const not_replayed[] = {"path",   "on_error",    "dead_letter_table",
                                               "follow", "compression", "rate_limit"};
    bool replayed = is_replayed(s, t), fine = true, csv = false, format = false;
    for (uint32_t i = 0; fine && i < t->options.count; i++) {
        const char *name = t->options.names[i], *value = t->options.values[i];
        bool keep = true;
        for (size_t k = 0; replayed && k < CK_ARRAY_COUNT(not_replayed); k++)
            keep = keep && strcmp(name, not_replayed[k]) != 0;
        if (strcmp(name, "path") == 0) csv = strstr(value, ".csv") != NULL;
        if (strcmp(name, "format") == 0) format = true;
        if (keep) fine = yyjson_mut_obj_add_str(doc, to, name, value);
    }
    if (!replayed || !fine) return fine;
    return yyjson_mut_obj_add_str(doc, to, "path", s->l->options->replay_path) &&
           yyjson_mut_obj_add_str(doc, to, "on_error", "fail") &&
           (format || yyjson_mut_obj_add_str(doc, to, "format", csv ? "csv" : "json"));
}

ck_status ck_lower_params_source(ck_lower_state *s, ck_lower_params *p, const ck_table_def *def, ck_columns columns) {
    const ck_table_decl *t = &def->decl;
    bool fine = yyjson_mut_obj_add_str(p->doc, p->root, "table", t->name);
    yyjson_mut_val *schema = fine ? yyjson_mut_obj_add_arr(p->doc, p->root, "table_schema") : NULL;
    if (!schema) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < t->schema->field_count; i++)
        if (!add_field(s, p->doc, schema, &t->schema->fields[i]) || !add_rename(p, schema, def, i))
            return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, p, "columns", columns));
    yyjson_mut_val *checked = yyjson_mut_obj_add_arr(p->doc, p->root, "checked");
    for (uint32_t i = 0; checked && i < t->schema->field_count; i++)
        if (is_checked(def, i) && !yyjson_mut_arr_add_uint(p->doc, checked, i)) checked = NULL;
    yyjson_mut_val *options = checked ? yyjson_mut_obj_add_obj(p->doc, p->root, "options") : NULL;
    return options && add_options(s, p->doc, options, t) ? CK_OK : ck_lower_nomem(s);
}

static ck_status source_params(ck_lower_state *s, const ck_table_def *def, ck_columns columns, const char **out) {
    ck_lower_params p;
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_source(s, &p, def, columns));
    if (s->event_time && def->time.expr && !add_event_time(&p, &def->time)) return ck_lower_nomem(s);
    return ck_lower_params_end(s, &p, out);
}

/* What the rows of a source wait for: "watermark ts - 5 s, follows". */
static ck_status source_facts(ck_lower_state *s, const ck_table_def *t, const char **out) {
    const char *follow = ck_table_decl_option(&t->decl, "follow"), *idle;
    bool follows = follow && strcmp(follow, "true") == 0, time = s->event_time && t->time.expr;
    ck_bytes text;
    *out = NULL;
    if (!s->l->options->full_explain || (!follows && !time)) return CK_OK;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = CK_OK;
    if (time) {
        const char *lag = ck_label_duration(s, t->time.lag_us);
        st = lag ? ck_bytes_str(&text, "watermark ") : CK_NOMEM;
        const char **names = CK_LOWER_ARRAY(s, t->decl.schema->field_count, const char *);
        for (uint32_t i = 0; names && i < t->decl.schema->field_count; i++) names[i] = t->decl.schema->fields[i].name;
        if (!names) st = CK_NOMEM;
        if (st == CK_OK) st = ck_expr_print_for_people(t->time.expr, names, &text);
        if (st == CK_OK && t->time.lag_us) st = ck_bytes_printf(&text, " - %s", lag);
        idle = st == CK_OK && t->time.idle_us ? ck_label_duration(s, t->time.idle_us) : "";
        if (st == CK_OK && !idle) st = CK_NOMEM;
        if (st == CK_OK && *idle) st = ck_bytes_printf(&text, ", idle after %s", idle);
    }
    if (st == CK_OK && follows) st = ck_bytes_printf(&text, "%sfollows what is appended", time ? ", " : "");
    if (st == CK_OK && !(*out = ck_arena_strndup(s->arena, text.p, text.n))) st = CK_NOMEM;
    ck_bytes_destroy(&text);
    return st == CK_OK ? CK_OK : ck_lower_nomem(s);
}

ck_status ck_lower_scan(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_table_def *t = &n->scan.table->table;
    ck_planned_op op = {
        .base = n->identity, .canonical = n->canonical, .type = t->connector->source_type, .schema = n->schema};
    const char *columns = ck_label_columns(s, n->schema, (ck_columns){NULL, n->schema->field_count});
    op.label = columns ? ck_arena_printf(s->arena, "%s (%s)", n->scan.table->name, columns) : NULL;
    if (!op.label) return ck_lower_nomem(s);
    if (t->connector->once && (op.why = t->connector->once(&t->decl))) op.guarantee = CK_NO_GUARANTEE;
    CK_TRY(source_facts(s, t, &op.facts));
    CK_TRY(source_params(s, t, n->scan.columns, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    return is_replayed(s, &t->decl) ? CK_OK : ck_lower_dead_letters(s, n, out);
}

/* The rows themselves where they are few. */
static const char *values_label(ck_lower_state *s, const ck_plan_node *n) {
    uint32_t width = n->schema->field_count;
    ck_bytes text;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = CK_OK;
    for (uint32_t r = 0; st == CK_OK && r < n->values.row_count && text.n < 200; r++) {
        st = ck_bytes_str(&text, r ? ", (" : "(");
        for (uint32_t c = 0; st == CK_OK && c < width; c++) {
            if (c) st = ck_bytes_str(&text, ", ");
            if (st == CK_OK) st = ck_expr_print_for_people(n->values.rows[(size_t)r * width + c], NULL, &text);
        }
        if (st == CK_OK) st = ck_bytes_char(&text, ')');
    }
    return ck_label_cut(s, &text, st);
}

ck_status ck_lower_values(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    ck_lower_params p;
    uint32_t width = n->schema->field_count;
    CK_TRY(ck_lower_params_begin(s, &p));
    yyjson_mut_val *rows = yyjson_mut_obj_add_arr(p.doc, p.root, "rows"), *v;
    for (uint32_t r = 0; rows && r < n->values.row_count; r++) {
        yyjson_mut_val *row = yyjson_mut_arr_add_arr(p.doc, rows);
        for (uint32_t c = 0; row && c < width; c++)
            if (ck_expr_to_json(n->values.rows[(size_t)r * width + c], p.doc, &v) != CK_OK ||
                !yyjson_mut_arr_append(row, v))
                row = NULL;
        if (!row) return ck_lower_nomem(s);
    }
    if (!rows) return ck_lower_nomem(s);
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = "source.values",
                        .label = values_label(s, n),
                        .schema = n->schema,
                        .single = true};
    if (!op.label) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    return ck_lower_add(s, &op, &out->op);
}
