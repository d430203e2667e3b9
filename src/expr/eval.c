/* Running a compiled program over batches. */
#include "expr/eval_int.h"

static bool holds(const ck_scope_rows *s) { return s->n > 0; }

/* ---- making and freeing ---- */

static void state_free(ck_eval *ev, const ck_code *code, ck_code_state *st) {
    if (st->values && st->owned)
        for (uint32_t i = 0; i < code->node_count; i++)
            if (st->owned[i]) ck_column_unref(&st->values[i].col);
    if (st->scopes)
        for (uint32_t i = 0; i < code->scope_count; i++)
            ck_free(ev->mem, st->scopes[i].buffer, (CK_BATCH_ROWS_MAX + 8) * sizeof(uint16_t));
    if (st->lists)
        for (uint32_t i = 0; i < code->mark_list_count; i++)
            ck_free(ev->mem, st->lists[i].rows, st->lists[i].capacity * sizeof(ck_marked_row));
    *st = (ck_code_state){0};
}

void ck_eval_free(ck_eval *ev) {
    if (!ev) return;
    state_free(ev, &ev->program->values, &ev->values);
    state_free(ev, &ev->program->conjuncts, &ev->conjuncts);
    if (ev->states)
        for (uint32_t i = 0; i < ev->program->prepared_count; i++) {
            const ck_impl *impl = ev->program->prepared[i]->impl;
            if (ev->states[i] && impl->dispose) impl->dispose(ev, ev->states[i]);
        }
    ck_pool_destroy(ev);
    ck_arena_destroy(&ev->arena);
    ck_free(ev->mem, ev, sizeof *ev);
}

static ck_status prepare_all(ck_eval *ev, ck_error *err) {
    const ck_program *p = ev->program;
    ev->states = ck_arena_array(&ev->arena, p->prepared_count + 1, sizeof(void *));
    if (!ev->states) return ck_nomem(err, ev->mem, (p->prepared_count + 1) * sizeof(void *));
    for (uint32_t i = 0; i < p->prepared_count; i++)
        CK_TRY(p->prepared[i]->impl->prepare(ev, p->prepared[i], &ev->states[i], err));
    return CK_OK;
}

enum { PREPARED_BYTES_MAX = 64 << 20 };

ck_status ck_eval_new(const ck_program *p, const ck_eval_options *o, ck_eval **out, ck_error *err) {
    *out = NULL;
    ck_eval *ev = ck_alloc_zero(o->mem, sizeof *ev);
    if (!ev) return ck_nomem(err, o->mem, sizeof *ev);
    ev->program = p;
    ev->proc = o->proc;
    ev->mem = o->mem;
    ev->kernels = ck_kernels_for(o->proc ? o->proc->cpu : (ck_cpu){0});
    ev->error_null = o->error_null;
    ev->timezone = o->timezone ? o->timezone : "UTC";
    ev->column_names = o->column_names;
    ck_arena_init(&ev->arena, o->mem, PREPARED_BYTES_MAX);
    ck_status s = prepare_all(ev, err);
    if (s != CK_OK) {
        ck_eval_free(ev);
        return s;
    }
    *out = ev;
    return CK_OK;
}

void ck_eval_set_now(ck_eval *ev, int64_t wall_us) { ev->now_us = wall_us; }

/* Arrays by node and scope, and the literals: at the first batch, so that a program that only filters never makes
 * those of its values. */
static ck_status make_ready(ck_eval *ev, const ck_code *code, ck_code_state *st, ck_error *err) {
    if (st->ready) return CK_OK;
    ck_arena *a = &ev->arena;
    st->values = ck_arena_array(a, code->node_count + 1, sizeof *st->values);
    st->owned = ck_arena_array(a, code->node_count + 1, sizeof *st->owned);
    st->scopes = ck_arena_array(a, code->scope_count + 1, sizeof *st->scopes);
    st->lists = ck_arena_array(a, code->mark_list_count + 1, sizeof *st->lists);
    st->args = ck_arena_array(a, code->args_max + 1, sizeof *st->args);
    st->layers = ck_arena_array(a, code->layers_max + 1, sizeof *st->layers);
    if (!st->values || !st->owned || !st->scopes || !st->lists || !st->args || !st->layers)
        return ck_nomem(err, ev->mem, code->node_count * sizeof *st->values);
    for (uint32_t i = 0; i < code->node_count; i++) {
        const ck_node *n = &code->nodes[i];
        if (n->kind != CK_NODE_LITERAL) continue;
        CK_TRY(ck_literal_column(ev->mem, n->expr->type, &n->expr->value, &st->values[i].col, err));
        st->values[i].constant = true, st->owned[i] = true;
    }
    st->ready = true;
    return CK_OK;
}

/* ---- steps ---- */

typedef struct run {
    ck_eval *ev;
    const ck_code *code;
    ck_code_state *st;
    ck_error *err;
} run;

static ck_vec *gather_args(const run *r, const uint32_t *nodes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) r->st->args[i] = r->st->values[nodes[i]];
    return r->st->args;
}

static void set_value(const run *r, uint32_t node, const ck_vec *v) {
    if (r->st->owned[node]) ck_eval_recycle(r->ev, &r->st->values[node].col);
    r->st->values[node] = *v;
    r->st->owned[node] = true;
}

static ck_rows rows_of(const run *r, const ck_scope_rows *s) {
    return (ck_rows){.sel = s->sel, .n = s->n, .row_count = r->ev->row_count};
}

static ck_status step_call(const run *r, const ck_step *s) {
    const ck_node *n = &r->code->nodes[s->node];
    if (n->fixed && r->st->owned[s->node]) return CK_OK;
    ck_rows rows = rows_of(r, &r->st->scopes[s->from]);
    ck_vec out;
    r->ev->state = n->state == CK_NONE ? NULL : r->ev->states[n->state];
    CK_TRY(ck_eval_call(r->ev, n->expr, gather_args(r, n->args, n->arg_count), &rows, &out, r->err));
    set_value(r, s->node, &out);
    return CK_OK;
}

static ck_status step_select(const run *r, const ck_step *s) {
    ck_rows rows = rows_of(r, &r->st->scopes[s->from]);
    r->ev->state = s->state == CK_NONE ? NULL : r->ev->states[s->state];
    return ck_eval_select(r->ev, s->expr, gather_args(r, s->args, s->arg_count), &rows, &r->st->scopes[s->to],
                          &r->st->lists[s->marks], r->err);
}

static ck_status step_merge(const run *r, const ck_step *s) {
    ck_merge_input *in = r->st->layers;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->layer_count; i++) {
        const ck_scope_rows *rows = &r->st->scopes[s->layers[i].scope];
        if (holds(rows)) in[count++] = (ck_merge_input){rows, r->st->values[s->layers[i].node]};
    }
    ck_vec out;
    const ck_mark_list *marks = s->marks == CK_NONE ? NULL : &r->st->lists[s->marks];
    CK_TRY(ck_eval_merge(r->ev, r->code->nodes[s->node].expr->type, in, count, &r->st->scopes[s->from], marks, &out,
                         r->err));
    set_value(r, s->node, &out);
    return CK_OK;
}

static ck_status step_both(const run *r, const ck_step *s) {
    const ck_node *n = &r->code->nodes[s->node];
    const ck_scope_rows *right = &r->st->scopes[s->other];
    ck_vec out, none = {0};
    CK_TRY(ck_eval_both(r->ev, s->where == CK_WHERE_NOT_FALSE, &r->st->values[n->args[0]],
                        holds(right) ? &r->st->values[n->args[1]] : &none, right, &out, r->err));
    set_value(r, s->node, &out);
    return CK_OK;
}

static ck_status run_step(const run *r, const ck_step *s) {
    ck_scope_rows *scopes = r->st->scopes;
    switch (s->op) {
    case CK_STEP_CALL: return holds(&scopes[s->from]) ? step_call(r, s) : CK_OK;
    case CK_STEP_BOTH: return holds(&scopes[s->from]) ? step_both(r, s) : CK_OK;
    case CK_STEP_MERGE: return holds(&scopes[s->from]) ? step_merge(r, s) : CK_OK;
    case CK_STEP_UNION: return ck_scope_union(r->ev, &scopes[s->from], &scopes[s->other], &scopes[s->to], r->err);
    default: break;
    }
    ck_mark_list *marks = s->marks == CK_NONE ? NULL : &r->st->lists[s->marks];
    if (!holds(&scopes[s->from])) {
        scopes[s->to].n = 0, scopes[s->to].sel = scopes[s->to].buffer;
        return CK_OK;
    }
    if (s->op == CK_STEP_SELECT) return step_select(r, s);
    if (s->op == CK_STEP_MINUS)
        return ck_scope_minus(r->ev, &scopes[s->from], &scopes[s->other], marks, &scopes[s->to], r->err);
    return ck_scope_where(r->ev, &r->st->values[s->node], s->where, &scopes[s->from], &scopes[s->to], marks, r->err);
}

static ck_status run_steps(const run *r, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        const ck_step *s = &r->code->steps[i];
        CK_TRY(run_step(r, s));
        for (uint32_t k = 0; k < s->release_count; k++) {
            uint32_t node = s->release[k];
            if (!r->st->owned[node]) continue;
            r->st->owned[node] = false;
            ck_eval_recycle(r->ev, &r->st->values[node].col);
        }
    }
    return CK_OK;
}

/* ---- batches ---- */

static ck_status begin(const run *r, const ck_batch *b) {
    ck_eval *ev = r->ev;
    CK_ASSERT(b->row_count <= CK_BATCH_ROWS_MAX);
    ck_pool_collect(ev);
    CK_TRY(make_ready(ev, r->code, r->st, r->err));
    ev->batch = b, ev->row_count = b->row_count;
    ev->text_bytes = 0, ev->text_bytes_max = b->sel_count > 1 ? CK_EVAL_TEXT_BYTES_MAX : SIZE_MAX;
    r->st->scopes[0].sel = b->sel;
    r->st->scopes[0].n = b->sel ? b->sel_count : b->row_count;
    for (uint32_t i = 0; i < r->code->mark_list_count; i++) r->st->lists[i].count = 0;
    for (uint32_t i = 0; i < r->code->node_count; i++) {
        const ck_node *n = &r->code->nodes[i];
        if (n->kind != CK_NODE_COLUMN) continue;
        CK_ASSERT(n->expr->column < b->column_count);
        ck_column *c = b->columns[n->expr->column];
        CK_ASSERT(c && (c->phys == ck_type_phys(n->expr->type) || c->phys == CK_PHYS_NULL));
        r->st->values[i] = (ck_vec){c, false};
    }
    return CK_OK;
}

/* Drops what steps left behind (after a failure also what would have been released). */
static void finish(const run *r) {
    for (uint32_t i = 0; r->st->ready && i < r->code->node_count; i++) {
        if (!r->st->owned[i] || r->code->nodes[i].fixed) continue;
        r->st->owned[i] = false;
        ck_eval_recycle(r->ev, &r->st->values[i].col);
    }
    r->ev->batch = NULL;
}

/* The first live row that carries a mark in one of the results. */
static bool find_mark(const run *r, uint32_t *row, uint32_t *root, uint8_t *mark) {
    const ck_scope_rows *live = &r->st->scopes[0];
    uint32_t best = CK_NONE;
    for (uint32_t i = 0; i < r->ev->program->expr_count; i++) {
        const ck_vec *v = &r->st->values[r->code->roots[i]];
        if (!v->col->err) continue;
        for (uint32_t k = 0; k < live->n; k++) {
            uint32_t at = live->sel ? live->sel[k] : k;
            if (at >= best) break;
            uint8_t m = v->col->err[v->constant ? 0 : at];
            if (!m) continue;
            best = at, *row = at, *root = i, *mark = m;
            break;
        }
    }
    return best != CK_NONE;
}

/* Only rows that are not live can be marked here, and marks never cross an edge: then the result is a copy. */
static ck_status take_root(const run *r, uint32_t i, ck_column **out) {
    const ck_vec *v = &r->st->values[r->code->roots[i]];
    if (v->constant || v->col->err)
        return ck_eval_copy(r->ev, r->ev->program->exprs[i]->type, v, &r->st->scopes[0], r->ev->row_count, out, r->err);
    *out = ck_column_ref(v->col);
    return CK_OK;
}

static ck_status hand_out(const run *r, ck_column **out) {
    uint32_t count = r->ev->program->expr_count, made = 0;
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < count && s == CK_OK; i++) {
        s = take_root(r, i, &out[i]);
        if (s != CK_OK) break;
        made++;
        const ck_node *n = &r->code->nodes[r->code->roots[i]];
        if (n->kind != CK_NODE_COLUMN) s = ck_pool_lend(r->ev, ck_column_ref(out[i]));
    }
    if (s == CK_OK) return CK_OK;
    while (made) ck_column_unref(&out[--made]);
    return s == CK_NOMEM ? ck_nomem(r->err, r->ev->mem, count * sizeof *out) : s;
}

static ck_status values_of_empty(const run *r, ck_column **out) {
    for (uint32_t i = 0; i < r->ev->program->expr_count; i++) {
        out[i] = ck_column_new_null(r->ev->mem, ck_type_phys(r->ev->program->exprs[i]->type), r->ev->row_count);
        if (out[i]) continue;
        while (i) ck_column_unref(&out[--i]);
        return ck_nomem(r->err, r->ev->mem, r->ev->row_count * sizeof(int64_t));
    }
    return CK_OK;
}

/* mark: 0, or of the first live row that failed, with its number and the expression's; then out is empty. */
static ck_status run_values(ck_eval *ev, const ck_batch *b, ck_column **out, ck_marked_row *failed, uint32_t *root,
                            ck_error *err) {
    const run r = {ev, &ev->program->values, &ev->values, err};
    *failed = (ck_marked_row){0};
    ck_status s = begin(&r, b);
    if (s == CK_OK && !holds(&ev->values.scopes[0])) return values_of_empty(&r, out);
    if (s == CK_OK) s = run_steps(&r, 0, r.code->step_count);
    uint32_t row = 0;
    if (s == CK_OK && find_mark(&r, &row, root, &failed->mark))
        failed->row = (uint16_t)row;
    else if (s == CK_OK)
        s = hand_out(&r, out);
    finish(&r);
    return s;
}

ck_status ck_eval_run(ck_eval *ev, const ck_batch *b, ck_column **out, ck_error *err) {
    ck_marked_row failed;
    uint32_t root = 0;
    CK_TRY(run_values(ev, b, out, &failed, &root, err));
    if (!failed.mark) return CK_OK;
    return ck_eval_explain(ev, b, ev->program->exprs[root], failed.row, failed.mark, err);
}

ck_status ck_eval_run_marked(ck_eval *ev, const ck_batch *b, ck_column **out, uint8_t *mark, ck_error *err) {
    ck_marked_row failed;
    uint32_t root = 0;
    CK_TRY(run_values(ev, b, out, &failed, &root, err));
    *mark = failed.mark;
    return CK_OK;
}

static void copy_rows(const ck_scope_rows *s, uint16_t *sel, uint32_t *count) {
    *count = s->n;
    if (s->sel) {
        if (s->n) memcpy(sel, s->sel, s->n * sizeof *sel);
        return;
    }
    for (uint32_t k = 0; k < s->n; k++) sel[k] = (uint16_t)k;
}

static bool first_marked(const ck_mark_list *l, uint32_t *row, uint8_t *mark) {
    uint32_t best = CK_NONE;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->rows[i].row < best) best = l->rows[i].row, *mark = l->rows[i].mark;
    *row = best;
    return best != CK_NONE;
}

static ck_status filter_once(ck_eval *ev, const ck_batch *b, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    const run r = {ev, &ev->program->conjuncts, &ev->conjuncts, err};
    *sel_count = 0;
    ck_status s = begin(&r, b);
    uint32_t scope = 0, row = 0, i = 0;
    uint8_t mark = 0;
    bool failed = false;
    for (; i < ev->program->expr_count && s == CK_OK; i++) {
        const ck_segment *seg = &r.code->segments[i];
        CK_ASSERT(seg->end > seg->begin); /* a conjunct is BOOLEAN */
        s = run_steps(&r, seg->begin, seg->end);
        if (s == CK_OK && (failed = first_marked(&ev->conjuncts.lists[seg->marks], &row, &mark))) break;
        scope = seg->scope;
    }
    if (s == CK_OK && !failed) copy_rows(&ev->conjuncts.scopes[scope], sel, sel_count);
    finish(&r);
    return failed ? ck_eval_explain(ev, b, ev->program->exprs[i], row, mark, err) : s;
}

/* Its live rows [first, first + n). */
static ck_status filter_part(ck_eval *ev, const ck_batch *b, uint32_t first, uint32_t n, uint16_t *sel,
                             uint32_t *sel_count, ck_error *err) {
    uint16_t rows[CK_BATCH_ROWS_MAX];
    for (uint32_t k = 0; k < n; k++) rows[k] = (uint16_t)ck_batch_row(b, first + k);
    ck_batch *part = ck_batch_select(b, rows, n);
    if (!part) return ck_nomem(err, ev->mem, n * sizeof *rows);
    ck_status s = ck_eval_filter(ev, part, sel, sel_count, err);
    ck_batch_unref(&part);
    return s;
}

ck_status ck_eval_filter(ck_eval *ev, const ck_batch *b, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    ck_status s = filter_once(ev, b, sel, sel_count, err);
    if (s != CK_FULL) return s;
    /* What is made only to be compared goes again: half the rows after the other. */
    uint32_t half = b->sel_count / 2, more = 0;
    if (err) *err = CK_ERROR_INIT;
    CK_TRY(filter_part(ev, b, 0, half, sel, sel_count, err));
    CK_TRY(filter_part(ev, b, half, b->sel_count - half, sel + *sel_count, &more, err));
    *sel_count += more;
    return CK_OK;
}
