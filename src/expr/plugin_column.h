/* Columns as plugins see them (clink/plugin.h): to read without copying, and to write. The engine's side of it. */
#ifndef CK_EXPR_PLUGIN_COLUMN_H
#define CK_EXPR_PLUGIN_COLUMN_H

#include "clink/plugin.h"
#include "data/batch.h"

clink_layout ck_plugin_layout(ck_phys phys);

/* A column to read, and the addresses of its heaps. Zero is empty; reused from batch to batch. */
typedef struct ck_plugin_reader {
    clink_column view;
    const uint8_t **heaps;
    uint32_t heap_capacity;
} ck_plugin_reader;
/* Borrows c for as long as the view is used. c NULL (pruned): all rows are NULL. CK_NOMEM. */
CK_NODISCARD ck_status ck_plugin_read(ck_plugin_reader *r, ck_mem mem, const ck_column *c, bool constant,
                                      const char *name);
void ck_plugin_reader_destroy(ck_plugin_reader *r, ck_mem mem);

/* A column being written. */
typedef struct ck_plugin_writer {
    clink_writer face;
    ck_mem mem;
    ck_column *col;
    ck_buffer **buffers;
    uint32_t buffer_count, buffer_capacity;
    uint64_t *validity; /* of the plugin's, when the column has none */
} ck_plugin_writer;
/* Takes over col, which is writable and as new. nullable false: what becomes NULL is for ck_plugin_written_null to say,
 * and `all_set` is where it is noted: a bitmap as long as the column. CK_NOMEM: col is gone. */
CK_NODISCARD ck_status ck_plugin_write(ck_plugin_writer *w, ck_mem mem, ck_column *col, uint64_t *all_set);
/* Written by somebody who must not: some row of a column without NULLs is NULL. */
bool ck_plugin_written_null(const ck_plugin_writer *w);
/* The column, or NULL without memory. The writer is empty either way. */
ck_column *ck_plugin_written(ck_plugin_writer *w);
void ck_plugin_writer_destroy(ck_plugin_writer *w);

/* Room for n more bytes of long texts: clink_engine_table.grow. */
clink_status ck_plugin_grow(clink_writer *w, size_t n);

/* Values that the layout has room for and the type does not: an integer or DECIMAL out of range, a time out of the
 * years 1 to 9999, text that is not UTF-8 or not where its writer gave room. *row is the first such row of sel[0..n) (sel NULL: 0..n). */
bool ck_plugin_fits(const ck_type *type, const ck_column *c, const uint16_t *sel, uint32_t n, uint32_t *row);
/* What is wrong with that row's value. */
const char *ck_plugin_misfit(const ck_type *type, const ck_column *c, uint32_t row);
/* A REAL holds what fits into a float, a time the digits of a second that its type has; where there is no value stands
 * 0 instead of what a plugin or nobody has written there. */
void ck_plugin_round(const ck_type *type, ck_column *c);

/* The engine's status for a plugin's. */
ck_status ck_plugin_status(clink_status s);

#endif
