/* Builders: columns and batches made row by row or by gathering rows of others. For decoders, exchanges, state scans.
 */
#ifndef CK_DATA_BUILDER_H
#define CK_DATA_BUILDER_H

#include "data/batch.h"

/* Appends to one column up to `capacity` rows. Long strings are copied into heap buffers of the builder, unless
 * appended as views into buffers it was given. Reused: finish leaves it empty and ready. Owner destroys; one thread. */
typedef struct ck_column_builder {
    ck_mem mem;
    const ck_type *type;
    ck_phys phys;
    uint32_t length, capacity;
    ck_column *col;      /* being written; NULL until the first append */
    ck_buffer **buffers; /* heaps so far, owned references */
    uint32_t buffer_count, buffer_capacity;
    uint32_t own_used;                  /* bytes used of the newest own buffer */
    int32_t own_index;                  /* its index, -1 = none */
    struct ck_column_builder *children; /* LIST: one; STRUCT: one a field */
    uint32_t child_count;
    const ck_heaps *last_heaps; /* the heaps gathered from last, and where they begin in buffers */
    uint32_t last_heaps_base;
} ck_column_builder;

CK_NODISCARD ck_status ck_column_builder_init(ck_column_builder *b, ck_mem mem, const ck_type *type, uint32_t capacity);
void ck_column_builder_destroy(ck_column_builder *b);

/* Appends fail with CK_NOMEM only; appending past capacity is a bug (asserted). */
CK_NODISCARD ck_status ck_build_null(ck_column_builder *b);
CK_NODISCARD ck_status ck_build_bool(ck_column_builder *b, bool v);
CK_NODISCARD ck_status ck_build_i64(ck_column_builder *b, int64_t v);
CK_NODISCARD ck_status ck_build_f64(ck_column_builder *b, double v);
CK_NODISCARD ck_status ck_build_i128(ck_column_builder *b, ck_i128 v);
CK_NODISCARD ck_status ck_build_str(ck_column_builder *b, const char *p, size_t n); /* copies; n < 2^31 */
/* A string that already stands in `buffer` (a read buffer): no copy, the builder takes a reference once per buffer in a
 * row. */
CK_NODISCARD ck_status ck_build_str_in(ck_column_builder *b, ck_buffer *buffer, const char *p, size_t n);
/* LIST: append the elements to children[0], then this; STRUCT: append one value to every child, then this. */
CK_NODISCARD ck_status ck_build_end(ck_column_builder *b);
/* One value of another column of the same type, marks dropped. Strings are shared (heaps referenced), not copied. */
CK_NODISCARD ck_status ck_build_from(ck_column_builder *b, const ck_column *c, uint32_t row);
/* rows[0..n) of c in one go: what exchanges use. */
CK_NODISCARD ck_status ck_build_gather(ck_column_builder *b, const ck_column *c, const uint16_t *rows, uint32_t n);
/* The column, or NULL without memory (the builder keeps what it has). Zero rows give a valid empty column. */
ck_column *ck_column_builder_finish(ck_column_builder *b);

/* All columns of a schema plus weights. */
typedef struct ck_batch_builder {
    ck_mem mem;
    const ck_schema *schema;
    ck_column_builder *columns;
    uint32_t row_count, capacity;
    int8_t *weights;
    bool has_weights; /* some appended row weighed -1 or the maker asked for them */
} ck_batch_builder;

CK_NODISCARD ck_status ck_batch_builder_init(ck_batch_builder *b, ck_mem mem, const ck_schema *schema,
                                             uint32_t capacity);
void ck_batch_builder_destroy(ck_batch_builder *b);
/* After one value was appended to every column: counts the row. */
void ck_batch_builder_row(ck_batch_builder *b, int weight);
/* rows[0..n) of a batch with the same schema; weights come along. */
CK_NODISCARD ck_status ck_batch_builder_gather(ck_batch_builder *b, const ck_batch *from, const uint16_t *rows,
                                               uint32_t n);
ck_batch *ck_batch_builder_finish(ck_batch_builder *b);   /* NULL without memory */
size_t ck_batch_builder_bytes(const ck_batch_builder *b); /* what it holds now */

#endif
