/* What rows and state mean: see ck_plan_meaning. A column's meaning is where it comes from and what was computed on the
 * way; the meaning of rows is which there are. Projections leave rows as they are, filters add their conditions in any
 * order, so that a column more, or a condition pushed somewhere else, changes nothing above. */
#include <stdio.h>

#include "base/hash.h"
#include "sql/plan/plan_int.h"

enum { NAME_BYTES = 17, BRANCHES_MAX = 256 };

static uint64_t word(const char *z) { return ck_fnv1a(z, strlen(z)); }
static uint64_t with(uint64_t h, uint64_t x) { return ck_hash_combine(h, x); }
static uint64_t column_of(const ck_plan_node *n, uint32_t c) { return c == CK_NO_COLUMN ? 0 : n->meaning.columns[c]; }

/* ---- expressions: their text, with meanings for names ---- */

typedef struct naming {
    const char **names;
    ck_bytes text;
} naming;

static ck_status name_columns(ck_plan *p, const ck_plan_node *n, naming *out) {
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < n->input_count; i++) count += n->inputs[i]->schema->field_count;
    char *text = CK_PLAN_ARRAY(p, (size_t)count * NAME_BYTES, char);
    out->names = CK_PLAN_ARRAY(p, count, const char *);
    if (!text || !out->names) return CK_NOMEM;
    for (uint32_t i = 0; i < n->input_count; i++)
        for (uint32_t c = 0; c < n->inputs[i]->schema->field_count; c++, at++) {
            snprintf(text + at * NAME_BYTES, NAME_BYTES, "%016llx",
                     (unsigned long long)n->inputs[i]->meaning.columns[c]);
            out->names[at] = text + at * NAME_BYTES;
        }
    ck_bytes_init(&out->text, p->arena->mem, SIZE_MAX);
    return CK_OK;
}

static ck_status expr_meaning(ck_plan *p, naming *names, const ck_expr *e, uint64_t *out) {
    ck_bytes_clear(&names->text);
    if (ck_expr_print(e, names->names, &names->text) != CK_OK) return ck_plan_nomem(p);
    *out = ck_fnv1a(names->text.p, names->text.n);
    return CK_OK;
}

/* Of several expressions, whatever their order. */
static ck_status unordered(ck_plan *p, const ck_plan_node *n, ck_expr *const *exprs, uint32_t count, uint64_t *sum) {
    naming names;
    CK_TRY(name_columns(p, n, &names));
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        uint64_t one = 0;
        s = expr_meaning(p, &names, exprs[i], &one);
        if (s == CK_OK) *sum += ck_mix64(one);
    }
    ck_bytes_destroy(&names.text);
    return s;
}

/* ---- parts ---- */

static uint64_t columns_meaning(const ck_plan_node *in, ck_columns columns, uint64_t h) {
    for (uint32_t i = 0; i < columns.count; i++) h = with(h, column_of(in, columns.at[i]));
    return h;
}

static uint64_t order_meaning(const ck_plan_node *in, const ck_plan_order *order, uint32_t count, uint64_t h) {
    for (uint32_t i = 0; i < count; i++)
        h = with(with(h, column_of(in, order[i].column)), order[i].descending * 2u + order[i].nulls_first);
    return h;
}

static uint64_t call_meaning(const ck_plan_node *in, const ck_plan_aggregate *c, uint64_t h) {
    h = with(with(h, word(c->fn->name)), c->distinct);
    h = with(with(h, column_of(in, c->arg)), column_of(in, c->filter));
    if (c->fn->constant == CK_AGGREGATE_SEPARATOR) h = with(h, ck_fnv1a(c->separator.p, c->separator.n));
    if (c->fn->constant == CK_AGGREGATE_FRACTION) h = with(h, (uint64_t)(c->fraction * 1e15));
    if (c->ignores_nulls) h = with(h, 1);
    return c->order_count ? order_meaning(in, c->order, c->order_count, h) : h;
}

static uint64_t window_meaning(const ck_plan_node *in, const ck_plan_window *w, uint64_t h) {
    h = with(with(h, word(ck_plan_window_word(w->kind))), column_of(in, w->time));
    h = with(with(with(h, (uint64_t)w->size_us), (uint64_t)w->slide_us), (uint64_t)w->offset_us);
    if (w->kind == CK_PLAN_WINDOW_ATTACHED) h = with(with(h, column_of(in, w->start)), column_of(in, w->end));
    return columns_meaning(in, w->partition, h);
}

/* ---- a kind each. `to` has room for the columns; rows and state are set. ---- */

static ck_status of_scan(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = with(word("scan"), word(n->scan.table->name));
    for (uint32_t i = 0; i < n->schema->field_count; i++)
        to[i] = with(m->rows, word(ck_table_state_name(&n->scan.table->table, n->scan.columns.at[i])));
    return CK_OK;
}

static ck_status of_values(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = with(word("values"), n->canonical);
    for (uint32_t i = 0; i < n->schema->field_count; i++) to[i] = with(m->rows, i);
    return CK_OK;
}

static void pass_columns(const ck_plan_node *in, uint64_t *to) {
    memcpy(to, in->meaning.columns, in->schema->field_count * sizeof *to);
}

static ck_status of_filter(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = n->inputs[0]->meaning.rows;
    pass_columns(n->inputs[0], to);
    return unordered(p, n, n->filter.conjuncts, n->filter.count, &m->rows);
}

static ck_status of_project(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    naming names;
    CK_TRY(name_columns(p, n, &names));
    ck_status s = CK_OK;
    m->rows = n->inputs[0]->meaning.rows;
    for (uint32_t i = 0; s == CK_OK && i < n->schema->field_count; i++) {
        const ck_expr *e = n->project.exprs[i];
        if (e->kind == CK_EXPR_COLUMN)
            to[i] = column_of(n->inputs[0], e->column);
        else
            s = expr_meaning(p, &names, e, &to[i]);
    }
    ck_bytes_destroy(&names.text);
    return s;
}

static void calls_meaning(const ck_plan_node *in, const ck_plan_aggregate *calls, uint32_t count, uint64_t state,
                          uint64_t *to) {
    for (uint32_t i = 0; i < count; i++) to[i] = call_meaning(in, &calls[i], state);
}

static ck_status of_aggregate(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    ck_columns keys = n->aggregate.keys;
    m->rows = columns_meaning(in, keys, with(word("group"), in->meaning.rows));
    for (uint32_t i = 0; i < keys.count; i++) to[i] = column_of(in, keys.at[i]);
    calls_meaning(in, n->aggregate.calls, n->aggregate.call_count, m->rows, to + keys.count);
    return CK_OK;
}

static ck_status of_union(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = word("union");
    for (uint32_t i = 0; i < n->schema->field_count; i++) to[i] = m->rows;
    for (uint32_t k = 0; k < n->input_count; k++) {
        m->rows = with(m->rows, n->inputs[k]->meaning.rows);
        for (uint32_t i = 0; i < n->schema->field_count; i++) to[i] = with(to[i], column_of(n->inputs[k], i));
    }
    return CK_OK;
}

static ck_status of_limit(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = with(with(with(word("limit"), n->inputs[0]->meaning.rows), n->limit.limit), n->limit.offset);
    pass_columns(n->inputs[0], to);
    return CK_OK;
}

static ck_status of_sort(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    m->rows = with(with(with(word("sort"), in->meaning.rows), n->order.limit), n->order.offset);
    m->rows = order_meaning(in, n->order.by, n->order.count, m->rows);
    pass_columns(in, to);
    return CK_OK;
}

static ck_status of_top(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    const ck_plan_top *t = &n->top;
    uint64_t h = with(with(with(word("top"), in->meaning.rows), t->limit), t->offset);
    h = columns_meaning(in, t->partition, with(h, t->rank * 2u + t->timed));
    m->rows = order_meaning(in, t->order, t->order_count, h);
    pass_columns(in, to);
    if (t->rank_column) to[in->schema->field_count] = with(m->rows, word("rank"));
    return CK_OK;
}

static ck_status of_join(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *left = n->inputs[0], *right = n->inputs[1];
    uint64_t h = with(with(word("join"), left->meaning.rows), right->meaning.rows), on = 0;
    CK_TRY(unordered(p, n, n->join.on, n->join.on_count, &on));
    h = with(with(with(h, on), n->join.kind * 4u + n->join.single * 2u + n->join.in_time), n->join.as_of.kind);
    if (n->join.as_of.kind == CK_AS_OF_EVENT)
        h = with(with(h, column_of(left, n->join.as_of.left_time)), column_of(right, n->join.as_of.right_time));
    m->rows = h;
    pass_columns(left, to);
    if (!ck_join_keeps_left_only(n->join.kind)) pass_columns(right, to + left->schema->field_count);
    return CK_OK;
}

static ck_status of_set_op(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    m->rows = with(word("set"), n->set_op.except * 2u + n->set_op.all);
    for (uint32_t k = 0; k < 2; k++) {
        m->rows = with(m->rows, n->inputs[k]->meaning.rows);
        for (uint32_t i = 0; i < n->schema->field_count; i++) m->rows = with(m->rows, column_of(n->inputs[k], i));
    }
    pass_columns(n->inputs[0], to);
    return CK_OK;
}

static ck_status of_unnest(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    uint64_t elements = 0;
    ck_expr *one[] = {n->unnest.expr};
    CK_TRY(unordered(p, n, one, 1, &elements));
    m->rows = with(with(with(word("unnest"), in->meaning.rows), elements), n->unnest.outer);
    pass_columns(in, to);
    for (uint32_t i = in->schema->field_count; i < n->schema->field_count; i++)
        to[i] = with(m->rows, i - in->schema->field_count);
    return CK_OK;
}

static ck_status of_window(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    m->rows = window_meaning(in, &n->window.of, with(word("window"), in->meaning.rows));
    pass_columns(in, to);
    for (uint32_t i = 0; i < CK_WINDOW_FIELDS; i++) to[in->schema->field_count + i] = with(m->rows, i);
    return CK_OK;
}

static ck_status of_window_agg(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    ck_columns keys = n->window.keys;
    uint32_t at = keys.count;
    m->rows = window_meaning(in, &n->window.of, with(word("window_agg"), in->meaning.rows));
    m->rows = columns_meaning(in, keys, m->rows);
    for (uint32_t i = 0; i < keys.count; i++) to[i] = column_of(in, keys.at[i]);
    for (; at + n->window.call_count < n->schema->field_count; at++) to[at] = with(m->rows, at - keys.count);
    calls_meaning(in, n->window.calls, n->window.call_count, m->rows, to + at);
    return CK_OK;
}

static ck_status of_over(const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    const ck_plan_node *in = n->inputs[0];
    const ck_plan_over *o = &n->over;
    uint64_t h = with(with(word("over"), in->meaning.rows), (uint64_t)o->by);
    h = with(h, o->range + o->bounded * 2u + o->whole * 4u + o->ties_reversed * 8u);
    h = columns_meaning(in, o->partition, with(h, o->preceding));
    m->state = order_meaning(in, o->order, o->order_count, h);
    m->rows = in->meaning.rows;
    pass_columns(in, to);
    for (uint32_t i = 0; i < o->call_count; i++) {
        const ck_plan_over_call *c = &o->calls[i];
        to[in->schema->field_count + i] = with(with(with(m->state, word(c->fn)), column_of(in, c->arg)), c->offset);
    }
    return CK_OK;
}

/* ---- a node ---- */

static ck_status by_kind(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *m, uint64_t *to) {
    switch (n->kind) {
    case CK_PLAN_SCAN: return of_scan(n, m, to);
    case CK_PLAN_VALUES: return of_values(n, m, to);
    case CK_PLAN_FILTER: return of_filter(p, n, m, to);
    case CK_PLAN_PROJECT: return of_project(p, n, m, to);
    case CK_PLAN_AGGREGATE: return of_aggregate(n, m, to);
    case CK_PLAN_UNION: return of_union(n, m, to);
    case CK_PLAN_LIMIT: return of_limit(n, m, to);
    case CK_PLAN_SORT: return of_sort(n, m, to);
    case CK_PLAN_TOP_N: return of_top(n, m, to);
    case CK_PLAN_JOIN: return of_join(p, n, m, to);
    case CK_PLAN_SET_OP: return of_set_op(n, m, to);
    case CK_PLAN_UNNEST: return of_unnest(p, n, m, to);
    case CK_PLAN_WINDOW: return of_window(n, m, to);
    case CK_PLAN_WINDOW_AGG: return of_window_agg(n, m, to);
    case CK_PLAN_OVER: return of_over(n, m, to);
    }
    return CK_OK;
}

static ck_status mean(ck_plan *p, const ck_plan_node *n, ck_plan_meaning *out) {
    ck_plan_meaning m = {.known = true};
    uint64_t *columns = CK_PLAN_ARRAY(p, n->schema->field_count, uint64_t);
    if (!columns) return CK_NOMEM;
    CK_TRY(by_kind(p, n, &m, columns));
    m.columns = columns;
    /* What was kept for the end was never said, and what was said as it came is not said again. */
    if (!m.state) m.state = m.rows;
    m.state = with(m.state, n->final);
    *out = m;
    return CK_OK;
}

/* ---- one branch of several ---- */

/* Rows of a branch stay rows of it. */
static bool passes_branches(const ck_plan_node *n) {
    return n->kind == CK_PLAN_FILTER || n->kind == CK_PLAN_PROJECT || n->kind == CK_PLAN_WINDOW;
}

static bool keeps_rows(const ck_plan_node *n) {
    return n->kind == CK_PLAN_AGGREGATE || n->kind == CK_PLAN_WINDOW_AGG || n->kind == CK_PLAN_TOP_N ||
           n->kind == CK_PLAN_OVER || n->kind == CK_PLAN_SORT;
}

static bool is_over_branches(const ck_plan_node *n) { return passes_branches(n) || keeps_rows(n); }

/* Queries that are used twice make many of few nodes: counted up to one more than there is room for. */
static uint32_t branches_of(const ck_plan_node *n) {
    uint32_t count = 0;
    while (is_over_branches(n)) n = n->inputs[0];
    if (n->kind != CK_PLAN_UNION) return 1;
    for (uint32_t i = 0; i < n->input_count && count <= BRANCHES_MAX; i++) count += branches_of(n->inputs[i]);
    return count <= BRANCHES_MAX ? count : BRANCHES_MAX + 1;
}

/* What n means when of the UNION ALL below it only this branch were there. */
static ck_status mean_over(ck_plan *p, const ck_plan_node *n, uint32_t branch, ck_plan_meaning *out) {
    ck_plan_meaning below, whole;
    *out = n->meaning;
    if (n->kind == CK_PLAN_UNION) {
        uint32_t i = 0, count;
        for (; (count = branches_of(n->inputs[i])) <= branch; i++) branch -= count;
        return mean_over(p, n->inputs[i], branch, out);
    }
    if (!is_over_branches(n) || branches_of(n) == 1) return CK_OK;
    CK_TRY(mean_over(p, n->inputs[0], branch, &below));
    whole = n->inputs[0]->meaning;
    n->inputs[0]->meaning = below;
    ck_status s = mean(p, n, out);
    n->inputs[0]->meaning = whole;
    return s;
}

static ck_status mean_branches(ck_plan *p, ck_plan_node *n) {
    uint32_t count = keeps_rows(n) ? branches_of(n) : 1;
    if (count == 1 || count > BRANCHES_MAX) return CK_OK;
    uint64_t *states = CK_PLAN_ARRAY(p, count, uint64_t);
    if (!states) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        ck_plan_meaning one;
        CK_TRY(mean_over(p, n, i, &one));
        states[i] = one.state;
    }
    n->meaning.branches = states;
    n->meaning.branch_count = count;
    return CK_OK;
}

ck_status ck_plan_mean(ck_plan *p, ck_plan_node *n) {
    if (n->meaning.known) return CK_OK;
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(ck_plan_mean(p, n->inputs[i]));
    CK_TRY(mean(p, n, &n->meaning));
    return mean_branches(p, n);
}

/* ---- branches ---- */

static const ck_plan_node *below_projections(const ck_plan_node *n) {
    while (n->kind == CK_PLAN_PROJECT) n = n->inputs[0];
    return n;
}

static ck_status note_branch(ck_plan *p, const ck_plan_node *n, ck_plan_branch *out) {
    uint32_t count = branches_of(n);
    *out = (ck_plan_branch){.rows = n->meaning.rows};
    if (count == 1 || count > BRANCHES_MAX) return CK_OK;
    uint64_t *over = CK_PLAN_ARRAY(p, count, uint64_t);
    if (!over) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        ck_plan_meaning one;
        CK_TRY(mean_over(p, n, i, &one));
        over[i] = one.rows;
    }
    out->over = over;
    out->over_count = count;
    return CK_OK;
}

static ck_status collect_branches(ck_plan *p, const ck_plan_node *n, ck_plan_branch *out, uint32_t *count) {
    n = below_projections(n);
    if (*count > CK_PLAN_NODES_MAX) return CK_OK; /* the caller refuses it */
    if (n->kind != CK_PLAN_UNION) {
        if (out) CK_TRY(note_branch(p, n, &out[*count]));
        ++*count;
        return CK_OK;
    }
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(collect_branches(p, n->inputs[i], out, count));
    return CK_OK;
}

ck_status ck_plan_branches(ck_plan *p, const ck_plan_node *n, const ck_plan_branch **out, uint32_t *count) {
    uint32_t total = 0;
    CK_TRY(collect_branches(p, n, NULL, &total));
    if (total > CK_PLAN_NODES_MAX) return ck_fail(p->err, CK_INVALID, "a UNION ALL has over %d branches", CK_PLAN_NODES_MAX);
    ck_plan_branch *branches = CK_PLAN_ARRAY(p, total, ck_plan_branch);
    if (!branches) return CK_NOMEM;
    *count = 0;
    *out = branches;
    return collect_branches(p, n, branches, count);
}
