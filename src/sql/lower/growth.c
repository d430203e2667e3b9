/* How the state of an operator grows while its input goes on, in words for EXPLAIN. Bounded input bounds everything. */
#include "sql/lower/lower_int.h"

static const char *of_window(ck_lower_state *s, const ck_plan_node *n) {
    const ck_plan_window *w = &n->window.of;
    if (w->kind == CK_PLAN_WINDOW_SESSION) return "bounded by time: sessions that are not over";
    const char *size = w->kind == CK_PLAN_WINDOW_ATTACHED ? "" : ck_label_duration(s, w->size_us);
    const char *late = w->lateness_us ? ck_label_duration(s, w->lateness_us) : "";
    if (!size || !late) return NULL;
    return ck_arena_printf(s->arena, "bounded by time: windows%s%s that are not over%s%s", *size ? " of " : "", size,
                           *late ? ", and for lateness " : "", late);
}

/* Of a join whose state its condition bounds, or an as-of join's versions. */
static const char *of_join(ck_lower_state *s, const ck_plan_node *n) {
    ck_time_bounds b;
    if (n->join.as_of.kind != CK_AS_OF_NONE)
        return "bounded by keys: a version of each, and the rows that wait for one";
    bool left = ck_plan_join_grows(n, 0), right = ck_plan_join_grows(n, 1);
    if (left || right)
        return left && right ? "without end: every row of both sides"
               : left        ? "without end: every row of the left side"
                             : "without end: every row of the right side";
    if (!ck_plan_forgets_windows(n, &b) && !(n->join.in_time && ck_plan_time_bounds(n, &b)))
        return ck_plan_join_keeps(n, 0) ? "bounded: every row of the left side, which ends"
                                        : "bounded: every row of the right side, which ends";
    if (b.windowed) {
        const char *late = b.slack_us > 0 ? ck_label_duration(s, b.slack_us + 1) : "";
        return late ? ck_arena_printf(s->arena, "bounded by time: rows of windows that are not over%s%s",
                                      *late ? ", and for lateness " : "", late)
                    : NULL;
    }
    int64_t us = b.upper_us - b.lower_us;
    while (us % 1000 >= 998) us++; /* < and > leave out the last microsecond */
    const char *apart = ck_label_duration(s, us);
    return apart ? ck_arena_printf(s->arena, "bounded by time: rows of either side for %s, while partners may come",
                                   apart)
                 : NULL;
}

/* A partition goes with its window. */
static const char *of_windowed_top(ck_lower_state *s, const ck_plan_node *n) {
    bool all = n->inputs[0]->mode == CK_MODE_RETRACT || n->top.limit == UINT64_MAX;
    unsigned long long most = all ? 0 : n->top.limit + n->top.offset;
    const char *late = n->top.lateness_us ? ck_label_duration(s, n->top.lateness_us) : "";
    const char *rows =
        all ? "every row" : ck_arena_printf(s->arena, "up to %llu row%s a key", most, most == 1 ? "" : "s");
    if (!late || !rows) return NULL;
    return ck_arena_printf(s->arena, "bounded by time: %s of windows that are not over%s%s", rows,
                           *late ? ", and for lateness " : "", late);
}

static const char *of_top(ck_lower_state *s, const ck_plan_node *n) {
    if (n->top.windowed) return of_windowed_top(s, n);
    if (n->inputs[0]->mode == CK_MODE_RETRACT) return "without end: every row, since those on top may go";
    if (n->top.limit == UINT64_MAX) return "without end: every row";
    unsigned long long most = n->top.limit + n->top.offset;
    if (n->top.partition.count == 0) return ck_arena_printf(s->arena, "bounded: %llu rows", most);
    return ck_arena_printf(s->arena, "without end: up to %llu row%s for every new key", most, most == 1 ? "" : "s");
}

/* How long a side of a join is kept by state_ttl; 0: it is not. */
static int64_t side_ttl_us(const ck_plan_node *n, uint32_t side) {
    bool forgets = !n->join.in_time && !n->inputs[side]->bounded && ck_plan_join_keeps(n, side);
    return forgets ? n->input_ttl_us[side] : 0;
}

/* Rows are forgotten a while after they were written: of a join, on the sides that are. */
static bool is_forgetful(const ck_plan_node *n) {
    switch (n->kind) {
    case CK_PLAN_AGGREGATE: return n->aggregate.keys.count > 0 && n->input_ttl_us[0];
    case CK_PLAN_TOP_N: return !n->top.windowed && n->input_ttl_us[0];
    case CK_PLAN_SET_OP: return n->ttl_us;
    case CK_PLAN_JOIN: return side_ttl_us(n, 0) || side_ttl_us(n, 1);
    default: return false;
    }
}

static const char *of_ttl(ck_lower_state *s, const ck_plan_node *n) {
    bool join = n->kind == CK_PLAN_JOIN;
    int64_t us = join ? side_ttl_us(n, 0) : n->input_ttl_us[0], right = join ? side_ttl_us(n, 1) : n->input_ttl_us[1];
    if ((join || n->kind == CK_PLAN_SET_OP) && right > us) us = right;
    const char *text = ck_label_duration(s, us);
    return text ? ck_arena_printf(s->arena, "bounded by state_ttl: what was written in the last %s", text) : NULL;
}

const char *ck_lower_growth(ck_lower_state *s, const ck_plan_node *n) {
    if (is_forgetful(n) && !ck_plan_grows(n)) return of_ttl(s, n);
    switch (n->kind) {
    case CK_PLAN_WINDOW_AGG: return of_window(s, n);
    case CK_PLAN_JOIN: return of_join(s, n);
    case CK_PLAN_TOP_N: return of_top(s, n);
    case CK_PLAN_AGGREGATE:
        if (n->aggregate.keys.count == 0) return ck_plan_grows(n) ? "without end: every new value" : "bounded: one row";
        if (ck_plan_keeps_values(n)) return "without end: a group for every new key, and every new value in it";
        return n->aggregate.call_count ? "without end: a group for every new key" : "without end: every new row";
    case CK_PLAN_SET_OP: return "without end: every new row";
    default: return ck_plan_grows(n) ? "without end" : "bounded";
    }
}
