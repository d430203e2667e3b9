/* All state of one subtask: a store holds, per operator, its slots. The runtime makes the store, restores it, marks it
 * at barriers; operators get a ck_state - their own part - and open tables in it. */
#ifndef CK_STATE_STATE_H
#define CK_STATE_STATE_H

#include "base/proc.h"
#include "state/table.h"
#include "stream/key_groups.h"

typedef struct ck_state_store ck_state_store;
typedef struct ck_state ck_state;

typedef struct ck_state_config {
    ck_proc *proc;
    ck_mem mem; /* the job's account, CK_MEM_STATE */
    uint32_t key_groups;
    ck_key_group_range range; /* keyed rows outside it are filtered on restore and are a bug on write */
    uint64_t hash_seed;       /* recorded random: tables of one subtask share it */
    bool
        snapshots; /* rows go into checkpoints, which hold no key of over CK_KEY_BYTES_MAX: a row with one is CK_DATA */
} ck_state_config;

CK_NODISCARD ck_status ck_state_store_new(const ck_state_config *cfg, ck_state_store **out, ck_error *err);
void ck_state_store_free(ck_state_store *s); /* NULL is fine; no mark may be live */

/* What would fill the account goes to a file in dir (copied) instead of being refused. Before the first row. CK_IO,
 * CK_REFUSED: the folder will not do. */
CK_NODISCARD ck_status ck_state_spill_to(ck_state_store *s, const char *dir, ck_error *err);

/* Rows that would fill the account leave for RocksDB (state/rocks.h), and come back when they are asked for. After
 * ck_state_spill_to, which then takes only what cannot leave; before the first operator. db outlives the store. */
struct ck_rocks;
CK_NODISCARD ck_status ck_state_evict_to(ck_state_store *s, struct ck_rocks *db, ck_error *err);
/* Before the subtask takes new input, with nothing of an earlier one still under way: rows leave if the account is near
 * its limit. What calls that answer no errors could not read is said here. Invalidates row pointers, not partitions. */
CK_NODISCARD ck_status ck_state_trim(ck_state_store *s, ck_error *err);
/* At the same time: rows of about so many bytes leave, whatever the account holds (SIZE_MAX: all that can). */
CK_NODISCARD ck_status ck_state_evict(ck_state_store *s, size_t bytes, ck_error *err);
size_t ck_state_cold_rows(const ck_state_store *s); /* in RocksDB */

ck_key_group_range ck_state_range(const ck_state *st); /* of the subtask */

/* The operator's part, made on first use; owned by the store. Its id is ck_op_id(uid); two uids with one id are
 * refused. */
CK_NODISCARD ck_status ck_state_of(ck_state_store *s, const char *uid, const char *op_type, ck_state **out,
                                   ck_error *err);

/* The table of a slot, made when missing. The schema is copied. The rows of a slot restored under another schema become
 * rows of this one where state/slot_change.h lets them; else CK_REFUSED names slot, field and both types. Opened once
 * more it must be the same. */
CK_NODISCARD ck_status ck_state_table(ck_state *st, const ck_slot_schema *schema, ck_table **out, ck_error *err);

/* Time to live: the operator's clock has come to now. Entries of its slots with `ttl_us` that have not been written for
 * so long go, and what is written from here on counts from now (their number is added up in *expired; at most a 64th of
 * the time to live late). Nothing before a first call; INT64_MIN: the clock is not known yet. Invalidates row pointers.
 */
CK_NODISCARD ck_status ck_state_come_to(ck_state *st, int64_t now_us, uint64_t *expired, ck_error *err);

/* Between steps: true while a mark is being read and what copy on write may need would pass the job's limit. The
 * subtask then takes no input until the mark is released or its checkpoint aborted. */
bool ck_state_must_wait(const ck_state_store *s);
size_t ck_state_bytes(const ck_state_store *s);         /* of all tables, without what marks hold */
size_t ck_state_spilled_bytes(const ck_state_store *s); /* in the file of spill_dir, marks' copies included */

/* ---- operator-state rows (split, union, broadcast): small, by name. Their slots are tables too (ck_state_table, one
 * VARCHAR NOT NULL partition column); these are for one row at a time; state/operator_rows.h has splits and
 * committables. ---- */
CK_NODISCARD ck_status ck_state_row_put(ck_state *st, const ck_slot_schema *schema, const char *row_key,
                                        const ck_column *const *values, uint32_t row, ck_error *err);
/* A missing row is fine. */
CK_NODISCARD ck_status ck_state_row_erase(ck_state *st, const ck_slot_schema *schema, const char *row_key,
                                          ck_error *err);

/* ---- stored rows: what restore writes and tools read ---- */

typedef struct ck_stored_row {
    ck_view key;   /* stored key, docs/formats.md */
    ck_view value; /* packed value */
} ck_stored_row;

/* Declares a slot found in a snapshot (its schema from the file) before its rows come. */
CK_NODISCARD ck_status ck_state_restore_slot(ck_state_store *s, uint64_t op_id, const char *uid, const char *op_type,
                                             const ck_slot_schema *schema, ck_error *err);
/* A version found in a snapshot's map (state/schema_version.h), under the operator's id in this store. CK_NOMEM. */
struct ck_state_version;
CK_NODISCARD ck_status ck_state_restore_version(ck_state_store *s, const struct ck_state_version *v, ck_error *err);
/* One stored row of operator op_id: put. Keyed rows outside the store's range are skipped; operator rows are taken as
 * they come (checkpoint/restore deals them out), an equal one of 8 bytes keeps the greater value where the slot's mode
 * is union or not known. Rows of a slot that was not declared are kept as bytes until ck_state_table names their
 * schema. Rows of a bad shape are CK_CORRUPT. */
CK_NODISCARD ck_status ck_state_restore_put(ck_state_store *s, uint64_t op_id, ck_stored_row row, ck_error *err);
/* The same for many, in order; several times as fast. On failure some of them are in. */
CK_NODISCARD ck_status ck_state_restore_puts(ck_state_store *s, uint64_t op_id, const ck_stored_row *rows, uint32_t n,
                                             ck_error *err);
CK_NODISCARD ck_status ck_state_restore_erase(ck_state_store *s, uint64_t op_id, ck_view key, ck_error *err);
/* Every row of the operator whose stored key is not below `from` and below `to`, by bytes. Reads all rows of the store.
 */
CK_NODISCARD ck_status ck_state_restore_erase_range(ck_state_store *s, uint64_t op_id, ck_view from, ck_view to,
                                                    ck_error *err);
/* After the last row: indexes are built, epochs start. */
CK_NODISCARD ck_status ck_state_restore_end(ck_state_store *s, ck_error *err);

#endif
