/* The body of a store. Files: state.c (store, operators, slots), agree.c (schemas against each other), restore.c,
 * rebuild.c (a slot under another schema), migrate.c (all of them after a restore), operator_rows.c, mark.c and mark_scan.c. */
#ifndef CK_STATE_STATE_INT_H
#define CK_STATE_STATE_INT_H

#include "state/mark.h"
#include "state/operator_rows.h"
#include "state/cold_int.h"
#include "state/schema_version.h"

enum { CK_MARKS_LIVE_MAX = 4, CK_MARKS_UNRESOLVED = 32, CK_SLOTS_MAX = 4096 };

/* A slot: its table, or the rows of a slot whose schema is not known (raw: stored key -> value, both as they are). */
typedef struct ck_state_slot {
    const char *name;
    const char *prefix[2]; /* of stored keys behind the key group: name and '\n', name and '|' */
    ck_shape *shape;
    ck_table *table;
    bool raw;
    bool opened; /* by its operator: the schema is the operator's */
    struct ck_state_slot *next;
} ck_state_slot;

struct ck_state {
    ck_state_store *store;
    uint64_t op_id;
    const char *uid, *op_type;
    ck_state_slot *slots; /* in order of making */
    struct ck_state *next;
};

typedef struct ck_unresolved { /* a mark whose checkpoint is neither completed nor aborted */
    uint64_t checkpoint;
    uint32_t epoch;
} ck_unresolved;

struct ck_state_store {
    ck_state_config cfg;
    ck_mem mem;
    ck_arena arena; /* operators, slots, shapes */
    ck_page_pool pool;
    ck_epochs epochs;
    ck_epochs hidden_epochs; /* of tables that no mark sees: always epoch 1, never live */
    ck_state *ops;           /* in order of making */
    uint32_t slot_count;
    struct ck_state_mark *marks; /* live, newest first */
    uint32_t mark_count;
    uint32_t log_readers; /* marks whose deltas read the logs of erased keys */
    ck_unresolved unresolved[CK_MARKS_UNRESOLVED];
    uint32_t unresolved_count;
    uint64_t completed_checkpoint;
    ck_version_map versions; /* of slots that do not say themselves; the restore's and migration's */
    ck_cold *cold; /* NULL: no RocksDB */
    uint32_t put_count; /* by a restore */
    ck_state_slot *last_slot; /* of the restore: rows come slot by slot */
    uint64_t last_op;
    ck_view last_prefix;
};

/* The operator with this id, or NULL. */
ck_state *ck_state_find(ck_state_store *s, uint64_t op_id);
/* Made when missing; uid "" when it is not known yet. */
CK_NODISCARD ck_status ck_state_make(ck_state_store *s, uint64_t op_id, const char *uid, const char *op_type,
                                     ck_state **out, ck_error *err);
ck_state_slot *ck_slot_find(const ck_state *st, ck_view name);
CK_NODISCARD ck_status ck_slot_make(ck_state *st, const ck_slot_schema *schema, bool raw, ck_state_slot **out,
                                    ck_error *err);
/* What ck_slot_make does beside the table: keys of partitions, the name and its prefixes of stored keys. */
CK_NODISCARD ck_status ck_slot_add_partitions(ck_state_store *s, ck_state_slot *slot, ck_error *err);
CK_NODISCARD ck_status ck_state_slot_name(ck_state_store *s, ck_state_slot *slot, ck_error *err);
/* Whether equal fields are held another way, or live another time. */
bool ck_slot_found_otherwise(const ck_state_slot *slot, const ck_slot_schema *schema);
CK_NODISCARD ck_status ck_slot_agree(ck_mem mem, const char *uid, const ck_slot_schema *stored,
                                     const ck_slot_schema *wanted, ck_error *err);
/* All tables that hold rows, buckets included: fn for each. */
void ck_state_each_table(ck_state_store *s, void (*fn)(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t),
                         void *arg);
/* Borrowed rows are put back or kept, in every table; what could not be said is said. */
CK_NODISCARD ck_status ck_cold_settle_all(ck_state_store *s, ck_error *err);
static inline bool ck_one_byte_groups(uint32_t key_groups) { return key_groups <= 128; }

#endif
