/* The body of a table. Files: table.c (pages, rows, life), strings.c (variable parts), keys.c (hashing, comparing and
 * setting key fields), batch.c (upsert and find), upsert_rows.c (by keys of rows), ordered.c and tree.c (partitions),
 * bucket.c, spare.c, lists.c, erase_log.c. */
#ifndef CK_STATE_TABLE_INT_H
#define CK_STATE_TABLE_INT_H

#include "state/epoch_int.h"
#include "state/index_int.h"
#include "state/shape_int.h"

typedef struct ck_cold ck_cold;

typedef struct ck_page_at { /* the owner's way to a page */
    uint8_t *rows;          /* NULL: this id has no page */
    uint32_t prepared;      /* epoch in which it was made private; only then rows are written */
    uint32_t next;          /* list of free ids, or of pages with room: id + 1 */
} ck_page_at;

typedef struct ck_var_page {
    uint8_t *p; /* NULL: this id has no page */
    uint32_t bytes, used, dead;
    uint32_t birth;
    uint32_t next; /* free ids, or pages to compact: id + 1 */
    bool queued;
} ck_var_page;

typedef struct ck_var {
    ck_var_page *pages;
    uint32_t count, capacity;
    uint32_t fill;              /* id + 1 of the page appended to; 0 = none */
    uint32_t free_ids, compact; /* list heads: id + 1 */
    size_t bytes;
    ck_dir dir;
} ck_var;

/* Keys of erased rows, for deltas: entries [u32 length][u32 user key length][stored key behind slot and '|' ...]. A
 * chunk never holds two epochs. */
typedef struct ck_log_chunk {
    struct ck_log_chunk *next;
    uint32_t epoch, used, bytes, entries;
    uint8_t data[];
} ck_log_chunk;

typedef struct ck_erase_log {
    ck_log_chunk *first, *last;
    size_t bytes;
    uint64_t entries;
    uint32_t lost; /* epoch in which it was given up: no delta may count from an older one */
} ck_erase_log;

enum { CK_BUCKET_GUESSES = 16 };

struct ck_table {
    ck_epochs *epochs;
    const ck_shape *shape;
    ck_mem mem; /* CK_MEM_STATE */
    uint64_t seed;
    /* pages and rows */
    ck_page_at *at;
    uint32_t page_count, page_capacity;
    uint32_t fill;                  /* id + 1 of the page new rows go to; 0 = none */
    uint32_t fill_word;             /* live word to look for a free slot from */
    uint32_t free_ids, room;        /* list heads: id + 1 */
    uint8_t *stale[CK_SMALL_PAGES]; /* small pages as they were before their copy of this epoch */
    ck_dir dir;
    size_t page_bytes;
    uint64_t rows;
    uint32_t single; /* ref + 1 of the row of the empty key */
    ck_index index;  /* by whole key; of a listed table that is not hashed only while rows are restored */
    ck_index lists;  /* listed: by partition, the first row of each list */
    bool lists_ready;
    int64_t next_number; /* listed, not hashed: the next row's order field */
    ck_var var;
    ck_bytes scratch; /* encodings, during one call */
    ck_bytes loose;   /* ck_loose_of */
    /* deltas */
    uint32_t changed_epoch;               /* newest epoch with a change; 0 = none */
    uint64_t changed_now, changed_before; /* rows and erased keys, in this epoch and since the completed mark */
    ck_erase_log own_log, *log;           /* a bucket logs into its slot's table */
    /* ordered slots */
    ck_table *partitions; /* hidden: user key -> ck_partition_head in the extra bytes */
    ck_bytes order_key;   /* of the row being compared */
    size_t tree_bytes;
    /* bucketed slots */
    ck_table **buckets; /* by bucket, ascending; this table itself holds no rows then */
    int64_t *bucket_keys;
    uint32_t bucket_count, bucket_capacity;
    uint32_t bucket_guess[CK_BUCKET_GUESSES]; /* where some were when they were last asked for, gone places included */
    uint32_t buckets_gone;                    /* places in front of them: the oldest go first */
    int64_t bucket;                           /* a bucket's own */
    uint32_t born;                            /* epoch in which the table was made */
    ck_table *spares, *next_spare;            /* spare.c */
    uint32_t spare_count;
    size_t spare_bytes;
    /* time to live (ttl.c) */
    int64_t expiry_ms; /* of what is written now */
    int64_t swept_us;
    bool swept;
    bool is_bucket;
    /* rows that are not in memory (cold_int.h) */
    ck_cold *cold;                 /* NULL: all are */
    struct ck_cold_scan *scan;     /* of rows out */
    uint64_t out_rows;             /* borrowed ones included */
    uint32_t borrowed;             /* rows of the present piece of a walk, in memory too */
    struct ck_cold_filter *filter; /* of the keys of rows out */
    uint32_t turn;                 /* id of the page whose rows leave next */
    uint16_t cold_slot;
};

/* A table of this shape. The shape outlives it. */
CK_NODISCARD ck_status ck_table_new(ck_epochs *e, ck_mem mem, const ck_shape *shape, uint64_t seed, ck_table **out,
                                    ck_error *err);
/* Pages the newest live mark can see are retired (ck_table_retire_count must be reserved), the rest is freed. */
void ck_table_free(ck_table *t);
uint32_t ck_table_retire_count(const ck_table *t);
/* CK_NOMEM in a sentence that names the slot and says why there is no more. */
ck_status ck_table_nomem(const ck_table *t, size_t bytes, ck_error *err);

/* Whose the rows are that ck_table_scan_next gave last: a bucket has strings of its own. */
static inline const ck_table *ck_scanned_table(const ck_table *t, const ck_table_scan *s) {
    return t->shape->schema->bucketed && !t->is_bucket ? t->buckets[s->bucket_index] : t;
}

/* ---- rows by reference ---- */

static inline uint32_t ck_ref_page(const ck_table *t, uint32_t ref) { return ref >> t->shape->slot_bits; }
static inline uint32_t ck_ref_slot(const ck_table *t, uint32_t ref) { return ref & ((1u << t->shape->slot_bits) - 1); }
static inline ck_row *ck_row_of(const ck_table *t, uint32_t ref) {
    return t->at[ck_ref_page(t, ref)].rows + (size_t)ck_ref_slot(t, ref) * t->shape->row_bytes;
}
/* The reference of a row pointer, also of one into a page that was copied since in this epoch. */
uint32_t ck_ref_of(const ck_table *t, const ck_row *row);

CK_NODISCARD ck_status ck_page_prepare(ck_table *t, uint32_t id);
static inline void ck_row_changed(ck_table *t, uint32_t id, uint32_t slot) {
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    uint64_t *w = ck_page_bits(t->shape, h, 1) + (slot >> 6), bit = 1ULL << (slot & 63);
    t->changed_now += (*w & bit) == 0;
    *w |= bit;
}
/* Makes the row's page private and notes the change. */
CK_NODISCARD static inline ck_status ck_row_writable(ck_table *t, uint32_t ref, ck_row **row) {
    uint32_t id = ck_ref_page(t, ref);
    if (CK_UNLIKELY(t->at[id].prepared != t->epochs->epoch)) CK_TRY(ck_page_prepare(t, id));
    if (t->epochs->tracking) ck_row_changed(t, id, ck_ref_slot(t, ref));
    *row = ck_row_of(t, ref);
    return CK_OK;
}
/* A new blank row, live, in no index. CK_FULL: no references left. */
CK_NODISCARD ck_status ck_row_add(ck_table *t, uint32_t *ref, ck_row **row);
/* Prepares the page so that ck_row_drop cannot fail. */
CK_NODISCARD ck_status ck_row_drop_prepare(ck_table *t, uint32_t ref);
/* Frees strings and slot; the row is in no index any more. */
void ck_row_drop(ck_table *t, uint32_t ref);
/* As ck_table_scan_next, of the rows in this table's pages. */
uint32_t ck_table_scan_pages(ck_table *t, uint64_t *position, ck_row **rows, uint32_t max);
/* Work that may move things, at the start of calls that invalidate pointers: compacts some variable pages. */
void ck_table_tidy(ck_table *t);

/* ---- strings.c ---- */
CK_NODISCARD ck_status ck_var_set(ck_table *t, ck_row *row, const ck_shape_field *f, ck_view v);
void ck_var_drop(ck_table *t, const ck_row *row, const ck_shape_field *f); /* its bytes are garbage from here on */
void ck_var_compact(ck_table *t);
void ck_var_destroy(ck_table *t);
static inline ck_strview ck_row_ref(const ck_row *row, uint32_t offset) {
    ck_strview v;
    memcpy(&v, row + offset, sizeof v);
    return v;
}
static inline ck_view ck_var_get(const ck_table *t, const ck_row *row, uint32_t offset) {
    ck_strview v = ck_row_ref(row, offset);
    if (v.length <= CK_STRVIEW_INLINE) return (ck_view){(const char *)row + offset + 4, (size_t)v.length};
    return (ck_view){(const char *)t->var.pages[v.ref.buffer].p + v.ref.offset, (size_t)v.length};
}

/* ---- keys.c ---- */
/* Key columns of a batch, looked up once a call. */
typedef struct ck_key_column {
    const ck_column *c;
    const ck_shape_field *f;
    bool nullable;          /* the row may hold NULL or the column does */
    const uint32_t *packed; /* LIST, STRUCT: ends of the values in `bytes`, by live row */
    const char *bytes;
} ck_key_column;
enum { CK_KEY_COLUMNS_INLINE = 8 };
typedef struct ck_key_source {
    const ck_keys *keys;
    const ck_index *index; /* to search in, along this path */
    ck_key_path path;
    ck_key_column *columns, inline_columns[CK_KEY_COLUMNS_INLINE];
    uint32_t count;
    size_t columns_bytes, packed_bytes;
    uint32_t *packed;
    ck_bytes packed_values;
} ck_key_source;
/* list: keys of partitions, to be found in the index of lists; else whole keys. */
CK_NODISCARD ck_status ck_key_source_init(ck_key_source *s, ck_table *t, const ck_keys *keys, bool list, ck_error *err);
void ck_key_source_destroy(ck_key_source *s, ck_table *t);
bool ck_key_equal_any(const ck_table *t, const ck_key_source *s, uint32_t k, const ck_row *row);
CK_NODISCARD ck_status ck_key_set(ck_table *t, const ck_key_source *s, uint32_t k, ck_row *row);
/* CK_DATA: the key of a row that was just set is longer than checkpoints hold. */
CK_NODISCARD ck_status ck_key_check(const ck_table *t, const ck_row *row);
uint64_t ck_row_hash(const ck_table *t, const ck_row *row);      /* of the whole key */
uint64_t ck_row_list_hash(const ck_table *t, const ck_row *row); /* of the partition fields */
void ck_table_hash_refs(void *table, const uint32_t *refs, uint32_t n, uint64_t *hashes);
void ck_table_list_hash_refs(void *table, const uint32_t *refs, uint32_t n, uint64_t *hashes);

/* ---- batch.c ---- */
/* Why the row of key k could not be added: full, no memory, or a key that is too long. */
ck_status ck_upsert_failed(ck_table *t, ck_status st, const ck_keys *keys, uint32_t k, ck_error *err);
/* Rows a call has inserted, of the first `done`, go again, so that its caller may repeat it. */
void ck_table_undo_fresh(ck_table *t, ck_row *const *rows, const uint8_t *fresh, uint32_t done);
/* rows[k]: of the k-th key in the source's index (of lists: the first one), or NULL. */
void ck_table_find_keys(const ck_table *t, const ck_key_source *s, const ck_row **rows);
/* A row out of every index it is in. */
void ck_table_leave_indexes(ck_table *t, uint32_t ref, const ck_row *row);

/* ---- put.c: one row at a time, out of loose rows (stored_int.h) ---- */
struct ck_loose_row;
/* The row of these key fields, inserted with them where it is missing. Not for ordered and bucketed tables. */
CK_NODISCARD ck_status ck_table_loose_upsert(ck_table *t, const struct ck_loose_row *l, ck_row **row, bool *fresh);
bool ck_table_loose_find(const ck_table *t, const struct ck_loose_row *l, uint32_t *ref);
/* The same for a key that hashes to `hash`; ck_table_tidy is the caller's. */
CK_NODISCARD ck_status ck_table_hashed_upsert(ck_table *t, const struct ck_loose_row *l, uint64_t hash, ck_row **row,
                                              bool *fresh);
/* Stored bytes in and out: rest is what stands behind the slot's '|' (operator rows: the row key). CK_CORRUPT when they
 * do not parse, or the user key does not hash to key_group (of key_groups; UINT32_MAX: not checked). */
typedef struct ck_stored_put {
    ck_view rest, value;
    uint32_t key_group;
} ck_stored_put;
CK_NODISCARD ck_status ck_table_stored_put(ck_table *t, const ck_stored_put *p, uint32_t key_groups);
CK_NODISCARD ck_status ck_table_stored_erase(ck_table *t, ck_view rest);

/* ---- put_run.c: many rows, in order. *done: how many are in; on failure that one is at fault ---- */
CK_NODISCARD ck_status ck_table_stored_puts(ck_table *t, const ck_stored_put *puts, uint32_t n, uint32_t key_groups,
                                            uint32_t *done);

/* ---- erase_log.c ---- */
void ck_log_erase(ck_table *t, const ck_row *row);                         /* gives the log up rather than fail */
void ck_log_erase_key(ck_table *t, ck_view rest, uint32_t user_key_bytes); /* behind slot and '|' */
void ck_log_forget(ck_table *t, uint32_t completed);
void ck_log_free(ck_table *t);

/* ---- lists.c ---- */
/* Stored rows come and go by their whole key: the index for that is made, the lists are dropped until somebody asks. */
CK_NODISCARD ck_status ck_lists_suspend(ck_table *t);
CK_NODISCARD ck_status ck_lists_resume(ck_table *t);
/* A row that is in no list; its partition fields are set. Nothing to do while lists are suspended. */
CK_NODISCARD ck_status ck_list_link_row(ck_table *t, uint32_t ref);
void ck_list_unlink_row(ck_table *t, uint32_t ref);
/* The list of these partition fields, 0: none in memory. */
struct ck_loose_row;
uint32_t ck_list_of_loose(ck_table *t, const struct ck_loose_row *l);

/* ---- ttl.c ---- */
void ck_ttl_stamp(ck_table *t, ck_row *const *rows, uint32_t n);
static inline void ck_ttl_written(ck_table *t, ck_row *const *rows, uint32_t n) {
    if (CK_UNLIKELY(t->shape->ttl_at)) ck_ttl_stamp(t, rows, n);
}
/* A stored value under another time to live: with or without its first 8 bytes, moved by the difference. */
CK_NODISCARD ck_status ck_ttl_convert(const ck_slot_schema *from, const ck_slot_schema *to, ck_bytes *value);

/* ---- ordered.c, bucket.c ---- */
void ck_partitions_free(ck_table *t);
void ck_partition_end(ck_table *t, ck_partition p); /* it has no rows any more */
void ck_buckets_free(ck_table *t);

/* ---- spare.c ---- */
/* A bucket of t that is empty, with room for rows; NULL: there is none. */
ck_table *ck_spare_take(ck_table *t);
/* A bucket that is no longer one of t's; false: it has to be freed. */
bool ck_spare_put(ck_table *t, ck_table *b);
void ck_spares_free(ck_table *t);

#endif
