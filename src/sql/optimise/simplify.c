/* Constants folded; filters that are always true, projections that change nothing and filters on filters disappear; a
 * projection over rows of constants becomes rows of constants. */
#include "expr/function.h"
#include "sql/optimise/optimise_int.h"

static ck_status simplify_all(ck_plan *p, ck_expr *const *exprs, uint32_t count, ck_expr ***out) {
    if (!(*out = CK_PLAN_ARRAY(p, count, ck_expr *))) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) CK_TRY(ck_expr_simplify(p, exprs[i], &(*out)[i]));
    return CK_OK;
}

static bool is_true(const ck_expr *e) { return e->kind == CK_EXPR_LITERAL && !e->value.null && e->value.b; }
static bool is_and(const ck_expr *e) { return e->kind == CK_EXPR_CALL && strcmp(e->fn->name, "and") == 0; }

static ck_status filter(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, ck_plan_node **out) {
    ck_expr **all;
    CK_TRY(simplify_all(p, n->filter.conjuncts, n->filter.count, &all));
    uint32_t room = 0, count = 0;
    for (uint32_t i = 0; i < n->filter.count; i++) room += is_and(all[i]) ? all[i]->arg_count : 1;
    ck_expr **kept = CK_PLAN_ARRAY(p, room, ck_expr *);
    if (!kept) return CK_NOMEM;
    for (uint32_t i = 0; i < n->filter.count; i++) {
        ck_expr **parts = is_and(all[i]) ? all[i]->args : &all[i];
        uint32_t part_count = is_and(all[i]) ? all[i]->arg_count : 1;
        for (uint32_t k = 0; k < part_count; k++)
            if (!is_true(parts[k])) kept[count++] = parts[k];
    }
    *out = input;
    return count ? ck_plan_filter(p, input, kept, count, out) : CK_OK;
}

/* Every expression over one row of constants is a constant, unless it would fail or is volatile. */
static ck_status rows_of(ck_plan *p, const ck_plan_node *values, ck_expr *const *exprs, uint32_t width, bool *all,
                         ck_expr ***out) {
    uint32_t inner = values->schema->field_count;
    ck_expr **cells = CK_PLAN_ARRAY(p, (size_t)values->values.row_count * width, ck_expr *);
    if (!cells) return CK_NOMEM;
    *all = true;
    for (uint32_t r = 0; *all && r < values->values.row_count; r++) {
        for (uint32_t c = 0; *all && c < width; c++) {
            ck_expr **cell = &cells[(size_t)r * width + c];
            *cell = ck_expr_substitute(p->arena, exprs[c], values->values.rows + (size_t)r * inner, inner);
            if (!*cell) return ck_plan_nomem(p);
            CK_TRY(ck_expr_simplify(p, *cell, cell));
            *all = (*cell)->kind == CK_EXPR_LITERAL;
        }
    }
    *out = cells;
    return CK_OK;
}

enum { FOLDED_CELLS_MAX = 100000 };

static ck_status project(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, ck_plan_node **out) {
    ck_expr **exprs, **cells = NULL;
    uint32_t width = n->schema->field_count;
    CK_TRY(simplify_all(p, n->project.exprs, width, &exprs));
    if (input->kind == CK_PLAN_VALUES && (uint64_t)input->values.row_count * (width + 1) <= FOLDED_CELLS_MAX) {
        bool all;
        CK_TRY(rows_of(p, input, exprs, width, &all, &cells));
        if (all) return ck_plan_values(p, n->schema, cells, input->values.row_count, out);
    }
    const char *const *names = ck_plan_names(p, n);
    if (!names) return CK_NOMEM;
    CK_TRY(ck_plan_project(p, input, exprs, names, width, out));
    if (ck_plan_is_identity(*out)) *out = input;
    return CK_OK;
}

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    (void)arg;
    switch (n->kind) {
    case CK_PLAN_FILTER: return filter(p, n, inputs[0], out);
    case CK_PLAN_PROJECT: return project(p, n, inputs[0], out);
    default: return ck_plan_with_inputs(p, n, inputs, out);
    }
}

ck_status ck_simplify(ck_plan *p, ck_output *outputs, uint32_t count) {
    return ck_rewrite_plan(p, outputs, count, one, NULL);
}
