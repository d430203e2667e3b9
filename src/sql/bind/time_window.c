/* Windows over event time or PROCTIME(): TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL ...)) in FROM, and GROUP BY
 * TUMBLE(ts, ...). Both become a node that adds the window's columns; a GROUP BY them becomes an aggregation of
 * windows. */
#include "expr/timezone.h"
#include "sql/bind/bind_int.h"
#include "stream/event.h"

enum { WINDOWS_OF_ROW_MAX = 10000 }; /* the operators have the same ceiling */

/* ---- the call ---- */

static bool kind_of(ck_view name, ck_plan_window_kind *out) {
    static const struct {
        const char *name;
        ck_plan_window_kind kind;
    } kinds[] = {{"tumble", CK_PLAN_WINDOW_TUMBLE},
                 {"hop", CK_PLAN_WINDOW_HOP},
                 {"cumulate", CK_PLAN_WINDOW_CUMULATE},
                 {"session", CK_PLAN_WINDOW_SESSION}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(kinds); i++) {
        if (!ck_view_eq_nocase(name, ck_view_of(kinds[i].name))) continue;
        *out = kinds[i].kind;
        return true;
    }
    return false;
}

bool ck_bind_is_window(ck_view name) {
    ck_plan_window_kind k;
    return kind_of(name, &k);
}

/* A fixed time: an INTERVAL of days or less. */
ck_status ck_bind_duration(ck_binder *b, const ck_ast_expr *e, const char *what, bool may_be_zero, int64_t *out) {
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = what};
    ck_expr *v;
    CK_TRY(ck_bind_expr(b, &place, e, &v));
    if (v->type->kind == CK_TYPE_INTERVAL_MONTH)
        return ck_bind_refuse(b, e->pos, "%s of months has no fixed length; write days: INTERVAL '30' DAY", what);
    if (v->type->kind != CK_TYPE_INTERVAL_US || !ck_expr_is_constant(v))
        return ck_bind_fail(b, e->pos, "%s is a fixed time, such as INTERVAL '10' SECOND", what);
    CK_TRY(ck_bind_fold(b, v, e->pos, &v));
    *out = v->value.i64;
    if (!may_be_zero && (v->value.null || *out <= 0)) return ck_bind_fail(b, e->pos, "%s is more than 0", what);
    if (v->value.null || *out > CK_EVENT_TIME_MAX / 2 || *out < -CK_EVENT_TIME_MAX / 2)
        return ck_bind_fail(b, e->pos, "%s is at most 4000 years", what);
    return CK_OK;
}

/* The intervals of a call: their meaning by kind, their place by name or order. */
typedef struct shape {
    const ck_ast_expr *size, *slide, *offset, *data, *time;
} shape;

static const ck_ast_expr **member(shape *s, ck_view name) {
    if (ck_view_eq_nocase(name, CK_VIEW("size")) || ck_view_eq_nocase(name, CK_VIEW("gap"))) return &s->size;
    if (ck_view_eq_nocase(name, CK_VIEW("slide")) || ck_view_eq_nocase(name, CK_VIEW("step"))) return &s->slide;
    if (ck_view_eq_nocase(name, CK_VIEW("offset"))) return &s->offset;
    if (ck_view_eq_nocase(name, CK_VIEW("data"))) return &s->data;
    if (ck_view_eq_nocase(name, CK_VIEW("timecol"))) return &s->time;
    return NULL;
}

static const char *syntax_of(ck_plan_window_kind k, bool in_from) {
    static const char *const from[] = {
        [CK_PLAN_WINDOW_TUMBLE] = "TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset])",
        [CK_PLAN_WINDOW_HOP] = "HOP(TABLE t, DESCRIPTOR(ts), slide, size [, offset])",
        [CK_PLAN_WINDOW_CUMULATE] = "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size [, offset])",
        [CK_PLAN_WINDOW_SESSION] = "SESSION(TABLE t [PARTITION BY key], DESCRIPTOR(ts), gap)"};
    static const char *const group[] = {[CK_PLAN_WINDOW_TUMBLE] = "TUMBLE(ts, size [, offset])",
                                        [CK_PLAN_WINDOW_HOP] = "HOP(ts, slide, size [, offset])",
                                        [CK_PLAN_WINDOW_CUMULATE] = "CUMULATE(ts, step, size [, offset])",
                                        [CK_PLAN_WINDOW_SESSION] = "SESSION(ts, gap)"};
    return (in_from ? from : group)[k];
}

static ck_status read_shape(ck_binder *b, const ck_ast_expr *call, ck_plan_window_kind k, bool in_from, shape *s) {
    bool two = k == CK_PLAN_WINDOW_HOP || k == CK_PLAN_WINDOW_CUMULATE;
    const ck_ast_expr **order[5];
    uint32_t n = 0, at = 0;
    *s = (shape){0};
    if (in_from) order[n++] = &s->data;
    order[n++] = &s->time;
    if (two) order[n++] = &s->slide;
    order[n++] = &s->size;
    if (k != CK_PLAN_WINDOW_SESSION) order[n++] = &s->offset;
    for (const ck_ast_expr *a = call->args.first; a; a = a->next) {
        bool named = a->kind == CK_AST_NAMED_ARG;
        const ck_ast_expr **to = named ? member(s, a->name) : at < n ? order[at++] : NULL;
        if (!to || *to) return ck_bind_fail(b, a->pos, "this is not an argument here; write %s", syntax_of(k, in_from));
        *to = named ? a->args.first : a;
    }
    if (!s->size || !s->time || (two && !s->slide) || (in_from && !s->data) || call->call)
        return ck_bind_fail(b, call->sign, "an argument is missing; write %s", syntax_of(k, in_from));
    return CK_OK;
}

/* Watermarks are of whole milliseconds, and window_time is the last one in a window. */
static ck_status whole_millis(ck_binder *b, const ck_ast_expr *e, const char *what, bool may_be_zero, int64_t *out) {
    CK_TRY(ck_bind_duration(b, e, what, may_be_zero, out));
    return *out % 1000 == 0 ? CK_OK
                            : ck_bind_fail(b, e->pos, "%s is whole milliseconds: INTERVAL '0.001' SECOND", what);
}

static ck_status sizes(ck_binder *b, const shape *s, ck_plan_window *w) {
    bool session = w->kind == CK_PLAN_WINDOW_SESSION;
    CK_TRY(whole_millis(b, s->size, session ? "the gap of a session" : "the size of a window", false, &w->size_us));
    w->slide_us = w->size_us;
    if (s->slide) {
        const char *what = w->kind == CK_PLAN_WINDOW_HOP ? "the slide of a window" : "the step of a window";
        CK_TRY(whole_millis(b, s->slide, what, false, &w->slide_us));
    }
    if (w->kind == CK_PLAN_WINDOW_CUMULATE && w->size_us % w->slide_us != 0)
        return ck_bind_fail(b, s->size->pos, "the size of a cumulating window is a multiple of its step");
    if (w->size_us / w->slide_us > WINDOWS_OF_ROW_MAX)
        return ck_bind_fail(b, s->slide->pos, "a row would be in %lld windows; %d are the most",
                            (long long)(w->size_us / w->slide_us), WINDOWS_OF_ROW_MAX);
    if (s->offset) CK_TRY(whole_millis(b, s->offset, "the offset of a window", true, &w->offset_us));
    w->offset_us %= w->kind == CK_PLAN_WINDOW_HOP ? w->slide_us : w->size_us; /* windows begin so often */
    return CK_OK;
}

/* ---- the time column ---- */

/* Why a column of a table is not its event time. computed: it is made of the table's columns by the query. */
static ck_status not_of_table(ck_binder *b, const ck_catalog_entry *e, const char *name, bool computed, ck_pos at) {
    const char *time = e->table.time.expr ? e->table.columns[e->table.time.column].name : NULL;
    if (computed)
        return ck_bind_refuse(b, at,
                              "\"%s\" is computed by the query, and no watermark goes with it; compute it in table "
                              "\"%s\", as a column of its own with the watermark: x AS ..., WATERMARK FOR x AS x - "
                              "INTERVAL '5' SECOND%s%s%s",
                              name, e->name, time ? "; or take its event time, \"" : "", time ? time : "",
                              time ? "\"" : "");
    if (time)
        return ck_bind_refuse(b, at, "\"%s\" is not the event time of table \"%s\", which is \"%s\"", name, e->name,
                              time);
    return ck_bind_refuse(b, at,
                          "\"%s\" is not the event time of table \"%s\"; declare it there: WATERMARK FOR %s AS %s - "
                          "INTERVAL '5' SECOND",
                          name, e->name, name, name);
}

static ck_status no_time(ck_binder *b, const ck_plan_node *n, uint32_t column, ck_pos at) {
    const char *name = n->schema->fields[column].name;
    const ck_plan_node *below = n;
    bool computed = false;
    for (; below->kind == CK_PLAN_PROJECT || below->kind == CK_PLAN_FILTER; below = below->inputs[0]) {
        if (computed || below->kind == CK_PLAN_FILTER) continue;
        computed = below->project.exprs[column]->kind != CK_EXPR_COLUMN;
        column = below->project.exprs[column]->column;
    }
    if (below->kind == CK_PLAN_SCAN) return not_of_table(b, below->scan.table, name, computed, at);
    return ck_bind_refuse(
        b, at,
        "\"%s\" is not event time here: it ends where rows change, are joined without it, or get a "
        "window by PROCTIME(). Put the window directly over the table, or use window_time of a window "
        "below",
        name);
}

/* Whether the session's clock has been off UTC by whole windows only since 1970, and will be: hours are the same in
 * Berlin, days are not. */
static ck_status same_as_in_utc(ck_binder *b, const ck_plan_window *w, bool *out) {
    const int64_t until_us = 4102444800000000LL; /* 2100 */
    const ck_timezone *zone;
    int64_t unit = w->kind == CK_PLAN_WINDOW_HOP ? w->slide_us : w->size_us, at = 0, next = 0;
    *out = strcmp(b->catalog->settings.timezone, "UTC") == 0;
    if (*out || !b->catalog->proc->fs) return CK_OK;
    CK_TRY(ck_timezone_load(b->catalog->proc, b->plan.arena, b->catalog->settings.timezone, &zone, b->err));
    *out = true;
    for (; *out && at < until_us; at = next) *out = ck_timezone_offset(zone, at, NULL, &next) % unit == 0;
    return CK_OK;
}

/* The column of a time attribute, and what the window's columns are. */
static ck_status time_column(ck_binder *b, ck_scope *scope, const ck_ast_expr *e, ck_plan_window *w) {
    ck_bind_place place = {.scope = scope, .clause = "a window"};
    ck_expr *x;
    CK_TRY(ck_bind_expr(b, &place, e, &x));
    if (x->kind != CK_EXPR_COLUMN)
        return ck_bind_refuse(
            b, e->pos,
            ck_plan_calls_proctime(x)
                ? "a window is over a time column; add a column p AS PROCTIME() to the table"
                : "a window is over a time column; add this as a column of the table, with a WATERMARK");
    w->processing = ck_plan_is_proctime(scope->node, x->column);
    ck_time_origin o = ck_plan_time_of(scope->node, x->column);
    if (o.role != CK_TIME_ROW && !w->processing) return no_time(b, scope->node, x->column, e->pos);
    if (w->processing && scope->node->mode == CK_MODE_RETRACT)
        return ck_bind_refuse(b, e->pos,
                              "a window over PROCTIME() takes rows that do not change: one that is taken back would be "
                              "in another window than it came in; use event time");
    w->time = x->column;
    w->lateness_us = o.lateness_us;
    w->type = ck_event_window_type(b->plan.arena, x->type);
    if (!w->type) return ck_bind_nomem(b);
    if (w->type->kind != CK_TYPE_TIMESTAMP_LTZ || w->kind == CK_PLAN_WINDOW_SESSION) return CK_OK;
    bool alike;
    CK_TRY(same_as_in_utc(b, w, &alike));
    if (!alike)
        return ck_bind_refuse(
            b, e->pos,
            "windows over TIMESTAMP_LTZ count in UTC, where those of %s begin at other times; SET timezone = 'UTC', or "
            "count by the wall clock: a column l AS CAST(ts AS TIMESTAMP(3)) with WATERMARK FOR l AS l - INTERVAL '1' "
            "HOUR, which is how far it is set back",
            b->catalog->settings.timezone);
    return CK_OK;
}

/* ---- in FROM ---- */

static ck_status data_of(ck_binder *b, const ck_ast_expr *e, ck_scope *out) {
    ck_plan_node *n;
    if (e->kind != CK_AST_TABLE_ARG)
        return ck_bind_fail(b, e->pos, "a window in FROM is over a table: TABLE t, or TABLE (SELECT ...)");
    if (e->from->kind == CK_FROM_TABLE) {
        CK_TRY(ck_bind_table(b, e->from, &n));
        return ck_scope_of_node(b, n, e->from->name.last->ident.text, out);
    }
    CK_TRY(ck_bind_query(b, e->from->query, false, &n));
    return ck_scope_of_node(b, n, (ck_view){0}, out);
}

static ck_status partition_of(ck_binder *b, ck_scope *scope, const ck_ast_expr *data, ck_plan_window *w) {
    ck_bind_place place = {.scope = scope, .clause = "PARTITION BY"};
    if (data->args.count == 0) return CK_OK;
    if (w->kind != CK_PLAN_WINDOW_SESSION)
        return ck_bind_fail(b, data->args.first->pos, "only a SESSION window is partitioned; GROUP BY does it here");
    uint32_t *columns = CK_BIND_ARRAY(b, data->args.count, uint32_t), n = 0;
    if (!columns) return CK_NOMEM;
    for (const ck_ast_expr *a = data->args.first; a; a = a->next) {
        ck_expr *e;
        CK_TRY(ck_bind_expr(b, &place, a, &e));
        if (e->kind != CK_EXPR_COLUMN) return ck_bind_refuse(b, a->pos, "a SESSION is partitioned by columns");
        columns[n++] = e->column;
    }
    w->partition = (ck_columns){columns, n};
    return CK_OK;
}

ck_status ck_bind_window_table(ck_binder *b, const ck_ast_from *f, ck_plan_node **out) {
    const ck_ast_expr *call = f->call;
    ck_plan_window w = {0};
    ck_scope scope;
    shape s;
    bool known = kind_of(call->name, &w.kind);
    CK_ASSERT(known);
    CK_TRY(read_shape(b, call, w.kind, true, &s));
    CK_TRY(sizes(b, &s, &w));
    bool descriptor = s.time->kind == CK_AST_CALL && ck_view_eq_nocase(s.time->name, CK_VIEW("descriptor")) &&
                      s.time->args.count == 1;
    if (!descriptor) return ck_bind_fail(b, s.time->pos, "the time column of a window is named with DESCRIPTOR(ts)");
    CK_TRY(data_of(b, s.data, &scope));
    CK_TRY(time_column(b, &scope, s.time->args.first, &w));
    CK_TRY(partition_of(b, &scope, s.data, &w));
    w.at = call->pos, w.source = b->source;
    if (w.kind != CK_PLAN_WINDOW_SESSION) CK_TRY(ck_bind_needs(b, "window_assign", call->sign, "windows are"));
    return ck_plan_window_rows(&b->plan, scope.node, &w, out);
}

/* ---- in GROUP BY ---- */

static const ck_ast_expr *window_call(const ck_ast_exprs *list) {
    for (const ck_ast_expr *e = list->first; e; e = e->next)
        if (e->kind == CK_AST_CALL && ck_bind_is_window(e->name)) return e;
    return NULL;
}

static ck_status window_of_call(ck_binder *b, ck_scope *scope, const ck_ast_expr *call, ck_plan_window *w) {
    shape s;
    *w = (ck_plan_window){0};
    (void)kind_of(call->name, &w->kind);
    CK_TRY(read_shape(b, call, w->kind, false, &s));
    w->at = call->pos, w->source = b->source;
    CK_TRY(sizes(b, &s, w));
    return time_column(b, scope, s.time, w);
}

ck_status ck_bind_group_window(ck_binder *b, const ck_ast_select *s, ck_scope *scope) {
    const ck_ast_expr *call = window_call(&s->group_by);
    ck_plan_window w;
    if (!call) return CK_OK;
    CK_TRY(window_of_call(b, scope, call, &w));
    uint32_t width = scope->node->schema->field_count;
    CK_TRY(ck_plan_window_rows(&b->plan, scope->node, &w, &scope->node));
    ck_scope_table *tables = CK_BIND_ARRAY(b, scope->table_count + 1, ck_scope_table);
    bool *hidden = scope->hidden ? CK_BIND_ARRAY(b, width + CK_WINDOW_FIELDS, bool) : NULL;
    if (!tables || (scope->hidden && !hidden)) return CK_NOMEM;
    for (uint32_t i = 0; i < width && hidden; i++) hidden[i] = scope->hidden[i];
    if (scope->table_count) memcpy(tables, scope->tables, scope->table_count * sizeof *tables);
    tables[scope->table_count] = (ck_scope_table){.first = width, .count = CK_WINDOW_FIELDS};
    scope->tables = tables, scope->table_count++;
    if (hidden) scope->hidden = hidden;
    scope->window_first = width;
    scope->has_window = true;
    return ck_scope_canonical(b, scope);
}

/* TUMBLE_START(ts, ...) and the like: a column of the window that GROUP BY names. */
ck_status ck_bind_window_function(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, bool *is_one,
                                  ck_expr **out) {
    static const char *const parts[] = {"_start", "_end", "_rowtime"};
    ck_plan_window_kind k;
    uint32_t part = 0;
    *is_one = false;
    for (; part < CK_ARRAY_COUNT(parts); part++) {
        size_t n = strlen(parts[part]);
        if (e->name.n <= n || !ck_view_eq_nocase((ck_view){e->name.p + e->name.n - n, n}, ck_view_of(parts[part])))
            continue;
        if (kind_of((ck_view){e->name.p, e->name.n - n}, &k)) break;
    }
    bool plain = kind_of(e->name, &k) && part == CK_ARRAY_COUNT(parts);
    if (part == CK_ARRAY_COUNT(parts) && !plain) return CK_OK;
    *is_one = true;
    if (plain)
        return ck_bind_refuse(b, e->sign,
                              "%.*s stands in GROUP BY, or in FROM: TABLE(%.*s(TABLE t, DESCRIPTOR(ts), ...))",
                              ck_cut(e->name), e->name.p, ck_cut(e->name), e->name.p);
    ck_scope *scope = place->scope;
    if (!scope->has_window)
        return ck_bind_fail(b, e->sign, "%.*s is of a window, and GROUP BY has none", ck_cut(e->name), e->name.p);
    ck_plan_node *n = scope->node;
    while (n->kind != CK_PLAN_WINDOW) n = n->inputs[0];
    ck_plan_window w;
    ck_ast_expr call = *e;
    static const char *const names[] = {"tumble", "hop", "cumulate", "attached", "session"};
    call.name = ck_view_of(names[k]);
    CK_TRY(window_of_call(b, scope, &call, &w));
    const ck_plan_window *own = &n->window.of;
    if (w.kind != own->kind || w.time != own->time || w.size_us != own->size_us || w.slide_us != own->slide_us ||
        w.offset_us != own->offset_us)
        return ck_bind_fail(b, e->sign, "%.*s is of another window than the one GROUP BY names", ck_cut(e->name),
                            e->name.p);
    *out = ck_plan_column(&b->plan, scope->node, scope->window_first + part);
    return *out ? CK_OK : CK_NOMEM;
}

/* ---- the aggregation ---- */

/* Keys of the group, by what they are. */
typedef struct sorted_keys {
    const ck_plan_node *window; /* NULL: no window is named by its start and its end */
    uint32_t start, end;        /* columns of the input */
    int64_t lateness_us;        /* which rows still come so long behind the end */
    uint32_t *keys, key_count;  /* the others */
    uint32_t *from;             /* by group key: column of the window aggregate */
} sorted_keys;

static ck_status sort_keys(ck_binder *b, const ck_plan_node *input, ck_columns group, sorted_keys *k) {
    const ck_plan_node *ends = NULL;
    *k =
        (sorted_keys){.keys = CK_BIND_ARRAY(b, group.count, uint32_t), .from = CK_BIND_ARRAY(b, group.count, uint32_t)};
    ck_time_origin *of = CK_BIND_ARRAY(b, group.count, ck_time_origin);
    if (!k->keys || !k->from || !of) return CK_NOMEM;
    for (uint32_t i = 0; i < group.count; i++) {
        of[i] = ck_plan_time_of(input, group.at[i]);
        if (of[i].role == CK_TIME_WINDOW_START) k->window = of[i].node, k->start = group.at[i];
        if (of[i].role != CK_TIME_WINDOW_END) continue;
        ends = of[i].node, k->end = group.at[i], k->lateness_us = of[i].lateness_us;
    }
    if (!k->window || k->window != ends) {
        k->window = NULL;
        return CK_OK;
    }
    for (uint32_t i = 0; i < group.count; i++)
        if (of[i].role == CK_TIME_NONE || of[i].node != k->window)
            k->from[i] = k->key_count, k->keys[k->key_count++] = group.at[i];
    for (uint32_t i = 0; i < group.count; i++)
        if (of[i].role != CK_TIME_NONE && of[i].node == k->window)
            k->from[i] = k->key_count + (of[i].role == CK_TIME_WINDOW_START ? 0
                                         : of[i].role == CK_TIME_WINDOW_END ? 1
                                                                            : 2);
    return CK_OK;
}

static bool is_partition(ck_plan_node *input, const sorted_keys *k) {
    const ck_plan_window *w = &k->window->window.of;
    uint32_t found = 0;
    for (uint32_t i = 0; i < k->key_count; i++) {
        uint32_t column = k->keys[i];
        const ck_plan_node *n = input;
        for (; n != k->window; n = n->inputs[0]) {
            if (n->kind != CK_PLAN_PROJECT) continue;
            if (n->project.exprs[column]->kind != CK_EXPR_COLUMN) return false;
            column = n->project.exprs[column]->column;
        }
        bool own = false;
        for (uint32_t c = 0; c < w->partition.count; c++) own |= w->partition.at[c] == column;
        if (!own) return false;
        found++;
    }
    return found == w->partition.count;
}

static ck_status window_below(ck_binder *b, ck_plan_node *input, const sorted_keys *k, bool grouped_by_call, ck_pos at,
                              ck_plan_window *w, ck_plan_node **node) {
    bool is_rows = k->window->kind == CK_PLAN_WINDOW;
    bool session = is_rows && k->window->window.of.kind == CK_PLAN_WINDOW_SESSION;
    *w = k->window->window.of;
    *node = NULL;
    if (is_rows) CK_TRY(ck_plan_strip_window(&b->plan, input, k->window, node));
    if (*node && session && !grouped_by_call && !is_partition(input, k))
        return ck_bind_refuse(
            b, at,
            "sessions are grouped by what they are partitioned by, window_start and window_end: SESSION("
            "TABLE t PARTITION BY key, ...) with GROUP BY key, window_start, window_end");
    if (*node && session && (*node)->mode == CK_MODE_RETRACT)
        return ck_bind_refuse(
            b, at,
            "a SESSION takes rows that do not change, and these do; put it over the source, or over a window of a "
            "table without allowed_lateness_ms");
    if (*node) {
        w->time = w->processing ? CK_NO_COLUMN : k->start; /* the window's columns have become the time column */
        return CK_OK;
    }
    if (session)
        return ck_bind_refuse(
            b, at, "a SESSION window is known only when it is over; filter by its columns around the GROUP BY");
    *w = (ck_plan_window){.kind = CK_PLAN_WINDOW_ATTACHED,
                          .start = k->start,
                          .end = k->end,
                          .type = w->type,
                          .lateness_us = k->lateness_us};
    *node = input;
    return CK_OK;
}

ck_status ck_bind_window_agg(ck_binder *b, ck_plan_node *input, ck_columns group, const ck_plan_aggregate *calls,
                             uint32_t call_count, const char *key_text, const char *const *names, bool grouped_by_call,
                             ck_pos at, ck_plan_node **out) {
    sorted_keys k;
    ck_plan_window w;
    ck_plan_late late = {0};
    ck_plan_node *node;
    *out = NULL;
    CK_TRY(sort_keys(b, input, group, &k));
    if (!k.window) return CK_OK;
    CK_TRY(window_below(b, input, &k, grouped_by_call, at, &w, &node));
    CK_TRY(
        ck_bind_needs(b, w.kind == CK_PLAN_WINDOW_SESSION ? "session_agg" : "window_agg", at, "GROUP BY a window is"));
    if (!w.processing)
        CK_TRY(ck_bind_late_rows(b, w.kind == CK_PLAN_WINDOW_ATTACHED ? w.start : w.time, at, &node, &late));
    CK_TRY(ck_plan_window_agg(&b->plan, node, &w, (ck_columns){k.keys, k.key_count}, calls, call_count, key_text, names,
                              out));
    (*out)->late[0] = late;
    uint32_t n = group.count + call_count, first_call = k.key_count + CK_WINDOW_FIELDS;
    ck_expr **exprs = CK_BIND_ARRAY(b, n, ck_expr *);
    const char **own = CK_BIND_ARRAY(b, n, const char *);
    if (!exprs || !own) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        own[i] = i < group.count ? input->schema->fields[group.at[i]].name : names[i - group.count];
        exprs[i] = ck_plan_column(&b->plan, *out, i < group.count ? k.from[i] : first_call + i - group.count);
        if (!exprs[i]) return CK_NOMEM;
    }
    return ck_plan_project(&b->plan, *out, exprs, own, n, out);
}
