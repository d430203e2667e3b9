/* What a row had when it was read, carried past projections and filters to who wants it further up. */
#include "sql/plan/plan_int.h"

typedef struct carrying {
    ck_plan *p;
    const ck_catalog_entry *table;
    ck_expr *const *values;
    uint32_t count;
} carrying;

static ck_status carry(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine);

/* n with a projection that adds these expressions behind its own columns; those that are columns already are not added.
 */
static ck_status widen(ck_plan *p, ck_plan_node **n, ck_expr *const *values, uint32_t count, uint32_t *out) {
    uint32_t width = (*n)->schema->field_count, added = 0;
    ck_expr **exprs = CK_PLAN_ARRAY(p, width + count, ck_expr *);
    const char **names = CK_PLAN_ARRAY(p, width + count, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        names[i] = (*n)->schema->fields[i].name;
        if (!(exprs[i] = ck_plan_column(p, *n, i))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = values[i]->kind == CK_EXPR_COLUMN ? values[i]->column : width + added;
        if (values[i]->kind == CK_EXPR_COLUMN) continue;
        names[width + added] = "";
        exprs[width + added++] = values[i];
    }
    return added ? ck_plan_project(p, *n, exprs, names, width + added, n) : CK_OK;
}

static ck_status of_scan(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine) {
    const ck_columns *scanned = &(*n)->scan.columns;
    uint32_t physical = c->table->table.decl.schema->field_count;
    *fine = (*n)->scan.table == c->table && scanned->count == physical; /* not pruned yet */
    if (!*fine) return CK_OK;
    return widen(c->p, n, c->values, c->count, out);
}

/* Columns that the projection passes on already are found there. */
static ck_status of_project(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine) {
    ck_plan_node *below = (*n)->inputs[0];
    uint32_t width = (*n)->schema->field_count, added = 0;
    CK_TRY(carry(c, &below, out, fine));
    if (!*fine) return CK_OK;
    ck_expr **exprs = CK_PLAN_ARRAY(c->p, width + c->count, ck_expr *);
    const char **names = CK_PLAN_ARRAY(c->p, width + c->count, const char *);
    if (!exprs || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) exprs[i] = (*n)->project.exprs[i], names[i] = (*n)->schema->fields[i].name;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t k = 0;
        while (k < width && !(exprs[k]->kind == CK_EXPR_COLUMN && exprs[k]->column == out[i])) k++;
        if (k == width) {
            k = width + added++;
            names[k] = "";
            if (!(exprs[k] = ck_plan_column(c->p, below, out[i]))) return CK_NOMEM;
        }
        out[i] = k;
    }
    return added ? ck_plan_project(c->p, below, exprs, names, width + added, n) : CK_OK;
}

/* Arms are brought to the same width. */
static ck_status of_union(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine) {
    uint32_t width = (*n)->schema->field_count;
    ck_plan_node **arms = CK_PLAN_ARRAY(c->p, (*n)->input_count, ck_plan_node *);
    if (!arms) return CK_NOMEM;
    for (uint32_t i = 0; i < (*n)->input_count; i++) {
        arms[i] = (*n)->inputs[i];
        CK_TRY(carry(c, &arms[i], out, fine));
        if (!*fine) return CK_OK;
        ck_expr **exprs = CK_PLAN_ARRAY(c->p, width + c->count, ck_expr *);
        if (!exprs) return CK_NOMEM;
        for (uint32_t k = 0; k < width + c->count; k++)
            if (!(exprs[k] = ck_plan_column(c->p, arms[i], k < width ? k : out[k - width]))) return CK_NOMEM;
        CK_TRY(ck_plan_project(c->p, arms[i], exprs, NULL, width + c->count, &arms[i]));
    }
    for (uint32_t k = 0; k < c->count; k++) out[k] = width + k;
    return ck_plan_union(c->p, arms, (*n)->input_count, n);
}

/* A node that adds columns of its own behind its input's: a projection brings them back to where they were. */
static ck_status of_adding(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine) {
    ck_plan_node *below = (*n)->inputs[0], *made;
    uint32_t was = below->schema->field_count, width = (*n)->schema->field_count, added = 0;
    CK_TRY(carry(c, &below, out, fine));
    if (!*fine || below == (*n)->inputs[0]) return CK_OK;
    uint32_t more = below->schema->field_count - was;
    ck_expr **exprs = CK_PLAN_ARRAY(c->p, width + c->count, ck_expr *);
    const char **names = CK_PLAN_ARRAY(c->p, width + c->count, const char *);
    if (!exprs || !names) return CK_NOMEM;
    CK_TRY(ck_plan_with_inputs(c->p, *n, &below, &made));
    for (uint32_t i = 0; i < width; i++) {
        names[i] = (*n)->schema->fields[i].name;
        if (!(exprs[i] = ck_plan_column(c->p, made, i < was ? i : i + more))) return CK_NOMEM;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (out[i] < was) continue;
        names[width + added] = "";
        if (!(exprs[width + added] = ck_plan_column(c->p, made, out[i]))) return CK_NOMEM;
        out[i] = width + added++;
    }
    return ck_plan_project(c->p, made, exprs, names, width + added, n);
}

static ck_status carry(const carrying *c, ck_plan_node **n, uint32_t *out, bool *fine) {
    ck_plan_node *below;
    *fine = false;
    switch ((*n)->kind) {
    case CK_PLAN_SCAN: return of_scan(c, n, out, fine);
    case CK_PLAN_PROJECT: return of_project(c, n, out, fine);
    case CK_PLAN_UNION: return of_union(c, n, out, fine);
    case CK_PLAN_WINDOW:
    case CK_PLAN_UNNEST: return of_adding(c, n, out, fine);
    case CK_PLAN_FILTER:
        below = (*n)->inputs[0];
        CK_TRY(carry(c, &below, out, fine));
        if (!*fine || below == (*n)->inputs[0]) return CK_OK;
        return ck_plan_filter(c->p, below, (*n)->filter.conjuncts, (*n)->filter.count, n);
    default: return CK_OK;
    }
}

ck_status ck_plan_carry(ck_plan *p, ck_plan_node **n, const ck_catalog_entry *table, ck_expr *const *values,
                        uint32_t count, uint32_t *out, bool *fine) {
    carrying c = {p, table, values, count};
    ck_plan_node *made = *n;
    CK_TRY(carry(&c, &made, out, fine));
    if (*fine) *n = made;
    return CK_OK;
}
