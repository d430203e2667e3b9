/* OVER: calls beside each row. Calls with one window are one node that adds their columns behind the others; a rank is
 * one by itself, and the optimiser turns a condition on it into a top-N. */
#include "sql/bind/bind_int.h"

/* ---- the call ---- */

static ck_status find_window(ck_binder *b, const ck_bind_place *place, const ck_ast_window *w,
                             const ck_ast_window **out) {
    ck_suggest near;
    *out = w;
    if (!w->reference) return CK_OK;
    ck_suggest_init(&near, w->name.text);
    for (const ck_ast_window *n = place->named; n; n = n->next) {
        *out = n;
        ck_suggest_offer(&near, n->name.text);
        if (ck_view_eq_nocase(n->name.text, w->name.text)) return CK_OK;
    }
    return ck_bind_fail(b, w->name.pos, "there is no WINDOW \"%.*s\"%s", ck_cut(w->name.text), w->name.text.p,
                        ck_bind_near(b, &near));
}

ck_status ck_bind_directions(ck_binder *b, const ck_bind_place *place, const ck_ast_orders *orders, ck_expr ***exprs,
                             const ck_plan_order **directions) {
    ck_plan_order *d = CK_BIND_ARRAY(b, orders->count, ck_plan_order);
    ck_expr **e = CK_BIND_ARRAY(b, orders->count, ck_expr *);
    uint32_t n = 0;
    if (!d || !e) return CK_NOMEM;
    for (const ck_ast_order *o = orders->first; o; o = o->next, n++) {
        d[n].descending = o->descending;
        d[n].nulls_first = o->nulls == CK_NULLS_DEFAULT ? o->descending : o->nulls == CK_NULLS_FIRST;
        CK_TRY(ck_bind_expr(b, place, o->expr, &e[n]));
    }
    *exprs = e, *directions = d;
    return CK_OK;
}

static ck_status bind_spec(ck_binder *b, const ck_bind_place *place, const ck_ast_window *w, ck_bound_window *out) {
    ck_bind_place inner = *place;
    inner.windows = NULL, inner.clause = "OVER";
    CK_TRY(ck_bind_exprs(b, &inner, &w->partition_by, &out->partition));
    out->partition_count = w->partition_by.count;
    out->order_count = w->order_by.count;
    return ck_bind_directions(b, &inner, &w->order_by, &out->order, &out->directions);
}

static ck_status may_stand_here(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e) {
    if (place->inside) return ck_bind_fail(b, e->sign, "OVER cannot stand inside an aggregate (%s)", place->inside);
    if (!place->windows)
        return ck_bind_fail(b, e->sign,
                            "%.*s OVER cannot stand in %s; put it into a subquery and ask for its column outside",
                            ck_cut(e->name), e->name.p, place->clause);
    return CK_OK;
}

ck_status ck_bind_over(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_bound_window w = {.pos = e->pos, .over = e->call->over->pos};
    const ck_ast_window *spec;
    ck_bound_windows *list = place->windows;
    CK_TRY(find_window(b, place, e->call->over, &spec));
    CK_TRY(may_stand_here(b, place, e));
    CK_TRY(ck_bind_over_call(b, place, e, spec, &w));
    CK_TRY(bind_spec(b, place, spec, &w));
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        ck_bound_window *more = CK_BIND_ARRAY(b, capacity, ck_bound_window);
        if (!more) return CK_NOMEM;
        if (list->count) memcpy(more, list->at, list->count * sizeof *more);
        list->at = more, list->capacity = capacity;
    }
    *out = ck_expr_column(b->plan.arena, CK_BIND_WINDOW | list->count, w.type, w.nullable);
    if (!*out) return ck_bind_nomem(b);
    list->at[list->count++] = w;
    return CK_OK;
}

/* ---- the nodes ---- */

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

static ck_status one_node(ck_binder *b, const ck_bound_window *w, ck_plan_node **node) {
    uint32_t width = (*node)->schema->field_count, room = width + w->partition_count + w->order_count;
    columns c = {CK_BIND_ARRAY(b, room, ck_expr *), CK_BIND_ARRAY(b, room, const char *), width};
    uint32_t *partition = CK_BIND_ARRAY(b, w->partition_count, uint32_t);
    ck_plan_order *order = CK_BIND_ARRAY(b, w->order_count, ck_plan_order);
    if (!c.exprs || !c.names || !partition || !order) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        c.names[i] = (*node)->schema->fields[i].name;
        if (!(c.exprs[i] = ck_plan_column(&b->plan, *node, i))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < w->partition_count; i++) partition[i] = column_for(&c, w->partition[i]);
    for (uint32_t i = 0; i < w->order_count; i++) {
        order[i] = w->directions[i];
        order[i].column = column_for(&c, w->order[i]);
    }
    if (c.count > width) CK_TRY(ck_plan_project(&b->plan, *node, c.exprs, c.names, c.count, node));
    ck_plan_top top = {.partition = {partition, w->partition_count},
                       .order = order,
                       .order_count = w->order_count,
                       .limit = UINT64_MAX,
                       .rank = w->rank,
                       .at = w->pos,
                       .source = b->source};
    return ck_plan_top_n(&b->plan, *node, &top, "rank", node);
}

typedef struct settle {
    ck_binder *b;
    const ck_plan_node *node;
    const uint32_t *column; /* of each call */
} settle;

static ck_status settled(void *arg, const ck_expr *e, ck_expr **instead) {
    const settle *s = (const settle *)arg;
    if (!ck_bind_is_placeholder(e, CK_BIND_WINDOW)) return CK_OK;
    *instead = ck_plan_column(&s->b->plan, s->node, s->column[e->column & ~CK_BIND_WINDOW]);
    return *instead ? CK_OK : CK_NOMEM;
}

static bool same_window(const ck_bound_window *x, const ck_bound_window *y) {
    const ck_bound_frame *f = &x->frame, *g = &y->frame;
    bool same = x->partition_count == y->partition_count && x->order_count == y->order_count;
    for (uint32_t i = 0; same && i < x->partition_count; i++) same = ck_expr_equal(x->partition[i], y->partition[i]);
    for (uint32_t i = 0; same && i < x->order_count; i++)
        same = ck_expr_equal(x->order[i], y->order[i]) && x->directions[i].descending == y->directions[i].descending &&
               x->directions[i].nulls_first == y->directions[i].nulls_first;
    bool one_way = (strcmp(x->fn, "lead") == 0) == (strcmp(y->fn, "lead") == 0);
    if (x->any_frame || y->any_frame) return same && one_way;
    return same && one_way && f->rows == g->rows && f->bounded == g->bounded && f->whole == g->whole &&
           f->preceding == g->preceding;
}

/* Calls with one window make one node; a rank alone becomes a top-N when a condition bounds it. */
ck_status ck_bind_window_nodes(ck_binder *b, const ck_bound_windows *w, ck_plan_node **node, ck_expr **exprs,
                               uint32_t count) {
    if (!w->count) return CK_OK;
    uint32_t *column = CK_BIND_ARRAY(b, w->count, uint32_t), *list = CK_BIND_ARRAY(b, w->count, uint32_t);
    bool *done = CK_BIND_ARRAY(b, w->count, bool);
    if (!column || !list || !done) return CK_NOMEM;
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t n = 0, sets = i;
        bool ranks = true;
        if (done[i]) continue;
        for (uint32_t k = i; k < w->count; k++) {
            if (done[k] || !same_window(&w->at[sets], &w->at[k])) continue;
            if (w->at[sets].any_frame) sets = k; /* the first whose frame counts */
            list[n++] = k;
            ranks = ranks && w->at[k].is_rank;
        }
        if (ranks) n = 1;
        CK_TRY(ranks ? one_node(b, &w->at[i], node) : ck_bind_over_node(b, w, list, n, node));
        for (uint32_t k = 0; k < n; k++) {
            column[list[k]] = (*node)->schema->field_count - n + k;
            done[list[k]] = true;
        }
    }
    settle s = {b, *node, column};
    for (uint32_t i = 0; i < count; i++)
        if (exprs[i] && ck_expr_rewrite(b->plan.arena, exprs[i], settled, &s, &exprs[i]) != CK_OK)
            return ck_bind_nomem(b);
    return CK_OK;
}
