/* The body of a mark. */
#ifndef CK_STATE_MARK_INT_H
#define CK_STATE_MARK_INT_H

#include "state/state_int.h"

/* A table as it was. Only immutable things of the table are behind `shape` and `slot`. */
typedef struct ck_frozen {
    uint32_t slot; /* number in the mark's slots; of raw tables UINT32_MAX */
    uint64_t op_id;
    const char *slot_name;
    const ck_shape *shape;
    bool raw;
    const ck_dir_root *pages, *vars;
    uint32_t page_count;
    const ck_log_chunk *log_first, *log_last; /* erased keys, by epoch; NULL: none */
    bool cold; /* rows of the slot may be in RocksDB */
    uint16_t cold_slot;
} ck_frozen;

struct ck_state_mark {
    ck_state_store *store;
    struct ck_state_mark *older, *newer; /* among the live */
    uint64_t checkpoint, parent;
    uint32_t epoch, completed; /* of this mark, and of the one deltas count from (0 = none) */
    uint32_t key_groups;
    bool aside; /* of no checkpoint */
    ck_retired_list retired;
    struct ck_state_mark *inherited; /* released newer marks, linked by `older`: what of theirs this one still sees */
    ck_frozen *tables;
    uint32_t table_count, table_capacity;
    ck_marked_slot *slots;
    uint32_t slot_count, slot_capacity;
    uint64_t rows, changed_rows;
    bool changed;
    const ck_rocks_snapshot *cold; /* NULL: all rows are in the tables */
};

#endif
