/* The schemas that records of a topic name, as a subtask of the source knows them: each is asked for once, on an I/O
 * thread, when the first record has its number. Thread: the source's step. */
#ifndef CK_CONNECTOR_KAFKA_SCHEMAS_INT_H
#define CK_CONNECTOR_KAFKA_SCHEMAS_INT_H

#include "connector/background.h"
#include "connector/kafka/registry.h"

struct ck_kafka_schema;

typedef struct ck_kafka_schemas {
    ck_background call; /* first */
    ck_proc *proc;
    const ck_registry_options *options;
    const ck_schema *table; /* what values are read as */
    ck_decoder *decoder;
    ck_arena arena;
    struct ck_kafka_schema *known; /* the one used last first */
    uint32_t count;
    uint32_t no_head; /* the decoder's number of records that name no schema */
    bool waiting;     /* the record at hand needs one that is being asked for */
    /* a question; the job's while one runs */
    uint32_t id;
    ck_arena job_arena; /* of schemas */
    ck_registry registry;
    bool is_open;
    int64_t failing_since_us, pause_ms;
    const ck_message_schema *found;
} ck_kafka_schemas;

/* Everything is borrowed. */
CK_NODISCARD ck_status ck_kafka_schemas_init(ck_kafka_schemas *s, ck_proc *proc, ck_mem mem,
                                             const ck_registry_options *o, const ck_schema *table, ck_decoder *d,
                                             ck_error *err);
void ck_kafka_schemas_destroy(ck_kafka_schemas *s); /* safe on zero; no job is under way */
/* The frame of a record. CK_AGAIN: after a wake. */
CK_NODISCARD ck_status ck_kafka_schemas_frame(ck_kafka_schemas *s, ck_view record, ck_message_frame *out,
                                              ck_op_ctx *ctx);

#endif
