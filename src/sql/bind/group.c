/* GROUP BY: the node, and the clauses above it in terms of its output. The keys are in group_keys.c. */
#include "sql/bind/bind_int.h"

/* ---- the node ---- */

/* Columns of the projection below the aggregate, equal expressions once. */
typedef struct below {
    ck_expr **exprs;
    uint32_t count;
} below;

static uint32_t place_of(below *l, ck_expr *e) {
    if (!e) return CK_NO_COLUMN;
    for (uint32_t i = 0; i < l->count; i++)
        if (ck_expr_equal(l->exprs[i], e)) return i;
    l->exprs[l->count] = e;
    return l->count++;
}

static ck_status text_of(ck_binder *b, const ck_scope *scope, ck_expr *const *exprs, uint32_t count, const char **out) {
    ck_bytes text;
    ck_bytes_init(&text, b->plan.arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        if (i) s = ck_bytes_char(&text, ',');
        if (s == CK_OK) s = ck_expr_print(exprs[i], scope->canonical, &text);
    }
    *out = s == CK_OK ? ck_arena_strndup(b->plan.arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return *out ? CK_OK : ck_bind_nomem(b);
}

/* Names of the key columns, as they show in state: the column's, else the canonical text. */
static ck_status names_below(ck_binder *b, const ck_scope *scope, const below *l, const char ***out) {
    const char **names = CK_BIND_ARRAY(b, l->count, const char *);
    if (!names) return CK_NOMEM;
    for (uint32_t i = 0; i < l->count; i++) CK_TRY(text_of(b, scope, &l->exprs[i], 1, &names[i]));
    *out = names;
    return CK_OK;
}

/* "ts DESC, id" */
static ck_status order_text(ck_binder *b, const ck_scope *scope, const ck_bound_call *c, const char **out) {
    const char *text = NULL;
    for (uint32_t i = 0; i < c->order_count; i++) {
        const ck_plan_order *d = &c->directions[i];
        const char *nulls = d->nulls_first == d->descending ? ""
                            : d->nulls_first                ? " NULLS FIRST"
                                                            : " NULLS LAST",
                   *one;
        CK_TRY(text_of(b, scope, &c->order[i], 1, &one));
        text = ck_arena_printf(b->plan.arena, "%s%s%s%s%s", text ? text : "", text ? ", " : "", one,
                               d->descending ? " DESC" : "", nulls);
        if (!text) return ck_bind_nomem(b);
    }
    *out = text;
    return CK_OK;
}

static ck_status order_of_call(ck_binder *b, const ck_scope *scope, const ck_bound_call *c, below *l,
                               ck_plan_aggregate *out) {
    ck_plan_order *order = CK_BIND_ARRAY(b, c->order_count, ck_plan_order);
    if (!order) return CK_NOMEM;
    for (uint32_t i = 0; i < c->order_count; i++) {
        order[i] = c->directions[i];
        order[i].column = place_of(l, c->order[i]);
    }
    out->order = order, out->order_count = c->order_count;
    return order_text(b, scope, c, &out->order_text);
}

static ck_status calls_of(ck_binder *b, const ck_scope *scope, const ck_grouping *g, below *l, ck_plan_aggregate *calls,
                          const char **names, uint32_t *count) {
    *count = 0;
    for (uint32_t k = 0; k < g->calls.count; k++) {
        const ck_bound_call *c = &g->calls.at[k];
        ck_plan_aggregate *out = &calls[*count];
        if (!c->fn) continue; /* GROUPING */
        *out = (ck_plan_aggregate){.fn = c->fn,
                                   .arg = place_of(l, c->arg),
                                   .filter = place_of(l, c->filter),
                                   .distinct = c->distinct,
                                   .type = c->type,
                                   .nullable = c->nullable,
                                   .ignores_nulls = c->ignores_nulls,
                                   .separator = c->separator,
                                   .fraction = c->fraction};
        CK_TRY(order_of_call(b, scope, c, l, out));
        if (c->arg) CK_TRY(text_of(b, scope, &c->arg, 1, &out->arg_text));
        if (c->filter) CK_TRY(text_of(b, scope, &c->filter, 1, &out->filter_text));
        names[(*count)++] = c->name;
    }
    return CK_OK;
}

/* ---- GROUPING SETS: one aggregate a set over the same rows, put together ---- */

static uint64_t set_of_node(const ck_grouping *g, uint32_t set) {
    return g->sets ? g->sets[set] : g->key_count >= 64 ? UINT64_MAX : ((uint64_t)1 << g->key_count) - 1;
}
static bool in_set(uint64_t set, uint32_t key) { return key >= 64 || (set >> key & 1); }

/* GROUPING(a, b): a bit an argument, the first the highest, 1 where the row is not grouped by it. */
static ck_status grouping_value(ck_binder *b, ck_scope *scope, const ck_grouping *g, const ck_bound_call *c,
                                uint64_t set, ck_expr **out) {
    ck_bind_place place = {.scope = scope, .clause = "GROUPING"};
    int64_t value = 0;
    for (const ck_ast_expr *a = c->grouping->args.first; a; a = a->next) {
        ck_expr *e;
        uint32_t key = 0;
        CK_TRY(ck_bind_expr(b, &place, a, &e));
        while (key < g->key_count && !ck_expr_equal(g->keys[key], e)) key++;
        if (key == g->key_count) return ck_bind_fail(b, a->pos, "GROUPING takes what GROUP BY groups by");
        value = value << 1 | !in_set(set, key);
    }
    *out = ck_expr_literal(b->plan.arena, ck_type_simple(CK_TYPE_BIGINT), (ck_datum){.i64 = value});
    return *out ? CK_OK : ck_bind_nomem(b);
}

/* The columns all sets have: every key (NULL where the set lacks it), then the calls. */
static ck_status common_columns(ck_binder *b, ck_scope *scope, const ck_grouping *g, uint64_t set,
                                const ck_plan_node *projected, const uint32_t *keys, ck_plan_node **node) {
    uint32_t n = g->key_count + g->calls.count, from_keys = 0, from_calls = 0;
    ck_expr **exprs = CK_BIND_ARRAY(b, n, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, n, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < g->key_count; i++) from_calls += in_set(set, i);
    for (uint32_t i = 0; i < g->key_count; i++) {
        names[i] = projected->schema->fields[keys[i]].name;
        exprs[i] = in_set(set, i) ? ck_plan_column(&b->plan, *node, from_keys++)
                                  : ck_expr_null(b->plan.arena, g->keys[i]->type);
        if (!exprs[i]) return ck_bind_nomem(b);
    }
    for (uint32_t i = 0; i < g->calls.count; i++) {
        const ck_bound_call *c = &g->calls.at[i];
        ck_expr **out = &exprs[g->key_count + i];
        names[g->key_count + i] = c->name;
        if (!c->fn) {
            CK_TRY(grouping_value(b, scope, g, c, set, out));
        } else if (!(*out = ck_plan_column(&b->plan, *node, from_calls++))) {
            return CK_NOMEM;
        }
    }
    return ck_plan_project(&b->plan, *node, exprs, names, n, node);
}

static ck_status key_text_of(ck_binder *b, const ck_scope *scope, const ck_grouping *g, uint64_t set,
                             const char **out) {
    ck_expr **keys = CK_BIND_ARRAY(b, g->key_count, ck_expr *);
    uint32_t n = 0;
    if (!keys) return CK_NOMEM;
    for (uint32_t i = 0; i < g->key_count; i++)
        if (in_set(set, i)) keys[n++] = g->keys[i];
    return text_of(b, scope, keys, n, out);
}

static ck_status one_set(ck_binder *b, ck_scope *scope, const ck_grouping *g, uint64_t set, ck_plan_node *projected,
                         const uint32_t *keys, const ck_plan_aggregate *calls, uint32_t call_count,
                         const char *const *names, ck_plan_node **out) {
    uint32_t *own = CK_BIND_ARRAY(b, g->key_count, uint32_t), n = 0;
    const char *key_text;
    if (!own) return CK_NOMEM;
    for (uint32_t i = 0; i < g->key_count; i++)
        if (in_set(set, i)) own[n++] = keys[i];
    CK_TRY(key_text_of(b, scope, g, set, &key_text));
    CK_TRY(ck_bind_window_agg(b, projected, (ck_columns){own, n}, calls, call_count, key_text, names, g->by_window,
                              g->window_pos, out));
    if (!*out)
        CK_TRY(
            ck_plan_aggregate_node(&b->plan, projected, (ck_columns){own, n}, calls, call_count, key_text, names, out));
    bool as_it_is = !g->sets && call_count == g->calls.count;
    return as_it_is ? CK_OK : common_columns(b, scope, g, set, projected, keys, out);
}

static uint32_t order_columns(const ck_grouping *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->calls.count; i++) n += g->calls.at[i].order_count;
    return n;
}

/* What a sketch has taken stays in it. */
static ck_status check_modes(ck_binder *b, const ck_grouping *g, const ck_plan_node *input) {
    for (uint32_t i = 0; input->mode == CK_MODE_RETRACT && i < g->calls.count; i++) {
        const ck_bound_call *c = &g->calls.at[i];
        if (c->fn && c->fn->append_only)
            return ck_bind_refuse(b, c->at,
                                  "%s takes rows that only come, and these are taken back when what they are made from "
                                  "changes; COUNT(DISTINCT x) counts exactly",
                                  c->fn->name);
    }
    return CK_OK;
}

ck_status ck_bind_group_node(ck_binder *b, ck_scope *scope, ck_grouping *g) {
    uint32_t n = g->calls.count, sets = g->sets ? g->set_count : 1, call_count;
    below l = {CK_BIND_ARRAY(b, g->key_count + 2 * n + order_columns(g), ck_expr *), 0};
    ck_plan_aggregate *calls = CK_BIND_ARRAY(b, n, ck_plan_aggregate);
    const char **names = CK_BIND_ARRAY(b, n, const char *), **inner_names;
    uint32_t *keys = CK_BIND_ARRAY(b, g->key_count, uint32_t);
    ck_plan_node *projected, **arms = CK_BIND_ARRAY(b, sets, ck_plan_node *);
    if (!l.exprs || !calls || !names || !keys || !arms) return CK_NOMEM;
    for (uint32_t i = 0; i < g->key_count; i++) keys[i] = place_of(&l, g->keys[i]);
    CK_TRY(calls_of(b, scope, g, &l, calls, names, &call_count));
    CK_TRY(names_below(b, scope, &l, &inner_names));
    CK_TRY(ck_plan_project(&b->plan, scope->node, l.exprs, inner_names, l.count, &projected));
    CK_TRY(check_modes(b, g, projected));
    for (uint32_t i = 0; i < sets; i++)
        CK_TRY(one_set(b, scope, g, set_of_node(g, i), projected, keys, calls, call_count, names, &arms[i]));
    g->node = arms[0];
    return sets > 1 ? ck_plan_union(&b->plan, arms, sets, &g->node) : CK_OK;
}

/* ---- above it ---- */

typedef struct lift {
    ck_binder *b;
    const ck_grouping *g;
    const ck_scope *scope;
    ck_pos at;
} lift;

bool ck_bind_has_placeholder(const ck_expr *e, uint32_t bits) {
    if (ck_bind_is_placeholder(e, bits)) return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (ck_bind_has_placeholder(e->args[i], bits)) return true;
    return false;
}

static ck_status replace(void *arg, const ck_expr *e, ck_expr **instead) {
    const lift *l = (const lift *)arg;
    uint32_t column = CK_NO_COLUMN;
    if (ck_bind_is_placeholder(e, CK_BIND_WINDOW | CK_BIND_SUBQUERY)) {
        *instead = (ck_expr *)(uintptr_t)e; /* handed on as it is */
        return CK_OK;
    }
    if (ck_bind_is_placeholder(e, CK_BIND_AGGREGATE)) column = l->g->key_count + (e->column & ~CK_BIND_AGGREGATE);
    for (uint32_t i = 0; column == CK_NO_COLUMN && i < l->g->key_count; i++)
        if (ck_expr_equal(l->g->keys[i], e)) column = i;
    if (column == CK_NO_COLUMN) {
        if (e->kind != CK_EXPR_COLUMN) return CK_OK;
        return ck_bind_fail(l->b, l->at, "column \"%s\" must stand in GROUP BY or inside an aggregate such as MAX(%s)",
                            l->scope->canonical[e->column], l->scope->canonical[e->column]);
    }
    ck_expr *out = ck_plan_column(&l->b->plan, l->g->node, column);
    if (!out) return CK_NOMEM;
    out->line = e->line, out->col = e->col;
    *instead = out;
    return CK_OK;
}

ck_status ck_bind_over_groups(ck_binder *b, const ck_grouping *g, const ck_scope *scope, ck_expr *e, ck_pos at,
                              ck_expr **out) {
    lift l = {b, g, scope, at};
    ck_status s = ck_expr_rewrite(b->plan.arena, e, replace, &l, out);
    return s == CK_NOMEM ? ck_bind_nomem(b) : s;
}
