/* Which nodes reckon with event time, and below which of them time has to go along with the rows. */
#include "sql/plan/plan.h"

/* Windows by the clock make the time of those above them. */
static bool makes_time(const ck_plan_node *n) {
    return (n->kind == CK_PLAN_WINDOW || n->kind == CK_PLAN_WINDOW_AGG) && n->window.of.processing;
}

bool ck_plan_uses_time(const ck_plan_node *n) {
    switch (n->kind) {
    case CK_PLAN_WINDOW:
    case CK_PLAN_WINDOW_AGG: return !makes_time(n);
    case CK_PLAN_JOIN: return n->join.in_time || n->join.as_of.kind == CK_AS_OF_EVENT;
    case CK_PLAN_OVER: return n->over.by == CK_BY_EVENT_TIME;
    case CK_PLAN_TOP_N: return n->top.timed || n->top.windowed;
    default: return false;
    }
}

void ck_plan_mark_timed(const ck_plan_node *n, bool above, bool *timed, bool *seen) {
    if (seen[n->id] && (timed[n->id] || !above)) return; /* asked twice at most: without it and with it */
    seen[n->id] = true;
    timed[n->id] = above;
    for (uint32_t i = 0; i < n->input_count; i++)
        ck_plan_mark_timed(n->inputs[i], (above && !makes_time(n)) || ck_plan_uses_time(n), timed, seen);
}
