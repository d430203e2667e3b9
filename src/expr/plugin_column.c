/* See plugin_column.h. */
#include "expr/plugin_column.h"

#include "expr/decimal.h"
#include "expr/time_int.h"
#include "expr/utf8.h"

enum { HEAP_BYTES_LEAST = 16 << 10, HEAP_BYTES_MOST = 1 << 20, TEXT_BYTES_MAX = CK_RECORD_BYTES_MAX };

clink_layout ck_plugin_layout(ck_phys phys) {
    switch (phys) {
    case CK_PHYS_BOOL: return CLINK_LAYOUT_BITS;
    case CK_PHYS_I64: return CLINK_LAYOUT_I64;
    case CK_PHYS_F64: return CLINK_LAYOUT_F64;
    case CK_PHYS_I128: return CLINK_LAYOUT_I128;
    case CK_PHYS_VIEW: return CLINK_LAYOUT_TEXT;
    default: return CLINK_LAYOUT_OTHER;
    }
}

ck_status ck_plugin_read(ck_plugin_reader *r, ck_mem mem, const ck_column *c, bool constant, const char *name) {
    r->view = (clink_column){.constant = constant, .name = name};
    if (!c || c->phys == CK_PHYS_NULL) return CK_OK;
    r->view.layout = ck_plugin_layout(c->phys);
    r->view.validity = c->validity;
    r->view.data = c->data;
    uint32_t heaps = c->phys == CK_PHYS_VIEW && c->heaps ? c->heaps->count : 0;
    if (heaps > r->heap_capacity) {
        void *more = ck_realloc(mem, r->heaps, r->heap_capacity * sizeof *r->heaps, heaps * sizeof *r->heaps);
        if (!more) return CK_NOMEM;
        r->heaps = more;
        r->heap_capacity = heaps;
    }
    for (uint32_t i = 0; i < heaps; i++) r->heaps[i] = c->heaps->buffers[i]->p;
    r->view.heaps = r->heaps;
    return CK_OK;
}

void ck_plugin_reader_destroy(ck_plugin_reader *r, ck_mem mem) {
    if (r->heaps) ck_free(mem, r->heaps, r->heap_capacity * sizeof *r->heaps);
    *r = (ck_plugin_reader){0};
}

ck_status ck_plugin_write(ck_plugin_writer *w, ck_mem mem, ck_column *col, uint64_t *all_set) {
    *w = (ck_plugin_writer){.mem = mem, .col = col, .validity = all_set};
    uint64_t *validity = all_set;
    if (all_set)
        memset(all_set, 0xFF, ck_bitmap_words(col->length) * sizeof *all_set);
    else
        validity = ck_column_writable_validity(col);
    if (!validity) {
        ck_plugin_writer_destroy(w);
        return CK_NOMEM;
    }
    /* A row that nobody writes must be nothing worse than a wrong value, and a bit is set beside others. */
    if (col->phys == CK_PHYS_VIEW) memset(col->views, 0, col->length * sizeof *col->views);
    if (col->phys == CK_PHYS_BOOL) memset(col->bits, 0, ck_bitmap_words(col->length) * sizeof *col->bits);
    w->face = (clink_writer){.layout = ck_plugin_layout(col->phys),
                             .length = col->length,
                             .data = col->data,
                             .validity = validity,
                             .inside = w};
    return CK_OK;
}

bool ck_plugin_written_null(const ck_plugin_writer *w) {
    for (uint32_t i = 0; w->validity && i < w->col->length; i += 64) {
        uint64_t of = w->col->length - i < 64 ? (1ULL << (w->col->length - i)) - 1 : ~0ULL;
        if ((w->validity[i / 64] & of) != of) return true;
    }
    return false;
}

clink_status ck_plugin_grow(clink_writer *face, size_t n) {
    ck_plugin_writer *w = face->inside;
    if (n > TEXT_BYTES_MAX) return CLINK_NOMEM;
    if (w->buffer_count == w->buffer_capacity) {
        uint32_t capacity = w->buffer_capacity ? w->buffer_capacity * 2 : 4;
        void *more =
            ck_realloc(w->mem, w->buffers, w->buffer_capacity * sizeof *w->buffers, capacity * sizeof *w->buffers);
        if (!more) return CLINK_NOMEM;
        w->buffers = more;
        w->buffer_capacity = capacity;
    }
    size_t bytes = face->heap_bytes ? face->heap_bytes * 2 : HEAP_BYTES_LEAST;
    if (bytes > HEAP_BYTES_MOST) bytes = HEAP_BYTES_MOST;
    if (bytes < n) bytes = n;
    ck_buffer *b = ck_buffer_new(w->mem, bytes);
    if (!b) return CLINK_NOMEM;
    face->heap_index = (int32_t)w->buffer_count;
    w->buffers[w->buffer_count++] = b;
    face->heap = b->p;
    face->heap_used = 0;
    face->heap_bytes = bytes;
    return CLINK_OK;
}

ck_column *ck_plugin_written(ck_plugin_writer *w) {
    ck_column *col = w->col;
    ck_heaps *h = w->buffer_count ? ck_heaps_new(w->mem, w->buffers, w->buffer_count) : NULL;
    if (w->buffer_count && !h) {
        ck_plugin_writer_destroy(w);
        return NULL;
    }
    if (h) ck_column_set_heaps(col, h);
    ck_heaps_unref(&h);
    w->col = NULL;
    ck_plugin_writer_destroy(w);
    return col;
}

void ck_plugin_writer_destroy(ck_plugin_writer *w) {
    for (uint32_t i = 0; i < w->buffer_count; i++) ck_buffer_unref(&w->buffers[i]);
    if (w->buffers) ck_free(w->mem, w->buffers, w->buffer_capacity * sizeof *w->buffers);
    ck_column_unref(&w->col);
    *w = (ck_plugin_writer){0};
}

/* ---- what comes back ---- */

/* A row whose value nobody looks at: NULL, or one that has failed. */
static bool has_none(const ck_column *c, uint32_t row) { return ck_column_is_null(c, row) || (c->err && c->err[row]); }

/* What an I64 of the type lies between; false: in anything. */
static bool range_of(ck_kind kind, int64_t *low, int64_t *high) {
    switch (kind) {
    case CK_TYPE_BIGINT: return false;
    case CK_TYPE_DATE: *low = CK_DATE_MIN, *high = CK_DATE_MAX; return true;
    case CK_TYPE_TIME: *low = 0, *high = CK_DAY_US - 1; return true;
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: *low = CK_TIME_MIN_US, *high = CK_TIME_MAX_US; return true;
    case CK_TYPE_INTERVAL_MONTH: *low = INT32_MIN, *high = INT32_MAX; return true; /* as Arrow has them */
    default:
        if (!ck_kind_is_integer(kind)) return false;
        ck_kind_int_range(kind, low, high);
        return true;
    }
}

/* A text is in the value itself, or within what has been asked for. */
static bool is_inside(const ck_column *c, uint32_t row) {
    const ck_strview *v = &c->views[row];
    if (v->length <= CK_STRVIEW_INLINE) return v->length >= 0;
    if (!c->heaps || v->ref.buffer < 0 || (uint32_t)v->ref.buffer >= c->heaps->count || v->ref.offset < 0) return false;
    size_t bytes = c->heaps->buffers[v->ref.buffer]->bytes, at = (size_t)v->ref.offset;
    return at <= bytes && (size_t)v->length <= bytes - at;
}

const char *ck_plugin_misfit(const ck_type *type, const ck_column *c, uint32_t row) {
    if (c->phys != CK_PHYS_VIEW) return "a number out of range for its type";
    if (!is_inside(c, row)) return "a text beyond the room it was given";
    return type->kind == CK_TYPE_VARCHAR ? "a text that is not UTF-8" : "bytes that do not fit";
}

bool ck_plugin_fits(const ck_type *type, const ck_column *c, const uint16_t *sel, uint32_t n, uint32_t *row) {
    int64_t low, high;
    bool text = c->phys == CK_PHYS_VIEW, utf8 = type->kind == CK_TYPE_VARCHAR, decimal = type->kind == CK_TYPE_DECIMAL;
    if (!(text || decimal || range_of(type->kind, &low, &high))) return true;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = sel ? sel[k] : k;
        if (has_none(c, i)) continue;
        bool fits = text      ? is_inside(c, i) && (!utf8 || ck_utf8_valid(ck_column_str(c, i)))
                    : decimal ? ck_decimal_fits(c->i128[i], type->precision)
                              : c->i64[i] >= low && c->i64[i] <= high;
        if (fits) continue;
        *row = i;
        return false;
    }
    return true;
}

void ck_plugin_round(const ck_type *type, ck_column *c) {
    int64_t low, high;
    if (type->kind == CK_TYPE_REAL)
        for (uint32_t i = 0; i < c->length; i++) c->f64[i] = (double)(float)c->f64[i];
    if (ck_type_phys(type) != CK_PHYS_I64) return;
    for (uint32_t i = 0; (c->validity || c->err) && i < c->length; i++)
        if (has_none(c, i)) c->i64[i] = 0;
    if (!ck_kind_is_datetime(type->kind) || type->kind == CK_TYPE_DATE || !range_of(type->kind, &low, &high)) return;
    for (uint32_t i = 0; i < c->length; i++)
        if (c->i64[i] >= low && c->i64[i] <= high) c->i64[i] = ck_time_at_precision(type->precision, c->i64[i]);
}

ck_status ck_plugin_status(clink_status s) {
    switch (s) {
    case CLINK_OK: return CK_OK;
    case CLINK_INVALID: return CK_INVALID;
    case CLINK_REFUSED: return CK_REFUSED;
    case CLINK_IO: return CK_IO;
    case CLINK_NOMEM: return CK_NOMEM;
    case CLINK_CORRUPT: return CK_CORRUPT;
    case CLINK_CANCELLED: return CK_CANCELLED;
    default: return CK_DATA; /* deterministic: it comes again */
    }
}
