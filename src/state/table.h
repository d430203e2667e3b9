/* A state table: the rows of one slot in one subtask. Packed rows in pages, found through a hash index on the partition
 * columns; with order columns, the rows of a key are kept sorted. All batch calls work on many keys at once so that
 * they can prefetch.
 *
 * Rows are bytes with a layout fixed per table: null bits, then the fields (partition, order, value) at fixed offsets.
 * Fixed-width fields are read and written in place through the inline accessors; strings through ck_table_str /
 * ck_table_set_str.
 *
 * Pointers to rows are valid until the next call on the same table that is not an accessor; those of one batch call are
 * valid together. Whoever writes to a row must have got it from a call that says writable: that call made the page
 * private (copy on write under a live mark) and marked the row dirty for the next delta.
 *
 * Thread: the owning subtask, except where a mark is being read (state/mark.h). Memory is CK_MEM_STATE. */
#ifndef CK_STATE_TABLE_H
#define CK_STATE_TABLE_H

#include "data/batch.h"
#include "data/key.h"
#include "stream/slot.h"

typedef struct ck_table ck_table;
typedef uint8_t ck_row; /* first byte of a row */

/* Where a field stands. Numbering: partition fields, then order fields, then value fields. */
typedef struct ck_row_field {
    uint32_t offset;   /* bytes from the row's start */
    uint32_t null_bit; /* bit in the row's null bits (1 = NULL); UINT32_MAX: never NULL */
    ck_phys phys;      /* BOOL is one byte here */
} ck_row_field;

typedef struct ck_row_layout {
    uint32_t row_bytes;
    uint32_t null_bytes; /* at offset 0 */
    uint32_t field_count;
    uint32_t value_first; /* number of the first value field */
    const ck_row_field *fields;
} ck_row_layout;

const ck_row_layout *ck_table_layout(const ck_table *t);
const ck_slot_schema *ck_table_schema(const ck_table *t);

/* ---- accessors ---- */
static inline int64_t ck_row_i64(const ck_row *r, uint32_t offset) {
    int64_t v;
    memcpy(&v, r + offset, 8);
    return v;
}
static inline double ck_row_f64(const ck_row *r, uint32_t offset) {
    double v;
    memcpy(&v, r + offset, 8);
    return v;
}
static inline ck_i128 ck_row_i128(const ck_row *r, uint32_t offset) {
    ck_i128 v;
    memcpy(&v, r + offset, 16);
    return v;
}
static inline bool ck_row_bool(const ck_row *r, uint32_t offset) { return r[offset] != 0; }
static inline void ck_row_set_i64(ck_row *r, uint32_t offset, int64_t v) { memcpy(r + offset, &v, 8); }
static inline void ck_row_set_f64(ck_row *r, uint32_t offset, double v) { memcpy(r + offset, &v, 8); }
static inline void ck_row_set_i128(ck_row *r, uint32_t offset, ck_i128 v) { memcpy(r + offset, &v, 16); }
static inline void ck_row_set_bool(ck_row *r, uint32_t offset, bool v) { r[offset] = v; }
static inline bool ck_row_null(const ck_row *r, uint32_t null_bit) {
    return null_bit != UINT32_MAX && ((r[null_bit >> 3] >> (null_bit & 7)) & 1);
}
static inline void ck_row_set_null(ck_row *r, uint32_t null_bit, bool is_null) {
    uint8_t m = (uint8_t)(1u << (null_bit & 7));
    r[null_bit >> 3] = is_null ? (uint8_t)(r[null_bit >> 3] | m) : (uint8_t)(r[null_bit >> 3] & ~m);
}
/* Borrowed until the next write to this field or pointer-invalidating call. Field must be a VIEW field and not NULL. */
ck_view ck_table_str(const ck_table *t, const ck_row *row, uint32_t field);
/* Sets a VIEW field of a writable row, copying; clears its NULL bit. CK_NOMEM leaves the old value. Does not invalidate
 * row pointers. */
CK_NODISCARD ck_status ck_table_set_str(ck_table *t, ck_row *row, uint32_t field, ck_view v);
/* Any field of a writable row from a column's row (NULL included), and a field of many rows into a builder. */
CK_NODISCARD ck_status ck_table_set_field(ck_table *t, ck_row *row, uint32_t field, const ck_column *c, uint32_t c_row);
CK_NODISCARD ck_status ck_table_gather_field(const ck_table *t, const ck_row *const *rows, uint32_t n, uint32_t field,
                                             ck_column_builder *out);
/* Whether two rows of the table have one value in a partition or order field; NULL is a value of its own. Those are
 * canonical (no -0.0, one NaN), so bytes decide. */
bool ck_table_same_field(const ck_table *t, uint32_t field, const ck_row *a, const ck_row *b);
/* Field of rows[i] (writable) from c's row at[i] (at NULL: row i). CK_INVALID: NULL where it is NOT NULL. */
CK_NODISCARD ck_status ck_table_set_column(ck_table *t, ck_row *const *rows, uint32_t n, uint32_t field,
                                           const ck_column *c, const uint16_t *at);
/* A new column of `length` rows, its row at[i] (at NULL: row i) the field of rows[i], NULL where rows[i] is NULL; rows
 * nobody named are valid and of no meaning. Lists and rows: only with at NULL. */
CK_NODISCARD ck_status ck_table_gather_column(const ck_table *t, ck_row *const *rows, uint32_t n, const uint16_t *at,
                                              uint32_t length, uint32_t field, ck_mem mem, ck_column **out);

/* ---- hash part: slots without order columns (and the partitions of those with) ---- */

/* A batch of keys: live rows of `batch` under `spec` (types equal the partition fields; in a hashed slot partition,
 * then order fields). hashes: ck_key_hash with ck_table_seed, one a live row; the caller may share them between tables
 * of one seed. */
typedef struct ck_keys {
    const ck_key_spec *spec;
    const ck_batch *batch;
    const uint64_t *hashes;
    uint32_t n; /* = batch->sel_count */
} ck_keys;
uint64_t ck_table_seed(const ck_table *t);

/* rows[k]: the writable row of the k-th key, inserted where it was missing (value fields zero, nullable ones NULL;
 * fresh[k] = 1, also only for the first of equal new keys). fresh may be NULL. */
CK_NODISCARD ck_status ck_table_upsert(ck_table *t, const ck_keys *keys, ck_row **rows, uint8_t *fresh, ck_error *err);
/* The same with the keys of rows of another table, all of whose key fields are as this one's: of buckets, which keep
 * the same groups at several times. No batch of keys has to be made for it. */
CK_NODISCARD ck_status ck_table_upsert_rows(ck_table *t, const ck_table *from, ck_row *const *keys, uint32_t n,
                                            ck_row **rows, uint8_t *fresh, ck_error *err);
/* Whether it can: not while some of this table's rows are out of memory (state.h, ck_state_evict_to). */
bool ck_table_takes_rows(const ck_table *t, const ck_table *from);
/* rows[k]: the row, or NULL. Read-only. */
CK_NODISCARD ck_status ck_table_find(ck_table *t, const ck_keys *keys, const ck_row **rows, ck_error *err);
/* Make a found row writable (it may move: *row is updated). */
CK_NODISCARD ck_status ck_table_touch(ck_table *t, ck_row **row, ck_error *err);
/* The same for many (at most CK_BATCH_ROWS_MAX; repeats are fine): afterwards all of them are valid together. */
CK_NODISCARD ck_status ck_table_touch_rows(ck_table *t, ck_row **rows, uint32_t n, ck_error *err);
/* Numbers that stand for rows until those are erased, where none leaves memory (state.h, ck_state_evict_to); and those
 * rows again, writable. */
bool ck_table_rows_stay(const ck_table *t);
void ck_table_refs(const ck_table *t, ck_row *const *rows, uint32_t n, uint32_t *refs);
CK_NODISCARD ck_status ck_table_rows_of(ck_table *t, const uint32_t *refs, uint32_t n, ck_row **rows, ck_error *err);
/* Erase rows; pointers must come from the last batch call and be distinct. */
CK_NODISCARD ck_status ck_table_erase(ck_table *t, ck_row *const *rows, uint32_t n, ck_error *err);
/* The row of the empty key (no partition columns): global aggregates, counters. */
CK_NODISCARD ck_status ck_table_single(ck_table *t, bool create, ck_row **row, bool *fresh, ck_error *err);

uint64_t ck_table_row_count(const ck_table *t);
size_t ck_table_bytes(const ck_table *t); /* pages, index, variable parts */

/* All rows, in no order, in pieces. Zero the scan first; each call fills up to max pointers (read-only; erase of
 * just-returned rows and touch of them are allowed between calls, inserts are not) and returns 0 at the end. */
typedef struct ck_table_scan {
    uint64_t position;
    uint32_t bucket_index;
} ck_table_scan;
/* Reads may bring rows into memory that were not there (state.h, ck_state_evict_to), which moves no others. */
uint32_t ck_table_scan_next(ck_table *t, ck_table_scan *s, ck_row **rows, uint32_t max);

/* ---- ordered part: slots with order columns ---- */

/* A partition (all rows of one user key): a small number valid while it has rows and no erase emptied it. 0 = none. */
typedef uint32_t ck_partition;
CK_NODISCARD ck_status ck_table_partitions(ck_table *t, const ck_keys *keys, bool create, ck_partition *out,
                                           ck_error *err);
/* For who goes through many partitions: some rows ahead with stage 0, fewer ahead with stage 1. */
void ck_partition_prefetch(const ck_table *t, ck_partition p, unsigned stage);
uint64_t ck_partition_rows(const ck_table *t, ck_partition p);
/* All partitions, in no order, in pieces, as ck_table_scan_next gives rows: up to max, 0 at the end. */
uint32_t ck_table_partition_scan(ck_table *t, ck_table_scan *s, ck_partition *out, uint32_t max);

/* In a walk over many partitions, where no pointer or range of the table is in use: what memory is short of may leave.
 */
CK_NODISCARD ck_status ck_table_let_go(ck_table *t, ck_error *err);

/* Order keys are bytes from ck_order_encode over the order fields. Inserted rows get partition and order fields set. */
CK_NODISCARD ck_status ck_partition_upsert(ck_table *t, ck_partition p, ck_view order_key, ck_row **row, bool *fresh,
                                           ck_error *err);
/* A row to be inserted whose order key costs more than looking at its first bytes. */
typedef struct ck_order_source {
    ck_view first;                               /* of the order key: at least eight bytes */
    ck_status (*whole)(void *arg, ck_view *key); /* all of it, valid until the call ends; asked for at most once */
    ck_status (*fill)(void *arg, ck_row *row);   /* sets the order fields of the new row */
    void *arg;
} ck_order_source;
/* As ck_partition_upsert. What whole and fill answer other than CK_OK is passed on. */
CK_NODISCARD ck_status ck_partition_upsert_from(ck_table *t, ck_partition p, const ck_order_source *from, ck_row **row,
                                                bool *fresh, ck_error *err);
CK_NODISCARD ck_status ck_partition_find(ck_table *t, ck_partition p, ck_view order_key,
                                         ck_row **row); /* CK_NOTFOUND */
/* Erasing the last row of a partition ends the partition. */
CK_NODISCARD ck_status ck_partition_erase(ck_table *t, ck_partition p, ck_view order_key, ck_error *err);
CK_NODISCARD ck_status ck_partition_erase_last(ck_table *t, ck_partition p, ck_error *err); /* of at least one row */
CK_NODISCARD ck_status ck_partition_erase_range(ck_table *t, ck_partition p, ck_view lo, ck_view hi, uint64_t *erased,
                                                ck_error *err);

/* Iteration in order over [lo, hi) of one partition; empty views are open ends. Rows may be touched, not inserted or
 * erased, meanwhile. */
typedef struct ck_range {
    ck_table *table;
    ck_partition partition;
    uint64_t at[4];   /* the table's */
    ck_view hi;       /* borrowed */
    ck_status status; /* not CK_OK: it could not be opened, and shows nothing */
} ck_range;
void ck_range_open(ck_range *r, ck_table *t, ck_partition p, ck_view lo, ck_view hi);
bool ck_range_next(ck_range *r, ck_row **row);
/* The order key of a row, encoded, valid until the next call. */
CK_NODISCARD ck_status ck_row_order_key(ck_table *t, const ck_row *row, ck_bytes *out);
bool ck_partition_first(ck_table *t, ck_partition p, ck_row **row);
bool ck_partition_last(ck_table *t, ck_partition p, ck_row **row);

/* ---- lists: slots with `listed` ---- */

/* The rows of one user key: a number that stands for the first of them and stays valid until that row is erased. 0 =
 * none. With `hashed` rows come by ck_table_upsert and are found also by their whole key; without, by
 * ck_table_list_add, and the order field is a number the table gives. They go by ck_table_erase. */
typedef uint32_t ck_list;
/* heads[k]: the list of the k-th key (partition columns only). */
CK_NODISCARD ck_status ck_table_lists(ck_table *t, const ck_keys *keys, ck_list *heads, ck_error *err);
/* rows[k]: a new writable row in the list of the k-th key, value fields blank. CK_NOMEM, CK_FULL: none was added. */
CK_NODISCARD ck_status ck_table_list_add(ck_table *t, const ck_keys *keys, ck_row **rows, ck_error *err);
/* The rows of lists heads[0..n), list after list: rows[i] is of list key_of[i]. Zero the walk first; each call fills up
 * to max and returns 0 at the end. In between rows may be touched, not added or erased. Touch before writing. */
typedef struct ck_list_walk {
    uint32_t key;
    ck_list next;
} ck_list_walk;
uint32_t ck_table_walk_lists(const ck_table *t, const ck_list *heads, uint32_t n, ck_list_walk *w, uint16_t *key_of,
                             ck_row **rows, uint32_t max);

/* ---- buckets: slots with `bucketed` ---- */

/* The hash table of one bucket, created when missing if create; owned by t; NULL when absent. Use the hash-part calls
 * on it. */
CK_NODISCARD ck_status ck_table_bucket(ck_table *t, int64_t bucket, bool create, ck_table **out, ck_error *err);
bool ck_table_first_bucket(const ck_table *t, int64_t at_least, int64_t *bucket); /* smallest bucket >= at_least */
CK_NODISCARD ck_status ck_table_drop_bucket(ck_table *t, int64_t bucket, ck_error *err);

#endif
