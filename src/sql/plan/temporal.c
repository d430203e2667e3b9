/* What FOR SYSTEM_TIME AS OF joins with: rows that are versions, each of its key and from its time on. */
#include "expr/function.h"
#include "sql/plan/plan_int.h"

bool ck_plan_is_proctime(const ck_plan_node *n, uint32_t column) {
    while (n->kind == CK_PLAN_FILTER || n->kind == CK_PLAN_UNNEST || n->kind == CK_PLAN_WINDOW) {
        n = n->inputs[0];
        if (column >= n->schema->field_count) return false; /* an element's, the window's */
    }
    if (n->kind == CK_PLAN_JOIN) {
        uint32_t left = n->inputs[0]->schema->field_count;
        return ck_plan_is_proctime(n->inputs[column >= left], column >= left ? column - left : column);
    }
    if (n->kind != CK_PLAN_PROJECT) return false;
    const ck_expr *e = n->project.exprs[column];
    if (e->kind == CK_EXPR_COLUMN) return ck_plan_is_proctime(n->inputs[0], e->column);
    return e->kind == CK_EXPR_CALL && strcmp(e->fn->name, "proctime") == 0;
}

/* ---- a table ---- */

/* Where column `physical` of the table is among n's, CK_NO_COLUMN: not there as it is. */
static uint32_t place_of(const ck_plan_node *n, uint32_t physical) {
    if (n->kind == CK_PLAN_SCAN) {
        for (uint32_t i = 0; i < n->scan.columns.count; i++)
            if (n->scan.columns.at[i] == physical) return i;
        return CK_NO_COLUMN;
    }
    uint32_t below = place_of(n->inputs[0], physical);
    for (uint32_t i = 0; below != CK_NO_COLUMN && i < n->schema->field_count; i++)
        if (n->project.exprs[i]->kind == CK_EXPR_COLUMN && n->project.exprs[i]->column == below) return i;
    return CK_NO_COLUMN;
}

static ck_status of_table(ck_plan *p, ck_plan_node *n, ck_plan_versions *out) {
    const ck_plan_node *scan = n;
    while (scan->kind == CK_PLAN_PROJECT) scan = scan->inputs[0];
    if (scan->kind != CK_PLAN_SCAN) return CK_OK;
    const ck_table_decl *t = &scan->scan.table->table.decl;
    uint32_t *key = CK_PLAN_ARRAY(p, t->primary_key_count, uint32_t);
    if (!key) return CK_NOMEM;
    for (uint32_t i = 0; i < t->primary_key_count; i++)
        if ((key[i] = place_of(n, t->primary_key[i])) == CK_NO_COLUMN) return CK_OK;
    if (t->primary_key_count == 0) return CK_OK;
    *out = (ck_plan_versions){n, {key, t->primary_key_count}, CK_NO_COLUMN};
    for (uint32_t i = n->schema->field_count; i-- > 0;)
        if (ck_plan_time_of(n, i).role == CK_TIME_ROW) out->time = i;
    return CK_OK;
}

/* ---- the last row of each key ---- */

typedef struct kept { /* what a projection over a ROW_NUMBER is over its input */
    const ck_plan_node *top;
    ck_plan_node *node;
    bool one; /* a condition keeps the first row alone */
} kept;

/* rank = 1, rank <= 1, rank < 2, and the same from the other side. */
static bool keeps_first(const ck_expr *e, uint32_t rank) {
    if (e->kind != CK_EXPR_CALL || e->arg_count != 2) return false;
    bool crossed = e->args[1]->kind == CK_EXPR_COLUMN;
    const ck_expr *column = e->args[crossed], *bound = e->args[!crossed];
    const char *op = e->fn->name;
    if (column->kind != CK_EXPR_COLUMN || column->column != rank || bound->kind != CK_EXPR_LITERAL || bound->value.null)
        return false;
    if (strcmp(op, "=") == 0 || strcmp(op, crossed ? ">=" : "<=") == 0) return bound->value.i64 == 1;
    return strcmp(op, crossed ? ">" : "<") == 0 && bound->value.i64 == 2;
}

/* Which column of n the rank is; CK_NO_COLUMN: it is not passed on. */
static uint32_t rank_in(const ck_plan_node *n, const ck_plan_node *top) {
    if (n == top) return n->schema->field_count - 1;
    uint32_t below = rank_in(n->inputs[0], top);
    if (n->kind == CK_PLAN_FILTER || below == CK_NO_COLUMN) return below;
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (n->project.exprs[i]->kind == CK_EXPR_COLUMN && n->project.exprs[i]->column == below) return i;
    return CK_NO_COLUMN;
}

static ck_status without_rank(ck_plan *p, ck_plan_node *top, kept *k) {
    uint32_t width = top->schema->field_count;
    ck_expr **exprs = CK_PLAN_ARRAY(p, width, ck_expr *);
    const char **names = CK_PLAN_ARRAY(p, width, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        names[i] = top->schema->fields[i].name;
        exprs[i] = top->top.rank_column && i + 1 == width
                       ? ck_expr_literal(p->arena, ck_type_simple(CK_TYPE_BIGINT), (ck_datum){.i64 = 1})
                       : ck_plan_column(p, top->inputs[0], i);
        if (!exprs[i]) return ck_plan_nomem(p);
    }
    k->top = top;
    k->one = top->top.limit == 1 && top->top.offset == 0;
    return ck_plan_project(p, top->inputs[0], exprs, names, width, &k->node);
}

static ck_status strip(ck_plan *p, ck_plan_node *n, kept *k) {
    if (n->kind == CK_PLAN_TOP_N) return without_rank(p, n, k);
    if (n->kind != CK_PLAN_PROJECT && n->kind != CK_PLAN_FILTER) return CK_OK;
    CK_TRY(strip(p, n->inputs[0], k));
    if (!k->top) return CK_OK;
    if (n->kind == CK_PLAN_PROJECT) {
        const char **names = CK_PLAN_ARRAY(p, n->schema->field_count, const char *);
        if (!names) return CK_NOMEM;
        for (uint32_t i = 0; i < n->schema->field_count; i++) names[i] = n->schema->fields[i].name;
        return ck_plan_project(p, k->node, n->project.exprs, names, n->schema->field_count, &k->node);
    }
    uint32_t rank = k->top->top.rank_column ? rank_in(n->inputs[0], k->top) : CK_NO_COLUMN;
    if (n->filter.count == 1 && rank != CK_NO_COLUMN && keeps_first(n->filter.conjuncts[0], rank))
        k->one = true;
    else
        k->top = NULL; /* a condition on rows: without one the version before would be valid */
    return CK_OK;
}

/* Column `column` of the ROW_NUMBER's input among n's. */
static uint32_t place_over(const ck_plan_node *n, const ck_plan_node *top, uint32_t column) {
    if (n == top) return column;
    uint32_t below = place_over(n->inputs[0], top, column);
    if (n->kind == CK_PLAN_FILTER || below == CK_NO_COLUMN) return below;
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (n->project.exprs[i]->kind == CK_EXPR_COLUMN && n->project.exprs[i]->column == below) return i;
    return CK_NO_COLUMN;
}

static ck_status of_last_row(ck_plan *p, ck_plan_node *n, ck_plan_versions *out) {
    kept k = {0};
    CK_TRY(strip(p, n, &k));
    if (!k.top || !k.one) return CK_OK;
    const ck_plan_top *t = &k.top->top;
    const ck_plan_node *rows = k.top->inputs[0];
    if (t->partition.count == 0 || t->order_count == 0 || !t->order[0].descending || rows->mode != CK_MODE_APPEND ||
        ck_plan_time_of(rows, t->order[0].column).role != CK_TIME_ROW)
        return CK_OK;
    uint32_t *key = CK_PLAN_ARRAY(p, t->partition.count, uint32_t), time = place_over(n, k.top, t->order[0].column);
    if (!key) return CK_NOMEM;
    for (uint32_t i = 0; i < t->partition.count; i++)
        if ((key[i] = place_over(n, k.top, t->partition.at[i])) == CK_NO_COLUMN) return CK_OK;
    *out = (ck_plan_versions){k.node, {key, t->partition.count}, time};
    return CK_OK;
}

ck_status ck_plan_versions_of(ck_plan *p, ck_plan_node *n, ck_plan_versions *out) {
    *out = (ck_plan_versions){.time = CK_NO_COLUMN};
    CK_TRY(of_table(p, n, out));
    return out->node ? CK_OK : of_last_row(p, n, out);
}
