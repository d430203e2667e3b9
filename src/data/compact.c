/* What a batch weighs, and compaction. A batch of few live rows may keep whole read buffers alive; at queues and before
 * state it is copied dense when it pins far more than it needs. */
#include "data/builder_int.h"

/* ---- pinned ---- */

/* Buffers already counted, by address. Up to SEEN_INLINE without an allocation; when a larger table cannot be had the
 * rest counts once per mention, which only makes a batch look heavier. */
enum { SEEN_INLINE = 256 };
typedef struct seen_set {
    const void *few[SEEN_INLINE];
    const void **slots;
    size_t slot_count, used; /* slot_count is a power of two */
} seen_set;

static bool seen_before(seen_set *s, const void *p) {
    if (s->used * 4 >= s->slot_count * 3) return false;
    size_t i = (size_t)(((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ULL >> 32) & (s->slot_count - 1);
    while (s->slots[i]) {
        if (s->slots[i] == p) return true;
        i = (i + 1) & (s->slot_count - 1);
    }
    s->slots[i] = p;
    s->used++;
    return false;
}

static size_t heaps_mentioned(const ck_column *c) {
    size_t n = c->heaps ? c->heaps->count + 1 : 0;
    for (uint32_t i = 0; i < c->child_count; i++) n += heaps_mentioned(c->children[i]);
    return n;
}

static void seen_open(seen_set *s, ck_mem mem, size_t mentioned) {
    s->used = 0;
    s->slots = s->few;
    s->slot_count = SEEN_INLINE;
    if (mentioned >= SEEN_INLINE / 2) {
        size_t want = SEEN_INLINE;
        while (want < mentioned * 2) want *= 2;
        const void **more = ck_alloc_array(mem, want, sizeof *more);
        if (more) s->slots = more, s->slot_count = want;
    }
    memset(s->slots, 0, s->slot_count * sizeof *s->slots);
}

static void seen_close(seen_set *s, ck_mem mem) {
    if (s->slots != s->few) ck_free(mem, s->slots, s->slot_count * sizeof *s->slots);
}

static size_t pinned(const ck_column *c, seen_set *seen) {
    size_t bytes = c->bytes + (c->err ? c->length : 0) + c->child_count * sizeof(ck_column *);
    if (c->heaps && !seen_before(seen, c->heaps)) {
        bytes += sizeof(ck_heaps) + c->heaps->count * sizeof(ck_buffer *);
        for (uint32_t i = 0; i < c->heaps->count; i++)
            if (!seen_before(seen, c->heaps->buffers[i])) bytes += c->heaps->buffers[i]->bytes + ck_buffer_overhead();
    }
    for (uint32_t i = 0; i < c->child_count; i++) bytes += pinned(c->children[i], seen);
    return bytes;
}

size_t ck_column_pinned_bytes(const ck_column *c) {
    seen_set seen;
    seen_open(&seen, c->mem, heaps_mentioned(c));
    size_t bytes = pinned(c, &seen);
    seen_close(&seen, c->mem);
    return bytes;
}

size_t ck_batch_pinned_bytes(const ck_batch *b) {
    seen_set seen;
    size_t mentioned = 0, bytes = b->bytes;
    for (uint32_t i = 0; i < b->column_count; i++)
        if (b->columns[i]) mentioned += heaps_mentioned(b->columns[i]);
    seen_open(&seen, b->mem, mentioned);
    for (uint32_t i = 0; i < b->column_count; i++)
        if (b->columns[i]) bytes += pinned(b->columns[i], &seen);
    seen_close(&seen, b->mem);
    return bytes;
}

/* ---- live ---- */

/* Headers and padding of a compacted column: what it costs whatever its rows. Counted as live, so that compacting what
 * is compact never looks worth while. */
static size_t overhead(const ck_column *c) {
    size_t bytes = sizeof(ck_own_column) + 3 * CK_COLUMN_ALIGN + c->child_count * sizeof(ck_column *);
    if (c->heaps) bytes += sizeof(ck_heaps) + sizeof(ck_buffer *) + ck_buffer_overhead();
    for (uint32_t i = 0; i < c->child_count; i++) bytes += overhead(c->children[i]);
    return bytes;
}

/* Bytes of rows[0..n), or of start .. start + n - 1 when rows is NULL, in a compacted column: without what its fixed
 * part needs. Looks no further when it is `enough`. */
static size_t var_rows(const ck_column *c, const uint16_t *rows, size_t start, size_t n, size_t enough);

static size_t fixed_rows(const ck_column *c, size_t n) { return ck_phys_data_bytes(c->phys, n) + n / 8; }

static size_t all_rows(const ck_column *c, const uint16_t *rows, size_t start, size_t n, size_t enough) {
    size_t bytes = fixed_rows(c, n);
    return bytes < enough ? bytes + var_rows(c, rows, start, n, enough - bytes) : bytes;
}

static size_t text_rows(const ck_column *c, const uint16_t *rows, size_t start, size_t n, size_t enough) {
    size_t bytes = 0;
    for (size_t i = 0, end; i < n && bytes < enough; i = end) {
        end = n - i < 64 ? n : i + 64;
        for (size_t k = i; k < end; k++) {
            size_t row = rows ? rows[k] : start + k;
            uint32_t length = (uint32_t)c->views[row].length;
            if (length > CK_STRVIEW_INLINE && (!c->validity || ck_bit_get(c->validity, row))) bytes += length;
        }
    }
    return bytes;
}

static size_t var_rows(const ck_column *c, const uint16_t *rows, size_t start, size_t n, size_t enough) {
    size_t bytes = 0;
    if (c->phys == CK_PHYS_VIEW && c->heaps) return text_rows(c, rows, start, n, enough);
    if (c->phys == CK_PHYS_STRUCT)
        for (uint32_t i = 0; i < c->child_count && bytes < enough; i++)
            bytes += all_rows(c->children[i], rows, start, n, enough - bytes);
    if (c->phys == CK_PHYS_LIST && c->child_count) {
        for (size_t i = 0; i < n && bytes < enough; i++) {
            size_t row = rows ? rows[i] : start + i;
            if (ck_column_is_null(c, row)) continue;
            size_t first = (size_t)c->offsets[row];
            bytes += all_rows(c->children[0], NULL, first, (size_t)c->offsets[row + 1] - first, enough - bytes);
        }
    }
    return bytes;
}

/* The fixed parts of all columns come first: they are known without looking at a row. */
static size_t live_bytes(const ck_batch *b, size_t enough) {
    size_t bytes = sizeof *b + b->column_count * sizeof(ck_column *) + (b->weights ? b->sel_count : 0);
    for (uint32_t i = 0; i < b->column_count; i++)
        if (b->columns[i]) bytes += overhead(b->columns[i]) + fixed_rows(b->columns[i], b->sel_count);
    for (uint32_t i = 0; i < b->column_count && bytes < enough; i++)
        if (b->columns[i]) bytes += var_rows(b->columns[i], b->sel, 0, b->sel_count, enough - bytes);
    return bytes;
}

size_t ck_batch_live_bytes(const ck_batch *b) { return live_bytes(b, SIZE_MAX); }

/* ---- compaction ---- */

static ck_column *compact_column(const ck_column *c, const uint16_t *rows, uint32_t n, ck_mem mem) {
    ck_column_builder b;
    if (ck_column_builder_init_copy(&b, mem, c, n) != CK_OK) return NULL;
    ck_status s = rows ? ck_build_gather(&b, c, rows, n) : ck_build_range(&b, c, 0, n);
    ck_column *out = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return out;
}

/* Row offsets of the live rows; unknown (NULL) is a fair answer when there is no memory. */
static ck_origin *compact_origin(const ck_batch *b, ck_mem mem) {
    if (!b->origin) return NULL;
    if (!b->sel) return ck_origin_ref(b->origin);
    ck_origin *o = ck_origin_new(mem, b->origin->object, b->origin->base_offset, b->sel_count);
    for (uint32_t k = 0; o && k < b->sel_count; k++)
        o->row_offset[k] = b->sel[k] < b->origin->row_count ? b->origin->row_offset[b->sel[k]] : 0;
    return o;
}

ck_batch *ck_batch_compact(const ck_batch *b, ck_mem mem) {
    ck_batch *out = ck_batch_new(mem, b->column_count, b->sel_count, false, b->weights != NULL);
    if (!out) return NULL;
    for (uint32_t i = 0; i < b->column_count; i++) {
        if (!b->columns[i]) continue;
        out->columns[i] = compact_column(b->columns[i], b->sel, b->sel_count, mem);
        if (!out->columns[i]) {
            ck_batch_unref(&out);
            return NULL;
        }
    }
    if (b->weights)
        for (uint32_t k = 0; k < b->sel_count; k++) out->weights[k] = b->weights[ck_batch_row(b, k)];
    out->origin = compact_origin(b, mem);
    return out;
}

enum { SPARSE_BYTES_MIN = 64 * 1024 };

bool ck_batch_is_sparse(const ck_batch *b) {
    if (b->sel_count * 8 < b->row_count) return true;
    size_t pinned_bytes = ck_batch_pinned_bytes(b);
    return pinned_bytes > SPARSE_BYTES_MIN && live_bytes(b, pinned_bytes / 4) < pinned_bytes / 4;
}

ck_status ck_batch_compact_if_sparse(ck_batch **b, ck_mem mem) {
    if (!ck_batch_is_sparse(*b)) return CK_OK;
    ck_batch *dense = ck_batch_compact(*b, mem);
    if (!dense) return CK_NOMEM;
    ck_batch_unref(b);
    *b = dense;
    return CK_OK;
}
