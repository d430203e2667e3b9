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

static const char *of_join(ck_lower_state *s, const ck_plan_node *n) {
    ck_time_bounds b;
    if (ck_plan_grows(n)) {
        bool both = !n->inputs[0]->bounded && !n->inputs[1]->bounded;
        return both ? "without end: every row of both sides" : "without end: every row of the side that ends";
    }
    if (!ck_plan_time_bounds(n, &b)) return "bounded";
    int64_t us = b.upper_us - b.lower_us;
    while (us % 1000 >= 998) us++; /* < and > leave out the last microsecond */
    const char *apart = ck_label_duration(s, us);
    return apart ? ck_arena_printf(s->arena, "bounded by time: rows of either side for %s, while partners may come",
                                   apart)
                 : NULL;
}

static const char *of_top(ck_lower_state *s, const ck_plan_node *n) {
    if (n->inputs[0]->mode == CK_MODE_RETRACT) return "without end: every row, since those on top may go";
    if (n->top.limit == UINT64_MAX) return "without end: every row";
    unsigned long long most = n->top.limit + n->top.offset;
    if (n->top.partition.count == 0) return ck_arena_printf(s->arena, "bounded: %llu rows", most);
    return ck_arena_printf(s->arena, "without end: up to %llu row%s for every new key", most, most == 1 ? "" : "s");
}

const char *ck_lower_growth(ck_lower_state *s, const ck_plan_node *n) {
    switch (n->kind) {
    case CK_PLAN_WINDOW_AGG: return of_window(s, n);
    case CK_PLAN_JOIN: return of_join(s, n);
    case CK_PLAN_TOP_N: return of_top(s, n);
    case CK_PLAN_AGGREGATE:
        if (n->aggregate.keys.count == 0) return "bounded: one row";
        return n->aggregate.call_count ? "without end: a group for every new key" : "without end: every new row";
    case CK_PLAN_SET_OP: return "without end: every new row";
    default: return ck_plan_grows(n) ? "without end" : "bounded";
    }
}
