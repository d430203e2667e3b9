/* What a sink does with rows that cannot be written - too large, refused by the other side, without a place in a
 * schema: the job fails, they are counted and left out, or they go to the table's dead_letter_table. Thread: the sink's
 * subtask. */
#ifndef CK_CONNECTOR_SINK_REJECTS_H
#define CK_CONNECTOR_SINK_REJECTS_H

#include "connector/dead_letters.h"
#include "connector/table.h"

typedef struct ck_sink_rejects {
    ck_on_error on_error;
    const char *where; /* "topic orders", "table \"hook\"": what a letter's split says; borrowed */
    ck_dead_letters letters;
} ck_sink_rejects;

/* Options on_error and dead_letter_table. CK_INVALID where they are not together. */
CK_NODISCARD ck_status ck_on_error_read(const ck_table_options *o, ck_on_error *out, const char **dead_letter_table,
                                        ck_error *err);

CK_NODISCARD ck_status ck_sink_rejects_init(ck_sink_rejects *r, ck_on_error on_error, const char *where, ck_arena *a,
                                            ck_mem mem, uint32_t batch_rows, ck_error *err);
void ck_sink_rejects_destroy(ck_sink_rejects *r); /* safe on zero */
/* A row, as bytes, and why it was not written. CK_OK: it is left out. CK_FULL: ck_sink_rejects_emit first. CK_DATA:
 * the job fails; *ctx->error says so. */
CK_NODISCARD ck_status ck_sink_reject(ck_sink_rejects *r, ck_view raw, const char *reason, ck_op_ctx *ctx);
/* Sends the letters so far. Before the barrier that passes their rows, and at the end. */
CK_NODISCARD ck_status ck_sink_rejects_emit(ck_sink_rejects *r, ck_op_ctx *ctx);

#endif
