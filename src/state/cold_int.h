/* Rows that left memory. With a RocksDB behind it (rocks_int.h) a table holds only some of its rows: the others are
 * there, under their stored key and with their stored value, until somebody asks for them. A row is in one of the two
 * places and never in both, so that what is read is never merged and a mark is the marked tables plus the database as
 * it was.
 *
 *   key     [family][store][slot][kind]['bucket' if bucketed][what stands behind the slot's '|' in a stored key]
 *   value   [u32 LE epoch of the last change, 0: not known to have changed][stored value]
 *
 * What leaves together: a row of a hash table or bucket, the whole list of a listed key, the whole partition of an
 * ordered one, whose head stays. Rows leave only when the subtask is about to take new input (ck_cold_trim) and when a
 * walk over a whole table comes to its next piece, never while a call's pointers are in use. They come back when a
 * batch asks for their keys, many with one lookup.
 *
 * A walk over all rows (ck_table_scan_next) borrows them in pieces: a borrowed row is in both places until the piece is
 * settled, when it either left again untouched, or was written and is no longer in the database.
 *
 * What calls without an answer for errors (iteration) could not read is remembered: the next call that can say so does,
 * no mark is taken any more, and the runtime asks after each step (ck_state_trim).
 *
 * Thread: the store's owner, except ck_cold_reader, which is the mark's reader's. */
#ifndef CK_STATE_COLD_INT_H
#define CK_STATE_COLD_INT_H

#include "state/rocks_int.h"
#include "state/stored_int.h"
#include "state/tree_int.h"

struct ck_cold { /* of one store; `ck_cold` is named in table_int.h */
    ck_rocks *db;
    ck_mem mem;
    ck_epochs *epochs;
    ck_rocks_batch *batch; /* NULL: no row has ever left */
    size_t batch_bytes;
    uint16_t store, slots;
    uint64_t rows;      /* of all tables, borrowed ones included */
    size_t evict_above; /* bytes in the account */
    size_t least;       /* a table with fewer bytes gives none, a store asked for fewer neither */
    ck_bytes key, value;
    ck_error failed;
};

CK_NODISCARD ck_status ck_cold_new(ck_rocks *db, ck_mem mem, ck_epochs *e, ck_cold **out, ck_error *err);
void ck_cold_free(ck_cold *c); /* NULL is fine */
/* A slot's table: its rows may leave from here on, if they are keyed. CK_FULL: too many slots. */
CK_NODISCARD ck_status ck_cold_adopt(ck_cold *c, ck_table *t, ck_error *err);
/* The table goes: so do its rows. What a mark sees of them stays for it. */
CK_NODISCARD ck_status ck_cold_forget(ck_table *t);
/* What could not be said when it happened. */
CK_NODISCARD ck_status ck_cold_check(const ck_cold *c, ck_error *err);
ck_status ck_cold_broken_by(const ck_table *t, ck_status s); /* the same, for what may be a key's fault */
ck_status ck_cold_broken(ck_cold *c, ck_status s); /* remembers c->failed's sentence, or makes one; returns s */

/* ---- keys ---- */
static inline ck_rocks_kind ck_cold_kind(const ck_table *t) {
    return t->shape->schema->bucketed              ? CK_ROCKS_BUCKETED
           : t->shape->ordered || t->shape->listed ? CK_ROCKS_GROUPED
                                                   : CK_ROCKS_SINGLE;
}
/* The first bytes of all keys of the table, of the bucket if it is one. */
CK_NODISCARD ck_status ck_cold_key_begin(const ck_table *t, ck_bytes *out);
static inline size_t ck_cold_head(const ck_table *t) { return CK_ROCKS_HEAD + (t->shape->schema->bucketed ? 8u : 0u); }
/* `rest` of a row's key without the partition: its length, then itself (CK_ROCKS_GROUPED). */
static inline ck_view ck_cold_group(ck_view rest) {
    const uint8_t *p = (const uint8_t *)rest.p;
    return (ck_view){rest.p, 4 + ((size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3])};
}
/* The first key behind all that begin with these bytes. They do not all be 0xFF. */
void ck_cold_after(ck_bytes *prefix);

/* Puts and deletes wait in the batch; written before anything is read, and at once when they are many. */
CK_NODISCARD ck_status ck_cold_flush(ck_cold *c);
CK_NODISCARD ck_status ck_cold_written(ck_cold *c, size_t bytes); /* put into the batch */

/* Deltas count from this epoch on: which rows changed before is forgotten. */
void ck_cold_completed(ck_cold *c, uint32_t epoch);

/* ---- cold_evict.c ---- */
/* Rows leave until about `bytes` of them did. */
CK_NODISCARD ck_status ck_cold_evict(ck_table *t, size_t bytes, size_t *gone);
/* Of a list table whose lists are suspended: all of them. */
CK_NODISCARD ck_status ck_cold_evict_all(ck_table *t);
/* The row whose key is c->key changed in this epoch. */
CK_NODISCARD ck_status ck_cold_put_changed(ck_cold *c, uint32_t epoch);
/* Bytes of state too much; 0: none are. */
size_t ck_cold_over(const ck_cold *c);
/* When there are such. */
CK_NODISCARD ck_status ck_cold_relieve(ck_table *t);

/* ---- cold_bring.c ---- */
/* What a row of a page of this epoch says of its changes; a slot that is left says nothing of who was there. */
void ck_cold_set_changed(ck_table *t, uint32_t ref, bool changed);
/* One stored row into memory, in every index but an ordered table's tree. Its mark of change is the one it had. */
CK_NODISCARD ck_status ck_cold_insert(ck_table *t, ck_view rest, ck_view value, bool unchanged, uint32_t *ref);
/* Before a call with these keys searches the table: those of its rows that are out come in. list: partition keys. */
CK_NODISCARD ck_status ck_cold_bring(ck_table *t, const ck_keys *keys, bool list, ck_error *err);
CK_NODISCARD ck_status ck_cold_bring_single(ck_table *t, ck_error *err);
/* The row (of a listed table that is not suspended: list) of a stored key. */
CK_NODISCARD ck_status ck_cold_bring_rest(ck_table *t, ck_view rest);
/* The rows of those of n ordered partitions (0: none) that are out. */
CK_NODISCARD ck_status ck_cold_bring_partitions(ck_table *t, const ck_partition *p, uint32_t n);
/* Restore: a row of a partition that is out is put, or erased, where it is. */
CK_NODISCARD ck_status ck_cold_put_out(ck_table *t, ck_partition p, ck_view rest, ck_view value);
CK_NODISCARD ck_status ck_cold_erase_out(ck_table *t, ck_partition p, ck_view rest, bool *ended);

static inline bool ck_head_is_out(const ck_partition_head *h) {
    return h->count > 0 && h->ref == UINT32_MAX && (h->count == 1 || !h->root);
}

/* ---- cold_filter.c ---- */
/* Hashes of keys (of a listed table: of lists) whose rows have left: false is certain. Not of ordered tables. */
bool ck_cold_filter_has(const ck_table *t, uint64_t hash);
void ck_cold_filter_add(ck_table *t, uint64_t hash); /* without memory for it everything may be out */
void ck_cold_filter_clear(ck_table *t);              /* no row is out */

/* ---- cold_scan.c ---- */
/* Rows that are out, after those in memory: as ck_table_scan_next; *position is of this table. */
uint32_t ck_cold_scan(ck_table *t, uint64_t *position, ck_row **rows, uint32_t max);
/* Borrowed rows are put back or kept. */
CK_NODISCARD ck_status ck_cold_settle(ck_table *t);
void ck_cold_scan_free(ck_table *t);
#define CK_SCAN_OUT (1ULL << 63) /* in a scan's position: memory is done */
/* A bucket goes: the key of each of its rows that is out into the log of erased keys. */
CK_NODISCARD ck_status ck_cold_log_rows(ck_table *t);

/* ---- cold_mark.c ---- */
/* Rows of one slot as they were, read under a mark's snapshot: all of them, or those changed in epochs (after, until].
 */
typedef struct ck_cold_reader {
    ck_rocks *db;
    const ck_rocks_snapshot *at;
    uint16_t store, slot;
    size_t head; /* bytes of a row's key before the rest */
    bool delta;
    uint32_t after, until;
    ck_rocks_iterator *it;
    ck_bytes from, keys, rows; /* delta: the keys of a piece; [u32 n][rest][u32 n][value]... found */
    uint32_t at_row;
    bool ended;
    uint32_t epochs[CK_ROCKS_MANY], count;
    size_t ends[CK_ROCKS_MANY], read;
} ck_cold_reader;
CK_NODISCARD ck_status ck_cold_reader_begin(ck_cold_reader *r, ck_error *err);
CK_NODISCARD ck_status ck_cold_reader_next(ck_cold_reader *r, bool *any, ck_view *rest, ck_view *value, ck_error *err);
void ck_cold_reader_end(ck_cold_reader *r); /* of a zeroed one too */

#endif
