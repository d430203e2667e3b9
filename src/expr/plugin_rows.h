/* Rows that a plugin adds to an emitter (clink/plugin.h), column by column, until they are a batch. */
#ifndef CK_EXPR_PLUGIN_ROWS_H
#define CK_EXPR_PLUGIN_ROWS_H

#include "base/arena.h"
#include "expr/plugin_column.h"

/* Embedded by its owner; zero is empty and may be destroyed. One thread at a time. */
typedef struct ck_plugin_rows {
    clink_emitter face; /* its `inside` is the owner's */
    ck_mem mem;
    const ck_schema *schema;
    const clink_engine_table *engine;
    ck_plugin_writer *writers;
    clink_writer **columns;
    bool open;
} ck_plugin_rows;

/* schema and engine outlive it. CK_NOMEM. */
CK_NODISCARD ck_status ck_plugin_rows_init(ck_plugin_rows *r, ck_arena *a, ck_mem mem, const ck_schema *schema,
                                           const clink_engine_table *engine, void *inside);
/* Ready for so many rows, none of which is there yet. CK_NOMEM. */
CK_NODISCARD ck_status ck_plugin_rows_open(ck_plugin_rows *r, uint32_t capacity);
/* What was added since then; NULL where there is none. It is empty and not open afterwards. What a column does not
 * allow is a sentence of CK_DATA to be put behind the plugin's name: "emitted NULL, ...". */
CK_NODISCARD ck_status ck_plugin_rows_take(ck_plugin_rows *r, ck_batch **out, ck_error *err);
void ck_plugin_rows_drop(ck_plugin_rows *r);

#endif
