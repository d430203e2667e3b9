/* Joins that a condition bounds in time: a.ts BETWEEN b.ts - INTERVAL ... AND b.ts, a.ts - b.ts < INTERVAL ..., and
 * however else it may be written: each side of a comparison is a sum of times, one of either table, and of fixed
 * intervals. What such conjuncts say is all in the bounds; others are the residual's. Windows whose ends are equal
 * bound a join by themselves: a row has partners until its window is over. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"
#include "stream/event.h"

enum { TERMS_MAX = 100 };

/* left_sign * left time + right_sign * right time + us */
typedef struct sum {
    const ck_plan_node *join;
    bool any; /* any column of timestamps will do */
    int left_sign, right_sign;
    uint32_t left, right; /* columns, each of its side */
    bool millis, numbers; /* the times, or plain numbers in it, are of milliseconds */
    ck_i128 us;
    uint32_t terms;
} sum;

typedef struct bounds {
    const ck_plan_node *join;
    bool any;
    bool has_time, has_lower, has_upper;
    ck_time_bounds of;
} bounds;

static bool add_column(sum *s, uint32_t column, int sign) {
    uint32_t left = s->join->inputs[0]->schema->field_count;
    bool right = column >= left;
    const ck_plan_node *n = s->join->inputs[right];
    if (right) column -= left;
    int *own = right ? &s->right_sign : &s->left_sign;
    ck_kind kind = n->schema->fields[column].type->kind;
    bool fine = s->any ? kind == CK_TYPE_TIMESTAMP || kind == CK_TYPE_TIMESTAMP_LTZ
                       : ck_plan_time_of(n, column).role == CK_TIME_ROW;
    if (*own || !fine) return false;
    *own = sign;
    *(right ? &s->right : &s->left) = column;
    if (kind == CK_TYPE_BIGINT) s->millis = true;
    return true;
}

static bool add_literal(sum *s, const ck_expr *e, int sign) {
    bool number = ck_kind_is_integer(e->type->kind);
    if (e->value.null || (!number && e->type->kind != CK_TYPE_INTERVAL_US)) return false;
    s->us += (ck_i128)sign * e->value.i64 * (number ? 1000 : 1);
    s->numbers |= number;
    return true;
}

/* A cast that changes no value: to a finer time, to a wider integer. */
static bool keeps_value(const ck_expr *cast) {
    const ck_type *to = cast->type, *from = cast->args[0]->type;
    if (ck_kind_is_integer(to->kind)) return ck_kind_is_integer(from->kind) && to->kind == CK_TYPE_BIGINT;
    bool time = to->kind == CK_TYPE_TIMESTAMP || to->kind == CK_TYPE_TIMESTAMP_LTZ;
    return time && from->kind == to->kind && from->precision <= to->precision;
}

static bool add(sum *s, const ck_expr *e, int sign) {
    if (++s->terms > TERMS_MAX) return false;
    if (e->kind == CK_EXPR_COLUMN) return add_column(s, e->column, sign);
    if (e->kind == CK_EXPR_LITERAL) return add_literal(s, e, sign);
    if (e->kind != CK_EXPR_CALL) return false;
    const char *fn = e->fn->name;
    if (e->arg_count == 1 && strcmp(fn, "cast") == 0) return keeps_value(e) && add(s, e->args[0], sign);
    if (e->arg_count != 2 || (strcmp(fn, "+") != 0 && strcmp(fn, "-") != 0)) return false;
    return add(s, e->args[0], sign) && add(s, e->args[1], *fn == '+' ? sign : -sign);
}

/* greater >= less, or > less. false: it is no bound of these times. */
static bool at_least(bounds *b, const ck_expr *greater, const ck_expr *less, bool strictly) {
    sum s = {.join = b->join, .any = b->any};
    if (!add(&s, greater, 1) || !add(&s, less, -1) || s.left_sign + s.right_sign != 0 || !s.left_sign) return false;
    if (s.numbers && !s.millis) return false;
    if (b->has_time && (b->of.left != s.left || b->of.right != s.right)) return false;
    ck_i128 us = strictly ? s.us - 1 : s.us; /* 0 <= the sum - 1 */
    if (us > CK_TIME_UNBOUNDED || us < -CK_TIME_UNBOUNDED) return false;
    b->has_time = true;
    b->of.left = s.left, b->of.right = s.right;
    int64_t n = (int64_t)us;
    if (s.right_sign > 0) { /* right - left >= -n */
        if (!b->has_lower || -n > b->of.lower_us) b->of.lower_us = -n;
        b->has_lower = true;
    } else { /* right - left <= n */
        if (!b->has_upper || n < b->of.upper_us) b->of.upper_us = n;
        b->has_upper = true;
    }
    return true;
}

/* Whether all that a conjunct says is in the bounds. */
static bool look_at(bounds *b, const ck_expr *e) {
    if (e->kind != CK_EXPR_CALL) return false;
    const char *op = e->fn->name;
    if (e->arg_count == 3 && strcmp(op, "between") == 0) {
        bool lower = at_least(b, e->args[0], e->args[1], false), upper = at_least(b, e->args[2], e->args[0], false);
        return lower && upper;
    }
    if (e->arg_count != 2) return false;
    if (strcmp(op, ">=") == 0) return at_least(b, e->args[0], e->args[1], false);
    if (strcmp(op, ">") == 0) return at_least(b, e->args[0], e->args[1], true);
    if (strcmp(op, "<=") == 0) return at_least(b, e->args[1], e->args[0], false);
    if (strcmp(op, "<") == 0) return at_least(b, e->args[1], e->args[0], true);
    if (strcmp(op, "=") != 0) return false;
    return at_least(b, e->args[0], e->args[1], false) && at_least(b, e->args[1], e->args[0], false);
}

static bool find_bounds(const ck_plan_node *n, bounds *b) {
    ck_join_pair pair;
    *b = (bounds){.join = n};
    if (n->join.as_of.kind != CK_AS_OF_NONE) return false;
    if (n->join.single || n->inputs[0]->mode != CK_MODE_APPEND || n->inputs[1]->mode != CK_MODE_APPEND) return false;
    for (uint32_t i = 0; i < n->join.on_count; i++) {
        (void)look_at(b, n->join.on[i]);
        if (ck_join_equality(n->join.on[i], n->inputs[0]->schema->field_count, &pair) && pair.null_safe) return false;
    }
    if (!b->has_lower) b->of.lower_us = -CK_TIME_UNBOUNDED;
    if (!b->has_upper) b->of.upper_us = CK_TIME_UNBOUNDED;
    return true;
}

/* ---- windows ---- */

enum { WINDOW_TIME_BEHIND_US = 999 }; /* window_time is so far before the last instant of the window */

static bool is_of_window(const ck_plan_node *n) {
    return n && (n->kind == CK_PLAN_WINDOW || n->kind == CK_PLAN_WINDOW_AGG);
}

/* Columns of either side that a conjunct says are equal. */
static bool equal_columns(const ck_plan_node *n, const ck_expr *e, uint32_t *left, uint32_t *right) {
    ck_join_pair pair;
    uint32_t width = n->inputs[0]->schema->field_count;
    if (!ck_join_equality(e, width, &pair) || pair.null_safe) return false;
    if (pair.left->kind != CK_EXPR_COLUMN || pair.right->kind != CK_EXPR_COLUMN) return false;
    *left = pair.left->column;
    *right = pair.right->column - width;
    return true;
}

bool ck_plan_pairs_windows(const ck_plan_node *n, uint32_t left, uint32_t right) {
    ck_time_role l = ck_plan_time_of(n->inputs[0], left).role, r = ck_plan_time_of(n->inputs[1], right).role;
    return l == r && (l == CK_TIME_WINDOW_START || l == CK_TIME_WINDOW_END);
}

/* The ends of windows, where some conjunct says that they are equal. */
static bool find_window(const ck_plan_node *n, ck_time_bounds *out) {
    for (uint32_t i = 0; i < n->join.on_count; i++) {
        uint32_t left, right;
        if (!equal_columns(n, n->join.on[i], &left, &right) || !ck_plan_pairs_windows(n, left, right)) continue;
        ck_time_origin l = ck_plan_time_of(n->inputs[0], left), r = ck_plan_time_of(n->inputs[1], right);
        if (l.role != CK_TIME_WINDOW_END) continue;
        int64_t late = l.lateness_us > r.lateness_us ? l.lateness_us : r.lateness_us;
        *out = (ck_time_bounds){.left = left, .right = right, .windowed = true, .slack_us = late - 1};
        return true;
    }
    return false;
}

/* Starts of windows that are made one way are equal where their ends are. */
static bool made_alike(const ck_plan_node *n, uint32_t left, uint32_t right) {
    ck_time_origin l = ck_plan_time_of(n->inputs[0], left), r = ck_plan_time_of(n->inputs[1], right);
    if (!is_of_window(l.node) || !is_of_window(r.node)) return false;
    const ck_plan_window *a = &l.node->window.of, *b = &r.node->window.of;
    bool fixed = a->kind != CK_PLAN_WINDOW_SESSION && a->kind != CK_PLAN_WINDOW_ATTACHED;
    return fixed && a->kind == b->kind && a->size_us == b->size_us && a->offset_us == b->offset_us;
}

static int64_t slack_of(const ck_plan_node *n, uint32_t column) {
    return is_of_window(ck_plan_time_of(n, column).node) ? WINDOW_TIME_BEHIND_US : 0;
}

/* A row that is said when it has met nobody must be known to meet nobody any more. */
bool ck_plan_find_time_bounds(const ck_plan_node *n, ck_time_bounds *out) {
    bounds b;
    if (!find_bounds(n, &b)) return false;
    if (find_window(n, out)) return true;
    *out = b.of;
    if (b.has_time) {
        int64_t left = slack_of(n->inputs[0], b.of.left), right = slack_of(n->inputs[1], b.of.right);
        out->slack_us = left > right ? left : right;
    }
    bool ends = n->inputs[0]->bounded || n->inputs[1]->bounded;
    switch (n->join.kind) {
    case CK_JOIN_BOTH_INNER: /* of a side that ends, one bound is worse than reading that side first */
    case CK_JOIN_LEFT_SEMI: return b.has_lower && b.has_upper ? true : !ends && (b.has_lower || b.has_upper);
    case CK_JOIN_LEFT_OUTER:
    case CK_JOIN_LEFT_ANTI: return b.has_upper;
    case CK_JOIN_RIGHT_OUTER: return b.has_lower;
    case CK_JOIN_FULL_OUTER: return b.has_lower && b.has_upper;
    }
    return false;
}

bool ck_plan_time_bounds(const ck_plan_node *n, ck_time_bounds *out) {
    if (n->kind != CK_PLAN_JOIN || !n->join.has_bounds) return false;
    *out = n->join.bounds;
    return true;
}

bool ck_plan_forgets_windows(const ck_plan_node *n, ck_time_bounds *out) {
    if (n->kind != CK_PLAN_JOIN || n->join.as_of.kind != CK_AS_OF_NONE || n->join.in_time || n->final) return false;
    if (n->inputs[0]->bounded || n->inputs[1]->bounded) return false;
    return find_window(n, out);
}

bool ck_plan_bounds_time(const ck_plan_node *join, const ck_expr *conjunct) {
    bounds b;
    ck_time_bounds window;
    if (find_window(join, &window)) {
        uint32_t left, right;
        if (!equal_columns(join, conjunct, &left, &right) || !ck_plan_pairs_windows(join, left, right)) return false;
        return (left == window.left && right == window.right) || made_alike(join, left, right);
    }
    return find_bounds(join, &b) && look_at(&b, conjunct);
}

bool ck_plan_distance(const ck_plan_node *join, const ck_expr *conjunct, ck_time_bounds *out) {
    bounds b = {.join = join, .any = true};
    if (!look_at(&b, conjunct)) return false;
    if (!b.has_lower) b.of.lower_us = -CK_TIME_UNBOUNDED;
    if (!b.has_upper) b.of.upper_us = CK_TIME_UNBOUNDED;
    *out = b.of;
    return true;
}
