/* What the planner hands to a source or a sink of a table: names, schema, columns, resolved options (operator/README.md
 * fixes the JSON), and how single options are read. Everything lives in the arena given. */
#ifndef CK_CONNECTOR_TABLE_H
#define CK_CONNECTOR_TABLE_H

#include "connector/event_time.h"

struct yyjson_val;

typedef struct ck_source_table {
    const char *table;
    const ck_schema *schema; /* all physical columns of the table */
    const uint32_t *columns; /* table column of each output column */
    uint32_t column_count;
    const bool *wanted; /* a table column each */
    const bool *checked;
    ck_table_options options;
    const ck_event_time_spec *event_time; /* NULL: none; the columns its expression reads are wanted */
} ck_source_table;

typedef struct ck_sink_table {
    const char *table; /* NULL: a result, not a table */
    const ck_schema *schema;
    const uint32_t *key; /* primary key, columns of the input; NULL: none; of a result that is one row, of no columns */
    uint32_t key_count;
    ck_table_options options;
} ck_sink_table;

/* ck_op_desc.again of sources whose rows stay as they are: unless what is asked of them changes, or
 * is asked for by a name that they had not. */
CK_NODISCARD ck_status ck_source_again(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err);
CK_NODISCARD ck_status ck_source_table_read(ck_arena *a, const ck_op_spec *spec, ck_source_table *out, ck_error *err);
/* root (optional) gets the whole object, for members that are one sink's own. */
CK_NODISCARD ck_status ck_sink_table_read(ck_arena *a, const ck_op_spec *spec, ck_sink_table *out,
                                          struct yyjson_val **root, ck_error *err);
/* CK_DATA where a row that is put gives NULL to a NOT NULL column of the table: whoever reads it, and the planner,
 * trust that. */
CK_NODISCARD ck_status ck_sink_check_nulls(const ck_sink_table *t, const ck_batch *b, ck_error *err);
/* The output batch of a source: b's table columns in the order asked for. NULL without memory. */
ck_batch *ck_source_output(const ck_source_table *t, const ck_batch *b);
/* Whether the job goes on without this record: decoders say nothing about it, and ck_source_emit drops its row. */
bool ck_source_skips(const ck_op_ctx *ctx, const char *object, uint64_t offset);
/* Emits *b, `rows` rows of the table's columns that split `clock` brought: their times are seen, `rows_in` counted, how
 * far event time has come said. Takes *b; NULL: there was no memory for it. */
CK_NODISCARD ck_status ck_source_emit(const ck_source_table *t, ck_event_time *times, uint32_t clock, ck_batch **b,
                                      uint32_t rows, ck_op_ctx *ctx);

/* Option values; the default where the option is absent. Bad values are CK_INVALID with name, value and what is wanted.
 */
const char *ck_option_text(const ck_table_options *o, const char *name, const char *deflt);
CK_NODISCARD ck_status ck_option_bool(const ck_table_options *o, const char *name, bool deflt, bool *out,
                                      ck_error *err);
CK_NODISCARD ck_status ck_option_i64(const ck_table_options *o, const char *name, int64_t deflt, int64_t lo, int64_t hi,
                                     int64_t *out, ck_error *err);
CK_NODISCARD ck_status ck_option_f64(const ck_table_options *o, const char *name, double deflt, double *out,
                                     ck_error *err);

#endif
