/* Fields of many rows at once: from a column into rows, and out of rows into a column. The kind of value is chosen once
 * a call. Strings of a result stand in buffers of its own, one copy of each that comes from the same place. */
#include "state/table_int.h"

enum { PLACES = 256, BUFFERS_MAX = 64, BUFFER_BYTES = 1 << 30 };

/* ---- into rows ---- */

#define SET_FIXED(member, setter)                                                                                      \
    for (uint32_t i = 0; i < n; i++) {                                                                                 \
        uint32_t r = at ? at[i] : i;                                                                                   \
        setter(rows[i], f->offset, c->member[r]);                                                                      \
    }                                                                                                                  \
    break

static void set_null_bits(ck_row *const *rows, uint32_t n, const ck_shape_field *f, const ck_column *c,
                          const uint16_t *at) {
    if (f->null_bit == UINT32_MAX) return;
    for (uint32_t i = 0; i < n; i++) {
        bool null = c->validity && !ck_bit_get(c->validity, at ? at[i] : i);
        ck_row_set_null(rows[i], f->null_bit, null);
        if (null) memset(rows[i] + f->offset, 0, f->width);
    }
}

ck_status ck_table_set_column(ck_table *t, ck_row *const *rows, uint32_t n, uint32_t field, const ck_column *c,
                              const uint16_t *at) {
    const ck_shape_field *f = &t->shape->fields[field];
    bool any_null = c->phys == CK_PHYS_NULL || (c->validity && f->null_bit == UINT32_MAX);
    if (any_null || ck_phys_is_var(f->phys) || f->phys == CK_PHYS_NULL) {
        for (uint32_t i = 0; i < n; i++) CK_TRY(ck_table_set_field(t, rows[i], field, c, at ? at[i] : i));
        return CK_OK;
    }
    switch (f->phys) {
    case CK_PHYS_I64: SET_FIXED(i64, ck_row_set_i64);
    case CK_PHYS_F64: SET_FIXED(f64, ck_row_set_f64);
    case CK_PHYS_I128: SET_FIXED(i128, ck_row_set_i128);
    default:
        for (uint32_t i = 0; i < n; i++) ck_row_set_bool(rows[i], f->offset, ck_bit_get(c->bits, at ? at[i] : i));
    }
    set_null_bits(rows, n, f, c, at);
    return CK_OK;
}

/* ---- out of rows ---- */

typedef struct gather {
    const ck_table *t;
    ck_row *const *rows;
    uint32_t n;
    const uint16_t *at;
    const ck_shape_field *f;
    ck_column *out;
} gather;

static inline uint32_t place(const gather *g, uint32_t i) { return g->at ? g->at[i] : i; }

/* NULL where the row is missing or its field is NULL. */
static bool mark_nulls(const gather *g) {
    uint64_t *validity = NULL;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->rows[i] && !ck_row_null(g->rows[i], g->f->null_bit)) continue;
        if (!validity && !(validity = ck_column_writable_validity(g->out))) return false;
        ck_bit_clear(validity, place(g, i));
    }
    return true;
}

#define GET_FIXED(member, getter)                                                                                      \
    for (uint32_t i = 0; i < g->n; i++) g->out->member[place(g, i)] = g->rows[i] ? getter(g->rows[i], g->f->offset) : 0

/* Where long strings of the result go: those of one place in the table's pages are copied once if they come again soon.
 */
typedef struct copies {
    struct {
        int32_t page, offset;
        uint32_t buffer, at;
    } known[PLACES];
    size_t bytes[BUFFERS_MAX];
    uint32_t count; /* buffers */
    uint8_t *first; /* by entry: it is the one that copies */
} copies;

static bool put_view(const gather *g, uint32_t i, ck_strview v, copies *c) {
    if (v.length > CK_STRVIEW_INLINE) {
        uint32_t h = ((uint32_t)v.ref.offset * 0x9E3779B1u ^ (uint32_t)v.ref.buffer * 0x85EBCA6Bu) >> 24;
        if (c->known[h].page != v.ref.buffer + 1 || c->known[h].offset != v.ref.offset) {
            uint32_t b = c->count - 1;
            if (c->count == 0 ||
                (size_t)v.length > BUFFER_BYTES - (c->bytes[b] < BUFFER_BYTES ? c->bytes[b] : BUFFER_BYTES)) {
                if (c->count == BUFFERS_MAX) return false;
                b = c->count++;
                c->bytes[b] = 0;
            }
            c->known[h].page = v.ref.buffer + 1, c->known[h].offset = v.ref.offset;
            c->known[h].buffer = b, c->known[h].at = (uint32_t)c->bytes[b];
            c->bytes[b] += (size_t)v.length;
            c->first[i] = 1;
        }
        v.ref.buffer = (int32_t)c->known[h].buffer;
        v.ref.offset = (int32_t)c->known[h].at;
    }
    g->out->views[place(g, i)] = v;
    return true;
}

static ck_status copy_strings(const gather *g, const copies *c) {
    ck_buffer *buffers[BUFFERS_MAX] = {0};
    ck_heaps *heaps = NULL;
    bool made = true;
    for (uint32_t b = 0; b < c->count && made; b++)
        made = (buffers[b] = ck_buffer_new(g->out->mem, c->bytes[b])) != NULL;
    if (made) heaps = ck_heaps_new(g->out->mem, buffers, c->count);
    for (uint32_t i = 0; heaps && i < g->n; i++) {
        if (!c->first[i]) continue;
        const ck_strview *v = &g->out->views[place(g, i)];
        ck_view from = ck_var_get(g->t, g->rows[i], g->f->offset);
        memcpy(buffers[v->ref.buffer]->p + v->ref.offset, from.p, from.n);
    }
    if (heaps) ck_column_set_heaps(g->out, heaps);
    ck_status s = heaps ? CK_OK : CK_NOMEM;
    ck_heaps_unref(&heaps);
    for (uint32_t b = 0; b < c->count; b++) ck_buffer_unref(&buffers[b]);
    return s;
}

static ck_status gather_views(const gather *g) {
    copies c;
    uint8_t first[CK_BATCH_ROWS_MAX];
    memset(c.known, 0, sizeof c.known);
    memset(first, 0, g->n);
    c.count = 0, c.first = first;
    for (uint32_t i = 0; i < g->n; i++) {
        ck_strview v = {0};
        if (g->rows[i] && !ck_row_null(g->rows[i], g->f->null_bit)) v = ck_row_ref(g->rows[i], g->f->offset);
        if (!put_view(g, i, v, &c)) return CK_NOMEM;
    }
    return c.count ? copy_strings(g, &c) : CK_OK;
}

static ck_status gather_values(const gather *g) {
    switch (g->f->phys) {
    case CK_PHYS_I64: GET_FIXED(i64, ck_row_i64); break;
    case CK_PHYS_F64: GET_FIXED(f64, ck_row_f64); break;
    case CK_PHYS_I128: GET_FIXED(i128, ck_row_i128); break;
    case CK_PHYS_BOOL:
        for (uint32_t i = 0; i < g->n; i++)
            ck_bit_put(g->out->bits, place(g, i), g->rows[i] && ck_row_bool(g->rows[i], g->f->offset));
        break;
    default: return gather_views(g);
    }
    return CK_OK;
}

/* Nested values go through a builder, row by row. */
static ck_status gather_nested(const gather *g, const ck_type *type, uint32_t field, ck_mem mem, ck_column **out) {
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, mem, type, g->n);
    for (uint32_t i = 0; i < g->n && s == CK_OK; i++) {
        const ck_row *row = g->rows[i];
        s = row ? ck_table_gather_field(g->t, &row, 1, field, &b) : ck_build_null(&b);
    }
    if (s == CK_OK && !(*out = ck_column_builder_finish(&b))) s = CK_NOMEM;
    ck_column_builder_destroy(&b);
    return s;
}

static size_t data_bytes(ck_phys p, uint32_t length) {
    if (p == CK_PHYS_BOOL) return ck_bitmap_words(length) * 8;
    return (size_t)length * (p == CK_PHYS_I64 || p == CK_PHYS_F64 ? 8 : 16);
}

ck_status ck_table_gather_column(const ck_table *t, ck_row *const *rows, uint32_t n, const uint16_t *at,
                                 uint32_t length, uint32_t field, ck_mem mem, ck_column **out) {
    gather g = {.t = t, .rows = rows, .n = n, .at = at, .f = &t->shape->fields[field]};
    *out = NULL;
    CK_ASSERT(n <= CK_BATCH_ROWS_MAX);
    if (g.f->phys == CK_PHYS_NULL) {
        *out = ck_column_new_null(mem, CK_PHYS_NULL, length);
        return *out ? CK_OK : CK_NOMEM;
    }
    if (g.f->phys == CK_PHYS_LIST || g.f->phys == CK_PHYS_STRUCT) {
        CK_ASSERT(!at);
        return gather_nested(&g, g.f->type, field, mem, out);
    }
    g.out = ck_column_new(mem, g.f->phys, length);
    if (!g.out) return CK_NOMEM;
    if (n < length || g.f->phys == CK_PHYS_BOOL) memset(g.out->data, 0, data_bytes(g.f->phys, length));
    ck_status s = gather_values(&g);
    if (s == CK_OK && !mark_nulls(&g)) s = CK_NOMEM;
    if (s != CK_OK) ck_column_unref(&g.out);
    *out = g.out;
    return s;
}
