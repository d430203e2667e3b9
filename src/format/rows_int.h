/* The batch a decoder is filling. Fixed-width columns and string views are written straight into columns of full
 * capacity (a decoder writes t->i64[row] and nothing else for a number); nested columns go through builders. A row
 * exists once row_count passes it, so a record that turns out bad leaves no trace: its slots are simply written again.
 */
#ifndef CK_FORMAT_ROWS_INT_H
#define CK_FORMAT_ROWS_INT_H

#include "data/builder.h"

enum {
    CK_ROWS_PINNED_BYTES = 4 << 20, /* a batch ends when the buffers its strings stand in pass this */
    CK_ROWS_HEAP_BYTES_MIN = 4 << 10,
    CK_ROWS_HEAP_BYTES_MAX = 256 << 10,
};

/* One column that is wanted or checked. */
typedef struct ck_target {
    const ck_field *field;
    uint32_t index; /* in the schema */
    ck_kind kind;
    ck_phys phys;
    bool emitted;   /* handed out; otherwise only checked, and its column is used again for the next batch */
    bool nested;    /* ARRAY, MAP, ROW: values are appended to builder */
    bool long_seen; /* some view points into the heaps */
    int64_t lo, hi; /* integer kinds */
    uint64_t stamp; /* record in which it was last seen (json) */
    ck_column *col; /* being written; NULL between batches */
    union {
        void *data;
        int64_t *i64;
        double *f64;
        ck_i128 *i128;
        ck_strview *views;
        uint64_t *bits;
    };
    uint64_t *validity; /* NULL until the first NULL of the batch */
    ck_column_builder builder;
} ck_target;

typedef struct ck_rows {
    ck_mem mem;
    const ck_schema *schema;
    ck_target *targets; /* in schema order */
    uint32_t target_count;
    uint32_t row_count, capacity;
    bool open; /* every target has its column */

    ck_buffer **heaps; /* read buffers and own ones, owned references */
    uint32_t heap_count, heap_capacity;
    size_t heap_bytes;     /* pinned by them */
    const ck_buffer *read; /* newest read buffer among them; NULL = none in this batch */
    uint32_t read_index;
    ck_buffer *own; /* newest own buffer, borrowed from heaps; NULL = none in this batch */
    uint32_t own_index;
    size_t own_used;
    size_t own_bytes, own_hint; /* used in own buffers by this batch, and by the last */

    bool origins;
    char *object; /* of the origin */
    size_t object_bytes;
    uint64_t origin_base;
    uint32_t *origin_offsets; /* capacity of them */
} ck_rows;

/* wanted, checked: per column of the schema, either may be NULL as in ck_decoder_spec. A failed init leaves nothing. */
CK_NODISCARD ck_status ck_rows_init(ck_rows *r, ck_mem mem, const ck_schema *schema, const bool *wanted,
                                    const bool *checked, bool strict, uint32_t capacity, bool origins, ck_error *err);
void ck_rows_destroy(ck_rows *r);
CK_NODISCARD ck_status ck_rows_set_object(ck_rows *r, const char *object);

/* Columns to write into. Does nothing when they are there. */
CK_NODISCARD ck_status ck_rows_open(ck_rows *r, ck_error *err);
/* The batch of row_count rows; NULL without memory, and nothing is lost. */
ck_batch *ck_rows_take(ck_rows *r);

/* Index of a read buffer among the heaps of this batch, entered the first time. */
CK_NODISCARD ck_status ck_rows_heap(ck_rows *r, ck_buffer *buf, uint32_t *index);
/* Room for n bytes in an own heap; what of them is kept is said by ck_rows_commit, which returns the view. */
CK_NODISCARD ck_status ck_rows_reserve(ck_rows *r, size_t n, char **out);
ck_strview ck_rows_commit(ck_rows *r, ck_target *t, size_t n);

/* NULL at `row`: the slot is zeroed. */
CK_NODISCARD ck_status ck_rows_null(ck_target *t, uint32_t row);
/* A copy of the bytes as a view, own heap. */
CK_NODISCARD ck_status ck_rows_copy(ck_rows *r, ck_target *t, const char *p, size_t n, ck_strview *out);
/* Rows [row, end) were given up: what they marked NULL is undone, and what nested columns got is cut off. */
void ck_rows_undo(ck_rows *r, uint32_t row, uint32_t end);
/* Where the record of the next row began. false: too far from the first row, the batch must end before it. */
static inline bool ck_rows_origin(ck_rows *r, uint32_t row, uint64_t offset) {
    if (row == 0) r->origin_base = offset;
    uint64_t d = offset - r->origin_base;
    if (d > UINT32_MAX) return false;
    r->origin_offsets[row] = (uint32_t)d;
    return true;
}
/* A non-NULL value is about to be written at row. */
static inline void ck_rows_valid(ck_target *t, uint32_t row) {
    if (CK_UNLIKELY(t->validity != NULL)) ck_bit_set(t->validity, row);
}

#endif
