/* One strict call: combines the arguments' NULLs and marks, chooses the rows the kernel sees, and joins what the
 * kernel adds. So kernels are loops over values and nothing else. */
#include "expr/eval_int.h"

/* What the arguments say about rows, constants aside. */
typedef struct inputs {
    bool all_constant;
    bool none;             /* a constant argument is NULL or marked: there is nothing to compute */
    uint8_t constant_mark; /* ... and this is its mark */
    const uint64_t *valid; /* rows with a value in every argument; NULL: all */
    bool marked;           /* some row of some argument carries a mark */
} inputs;

static void combine_validity(ck_eval *ev, inputs *in, const uint64_t *v) {
    if (!v) return;
    if (!in->valid) {
        in->valid = v;
        return;
    }
    size_t words = ck_bitmap_words(ev->row_count);
    uint64_t *both = ev->words[0];
    for (size_t w = 0; w < words; w++) both[w] = in->valid[w] & v[w];
    in->valid = both;
}

static inputs inspect(ck_eval *ev, const ck_expr *e, const ck_vec *args, bool sees_nulls) {
    inputs in = {.all_constant = true};
    for (uint32_t i = 0; i < ck_expr_computed_args(e); i++) {
        const ck_column *c = args[i].col;
        if (args[i].constant) {
            if (c->err && c->err[0] && !in.constant_mark) in.constant_mark = c->err[0], in.none = true;
            if (!sees_nulls && ck_column_is_null(c, 0)) in.none = true;
            continue;
        }
        in.all_constant = false;
        if (c->err) in.marked = true;
        if (sees_nulls) continue;
        if (c->phys == CK_PHYS_NULL)
            in.none = true;
        else
            combine_validity(ev, &in, c->validity);
    }
    return in;
}

static uint8_t row_mark(const ck_expr *e, const ck_vec *args, uint32_t row) {
    for (uint32_t i = 0; i < ck_expr_computed_args(e); i++)
        if (args[i].col->err && args[i].col->err[CK_AT(args[i], row)]) return args[i].col->err[CK_AT(args[i], row)];
    return CK_MARK_NONE;
}

/* Rows without a NULL (where valid is given) and without a mark, into sel. */
static uint32_t clean_rows(const ck_expr *e, const ck_vec *args, const ck_rows *rows, const inputs *in, uint16_t *sel) {
    uint32_t n = 0;
    for (CK_EACH_ROW(k, i, rows)) {
        if (in->valid && !ck_bit_get(in->valid, i)) continue;
        if (in->marked && row_mark(e, args, i)) continue;
        sel[n++] = (uint16_t)i;
    }
    return n;
}

/* Narrows or widens the rows to what suits the kernel; scratch is used when narrowed. */
static ck_rows suit(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, const inputs *in,
                    uint32_t flags) {
    ck_rows r = *rows;
    bool blind = flags & CK_FN_BLIND;
    if (in->marked || (in->valid && !blind)) {
        if (!in->marked && !rows->sel) {
            r.n = ev->kernels->bits_to_sel(ev->rows[0], in->valid, rows->row_count);
            if (r.n == rows->row_count) return *rows;
        } else {
            r.n = clean_rows(e, args, rows, in, ev->rows[0]);
        }
        r.sel = ev->rows[0];
        return r;
    }
    /* All rows at vector speed beat some rows one by one. */
    if (blind && (flags & CK_FN_CHEAP) && rows->sel && rows->n > rows->row_count / 6)
        r.sel = NULL, r.n = rows->row_count;
    return r;
}

ck_status ck_eval_mark(ck_eval *ev, ck_column *c, uint32_t row, ck_mark mark, ck_error *err) {
    uint8_t *marks = ck_column_writable_err(c);
    if (!marks) return ck_nomem(err, ev->mem, c->length);
    marks[row] = (uint8_t)mark;
    return CK_OK;
}

static void and_validity(ck_column *c, const uint64_t *valid, uint32_t rows) {
    bool had = c->validity != NULL;
    uint64_t *v = ck_column_writable_validity(c);
    size_t words = ck_bitmap_words(rows);
    if (!had)
        memcpy(v, valid, words * sizeof *v);
    else
        for (size_t w = 0; w < words; w++) v[w] &= valid[w];
}

/* The arguments' marks go before the kernel's own, and a row without a value has none. */
static ck_status join_marks(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, const inputs *in,
                            ck_column *c, ck_error *err) {
    if (in->valid && c->err)
        for (uint32_t i = 0; i < rows->row_count; i++)
            if (!ck_bit_get(in->valid, i)) c->err[i] = CK_MARK_NONE;
    if (!in->marked) return CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        uint8_t m = row_mark(e, args, i);
        if (m) CK_TRY(ck_eval_mark(ev, c, i, (ck_mark)m, err));
    }
    return CK_OK;
}

/* on_eval_error = null: what failed is NULL. */
static void marks_to_null(ck_column *c) {
    if (!c->err) return;
    uint64_t *v = ck_column_writable_validity(c);
    for (uint32_t i = 0; i < c->length; i++) {
        if (c->err[i]) ck_bit_clear(v, i);
        c->err[i] = CK_MARK_NONE;
    }
}

/* Held by others too, so not to be written. */
static bool is_shared(ck_column *c) { return atomic_load_explicit(&c->refs, memory_order_acquire) != 1; }
static bool is_only_argument(const ck_column *c, const ck_expr *e, const ck_vec *args) {
    return ck_expr_computed_args(e) == 1 && args[0].col == c;
}

/* A copy of a shared result, for NULLs and marks to be added. */
static ck_status unshare(ck_eval *ev, const ck_expr *e, const ck_rows *rows, uint32_t row_count, ck_vec *out,
                         ck_error *err) {
    const ck_scope_rows of = {rows->sel, rows->n, NULL};
    ck_vec shared = *out;
    out->col = NULL;
    ck_status s = ck_eval_copy(ev, e->type, &shared, &of, row_count, &out->col, err);
    ck_column_unref(&shared.col);
    return s;
}

/* A strict function of a column without any value (phys NULL cannot carry a bitmap). */
static bool can_hold(const ck_column *c) { return c->phys != CK_PHYS_NULL; }

/* Marks of the arguments and of the kernel in one; or NULLs in their place. */
static ck_status settle_marks(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, const inputs *in,
                              ck_vec *out, ck_error *err) {
    ck_status s = join_marks(ev, e, args, rows, in, out->col, err);
    if (s != CK_OK)
        ck_column_unref(&out->col);
    else if (ev->error_null)
        marks_to_null(out->col);
    return s;
}

/* A constant argument decides that no row has a value; errors of the other arguments stay errors. */
static ck_status without_value(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, const inputs *in,
                               ck_vec *out, ck_error *err) {
    out->constant = !in->marked;
    uint32_t length = out->constant ? 1 : rows->row_count;
    out->col = ck_column_new_null(ev->mem, ck_type_phys(e->type), length);
    if (!out->col) return ck_nomem(err, ev->mem, length);
    const inputs all = {.marked = in->marked || in->constant_mark};
    const ck_rows one = {NULL, 1, 1};
    return settle_marks(ev, e, args, out->constant ? &one : rows, &all, out, err);
}

ck_status ck_eval_call(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                       ck_error *err) {
    uint32_t flags = ck_expr_flags(e);
    inputs in = inspect(ev, e, args, flags & CK_FN_NULLS);
    *out = (ck_vec){0};
    if (in.none) return without_value(ev, e, args, rows, &in, out, err);
    bool constant = in.all_constant && !(flags & CK_FN_VOLATILE);
    const ck_rows one = {NULL, 1, 1}, *of = constant ? &one : rows;
    ck_rows run = suit(ev, e, args, of, &in, flags);
    ck_status s = e->impl->kernel(ev, e, args, &run, out, err);
    if (s != CK_OK) {
        CK_ASSERT(!out->col);
        return s;
    }
    out->constant = constant;
    if (is_shared(out->col)) {
        /* An only argument as it is has its NULLs and marks already. */
        if (!(in.valid || in.marked || out->col->err) || is_only_argument(out->col, e, args)) return CK_OK;
        CK_TRY(unshare(ev, e, &run, of->row_count, out, err));
    }
    if (flags & CK_FN_TRY) marks_to_null(out->col);
    if (in.valid && can_hold(out->col)) and_validity(out->col, in.valid, of->row_count);
    return settle_marks(ev, e, args, of, &in, out, err);
}

/* ---- predicates to selections ---- */

static ck_status collect_marks(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows,
                               ck_mark_list *marks, ck_error *err) {
    for (CK_EACH_ROW(k, i, rows)) {
        uint8_t m = row_mark(e, args, i);
        if (m) CK_TRY(ck_marks_add(ev, marks, i, m, err));
    }
    return CK_OK;
}

/* Kernels need not know the case that nothing differs from row to row. */
static ck_status select_constant(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows,
                                 ck_scope_rows *to, ck_error *err) {
    const ck_scope_rows from = {rows->sel, rows->n, NULL};
    ck_vec v;
    CK_TRY(ck_eval_call(ev, e, args, rows, &v, err));
    ck_status s = ck_scope_where(ev, &v, CK_WHERE_TRUE, &from, to, NULL, err);
    ck_column_unref(&v.col);
    return s;
}

ck_status ck_eval_select(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, ck_scope_rows *to,
                         ck_mark_list *marks, ck_error *err) {
    uint32_t flags = ck_expr_flags(e);
    inputs in = inspect(ev, e, args, flags & CK_FN_NULLS);
    CK_TRY(ck_scope_reserve(ev, to, err));
    to->sel = to->buffer, to->n = 0;
    if (in.marked || in.constant_mark) CK_TRY(collect_marks(ev, e, args, rows, marks, err));
    if (in.none) return CK_OK;
    if (in.all_constant) return select_constant(ev, e, args, rows, to, err);
    ck_rows run = *rows;
    const uint64_t *valid = in.valid;
    if (in.marked || (valid && !(flags & CK_FN_BLIND))) {
        run.n = clean_rows(e, args, rows, &in, ev->rows[0]);
        run.sel = ev->rows[0];
        valid = NULL;
        if (!run.n) return CK_OK;
    }
    CK_TRY(e->impl->select(ev, e, args, &run, valid, to->buffer, &to->n, err));
    if (to->n == ev->row_count) to->sel = NULL; /* all: the dense loops again */
    return CK_OK;
}
