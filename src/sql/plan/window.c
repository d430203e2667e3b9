/* Windows over event time: rows with the windows they are in, and GROUP BY a window. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"

static const char *const kind_words[] = {"tumble", "hop", "cumulate", "attached", "session"};
const char *ck_plan_window_word(ck_plan_window_kind k) { return kind_words[k]; }

static void window_fields(const ck_plan_window *w, ck_field *out) {
    out[0] = (ck_field){"window_start", w->type, false};
    out[1] = (ck_field){"window_end", w->type, false};
    out[2] = (ck_field){"window_time", w->type, false};
}

/* What the window is, for identity and canonical text. */
static const char *text_of(ck_plan *p, const ck_plan_node *input, const ck_plan_window *w) {
    if (w->kind == CK_PLAN_WINDOW_ATTACHED) return "window";
    const char *time = w->time == CK_NO_COLUMN ? "proctime()" : input->schema->fields[w->time].name;
    if (w->kind == CK_PLAN_WINDOW_TUMBLE || w->kind == CK_PLAN_WINDOW_SESSION)
        return ck_arena_printf(p->arena, "%s(%s,%lld%s)", kind_words[w->kind], time, (long long)w->size_us,
                               w->offset_us ? ck_arena_printf(p->arena, ",%lld", (long long)w->offset_us) : "");
    return ck_arena_printf(p->arena, "%s(%s,%lld,%lld%s)", kind_words[w->kind], time, (long long)w->slide_us,
                           (long long)w->size_us,
                           w->offset_us ? ck_arena_printf(p->arena, ",%lld", (long long)w->offset_us) : "");
}

ck_status ck_plan_window_rows(ck_plan *p, ck_plan_node *input, const ck_plan_window *w, ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    uint32_t width = input->schema->field_count;
    CK_TRY(ck_plan_new(p, CK_PLAN_WINDOW, &input, 1, &n));
    CK_TRY(ck_plan_schema_new(p, width + CK_WINDOW_FIELDS, &schema, &fields));
    memcpy(fields, input->schema->fields, width * sizeof *fields);
    window_fields(w, fields + width);
    n->schema = schema;
    n->window.of = *w;
    const char *text = text_of(p, input, w);
    if (!text) return ck_plan_nomem(p);
    ck_plan_canonical(n, ck_view_of(text));
    *out = n;
    return CK_OK;
}

/* Keys of the output: the group's, and what tells its windows apart. */
static bool add_keys(ck_plan *p, ck_plan_node *n, uint32_t keys) {
    uint32_t *key = CK_PLAN_ARRAY(p, keys + 2u, uint32_t);
    if (!key) return false;
    for (uint32_t i = 0; i < keys; i++) key[i] = i;
    ck_plan_window_kind k = n->window.of.kind;
    key[keys] = keys, key[keys + 1] = keys + 1;
    if (k == CK_PLAN_WINDOW_ATTACHED) return ck_plan_add_key(p, n, key, keys + 2);
    if (k != CK_PLAN_WINDOW_CUMULATE && !ck_plan_add_key(p, n, key, keys + 1)) return false;
    key[keys] = keys + 1;
    return ck_plan_add_key(p, n, key, keys + 1);
}

static ck_status canonical_of(ck_plan *p, ck_plan_node *n, const char *window, const char *key_text) {
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = ck_bytes_printf(&text, "%s;%s", window, key_text);
    for (uint32_t i = 0; s == CK_OK && i < n->window.call_count; i++) {
        const ck_plan_aggregate *c = &n->window.calls[i];
        const char *call = ck_plan_call_text(p->arena, c);
        s = call ? ck_bytes_printf(&text, ";%s %s", call, c->filter_text ? c->filter_text : "") : CK_NOMEM;
    }
    if (s == CK_OK) ck_plan_canonical(n, ck_bytes_as_view(&text));
    ck_bytes_destroy(&text);
    return s == CK_OK ? CK_OK : ck_plan_nomem(p);
}

ck_status ck_plan_window_agg(ck_plan *p, ck_plan_node *input, const ck_plan_window *w, ck_columns keys,
                             const ck_plan_aggregate *calls, uint32_t call_count, const char *key_text,
                             const char *const *call_names, ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    CK_TRY(ck_plan_new(p, CK_PLAN_WINDOW_AGG, &input, 1, &n));
    CK_TRY(ck_plan_schema_new(p, keys.count + CK_WINDOW_FIELDS + call_count, &schema, &fields));
    for (uint32_t i = 0; i < keys.count; i++) fields[i] = input->schema->fields[keys.at[i]];
    window_fields(w, fields + keys.count);
    for (uint32_t i = 0; i < call_count; i++)
        fields[keys.count + CK_WINDOW_FIELDS + i] = (ck_field){call_names[i], calls[i].type, calls[i].nullable};
    n->schema = schema;
    n->window.of = *w;
    n->window.keys = keys, n->window.calls = calls, n->window.call_count = call_count;
    n->mode = w->lateness_us ? CK_MODE_RETRACT : CK_MODE_APPEND; /* a window says its rows once, when it is over */
    if (!add_keys(p, n, keys.count)) return CK_NOMEM;
    const char *window = text_of(p, input, w);
    if (!window) return ck_plan_nomem(p);
    if (!key_text && !(key_text = ck_plan_key_names(p, input, keys))) return ck_plan_nomem(p);
    CK_TRY(canonical_of(p, n, window, key_text));
    const char *key = *key_text ? ck_arena_printf(p->arena, "%s,%s", window, key_text) : window;
    if (!key) return ck_plan_nomem(p);
    CK_TRY(ck_plan_identify(p, n, w->kind == CK_PLAN_WINDOW_SESSION ? "session_agg" : "window_agg", key));
    *out = n;
    return CK_OK;
}

/* ---- which columns are of time ---- */

bool ck_plan_calls_proctime(const ck_expr *e) {
    return e->kind == CK_EXPR_CALL && strcmp(e->fn->name, "proctime") == 0;
}

/* Whether e over n - filters and projections over a scan - is `own` over the table's columns. */
static bool same_over_scan(const ck_plan_node *n, const ck_expr *e, const ck_expr *own) {
    while (n->kind == CK_PLAN_FILTER) n = n->inputs[0];
    if (e->kind == CK_EXPR_COLUMN && n->kind == CK_PLAN_PROJECT)
        return same_over_scan(n->inputs[0], n->project.exprs[e->column], own);
    if (e->kind != own->kind) return false;
    if (e->kind == CK_EXPR_COLUMN) return n->scan.columns.at[e->column] == own->column;
    if (e->kind == CK_EXPR_LITERAL) return ck_expr_equal(e, own);
    bool same = e->fn == own->fn && e->arg_count == own->arg_count && ck_type_eq(e->type, own->type);
    for (uint32_t i = 0; same && i < e->arg_count; i++) same = same_over_scan(n, e->args[i], own->args[i]);
    return same;
}

static ck_time_origin of_scan(const ck_plan_node *n, const ck_expr *e) {
    const ck_plan_node *scan = n;
    while (scan->kind == CK_PLAN_FILTER || scan->kind == CK_PLAN_PROJECT) scan = scan->inputs[0];
    if (scan->kind != CK_PLAN_SCAN) return (ck_time_origin){0};
    const ck_table_time *t = &scan->scan.table->table.time;
    if (!t->expr || !same_over_scan(n, e, t->expr)) return (ck_time_origin){0};
    return (ck_time_origin){CK_TIME_ROW, scan, t->lateness_us, scan->scan.table};
}

static ck_time_origin of_window(const ck_plan_node *n, uint32_t field, const ck_time_origin *time) {
    static const ck_time_role roles[] = {CK_TIME_WINDOW_START, CK_TIME_WINDOW_END, CK_TIME_ROW};
    return (ck_time_origin){roles[field], n, time->lateness_us, time->table};
}

static ck_time_origin of_union(const ck_plan_node *n, uint32_t column) {
    ck_time_origin all = ck_plan_time_of(n->inputs[0], column);
    if (all.role != CK_TIME_ROW) return (ck_time_origin){0};
    for (uint32_t i = 1; i < n->input_count; i++) {
        ck_time_origin o = ck_plan_time_of(n->inputs[i], column);
        if (o.role != CK_TIME_ROW) return (ck_time_origin){0};
        if (o.lateness_us > all.lateness_us) all.lateness_us = o.lateness_us;
    }
    all.node = n;
    return all;
}

static bool is_of_window(const ck_plan_node *n) { return n->kind == CK_PLAN_WINDOW || n->kind == CK_PLAN_WINDOW_AGG; }

/* A join with a side that ends says rows of the other as they come. A join in time passes on how far time has come, so
 * long after that no row is late; padded times are NULL. One of windows has waited for what the tables allow, and its
 * watermark with it. */
static ck_time_origin of_join(const ck_plan_node *n, uint32_t column) {
    ck_time_bounds b;
    uint32_t left = n->inputs[0]->schema->field_count;
    bool right = column >= left;
    if (right ? ck_join_pads_right(n->join.kind) : ck_join_pads_left(n->join.kind)) return (ck_time_origin){0};
    if (n->join.as_of.kind != CK_AS_OF_NONE)
        return right || n->join.as_of.kind == CK_AS_OF_NOW ? (ck_time_origin){0}
                                                           : ck_plan_time_of(n->inputs[0], column);
    if (!ck_plan_time_bounds(n, &b))
        return ck_plan_join_passes_time(n, right) ? ck_plan_time_of(n->inputs[right], right ? column - left : column)
                                                  : (ck_time_origin){0};
    if (b.lower_us == -CK_TIME_UNBOUNDED || b.upper_us == CK_TIME_UNBOUNDED) return (ck_time_origin){0};
    ck_time_origin o = ck_plan_time_of(n->inputs[right], right ? column - left : column);
    if (b.windowed) o.lateness_us = 0;
    return !b.windowed || (o.node && is_of_window(o.node)) ? o : (ck_time_origin){0}; /* as in of_top_n */
}

/* Ranks by event time let rows go before the watermark that settled them; those in a window all at its end, when their
 * own time may be behind the watermark, and the window's is not: over rows that do not change the watermark waits with
 * them for what the table allows. */
static ck_time_origin of_top_n(const ck_plan_node *n, uint32_t column) {
    if (column >= n->inputs[0]->schema->field_count || !(n->top.by_time || n->top.windowed)) return (ck_time_origin){0};
    ck_time_origin o = ck_plan_time_of(n->inputs[0], column);
    if (n->top.windowed && n->inputs[0]->mode == CK_MODE_APPEND) o.lateness_us = 0;
    return n->top.by_time || (o.node && is_of_window(o.node)) ? o : (ck_time_origin){0};
}

bool ck_plan_top_is_windowed(const ck_plan_node *input, ck_plan_top *top) {
    for (uint32_t i = 0; i < top->partition.count; i++) {
        ck_time_origin o = ck_plan_time_of(input, top->partition.at[i]);
        if (o.role != CK_TIME_WINDOW_END) continue;
        top->window_end = top->partition.at[i];
        top->lateness_us = o.lateness_us;
        return true;
    }
    return false;
}

ck_time_origin ck_plan_time_of(const ck_plan_node *n, uint32_t column) {
    uint32_t width;
    ck_time_origin time;
    switch (n->kind) {
    case CK_PLAN_SCAN: {
        ck_expr e = {.kind = CK_EXPR_COLUMN, .column = column};
        return of_scan(n, &e);
    }
    case CK_PLAN_PROJECT: {
        const ck_expr *e = n->project.exprs[column];
        if (e->kind == CK_EXPR_COLUMN) return ck_plan_time_of(n->inputs[0], e->column);
        if (ck_plan_calls_proctime(e)) return (ck_time_origin){.role = CK_TIME_PROCESSING, .node = n};
        return of_scan(n->inputs[0], e);
    }
    case CK_PLAN_FILTER: return ck_plan_time_of(n->inputs[0], column);
    case CK_PLAN_OVER: /* rows come out before the watermark that let them go */
        width = n->inputs[0]->schema->field_count;
        if (n->over.by == CK_BY_END || column >= width) return (ck_time_origin){0};
        return ck_plan_time_of(n->inputs[0], column);
    case CK_PLAN_TOP_N: return of_top_n(n, column);
    case CK_PLAN_UNNEST:
        return column < n->inputs[0]->schema->field_count ? ck_plan_time_of(n->inputs[0], column) : (ck_time_origin){0};
    case CK_PLAN_UNION: return of_union(n, column);
    case CK_PLAN_JOIN: return of_join(n, column);
    case CK_PLAN_WINDOW:
        width = n->inputs[0]->schema->field_count;
        if (column < width) {
            time = ck_plan_time_of(n->inputs[0], column);
            bool ends = n->window.of.processing && time.role != CK_TIME_PROCESSING; /* the watermark is the clock's */
            return ends ? (ck_time_origin){0} : time;
        }
        time = ck_plan_time_of(n->inputs[0], n->window.of.time);
        return of_window(n, column - width, &time);
    case CK_PLAN_WINDOW_AGG:
        width = n->window.keys.count;
        if (column - width >= CK_WINDOW_FIELDS) return (ck_time_origin){0};
        time = (ck_time_origin){.lateness_us = n->window.of.lateness_us};
        return of_window(n, column - width, &time);
    default: return (ck_time_origin){0};
    }
}

/* ---- a window's rows without their window ---- */

typedef struct stripped {
    ck_plan_node *node;
    uint32_t *map;   /* where a column went */
    bool *is_window; /* it was one of the window's, and went to the time column */
} stripped;

typedef struct uses {
    const stripped *s;
    bool any;
} uses;
static void look(void *arg, uint32_t column) {
    uses *u = (uses *)arg;
    if (u->s->is_window[column]) u->any = true;
}
static bool uses_window(const stripped *s, const ck_expr *e) {
    uses u = {s, false};
    ck_expr_visit_columns(e, look, &u);
    return u.any;
}

static ck_expr *moved(ck_plan *p, const stripped *s, const ck_plan_node *n, ck_expr *e) {
    uint32_t width = n->schema->field_count;
    ck_expr **map = CK_PLAN_ARRAY(p, width, ck_expr *);
    if (!map) return NULL;
    for (uint32_t i = 0; i < width; i++)
        if (!(map[i] = ck_plan_column(p, s->node, s->map[i]))) return NULL;
    ck_expr *out = ck_expr_substitute(p->arena, e, map, width);
    if (!out) ck_plan_nomem(p);
    return out;
}

static ck_status strip(ck_plan *p, ck_plan_node *n, const ck_plan_node *window, stripped *out, bool *fine);

static ck_status strip_filter(ck_plan *p, ck_plan_node *n, const ck_plan_node *window, stripped *out, bool *fine) {
    CK_TRY(strip(p, n->inputs[0], window, out, fine));
    ck_expr **conjuncts = CK_PLAN_ARRAY(p, n->filter.count, ck_expr *);
    if (!conjuncts) return CK_NOMEM;
    for (uint32_t i = 0; *fine && i < n->filter.count; i++) {
        *fine = !uses_window(out, n->filter.conjuncts[i]);
        if (*fine && !(conjuncts[i] = moved(p, out, n->inputs[0], n->filter.conjuncts[i]))) return CK_NOMEM;
    }
    return *fine ? ck_plan_filter(p, out->node, conjuncts, n->filter.count, &out->node) : CK_OK;
}

static ck_status strip_project(ck_plan *p, ck_plan_node *n, const ck_plan_node *window, stripped *out, bool *fine) {
    uint32_t width = n->schema->field_count;
    stripped below;
    CK_TRY(strip(p, n->inputs[0], window, &below, fine));
    if (!*fine) return CK_OK;
    ck_expr **exprs = CK_PLAN_ARRAY(p, width, ck_expr *);
    const char **names = CK_PLAN_ARRAY(p, width, const char *);
    *out = (stripped){below.node, CK_PLAN_ARRAY(p, width, uint32_t), CK_PLAN_ARRAY(p, width, bool)};
    if (!exprs || !names || !out->map || !out->is_window) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        ck_expr *e = n->project.exprs[i];
        out->map[i] = i;
        out->is_window[i] = uses_window(&below, e);
        names[i] = n->schema->fields[i].name;
        if (out->is_window[i]) names[i] = window->inputs[0]->schema->fields[window->window.of.time].name;
        if (out->is_window[i] && e->kind != CK_EXPR_COLUMN) *fine = false;
        if (!*fine) return CK_OK;
        if (!(exprs[i] = moved(p, &below, n->inputs[0], e))) return CK_NOMEM;
    }
    return ck_plan_project(p, below.node, exprs, names, width, &out->node);
}

static ck_status strip(ck_plan *p, ck_plan_node *n, const ck_plan_node *window, stripped *out, bool *fine) {
    *fine = true;
    if (n == window) {
        uint32_t width = n->schema->field_count, below = n->inputs[0]->schema->field_count;
        *out = (stripped){n->inputs[0], CK_PLAN_ARRAY(p, width, uint32_t), CK_PLAN_ARRAY(p, width, bool)};
        if (!out->map || !out->is_window) return CK_NOMEM;
        for (uint32_t i = 0; i < width; i++) {
            out->is_window[i] = i >= below;
            out->map[i] = i < below ? i : n->window.of.time;
        }
        return CK_OK;
    }
    if (n->kind == CK_PLAN_FILTER) return strip_filter(p, n, window, out, fine);
    if (n->kind == CK_PLAN_PROJECT) return strip_project(p, n, window, out, fine);
    *fine = false;
    return CK_OK;
}

ck_status ck_plan_strip_window(ck_plan *p, ck_plan_node *n, const ck_plan_node *window, ck_plan_node **out) {
    stripped s;
    bool fine;
    *out = NULL;
    CK_TRY(strip(p, n, window, &s, &fine));
    for (uint32_t i = 0; fine && i < n->schema->field_count; i++) fine = s.map[i] == i; /* n itself is a projection */
    if (fine) *out = s.node;
    return CK_OK;
}

bool ck_plan_groups_half_a_window(const ck_plan_node *n) {
    if (n->kind != CK_PLAN_AGGREGATE) return false;
    bool start = false, end = false;
    for (uint32_t i = 0; i < n->aggregate.keys.count; i++) {
        ck_time_role role = ck_plan_time_of(n->inputs[0], n->aggregate.keys.at[i]).role;
        start |= role == CK_TIME_WINDOW_START;
        end |= role == CK_TIME_WINDOW_END;
    }
    return start != end;
}
