/* Columns that nobody reads disappear: from users down it is noted what each node must give, then the nodes are made
 * again bottom-up with fewer columns. */
#include "sql/optimise/optimise_int.h"

typedef struct pruning {
    bool **needed;    /* by node id, a flag a column */
    uint32_t **moved; /* by node id: where a column went, CK_NO_COLUMN = gone */
} pruning;

static void need(void *arg, uint32_t column) { ((bool *)arg)[column] = true; }

typedef struct need_two { /* of a join's inputs */
    bool *left, *right;
    uint32_t left_count;
} need_two;
static void need_of_two(void *arg, uint32_t column) {
    const need_two *t = (const need_two *)arg;
    if (column < t->left_count) {
        t->left[column] = true;
    } else {
        t->right[column - t->left_count] = true;
    }
}

/* ---- down: what the inputs must give ---- */

static void need_for_call(const ck_plan_aggregate *c, bool *below) {
    if (c->arg != CK_NO_COLUMN) below[c->arg] = true;
    if (c->filter != CK_NO_COLUMN) below[c->filter] = true;
    for (uint32_t i = 0; i < c->order_count; i++) below[c->order[i].column] = true;
}

static void need_for_aggregate(const ck_plan_node *n, const bool *own, bool *below) {
    uint32_t keys = n->aggregate.keys.count;
    for (uint32_t i = 0; i < keys; i++) below[n->aggregate.keys.at[i]] = true;
    for (uint32_t i = 0; i < n->aggregate.call_count; i++) {
        const ck_plan_aggregate *c = &n->aggregate.calls[i];
        if (!own[keys + i]) continue;
        need_for_call(c, below);
    }
}

static void need_for_top_n(const ck_plan_node *n, bool *below) {
    for (uint32_t i = 0; i < n->top.partition.count; i++) below[n->top.partition.at[i]] = true;
    for (uint32_t i = 0; i < n->top.order_count; i++) below[n->top.order[i].column] = true;
    if (n->top.order_count == 0) memset(below, true, n->inputs[0]->schema->field_count); /* by the whole row */
}

static void need_for_over(const ck_plan_node *n, const bool *own, bool *below) {
    const ck_plan_over *o = &n->over;
    uint32_t width = n->inputs[0]->schema->field_count;
    for (uint32_t i = 0; i < o->partition.count; i++) below[o->partition.at[i]] = true;
    for (uint32_t i = 0; i < o->order_count; i++) below[o->order[i].column] = true;
    for (uint32_t i = 0; i < o->call_count; i++)
        if (own[width + i] && o->calls[i].arg != CK_NO_COLUMN) below[o->calls[i].arg] = true;
}

static void need_for_join(const ck_plan_node *n, const bool *own, const pruning *s) {
    uint32_t left = n->inputs[0]->schema->field_count, width = n->schema->field_count;
    bool *l = s->needed[n->inputs[0]->id], *r = s->needed[n->inputs[1]->id];
    need_two both = {l, r, left};
    for (uint32_t i = 0; i < n->join.on_count; i++) ck_expr_visit_columns(n->join.on[i], need_of_two, &both);
    for (uint32_t i = 0; i < width; i++)
        if (own[i]) need_of_two(&both, i);
    if (n->join.as_of.kind == CK_AS_OF_EVENT) l[n->join.as_of.left_time] = r[n->join.as_of.right_time] = true;
}

static void need_for_window(const ck_plan_node *n, const bool *own, bool *below) {
    const ck_plan_window *w = &n->window.of;
    uint32_t first = n->window.keys.count + CK_WINDOW_FIELDS;
    if (w->kind == CK_PLAN_WINDOW_ATTACHED) below[w->start] = true;
    if (w->kind != CK_PLAN_WINDOW_ATTACHED && w->time != CK_NO_COLUMN) below[w->time] = true;
    if (w->kind == CK_PLAN_WINDOW_ATTACHED) below[w->end] = true;
    for (uint32_t i = 0; i < n->window.keys.count; i++) below[n->window.keys.at[i]] = true;
    for (uint32_t i = 0; i < n->window.call_count; i++) {
        const ck_plan_aggregate *c = &n->window.calls[i];
        if (!own[first + i]) continue;
        need_for_call(c, below);
    }
}

static void need_for_late(const ck_plan_node *n, const pruning *s) {
    for (uint32_t k = 0; k < n->input_count && k < CK_ARRAY_COUNT(n->late); k++)
        for (uint32_t i = 0; i < n->late[k].columns.count; i++)
            if (n->late[k].columns.at[i] != CK_NO_COLUMN) s->needed[n->inputs[k]->id][n->late[k].columns.at[i]] = true;
}

static void need_below(const ck_plan_node *n, const pruning *s) {
    bool *own = s->needed[n->id];
    uint32_t width = n->schema->field_count;
    need_for_late(n, s);
    switch (n->kind) {
    case CK_PLAN_JOIN: need_for_join(n, own, s); return;
    case CK_PLAN_SET_OP: /* rows are compared whole */
        for (uint32_t k = 0; k < 2; k++) memset(s->needed[n->inputs[k]->id], true, width);
        return;
    case CK_PLAN_TOP_N:
        need_for_top_n(n, s->needed[n->inputs[0]->id]);
        width = n->inputs[0]->schema->field_count; /* without the rank */
        break;
    case CK_PLAN_OVER:
        need_for_over(n, own, s->needed[n->inputs[0]->id]);
        width = n->inputs[0]->schema->field_count; /* without the calls */
        break;
    case CK_PLAN_SORT:
        for (uint32_t i = 0; i < n->order.count; i++) s->needed[n->inputs[0]->id][n->order.by[i].column] = true;
        break;
    case CK_PLAN_UNNEST:
        ck_expr_visit_columns(n->unnest.expr, need, s->needed[n->inputs[0]->id]);
        width = n->inputs[0]->schema->field_count; /* without the element */
        break;
    case CK_PLAN_PROJECT:
        for (uint32_t i = 0; i < width; i++)
            if (own[i]) ck_expr_visit_columns(n->project.exprs[i], need, s->needed[n->inputs[0]->id]);
        return;
    case CK_PLAN_AGGREGATE: need_for_aggregate(n, own, s->needed[n->inputs[0]->id]); return;
    case CK_PLAN_WINDOW_AGG: need_for_window(n, own, s->needed[n->inputs[0]->id]); return;
    case CK_PLAN_WINDOW:
        s->needed[n->inputs[0]->id][n->window.of.time] = true;
        width = n->inputs[0]->schema->field_count; /* without the window's columns */
        break;
    case CK_PLAN_FILTER:
        for (uint32_t i = 0; i < n->filter.count; i++)
            ck_expr_visit_columns(n->filter.conjuncts[i], need, s->needed[n->inputs[0]->id]);
        break;
    default: break;
    }
    for (uint32_t k = 0; k < n->input_count; k++)
        for (uint32_t i = 0; i < width; i++)
            if (own[i]) s->needed[n->inputs[k]->id][i] = true;
}

/* ---- up: the nodes again ---- */

/* Columns of the input a node passes on by number have moved; a node that passes its input on moves as that does. */
static ck_status same_as_input(ck_plan *p, const ck_plan_node *n, pruning *s) {
    uint32_t width = n->schema->field_count, *moved = CK_PLAN_ARRAY(p, width, uint32_t);
    if (!moved) return CK_NOMEM;
    memcpy(moved, s->moved[n->inputs[0]->id], width * sizeof *moved);
    s->moved[n->id] = moved;
    return CK_OK;
}

static ck_status compact(ck_plan *p, const ck_plan_node *n, pruning *s, uint32_t *count) {
    uint32_t width = n->schema->field_count, *moved = CK_PLAN_ARRAY(p, width, uint32_t);
    if (!moved) return CK_NOMEM;
    *count = 0;
    for (uint32_t i = 0; i < width; i++) moved[i] = s->needed[n->id][i] ? (*count)++ : CK_NO_COLUMN;
    s->moved[n->id] = moved;
    return CK_OK;
}

static ck_status prune_scan(ck_plan *p, const ck_plan_node *n, pruning *s, ck_plan_node **out) {
    uint32_t count, *columns;
    CK_TRY(compact(p, n, s, &count));
    if (!(columns = CK_PLAN_ARRAY(p, count, uint32_t))) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (s->moved[n->id][i] != CK_NO_COLUMN) columns[s->moved[n->id][i]] = n->scan.columns.at[i];
    CK_TRY(ck_plan_scan(p, n->scan.table, (ck_columns){columns, count}, n->bounded, out));
    ck_plan_keep_identity(*out, n);
    return CK_OK;
}

static ck_status prune_values(ck_plan *p, const ck_plan_node *n, pruning *s, ck_plan_node **out) {
    uint32_t width = n->schema->field_count, count;
    ck_schema *schema = CK_PLAN_ARRAY(p, 1, ck_schema);
    CK_TRY(compact(p, n, s, &count));
    ck_field *fields = CK_PLAN_ARRAY(p, count, ck_field);
    ck_expr **cells = CK_PLAN_ARRAY(p, (size_t)n->values.row_count * count, ck_expr *);
    if (!schema || !fields || !cells) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++) {
        uint32_t to = s->moved[n->id][i];
        if (to == CK_NO_COLUMN) continue;
        fields[to] = n->schema->fields[i];
        for (uint32_t r = 0; r < n->values.row_count; r++)
            cells[(size_t)r * count + to] = n->values.rows[(size_t)r * width + i];
    }
    *schema = (ck_schema){fields, count};
    CK_TRY(ck_plan_values(p, schema, cells, n->values.row_count, out));
    ck_plan_keep_identity(*out, n);
    return CK_OK;
}

static ck_status renumber_all(ck_plan *p, const uint32_t *map, ck_expr *const *exprs, uint32_t count, ck_expr ***out) {
    if (!(*out = CK_PLAN_ARRAY(p, count, ck_expr *))) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        if (!((*out)[i] = ck_expr_renumber(p, map, exprs[i]))) return CK_NOMEM;
    return CK_OK;
}

static ck_status prune_project(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    uint32_t count;
    CK_TRY(compact(p, n, s, &count));
    ck_expr **kept = CK_PLAN_ARRAY(p, count, ck_expr *), **exprs;
    const char **names = CK_PLAN_ARRAY(p, count, const char *);
    if (!kept || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++) {
        uint32_t to = s->moved[n->id][i];
        if (to != CK_NO_COLUMN) kept[to] = n->project.exprs[i], names[to] = n->schema->fields[i].name;
    }
    CK_TRY(renumber_all(p, s->moved[n->inputs[0]->id], kept, count, &exprs));
    return ck_plan_project(p, input, exprs, names, count, out);
}

static uint32_t moved_to(const uint32_t *map, uint32_t column) { return column == CK_NO_COLUMN ? column : map[column]; }

/* Calls nobody reads go, except the last one of a global aggregate: its one row must come. */
static ck_status prune_aggregate(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s,
                                 ck_plan_node **out) {
    uint32_t keys = n->aggregate.keys.count, calls = 0, count;
    const uint32_t *map = s->moved[n->inputs[0]->id];
    CK_TRY(compact(p, n, s, &count));
    uint32_t *key = CK_PLAN_ARRAY(p, keys, uint32_t);
    ck_plan_aggregate *kept = CK_PLAN_ARRAY(p, count, ck_plan_aggregate);
    const char **names = CK_PLAN_ARRAY(p, count, const char *);
    if (!key || !kept || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < keys; i++) key[i] = map[n->aggregate.keys.at[i]];
    for (uint32_t i = 0; i < n->aggregate.call_count; i++) {
        if (!s->needed[n->id][keys + i]) continue;
        kept[calls] = n->aggregate.calls[i];
        CK_TRY(ck_plan_move_call(p, &kept[calls], map));
        names[calls++] = n->schema->fields[keys + i].name;
    }
    bool emit_on_close = p->emit_on_close;
    p->emit_on_close = n->final;
    ck_status st = ck_plan_aggregate_node(p, input, (ck_columns){key, keys}, kept, calls, "", names, out);
    p->emit_on_close = emit_on_close;
    if (st == CK_OK) ck_plan_keep_identity(*out, n);
    return st;
}

static ck_status prune_filter(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    ck_expr **conjuncts;
    CK_TRY(same_as_input(p, n, s));
    CK_TRY(renumber_all(p, s->moved[n->inputs[0]->id], n->filter.conjuncts, n->filter.count, &conjuncts));
    return ck_plan_filter(p, input, conjuncts, n->filter.count, out);
}

/* The input cut to the columns of n that are kept: column i, which stands at map[i], comes to to[i]. */
static ck_status only_these(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, const uint32_t *map,
                            const uint32_t *to, uint32_t count, ck_plan_node **out) {
    ck_expr **exprs = CK_PLAN_ARRAY(p, count, ck_expr *);
    if (!exprs) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        if (to[i] != CK_NO_COLUMN && !(exprs[to[i]] = ck_plan_column(p, input, map[i]))) return CK_NOMEM;
    CK_TRY(ck_plan_project(p, input, exprs, NULL, count, out));
    if (ck_plan_is_identity(*out)) *out = input;
    return CK_OK;
}

/* Inputs of a union keep different columns by themselves: each is cut to the same ones. */
static ck_status prune_union(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, pruning *s,
                             ck_plan_node **out) {
    uint32_t count;
    CK_TRY(compact(p, n, s, &count));
    ck_plan_node **arms = CK_PLAN_ARRAY(p, n->input_count, ck_plan_node *);
    if (!arms) return CK_NOMEM;
    for (uint32_t k = 0; k < n->input_count; k++)
        CK_TRY(only_these(p, n, inputs[k], s->moved[n->inputs[k]->id], s->moved[n->id], count, &arms[k]));
    CK_TRY(ck_plan_union(p, arms, n->input_count, out));
    return CK_OK;
}

/* A filter hands on the columns it alone has looked at: they go before they are sent and kept. map: where n's columns
 * are then. */
static ck_status behind_filter(ck_plan *p, const ck_plan_node *n, pruning *s, ck_plan_node **input,
                               const uint32_t **map) {
    uint32_t width = n->schema->field_count, count = 0;
    uint32_t *to = CK_PLAN_ARRAY(p, width, uint32_t);
    if (!to) return CK_NOMEM;
    *map = s->moved[n->id];
    if (n->kind != CK_PLAN_FILTER) return CK_OK;
    for (uint32_t i = 0; i < width; i++) to[i] = s->needed[n->id][i] ? count++ : CK_NO_COLUMN;
    if (count == 0 || count >= (*input)->schema->field_count) return CK_OK;
    CK_TRY(only_these(p, n, *input, *map, to, count, input));
    *map = to;
    return CK_OK;
}

typedef struct looked_at {
    bool *at;
    uint32_t first, count;
} looked_at;
static void look(void *arg, uint32_t column) {
    const looked_at *l = (const looked_at *)arg;
    if (column >= l->first && column - l->first < l->count) l->at[column - l->first] = true;
}

/* Columns of input k that are there for late rows, or for what made the rows: a join need not keep them. map: where
 * they are now. */
static ck_status unread_of(ck_plan *p, const ck_plan_node *n, const pruning *s, uint32_t k, const uint32_t *map,
                           ck_columns *out) {
    uint32_t left = n->inputs[0]->schema->field_count, width = n->inputs[k]->schema->field_count, count = 0;
    looked_at read = {CK_PLAN_ARRAY(p, width, bool), k ? left : 0, width};
    uint32_t *columns = CK_PLAN_ARRAY(p, width, uint32_t);
    if (!read.at || !columns) return CK_NOMEM;
    for (uint32_t i = 0; i < n->join.on_count; i++) ck_expr_visit_columns(n->join.on[i], look, &read);
    for (uint32_t i = read.first; i < n->schema->field_count; i++)
        if (s->needed[n->id][i]) look(&read, i);
    for (uint32_t i = 0; i < width; i++)
        if (!read.at[i] && map[i] != CK_NO_COLUMN) columns[count++] = map[i];
    *out = (ck_columns){columns, count};
    return CK_OK;
}

static ck_status prune_join(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, pruning *s,
                            ck_plan_node **out) {
    uint32_t left = n->inputs[0]->schema->field_count, right = n->inputs[1]->schema->field_count;
    uint32_t *moved = CK_PLAN_ARRAY(p, left + right, uint32_t);
    ck_plan_node *sides[2] = {inputs[0], inputs[1]};
    const uint32_t *maps[2] = {s->moved[n->inputs[0]->id], s->moved[n->inputs[1]->id]};
    ck_expr **on;
    if (!moved) return CK_NOMEM;
    for (uint32_t k = 0; k < 2 && n->join.as_of.kind == CK_AS_OF_NONE; k++)
        if (!n->late[k].table) CK_TRY(behind_filter(p, n->inputs[k], s, &sides[k], &maps[k]));
    uint32_t shift = sides[0]->schema->field_count;
    for (uint32_t i = 0; i < left; i++) moved[i] = maps[0][i];
    for (uint32_t i = 0; i < right; i++)
        moved[left + i] = maps[1][i] == CK_NO_COLUMN ? CK_NO_COLUMN : maps[1][i] + shift;
    s->moved[n->id] = moved; /* semi and anti: only the left part is asked for */
    CK_TRY(renumber_all(p, moved, n->join.on, n->join.on_count, &on));
    CK_TRY(ck_plan_join_again(p, n, sides[0], sides[1], on, n->join.on_count, moved, out));
    for (uint32_t k = 0; k < 2; k++) CK_TRY(unread_of(p, n, s, k, maps[k], &(*out)->join.unread[k]));
    return CK_OK;
}

static ck_status moved_order(ck_plan *p, const uint32_t *map, const ck_plan_order *order, uint32_t count,
                             ck_plan_order **out) {
    if (!(*out = CK_PLAN_ARRAY(p, count, ck_plan_order))) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) (*out)[i] = order[i], (*out)[i].column = map[order[i].column];
    return CK_OK;
}

static ck_status prune_sort(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    ck_plan_order *order;
    CK_TRY(same_as_input(p, n, s));
    CK_TRY(moved_order(p, s->moved[n->inputs[0]->id], n->order.by, n->order.count, &order));
    CK_TRY(ck_plan_sort(p, input, order, n->order.count, n->order.limit, n->order.offset, out));
    ck_plan_keep_identity(*out, n);
    return CK_OK;
}

/* Input columns move as the input's; what the node adds stands behind them. */
static ck_status input_then_own(ck_plan *p, const ck_plan_node *n, const ck_plan_node *input, pruning *s) {
    uint32_t below = n->inputs[0]->schema->field_count, width = n->schema->field_count;
    uint32_t *moved = CK_PLAN_ARRAY(p, width, uint32_t);
    if (!moved) return CK_NOMEM;
    for (uint32_t i = 0; i < width; i++)
        moved[i] = i < below ? s->moved[n->inputs[0]->id][i] : input->schema->field_count + (i - below);
    s->moved[n->id] = moved;
    return CK_OK;
}

static ck_status prune_top_n(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    const uint32_t *map = s->moved[n->inputs[0]->id];
    ck_plan_top top = n->top;
    ck_plan_order *order;
    uint32_t *partition = CK_PLAN_ARRAY(p, top.partition.count, uint32_t);
    if (!partition) return CK_NOMEM;
    for (uint32_t i = 0; i < top.partition.count; i++) partition[i] = map[top.partition.at[i]];
    CK_TRY(moved_order(p, map, top.order, top.order_count, &order));
    top.partition.at = partition, top.order = order;
    CK_TRY(input_then_own(p, n, input, s));
    bool asked = top.rank_column && s->needed[n->id][n->schema->field_count - 1];
    const char *rank = asked ? n->schema->fields[n->schema->field_count - 1].name : NULL;
    CK_TRY(ck_plan_top_n(p, input, &top, rank, out));
    ck_plan_keep_identity(*out, n);
    (*out)->final = n->final;
    if (n->final) (*out)->mode = n->mode, ck_plan_top_ends(*out, n);
    return CK_OK;
}

/* Calls nobody reads go. */
static ck_status prune_over(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    const uint32_t *map = s->moved[n->inputs[0]->id];
    uint32_t below = n->inputs[0]->schema->field_count, width = n->schema->field_count, count = 0;
    ck_plan_over over = n->over;
    ck_plan_order *order;
    uint32_t *partition = CK_PLAN_ARRAY(p, over.partition.count, uint32_t), *moved = CK_PLAN_ARRAY(p, width, uint32_t);
    ck_plan_over_call *calls = CK_PLAN_ARRAY(p, over.call_count, ck_plan_over_call);
    const char **names = CK_PLAN_ARRAY(p, over.call_count, const char *);
    if (!partition || !moved || !calls || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < over.partition.count; i++) partition[i] = map[over.partition.at[i]];
    CK_TRY(moved_order(p, map, over.order, over.order_count, &order));
    for (uint32_t i = 0; i < width; i++) moved[i] = i < below ? map[i] : CK_NO_COLUMN;
    for (uint32_t i = 0; i < over.call_count; i++) {
        if (!s->needed[n->id][below + i]) continue;
        calls[count] = over.calls[i];
        calls[count].arg = moved_to(map, calls[count].arg);
        names[count] = n->schema->fields[below + i].name;
        moved[below + i] = input->schema->field_count + count++;
    }
    over.partition.at = partition, over.order = order, over.calls = calls, over.call_count = count;
    s->moved[n->id] = moved;
    CK_TRY(ck_plan_over_node(p, input, &over, names, out));
    ck_plan_keep_identity(*out, n);
    return CK_OK;
}

static ck_status prune_unnest(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    uint32_t below = n->inputs[0]->schema->field_count;
    CK_TRY(input_then_own(p, n, input, s));
    ck_expr *e = ck_expr_renumber(p, s->moved[n->inputs[0]->id], n->unnest.expr);
    if (!e) return CK_NOMEM;
    CK_TRY(ck_plan_unnest(p, input, e, n->unnest.ordinality, n->unnest.outer, n->schema->fields + below,
                          n->schema->field_count - below, out));
    uint32_t *unused = CK_PLAN_ARRAY(p, below + 1, uint32_t), count = 0;
    if (!unused) return CK_NOMEM;
    for (uint32_t i = 0; i < below; i++) /* needed for the expression at most */
        if (!s->needed[n->id][i] && s->needed[n->inputs[0]->id][i]) unused[count++] = s->moved[n->inputs[0]->id][i];
    (*out)->unnest.unused = (ck_columns){unused, count};
    return CK_OK;
}

static ck_status prune_set_op(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, pruning *s,
                              ck_plan_node **out) {
    uint32_t *moved = CK_PLAN_ARRAY(p, n->schema->field_count, uint32_t);
    ck_plan_node *arms[2];
    if (!moved) return CK_NOMEM;
    for (uint32_t i = 0; i < n->schema->field_count; i++) moved[i] = i;
    s->moved[n->id] = moved;
    for (uint32_t k = 0; k < 2; k++)
        CK_TRY(only_these(p, n, inputs[k], s->moved[n->inputs[k]->id], moved, n->schema->field_count, &arms[k]));
    return ck_plan_with_inputs(p, n, arms, out);
}

static ck_plan_window moved_window(const ck_plan_node *n, const uint32_t *map) {
    ck_plan_window w = n->window.of;
    if (w.kind == CK_PLAN_WINDOW_ATTACHED) {
        w.start = map[w.start];
        w.end = map[w.end];
    } else {
        w.time = moved_to(map, w.time);
    }
    return w;
}

static ck_status prune_window(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s, ck_plan_node **out) {
    ck_plan_window w = moved_window(n, s->moved[n->inputs[0]->id]);
    CK_TRY(input_then_own(p, n, input, s));
    return ck_plan_window_rows(p, input, &w, out);
}

/* Keys and window stay, calls nobody reads go. */
static ck_status prune_window_agg(ck_plan *p, const ck_plan_node *n, ck_plan_node *input, pruning *s,
                                  ck_plan_node **out) {
    uint32_t keys = n->window.keys.count, first = keys + CK_WINDOW_FIELDS, calls = 0, count;
    const uint32_t *map = s->moved[n->inputs[0]->id];
    ck_plan_window w = moved_window(n, map);
    CK_TRY(compact(p, n, s, &count));
    uint32_t *key = CK_PLAN_ARRAY(p, keys, uint32_t);
    ck_plan_aggregate *kept = CK_PLAN_ARRAY(p, count, ck_plan_aggregate);
    const char **names = CK_PLAN_ARRAY(p, count, const char *);
    if (!key || !kept || !names) return CK_NOMEM;
    for (uint32_t i = 0; i < keys; i++) key[i] = map[n->window.keys.at[i]];
    for (uint32_t i = 0; i < n->window.call_count; i++) {
        if (!s->needed[n->id][first + i]) continue;
        kept[calls] = n->window.calls[i];
        CK_TRY(ck_plan_move_call(p, &kept[calls], map));
        names[calls++] = n->schema->fields[first + i].name;
    }
    CK_TRY(ck_plan_window_agg(p, input, &w, (ck_columns){key, keys}, kept, calls, "", names, out));
    ck_plan_keep_identity(*out, n);
    return CK_OK;
}

/* What late tables take, where pruning has moved it. */
static ck_status move_late(ck_plan *p, const ck_plan_node *n, const pruning *s, ck_plan_node *made) {
    for (uint32_t k = 0; k < n->input_count && k < CK_ARRAY_COUNT(n->late); k++) {
        const ck_columns *was = &n->late[k].columns;
        if (!n->late[k].table) continue;
        uint32_t *is = CK_PLAN_ARRAY(p, was->count, uint32_t);
        if (!is) return CK_NOMEM;
        for (uint32_t i = 0; i < was->count; i++) is[i] = moved_to(s->moved[n->inputs[k]->id], was->at[i]);
        made->late[k] = (ck_plan_late){n->late[k].table, {is, was->count}};
    }
    return CK_OK;
}

static ck_status prune_one(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs, pruning *s,
                           ck_plan_node **out) {
    switch (n->kind) {
    case CK_PLAN_SCAN: return prune_scan(p, n, s, out);
    case CK_PLAN_VALUES: return prune_values(p, n, s, out);
    case CK_PLAN_PROJECT: return prune_project(p, n, inputs[0], s, out);
    case CK_PLAN_FILTER: return prune_filter(p, n, inputs[0], s, out);
    case CK_PLAN_AGGREGATE: return prune_aggregate(p, n, inputs[0], s, out);
    case CK_PLAN_UNION: return prune_union(p, n, inputs, s, out);
    case CK_PLAN_LIMIT: CK_TRY(same_as_input(p, n, s)); return ck_plan_with_inputs(p, n, inputs, out);
    case CK_PLAN_SORT: return prune_sort(p, n, inputs[0], s, out);
    case CK_PLAN_TOP_N: return prune_top_n(p, n, inputs[0], s, out);
    case CK_PLAN_JOIN: return prune_join(p, n, inputs, s, out);
    case CK_PLAN_SET_OP: return prune_set_op(p, n, inputs, s, out);
    case CK_PLAN_UNNEST: return prune_unnest(p, n, inputs[0], s, out);
    case CK_PLAN_OVER: return prune_over(p, n, inputs[0], s, out);
    case CK_PLAN_WINDOW: return prune_window(p, n, inputs[0], s, out);
    case CK_PLAN_WINDOW_AGG: return prune_window_agg(p, n, inputs[0], s, out);
    }
    ck_assert_failed(__FILE__, __LINE__, "every kind is pruned");
}

static ck_status one(ck_plan *p, void *arg, const ck_plan_node *n, ck_plan_node *const *inputs, ck_plan_node **out) {
    CK_TRY(prune_one(p, n, inputs, (pruning *)arg, out));
    return move_late(p, n, (const pruning *)arg, *out);
}

static void keep_one_call(const ck_plan_node *over, bool *needed) {
    uint32_t width = over->inputs[0]->schema->field_count;
    for (uint32_t i = width; i < over->schema->field_count; i++)
        if (needed[i]) return;
    needed[width] = true;
}

static void keep_keys_and_one_call(const ck_plan_node *n, bool *needed) {
    uint32_t keys = n->aggregate.keys.count;
    for (uint32_t i = 0; i < keys; i++) needed[i] = true;
    bool any = keys > 0;
    for (uint32_t i = keys; i < n->schema->field_count; i++) any = any || needed[i];
    if (!any && n->aggregate.call_count) needed[keys] = true;
}

ck_status ck_prune(ck_plan *p, ck_output *outputs, uint32_t count) {
    ck_reach r;
    CK_TRY(ck_reach_of(p, outputs, count, &r));
    pruning s = {CK_PLAN_ARRAY(p, p->node_count, bool *), CK_PLAN_ARRAY(p, p->node_count, uint32_t *)};
    if (!s.needed || !s.moved) return CK_NOMEM;
    for (uint32_t i = 0; i < r.count; i++)
        if (!(s.needed[r.nodes[i]->id] = CK_PLAN_ARRAY(p, r.nodes[i]->schema->field_count, bool))) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        memset(s.needed[outputs[i].node->id], true, outputs[i].node->schema->field_count);
    for (uint32_t i = r.count; i-- > 0;) {
        if (r.nodes[i]->kind == CK_PLAN_AGGREGATE) keep_keys_and_one_call(r.nodes[i], s.needed[r.nodes[i]->id]);
        if (r.nodes[i]->kind == CK_PLAN_OVER) keep_one_call(r.nodes[i], s.needed[r.nodes[i]->id]);
        if (r.nodes[i]->kind == CK_PLAN_WINDOW_AGG)
            memset(s.needed[r.nodes[i]->id], true, r.nodes[i]->window.keys.count + CK_WINDOW_FIELDS);
        need_below(r.nodes[i], &s);
    }
    return ck_rewrite_plan(p, outputs, count, one, &s);
}
