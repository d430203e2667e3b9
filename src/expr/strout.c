/* See strout.h. */
#include "expr/strout.h"

ck_status ck_strout_begin(ck_strout *w, ck_eval *ev, const ck_rows *rows, ck_error *err) {
    *w = (ck_strout){.ev = ev, .err = err, .col = ck_eval_column(ev, CK_PHYS_VIEW, rows->row_count)};
    return w->col ? CK_OK : ck_nomem(err, ev->mem, rows->row_count * sizeof(ck_strview));
}

void ck_strout_share(ck_strout *w, const ck_column *c) {
    CK_ASSERT(w->shared_count < CK_STROUT_SHARES && w->own_count == 0);
    w->shared[w->shared_count] = c->heaps;
    w->shared_base[w->shared_count++] = w->shared_buffers;
    w->shared_buffers += c->heaps ? c->heaps->count : 0;
}

static bool new_buffer(ck_strout *w, size_t n) {
    if (w->own_count == w->own_capacity) {
        uint32_t more = w->own_capacity ? w->own_capacity * 2 : 4;
        ck_buffer **bigger = ck_realloc(w->ev->mem, w->own, w->own_capacity * sizeof *bigger, more * sizeof *bigger);
        if (!bigger) return false;
        w->own = bigger, w->own_capacity = more;
    }
    /* Buffers double, so that a batch of long strings has few of them. */
    size_t want = w->own_count ? w->own[w->own_count - 1]->bytes * 2 : 0;
    if (want > CK_STRING_BYTES_MAX) want = CK_STRING_BYTES_MAX;
    if (want < n) want = n;
    ck_eval *ev = w->ev;
    w->too_much = ev->text_bytes > ev->text_bytes_max || want > ev->text_bytes_max - ev->text_bytes;
    if (w->too_much) return false;
    ck_buffer *b = ck_eval_buffer(ev, want);
    if (!b) return false;
    ev->text_bytes += b->bytes;
    w->own[w->own_count++] = b;
    w->used = 0;
    return true;
}

char *ck_strout_room(ck_strout *w, size_t n) {
    CK_DASSERT(n <= CK_STRING_BYTES_MAX);
    if (!w->own_count || w->own[w->own_count - 1]->bytes - w->used < n)
        if (!new_buffer(w, n)) return NULL;
    return (char *)w->own[w->own_count - 1]->p + w->used;
}

void ck_strout_take(ck_strout *w, uint32_t row, const char *p, size_t n) {
    if (n <= CK_STRVIEW_INLINE) {
        w->col->views[row] = ck_strview_inline(p, n);
        return;
    }
    w->col->views[row] = ck_strview_ref(p, n, w->shared_buffers + w->own_count - 1, w->used);
    w->used += (uint32_t)n;
}

ck_status ck_strout_put(ck_strout *w, uint32_t row, ck_view v) {
    if (v.n <= CK_STRVIEW_INLINE) {
        w->col->views[row] = ck_strview_inline(v.p, v.n);
        return CK_OK;
    }
    if (v.n > CK_STRING_BYTES_MAX) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    char *p = ck_strout_room(w, v.n);
    if (!p) return CK_NOMEM;
    memcpy(p, v.p, v.n);
    ck_strout_take(w, row, p, v.n);
    return CK_OK;
}

/* The first n of 16 readable bytes inline, without a loop or a call. */
static inline void inline_of_16(ck_strview *out, const char *p, size_t n) {
    uint64_t a, b, words[2];
    memcpy(&a, p, 8), memcpy(&b, p + 8, 8);
    a = n < 8 ? a & ~(~0ULL << 8 * n) : a;
    b = n > 8 ? b & ~(~0ULL << 8 * (n - 8)) : 0;
    words[0] = n | a << 32, words[1] = a >> 32 | b << 32;
    memcpy(out, words, sizeof words);
}

void ck_strout_part(ck_strout *w, uint32_t row, const ck_column *c, uint32_t share, uint32_t at, size_t from,
                    size_t n) {
    ck_view whole = ck_column_str(c, at);
    const char *p = whole.p + from;
    if (n <= CK_STRVIEW_INLINE) {
        if (whole.n - from >= 16)
            inline_of_16(&w->col->views[row], p, n);
        else
            w->col->views[row] = ck_strview_inline(p, n);
        return;
    }
    ck_strview v = c->views[at];
    w->col->views[row] =
        ck_strview_ref(p, n, (uint32_t)v.ref.buffer + w->shared_base[share], (uint32_t)v.ref.offset + (uint32_t)from);
}

ck_status ck_strout_null(ck_strout *w, uint32_t row) {
    ck_bit_clear(ck_column_writable_validity(w->col), row);
    w->col->views[row] = ck_strview_inline("", 0);
    return CK_OK;
}

ck_status ck_strout_mark(ck_strout *w, uint32_t row, ck_mark mark) {
    w->col->views[row] = ck_strview_inline("", 0);
    return ck_eval_mark(w->ev, w->col, row, mark, w->err);
}

static ck_status set_heaps(ck_strout *w) {
    if (!w->own_count && w->shared_count == 1) {
        ck_column_set_heaps(w->col, (ck_heaps *)(uintptr_t)w->shared[0]);
        return CK_OK;
    }
    uint32_t total = w->shared_buffers + w->own_count;
    if (!total) return CK_OK;
    ck_buffer **all = ck_alloc_array(w->ev->mem, total, sizeof *all);
    if (!all) return CK_NOMEM;
    uint32_t at = 0;
    for (uint32_t s = 0; s < w->shared_count; s++)
        for (uint32_t i = 0; w->shared[s] && i < w->shared[s]->count; i++) all[at++] = w->shared[s]->buffers[i];
    for (uint32_t i = 0; i < w->own_count; i++) all[at++] = w->own[i];
    ck_heaps *h = ck_heaps_new(w->ev->mem, all, total);
    ck_free(w->ev->mem, all, total * sizeof *all);
    if (!h) return CK_NOMEM;
    ck_column_set_heaps(w->col, h);
    ck_heaps_unref(&h);
    return CK_OK;
}

ck_status ck_strout_finish(ck_strout *w, ck_status status, ck_vec *out) {
    if (status == CK_OK) status = set_heaps(w);
    if (status == CK_NOMEM && w->too_much)
        status = ck_fail(w->err, CK_FULL, "the texts made of one batch of %u rows are over %d bytes", w->ev->row_count,
                         CK_EVAL_TEXT_BYTES_MAX);
    if (status == CK_NOMEM) status = ck_nomem(w->err, w->ev->mem, CK_STRVIEW_INLINE);
    for (uint32_t i = 0; i < w->own_count; i++) ck_buffer_unref(&w->own[i]);
    ck_free(w->ev->mem, w->own, w->own_capacity * sizeof *w->own);
    if (status == CK_OK) {
        *out = (ck_vec){w->col, false};
        w->col = NULL;
    }
    ck_column_unref(&w->col);
    *w = (ck_strout){0};
    return status;
}
