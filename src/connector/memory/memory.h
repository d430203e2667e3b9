/* Rows of tables that live in the process: CREATE TABLE without a connector, or connector='memory'. A store belongs to
 * an engine and holds the rows of all its tables as batches, append-only and immutable, so that readers share them.
 * What a job writes waits in a stage and appears in the store when the job has ended well. */
#ifndef CK_CONNECTOR_MEMORY_MEMORY_H
#define CK_CONNECTOR_MEMORY_MEMORY_H

#include "base/mem.h"
#include "data/batch.h"

typedef struct ck_memory_store ck_memory_store;
typedef struct ck_memory_stage ck_memory_stage;

/* The binder gives every memory table an option of this name; its value tells apart tables that had one name after
 * another. The dot keeps users from writing it: no connector lists it. */
#define CK_MEMORY_INSTANCE ".instance"

/* bytes_max: of all rows together, 0 = no limit. Thread: any, for all that follows. */
CK_NODISCARD ck_status ck_memory_store_new(ck_heap *heap, size_t bytes_max, ck_memory_store **out);
void ck_memory_store_free(ck_memory_store **s); /* no job reads or writes any more */
/* The table is gone: its rows go when the last reader has gone. */
void ck_memory_store_drop(ck_memory_store *s, const char *instance);

/* Of one job. Rows that were not committed are dropped. */
CK_NODISCARD ck_status ck_memory_stage_new(ck_memory_store *s, ck_memory_stage **out);
/* All rows of all tables appear at once, or on CK_NOMEM none does; the stage is empty afterwards. */
CK_NODISCARD ck_status ck_memory_stage_commit(ck_memory_stage *g, ck_error *err);
void ck_memory_stage_free(ck_memory_stage **g);

/* ---- for the connector ---- */

/* Copies the live rows of b. */
CK_NODISCARD ck_status ck_memory_stage_add(ck_memory_stage *g, const char *instance, const ck_batch *b, ck_error *err);
/* Batches the table has now; 0 when it has never been written. */
size_t ck_memory_batches(ck_memory_stage *g, const char *instance);
/* A reference to batch i of those; NULL when the table was dropped meanwhile. */
ck_batch *ck_memory_batch(ck_memory_stage *g, const char *instance, size_t i);

#endif
