/* Putting values together: AND and OR of two columns, the branches of CASE and COALESCE, a constant over many rows. */
#include "expr/eval_int.h"

#include "data/builder.h"

/* ---- AND, OR ---- */

/* Word w of a BOOLEAN: rows that are TRUE, rows that are FALSE. */
static void truth(const ck_vec *v, size_t w, uint64_t *is, uint64_t *is_not) {
    const ck_column *c = v->col;
    if (!c || c->phys == CK_PHYS_NULL) {
        *is = *is_not = 0;
        return;
    }
    uint64_t bits = c->bits[v->constant ? 0 : w], valid = c->validity ? c->validity[v->constant ? 0 : w] : ~0ULL;
    if (v->constant) bits = 0 - (bits & 1), valid = 0 - (valid & 1);
    *is = bits & valid, *is_not = ~bits & valid;
}

static uint8_t mark_at(const ck_vec *v, uint32_t row) {
    return v->col && v->col->err ? v->col->err[CK_AT(*v, row)] : CK_MARK_NONE;
}

/* The right side's error counts only where the left side leaves the answer open. */
static ck_status both_marks(ck_eval *ev, bool is_and, const ck_vec *a, const ck_vec *b, uint32_t rows, ck_column *out,
                            ck_error *err) {
    for (uint32_t i = 0; i < rows; i++) {
        uint8_t m = mark_at(a, i);
        if (!m && (m = mark_at(b, i))) {
            uint64_t is, is_not;
            truth(a, i / 64, &is, &is_not);
            if (((is_and ? is_not : is) >> (i % 64)) & 1) m = CK_MARK_NONE;
        }
        if (m) CK_TRY(ck_eval_mark(ev, out, i, (ck_mark)m, err));
    }
    return CK_OK;
}

ck_status ck_eval_both(ck_eval *ev, bool is_and, const ck_vec *a, const ck_vec *b, const ck_scope_rows *sb, ck_vec *out,
                       ck_error *err) {
    out->constant = a->constant && (!b->col || b->constant);
    uint32_t rows = out->constant ? 1 : ev->row_count;
    ck_column *c = out->col = ck_eval_column(ev, CK_PHYS_BOOL, rows);
    if (!c) return ck_nomem(err, ev->mem, rows);
    uint64_t *valid = NULL;
    for (size_t w = 0, words = ck_bitmap_words(rows); w < words; w++) {
        uint64_t at, af, bt = 0, bf = 0;
        truth(a, w, &at, &af);
        if (sb->n) truth(b, w, &bt, &bf);
        uint64_t is = is_and ? at & bt : at | bt, is_not = is_and ? af | bf : af & bf;
        c->bits[w] = is;
        if (~(is | is_not) && !valid) valid = ck_column_writable_validity(c);
        if (valid) valid[w] = is | is_not;
    }
    if (!(a->col->err || (b->col && b->col->err))) return CK_OK;
    ck_status s = both_marks(ev, is_and, a, b, rows, c, err);
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

/* ---- layers ---- */

static void merge_bits(const ck_kernels *k, uint64_t *to, const uint64_t *from, const ck_merge_input *in) {
    k->put_bits[in->value.constant](to, from, in->rows->sel, in->rows->n);
}

static void merge_views(const ck_kernels *kernels, ck_column *out, const ck_merge_input *in, int32_t base) {
    const ck_strview *v = in->value.col->views;
    bool constant = in->value.constant;
    if (!base || !in->value.col->heaps) {
        kernels->put_16[constant](out->views, v, in->rows->sel, in->rows->n);
        return;
    }
    for (CK_EACH_ROW(k, i, in->rows)) {
        ck_strview s = v[constant ? 0 : i];
        if (s.length > CK_STRVIEW_INLINE) s.ref.buffer += base;
        out->views[i] = s;
    }
}

static void merge_validity(const ck_kernels *k, uint64_t *valid, const ck_merge_input *in) {
    static const uint64_t none[1], all[1] = {1};
    const ck_column *c = in->value.col;
    if (c->phys == CK_PHYS_NULL || !c->validity) {
        ck_merge_input constant = *in;
        constant.value.constant = true;
        merge_bits(k, valid, c->phys == CK_PHYS_NULL ? none : all, &constant);
        return;
    }
    merge_bits(k, valid, c->validity, in);
}

static ck_status merge_marks(ck_eval *ev, ck_column *out, const ck_merge_input *in, ck_error *err) {
    const uint8_t *marks = in->value.col->err;
    if (!marks && !out->err) return CK_OK;
    for (CK_EACH_ROW(k, i, in->rows)) {
        uint8_t m = marks ? marks[CK_AT(in->value, i)] : CK_MARK_NONE;
        if (m || out->err) CK_TRY(ck_eval_mark(ev, out, i, (ck_mark)m, err));
    }
    return CK_OK;
}

/* The heaps of all layers behind each other; base[k] is what layer k's buffer numbers grow by. */
static ck_status merge_heaps(ck_eval *ev, const ck_merge_input *in, uint32_t count, ck_column *out, int32_t *base,
                             ck_error *err) {
    uint32_t total = 0, distinct = 0;
    ck_heaps *only = NULL;
    for (uint32_t k = 0; k < count; k++) {
        ck_heaps *h = in[k].value.col->heaps;
        base[k] = 0;
        if (!h) continue;
        uint32_t same = 0;
        while (same < k && in[same].value.col->heaps != h) same++;
        if (same < k) {
            base[k] = base[same];
            continue;
        }
        base[k] = (int32_t)total;
        total += h->count, distinct++, only = h;
    }
    if (distinct <= 1) {
        ck_column_set_heaps(out, only);
        return CK_OK;
    }
    ck_buffer **all = ck_alloc_array(ev->mem, total, sizeof(ck_buffer *));
    if (!all) return ck_nomem(err, ev->mem, total * sizeof(ck_buffer *));
    for (uint32_t k = 0; k < count; k++) {
        const ck_heaps *h = in[k].value.col->heaps;
        for (uint32_t i = 0; h && i < h->count; i++) all[(uint32_t)base[k] + i] = h->buffers[i];
    }
    ck_heaps *h = ck_heaps_new(ev->mem, all, total);
    ck_free(ev->mem, all, total * sizeof(ck_buffer *));
    if (!h) return ck_nomem(err, ev->mem, total * sizeof(ck_buffer *));
    ck_column_set_heaps(out, h);
    ck_heaps_unref(&h);
    return CK_OK;
}

static ck_status merge_strings(ck_eval *ev, const ck_merge_input *in, uint32_t count, ck_column *out, ck_error *err) {
    int32_t *base = ck_alloc_array(ev->mem, count, sizeof *base);
    if (!base) return ck_nomem(err, ev->mem, count * sizeof *base);
    ck_status s = merge_heaps(ev, in, count, out, base, err);
    for (uint32_t k = 0; s == CK_OK && k < count; k++)
        if (in[k].value.col->phys == CK_PHYS_VIEW) merge_views(ev->kernels, out, &in[k], base[k]);
    ck_free(ev->mem, base, count * sizeof *base);
    return s;
}

static bool has_nulls(const ck_merge_input *in, uint32_t count) {
    for (uint32_t k = 0; k < count; k++)
        if (in[k].value.col->phys == CK_PHYS_NULL || in[k].value.col->validity) return true;
    return false;
}

static ck_status merge_layers(ck_eval *ev, const ck_merge_input *in, uint32_t count, ck_column *out, ck_error *err) {
    if (out->phys == CK_PHYS_VIEW) CK_TRY(merge_strings(ev, in, count, out, err));
    uint64_t *valid = has_nulls(in, count) ? ck_column_writable_validity(out) : NULL;
    for (uint32_t k = 0; k < count; k++) {
        if (valid) merge_validity(ev->kernels, valid, &in[k]);
        CK_TRY(merge_marks(ev, out, &in[k], err));
        if (in[k].value.col->phys == CK_PHYS_NULL) continue;
        bool constant = in[k].value.constant;
        const ck_scope_rows *rows = in[k].rows;
        switch (out->phys) {
        case CK_PHYS_BOOL: merge_bits(ev->kernels, out->bits, in[k].value.col->bits, &in[k]); break;
        case CK_PHYS_I64:
        case CK_PHYS_F64: ev->kernels->put_8[constant](out->data, in[k].value.col->data, rows->sel, rows->n); break;
        case CK_PHYS_I128: ev->kernels->put_16[constant](out->data, in[k].value.col->data, rows->sel, rows->n); break;
        default: break;
        }
    }
    return CK_OK;
}

/* ARRAY, MAP and ROW: row by row through a builder, from the last layer that has the row. */
static ck_status merge_nested(ck_eval *ev, const ck_type *type, const ck_merge_input *in, uint32_t count,
                              uint32_t row_count, ck_column **out, ck_error *err) {
    ck_column_builder b = {0};
    size_t bytes = row_count * sizeof(uint32_t);
    uint32_t *layer = ck_alloc_zero(ev->mem, bytes);
    ck_status s = layer ? ck_column_builder_init(&b, ev->mem, type, row_count) : CK_NOMEM;
    for (uint32_t l = 0; s == CK_OK && l < count; l++)
        for (CK_EACH_ROW(k, i, in[l].rows)) layer[i] = l + 1;
    for (uint32_t i = 0; s == CK_OK && i < row_count; i++) {
        const ck_vec *v = layer[i] ? &in[layer[i] - 1].value : NULL;
        if (!v || ck_column_is_null(v->col, CK_AT(*v, i)))
            s = ck_build_null(&b);
        else
            s = ck_build_from(&b, v->col, CK_AT(*v, i));
    }
    if (s == CK_OK && !(*out = ck_column_builder_finish(&b))) s = CK_NOMEM;
    for (uint32_t l = 0; s == CK_OK && l < count; l++) s = merge_marks(ev, *out, &in[l], err);
    ck_column_builder_destroy(&b);
    ck_free(ev->mem, layer, bytes);
    return s == CK_NOMEM ? ck_nomem(err, ev->mem, bytes) : s;
}

static bool covers(const ck_merge_input *in, const ck_scope_rows *scope) { return in->rows->n == scope->n; }

ck_status ck_eval_merge(ck_eval *ev, const ck_type *type, const ck_merge_input *in, uint32_t count,
                        const ck_scope_rows *scope, const ck_mark_list *marks, ck_vec *out, ck_error *err) {
    bool marked = marks && marks->count;
    /* Layers under one that covers the scope do not show. */
    for (uint32_t k = count; k-- > 0;)
        if (covers(&in[k], scope)) {
            in += k, count -= k;
            break;
        }
    *out = (ck_vec){0};
    ck_phys phys = ck_type_phys(type);
    if (count == 1 && covers(in, scope) && !marked && in->value.col->phys == phys) {
        *out = in->value;
        ck_column_ref(out->col);
        return CK_OK;
    }
    ck_status s = CK_OK;
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT) {
        s = merge_nested(ev, type, in, count, ev->row_count, &out->col, err);
    } else {
        out->col = ck_eval_column(ev, phys, ev->row_count);
        s = out->col ? merge_layers(ev, in, count, out->col, err) : ck_nomem(err, ev->mem, ev->row_count * 8);
    }
    for (uint32_t i = 0; marked && s == CK_OK && i < marks->count; i++)
        s = ck_eval_mark(ev, out->col, marks->rows[i].row, (ck_mark)marks->rows[i].mark, err);
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

ck_status ck_eval_copy(ck_eval *ev, const ck_type *type, const ck_vec *value, const ck_scope_rows *rows,
                       uint32_t row_count, ck_column **out, ck_error *err) {
    const ck_merge_input in = {rows, *value};
    ck_phys phys = ck_type_phys(type);
    *out = NULL;
    if (value->col->phys == CK_PHYS_NULL || (value->constant && ck_column_is_null(value->col, 0))) {
        *out = ck_column_new_null(ev->mem, phys, row_count);
        return *out ? CK_OK : ck_nomem(err, ev->mem, row_count * sizeof(int64_t));
    }
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT) return merge_nested(ev, type, &in, 1, row_count, out, err);
    *out = ck_eval_column(ev, phys, row_count);
    ck_status s = *out ? merge_layers(ev, &in, 1, *out, err) : ck_nomem(err, ev->mem, row_count * sizeof(int64_t));
    if (s != CK_OK) ck_column_unref(out);
    return s;
}
