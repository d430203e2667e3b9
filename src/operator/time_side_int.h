/* One input of a join in time: its rows of a key in the order of their event time, so that partners are a range and
 * what nobody can meet any more is a range too. Interval joins have two of them, temporal joins one of rows that wait
 * and one of versions. */
#ifndef CK_OPERATOR_TIME_SIDE_INT_H
#define CK_OPERATOR_TIME_SIDE_INT_H

#include "expr/program.h"
#include "operator/partition_timers_int.h"
#include "operator/window_int.h"

struct yyjson_val;

#define CK_TIME_SIDE_NOT_KEPT UINT32_MAX
enum { CK_TIME_KEY_BYTES = 2 * CK_INSTANT_KEY_BYTES };

typedef struct ck_time_side {
    const ck_schema *schema;
    ck_key_spec keys;
    ck_window time;     /* its time and millis alone */
    bool *unread;       /* by column: nobody looks at it behind the join, so it is not kept */
    uint32_t *field_of; /* column -> field of the table, CK_TIME_SIDE_NOT_KEPT */
    uint32_t value_count;
    uint32_t *value_columns; /* columns that are stored as values */
    bool flagged;            /* rows carry whether they have met a partner */
    uint32_t flag_at;        /* offset in its rows */
    ck_slot_schema slot;
    ck_table *table;
    uint32_t time_at, seq_at; /* offsets in its rows */
    ck_partition_timers timers;
    int64_t reach_us; /* a row has partners up to its time + reach */
} ck_time_side;

/* Columns of one input by number, in an array of the parameters. */
CK_NODISCARD ck_status ck_time_side_columns(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root,
                                            const char *member, const ck_schema *s, uint32_t **out, uint32_t *count,
                                            ck_error *err);
/* Array "member" of columns that are not kept, where it is there; before the plan. */
CK_NODISCARD ck_status ck_time_side_unread(ck_arena *a, ck_time_side *s, const ck_op_spec *spec,
                                           struct yyjson_val *root, const char *member, ck_error *err);
/* Keys and time of an input (time_member NULL: it has none). The caller has set schema and flagged; name: of the slot.
 */
CK_NODISCARD ck_status ck_time_side_plan(ck_arena *a, ck_time_side *s, const ck_op_spec *spec, struct yyjson_val *root,
                                         const char *keys_member, const char *time_member, const char *name,
                                         const char *state_type, ck_error *err);
CK_NODISCARD ck_status ck_time_side_check(const ck_time_side *left, const ck_time_side *right, const ck_op_spec *spec,
                                          bool left_only, ck_error *err);
/* The residual over left then right columns, compiled; *eval NULL: there is none. uses: by column, where not NULL. */
CK_NODISCARD ck_status ck_time_side_residual(ck_arena *a, ck_mem mem, const ck_op_spec *spec, struct yyjson_val *root,
                                             const ck_schema *left, const ck_schema *right, ck_eval **eval,
                                             uint8_t *uses, ck_error *err);
/* Opens the table, sets a timer for the first row of each key, raises *next_seq past all rows. */
CK_NODISCARD ck_status ck_time_side_open(ck_time_side *s, ck_partition *room, int64_t *next_seq, ck_op_ctx *ctx);

ck_view ck_time_key(int64_t time_us, int64_t seq, char out[CK_TIME_KEY_BYTES]);
/* The partition is due when time comes to `time_us` + reach. */
CK_NODISCARD ck_status ck_time_side_timer(ck_time_side *s, ck_partition p, int64_t time_us, ck_op_ctx *ctx);
/* Keeps row `at` of a batch with time `us` in partition p. */
CK_NODISCARD ck_status ck_time_side_keep(ck_time_side *s, ck_partition p, const ck_batch *b, uint32_t at, int64_t us,
                                         int64_t seq, bool flag, ck_op_ctx *ctx);
/* Erases the rows of p that are before the key `hi`, and looks at it again when the next one is due. */
CK_NODISCARD ck_status ck_time_side_erase_before(ck_time_side *s, ck_partition p, ck_view hi, ck_op_ctx *ctx);
/* Partitions of the live rows of b, made where there are none if create; hashes: room for as many. */
CK_NODISCARD ck_status ck_time_side_partitions(ck_time_side *s, const ck_key_spec *keys, const ck_batch *b, bool create,
                                               uint64_t *hashes, ck_partition *out, ck_op_ctx *ctx);
static inline bool ck_time_side_null_key(const ck_key_spec *keys, const ck_batch *b, uint32_t row) {
    for (uint32_t i = 0; i < keys->count; i++)
        if (ck_column_is_null(b->columns[keys->columns[i]], row)) return true;
    return false;
}
/* Column c of n rows of the table; something of its type where it is not kept. */
CK_NODISCARD ck_status ck_time_side_column(const ck_time_side *s, uint32_t c, ck_row *const *rows, uint32_t n,
                                           ck_column **out, ck_op_ctx *ctx);
/* All columns of n rows of the table (NULL: NULLs) as columns first ... of out. */
CK_NODISCARD ck_status ck_time_side_gather(const ck_time_side *s, ck_row *const *rows, uint32_t n, ck_batch *out,
                                           uint32_t first, ck_op_ctx *ctx);
/* Columns of NULLs of a schema. */
CK_NODISCARD ck_status ck_time_side_nulls(const ck_schema *schema, ck_batch *out, uint32_t first, ck_op_ctx *ctx);
/* Rows sel[0..n) of b beside NULLs of the other side, or alone (other NULL), on port 0. */
CK_NODISCARD ck_status ck_time_side_pad(const ck_batch *b, const uint16_t *sel, uint32_t n, const ck_schema *other,
                                        bool other_first, ck_op_ctx *ctx);

#endif
