/* A column: up to 4,096 values of one physical kind in the Arrow layout, one allocation, refcounted. It is written only
 * by its maker while that is the only holder; shared, it never changes. Strings are Arrow string views: 16 bytes, up to
 * 12 inline, longer ones a (buffer, offset) into the column's heaps. */
#ifndef CK_DATA_COLUMN_H
#define CK_DATA_COLUMN_H

#include <stdatomic.h>

#include "base/limits.h"
#include "data/type.h"

__extension__ typedef __int128 ck_i128;
__extension__ typedef unsigned __int128 ck_u128;

/* ---- heaps: where the bytes of long strings are ---- */

/* Refcounted bytes. Written only by its maker while it is the only holder. */
typedef struct ck_buffer {
    _Atomic uint32_t refs;
    ck_mem mem;
    size_t bytes; /* usable; at least CK_BUFFER_PADDING readable bytes follow, so that SIMD loads may run over */
    uint8_t *p;
    void (*release)(struct ck_buffer *b); /* foreign bytes; NULL: ours, one allocation with this header */
    void *foreign;
} ck_buffer;
enum { CK_BUFFER_PADDING = 64 };

ck_buffer *ck_buffer_new(ck_mem mem, size_t bytes); /* uninitialised, padding zeroed; NULL without memory */
ck_buffer *ck_buffer_ref(ck_buffer *b);             /* +1, returns b */
void ck_buffer_unref(ck_buffer **b);                /* -1, sets NULL; NULL is fine */

/* An immutable list of buffers, shared by the columns of a batch. */
typedef struct ck_heaps {
    _Atomic uint32_t refs;
    uint32_t count;
    ck_mem mem;
    ck_buffer *buffers[];
} ck_heaps;

ck_heaps *ck_heaps_new(ck_mem mem, ck_buffer *const *buffers, uint32_t count); /* takes a reference on each */
ck_heaps *ck_heaps_ref(ck_heaps *h);
void ck_heaps_unref(ck_heaps **h);

/* Arrow's BinaryView, little-endian. */
typedef struct ck_strview {
    int32_t length;
    union {
        char inlined[12]; /* length <= 12; bytes behind the string are zero, so that equal views compare as 16 bytes */
        struct {
            char prefix[4];
            int32_t buffer; /* index in the heaps */
            int32_t offset;
        } ref;
    };
} ck_strview;
enum { CK_STRVIEW_INLINE = 12 };

/* ---- columns ---- */

typedef struct ck_column {
    _Atomic uint32_t refs;
    ck_phys phys;
    uint32_t length;
    uint32_t child_count;
    uint64_t *validity; /* bit 1 = value; NULL = no NULLs. ceil(length / 64) words, bits past the end are unspecified */
    union {
        void *data;
        uint64_t *bits;
        int64_t *i64;
        double *f64;
        ck_i128 *i128;
        ck_strview *views;
        int32_t *offsets;
    };
    uint8_t
        *err; /* error mark a row (enum ck_mark in expr/mark.h; 0 = none); NULL = no marks. Never crosses an edge. */
    ck_heaps *heaps;             /* views only; NULL when all are inline */
    struct ck_column **children; /* owned references */
    ck_mem mem;
    size_t bytes;                         /* of this allocation */
    void (*release)(struct ck_column *c); /* foreign memory (imported arrays); NULL: ours */
    void *foreign;
} ck_column;

static inline size_t ck_bitmap_words(size_t rows) { return (rows + 63) / 64; }
static inline bool ck_bit_get(const uint64_t *w, size_t i) { return (w[i >> 6] >> (i & 63)) & 1; }
static inline void ck_bit_set(uint64_t *w, size_t i) { w[i >> 6] |= 1ULL << (i & 63); }
static inline void ck_bit_clear(uint64_t *w, size_t i) { w[i >> 6] &= ~(1ULL << (i & 63)); }
static inline void ck_bit_put(uint64_t *w, size_t i, bool v) {
    w[i >> 6] = (w[i >> 6] & ~(1ULL << (i & 63))) | (uint64_t)v << (i & 63);
}

/* A writable column with uninitialised data for `length` rows, no NULLs, no marks, no heaps. LIST gets length + 1
 * offsets; children of LIST and STRUCT are set by the caller through ck_column_set_children. NULL without memory. */
ck_column *ck_column_new(ck_mem mem, ck_phys phys, uint32_t length);
/* Makes a column that nobody else holds as good as new for `length` rows: no NULLs, no marks, no heaps, no children,
 * data unspecified. false, and nothing changed: it is shared, foreign, or was made for fewer rows. */
bool ck_column_reset(ck_column *c, uint32_t length);
/* All-NULL column of any physical kind. */
ck_column *ck_column_new_null(ck_mem mem, ck_phys phys, uint32_t length);
/* The writable validity bitmap, made with all rows valid when there is none. NULL without memory. */
uint64_t *ck_column_writable_validity(ck_column *c);
/* The writable marks, made zero when there are none. NULL without memory. */
uint8_t *ck_column_writable_err(ck_column *c);
CK_NODISCARD ck_status ck_column_set_children(ck_column *c, ck_column *const *children,
                                              uint32_t count); /* takes the references */
void ck_column_set_heaps(ck_column *c, ck_heaps *h);           /* adds a reference; replaces */

ck_column *ck_column_ref(ck_column *c);
void ck_column_unref(ck_column **c);

static inline bool ck_column_is_null(const ck_column *c, size_t row) {
    return c->phys == CK_PHYS_NULL || (c->validity && !ck_bit_get(c->validity, row));
}
/* Bytes of a string; borrowed from the column. Row must not be NULL. */
static inline ck_view ck_column_str(const ck_column *c, size_t row) {
    const ck_strview *v = &c->views[row];
    if (v->length <= CK_STRVIEW_INLINE) return (ck_view){v->inlined, (size_t)v->length};
    return (ck_view){(const char *)c->heaps->buffers[v->ref.buffer]->p + v->ref.offset, (size_t)v->length};
}
/* An inline view of up to 12 bytes, zero-padded: two loads that overlap, whatever the length. */
static inline ck_strview ck_strview_inline(const char *p, size_t n) {
    uint64_t low = 0;
    uint32_t first = 0, last = 0;
    ck_strview v;
    v.length = (int32_t)n;
    if (n >= 4) memcpy(&last, p + n - 4, 4);
    if (n >= 8) {
        memcpy(&low, p, 8);
        last = (uint32_t)((uint64_t)last >> (8 * (12 - n)));
    } else if (n >= 4) {
        memcpy(&first, p, 4);
        low = first | (uint64_t)last << (8 * (n - 4));
        last = 0;
    } else if (n) {
        low = (uint8_t)p[0] | (uint64_t)(uint8_t)p[n >> 1] << (8 * (n >> 1)) |
              (uint64_t)(uint8_t)p[n - 1] << (8 * (n - 1));
    }
    memcpy(v.inlined, &low, 8);
    memcpy(v.inlined + 8, &last, 4);
    return v;
}
/* The same where 12 bytes at p may be read whatever n is (a buffer with its padding): no branch. */
static inline ck_strview ck_strview_padded(const char *p, size_t n) {
    uint64_t low;
    uint32_t high;
    ck_strview v;
    memcpy(&low, p, 8);
    memcpy(&high, p + 8, 4);
    low &= n < 8 ? (1ULL << (8 * n)) - 1 : ~0ULL;
    high &= n > 8 ? (uint32_t)((1ULL << (8 * (n - 8))) - 1) : 0;
    v.length = (int32_t)n;
    memcpy(v.inlined, &low, 8);
    memcpy(v.inlined + 8, &high, 4);
    return v;
}
static inline ck_strview ck_strview_ref(const char *p, size_t n, uint32_t buffer, uint32_t offset) {
    ck_strview v;
    v.length = (int32_t)n;
    memcpy(v.ref.prefix, p, 4);
    v.ref.buffer = (int32_t)buffer;
    v.ref.offset = (int32_t)offset;
    return v;
}

/* Bytes a column keeps alive (own allocation, children, whole heaps), and the live part of its heaps over a selection.
 */
size_t ck_column_pinned_bytes(const ck_column *c);

/* Whether rows a of x and b of y hold the same value (NULL equals NULL; one NaN; -0.0 equals 0.0). Same type. */
bool ck_column_rows_equal(const ck_column *x, size_t a, const ck_column *y, size_t b);

#endif
