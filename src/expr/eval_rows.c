/* Scopes: sets of rows of the batch, as ascending row numbers or "all". */
#include "expr/eval_int.h"

ck_status ck_scope_reserve(ck_eval *ev, ck_scope_rows *s, ck_error *err) {
    if (!s->buffer) s->buffer = ck_alloc_array(ev->mem, CK_BATCH_ROWS_MAX + 8, sizeof *s->buffer);
    return s->buffer ? CK_OK : ck_nomem(err, ev->mem, (CK_BATCH_ROWS_MAX + 8) * sizeof *s->buffer);
}

ck_status ck_marks_add(ck_eval *ev, ck_mark_list *l, uint32_t row, uint8_t mark, ck_error *err) {
    if (l->count == l->capacity) {
        uint32_t more = l->capacity ? l->capacity * 2 : 16;
        ck_marked_row *bigger = ck_realloc(ev->mem, l->rows, l->capacity * sizeof *bigger, more * sizeof *bigger);
        if (!bigger) return ck_nomem(err, ev->mem, more * sizeof *bigger);
        l->rows = bigger, l->capacity = more;
    }
    l->rows[l->count++] = (ck_marked_row){(uint16_t)row, mark};
    return CK_OK;
}

static void fill_bits(const ck_eval *ev, const ck_scope_rows *s, uint64_t *bits) {
    if (s->sel)
        ev->kernels->sel_to_bits(bits, s->sel, s->n, ev->row_count);
    else
        memset(bits, 0xff, ck_bitmap_words(ev->row_count) * sizeof *bits);
}

static void take_bits(ck_eval *ev, const uint64_t *bits, ck_scope_rows *to) {
    to->n = ev->kernels->bits_to_sel(to->buffer, bits, ev->row_count);
    to->sel = to->n == ev->row_count ? NULL : to->buffer;
}

/* Rows of `from` whose bit is set. */
static void keep_bits(ck_eval *ev, const uint64_t *bits, const ck_scope_rows *from, ck_scope_rows *to) {
    if (!from->sel) {
        take_bits(ev, bits, to);
        return;
    }
    to->n = ev->kernels->sel_bits(to->buffer, bits, from->sel, from->n);
    to->sel = to->buffer;
}

static bool constant_passes(const ck_vec *v, ck_where where) {
    bool null = ck_column_is_null(v->col, 0);
    if (where == CK_WHERE_NULL) return null;
    if (null) return where != CK_WHERE_TRUE;
    bool is = ck_bit_get(v->col->bits, 0);
    return where == CK_WHERE_NOT_TRUE ? !is : is;
}

static ck_status note_marks(ck_eval *ev, const ck_vec *v, const ck_scope_rows *from, ck_mark_list *marks,
                            ck_error *err) {
    for (CK_EACH_ROW(k, i, from)) {
        uint8_t m = v->col->err[CK_AT(*v, i)];
        if (m) CK_TRY(ck_marks_add(ev, marks, i, m, err));
    }
    return CK_OK;
}

/* The bitmap of rows that are as `where` says, without marked ones. */
static void where_bits(ck_eval *ev, const ck_column *c, ck_where where, uint64_t *bits) {
    size_t words = ck_bitmap_words(ev->row_count);
    for (size_t w = 0; w < words; w++) {
        uint64_t valid = c->validity ? c->validity[w] : ~0ULL;
        if (where == CK_WHERE_NULL)
            bits[w] = ~valid;
        else if (where == CK_WHERE_TRUE)
            bits[w] = c->bits[w] & valid;
        else if (where == CK_WHERE_NOT_TRUE)
            bits[w] = ~(c->bits[w] & valid);
        else
            bits[w] = c->bits[w] | ~valid;
    }
    if (!c->err) return;
    for (uint32_t i = 0; i < ev->row_count; i++)
        if (c->err[i]) ck_bit_clear(bits, i);
}

ck_status ck_scope_where(ck_eval *ev, const ck_vec *v, ck_where where, const ck_scope_rows *from, ck_scope_rows *to,
                         ck_mark_list *marks, ck_error *err) {
    CK_TRY(ck_scope_reserve(ev, to, err));
    bool marked = v->constant && v->col->err && v->col->err[0];
    if (marks && v->col->err) CK_TRY(note_marks(ev, v, from, marks, err));
    if (v->constant || v->col->phys == CK_PHYS_NULL) {
        bool pass = v->constant ? !marked && constant_passes(v, where) : where != CK_WHERE_TRUE;
        to->sel = pass ? from->sel : to->buffer;
        to->n = pass ? from->n : 0;
        return CK_OK;
    }
    where_bits(ev, v->col, where, ev->words[0]);
    keep_bits(ev, ev->words[0], from, to);
    return CK_OK;
}

ck_status ck_scope_minus(ck_eval *ev, const ck_scope_rows *from, const ck_scope_rows *other, const ck_mark_list *marks,
                         ck_scope_rows *to, ck_error *err) {
    CK_TRY(ck_scope_reserve(ev, to, err));
    uint32_t marked = marks ? marks->count : 0;
    if (other->n == 0 && !marked) {
        to->sel = from->sel, to->n = from->n;
        return CK_OK;
    }
    if (other->n == from->n) {
        to->sel = to->buffer, to->n = 0;
        return CK_OK;
    }
    uint64_t *bits = ev->words[0];
    fill_bits(ev, other, bits);
    for (uint32_t i = 0; i < marked; i++) ck_bit_set(bits, marks->rows[i].row);
    for (size_t w = 0, words = ck_bitmap_words(ev->row_count); w < words; w++) bits[w] = ~bits[w];
    keep_bits(ev, bits, from, to);
    return CK_OK;
}

ck_status ck_scope_union(ck_eval *ev, const ck_scope_rows *a, const ck_scope_rows *b, ck_scope_rows *to,
                         ck_error *err) {
    CK_TRY(ck_scope_reserve(ev, to, err));
    if (a->n == 0 || b->n == 0) {
        const ck_scope_rows *all = a->n ? a : b;
        to->sel = all->n ? all->sel : to->buffer, to->n = all->n;
        return CK_OK;
    }
    uint64_t *bits = ev->words[0];
    fill_bits(ev, a, bits);
    for (uint32_t k = 0; k < b->n; k++) ck_bit_set(bits, b->sel ? b->sel[k] : k);
    take_bits(ev, bits, to);
    return CK_OK;
}
