/* Joins: ON, USING, NATURAL, the comma; and equalities of WHERE, which make a comma a join. */
#include "sql/bind/bind_int.h"

ck_status ck_bind_needs(ck_binder *b, const char *type, ck_pos at, const char *what) {
    const ck_op_desc *d;
    ck_error ignored = CK_ERROR_INIT;
    if (ck_registry_op(b->catalog->registry, type, &d, &ignored) == CK_OK) return CK_OK;
    return ck_bind_refuse(b, at, "%s not supported yet", what);
}

/* ---- scopes ---- */

static ck_status names_differ(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_pos at) {
    for (uint32_t i = 0; i < left->table_count; i++)
        for (uint32_t k = 0; k < right->table_count; k++)
            if (left->tables[i].name.n && ck_view_eq(left->tables[i].name, right->tables[k].name))
                return ck_bind_fail(b, at, "two tables are called \"%.*s\" here; give one another name with AS",
                                    ck_cut(left->tables[i].name), left->tables[i].name.p);
    return CK_OK;
}

ck_status ck_scope_combine(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_plan_node *node,
                           ck_scope *out) {
    uint32_t shift = left->node->schema->field_count, width = shift + right->node->schema->field_count;
    ck_scope_table *tables = CK_BIND_ARRAY(b, left->table_count + right->table_count, ck_scope_table);
    bool *hidden = CK_BIND_ARRAY(b, width, bool);
    if (!tables || !hidden) return CK_NOMEM;
    for (uint32_t i = 0; i < left->table_count; i++) tables[i] = left->tables[i];
    for (uint32_t i = 0; i < right->table_count; i++) {
        tables[left->table_count + i] = right->tables[i];
        tables[left->table_count + i].first += shift;
    }
    for (uint32_t i = 0; i < width; i++)
        hidden[i] = i < shift ? left->hidden && left->hidden[i] : right->hidden && right->hidden[i - shift];
    *out = (ck_scope){
        .node = node, .tables = tables, .table_count = left->table_count + right->table_count, .hidden = hidden};
    return ck_scope_canonical(b, out);
}

/* A scope of both sides for binding the condition: a join that has none yet. */
static ck_status both_sides(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_scope *out) {
    ck_plan_node *n;
    CK_TRY(ck_plan_join(&b->plan, CK_JOIN_BOTH_INNER, left->node, right->node, NULL, 0, false, NULL, &n));
    return ck_scope_combine(b, left, right, n, out);
}

/* ---- USING, NATURAL ---- */

typedef struct shared_columns {
    uint32_t *left, *right;
    uint32_t count;
} shared_columns;

static ck_status ambiguous_here(ck_binder *b, const char *clause, const char *which, ck_view name, ck_pos at) {
    return ck_bind_fail(b, at, "%s: column \"%.*s\" is ambiguous on the %s of the join", clause, ck_cut(name), name.p,
                        which);
}

static ck_status column_of_side(ck_binder *b, const ck_scope *side, const char *which, const ck_ast_ident *name,
                                uint32_t *out) {
    bool twice = false;
    *out = ck_scope_find(side, name->text, name->quoted, &twice);
    if (twice) return ambiguous_here(b, "USING", which, name->text, name->pos);
    if (*out != CK_NO_COLUMN) return CK_OK;
    ck_suggest near;
    ck_suggest_init(&near, name->text);
    for (uint32_t i = 0; i < side->node->schema->field_count; i++)
        ck_suggest_offer(&near, ck_view_of(side->node->schema->fields[i].name));
    return ck_bind_fail(b, name->pos, "USING: there is no column \"%.*s\" on the %s of the join%s", ck_cut(name->text),
                        name->text.p, which, ck_bind_near(b, &near));
}

static ck_status shared_of(ck_binder *b, const ck_ast_from *f, const ck_scope *left, const ck_scope *right,
                           shared_columns *out) {
    const ck_schema *l = left->node->schema;
    uint32_t room = f->natural ? l->field_count : f->using_columns.count;
    *out = (shared_columns){CK_BIND_ARRAY(b, room, uint32_t), CK_BIND_ARRAY(b, room, uint32_t), 0};
    if (!out->left || !out->right) return CK_NOMEM;
    for (const ck_ast_name *n = f->using_columns.first; n; n = n->next, out->count++) {
        CK_TRY(column_of_side(b, left, "left", &n->ident, &out->left[out->count]));
        CK_TRY(column_of_side(b, right, "right", &n->ident, &out->right[out->count]));
    }
    for (uint32_t i = 0; f->natural && i < l->field_count; i++) {
        bool twice_right, twice_left;
        ck_view name = ck_view_of(l->fields[i].name);
        uint32_t c = ck_scope_find(right, name, true, &twice_right);
        if (c == CK_NO_COLUMN || (left->hidden && left->hidden[i])) continue;
        ck_scope_find(left, name, true, &twice_left);
        if (twice_left || twice_right)
            return ambiguous_here(b, "NATURAL JOIN", twice_left ? "left" : "right", name, f->right->pos);
        out->left[out->count] = i, out->right[out->count++] = c;
    }
    if (f->natural && out->count == 0)
        return ck_bind_fail(b, f->right->pos, "the sides of this NATURAL JOIN have no column name in common");
    return CK_OK;
}

static ck_status equalities_of(ck_binder *b, const ck_ast_from *f, ck_scope *both, uint32_t shift,
                               const shared_columns *c, ck_expr ***on) {
    if (!(*on = CK_BIND_ARRAY(b, c->count, ck_expr *))) return CK_NOMEM;
    for (uint32_t i = 0; i < c->count; i++) {
        ck_expr *args[2] = {ck_plan_column(&b->plan, both->node, c->left[i]),
                            ck_plan_column(&b->plan, both->node, shift + c->right[i])};
        if (!args[0] || !args[1]) return CK_NOMEM;
        CK_TRY(ck_bind_function(b, "=", args, 2, f->pos, &(*on)[i]));
    }
    return CK_OK;
}

static ck_status merged_value(ck_binder *b, const ck_ast_from *f, const ck_plan_node *n, uint32_t left, uint32_t right,
                              ck_expr **out) {
    ck_expr *args[2] = {ck_plan_column(&b->plan, n, left), ck_plan_column(&b->plan, n, right)};
    if (!args[0] || !args[1]) return CK_NOMEM;
    *out = f->join == CK_JOIN_RIGHT ? args[1] : args[0];
    return f->join == CK_JOIN_FULL ? ck_bind_function(b, "coalesce", args, 2, f->pos, out) : CK_OK;
}

/* The columns of USING once more behind both sides, as one table that * names first; those of the sides are hidden. */
static ck_status merge_columns(ck_binder *b, const ck_ast_from *f, const shared_columns *c, uint32_t shift,
                               ck_scope *scope) {
    uint32_t width = scope->node->schema->field_count, total = width + c->count;
    ck_expr **exprs = CK_BIND_ARRAY(b, total, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, total, const char *);
    bool *hidden = CK_BIND_ARRAY(b, total, bool);
    ck_scope_table *tables = CK_BIND_ARRAY(b, scope->table_count + 1, ck_scope_table);
    if (!exprs || !names || !hidden || !tables) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        names[i] = scope->node->schema->fields[i].name;
        hidden[i] = scope->hidden[i];
        if (!(exprs[i] = ck_plan_column(&b->plan, scope->node, i))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        names[width + i] = names[c->left[i]];
        hidden[c->left[i]] = hidden[shift + c->right[i]] = true;
        CK_TRY(merged_value(b, f, scope->node, c->left[i], shift + c->right[i], &exprs[width + i]));
    }
    memcpy(tables, scope->tables, scope->table_count * sizeof *tables);
    tables[scope->table_count] = (ck_scope_table){{0}, width, c->count, true};
    CK_TRY(ck_plan_project(&b->plan, scope->node, exprs, names, total, &scope->node));
    scope->tables = tables, scope->table_count++, scope->hidden = hidden;
    return ck_scope_canonical(b, scope);
}

/* ---- the join ---- */

static const ck_join_kind kinds[] = {
    [CK_JOIN_INNER] = CK_JOIN_BOTH_INNER, [CK_JOIN_LEFT] = CK_JOIN_LEFT_OUTER, [CK_JOIN_RIGHT] = CK_JOIN_RIGHT_OUTER,
    [CK_JOIN_FULL] = CK_JOIN_FULL_OUTER,  [CK_JOIN_SEMI] = CK_JOIN_LEFT_SEMI,  [CK_JOIN_ANTI] = CK_JOIN_LEFT_ANTI,
    [CK_JOIN_CROSS] = CK_JOIN_BOTH_INNER};

/* The conjuncts of ON without subqueries. */
static ck_status conditions(ck_binder *b, const ck_ast_from *f, ck_scope *both, ck_expr ***on, uint32_t *count) {
    ck_bind_place place = {.scope = both, .clause = "ON"};
    bool many = f->on->kind == CK_AST_AND, as_of = f->right->kind == CK_FROM_TABLE && f->right->as_of;
    *count = 0;
    if (!(*on = CK_BIND_ARRAY(b, many ? f->on->args.count : 1, ck_expr *))) return CK_NOMEM;
    for (const ck_ast_expr *c = many ? f->on->args.first : f->on; c; c = many ? c->next : NULL) {
        if (!ck_bind_has_query(c)) {
            CK_TRY(ck_bind_condition(b, &place, c, &(*on)[(*count)++]));
        } else if (kinds[f->join] != CK_JOIN_BOTH_INNER || as_of) {
            return ck_bind_refuse(b, c->pos,
                                  "a subquery in ON is for inner joins of tables as they are now; here it stands in a "
                                  "subquery of FROM: JOIN (SELECT ... FROM t WHERE ...) AS t ON ...");
        }
    }
    return CK_OK;
}

/* Conjuncts of an inner join's ON that have subqueries are as in WHERE; no columns are left of them. */
static ck_status with_queries(ck_binder *b, const ck_ast_expr *on, ck_scope *scope) {
    ck_bind_place place = {.scope = scope, .clause = "ON", .queries = true};
    uint32_t width = scope->node->schema->field_count;
    CK_TRY(ck_bind_query_conjuncts(b, &place, on));
    if (scope->node->schema->field_count == width) return CK_OK;
    ck_expr **exprs = CK_BIND_ARRAY(b, width, ck_expr *);
    const char **names = CK_BIND_ARRAY(b, width, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        names[i] = scope->node->schema->fields[i].name;
        if (!(exprs[i] = ck_plan_column(&b->plan, scope->node, i))) return CK_NOMEM;
    }
    CK_TRY(ck_plan_project(&b->plan, scope->node, exprs, names, width, &scope->node));
    return ck_scope_canonical(b, scope);
}

ck_status ck_bind_join(ck_binder *b, const ck_ast_from *f, ck_scope *left, const ck_scope *right, ck_scope *out) {
    ck_scope both, right_side = *right;
    shared_columns shared = {0};
    ck_expr **on;
    uint32_t count, shift = left->node->schema->field_count;
    ck_join_kind kind = kinds[f->join];
    CK_TRY(ck_bind_needs(b, "join", f->right->pos, "joins are"));
    CK_TRY(names_differ(b, left, right, f->right->pos));
    CK_TRY(both_sides(b, left, right, &both));
    bool by_name = f->natural || f->using_columns.count;
    if (by_name) {
        CK_TRY(shared_of(b, f, left, &right_side, &shared));
        CK_TRY(equalities_of(b, f, &both, shift, &shared, &on));
        count = shared.count;
    } else {
        CK_TRY(conditions(b, f, &both, &on, &count));
    }
    ck_plan_node *n;
    if (f->right->kind == CK_FROM_TABLE && f->right->as_of) {
        ck_plan_as_of as_of;
        CK_TRY(ck_bind_as_of(b, f, left, &right_side, on, count, &as_of));
        right = &right_side;
        CK_TRY(ck_plan_join_as_of(&b->plan, kind, left->node, right->node, on, count, &as_of, both.canonical, &n));
    } else {
        CK_TRY(ck_plan_join(&b->plan, kind, left->node, right->node, on, count, false, both.canonical, &n));
    }
    if (ck_join_keeps_left_only(kind)) {
        *out = *left;
        out->node = n;
        return CK_OK;
    }
    CK_TRY(ck_scope_combine(b, left, right, n, out));
    if (f->on && ck_bind_has_query(f->on)) CK_TRY(with_queries(b, f->on, out));
    return by_name ? merge_columns(b, f, &shared, shift, out) : CK_OK;
}

ck_status ck_bind_cross(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_pos at, ck_scope *out) {
    CK_TRY(ck_bind_needs(b, "join", at, "joins are"));
    CK_TRY(names_differ(b, left, right, at));
    return both_sides(b, left, right, out);
}

/* ---- WHERE makes a comma a join ---- */

static ck_status absorb(ck_binder *b, ck_plan_node *n, ck_expr *e, const char *const *names, bool *taken,
                        ck_plan_node **out) {
    uint32_t left = n->kind == CK_PLAN_JOIN ? n->inputs[0]->schema->field_count : 0;
    ck_join_pair pair;
    ck_plan_node *deeper;
    *taken = false, *out = n;
    if (n->kind != CK_PLAN_JOIN || n->join.kind != CK_JOIN_BOTH_INNER) return CK_OK;
    if (ck_join_equality(e, left, &pair)) {
        ck_expr **on = CK_BIND_ARRAY(b, n->join.on_count + 1, ck_expr *);
        if (!on) return CK_NOMEM;
        if (n->join.on_count) memcpy(on, n->join.on, n->join.on_count * sizeof *on);
        on[n->join.on_count] = e;
        *taken = true;
        return ck_plan_join(&b->plan, n->join.kind, n->inputs[0], n->inputs[1], on, n->join.on_count + 1, false, names,
                            out);
    }
    if (ck_join_side_of(e, left) != CK_SIDE_LEFT) return CK_OK;
    CK_TRY(absorb(b, n->inputs[0], e, names, taken, &deeper)); /* the left's columns come first: same numbers, names */
    if (!*taken) return CK_OK;
    return ck_plan_join(&b->plan, n->join.kind, deeper, n->inputs[1], n->join.on, n->join.on_count, false, names, out);
}

/* Only equalities that cannot fail: they may be asked before the conjuncts in front of them. */
ck_status ck_bind_absorb(ck_binder *b, ck_scope *scope, ck_expr **conjuncts, uint32_t *count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        bool taken = false;
        if (!ck_expr_is_fallible(conjuncts[i]))
            CK_TRY(absorb(b, scope->node, conjuncts[i], scope->canonical, &taken, &scope->node));
        if (!taken) conjuncts[kept++] = conjuncts[i];
    }
    *count = kept;
    return CK_OK;
}

static bool is_small(const ck_plan_node *n) {
    return ck_plan_is_unique(n, NULL, 0) || n->kind == CK_PLAN_VALUES ||
           (n->kind == CK_PLAN_PROJECT && is_small(n->inputs[0]));
}

ck_status ck_bind_check_joins(ck_binder *b, ck_plan_node *n, ck_pos at) {
    ck_join_pair pair;
    bool seen = n->joins_checked; /* a view's joins are asked about once, however often it is used */
    n->joins_checked = true;
    if (seen) return CK_OK;
    if (n->kind == CK_PLAN_PROJECT || n->kind == CK_PLAN_FILTER) return ck_bind_check_joins(b, n->inputs[0], at);
    if (n->kind != CK_PLAN_JOIN) return CK_OK;
    if (n->join.single) return ck_bind_check_joins(b, n->inputs[0], at);
    bool fine = is_small(n->inputs[0]) || is_small(n->inputs[1]);
    for (uint32_t i = 0; i < n->join.on_count && !fine; i++)
        fine = ck_join_equality(n->join.on[i], n->inputs[0]->schema->field_count, &pair);
    if (!fine)
        return ck_bind_refuse(
            b, at,
            "a join here has no equality between its sides, so that every row would meet every other; "
            "join them ON a.x = b.y");
    CK_TRY(ck_bind_check_joins(b, n->inputs[0], at));
    return ck_bind_check_joins(b, n->inputs[1], at);
}
