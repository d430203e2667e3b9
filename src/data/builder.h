/* Builders: columns and batches made row by row or by gathering rows of others. For decoders, exchanges, state scans.
 */
#ifndef CK_DATA_BUILDER_H
#define CK_DATA_BUILDER_H

#include "base/proc.h"
#include "data/batch.h"

/* Appends to one column up to `capacity` rows. Long strings are copied into heap buffers of the builder, unless
 * appended as views into buffers it was given. Reused: finish leaves it empty and ready. Owner destroys; one thread.
 * Members are for the inline appends below and for reading; memory grows with the rows, not with the capacity. */
typedef struct ck_column_builder {
    ck_mem mem;
    const ck_type *type;
    ck_phys phys;
    uint32_t length, capacity;
    uint32_t room;      /* rows that fit in col as it is; 0 = col is NULL */
    uint32_t room_hint; /* rows the last column had */
    ck_column *col;     /* being written; NULL until the first append */
    size_t long_bytes;  /* of all strings over 12 bytes so far, copied or shared */

    ck_buffer **buffers; /* heaps so far, owned references */
    uint32_t buffer_count, buffer_capacity;
    int32_t own_index;    /* the newest buffer of our own, -1 = none */
    uint32_t own_used;    /* bytes used of it */
    size_t own_bytes;     /* in all own buffers */
    size_t own_hint;      /* own_bytes of the last column */
    int32_t given_index;  /* the buffer given last, -1 = none */
    ck_heaps *last_heaps; /* the heaps gathered from last, an owned reference, and where they begin in buffers */
    uint32_t last_heaps_base;

    const struct ck_take *take;         /* the loops of gathering, for any processor */
    bool grows;                         /* elements of a list: no capacity of their own */
    bool copies;                        /* gathering copies long strings (compaction) */
    struct ck_column_builder *children; /* LIST: one; STRUCT: one a field */
    uint32_t child_count;
} ck_column_builder;

CK_NODISCARD ck_status ck_column_builder_init(ck_column_builder *b, ck_mem mem, const ck_type *type, uint32_t capacity);
void ck_column_builder_destroy(ck_column_builder *b);
/* Gathers with what this processor can from now on; without, as any of the build's kind. */
void ck_column_builder_take_with(ck_column_builder *b, ck_cpu cpu);

/* Appends fail with CK_NOMEM only; appending past capacity is a bug (asserted). */
CK_NODISCARD ck_status ck_build_null(ck_column_builder *b);
CK_NODISCARD static inline ck_status ck_build_bool(ck_column_builder *b, bool v);
CK_NODISCARD static inline ck_status ck_build_i64(ck_column_builder *b, int64_t v);
CK_NODISCARD static inline ck_status ck_build_f64(ck_column_builder *b, double v);
CK_NODISCARD static inline ck_status ck_build_i128(ck_column_builder *b, ck_i128 v);
CK_NODISCARD static inline ck_status ck_build_str(ck_column_builder *b, const char *p, size_t n); /* copies; n < 2^31 */
/* A string that already stands in `buffer` (a read buffer): no copy, the builder takes a reference once per buffer in a
 * row. */
CK_NODISCARD static inline ck_status ck_build_str_in(ck_column_builder *b, ck_buffer *buffer, const char *p, size_t n);
/* LIST: append the elements to children[0], then this; STRUCT: append one value to every child, then this. MAP is a
 * LIST whose children[0] is a STRUCT of key and value. */
CK_NODISCARD ck_status ck_build_end(ck_column_builder *b);
/* One value of another column of the same type, marks dropped. Strings are shared (heaps referenced), not copied. */
CK_NODISCARD ck_status ck_build_from(ck_column_builder *b, const ck_column *c, uint32_t row);
/* rows[0..n) of c in one go: what exchanges use. */
CK_NODISCARD ck_status ck_build_gather(ck_column_builder *b, const ck_column *c, const uint16_t *rows, uint32_t n);
/* Forget the rows from `length` on: a record that turned out bad, a failed append. Nothing above it may be finished. */
void ck_column_builder_truncate(ck_column_builder *b, uint32_t length);
/* The column, or NULL without memory (the builder keeps what it has). Zero rows give a valid empty column. */
ck_column *ck_column_builder_finish(ck_column_builder *b);

/* All columns of a schema plus weights. */
typedef struct ck_batch_builder {
    ck_mem mem;
    const ck_schema *schema;
    ck_column_builder *columns;
    uint32_t row_count, capacity;
    int8_t *weights;
    bool has_weights; /* some appended row weighed -1 or the maker asked for them; finish clears it */
} ck_batch_builder;

CK_NODISCARD ck_status ck_batch_builder_init(ck_batch_builder *b, ck_mem mem, const ck_schema *schema,
                                             uint32_t capacity);
void ck_batch_builder_destroy(ck_batch_builder *b);
void ck_batch_builder_take_with(ck_batch_builder *b, ck_cpu cpu);
/* After one value was appended to every column (pruned columns: to none, in the whole batch): counts the row. */
void ck_batch_builder_row(ck_batch_builder *b, int weight);
/* Forget what was appended to columns since the last counted row: a record that turned out bad. */
void ck_batch_builder_undo(ck_batch_builder *b);
/* rows[0..n) of a batch with the same schema; weights come along. A column the batch lacks (pruned) must be lacking in
 * all batches gathered. CK_NOMEM leaves the builder as it was. */
CK_NODISCARD ck_status ck_batch_builder_gather(ck_batch_builder *b, const ck_batch *from, const uint16_t *rows,
                                               uint32_t n);
/* The batch, or NULL without memory (the builder keeps what it has). Columns nothing was appended to in a batch with
 * rows are NULL (pruned). */
ck_batch *ck_batch_builder_finish(ck_batch_builder *b);
/* Bytes of the rows it holds now: widths, and every long string, copied or shared. What a gather ceiling counts. */
size_t ck_batch_builder_bytes(const ck_batch_builder *b);

/* ---- the appends, inline for decoders ---- */

/* Makes room for n more rows (n >= 1). */
CK_NODISCARD ck_status ck_column_builder_room(ck_column_builder *b, uint32_t n);
/* The view of a long string: copied into an own buffer, or standing in `buffer`. */
CK_NODISCARD ck_status ck_column_builder_copy_str(ck_column_builder *b, const char *p, size_t n, ck_strview *out);
CK_NODISCARD ck_status ck_column_builder_give(ck_column_builder *b, ck_buffer *buffer);

#define CK_BUILD_ROOM(b)                                                                                               \
    do {                                                                                                               \
        if (CK_UNLIKELY((b)->length >= (b)->room)) CK_TRY(ck_column_builder_room((b), 1));                             \
    } while (0)

static inline ck_status ck_build_bool(ck_column_builder *b, bool v) {
    CK_DASSERT(b->phys == CK_PHYS_BOOL);
    CK_BUILD_ROOM(b);
    ck_bit_put(b->col->bits, b->length++, v);
    return CK_OK;
}
static inline ck_status ck_build_i64(ck_column_builder *b, int64_t v) {
    CK_DASSERT(b->phys == CK_PHYS_I64);
    CK_BUILD_ROOM(b);
    b->col->i64[b->length++] = v;
    return CK_OK;
}
static inline ck_status ck_build_f64(ck_column_builder *b, double v) {
    CK_DASSERT(b->phys == CK_PHYS_F64);
    CK_BUILD_ROOM(b);
    b->col->f64[b->length++] = v;
    return CK_OK;
}
static inline ck_status ck_build_i128(ck_column_builder *b, ck_i128 v) {
    CK_DASSERT(b->phys == CK_PHYS_I128);
    CK_BUILD_ROOM(b);
    b->col->i128[b->length++] = v;
    return CK_OK;
}
static inline ck_status ck_build_str(ck_column_builder *b, const char *p, size_t n) {
    CK_DASSERT(b->phys == CK_PHYS_VIEW);
    CK_BUILD_ROOM(b);
    ck_strview v;
    if (n <= CK_STRVIEW_INLINE)
        v = ck_strview_inline(p, n);
    else
        CK_TRY(ck_column_builder_copy_str(b, p, n, &v));
    b->col->views[b->length++] = v;
    return CK_OK;
}
static inline ck_status ck_build_str_in(ck_column_builder *b, ck_buffer *buffer, const char *p, size_t n) {
    CK_DASSERT(b->phys == CK_PHYS_VIEW);
    CK_DASSERT((const uint8_t *)p >= buffer->p && (size_t)((const uint8_t *)p - buffer->p) <= buffer->bytes &&
               n <= buffer->bytes - (size_t)((const uint8_t *)p - buffer->p));
    CK_BUILD_ROOM(b);
    ck_strview v;
    if (n <= CK_STRVIEW_INLINE) {
        v = ck_strview_padded(p, n);
    } else {
        if (CK_UNLIKELY(b->given_index < 0 || b->buffers[b->given_index] != buffer))
            CK_TRY(ck_column_builder_give(b, buffer));
        v = ck_strview_ref(p, n, (uint32_t)b->given_index, (uint32_t)((const uint8_t *)p - buffer->p));
        b->long_bytes += n;
    }
    b->col->views[b->length++] = v;
    return CK_OK;
}

#endif
