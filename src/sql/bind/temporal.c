/* JOIN t FOR SYSTEM_TIME AS OF: with the version of t at a row's time, with t as it is now, with what is found outside.
 */
#include "sql/bind/bind_int.h"

static ck_status time_of_left(ck_binder *b, const ck_ast_from *f, ck_scope *left, ck_plan_as_of *out) {
    const ck_ast_expr *e = f->right->as_of;
    ck_bind_place place = {.scope = left, .clause = "FOR SYSTEM_TIME AS OF"};
    ck_expr *x = NULL;
    *out = (ck_plan_as_of){.kind = CK_AS_OF_NOW};
    if (e->kind == CK_AST_CALL && ck_view_eq_nocase(e->name, CK_VIEW("proctime")) && e->args.count == 0) return CK_OK;
    if (e->kind == CK_AST_NAME || e->kind == CK_AST_FIELD) CK_TRY(ck_bind_expr(b, &place, e, &x));
    if (x && x->kind == CK_EXPR_COLUMN) {
        if (ck_plan_is_proctime(left->node, x->column)) return CK_OK;
        out->kind = CK_AS_OF_EVENT;
        out->left_time = x->column;
        if (ck_plan_time_of(left->node, x->column).role == CK_TIME_ROW) return CK_OK;
    }
    return ck_bind_refuse(
        b, e->pos,
        "FOR SYSTEM_TIME AS OF takes the event time of the left side, a column with WATERMARK FOR, or "
        "PROCTIME(); this is neither");
}

static ck_status check_kind(ck_binder *b, const ck_ast_from *f, const ck_scope *left) {
    if (f->join != CK_JOIN_INNER && f->join != CK_JOIN_LEFT)
        return ck_bind_refuse(b, f->right->as_of->pos,
                              "FOR SYSTEM_TIME AS OF gives each row of the left its row of the right: write JOIN or "
                              "LEFT JOIN");
    if (left->node->mode == CK_MODE_APPEND) return CK_OK;
    return ck_bind_refuse(
        b, f->right->as_of->pos,
        "the rows left of FOR SYSTEM_TIME AS OF change, and what has been found for a row cannot be "
        "found again when it is taken back; join first and aggregate what comes out, or write a plain "
        "JOIN");
}

/* ---- lookups ---- */

static const ck_plan_node *plain_scan(const ck_plan_node *n) {
    while (n->kind == CK_PLAN_PROJECT) n = n->inputs[0];
    return n->kind == CK_PLAN_SCAN ? n : NULL;
}

static bool can_look_up(const ck_binder *b, const ck_plan_node *right) {
    const ck_plan_node *scan = plain_scan(right);
    const ck_op_desc *d;
    ck_error ignored = CK_ERROR_INIT;
    if (!scan || !right->bounded) return false;
    const ck_connector_desc *c = scan->scan.table->table.connector;
    return c->lookup_type && ck_registry_op(b->catalog->registry, c->lookup_type, &d, &ignored) == CK_OK;
}

/* Both sides of one type, which is the column's outside. */
static ck_status lookup_pair(ck_binder *b, ck_join_pair *pair, ck_pos at, ck_expr **out) {
    ck_expr *args[2] = {pair->left, pair->right};
    bool integers = ck_kind_is_integer(pair->left->type->kind) && ck_kind_is_integer(pair->right->type->kind);
    if (!ck_type_eq(pair->left->type, pair->right->type)) {
        if (!integers)
            return ck_bind_refuse(b, at,
                                  "a row is looked up by values of the column's own type, and this is %s for %s; write "
                                  "CAST(... AS %s)",
                                  ck_type_name(b->plan.arena, pair->left->type),
                                  ck_type_name(b->plan.arena, pair->right->type),
                                  ck_type_name(b->plan.arena, pair->right->type));
        CK_TRY(ck_expr_cast(b->plan.arena, pair->left, pair->right->type, true, &args[0], b->err));
    }
    return ck_bind_function(b, "=", args, 2, at, out);
}

static ck_status lookup_keys(ck_binder *b, const ck_ast_from *f, const ck_scope *left, const ck_scope *right,
                             ck_expr **on, uint32_t count, ck_plan_as_of *out) {
    ck_join_pair pair;
    out->kind = CK_AS_OF_LOOKUP;
    for (const ck_plan_node *n = right->node; n->kind == CK_PLAN_PROJECT; n = n->inputs[0])
        for (uint32_t i = 0; i < n->schema->field_count; i++)
            if (n->project.exprs[i]->kind != CK_EXPR_COLUMN)
                return ck_bind_refuse(b, f->right->pos,
                                      "column \"%s\" is computed, and rows are looked up as they are outside; compute "
                                      "it in SELECT",
                                      n->schema->fields[i].name);
    for (uint32_t i = 0; i < count; i++) {
        if (!ck_join_equality(on[i], left->node->schema->field_count, &pair) || pair.null_safe ||
            pair.right->kind != CK_EXPR_COLUMN)
            continue;
        ck_pos at = {.line = on[i]->line, .column = on[i]->col};
        ck_expr *key, *other = on[out->key_count];
        CK_TRY(lookup_pair(b, &pair, at, &key));
        on[i] = other;
        on[out->key_count++] = key;
    }
    if (out->key_count) return CK_OK;
    return ck_bind_refuse(
        b, f->right->as_of->pos,
        "a row is looked up by columns of its table: join them ON a.x = t.y, with a column of t alone "
        "on its side");
}

/* ---- keys of versions ---- */

static const char *key_names(ck_binder *b, const ck_plan_node *n, ck_columns key) {
    const char *all = "";
    for (uint32_t i = 0; all && i < key.count; i++)
        all = ck_arena_printf(b->plan.arena, "%s%s%s", all, i ? ", " : "", n->schema->fields[key.at[i]].name);
    return all;
}

/* Moves the conjuncts that compare the key to the front. *whole: all of the key is compared. */
static void key_first(const ck_scope *left, ck_columns key, ck_expr **on, uint32_t count, bool *whole) {
    uint32_t shift = left->node->schema->field_count, n = 0;
    ck_join_pair pair;
    for (uint32_t k = 0; k < key.count; k++) {
        uint32_t i = n;
        for (; i < count; i++)
            if (ck_join_equality(on[i], shift, &pair) && !pair.null_safe && pair.right->kind == CK_EXPR_COLUMN &&
                pair.right->column == shift + key.at[k])
                break;
        *whole = i < count;
        if (!*whole) return;
        ck_expr *e = on[i];
        on[i] = on[n];
        on[n++] = e;
    }
}

static ck_status whole_key(ck_binder *b, const ck_ast_from *f, const ck_scope *left, const ck_plan_node *right,
                           ck_columns key, ck_expr **on, uint32_t count, ck_plan_as_of *out) {
    bool whole = false;
    key_first(left, key, on, count, &whole);
    out->key_count = key.count;
    if (whole) return CK_OK;
    const char *names = key_names(b, right, key);
    if (!names) return ck_bind_nomem(b);
    return ck_bind_refuse(b, f->right->as_of->pos,
                          "FOR SYSTEM_TIME AS OF finds a row by its key, and ON does not compare all of it: %s", names);
}

static ck_status versions(ck_binder *b, const ck_ast_from *f, const ck_scope *left, ck_scope *right, ck_expr **on,
                          uint32_t count, ck_plan_as_of *out) {
    ck_plan_versions v;
    CK_TRY(ck_plan_versions_of(&b->plan, right->node, &v));
    if (!v.node)
        return ck_bind_refuse(b, f->right->pos,
                              "FOR SYSTEM_TIME AS OF event time needs the versions of each row: a table with PRIMARY "
                              "KEY (...) NOT ENFORCED "
                              "and WATERMARK FOR, or a view that keeps the last row of each key: SELECT * FROM (SELECT "
                              "*, ROW_NUMBER() OVER "
                              "(PARTITION BY key ORDER BY time DESC) AS n FROM t) WHERE n = 1");
    if (v.node->mode != CK_MODE_APPEND)
        return ck_bind_refuse(
            b, f->right->pos,
            "the rows right of FOR SYSTEM_TIME AS OF change, and one that is taken back does not say since when it is "
            "gone: read its versions as new rows, or write FOR SYSTEM_TIME AS OF PROCTIME()");
    if (v.time == CK_NO_COLUMN)
        return ck_bind_refuse(
            b, f->right->pos,
            "nothing says from when on a row of the right side is valid: give its table WATERMARK FOR "
            "ts AS ts, or write FOR SYSTEM_TIME AS OF PROCTIME()");
    CK_TRY(whole_key(b, f, left, v.node, v.key, on, count, out));
    right->node = v.node;
    out->right_time = v.time;
    return CK_OK;
}

static ck_status current(ck_binder *b, const ck_ast_from *f, const ck_scope *left, const ck_scope *right, ck_expr **on,
                         uint32_t count, ck_plan_as_of *out) {
    const ck_plan_node *n = right->node;
    ck_plan_versions v;
    bool whole = false;
    for (uint32_t k = 0; k < n->key_count && !whole; k++) {
        key_first(left, n->keys[k], on, count, &whole);
        out->key_count = n->keys[k].count;
    }
    if (whole) return CK_OK;
    if (n->key_count) return whole_key(b, f, left, n, n->keys[0], on, count, out);
    CK_TRY(ck_plan_versions_of(&b->plan, right->node, &v));
    if (v.node == n) return whole_key(b, f, left, n, v.key, on, count, out);
    return ck_bind_refuse(
        b, f->right->pos,
        "FOR SYSTEM_TIME AS OF PROCTIME() takes the one row of each key, and nothing says that there is "
        "one: give the table a PRIMARY KEY (...) NOT ENFORCED, or join a query with GROUP BY");
}

ck_status ck_bind_as_of(ck_binder *b, const ck_ast_from *f, ck_scope *left, ck_scope *right, ck_expr **on,
                        uint32_t count, ck_plan_as_of *out) {
    CK_TRY(check_kind(b, f, left));
    CK_TRY(time_of_left(b, f, left, out));
    if (out->kind == CK_AS_OF_NOW && can_look_up(b, right->node)) return lookup_keys(b, f, left, right, on, count, out);
    CK_TRY(ck_bind_needs(b, "temporal_join", f->right->as_of->pos, "FOR SYSTEM_TIME AS OF is"));
    if (out->kind == CK_AS_OF_EVENT) return versions(b, f, left, right, on, count, out);
    return current(b, f, left, right, on, count, out);
}
