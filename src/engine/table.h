/* Rows as an aligned table on a terminal. The first rows are held back to find the columns' widths; afterwards rows are
 * printed as they come, a wider value pushing its line out. Appends text to a byte buffer; writing it is the caller's.
 */
#ifndef CK_ENGINE_TABLE_H
#define CK_ENGINE_TABLE_H

#include "base/bytes.h"
#include "data/batch.h"

enum { CK_TABLE_HELD_ROWS = 1000 };

/* Zero may be destroyed. One thread. */
typedef struct ck_table_view {
    ck_mem mem;
    const ck_schema *schema; /* borrowed */
    bool changes;            /* a first column "op" */
    uint32_t column_count;   /* with "op" */
    uint32_t *widths;        /* in characters; NULL until initialised */
    bool *right;             /* numbers stand right */
    bool started;            /* the header is printed, widths are fixed */
    uint64_t row_count;
    ck_bytes cells;     /* text of held cells, one after the other */
    ck_bytes cell_ends; /* uint32_t end offsets in cells, row by row */
} ck_table_view;

CK_NODISCARD ck_status ck_table_view_init(ck_table_view *v, ck_mem mem, const ck_schema *schema, bool changes);
void ck_table_view_destroy(ck_table_view *v);
/* kinds[k] (enum ck_change) of the k-th live row; NULL: inserts. */
CK_NODISCARD ck_status ck_table_view_add(ck_table_view *v, const ck_batch *b, const uint8_t *kinds, ck_bytes *out);
/* Print what is held now: a stream that pauses should not hide its rows. */
CK_NODISCARD ck_status ck_table_view_flush(ck_table_view *v, ck_bytes *out);
/* What is held, then "(N rows)". */
CK_NODISCARD ck_status ck_table_view_end(ck_table_view *v, ck_bytes *out);

#endif
