/* All scans of a table in one job become one scan of the columns any of them wants, with a projection for each that
 * wanted others: a source is read once. */
#include "sql/optimise/optimise_int.h"

typedef struct shared {
    const ck_catalog_entry *table;
    bool *wanted;       /* by physical column */
    uint32_t *position; /* of a physical column in the shared scan */
    uint32_t scans;
    ck_plan_node *node; /* once made */
    struct shared *next;
} shared;

static shared *find(shared *list, const ck_catalog_entry *table) {
    while (list && list->table != table) list = list->next;
    return list;
}

static ck_status note(ck_plan *p, const ck_plan_node *scan, shared **list) {
    shared *s = find(*list, scan->scan.table);
    if (!s) {
        uint32_t physical = scan->scan.table->table.decl.schema->field_count;
        if (!(s = CK_PLAN_ARRAY(p, 1, shared))) return CK_NOMEM;
        *s = (shared){.table = scan->scan.table,
                      .wanted = CK_PLAN_ARRAY(p, physical, bool),
                      .position = CK_PLAN_ARRAY(p, physical, uint32_t),
                      .next = *list};
        if (!s->wanted || !s->position) return CK_NOMEM;
        *list = s;
    }
    s->scans++;
    for (uint32_t i = 0; i < scan->scan.columns.count; i++) s->wanted[scan->scan.columns.at[i]] = true;
    return CK_OK;
}

static ck_status make(ck_plan *p, shared *s, const ck_plan_node *like) {
    uint32_t physical = s->table->table.decl.schema->field_count, n = 0;
    uint32_t *columns = CK_PLAN_ARRAY(p, physical, uint32_t);
    if (!columns) return CK_NOMEM;
    for (uint32_t i = 0; i < physical; i++)
        if (s->wanted[i]) s->position[i] = n, columns[n++] = i;
    CK_TRY(ck_plan_scan(p, s->table, (ck_columns){columns, n}, like->bounded, &s->node));
    ck_plan_keep_identity(s->node, like);
    return CK_OK;
}

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    shared *s = n->kind == CK_PLAN_SCAN ? find((shared *)arg, n->scan.table) : NULL;
    if (!s || s->scans < 2) return ck_plan_with_inputs(p, n, inputs, out);
    if (!s->node) CK_TRY(make(p, s, n));
    *out = s->node;
    if (n->scan.columns.count == s->node->schema->field_count) return CK_OK; /* both ascending */
    ck_expr **exprs = CK_PLAN_ARRAY(p, n->scan.columns.count, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < n->scan.columns.count; i++)
        if (!(exprs[i] = ck_plan_column(p, s->node, s->position[n->scan.columns.at[i]]))) return CK_NOMEM;
    return ck_plan_project(p, s->node, exprs, NULL, n->scan.columns.count, out);
}

ck_status ck_share_scans(ck_plan *p, ck_output *outputs, uint32_t count) {
    ck_reach r;
    shared *list = NULL;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    for (uint32_t i = 0; i < r.count; i++)
        if (r.nodes[i]->kind == CK_PLAN_SCAN) CK_TRY(note(p, r.nodes[i], &list));
    return ck_rewrite_plan(p, outputs, count, one, list);
}
