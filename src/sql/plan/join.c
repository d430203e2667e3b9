/* Joins. The condition is a list of conjuncts over left then right columns; which of them are equalities of the two
 * sides is found again where it matters, so that the optimiser may add conjuncts. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"

bool ck_join_pads_right(ck_join_kind k) { return k == CK_JOIN_LEFT_OUTER || k == CK_JOIN_FULL_OUTER; }
bool ck_join_pads_left(ck_join_kind k) { return k == CK_JOIN_RIGHT_OUTER || k == CK_JOIN_FULL_OUTER; }
bool ck_join_keeps_left_only(ck_join_kind k) { return k == CK_JOIN_LEFT_SEMI || k == CK_JOIN_LEFT_ANTI; }

const char *ck_join_kind_name(ck_join_kind k) {
    static const char *const names[] = {"inner", "left", "right", "full", "semi", "anti"};
    return names[k];
}

/* ---- sides and equalities ---- */

typedef struct sides {
    uint32_t left_count;
    bool left, right;
} sides;

static void note_side(void *arg, uint32_t column) {
    sides *s = (sides *)arg;
    if (column < s->left_count) {
        s->left = true;
    } else {
        s->right = true;
    }
}

ck_join_side ck_join_side_of(const ck_expr *e, uint32_t left_count) {
    sides s = {left_count, false, false};
    ck_expr_visit_columns(e, note_side, &s);
    return s.left && s.right ? CK_SIDE_BOTH : s.left ? CK_SIDE_LEFT : s.right ? CK_SIDE_RIGHT : CK_SIDE_NONE;
}

bool ck_join_equality(const ck_expr *e, uint32_t left_count, ck_join_pair *out) {
    if (e->kind != CK_EXPR_CALL || e->arg_count != 2) return false;
    bool null_safe = strcmp(e->fn->name, "is_not_distinct_from") == 0;
    if (!null_safe && strcmp(e->fn->name, "=") != 0) return false;
    ck_join_side a = ck_join_side_of(e->args[0], left_count), b = ck_join_side_of(e->args[1], left_count);
    bool straight = a == CK_SIDE_LEFT && b == CK_SIDE_RIGHT, crossed = a == CK_SIDE_RIGHT && b == CK_SIDE_LEFT;
    if ((!straight && !crossed) || ck_expr_is_volatile(e)) return false;
    *out = (ck_join_pair){e->args[crossed], e->args[straight], null_safe};
    return true;
}

/* ---- the node ---- */

static ck_status schema_of(ck_plan *p, const ck_plan_node *left, const ck_plan_node *right, ck_join_kind kind,
                           const ck_schema **out) {
    if (ck_join_keeps_left_only(kind)) {
        *out = left->schema;
        return CK_OK;
    }
    ck_schema *schema;
    ck_field *fields;
    uint32_t n = left->schema->field_count, m = right->schema->field_count;
    CK_TRY(ck_plan_schema_new(p, n + m, &schema, &fields));
    for (uint32_t i = 0; i < n + m; i++) {
        fields[i] = i < n ? left->schema->fields[i] : right->schema->fields[i - n];
        if (i < n ? ck_join_pads_left(kind) : ck_join_pads_right(kind)) fields[i].nullable = true;
    }
    *out = schema;
    return CK_OK;
}

/* Columns of one side that are equal to something of the other. */
static uint32_t equal_columns(const ck_plan_node *n, uint32_t left_count, bool left, uint32_t *out) {
    uint32_t count = 0;
    ck_join_pair pair;
    for (uint32_t i = 0; i < n->join.on_count; i++) {
        if (!ck_join_equality(n->join.on[i], left_count, &pair)) continue;
        const ck_expr *e = left ? pair.left : pair.right;
        if (e->kind == CK_EXPR_COLUMN) out[count++] = e->column - (left ? 0 : left_count);
    }
    return count;
}

static bool add_shifted_key(ck_plan *p, ck_plan_node *n, const ck_columns *a, const ck_columns *b, uint32_t shift) {
    uint32_t count = (a ? a->count : 0) + (b ? b->count : 0), at = 0;
    uint32_t *columns = CK_PLAN_ARRAY(p, count, uint32_t);
    if (!columns) return false;
    for (uint32_t i = 0; a && i < a->count; i++) columns[at++] = a->at[i];
    for (uint32_t i = 0; b && i < b->count; i++) columns[at++] = b->at[i] + shift;
    return ck_plan_add_key(p, n, columns, count);
}

/* A side whose rows meet at most one of the other keeps its keys; otherwise a pair of keys names a pair of rows. */
static ck_status keys_of(ck_plan *p, ck_plan_node *n) {
    const ck_plan_node *left = n->inputs[0], *right = n->inputs[1];
    uint32_t shift = left->schema->field_count;
    if (ck_join_keeps_left_only(n->join.kind)) {
        memcpy(n->keys, left->keys, sizeof n->keys);
        n->key_count = left->key_count;
        return CK_OK;
    }
    uint32_t *equal = CK_PLAN_ARRAY(p, n->join.on_count, uint32_t);
    if (!equal) return CK_NOMEM;
    ck_as_of as_of = n->join.as_of.kind;
    bool one_right = n->join.single || as_of == CK_AS_OF_EVENT || as_of == CK_AS_OF_NOW ||
                     ck_plan_is_unique(right, equal, equal_columns(n, shift, false, equal));
    bool one_left = ck_plan_is_unique(left, equal, equal_columns(n, shift, true, equal));
    for (uint32_t k = 0; one_right && !ck_join_pads_left(n->join.kind) && k < left->key_count; k++)
        if (!add_shifted_key(p, n, &left->keys[k], NULL, 0)) return CK_NOMEM;
    for (uint32_t k = 0; one_left && !ck_join_pads_right(n->join.kind) && k < right->key_count; k++)
        if (!add_shifted_key(p, n, NULL, &right->keys[k], shift)) return CK_NOMEM;
    for (uint32_t k = 0; k < left->key_count; k++)
        for (uint32_t m = 0; m < right->key_count; m++)
            if (!add_shifted_key(p, n, &left->keys[k], &right->keys[m], shift)) return CK_NOMEM;
    return CK_OK;
}

/* The equalities in canonical order: the key of the identity. */
static ck_status identify(ck_plan *p, ck_plan_node *n, const char *const *names) {
    uint32_t left_count = n->inputs[0]->schema->field_count;
    ck_bytes text;
    ck_join_pair pair;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < n->join.on_count; i++) {
        if (!ck_join_equality(n->join.on[i], left_count, &pair)) continue;
        if (text.n) s = ck_bytes_char(&text, ',');
        if (s == CK_OK) s = ck_expr_print(pair.left, names, &text);
        if (s == CK_OK) s = ck_bytes_char(&text, '=');
        if (s == CK_OK) s = ck_expr_print(pair.right, names, &text);
    }
    const char *key = s == CK_OK ? ck_arena_strndup(p->arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    if (!key) return ck_plan_nomem(p);
    static const char *const as_of[] = {"", "as_of_", "as_of_now_", "lookup_"};
    const char *of = as_of[n->join.as_of.kind];
    bool inner = n->join.kind == CK_JOIN_BOTH_INNER;
    const char *kind =
        ck_arena_printf(p->arena, "%s%s%sjoin", of, inner ? "" : ck_join_kind_name(n->join.kind), inner ? "" : "_");
    if (!kind) return ck_plan_nomem(p);
    return ck_plan_identify(p, n, kind, key);
}

/* Names of left and right columns one after the other. */
static const char *const *both_names(ck_plan *p, const ck_plan_node *left, const ck_plan_node *right) {
    uint32_t n = left->schema->field_count, m = right->schema->field_count;
    const char **names = CK_PLAN_ARRAY(p, n + m, const char *);
    for (uint32_t i = 0; names && i < n + m; i++)
        names[i] = i < n ? left->schema->fields[i].name : right->schema->fields[i - n].name;
    return names;
}

/* ---- what is kept ---- */

enum { NEITHER = 2 };

/* The side that is read to its end before rows of the other, which go past it and are not kept: as the operator chooses
 * (operator/join_plan.c). */
static uint32_t built_first(const ck_plan_node *n) {
    const ck_plan_node *l = n->inputs[0], *r = n->inputs[1];
    bool left_changes = l->mode == CK_MODE_RETRACT, right_changes = r->mode == CK_MODE_RETRACT;
    if (n->join.in_time) return NEITHER;
    if (n->final) {
        uint32_t build = n->join.kind == CK_JOIN_RIGHT_OUTER ? 0 : 1;
        return n->inputs[build]->bounded && n->inputs[!build]->mode == CK_MODE_APPEND ? build : NEITHER;
    }
    switch (n->join.kind) {
    case CK_JOIN_BOTH_INNER:
        if (left_changes || right_changes) return NEITHER;
        if (n->join.build_left) return 0;
        return r->bounded ? 1 : l->bounded ? 0 : NEITHER;
    case CK_JOIN_LEFT_SEMI: return r->bounded && !left_changes && !right_changes ? 1 : NEITHER;
    case CK_JOIN_LEFT_OUTER:
    case CK_JOIN_LEFT_ANTI: return r->bounded && !l->bounded && !right_changes ? 1 : NEITHER;
    case CK_JOIN_RIGHT_OUTER: return l->bounded && !r->bounded && !left_changes ? 0 : NEITHER;
    case CK_JOIN_FULL_OUTER: break;
    }
    return NEITHER;
}

bool ck_plan_join_keeps(const ck_plan_node *n, uint32_t side) {
    uint32_t build = built_first(n);
    return build == NEITHER || build == side;
}

bool ck_plan_join_passes_time(const ck_plan_node *n, uint32_t side) {
    uint32_t build = built_first(n);
    bool pads = side ? ck_join_pads_right(n->join.kind) : ck_join_pads_left(n->join.kind);
    return n->join.as_of.kind == CK_AS_OF_NONE && build != NEITHER && build != side && !pads &&
           n->inputs[side]->mode == CK_MODE_APPEND;
}

static bool has_time(const ck_plan_node *n) {
    for (uint32_t i = 0; i < n->schema->field_count; i++) {
        ck_time_role role = ck_plan_time_of(n, i).role;
        if (role != CK_TIME_NONE && role != CK_TIME_PROCESSING) return true;
    }
    return false;
}

/* Of two sides that end the right is read first; but not where only the right has a time that others may need. */
static bool is_built_left(const ck_plan_node *n) {
    const ck_plan_node *l = n->inputs[0], *r = n->inputs[1];
    return n->join.kind == CK_JOIN_BOTH_INNER && n->join.as_of.kind == CK_AS_OF_NONE && l->bounded && r->bounded &&
           l->mode == CK_MODE_APPEND && r->mode == CK_MODE_APPEND && !has_time(l) && has_time(r);
}

bool ck_plan_join_grows(const ck_plan_node *n, uint32_t side) {
    ck_time_bounds b;
    if (n->inputs[side]->bounded || n->join.as_of.kind != CK_AS_OF_NONE) return false; /* a row a key, and what waits */
    if (ck_plan_forgets_windows(n, &b)) return false;
    if (n->join.in_time && ck_plan_time_bounds(n, &b))
        return !b.windowed && (side == 0 ? b.upper_us == CK_TIME_UNBOUNDED : b.lower_us == -CK_TIME_UNBOUNDED);
    return ck_plan_join_keeps(n, side) && !n->input_ttl_us[side];
}

/* ---- making ---- */

static ck_status make(ck_plan *p, ck_join_kind kind, ck_plan_node *left, ck_plan_node *right, ck_expr *const *on,
                      uint32_t on_count, bool single, const ck_plan_as_of *as_of, const char *const *names,
                      ck_plan_node **out) {
    ck_plan_node *n, *inputs[2] = {left, right};
    CK_TRY(ck_plan_new(p, CK_PLAN_JOIN, inputs, 2, &n));
    CK_TRY(schema_of(p, left, right, kind, &n->schema));
    n->join.kind = kind, n->join.on = on, n->join.on_count = on_count, n->join.single = single;
    if (as_of) n->join.as_of = *as_of;
    bool temporal = n->join.as_of.kind != CK_AS_OF_NONE;
    bool waits = !temporal && kind != CK_JOIN_BOTH_INNER && kind != CK_JOIN_LEFT_SEMI; /* a row without a partner yet */
    n->final = waits && (p->emit_on_close || (n->bounded && !p->changes));
    n->join.has_bounds = ck_plan_find_time_bounds(n, &n->join.bounds);
    n->join.in_time = n->join.has_bounds && !temporal && !n->final && (!n->bounded || p->changes);
    n->join.build_left = is_built_left(n);
    if (waits && (n->final || n->join.in_time))
        n->mode = CK_MODE_APPEND;
    else if (waits && built_first(n) == NEITHER) /* else a row knows at once who its partners are */
        n->mode = CK_MODE_RETRACT;
    if (temporal) n->mode = CK_MODE_APPEND, n->bounded = left->bounded;
    CK_TRY(keys_of(p, n));
    if (!names && !(names = both_names(p, left, right))) return CK_NOMEM;
    CK_TRY(ck_plan_canonical_exprs(p, n, on, on_count, names));
    CK_TRY(identify(p, n, names));
    *out = n;
    return CK_OK;
}

ck_status ck_plan_join(ck_plan *p, ck_join_kind kind, ck_plan_node *left, ck_plan_node *right, ck_expr *const *on,
                       uint32_t on_count, bool single, const char *const *names, ck_plan_node **out) {
    return make(p, kind, left, right, on, on_count, single, NULL, names, out);
}

ck_status ck_plan_join_as_of(ck_plan *p, ck_join_kind kind, ck_plan_node *left, ck_plan_node *right, ck_expr *const *on,
                             uint32_t on_count, const ck_plan_as_of *as_of, const char *const *names,
                             ck_plan_node **out) {
    return make(p, kind, left, right, on, on_count, false, as_of, names, out);
}

ck_status ck_plan_join_again(ck_plan *p, const ck_plan_node *n, ck_plan_node *left, ck_plan_node *right,
                             ck_expr *const *on, uint32_t on_count, const uint32_t *moved, ck_plan_node **out) {
    ck_plan_as_of as_of = n->join.as_of;
    uint32_t was = n->inputs[0]->schema->field_count, is = left->schema->field_count;
    if (moved && as_of.kind == CK_AS_OF_EVENT) {
        as_of.left_time = moved[as_of.left_time];
        as_of.right_time = moved[was + as_of.right_time] - is;
    }
    CK_TRY(make(p, n->join.kind, left, right, on, on_count, n->join.single, &as_of, NULL, out));
    ck_plan_keep_identity(*out, n);
    (*out)->final = n->final;
    if (n->final) (*out)->mode = n->mode;
    return CK_OK;
}
