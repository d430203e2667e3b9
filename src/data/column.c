/* See column.h; the shape of an allocation is in column_int.h. */
#include "data/column_int.h"

/* ---- reference counts ---- */

static void ref(_Atomic uint32_t *refs) {
    uint32_t was = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
    CK_ASSERT(was != 0 && was != UINT32_MAX);
}

/* True for the last holder. Who reads 1 holds the only reference, so nobody can add one meanwhile. */
static bool drop_ref(_Atomic uint32_t *refs) {
    if (atomic_load_explicit(refs, memory_order_acquire) == 1) return true;
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

/* ---- buffers ---- */

ck_buffer *ck_buffer_new(ck_mem mem, size_t bytes) {
    if (bytes > SIZE_MAX - ck_buffer_overhead()) return NULL;
    ck_buffer *b = ck_alloc(mem, bytes + ck_buffer_overhead());
    if (!b) return NULL;
    *b = (ck_buffer){.mem = mem, .bytes = bytes, .p = ck_align64(b + 1)};
    atomic_init(&b->refs, 1);
    memset(b->p + bytes, 0, CK_BUFFER_PADDING);
    return b;
}

ck_buffer *ck_buffer_ref(ck_buffer *b) {
    ref(&b->refs);
    return b;
}

void ck_buffer_unref(ck_buffer **pb) {
    ck_buffer *b = *pb;
    *pb = NULL;
    if (!b || !drop_ref(&b->refs)) return;
    if (b->release)
        b->release(b);
    else
        ck_free(b->mem, b, b->bytes + ck_buffer_overhead());
}

/* ---- heaps ---- */

static size_t heaps_bytes(uint32_t count) { return sizeof(ck_heaps) + count * sizeof(ck_buffer *); }

ck_heaps *ck_heaps_new(ck_mem mem, ck_buffer *const *buffers, uint32_t count) {
    ck_heaps *h = ck_alloc(mem, heaps_bytes(count));
    if (!h) return NULL;
    atomic_init(&h->refs, 1);
    h->count = count;
    h->mem = mem;
    for (uint32_t i = 0; i < count; i++) h->buffers[i] = ck_buffer_ref(buffers[i]);
    return h;
}

ck_heaps *ck_heaps_ref(ck_heaps *h) {
    ref(&h->refs);
    return h;
}

void ck_heaps_unref(ck_heaps **ph) {
    ck_heaps *h = *ph;
    *ph = NULL;
    if (!h || !drop_ref(&h->refs)) return;
    for (uint32_t i = 0; i < h->count; i++) ck_buffer_unref(&h->buffers[i]);
    ck_free(h->mem, h, heaps_bytes(h->count));
}

/* ---- columns ---- */

ck_column *ck_column_new(ck_mem mem, ck_phys phys, uint32_t length) {
    size_t bytes = ck_column_alloc_bytes(phys, length);
    ck_own_column *own = ck_alloc(mem, bytes);
    if (!own) return NULL;
    *own = (ck_own_column){.pub = {.phys = phys, .length = length, .mem = mem, .bytes = bytes}, .capacity = length};
    atomic_init(&own->pub.refs, 1);
    own->pub.data = ck_align64(own + 1);
    if (phys == CK_PHYS_LIST) own->pub.offsets[0] = 0;
    return &own->pub;
}

bool ck_column_reset(ck_column *c, uint32_t length) {
    if (atomic_load_explicit(&c->refs, memory_order_acquire) != 1 || c->release) return false;
    if (length > ((ck_own_column *)c)->capacity) return false;
    ck_column_drop_parts(c);
    ck_free(c->mem, c->err, ((ck_own_column *)c)->capacity);
    c->err = NULL, c->validity = NULL;
    c->length = length;
    if (c->phys == CK_PHYS_LIST) c->offsets[0] = 0;
    return true;
}

ck_column *ck_column_new_null(ck_mem mem, ck_phys phys, uint32_t length) {
    ck_column *c = ck_column_new(mem, phys, length);
    if (!c || phys == CK_PHYS_NULL) return c;
    memset(c->data, 0, ck_phys_data_bytes(phys, length));
    memset(ck_column_writable_validity(c), 0, ck_bitmap_words(length) * 8);
    return c;
}

uint64_t *ck_column_writable_validity(ck_column *c) {
    if (c->validity) return c->validity;
    CK_ASSERT(!c->release && c->phys != CK_PHYS_NULL);
    uint32_t capacity = ((ck_own_column *)c)->capacity;
    c->validity = (uint64_t *)(void *)((char *)c->data + ck_round64(ck_phys_data_bytes(c->phys, capacity)));
    memset(c->validity, 0xff, ck_bitmap_words(capacity) * 8);
    return c->validity;
}

uint8_t *ck_column_writable_err(ck_column *c) {
    if (c->err) return c->err;
    CK_ASSERT(!c->release);
    c->err = ck_alloc_zero(c->mem, ((ck_own_column *)c)->capacity);
    return c->err;
}

ck_status ck_column_reserve_children(ck_column *c, uint32_t count) {
    CK_ASSERT(!c->children && (c->phys == CK_PHYS_LIST || c->phys == CK_PHYS_STRUCT));
    if (count == 0) return CK_OK;
    c->children = ck_alloc_array(c->mem, count, sizeof(ck_column *));
    if (!c->children) return CK_NOMEM;
    c->child_count = count;
    for (uint32_t i = 0; i < count; i++) c->children[i] = NULL;
    return CK_OK;
}

ck_status ck_column_set_children(ck_column *c, ck_column *const *children, uint32_t count) {
    CK_TRY(ck_column_reserve_children(c, count));
    for (uint32_t i = 0; i < count; i++) c->children[i] = children[i];
    return CK_OK;
}

void ck_column_set_heaps(ck_column *c, ck_heaps *h) {
    if (h) ck_heaps_ref(h);
    ck_heaps_unref(&c->heaps);
    c->heaps = h;
}

void ck_column_drop_parts(ck_column *c) {
    ck_heaps_unref(&c->heaps);
    for (uint32_t i = 0; i < c->child_count; i++) ck_column_unref(&c->children[i]);
    ck_free(c->mem, c->children, c->child_count * sizeof(ck_column *));
    c->children = NULL;
    c->child_count = 0;
}

ck_column *ck_column_ref(ck_column *c) {
    ref(&c->refs);
    return c;
}

void ck_column_unref(ck_column **pc) {
    ck_column *c = *pc;
    *pc = NULL;
    if (!c || !drop_ref(&c->refs)) return;
    ck_column_drop_parts(c);
    if (c->release) {
        c->release(c);
        return;
    }
    ck_free(c->mem, c->err, ((ck_own_column *)c)->capacity);
    ck_free(c->mem, c, c->bytes);
}

/* ---- equality ---- */

static bool views_equal(const ck_column *x, size_t a, const ck_column *y, size_t b) {
    const ck_strview *u = &x->views[a], *v = &y->views[b];
    if (memcmp(u, v, 8) != 0) return false; /* length and the first four bytes */
    if (u->length <= CK_STRVIEW_INLINE) return memcmp(u, v, sizeof *u) == 0;
    return memcmp(ck_column_str(x, a).p, ck_column_str(y, b).p, (size_t)u->length) == 0;
}

static bool lists_equal(const ck_column *x, size_t a, const ck_column *y, size_t b) {
    int32_t n = x->offsets[a + 1] - x->offsets[a];
    if (n != y->offsets[b + 1] - y->offsets[b]) return false;
    for (int32_t i = 0; i < n; i++)
        if (!ck_column_rows_equal(x->children[0], (size_t)(x->offsets[a] + i), y->children[0],
                                  (size_t)(y->offsets[b] + i)))
            return false;
    return true;
}

static bool doubles_equal(double u, double v) { return u == v || (u != u && v != v); }

bool ck_column_rows_equal(const ck_column *x, size_t a, const ck_column *y, size_t b) {
    bool x_null = ck_column_is_null(x, a), y_null = ck_column_is_null(y, b);
    if (x_null || y_null) return x_null && y_null;
    CK_DASSERT(x->phys == y->phys);
    switch (x->phys) {
    case CK_PHYS_NULL: return true;
    case CK_PHYS_BOOL: return ck_bit_get(x->bits, a) == ck_bit_get(y->bits, b);
    case CK_PHYS_I64: return x->i64[a] == y->i64[b];
    case CK_PHYS_F64: return doubles_equal(x->f64[a], y->f64[b]);
    case CK_PHYS_I128: return x->i128[a] == y->i128[b];
    case CK_PHYS_VIEW: return views_equal(x, a, y, b);
    case CK_PHYS_LIST: return lists_equal(x, a, y, b);
    case CK_PHYS_STRUCT:
        for (uint32_t i = 0; i < x->child_count; i++)
            if (!ck_column_rows_equal(x->children[i], a, y->children[i], b)) return false;
        return true;
    }
    return false;
}
