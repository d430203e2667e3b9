/* OVER: ranks within a partition. Each call is one node that adds its rank behind the columns; the optimiser turns a
 * condition on the rank into a top-N. */
#include "sql/bind/bind_int.h"

/* ---- the call ---- */

static bool rank_of(ck_view name, ck_rank *out) {
    static const struct {
        const char *name;
        ck_rank rank;
    } ranks[] = {{"row_number", CK_RANK_ROW_NUMBER}, {"rank", CK_RANK_RANK}, {"dense_rank", CK_RANK_DENSE}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(ranks); i++) {
        if (!ck_view_eq_nocase(name, ck_view_of(ranks[i].name))) continue;
        *out = ranks[i].rank;
        return true;
    }
    return false;
}

static ck_status find_window(ck_binder *b, const ck_bind_place *place, const ck_ast_window *w,
                             const ck_ast_window **out) {
    *out = w;
    if (!w->reference) return CK_OK;
    for (const ck_ast_window *n = place->named; n; n = n->next) {
        *out = n;
        if (ck_view_eq_nocase(n->name.text, w->name.text)) return CK_OK;
    }
    return ck_bind_fail(b, w->name.pos, "there is no WINDOW \"%.*s\"", ck_cut(w->name.text), w->name.text.p);
}

static ck_status bind_spec(ck_binder *b, const ck_bind_place *place, const ck_ast_window *w, ck_bound_window *out) {
    ck_bind_place inner = *place;
    ck_plan_order *directions = CK_BIND_ARRAY(b, w->order_by.count, ck_plan_order);
    inner.windows = NULL, inner.clause = "OVER";
    CK_TRY(ck_bind_exprs(b, &inner, &w->partition_by, &out->partition));
    out->partition_count = w->partition_by.count;
    out->order = CK_BIND_ARRAY(b, w->order_by.count, ck_expr *);
    if (!directions || !out->order) return CK_NOMEM;
    for (const ck_ast_order *o = w->order_by.first; o; o = o->next) {
        ck_plan_order *d = &directions[out->order_count];
        d->descending = o->descending;
        d->nulls_first = o->nulls == CK_NULLS_DEFAULT ? o->descending : o->nulls == CK_NULLS_FIRST;
        CK_TRY(ck_bind_expr(b, &inner, o->expr, &out->order[out->order_count++]));
    }
    out->directions = directions;
    return CK_OK;
}

static ck_status check_call(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, const ck_ast_window *w) {
    const ck_ast_call *c = e->call;
    if (e->args.count || c->star || c->distinct || c->filter || c->order_by.count || c->nulls)
        return ck_bind_fail(b, e->sign, "%.*s takes no arguments", ck_cut(e->name), e->name.p);
    if (!w->order_by.count)
        return ck_bind_fail(b, c->over->pos, "%.*s ranks by an order: OVER (PARTITION BY ... ORDER BY ...)",
                            ck_cut(e->name), e->name.p);
    if (w->frame) return ck_bind_fail(b, c->over->pos, "%.*s has no frame", ck_cut(e->name), e->name.p);
    if (place->inside) return ck_bind_fail(b, e->sign, "OVER cannot stand inside an aggregate (%s)", place->inside);
    if (!place->windows)
        return ck_bind_fail(b, e->sign,
                            "%.*s OVER cannot stand in %s; put it into a subquery and ask for its column outside",
                            ck_cut(e->name), e->name.p, place->clause);
    return CK_OK;
}

ck_status ck_bind_over(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    ck_bound_window w = {.pos = e->pos};
    const ck_ast_window *spec;
    ck_bound_windows *list = place->windows;
    if (!rank_of(e->name, &w.rank))
        return ck_bind_refuse(b, e->call->over->pos,
                              "OVER with %.*s is not supported yet; with ROW_NUMBER, RANK and "
                              "DENSE_RANK it is",
                              ck_cut(e->name), e->name.p);
    CK_TRY(ck_bind_needs(b, "top_n", e->call->over->pos, "OVER is"));
    CK_TRY(find_window(b, place, e->call->over, &spec));
    CK_TRY(check_call(b, place, e, spec));
    CK_TRY(bind_spec(b, place, spec, &w));
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        ck_bound_window *more = CK_BIND_ARRAY(b, capacity, ck_bound_window);
        if (!more) return CK_NOMEM;
        if (list->count) memcpy(more, list->at, list->count * sizeof *more);
        list->at = more, list->capacity = capacity;
    }
    *out = ck_expr_column(b->plan.arena, CK_BIND_WINDOW | list->count, ck_type_simple(CK_TYPE_BIGINT), false);
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
    const uint32_t *rank; /* column of each call's rank */
} settle;

static ck_expr *settled(void *arg, const ck_expr *e) {
    const settle *s = (const settle *)arg;
    if (!ck_bind_is_placeholder(e, CK_BIND_WINDOW)) return NULL;
    return ck_plan_column(&s->b->plan, s->node, s->rank[e->column & ~CK_BIND_WINDOW]);
}

ck_status ck_bind_window_nodes(ck_binder *b, const ck_bound_windows *w, ck_plan_node **node, ck_expr **exprs,
                               uint32_t count) {
    if (!w->count) return CK_OK;
    uint32_t *rank = CK_BIND_ARRAY(b, w->count, uint32_t);
    if (!rank) return CK_NOMEM;
    for (uint32_t i = 0; i < w->count; i++) {
        CK_TRY(one_node(b, &w->at[i], node));
        rank[i] = (*node)->schema->field_count - 1;
    }
    settle s = {b, *node, rank};
    for (uint32_t i = 0; i < count; i++)
        if (exprs[i] && !(exprs[i] = ck_expr_rewrite(b->plan.arena, exprs[i], settled, &s))) return ck_bind_nomem(b);
    return CK_OK;
}
