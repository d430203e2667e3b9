/* A schema registry that speaks Confluent's protocol, and what a topic's records carry of it: a zero byte, the schema's
 * number, for protobuf which of its messages. Blocks: for enumerate, look and I/O jobs. */
#ifndef CK_CONNECTOR_KAFKA_REGISTRY_H
#define CK_CONNECTOR_KAFKA_REGISTRY_H

#include "net/http_client.h"
#include "connector/table.h"
#include "format/message.h"

typedef struct ck_registry_options {
    ck_message_format format;
    const char *url; /* NULL: records have no schema of their own */
    const char *topic;
    const char *subject;                      /* NULL: the topic's, "<topic>-value" */
    const char *message;                      /* protobuf: NULL: the first */
    const char *user, *password, *token, *ca; /* as written */
    int64_t timeout_ms, retry_ms;             /* of an answer; while a job runs, of a registry that is away */
} ck_registry_options;

/* format: of the table. */
CK_NODISCARD ck_status ck_registry_options_read(const ck_table_options *o, const char *format, const char *topic,
                                                ck_registry_options *out, ck_error *err);

typedef struct ck_registry {
    ck_http_client http;
    ck_http_request request;
    const ck_registry_options *options;
    const char *subject;
    ck_arena *a; /* of everything that is made */
} ck_registry;

CK_NODISCARD ck_status ck_registry_open(ck_registry *r, ck_proc *proc, const ck_registry_options *o, ck_arena *a,
                                        ck_error *err);
void ck_registry_close(ck_registry *r); /* safe on zero */

/* CK_NOTFOUND: there is none. CK_REFUSED: not for us. CK_IO: it does not answer, or not well; err->retriable says
 * whether waiting may help. CK_DATA: it is no schema of the format. */
CK_NODISCARD ck_status ck_registry_latest(ck_registry *r, uint32_t *id, const ck_message_schema **out, ck_error *err);
CK_NODISCARD ck_status ck_registry_by_id(ck_registry *r, uint32_t id, const ck_message_schema **out, ck_error *err);
/* The table's own schema becomes the subject's. */
CK_NODISCARD ck_status ck_registry_add(ck_registry *r, const ck_schema *table, uint32_t *id,
                                       const ck_message_schema **out, ck_error *err);

/* Before a job runs: whether the subject's schema has what the table reads. */
CK_NODISCARD ck_status ck_registry_check_source(ck_proc *proc, const ck_registry_options *o, const ck_schema *table,
                                                ck_error *err);
/* How rows are written, and the bytes before each record: by the subject's schema, which is the table's where there was
 * none. */
CK_NODISCARD ck_status ck_registry_writer(ck_proc *proc, const ck_registry_options *o, const ck_schema *table,
                                          ck_arena *a, const ck_message_writer **out, ck_view *head, ck_error *err);

/* ---- what stands before a message ---- */

typedef struct ck_registry_head {
    uint32_t id;
    ck_message_path path; /* protobuf */
    uint32_t bytes;
} ck_registry_head;
/* NULL, or why this is none. */
const char *ck_registry_head_read(ck_message_format format, ck_view record, ck_registry_head *out);
CK_NODISCARD ck_status ck_registry_head_write(ck_message_format format, uint32_t id, const ck_message_path *path,
                                              ck_bytes *out);

#endif
