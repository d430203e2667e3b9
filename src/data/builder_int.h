/* Inside of builders, for this room only: building without a type, and finishing in two steps, so that a batch of many
 * columns is finished whole or not at all. */
#ifndef CK_DATA_BUILDER_INT_H
#define CK_DATA_BUILDER_INT_H

#include "data/builder.h"
#include "data/column_int.h"

/* As ck_column_builder_init with the shape of a column in place of a type; gathering copies long strings. */
CK_NODISCARD ck_status ck_column_builder_init_copy(ck_column_builder *b, ck_mem mem, const ck_column *like,
                                                   uint32_t capacity);

/* Rows start, start + 1, ... of c, any number: elements of lists. */
CK_NODISCARD ck_status ck_build_range(ck_column_builder *b, const ck_column *c, uint32_t start, uint32_t n);
/* After a failure truncate to the old length: children may be ahead. */
CK_NODISCARD ck_status ck_build_nulls(ck_column_builder *b, uint32_t n);

/* Everything that can fail in finishing; then take, which cannot, or cancel. */
CK_NODISCARD ck_status ck_column_builder_prepare(ck_column_builder *b);
void ck_column_builder_cancel(ck_column_builder *b);
ck_column *ck_column_builder_take(ck_column_builder *b);

/* Room for `more` further buffers in b->buffers. */
CK_NODISCARD ck_status ck_column_builder_buffer_room(ck_column_builder *b, uint32_t more);
/* The newest own buffer has `bytes` free. exact: a first one is made just as large. */
CK_NODISCARD ck_status ck_column_builder_own_room(ck_column_builder *b, size_t bytes, bool exact);

#endif
