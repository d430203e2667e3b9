/* All scans of a table in one job become one scan of the columns any of them wants, with a projection for each that
 * wanted others: a source is read once.
 *
 * Except where that costs more than it saves: of a bounded join one side is read to its end before the other is asked
 * for anything (operator/join_int.h), so that the other is never kept, but only while the other has a source of its
 * own. Where both sides come from one table, the other side's scan stays apart. */
#include <string.h>

#include "sql/optimise/optimise_int.h"

typedef struct shared {
    const ck_catalog_entry *table;
    bool *wanted;       /* by physical column */
    uint32_t *position; /* of a physical column in the shared scan */
    uint32_t scans;
    ck_plan_node *node; /* once made */
    struct shared *next;
} shared;

typedef struct tables {
    shared *list;
    const bool *apart; /* by node id */
} tables;

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
    const tables *t = arg;
    shared *s = n->kind == CK_PLAN_SCAN && !t->apart[n->id] ? find(t->list, n->scan.table) : NULL;
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

/* The scan that gives rows straight to n, through nobody else; NULL: there is none. */
static const ck_plan_node *own_scan(const ck_plan_node *n, const uint32_t *uses) {
    while (uses[n->id] == 1 && (n->kind == CK_PLAN_FILTER || n->kind == CK_PLAN_PROJECT)) n = n->inputs[0];
    return uses[n->id] == 1 && n->kind == CK_PLAN_SCAN ? n : NULL;
}

static bool reads(const ck_plan_node *n, const ck_catalog_entry *table, bool *seen) {
    if (seen[n->id]) return false;
    seen[n->id] = true;
    if (n->kind == CK_PLAN_SCAN && n->scan.table == table) return true;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (reads(n->inputs[i], table, seen)) return true;
    return false;
}

/* Marks the scans that stay apart, by node id. */
static ck_status find_apart(ck_plan *p, const ck_reach *r, bool *apart) {
    bool *seen = CK_PLAN_ARRAY(p, p->node_count, bool);
    if (!seen) return CK_NOMEM;
    for (uint32_t i = 0; i < r->count; i++) {
        const ck_plan_node *n = r->nodes[i];
        if (n->kind != CK_PLAN_JOIN || !n->bounded || p->changes) continue;
        uint32_t build = n->join.kind == CK_JOIN_RIGHT_OUTER ? 0 : 1;
        const ck_plan_node *scan = own_scan(n->inputs[!build], r->uses);
        if (!scan) continue;
        const ck_table_def *t = &scan->scan.table->table;
        if (!t->connector->again || !t->connector->again(&t->decl)) continue;
        memset(seen, 0, p->node_count * sizeof *seen);
        apart[scan->id] = reads(n->inputs[build], scan->scan.table, seen);
    }
    return CK_OK;
}

ck_status ck_share_scans(ck_plan *p, ck_output *outputs, uint32_t count) {
    ck_reach r;
    shared *list = NULL;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    bool *apart = CK_PLAN_ARRAY(p, p->node_count, bool);
    if (!apart) return CK_NOMEM;
    CK_TRY(find_apart(p, &r, apart));
    for (uint32_t i = 0; i < r.count; i++)
        if (r.nodes[i]->kind == CK_PLAN_SCAN && !apart[r.nodes[i]->id]) CK_TRY(note(p, r.nodes[i], &list));
    return ck_rewrite_plan(p, outputs, count, one, &(tables){list, apart});
}
