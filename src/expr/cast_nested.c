/* Casts of ARRAY, MAP and ROW: the same shape with every leaf cast. A leaf's values are cast by an eval of their own, a
 * batch at a time, so this follows every rule of scalar casts. */
#include "data/builder.h"
#include "expr/cast_int.h"

typedef enum plan_kind { SAME, LEAF, LIST, STRUCT } plan_kind;

typedef struct plan {
    plan_kind kind;
    const ck_type *from, *to;
    struct plan *children;
    uint32_t child_count;
    ck_eval *eval; /* LEAF */
} plan;

static bool is_nested(const ck_type *t) {
    return t->kind == CK_TYPE_ARRAY || t->kind == CK_TYPE_MAP || t->kind == CK_TYPE_ROW;
}

bool ck_cast_nested_possible(const ck_type *from, const ck_type *to) {
    if (!is_nested(from) || from->kind != to->kind || from->field_count != to->field_count) return false;
    for (uint32_t i = 0; i < from->field_count; i++) {
        const ck_type *f = from->fields[i].type, *t = to->fields[i].type;
        if (from->fields[i].nullable && !to->fields[i].nullable) return false;
        if (f->kind != CK_TYPE_NULL && !ck_type_eq(f, t) && !ck_cast_impl(f, t)) return false;
    }
    return true;
}

static void free_leaf(void *arg) { ck_eval_free(arg); }

enum { CASTS, ASSIGNS };

static ck_status make_leaf(ck_eval *ev, plan *p, uint32_t how, ck_error *err) {
    ck_arena *a = &ev->arena;
    ck_expr *e = ck_expr_column(a, 0, p->from, true);
    ck_program *program;
    if (!e) return ck_nomem(err, a->mem, sizeof *e);
    CK_TRY(how == ASSIGNS ? ck_expr_assign(a, e, p->to, "", &e, err) : ck_expr_cast(a, e, p->to, false, &e, err));
    CK_TRY(ck_program_compile(a, &e, 1, &program, err));
    const ck_eval_options o = {.proc = ev->proc, .mem = ev->mem, .error_null = true, .timezone = ev->timezone};
    CK_TRY(ck_eval_new(program, &o, &p->eval, err));
    return ck_arena_on_reset(a, free_leaf, p->eval);
}

static ck_status make_plan(ck_eval *ev, plan *p, const ck_type *from, const ck_type *to, uint32_t how, ck_error *err) {
    *p = (plan){.from = from, .to = to};
    if (ck_type_eq(from, to)) return CK_OK;
    if (!is_nested(from)) {
        p->kind = LEAF;
        return make_leaf(ev, p, how, err);
    }
    /* A MAP is a list of its entries. */
    bool map = from->kind == CK_TYPE_MAP;
    p->kind = from->kind == CK_TYPE_ROW ? STRUCT : LIST;
    p->child_count = map ? 1 : from->field_count;
    p->children = ck_arena_array(&ev->arena, p->child_count, sizeof *p->children);
    if (!p->children) return ck_nomem(err, ev->mem, p->child_count * sizeof *p->children);
    if (map) {
        const ck_type *entry = ck_type_row(&ev->arena, from->fields, 2),
                      *wanted = ck_type_row(&ev->arena, to->fields, 2);
        if (!entry || !wanted) return ck_nomem(err, ev->mem, sizeof *entry);
        return make_plan(ev, &p->children[0], entry, wanted, how, err);
    }
    for (uint32_t i = 0; i < p->child_count; i++)
        CK_TRY(make_plan(ev, &p->children[i], from->fields[i].type, to->fields[i].type, how, err));
    return CK_OK;
}

static ck_status prepare_nested(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    plan *p = CK_ARENA_NEW(&ev->arena, plan);
    if (!p) return ck_nomem(err, ev->mem, sizeof *p);
    *state = p;
    return make_plan(ev, p, call->args[0]->type, call->type, call->impl->op, err);
}

/* ---- columns ---- */

/* A column's values to cast: rows of a batch, or (rows NULL) all of a child's, of any number. */
typedef struct job {
    ck_eval *ev;
    const ck_rows *rows;
    uint8_t *failed; /* a flag a value of the column at hand */
    ck_error *err;
} job;

static ck_status cast_column(const job *j, const plan *p, ck_column *c, ck_column **out);

static ck_status run_leaf(const job *j, const plan *p, const ck_rows *rows, ck_column *c, ck_column **out) {
    ck_batch *b = ck_batch_new(j->ev->mem, 1, rows->row_count, rows->sel != NULL, false);
    if (!b) return ck_nomem(j->err, j->ev->mem, sizeof *b);
    if (rows->sel) {
        if (rows->n) memcpy(b->sel, rows->sel, rows->n * sizeof *b->sel);
        b->sel_count = rows->n;
    }
    ck_column *mine = ck_column_ref(c);
    ck_batch_set_column(b, 0, &mine);
    ck_status s = ck_eval_run(p->eval, b, out, j->err);
    ck_batch_unref(&b);
    return s;
}

static void note_failures(const ck_column *before, const ck_column *after, const ck_rows *rows, uint8_t *failed) {
    for (CK_EACH_ROW(k, i, rows))
        if (ck_column_is_null(after, i) && !ck_column_is_null(before, i)) failed[i] = 1;
}

/* More values than a batch holds: piece by piece. */
static ck_status cast_long(const job *j, const plan *p, ck_column *c, ck_column_builder *in, ck_column_builder *all) {
    for (uint32_t at = 0; at < c->length; at += CK_BATCH_ROWS_MAX) {
        uint32_t n = c->length - at < CK_BATCH_ROWS_MAX ? c->length - at : CK_BATCH_ROWS_MAX;
        for (uint32_t i = 0; i < n; i++)
            CK_TRY(ck_column_is_null(c, at + i) ? ck_build_null(in) : ck_build_from(in, c, at + i));
        ck_column *piece = ck_column_builder_finish(in), *cast = NULL;
        if (!piece) return CK_NOMEM;
        const ck_rows rows = {NULL, n, n};
        ck_status s = run_leaf(j, p, &rows, piece, &cast);
        if (s == CK_OK) note_failures(piece, cast, &rows, j->failed + at);
        for (uint32_t i = 0; s == CK_OK && i < n; i++)
            s = ck_column_is_null(cast, i) ? ck_build_null(all) : ck_build_from(all, cast, i);
        ck_column_unref(&cast);
        ck_column_unref(&piece);
        CK_TRY(s);
    }
    return CK_OK;
}

static ck_status cast_leaf(const job *j, const plan *p, ck_column *c, ck_column **out) {
    if (j->rows) {
        CK_TRY(run_leaf(j, p, j->rows, c, out));
        note_failures(c, *out, j->rows, j->failed);
        return CK_OK;
    }
    ck_column_builder in = {0}, all = {0};
    uint32_t n = c->length ? c->length : 1;
    ck_status s = ck_column_builder_init(&in, j->ev->mem, p->from, n < CK_BATCH_ROWS_MAX ? n : CK_BATCH_ROWS_MAX);
    if (s == CK_OK) s = ck_column_builder_init(&all, j->ev->mem, p->to, n);
    if (s == CK_OK) s = cast_long(j, p, c, &in, &all);
    if (s == CK_OK && !(*out = ck_column_builder_finish(&all))) s = CK_NOMEM;
    ck_column_builder_destroy(&in);
    ck_column_builder_destroy(&all);
    return s == CK_NOMEM ? ck_nomem(j->err, j->ev->mem, n) : s;
}

/* The values of a list: a row fails when one of its elements does. */
static ck_status cast_elements(const job *j, const plan *p, ck_column *c, ck_column **child) {
    ck_column *elements = c->children[0];
    uint8_t *failed = ck_alloc_zero(j->ev->mem, elements->length);
    if (!failed) return ck_nomem(j->err, j->ev->mem, elements->length);
    const job inner = {j->ev, NULL, failed, j->err};
    ck_status s = cast_column(&inner, &p->children[0], elements, child);
    for (uint32_t i = 0; s == CK_OK && i < c->length; i++) {
        if (ck_column_is_null(c, i)) continue;
        for (int32_t at = c->offsets[i]; at < c->offsets[i + 1]; at++) j->failed[i] |= failed[at];
    }
    ck_free(j->ev->mem, failed, elements->length);
    return s;
}

static ck_status cast_children(const job *j, const plan *p, ck_column *c, ck_column **children, uint32_t *made) {
    if (p->kind == LIST) {
        CK_TRY(cast_elements(j, p, c, &children[0]));
        *made = 1;
        return CK_OK;
    }
    for (; *made < p->child_count; ++*made)
        CK_TRY(cast_column(j, &p->children[*made], c->children[*made], &children[*made]));
    return CK_OK;
}

/* c's own layer over new children. */
static ck_column *with_children(const job *j, const ck_column *c, ck_column *const *children, uint32_t count) {
    ck_column *r = ck_column_new(j->ev->mem, c->phys, c->length);
    if (!r) return NULL;
    if (c->phys == CK_PHYS_LIST) memcpy(r->offsets, c->offsets, (c->length + (size_t)1) * sizeof *r->offsets);
    if (c->validity) memcpy(ck_column_writable_validity(r), c->validity, ck_bitmap_words(c->length) * sizeof(uint64_t));
    if (ck_column_set_children(r, children, count) != CK_OK) ck_column_unref(&r);
    return r;
}

static ck_status cast_column(const job *j, const plan *p, ck_column *c, ck_column **out) {
    if (p->kind == SAME) {
        *out = ck_column_ref(c);
        return CK_OK;
    }
    if (p->kind == LEAF) return cast_leaf(j, p, c, out);
    ck_column **children = ck_alloc_array(j->ev->mem, p->child_count, sizeof *children);
    uint32_t made = 0;
    ck_status s = children ? cast_children(j, p, c, children, &made) : CK_NOMEM;
    if (s == CK_OK && !(*out = with_children(j, c, children, p->child_count))) s = CK_NOMEM;
    if (s != CK_OK)
        while (made) ck_column_unref(&children[--made]);
    ck_free(j->ev->mem, children, p->child_count * sizeof *children);
    return s == CK_NOMEM ? ck_nomem(j->err, j->ev->mem, c->length) : s;
}

static ck_status kernel_nested(CK_KERNEL_ARGS) {
    (void)call;
    uint8_t *failed = ck_alloc_zero(ev->mem, rows->row_count);
    if (!failed) return ck_nomem(err, ev->mem, rows->row_count);
    const job j = {ev, rows, failed, err};
    ck_column *c = NULL;
    ck_status s = cast_column(&j, ck_eval_state(ev), args[0].col, &c);
    for (CK_EACH_ROW(k, i, rows))
        if (s == CK_OK && failed[i]) s = ck_eval_mark(ev, c, i, CK_MARK_CAST, err);
    ck_free(ev->mem, failed, rows->row_count);
    if (s != CK_OK) ck_column_unref(&c);
    out->col = c;
    return s;
}

const ck_impl ck_cast_nested = {
    .kernel = kernel_nested, .flags = CK_FN_FALLIBLE | CK_FN_ZONED, .op = CASTS, .prepare = prepare_nested};
const ck_impl ck_assign_nested = {.kernel = kernel_nested,
                                  .flags = CK_FN_FALLIBLE | CK_FN_ZONED | CK_FN_FIRST,
                                  .op = ASSIGNS,
                                  .prepare = prepare_nested};
