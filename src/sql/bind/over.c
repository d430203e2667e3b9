/* Calls with OVER: which functions there are, which frames, and in which orders rows can be worked on. */
#include "sql/bind/bind_int.h"
#include "stream/event.h"

enum { LOOK_BACK_MAX = 1000000 }; /* of LAG: so many rows of a key are kept */

/* ---- functions ---- */

typedef enum group { AGGREGATE, RANK, VALUE, LOOK } group;
typedef struct function {
    const char *name;
    group group;
    ck_rank rank;
} function;

static const function functions[] = {
    {"count", AGGREGATE, 0},
    {"sum", AGGREGATE, 0},
    {"avg", AGGREGATE, 0},
    {"min", AGGREGATE, 0},
    {"max", AGGREGATE, 0},
    {"row_number", RANK, CK_RANK_ROW_NUMBER},
    {"rank", RANK, CK_RANK_RANK},
    {"dense_rank", RANK, CK_RANK_DENSE},
    {"first_value", VALUE, 0},
    {"last_value", VALUE, 0},
    {"lag", LOOK, 0},
    {"lead", LOOK, 0},
};

static ck_status function_of(ck_binder *b, const ck_ast_expr *e, const function **out) {
    ck_suggest near;
    ck_suggest_init(&near, e->name);
    for (size_t i = 0; i < CK_ARRAY_COUNT(functions); i++) {
        if (ck_view_eq_nocase(e->name, ck_view_of(functions[i].name))) {
            *out = &functions[i];
            return CK_OK;
        }
        ck_suggest_offer(&near, ck_view_of(functions[i].name));
    }
    return ck_bind_refuse(b, e->call->over->pos, "OVER with %.*s is not supported%s", ck_cut(e->name), e->name.p,
                          near.best.n ? ck_bind_near(b, &near)
                                      : "; it goes with COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE, LAST_VALUE, LAG, "
                                        "LEAD, ROW_NUMBER, RANK and DENSE_RANK");
}

static ck_status no_extras(ck_binder *b, const ck_ast_expr *e, const function *f) {
    const ck_ast_call *c = e->call;
    if (f->group == RANK && (e->args.count || c->star || c->distinct || c->filter || c->order_by.count || c->nulls))
        return ck_bind_fail(b, e->sign, "%.*s takes no arguments", ck_cut(e->name), e->name.p);
    if (c->distinct)
        return ck_bind_refuse(b, e->sign,
                              "%.*s(DISTINCT ...) with OVER is not supported; count different values in windows: "
                              "GROUP BY TUMBLE(...)",
                              ck_cut(e->name), e->name.p);
    if (c->order_by.count)
        return ck_bind_fail(b, c->order_by.first->pos, "the order of %.*s is that of OVER", ck_cut(e->name), e->name.p);
    if (c->nulls == CK_IGNORE_NULLS)
        return ck_bind_refuse(b, e->sign,
                              "IGNORE NULLS is not supported with OVER; filter the rows below: WHERE x IS "
                              "NOT NULL");
    if (c->filter && f->group != AGGREGATE)
        return ck_bind_fail(b, e->sign, "%.*s takes no FILTER", ck_cut(e->name), e->name.p);
    return CK_OK;
}

/* ---- arguments ---- */

/* With a filter: the argument of the rows that pass it, NULL of the others. */
static ck_status filtered(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **arg) {
    ck_expr *args[2] = {NULL, *arg};
    if (!e->call->filter) return CK_OK;
    ck_bind_place inner = *place;
    inner.clause = "FILTER";
    CK_TRY(ck_bind_condition(b, &inner, e->call->filter, &args[0]));
    if (!args[1] && !(args[1] = ck_expr_literal(b->plan.arena, ck_type_simple(CK_TYPE_BIGINT), (ck_datum){.i64 = 1})))
        return ck_bind_nomem(b);
    return ck_bind_function(b, "case", args, 2, e->sign, arg);
}

static ck_status aggregate(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, const function *f,
                           ck_bound_window *out) {
    const ck_aggregate *fn = ck_aggregate_find(f->name);
    ck_bound_aggregate bound = {0};
    bool star = e->call->star;
    if (star ? fn->arg_min > 0 : e->args.count != 1)
        return ck_bind_fail(b, e->sign, fn->arg_min ? "%s takes one argument" : "%s takes one argument, or *", f->name);
    if (!star) CK_TRY(ck_bind_expr(b, place, e->args.first, &out->arg));
    CK_TRY(ck_bind_at(b, e->sign, fn->bind(b->plan.arena, out->arg ? out->arg->type : NULL, true, &bound, b->err)));
    if (out->arg && bound.argument_type)
        CK_TRY(ck_bind_cast(b, out->arg, bound.argument_type, false, e->args.first->pos, &out->arg));
    CK_TRY(filtered(b, place, e, &out->arg));
    out->type = bound.type;
    out->nullable = strcmp(f->name, "count") != 0;
    return CK_OK;
}

static ck_status look(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, const function *f,
                      ck_bound_window *out) {
    const ck_ast_expr *offset = e->args.first ? e->args.first->next : NULL;
    if (e->args.count < 1 || e->args.count > 3 || e->call->star)
        return ck_bind_fail(b, e->sign,
                            "%.*s takes a value, how many rows away it is, and what stands for rows that are not "
                            "there: %.*s(x, 1, 0)",
                            ck_cut(e->name), e->name.p, ck_cut(e->name), e->name.p);
    CK_TRY(ck_bind_expr(b, place, e->args.first, &out->arg));
    out->offset = 1;
    if (offset && offset->kind != CK_AST_INTEGER)
        return ck_bind_fail(b, offset->pos,
                            "how many rows %.*s looks away is a number as 1 or 10, the same for all rows",
                            ck_cut(e->name), e->name.p);
    if (offset) CK_TRY(ck_bind_count(b, f->name, offset, &out->offset));
    if (out->offset > LOOK_BACK_MAX)
        return ck_bind_fail(b, offset->pos, "%.*s over %d rows is more than is kept of a key", ck_cut(e->name),
                            e->name.p, LOOK_BACK_MAX);
    out->type = out->arg->type;
    out->nullable = true;
    return CK_OK;
}

/* The call with one argument less in front of OVER: LAG(value, n). */
static ck_ast_expr *look_at(ck_binder *b, const ck_ast_expr *e, const ck_ast_expr *value) {
    ck_ast_expr *call = CK_BIND_ARRAY(b, 3, ck_ast_expr), *x = call + 1, *n = call + 2;
    if (!call) return NULL;
    *call = *e, *x = *value, *n = *e->args.first->next;
    x->next = n, n->next = NULL;
    call->args = (ck_ast_exprs){x, n, 2};
    call->next = NULL;
    return call;
}

/* Of a row that is there LAG(1, n) is 1, whatever its x. */
ck_status ck_bind_look_or(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_ast_expr one = {.kind = CK_AST_INTEGER, .pos = e->sign, .sign = e->sign, .name = CK_VIEW("1")};
    ck_ast_expr *mark = look_at(b, e, &one), *x = look_at(b, e, e->args.first),
                *pick = CK_BIND_ARRAY(b, 3, ck_ast_expr);
    if (!mark || !x || !pick) return CK_NOMEM;
    ck_ast_expr *absent = pick + 1, *other = pick + 2;
    *absent = (ck_ast_expr){.kind = CK_AST_IS,
                            .what = CK_TEST_NULL,
                            .pos = e->pos,
                            .sign = e->sign,
                            .depth = e->depth,
                            .args = {mark, mark, 1},
                            .next = other};
    *other = *e->args.last;
    other->next = x;
    *pick =
        (ck_ast_expr){.kind = CK_AST_CASE, .pos = e->pos, .sign = e->sign, .depth = e->depth, .args = {absent, x, 3}};
    return ck_bind_expr(b, place, pick, out);
}

bool ck_bind_is_look_or(const ck_ast_expr *e) {
    bool look = ck_view_eq_nocase(e->name, CK_VIEW("lag")) || ck_view_eq_nocase(e->name, CK_VIEW("lead"));
    return look && e->args.count == 3 && e->args.last->kind != CK_AST_NULL;
}

static ck_status value(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, const function *f,
                       ck_bound_window *out) {
    if (e->args.count != 1 || e->call->star) return ck_bind_fail(b, e->sign, "%s takes one argument", f->name);
    CK_TRY(ck_bind_expr(b, place, e->args.first, &out->arg));
    out->type = out->arg->type;
    out->nullable = out->arg->nullable;
    return CK_OK;
}

/* ---- frames ---- */

static bool is_time(const ck_expr *e) {
    return e->type->kind == CK_TYPE_INTERVAL_US || e->type->kind == CK_TYPE_INTERVAL_MONTH;
}

static ck_status preceding(ck_binder *b, const ck_ast_bound *from, ck_bound_frame *f) {
    f->bounded = true;
    if (from->kind == CK_BOUND_CURRENT_ROW) return CK_OK;
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = "a frame"};
    ck_expr *v;
    CK_TRY(ck_bind_expr(b, &place, from->offset, &v));
    if (f->rows && is_time(v))
        return ck_bind_fail(b, from->pos, "ROWS counts rows; RANGE BETWEEN INTERVAL ... PRECEDING goes back in time");
    if (!is_time(v)) {
        CK_TRY(ck_bind_count(b, "PRECEDING", from->offset, &f->preceding));
        return f->preceding <= INT64_MAX / 8 ? CK_OK
                                             : ck_bind_fail(b, from->pos, "this is more than a frame can go back");
    }
    int64_t us;
    CK_TRY(ck_bind_duration(b, from->offset, "a frame", true, &us));
    if (us < 0) return ck_bind_fail(b, from->pos, "a frame does not go back by less than nothing");
    f->interval = true;
    f->preceding = (uint64_t)us;
    return CK_OK;
}

static ck_status frame_of(ck_binder *b, const ck_ast_window *w, ck_bound_frame *f) {
    f->pos = w->pos;
    if (w->frame == CK_FRAME_NONE) return CK_OK;
    if (w->frame == CK_FRAME_GROUPS)
        return ck_bind_refuse(b, w->from.pos, "frames of GROUPS are not supported; ROWS and RANGE are");
    f->pos = w->from.pos;
    bool whole = w->from.kind == CK_BOUND_UNBOUNDED_PRECEDING && w->to.kind == CK_BOUND_UNBOUNDED_FOLLOWING;
    /* All rows of a partition are the same whether they are counted or compared, and are one place in the order. */
    f->rows = w->frame == CK_FRAME_ROWS && !whole, f->range = !f->rows;
    if (w->from.kind == CK_BOUND_FOLLOWING || w->from.kind == CK_BOUND_UNBOUNDED_FOLLOWING)
        return ck_bind_fail(b, w->from.pos, "a frame begins at the row or before it: n PRECEDING, UNBOUNDED PRECEDING");
    if (!whole && w->to.kind != CK_BOUND_CURRENT_ROW)
        return ck_bind_refuse(b, w->to.pos,
                              "a frame ends at CURRENT ROW or, over input that ends, takes all rows: BETWEEN UNBOUNDED "
                              "PRECEDING AND UNBOUNDED FOLLOWING");
    f->whole = whole;
    return whole || w->from.kind == CK_BOUND_UNBOUNDED_PRECEDING ? CK_OK : preceding(b, &w->from, f);
}

ck_status ck_bind_over_call(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, const ck_ast_window *spec,
                            ck_bound_window *out) {
    const function *f = NULL;
    ck_bind_place inner = *place;
    CK_TRY(function_of(b, e, &f));
    CK_TRY(ck_bind_needs(b, f->group == RANK ? "top_n" : "over", e->call->over->pos, "OVER is"));
    CK_TRY(no_extras(b, e, f));
    inner.windows = NULL, inner.clause = "OVER";
    out->fn = f->name;
    if (f->group == RANK || f->group == LOOK) {
        if (!spec->order_by.count)
            return ck_bind_fail(b, e->call->over->pos, "%.*s %s an order: OVER (PARTITION BY ... ORDER BY ...)",
                                ck_cut(e->name), e->name.p, f->group == RANK ? "ranks by" : "needs");
        if (spec->frame && !e->call->over->reference)
            return ck_bind_fail(b, e->call->over->pos, "%.*s has no frame", ck_cut(e->name), e->name.p);
        out->any_frame = f->group == LOOK || f->rank == CK_RANK_ROW_NUMBER;
        out->is_rank = f->group == RANK, out->rank = f->rank;
        out->type = ck_type_simple(CK_TYPE_BIGINT);
        out->frame.pos = spec->pos;
        return f->group == RANK ? CK_OK : look(b, &inner, e, f, out);
    }
    CK_TRY(frame_of(b, spec, &out->frame));
    return f->group == AGGREGATE ? aggregate(b, &inner, e, f, out) : value(b, &inner, e, f, out);
}

/* ---- the order rows are worked on in ---- */

static ck_time_role role_of(const ck_plan_node *n, const ck_expr *e) {
    if (ck_plan_calls_proctime(e)) return CK_TIME_PROCESSING;
    return e->kind == CK_EXPR_COLUMN ? ck_plan_time_of(n, e->column).role : CK_TIME_NONE;
}

static ck_status no_order(ck_binder *b, const ck_bound_window *w, const ck_plan_node *n) {
    if (w->order_count == 0)
        return ck_bind_refuse(b, w->over,
                              "OVER without an order is known at the end, and the input has none; write ORDER BY an "
                              "event time, or ORDER BY PROCTIME()");
    if (role_of(n, w->order[0]) == CK_TIME_ROW)
        return ck_bind_refuse(
            b, w->over,
            "over input that does not end OVER goes by ascending time: remove DESC; LAST_VALUE is the "
            "newest row");
    return ck_bind_refuse(
        b, w->over,
        "over input that does not end OVER goes by time: ORDER BY an event time column (WATERMARK FOR "
        "it in its table), or ORDER BY PROCTIME()");
}

static ck_status order_of(ck_binder *b, const ck_bound_window *w, const ck_plan_node *n, ck_plan_by *out) {
    ck_time_role role = w->order_count ? role_of(n, w->order[0]) : CK_TIME_NONE;
    bool ends = b->plan.emit_on_close || (n->bounded && !b->plan.changes);
    if (n->mode != CK_MODE_APPEND)
        return ck_bind_refuse(b, w->over,
                              "OVER is over rows that do not change, and these do; put it over the source, over a "
                              "window (GROUP BY TUMBLE(...)), or add EMIT ON CLOSE");
    if (role == CK_TIME_PROCESSING && (w->order_count > 1 || w->directions[0].descending))
        return ck_bind_fail(b, w->over, "with ORDER BY PROCTIME() nothing else orders: rows come one after the other");
    *out = CK_BY_END;
    if (role == CK_TIME_PROCESSING) *out = CK_BY_PROCESSING_TIME;
    if (role == CK_TIME_ROW && !w->directions[0].descending) *out = CK_BY_EVENT_TIME;
    if (w->frame.whole || strcmp(w->fn, "lead") == 0) {
        if (ends && *out != CK_BY_PROCESSING_TIME) {
            *out = CK_BY_END;
            return CK_OK;
        }
        if (w->frame.whole)
            return ck_bind_refuse(b, w->frame.pos,
                                  "a frame ends at CURRENT ROW: a row is said before those that follow are known");
        return ck_bind_refuse(b, w->pos,
                              "LEAD looks at a row that has not come yet; LAG in the row that comes later sees both: "
                              "LAG(x, n) OVER (...)");
    }
    return *out == CK_BY_END && !ends ? no_order(b, w, n) : CK_OK;
}

/* ---- the node ---- */

typedef struct columns {
    ck_expr **exprs;
    const char **names;
    uint32_t count;
} columns;

static uint32_t column_for(columns *c, ck_expr *e) {
    for (uint32_t i = 0; i < c->count; i++)
        if (ck_expr_equal(c->exprs[i], e)) return i;
    c->names[c->count] = "";
    c->exprs[c->count] = e;
    return c->count++;
}

static const char *text_of(ck_binder *b, const ck_plan_node *n, const ck_expr *e) {
    const char *const *names = ck_plan_names(&b->plan, n);
    ck_bytes text;
    if (!names) return NULL;
    ck_bytes_init(&text, b->plan.arena->mem, SIZE_MAX);
    ck_status s = ck_expr_print(e, names, &text);
    const char *out = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return out;
}

/* How far a frame of values goes back, in the unit of the column it is told by. */
static ck_status range_of(ck_binder *b, const ck_bound_window *w, const ck_bound_frame *f, ck_plan_over *o) {
    if (!o->range || !o->bounded) return CK_OK;
    if (w->order_count != 1)
        return ck_bind_fail(b, f->pos, "RANGE with a distance is of one ORDER BY column; ROWS counts rows");
    ck_kind k = w->order[0]->type->kind;
    bool stamp = o->by == CK_BY_PROCESSING_TIME || k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ;
    bool millis = o->by == CK_BY_EVENT_TIME && k == CK_TYPE_BIGINT;
    if ((stamp || millis) && !f->interval && f->preceding)
        return ck_bind_fail(b, f->pos, "a RANGE over time goes back by an INTERVAL: INTERVAL '1' HOUR PRECEDING");
    if (!stamp && !millis && f->interval)
        return ck_bind_fail(b, f->pos, "a RANGE over %s goes back by a number",
                            ck_type_name(b->plan.arena, w->order[0]->type));
    if (!stamp && !millis && !ck_kind_is_integer(k))
        return ck_bind_refuse(b, f->pos, "RANGE with a distance is over times and integers, not %s",
                              ck_type_name(b->plan.arena, w->order[0]->type));
    if (millis) o->preceding /= 1000;
    return CK_OK;
}

static ck_status call_of(ck_binder *b, const ck_plan_node *n, const ck_bound_window *w, columns *c,
                         ck_plan_over_call *out) {
    *out = (ck_plan_over_call){.fn = strcmp(w->fn, "lead") == 0 ? "lag" : w->fn,
                               .arg = CK_NO_COLUMN,
                               .offset = w->offset,
                               .type = w->type,
                               .nullable = w->nullable};
    if (!w->arg) return CK_OK;
    out->arg_text = text_of(b, n, w->arg);
    out->arg = column_for(c, w->arg);
    return out->arg_text ? CK_OK : ck_bind_nomem(b);
}

ck_status ck_bind_over_node(ck_binder *b, const ck_bound_windows *ws, const uint32_t *list, uint32_t count,
                            ck_plan_node **node) {
    const ck_bound_window *w = &ws->at[list[0]];
    const ck_bound_frame *f = &w->frame;
    for (uint32_t i = 0; w->any_frame && i < count; i++)
        if (!ws->at[list[i]].any_frame) f = &ws->at[list[i]].frame;
    bool reversed = strcmp(w->fn, "lead") == 0;
    uint32_t width = (*node)->schema->field_count, room = width + w->partition_count + w->order_count + count;
    columns c = {CK_BIND_ARRAY(b, room, ck_expr *), CK_BIND_ARRAY(b, room, const char *), width};
    uint32_t *partition = CK_BIND_ARRAY(b, w->partition_count, uint32_t);
    ck_plan_order *order = CK_BIND_ARRAY(b, w->order_count, ck_plan_order);
    ck_plan_over_call *calls = CK_BIND_ARRAY(b, count, ck_plan_over_call);
    const char **names = CK_BIND_ARRAY(b, count, const char *);
    ck_plan_over o = {.range = !f->rows,
                      .bounded = f->bounded,
                      .whole = f->whole,
                      .preceding = f->preceding,
                      .ties_reversed = reversed,
                      .at = w->over};
    if (!c.exprs || !c.names || !partition || !order || !calls || !names) return CK_NOMEM;
    CK_TRY(ck_bind_needs(b, "over", w->over, "OVER is"));
    CK_TRY(order_of(b, w, *node, &o.by));
    CK_TRY(range_of(b, w, f, &o));
    for (uint32_t i = 0; i < width; i++) {
        c.names[i] = (*node)->schema->fields[i].name;
        if (!(c.exprs[i] = ck_plan_column(&b->plan, *node, i))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < w->partition_count; i++) partition[i] = column_for(&c, w->partition[i]);
    for (uint32_t i = 0; i < w->order_count && o.by != CK_BY_PROCESSING_TIME; i++) {
        order[i] = w->directions[i];
        order[i].column = column_for(&c, w->order[i]);
        if (reversed) order[i].descending = !order[i].descending, order[i].nulls_first = !order[i].nulls_first;
        o.order_count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        CK_TRY(call_of(b, *node, &ws->at[list[i]], &c, &calls[i]));
        names[i] = ws->at[list[i]].fn;
    }
    /* In a partition by the order's own column all rows are equal: a distance reaches none or all of them. */
    for (uint32_t i = 0; o.range && o.by == CK_BY_END && i < w->partition_count; i++)
        if (o.order_count && partition[i] == order[0].column) o.bounded = false, o.preceding = 0;
    if (c.count > width) CK_TRY(ck_plan_project(&b->plan, *node, c.exprs, c.names, c.count, node));
    o.partition = (ck_columns){partition, w->partition_count};
    o.order = order, o.calls = calls, o.call_count = count;
    return ck_plan_over_node(&b->plan, *node, &o, names, node);
}
