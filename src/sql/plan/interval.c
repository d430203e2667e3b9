/* Joins that a condition bounds in time: from a.ts BETWEEN b.ts - INTERVAL ... AND b.ts and the like, how far apart the
 * event times of two partners may be. What the conditions say beyond that stays with the residual, which has all of
 * them. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"
#include "stream/event.h"

/* A time column of one side, moved by a fixed time. */
typedef struct moved_time {
    bool right;
    uint32_t column; /* of its side */
    int64_t us;
} moved_time;

typedef struct bounds {
    const ck_plan_node *join;
    bool has_time, has_lower, has_upper;
    ck_time_bounds of;
} bounds;

static bool is_interval(const ck_expr *e) {
    return e->kind == CK_EXPR_LITERAL && e->type->kind == CK_TYPE_INTERVAL_US && !e->value.null &&
           e->value.i64 > -CK_EVENT_TIME_MAX / 4 && e->value.i64 < CK_EVENT_TIME_MAX / 4;
}

static bool time_of(const ck_plan_node *join, const ck_expr *e, moved_time *out) {
    uint32_t left = join->inputs[0]->schema->field_count;
    *out = (moved_time){0};
    if (e->kind == CK_EXPR_CALL && e->arg_count == 2 && is_interval(e->args[1]) &&
        (strcmp(e->fn->name, "+") == 0 || strcmp(e->fn->name, "-") == 0)) {
        out->us = e->fn->name[0] == '+' ? e->args[1]->value.i64 : -e->args[1]->value.i64;
        e = e->args[0];
    }
    if (e->kind != CK_EXPR_COLUMN) return false;
    out->right = e->column >= left;
    out->column = out->right ? e->column - left : e->column;
    return ck_plan_time_of(join->inputs[out->right], out->column).role == CK_TIME_ROW;
}

/* x >= y, of two sides. */
static void at_least(bounds *b, const ck_expr *greater, const ck_expr *less) {
    moved_time x, y;
    if (!time_of(b->join, greater, &x) || !time_of(b->join, less, &y) || x.right == y.right) return;
    uint32_t left = x.right ? y.column : x.column, right = x.right ? x.column : y.column;
    if (b->has_time && (b->of.left != left || b->of.right != right))
        return; /* of other columns: the residual's alone */
    b->has_time = true;
    b->of.left = left, b->of.right = right;
    int64_t us = x.right ? y.us - x.us : x.us - y.us; /* right - left >= us, or <= us */
    if (x.right && (!b->has_lower || us > b->of.lower_us)) b->has_lower = true, b->of.lower_us = us;
    if (!x.right && (!b->has_upper || us < b->of.upper_us)) b->has_upper = true, b->of.upper_us = us;
}

static void look_at(bounds *b, const ck_expr *e) {
    if (e->kind != CK_EXPR_CALL) return;
    const char *op = e->fn->name;
    if (e->arg_count == 3 && strcmp(op, "between") == 0) {
        at_least(b, e->args[0], e->args[1]);
        at_least(b, e->args[2], e->args[0]);
    } else if (e->arg_count == 2 && (strcmp(op, ">=") == 0 || strcmp(op, ">") == 0)) {
        at_least(b, e->args[0], e->args[1]);
    } else if (e->arg_count == 2 && (strcmp(op, "<=") == 0 || strcmp(op, "<") == 0)) {
        at_least(b, e->args[1], e->args[0]);
    } else if (e->arg_count == 2 && strcmp(op, "=") == 0) {
        at_least(b, e->args[0], e->args[1]);
        at_least(b, e->args[1], e->args[0]);
    }
}

bool ck_plan_time_bounds(const ck_plan_node *n, ck_time_bounds *out) {
    bounds b = {.join = n};
    ck_join_pair pair;
    if (n->kind != CK_PLAN_JOIN || n->join.kind != CK_JOIN_BOTH_INNER || n->join.single ||
        n->inputs[0]->mode != CK_MODE_APPEND || n->inputs[1]->mode != CK_MODE_APPEND)
        return false;
    for (uint32_t i = 0; i < n->join.on_count; i++) {
        look_at(&b, n->join.on[i]);
        if (ck_join_equality(n->join.on[i], n->inputs[0]->schema->field_count, &pair) && pair.null_safe) return false;
    }
    *out = b.of;
    return b.has_lower && b.has_upper;
}
