/* Rows that come too late for OVER, for ranks by event time and in windows, and for joins in time, where their table
 * has a late_table. Windows get it when they are bound; whether a join is bounded in time is known when conditions have
 * moved to it. */
#include "sql/bind/bind_int.h"
#include "sql/optimise/optimise.h"
#include "sql/script_int.h"

enum { INPUTS_MAX = CK_ARRAY_COUNT(((ck_plan_node *)0)->late) };

/* The event time by which n judges rows of an input; timed: somebody above n asks for time. */
static bool judges_by(const ck_plan_node *n, bool timed, uint32_t input, uint32_t *column) {
    ck_time_bounds b;
    switch (n->kind) {
    case CK_PLAN_OVER: *column = n->over.order_count ? n->over.order[0].column : 0; return ck_plan_uses_time(n);
    case CK_PLAN_TOP_N:
        if (n->top.windowed) {
            *column = n->top.window_end;
            return n->top.limit > 0;
        }
        *column = n->top.order_count ? n->top.order[0].column : 0;
        return (n->top.timed || (n->top.by_time && timed)) && n->top.limit > 0;
    case CK_PLAN_JOIN:
        if (n->join.as_of.kind == CK_AS_OF_EVENT) { /* a version that comes late counts from then on */
            *column = n->join.as_of.left_time;
            return input == 0;
        }
        if (!(n->join.in_time || timed) || !ck_plan_time_bounds(n, &b)) return false;
        *column = input ? b.right : b.left;
        return true;
    default: return false;
    }
}

/* Rows come out before the watermark that lets them go: none is late for what stands above. */
static bool says_in_time(const ck_plan_node *n) {
    while (n->kind == CK_PLAN_PROJECT || n->kind == CK_PLAN_FILTER || n->kind == CK_PLAN_UNNEST) n = n->inputs[0];
    return (n->kind == CK_PLAN_OVER || n->kind == CK_PLAN_TOP_N) && ck_plan_uses_time(n);
}

static const char *late_name(const ck_plan_node *n, bool timed, uint32_t input) {
    uint32_t column;
    if (input >= INPUTS_MAX || !judges_by(n, timed, input, &column) || says_in_time(n->inputs[input])) return NULL;
    return ck_bind_late_table_of(n->inputs[input], column);
}

const ck_catalog_entry *ck_script_late_table(ck_script *s, const ck_plan_node *n, uint32_t input) {
    if (input < INPUTS_MAX && n->late[input].table) return n->late[input].table;
    const char *name = late_name(n, true, input);
    const ck_catalog_entry *e = name ? ck_catalog_find(s->b.catalog, ck_view_of(name), false) : NULL;
    return e && e->kind == CK_ENTRY_TABLE ? e : NULL;
}

/* ---- the pass ---- */

typedef struct pass {
    ck_script *s;
    const bool *timed; /* by id of the nodes before it */
    ck_pos at;
} pass;

static bool concerns(const ck_plan_node *n, const bool *timed, bool *seen) {
    bool any = false;
    if (seen[n->id]) return false;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->input_count && !any; i++)
        any = late_name(n, timed[n->id], i) || concerns(n->inputs[i], timed, seen);
    return any;
}

/* Where columns, of the first input then of others, have gone with inputs that are wider. */
static uint32_t *moved_by(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *wide, uint32_t count) {
    uint32_t first = n->inputs[0]->schema->field_count, *moved = CK_PLAN_ARRAY(p, count, uint32_t);
    for (uint32_t i = 0; moved && i < count; i++) moved[i] = i < first ? i : wide[0]->schema->field_count + (i - first);
    return moved;
}

static ck_status wide_join(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *wide, ck_plan_node **out) {
    uint32_t left = n->inputs[0]->schema->field_count, width = left + n->inputs[1]->schema->field_count;
    ck_expr **columns = CK_PLAN_ARRAY(p, width, ck_expr *), **on = CK_PLAN_ARRAY(p, n->join.on_count, ck_expr *);
    uint32_t *moved = moved_by(p, n, wide, width);
    if (!columns || !on || !moved) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        const ck_field *f = &n->inputs[i >= left]->schema->fields[i < left ? i : i - left];
        if (!(columns[i] = ck_expr_column(p->arena, moved[i], f->type, f->nullable))) return ck_plan_nomem(p);
    }
    for (uint32_t i = 0; i < n->join.on_count; i++)
        if (!(on[i] = ck_expr_substitute(p->arena, n->join.on[i], columns, width))) return ck_plan_nomem(p);
    return ck_plan_join_again(p, n, wide[0], wide[1], on, n->join.on_count, moved, out);
}

static ck_status again(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *wide, ck_plan_node **out) {
    uint32_t below = n->inputs[0]->schema->field_count;
    if (n->kind == CK_PLAN_JOIN) return wide_join(p, n, wide, out);
    const char *const *names = ck_plan_names(p, n);
    if (!names) return CK_NOMEM;
    if (n->kind == CK_PLAN_OVER) return ck_plan_over_node(p, wide[0], &n->over, names + below, out);
    return ck_plan_top_n(p, wide[0], &n->top, n->top.rank_column ? names[below] : NULL, out);
}

/* n over inputs that have columns of late tables behind their own, with the columns it had. */
static ck_status widened(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *wide, const ck_plan_late *late,
                         ck_plan_node **out) {
    uint32_t width = n->schema->field_count, *moved = moved_by(p, n, wide, width);
    ck_expr **exprs = CK_PLAN_ARRAY(p, width, ck_expr *);
    const char *const *names = ck_plan_names(p, n);
    ck_plan_node *made;
    if (!moved || !exprs || !names) return CK_NOMEM;
    CK_TRY(again(p, n, wide, &made));
    ck_plan_keep_identity(made, n);
    memcpy(made->late, late, sizeof made->late);
    for (uint32_t i = 0; i < width; i++)
        if (!(exprs[i] = ck_plan_column(p, made, moved[i]))) return CK_NOMEM;
    CK_TRY(ck_plan_project(p, made, exprs, names, width, out));
    if (ck_plan_is_identity(*out)) *out = made;
    (*out)->meaning = n->meaning;
    return CK_OK;
}

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    const pass *of = (const pass *)arg;
    ck_plan_node *wide[INPUTS_MAX] = {0};
    ck_plan_late late[INPUTS_MAX] = {{0}};
    bool any = false;
    for (uint32_t i = 0; i < n->input_count && i < INPUTS_MAX; i++) {
        uint32_t column;
        wide[i] = inputs[i];
        if (!late_name(n, of->timed[n->id], i) || !judges_by(n, true, i, &column)) continue;
        CK_TRY(ck_bind_late_rows(&of->s->b, column, of->at, &wide[i], &late[i]));
        any = any || late[i].table;
    }
    return any ? widened(p, n, wide, late, out) : ck_plan_with_inputs(p, n, inputs, out);
}

ck_status ck_script_late_rows(ck_script *s, ck_output *outputs, uint32_t count) {
    ck_plan *p = &s->b.plan;
    bool *timed = CK_PLAN_ARRAY(p, p->node_count, bool), *seen = CK_PLAN_ARRAY(p, p->node_count, bool), any = false;
    bool *asked = CK_PLAN_ARRAY(p, p->node_count, bool);
    if (!timed || !seen || !asked) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) ck_plan_mark_timed(outputs[i].node, false, timed, seen);
    for (uint32_t i = 0; i < count; i++) any = concerns(outputs[i].node, timed, asked) || any;
    if (!any) return CK_OK;
    return ck_rewrite_plan(p, outputs, count, one, &(pass){s, timed, outputs[0].pos});
}
