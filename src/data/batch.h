/* A batch: columns of equal length, refcounted, with an optional selection and optional weights. This is what flows
 * between operators. Filtering makes a new header over the same columns with another selection; nothing is copied. */
#ifndef CK_DATA_BATCH_H
#define CK_DATA_BATCH_H

#include "data/column.h"

/* Where the rows of a batch came from, for error messages. Shared by what is derived inside one chain, dropped at an
 * exchange. */
typedef struct ck_origin {
    _Atomic uint32_t refs;
    ck_mem mem;
    char *object;         /* file or split name */
    uint64_t base_offset; /* byte offset the row offsets count from */
    bool of_records;      /* they count records of a log's partition instead */
    uint32_t row_count;
    uint32_t row_offset[]; /* start of each row's record */
} ck_origin;
ck_origin *ck_origin_new(ck_mem mem, const char *object, uint64_t base_offset, uint32_t row_count); /* offsets unset */
ck_origin *ck_origin_ref(ck_origin *o); /* NULL gives NULL */
void ck_origin_unref(ck_origin **o);

typedef struct ck_batch {
    _Atomic uint32_t refs;
    uint32_t row_count; /* physical rows, at most CK_BATCH_ROWS_MAX */
    uint32_t column_count;
    uint32_t sel_count; /* live rows: row_count without a selection */
    uint16_t *sel;      /* ascending physical row numbers; NULL = all rows */
    int8_t *weights;    /* by physical row: +1 or -1; NULL = all +1 (always NULL on append edges) */
    ck_origin *origin;  /* NULL = unknown */
    ck_mem mem;
    size_t bytes;         /* of this allocation */
    ck_column *columns[]; /* owned references; NULL where a column was pruned */
} ck_batch;

/* sel and weights live in the batch's own allocation. with_sel/with_weights reserve room for row_count entries;
 * sel_count starts at row_count and the maker sets it. Columns start NULL. NULL without memory. */
ck_batch *ck_batch_new(ck_mem mem, uint32_t column_count, uint32_t row_count, bool with_sel, bool with_weights);
/* Takes over the reference in *c. */
void ck_batch_set_column(ck_batch *b, uint32_t index, ck_column **c);
ck_batch *ck_batch_ref(ck_batch *b);
void ck_batch_unref(ck_batch **b);

/* A new header over the same columns, weights and origin with this selection (copied). */
ck_batch *ck_batch_select(const ck_batch *b, const uint16_t *sel, uint32_t sel_count);
/* A new header with columns[i] = b's column map[i]; selection, weights and origin kept. */
ck_batch *ck_batch_project(const ck_batch *b, const uint32_t *map, uint32_t count);

/* Names the record a physical row came from, in err->place; left alone where that is not known. Such an error is fatal:
 * the row comes again. */
void ck_batch_place(const ck_batch *b, uint32_t row, ck_error *err);

static inline uint32_t ck_batch_row(const ck_batch *b, uint32_t k) {
    return b->sel ? b->sel[k] : k;
} /* k-th live row */
static inline int ck_batch_weight(const ck_batch *b, uint32_t row) { return b->weights ? b->weights[row] : 1; }

/* Bytes the batch keeps alive, shared heaps counted once; live: what its live rows need of them. */
size_t ck_batch_pinned_bytes(const ck_batch *b);
size_t ck_batch_live_bytes(const ck_batch *b);
/* A dense copy of the live rows with heaps of their own. NULL without memory. */
ck_batch *ck_batch_compact(const ck_batch *b, ck_mem mem);
/* Whether live bytes are under a quarter of what it pins (and that is over 64 KiB), or rows under an eighth. */
bool ck_batch_is_sparse(const ck_batch *b);
/* Compacts *b in place of itself when it is sparse. CK_NOMEM leaves it as it was. */
CK_NODISCARD ck_status ck_batch_compact_if_sparse(ck_batch **b, ck_mem mem);

#endif
