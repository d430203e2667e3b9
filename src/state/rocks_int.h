/* A RocksDB of one job: bytes under bytes, for rows that left memory (cold_int.h). Working memory on disk and nothing
 * more: it is made when the first row leaves, in a folder of the process's own (os/scratch_dir.h), without a
 * write-ahead log, and never opened again. The library is opened with dlopen when the backend is asked for.
 *
 * Keys begin with [family][u16 BE store], so that the stores of a job share one database, its cache and its buffers.
 * What the library allocates is its own; a stated reserve of CK_MEM_ROCKSDB is taken when the database is made.
 *
 * Threads: any, except that a batch is one thread's. */
#ifndef CK_STATE_ROCKS_INT_H
#define CK_STATE_ROCKS_INT_H

#include "base/bytes.h"
#include "base/view.h"
#include "state/rocks.h"

/* ROWS: [family][store][u16 BE slot][kind][...]. A GROUPED row's key goes on with [u32 BE n][n bytes], a prefix whose
 * rows are found together. CHANGED: [family][store][u32 BE epoch][key of a row from the slot on]. */
typedef enum ck_rocks_family { CK_ROCKS_CHANGED = 'c', CK_ROCKS_ROWS = 'r' } ck_rocks_family;
typedef enum ck_rocks_kind { CK_ROCKS_SINGLE, CK_ROCKS_GROUPED, CK_ROCKS_BUCKETED } ck_rocks_kind;
enum { CK_ROCKS_HEAD = 6, CK_ROCKS_MANY = 128 }; /* bytes before `...` of a row's key; keys of one get */

/* A number no store of this database has had. false: all have been given. */
bool ck_rocks_store_number(ck_rocks *r, uint16_t *out);
/* Makes the database when there is none yet. */
CK_NODISCARD ck_status ck_rocks_open(ck_rocks *r, ck_error *err);
/* ck_proc.evicts_all: every row that can leave does, whenever it may. */
bool ck_rocks_takes_all(const ck_rocks *r);
bool ck_rocks_is_open(const ck_rocks *r);

/* Everything below: of an open one. */
typedef struct ck_rocks_batch ck_rocks_batch;
ck_rocks_batch *ck_rocks_batch_new(ck_rocks *r);
void ck_rocks_batch_free(ck_rocks *r, ck_rocks_batch *b); /* NULL is fine */
void ck_rocks_put(ck_rocks *r, ck_rocks_batch *b, ck_view key, ck_view value);
void ck_rocks_delete(ck_rocks *r, ck_rocks_batch *b, ck_view key);
void ck_rocks_delete_range(ck_rocks *r, ck_rocks_batch *b, ck_view from, ck_view to); /* [from, to) */
/* All of the batch at once; it is empty afterwards. */
CK_NODISCARD ck_status ck_rocks_write(ck_rocks *r, ck_rocks_batch *b, ck_error *err);

/* A view of the database as it is now, for as many readers as there are. */
typedef struct ck_rocks_snapshot ck_rocks_snapshot;
const ck_rocks_snapshot *ck_rocks_snapshot_take(ck_rocks *r);
void ck_rocks_snapshot_release(ck_rocks *r, const ck_rocks_snapshot *s);

/* fn(arg, i, value) for each key i of n (at most CK_ROCKS_MANY) that is there; value is valid during the call. at: NULL
 * is now. What fn answers other than CK_OK ends it. */
typedef ck_status (*ck_rocks_found)(void *arg, uint32_t i, ck_view value);
CK_NODISCARD ck_status ck_rocks_get_many(ck_rocks *r, const ck_rocks_snapshot *at, const ck_view *keys, uint32_t n,
                                         ck_rocks_found fn, void *arg, ck_error *err);

/* Keys in order. grouped: seeks are only made to whole prefixes of GROUPED rows and end with the rows of the prefix.
 * Key and value are valid until the next call. Thread: one at a time. */
typedef struct ck_rocks_iterator ck_rocks_iterator;
ck_rocks_iterator *ck_rocks_iterate(ck_rocks *r, const ck_rocks_snapshot *at, bool grouped);
void ck_rocks_iterator_free(ck_rocks *r, ck_rocks_iterator *it); /* NULL is fine */
void ck_rocks_seek(ck_rocks *r, ck_rocks_iterator *it, ck_view from);
/* false in *any: no further key. */
CK_NODISCARD ck_status ck_rocks_at(ck_rocks *r, ck_rocks_iterator *it, bool *any, ck_view *key, ck_view *value,
                                   ck_error *err);
void ck_rocks_next(ck_rocks *r, ck_rocks_iterator *it);

#endif
