/* A projection over a projection becomes one, unless that would compute a value that is new each time more than once,
 * or let expressions grow: repeated values are computed once in one operator, but are written out in its parameters. */
#include "sql/optimise/optimise_int.h"

enum { GROWN_NODES_MAX = 400 };

typedef struct usage {
    uint32_t *times; /* by column of the inner projection */
} usage;
static void count_use(void *arg, uint32_t column) { ((usage *)arg)->times[column]++; }

static bool is_simple(const ck_expr *e) { return e->kind != CK_EXPR_CALL; }

static ck_status may_merge(ck_plan *p, const ck_plan_node *outer, const ck_plan_node *inner, bool *out) {
    uint32_t width = inner->schema->field_count, grown = 0;
    usage u = {CK_PLAN_ARRAY(p, width, uint32_t)};
    if (!u.times) return CK_NOMEM;
    for (uint32_t i = 0; i < outer->schema->field_count; i++)
        ck_expr_visit_columns(outer->project.exprs[i], count_use, &u);
    *out = true;
    for (uint32_t c = 0; c < width && *out; c++) {
        const ck_expr *e = inner->project.exprs[c];
        if (u.times[c] <= 1 || is_simple(e)) continue;
        if (ck_expr_is_volatile(e)) *out = false;
        grown += (u.times[c] - 1) * ck_expr_size(e, GROWN_NODES_MAX + 1);
        if (grown > GROWN_NODES_MAX) *out = false;
    }
    return CK_OK;
}

typedef struct merging {
    const uint32_t *uses;
} merging;

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    const merging *m = (const merging *)arg;
    ck_plan_node *inner = inputs[0];
    bool fine = false;
    if (n->kind != CK_PLAN_PROJECT || inner->kind != CK_PLAN_PROJECT || m->uses[n->inputs[0]->id] > 1)
        return ck_plan_with_inputs(p, n, inputs, out);
    CK_TRY(may_merge(p, n, inner, &fine));
    if (!fine) return ck_plan_with_inputs(p, n, inputs, out);
    ck_expr **exprs = CK_PLAN_ARRAY(p, n->schema->field_count, ck_expr *);
    const char *const *names = ck_plan_names(p, n);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (!(exprs[i] = ck_expr_through(p, inner, n->project.exprs[i]))) return CK_NOMEM;
    return ck_plan_project(p, inner->inputs[0], exprs, names, n->schema->field_count, out);
}

ck_status ck_merge_projects(ck_plan *p, ck_output *outputs, uint32_t count) {
    ck_reach r;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    merging m = {r.uses};
    return ck_rewrite_plan(p, outputs, count, one, &m);
}
