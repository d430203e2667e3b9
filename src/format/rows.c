/* See rows_int.h. */
#include "format/rows_int.h"

enum { SMALL_BATCH = 4 /* a batch under a quarter of the capacity is copied out, and the columns are kept */ };

/* ---- making and unmaking ---- */

static ck_status init_target(ck_rows *r, ck_target *t, uint32_t index, bool emitted) {
    const ck_field *f = &r->schema->fields[index];
    *t = (ck_target){
        .field = f, .index = index, .kind = f->type->kind, .phys = ck_type_phys(f->type), .emitted = emitted};
    t->nested = t->phys == CK_PHYS_LIST || t->phys == CK_PHYS_STRUCT;
    if (ck_kind_is_integer(t->kind)) ck_kind_int_range(t->kind, &t->lo, &t->hi);
    return t->nested ? ck_column_builder_init(&t->builder, r->mem, f->type, r->capacity) : CK_OK;
}

static ck_status init_targets(ck_rows *r, const bool *wanted, const bool *checked, bool strict) {
    uint32_t n = r->schema->field_count;
    r->targets = ck_alloc_array(r->mem, n, sizeof *r->targets);
    if (!r->targets) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        bool emitted = !wanted || wanted[i];
        if (!emitted && !strict && !(checked && checked[i])) continue;
        CK_TRY(init_target(r, &r->targets[r->target_count++], i, emitted));
    }
    if (!r->origins) return CK_OK;
    r->origin_offsets = ck_alloc_array(r->mem, r->capacity, sizeof *r->origin_offsets);
    return r->origin_offsets ? CK_OK : CK_NOMEM;
}

ck_status ck_rows_init(ck_rows *r, ck_mem mem, const ck_schema *schema, const bool *wanted, const bool *checked,
                       bool strict, uint32_t capacity, bool origins, ck_error *err) {
    CK_ASSERT(capacity > 0 && capacity <= CK_BATCH_ROWS_MAX);
    *r = (ck_rows){.mem = mem, .schema = schema, .capacity = capacity, .origins = origins};
    if (init_targets(r, wanted, checked, strict) == CK_OK) return CK_OK;
    ck_rows_destroy(r);
    return ck_nomem(err, mem, schema->field_count * sizeof(ck_target));
}

static void drop_heaps(ck_rows *r) {
    for (uint32_t i = 0; i < r->heap_count; i++) ck_buffer_unref(&r->heaps[i]);
    r->heap_count = 0;
    r->heap_bytes = 0;
    r->read = NULL;
    r->own = NULL;
    r->own_hint = r->own_bytes;
    r->own_used = r->own_bytes = 0;
}

void ck_rows_destroy(ck_rows *r) {
    for (uint32_t i = 0; i < r->target_count; i++) {
        ck_column_unref(&r->targets[i].col);
        ck_column_builder_destroy(&r->targets[i].builder);
    }
    if (r->targets) ck_free(r->mem, r->targets, r->schema->field_count * sizeof *r->targets);
    drop_heaps(r);
    ck_free(r->mem, r->heaps, r->heap_capacity * sizeof *r->heaps);
    ck_free(r->mem, r->object, r->object_bytes);
    ck_free(r->mem, r->origin_offsets, r->capacity * sizeof *r->origin_offsets);
    *r = (ck_rows){0};
}

ck_status ck_rows_set_object(ck_rows *r, const char *object) {
    size_t n = strlen(object) + 1;
    char *p = ck_alloc(r->mem, n);
    if (!p) return CK_NOMEM;
    memcpy(p, object, n);
    ck_free(r->mem, r->object, r->object_bytes);
    r->object = p;
    r->object_bytes = n;
    return CK_OK;
}

ck_status ck_rows_open(ck_rows *r, ck_error *err) {
    if (r->open) return CK_OK;
    for (uint32_t i = 0; i < r->target_count; i++) {
        ck_target *t = &r->targets[i];
        if (t->nested) continue;
        if (!t->col) t->col = ck_column_new(r->mem, t->phys, r->capacity);
        if (!t->col) return ck_nomem(err, r->mem, r->capacity * sizeof(ck_strview));
        t->data = t->col->data;
        t->validity = NULL;
        /* bits are set one by one, so the words must hold something */
        if (t->phys == CK_PHYS_BOOL) memset(t->bits, 0, ck_bitmap_words(r->capacity) * 8);
    }
    r->open = true;
    return CK_OK;
}

/* ---- strings ---- */

static ck_status add_heap(ck_rows *r, ck_buffer *buf, uint32_t *index) { /* takes the reference, also on failure */
    if (r->heap_count == r->heap_capacity) {
        uint32_t want = r->heap_capacity ? r->heap_capacity * 2 : 8;
        ck_buffer **p = ck_realloc(r->mem, r->heaps, r->heap_capacity * sizeof *p, want * sizeof *p);
        if (!p) {
            ck_buffer_unref(&buf);
            return CK_NOMEM;
        }
        r->heaps = p;
        r->heap_capacity = want;
    }
    *index = r->heap_count;
    r->heap_bytes += buf->bytes;
    r->heaps[r->heap_count++] = buf;
    return CK_OK;
}

ck_status ck_rows_heap(ck_rows *r, ck_buffer *buf, uint32_t *index) {
    if (r->read != buf) {
        CK_TRY(add_heap(r, ck_buffer_ref(buf), &r->read_index));
        r->read = buf;
    }
    *index = r->read_index;
    return CK_OK;
}

ck_status ck_rows_reserve(ck_rows *r, size_t n, char **out) {
    if (!r->own || n > r->own->bytes - r->own_used) {
        size_t size = r->own ? r->own->bytes * 2 : r->own_hint;
        if (size < CK_ROWS_HEAP_BYTES_MIN) size = CK_ROWS_HEAP_BYTES_MIN;
        if (size > CK_ROWS_HEAP_BYTES_MAX) size = CK_ROWS_HEAP_BYTES_MAX;
        if (size < n) size = n;
        if (size > INT32_MAX) return CK_NOMEM; /* a view's offset is int32 */
        ck_buffer *b = ck_buffer_new(r->mem, size);
        if (!b) return CK_NOMEM;
        r->own = NULL;
        CK_TRY(add_heap(r, b, &r->own_index));
        r->own = b;
        r->own_used = 0;
    }
    *out = (char *)r->own->p + r->own_used;
    return CK_OK;
}

ck_strview ck_rows_commit(ck_rows *r, ck_target *t, size_t n) {
    const char *p = (const char *)r->own->p + r->own_used;
    if (n <= CK_STRVIEW_INLINE) return ck_strview_inline(p, n);
    ck_strview v = ck_strview_ref(p, n, r->own_index, (uint32_t)r->own_used);
    r->own_used += n;
    r->own_bytes += n;
    t->long_seen = true;
    return v;
}

ck_status ck_rows_copy(ck_rows *r, ck_target *t, const char *p, size_t n, ck_strview *out) {
    if (n <= CK_STRVIEW_INLINE) {
        *out = ck_strview_inline(p, n);
        return CK_OK;
    }
    char *to;
    CK_TRY(ck_rows_reserve(r, n, &to));
    memcpy(to, p, n);
    *out = ck_rows_commit(r, t, n);
    return CK_OK;
}

/* ---- rows ---- */

static size_t width(ck_phys phys) {
    switch (phys) {
    case CK_PHYS_I64: return sizeof(int64_t);
    case CK_PHYS_F64: return sizeof(double);
    case CK_PHYS_I128: return sizeof(ck_i128);
    case CK_PHYS_VIEW: return sizeof(ck_strview);
    default: return 0;
    }
}

ck_status ck_rows_null(ck_target *t, uint32_t row) {
    if (t->nested) return ck_build_null(&t->builder);
    if (t->phys == CK_PHYS_NULL) return CK_OK;
    if (!t->validity) t->validity = ck_column_writable_validity(t->col);
    if (!t->validity) return CK_NOMEM;
    ck_bit_clear(t->validity, row);
    if (t->phys == CK_PHYS_BOOL)
        ck_bit_clear(t->bits, row);
    else
        memset((char *)t->data + row * width(t->phys), 0, width(t->phys));
    return CK_OK;
}

void ck_rows_undo(ck_rows *r, uint32_t row, uint32_t end) {
    for (uint32_t i = 0; i < r->target_count; i++) {
        ck_target *t = &r->targets[i];
        if (t->nested)
            ck_column_builder_truncate(&t->builder, row);
        else if (t->validity)
            for (uint32_t k = row; k < end; k++) ck_bit_set(t->validity, k);
    }
}

/* ---- handing out ---- */

/* The column of n rows. A short one is copied so that the long allocation serves the next batch too; without memory for
 * the copy it goes as it is. */
static ck_column *handed(ck_rows *r, ck_target *t) {
    uint32_t n = r->row_count;
    ck_column *c = t->nested || n >= r->capacity / SMALL_BATCH ? NULL : ck_column_new(r->mem, t->phys, n);
    if (!c) {
        c = t->col;
        t->col = NULL;
        c->length = n;
        return c;
    }
    if (t->phys == CK_PHYS_BOOL)
        memcpy(c->bits, t->bits, ck_bitmap_words(n) * 8);
    else if (width(t->phys))
        memcpy(c->data, t->data, n * width(t->phys));
    if (t->validity) {
        uint64_t *to = ck_column_writable_validity(c);
        if (to) memcpy(to, t->validity, ck_bitmap_words(n) * 8);
    }
    return c;
}

static bool finish_nested(ck_rows *r) {
    for (uint32_t i = 0; i < r->target_count; i++) {
        ck_target *t = &r->targets[i];
        if (!t->nested || t->col) continue; /* a column is there when an earlier attempt stopped further on */
        t->col = ck_column_builder_finish(&t->builder);
        if (!t->col) return false;
    }
    return true;
}

static ck_heaps *shared_heaps(ck_rows *r) {
    return r->heap_count ? ck_heaps_new(r->mem, r->heaps, r->heap_count) : NULL;
}

static void hand_out(ck_rows *r, ck_batch *b, ck_heaps *heaps) {
    for (uint32_t i = 0; i < r->target_count; i++) {
        ck_target *t = &r->targets[i];
        if (t->emitted) {
            ck_column *c = handed(r, t);
            if (t->long_seen) ck_column_set_heaps(c, heaps);
            ck_batch_set_column(b, t->index, &c);
        } else if (t->nested) {
            ck_column_unref(&t->col);
        }
        if (t->col) t->col->validity = NULL;
        t->validity = NULL;
        t->long_seen = false;
    }
    drop_heaps(r);
    r->row_count = 0;
    r->open = false;
}

ck_batch *ck_rows_take(ck_rows *r) {
    if (ck_rows_open(r, NULL) != CK_OK || !finish_nested(r)) return NULL;
    ck_heaps *heaps = shared_heaps(r);
    ck_origin *origin = NULL;
    ck_batch *b = ck_batch_new(r->mem, r->schema->field_count, r->row_count, false, false);
    if (b && r->origins) {
        origin = ck_origin_new(r->mem, r->object ? r->object : "", r->origin_base, r->row_count);
        if (origin) memcpy(origin->row_offset, r->origin_offsets, r->row_count * sizeof(uint32_t));
    }
    if (!b || (r->origins && !origin) || (r->heap_count && !heaps)) {
        ck_origin_unref(&origin);
        ck_batch_unref(&b);
        ck_heaps_unref(&heaps);
        return NULL;
    }
    b->origin = origin;
    hand_out(r, b, heaps);
    ck_heaps_unref(&heaps);
    return b;
}
