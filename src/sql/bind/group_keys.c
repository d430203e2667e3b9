/* What GROUP BY groups by: expressions, numbers and aliases of the SELECT list, and the sets that ROLLUP, CUBE and
 * GROUPING SETS stand for. A set is a bit a key. */
#include "sql/bind/bind_int.h"

enum { SETS_MAX = 64, SET_KEYS_MAX = 32 };

typedef struct keys {
    ck_scope *scope;
    ck_expr *const *items; /* of the SELECT list */
    const ck_ast_ident *aliases;
    uint32_t item_count;
    ck_grouping *g;
    uint32_t room;
} keys;

typedef struct sets {
    uint64_t at[SETS_MAX];
    uint32_t count;
} sets;

/* ---- one key ---- */

static ck_status from_item(ck_binder *b, const keys *k, uint32_t i, const ck_ast_expr *e, ck_expr **out) {
    const char *what = ck_bind_has_placeholder(k->items[i], CK_BIND_AGGREGATE)  ? "an aggregate"
                       : ck_bind_has_placeholder(k->items[i], CK_BIND_WINDOW)   ? "ranked with OVER"
                       : ck_bind_has_placeholder(k->items[i], CK_BIND_SUBQUERY) ? "a subquery"
                                                                                : NULL;
    if (what)
        return ck_bind_fail(b, e->pos, "GROUP BY cannot group by column %u of the SELECT list: it is %s", i + 1, what);
    *out = k->items[i];
    return CK_OK;
}

/* As PostgreSQL: a number is a column of the SELECT list; a name is a column of FROM, else an alias. */
static ck_status key_of(ck_binder *b, const keys *k, const ck_ast_expr *e, ck_expr **out) {
    ck_bind_place place = {.scope = k->scope, .clause = "GROUP BY", .queries = true};
    if (e->kind == CK_AST_INTEGER) {
        uint64_t n;
        CK_TRY(ck_bind_count(b, "GROUP BY", e, &n));
        if (n < 1 || n > k->item_count)
            return ck_bind_fail(b, e->pos, "GROUP BY %llu: the SELECT list has %u columns", (unsigned long long)n,
                                k->item_count);
        return from_item(b, k, (uint32_t)n - 1, e, out);
    }
    if (e->kind == CK_AST_NAME) {
        bool twice = false;
        uint32_t c = ck_scope_find(k->scope, e->name, e->quoted, &twice);
        for (uint32_t i = 0; c == CK_NO_COLUMN && i < k->item_count; i++)
            if (k->aliases[i].text.n && (ck_view_eq(k->aliases[i].text, e->name) ||
                                         (!e->quoted && ck_view_eq_nocase(k->aliases[i].text, e->name))))
                return from_item(b, k, i, e, out);
    }
    return ck_bind_expr(b, &place, e, out);
}

static ck_status groupable(ck_binder *b, const ck_expr *e, ck_pos at) {
    if (e->type->kind == CK_TYPE_NULL)
        return ck_bind_fail(b, at, "GROUP BY takes a typed value; write CAST(NULL AS ...)");
    if (ck_expr_is_volatile(e))
        return ck_bind_refuse(b, at,
                              "GROUP BY cannot group by a value that is another one each time it is computed; "
                              "compute it in a subquery over the source");
    return CK_OK;
}

static ck_status add_key(ck_binder *b, keys *k, ck_expr *key, ck_pos at, uint32_t *number) {
    ck_grouping *g = k->g;
    CK_TRY(groupable(b, key, at));
    for (*number = 0; *number < g->key_count; ++*number)
        if (ck_expr_equal(g->keys[*number], key)) return CK_OK;
    if (g->key_count == k->room) {
        uint32_t room = k->room * 2;
        ck_expr **more = CK_BIND_ARRAY(b, room, ck_expr *);
        if (!more) return CK_NOMEM;
        memcpy(more, g->keys, g->key_count * sizeof *more);
        g->keys = more, k->room = room;
    }
    g->keys[g->key_count++] = key;
    return CK_OK;
}

/* TUMBLE(...): the window's columns, which ck_bind_group_window has put into the scope. */
static ck_status window_keys(ck_binder *b, keys *k, const ck_ast_expr *e) {
    if (k->g->by_window) return ck_bind_refuse(b, e->pos, "GROUP BY takes one window");
    if (!k->scope->has_window) return ck_bind_refuse(b, e->pos, "a window stands in GROUP BY by itself");
    for (uint32_t i = 0; i < CK_WINDOW_FIELDS; i++) {
        ck_expr *key = ck_plan_column(&b->plan, k->scope->node, k->scope->window_first + i);
        uint32_t number;
        if (!key) return CK_NOMEM;
        CK_TRY(add_key(b, k, key, e->pos, &number));
    }
    k->g->by_window = true;
    k->g->window_pos = e->pos;
    return CK_OK;
}

/* ---- sets ---- */

static bool is_plain_row(const ck_ast_expr *e) { return e->kind == CK_AST_ROW && !e->flag; }

static bool is_called(const ck_ast_expr *e, const char *name) {
    return e->kind == CK_AST_CALL && !e->call && ck_view_eq_nocase(e->name, ck_view_of(name));
}

static bool has_sets(const ck_ast_expr *e) {
    return e->kind == CK_AST_GROUPING_SETS || is_called(e, "rollup") || is_called(e, "cube");
}

bool ck_bind_has_grouping_sets(const ck_ast_select *s) {
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next)
        if (has_sets(e)) return true;
    return false;
}

/* The keys of one element: a, or (a, b). */
static ck_status set_of(ck_binder *b, keys *k, const ck_ast_expr *e, uint64_t *out) {
    bool row = is_plain_row(e);
    *out = 0;
    for (const ck_ast_expr *x = row ? e->args.first : e; x; x = row ? x->next : NULL) {
        ck_expr *key;
        uint32_t number;
        CK_TRY(key_of(b, k, x, &key));
        CK_TRY(add_key(b, k, key, x->pos, &number));
        if (number >= SET_KEYS_MAX)
            return ck_bind_fail(b, x->pos, "GROUPING SETS take %d different keys at most", SET_KEYS_MAX);
        *out |= (uint64_t)1 << number;
    }
    return CK_OK;
}

static ck_status add_set(ck_binder *b, sets *s, uint64_t set, ck_pos at) {
    if (s->count == SETS_MAX) return ck_bind_fail(b, at, "GROUP BY has more than %d grouping sets", SETS_MAX);
    s->at[s->count++] = set;
    return CK_OK;
}

static ck_status sets_of(ck_binder *b, keys *k, const ck_ast_expr *e, sets *out);

static ck_status rollup(ck_binder *b, keys *k, const ck_ast_expr *e, sets *out) {
    uint64_t prefix = 0, one, prefixes[SETS_MAX];
    uint32_t n = 0;
    prefixes[n++] = 0;
    for (const ck_ast_expr *x = e->args.first; x; x = x->next) {
        CK_TRY(set_of(b, k, x, &one));
        if (n == SETS_MAX) return ck_bind_fail(b, x->pos, "ROLLUP has more than %d sets", SETS_MAX);
        prefixes[n++] = prefix |= one;
    }
    while (n) CK_TRY(add_set(b, out, prefixes[--n], e->pos));
    return CK_OK;
}

static ck_status cube(ck_binder *b, keys *k, const ck_ast_expr *e, sets *out) {
    uint64_t each[SETS_MAX];
    uint32_t n = 0;
    for (const ck_ast_expr *x = e->args.first; x; x = x->next) {
        if (n == 6) return ck_bind_fail(b, x->pos, "CUBE takes 6 elements at most: each doubles the number of sets");
        CK_TRY(set_of(b, k, x, &each[n++]));
    }
    for (uint32_t left = 1u << n; left-- > 0;) {
        uint64_t set = 0;
        for (uint32_t i = 0; i < n; i++)
            if (left >> i & 1) set |= each[i];
        CK_TRY(add_set(b, out, set, e->pos));
    }
    return CK_OK;
}

static ck_status sets_of(ck_binder *b, keys *k, const ck_ast_expr *e, sets *out) {
    if (is_called(e, "rollup")) return rollup(b, k, e, out);
    if (is_called(e, "cube")) return cube(b, k, e, out);
    if (e->kind == CK_AST_GROUPING_SETS) {
        for (const ck_ast_expr *x = e->args.first; x; x = x->next) CK_TRY(sets_of(b, k, x, out));
        return CK_OK;
    }
    uint64_t set;
    CK_TRY(set_of(b, k, e, &set));
    return add_set(b, out, set, e->pos);
}

/* Items beside each other: every set of the one with every set of the other. */
static ck_status cross(ck_binder *b, const sets *x, const sets *y, ck_pos at, sets *out) {
    sets made = {.count = 0};
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t j = 0; j < y->count; j++) CK_TRY(add_set(b, &made, x->at[i] | y->at[j], at));
    *out = made;
    return CK_OK;
}

static ck_status grouping_sets(ck_binder *b, keys *k, const ck_ast_select *s, uint64_t always) {
    sets all = {{always}, 1};
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next) {
        sets own = {.count = 0};
        CK_TRY(sets_of(b, k, e, &own));
        CK_TRY(cross(b, &all, &own, e->pos, &all));
    }
    if (!(k->g->sets = CK_BIND_ARRAY(b, all.count, uint64_t))) return CK_NOMEM;
    memcpy(k->g->sets, all.at, all.count * sizeof *all.at);
    k->g->set_count = all.count;
    return CK_OK;
}

ck_status ck_bind_group_keys(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_expr *const *items,
                             const ck_ast_ident *aliases, uint32_t item_count, const ck_outer *o, ck_grouping *g) {
    keys k = {scope, items, aliases, item_count, g, 16};
    uint32_t number;
    uint64_t always = 0;
    if (!(g->keys = CK_BIND_ARRAY(b, k.room, ck_expr *))) return CK_NOMEM;
    g->window_pos = s->grouped ? s->group_pos : s->pos;
    for (uint32_t i = 0; o && i < o->pair_count; i++) {
        CK_TRY(add_key(b, &k, o->inner_exprs[i], s->pos, &number));
        always |= (uint64_t)1 << (number & 63);
    }
    if (ck_bind_has_grouping_sets(s)) {
        CK_TRY(grouping_sets(b, &k, s, always));
        for (uint32_t i = 0; o && i < g->set_count; i++)
            if (g->sets[i] == always)
                return ck_bind_refuse(b, s->group_pos,
                                      "the set () has a row even of nothing, which a subquery that is tied to the query "
                                      "around it cannot say; write one aggregation without GROUP BY and one with it");
        return CK_OK;
    }
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next) {
        bool row = is_plain_row(e); /* (a, b): both; (): none */
        for (const ck_ast_expr *x = row ? e->args.first : e; x; x = row ? x->next : NULL) {
            ck_expr *key;
            if (x->kind == CK_AST_CALL && ck_bind_is_window(x->name)) {
                CK_TRY(window_keys(b, &k, x));
                continue;
            }
            CK_TRY(key_of(b, &k, x, &key));
            CK_TRY(add_key(b, &k, key, x->pos, &number));
        }
    }
    return CK_OK;
}
