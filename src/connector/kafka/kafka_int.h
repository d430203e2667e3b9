/* The Kafka connector from the inside: the library's functions, options, the client, splits. */
#ifndef CK_CONNECTOR_KAFKA_KAFKA_INT_H
#define CK_CONNECTOR_KAFKA_KAFKA_INT_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include "connector/kafka/registry.h"
#include "connector/table.h"
#include "format/decoder.h"
#include "format/encoder.h"
#include "os/io.h"
#include "os/modules.h"

/* ---- the library, opened on first use ---- */

#define CK_KAFKA_FUNCTIONS(X)                                                                                          \
    X(rd_kafka_conf_new)                                                                                               \
    X(rd_kafka_conf_destroy)                                                                                           \
    X(rd_kafka_conf_set)                                                                                               \
    X(rd_kafka_conf_set_opaque)                                                                                        \
    X(rd_kafka_conf_set_error_cb)                                                                                      \
    X(rd_kafka_conf_set_log_cb)                                                                                        \
    X(rd_kafka_conf_set_dr_msg_cb)                                                                                     \
    X(rd_kafka_new)                                                                                                    \
    X(rd_kafka_destroy)                                                                                                \
    X(rd_kafka_poll)                                                                                                   \
    X(rd_kafka_outq_len)                                                                                               \
    X(rd_kafka_flush)                                                                                                  \
    X(rd_kafka_purge)                                                                                                  \
    X(rd_kafka_err2str)                                                                                                \
    X(rd_kafka_err2name)                                                                                               \
    X(rd_kafka_last_error)                                                                                             \
    X(rd_kafka_metadata)                                                                                               \
    X(rd_kafka_metadata_destroy)                                                                                       \
    X(rd_kafka_query_watermark_offsets)                                                                                \
    X(rd_kafka_get_watermark_offsets)                                                                                  \
    X(rd_kafka_offsets_for_times)                                                                                      \
    X(rd_kafka_committed)                                                                                              \
    X(rd_kafka_topic_partition_list_new)                                                                               \
    X(rd_kafka_topic_partition_list_add)                                                                               \
    X(rd_kafka_topic_partition_list_destroy)                                                                           \
    X(rd_kafka_topic_new)                                                                                              \
    X(rd_kafka_topic_destroy)                                                                                          \
    X(rd_kafka_consume_start)                                                                                          \
    X(rd_kafka_consume_batch)                                                                                          \
    X(rd_kafka_message_destroy)                                                                                        \
    X(rd_kafka_message_errstr)                                                                                         \
    X(rd_kafka_message_timestamp)                                                                                      \
    X(rd_kafka_message_headers)                                                                                        \
    X(rd_kafka_header_get_all)                                                                                         \
    X(rd_kafka_queue_get_partition)                                                                                    \
    X(rd_kafka_queue_destroy)                                                                                          \
    X(rd_kafka_queue_cb_event_enable)                                                                                  \
    X(rd_kafka_produceva)                                                                                              \
    X(rd_kafka_error_code)                                                                                             \
    X(rd_kafka_error_string)                                                                                           \
    X(rd_kafka_error_destroy)                                                                                          \
    X(rd_kafka_init_transactions)                                                                                      \
    X(rd_kafka_begin_transaction)                                                                                      \
    X(rd_kafka_commit_transaction)                                                                                     \
    X(rd_kafka_abort_transaction)                                                                                      \
    X(rd_kafka_consume)                                                                                                \
    X(rd_kafka_queue_new)                                                                                              \
    X(rd_kafka_queue_poll)                                                                                             \
    X(rd_kafka_event_CreateTopics_result)                                                                              \
    X(rd_kafka_event_error)                                                                                            \
    X(rd_kafka_event_destroy)                                                                                          \
    X(rd_kafka_CreateTopics)                                                                                           \
    X(rd_kafka_CreateTopics_result_topics)                                                                             \
    X(rd_kafka_topic_result_error)                                                                                     \
    X(rd_kafka_NewTopic_new)                                                                                           \
    X(rd_kafka_NewTopic_set_config)                                                                                    \
    X(rd_kafka_NewTopic_destroy)                                                                                       \
    X(rd_kafka_DescribeConfigs)                                                                                        \
    X(rd_kafka_event_DescribeConfigs_result)                                                                           \
    X(rd_kafka_DescribeConfigs_result_resources)                                                                       \
    X(rd_kafka_ConfigResource_new)                                                                                     \
    X(rd_kafka_ConfigResource_destroy)                                                                                 \
    X(rd_kafka_ConfigResource_error)                                                                                   \
    X(rd_kafka_ConfigResource_configs)                                                                                 \
    X(rd_kafka_ConfigEntry_name)                                                                                       \
    X(rd_kafka_ConfigEntry_value)

typedef struct ck_kafka_lib {
    CK_MODULE_TABLE(CK_KAFKA_FUNCTIONS)
} ck_kafka_lib;

/* ---- options (options.c) ---- */

typedef enum ck_kafka_start {
    CK_KAFKA_EARLIEST,
    CK_KAFKA_LATEST,
    CK_KAFKA_GROUP_OFFSETS,
    CK_KAFKA_TIMESTAMP,
    CK_KAFKA_OFFSETS
} ck_kafka_start;

typedef struct ck_kafka_options {
    const char *brokers, *topic, *format; /* format: of a row */
    bool changelog;                       /* reading: records are changes in Debezium's envelope */
    ck_registry_options registry;
    const char *group; /* NULL: none; only its committed offsets are read */
    int64_t timeout_ms;
    /* reading */
    ck_kafka_start start;
    int64_t start_ms;          /* with TIMESTAMP */
    const char *start_offsets; /* with OFFSETS: "0:42,1:7" */
    bool bounded;              /* up to what is there at the start */
    bool strict;
    ck_on_error on_error;
    bool on_error_is_given;
    const char *dead_letter_table;
    int64_t discover_ms; /* how often to look for new partitions; 0: never */
    /* writing */
    const char *key; /* NULL: the primary key, or none */
    bool raw_key;    /* one column's bytes, not JSON */
    bool exactly_once;
    const char *token_topic; /* exactly once: where it is noted what is committed */
    int64_t transaction_ms;  /* exactly once: how long one may take */
    const ck_table_options *all;
} ck_kafka_options;
CK_NODISCARD ck_status ck_kafka_options_read(const ck_table_options *o, ck_kafka_options *out, ck_error *err);
/* The largest record - key and value - that the client takes. */
CK_NODISCARD ck_status ck_kafka_record_bytes_max(const ck_table_options *o, size_t *out, ck_error *err);
/* The offset "0:42,1:7" gives partition; -1: it does not name it. CK_INVALID where it is no such list. */
CK_NODISCARD ck_status ck_kafka_offset_of(const char *list, int32_t partition, int64_t *out, ck_error *err);
/* The greatest partition that a list ck_kafka_offset_of has passed names. */
int64_t ck_kafka_partition_max(const char *list);

/* Options of a table that is written, together. */
CK_NODISCARD ck_status ck_kafka_sink_check(const ck_table_decl *t, const ck_kafka_options *o, ck_error *err);

/* ---- a client (client.c) ---- */

/* A consumer or producer and the last thing that went wrong on a connection. Lives where it was made; several threads
 * may call the library on it. */
typedef struct ck_kafka_client {
    ck_proc *proc;
    const ck_kafka_lib *lib;
    rd_kafka_t *rk;
    pthread_mutex_t lock;
    char trouble[256]; /* guarded by lock; "" = none */
    bool hopeless;     /* guarded by lock: trouble does not go away by waiting (authentication, no such topic) */
    bool locked;       /* lock is made */
    void *opaque;
    void (*delivered)(void *opaque, const rd_kafka_message_t *m); /* producers; called from rd_kafka_poll */
} ck_kafka_client;

/* pairs: names and values, NULL at the end; the table's `properties.*` come after them and win, except where they would
 * break a promise (CK_INVALID). */
CK_NODISCARD ck_status ck_kafka_client_new(ck_proc *proc, const ck_kafka_options *o, rd_kafka_type_t type,
                                           const char *const *pairs, ck_arena *a, ck_kafka_client *out, ck_error *err);
void ck_kafka_client_destroy(ck_kafka_client *c); /* safe on zero; may wait for the library's threads */
/* Waits for the topic's partitions up to the timeout. Blocks. CK_NOTFOUND: there is no such topic. CK_IO: nobody
 * answers, or not us. *partitions: their number, from 0 on. */
CK_NODISCARD ck_status ck_kafka_partitions(ck_kafka_client *c, const ck_kafka_options *o, int32_t *partitions,
                                           ck_error *err);
/* "...: reason" of what a call answered, with what connections said last. */
ck_status ck_kafka_fail(ck_kafka_client *c, rd_kafka_resp_err_t code, ck_error *err, const char *fmt, ...)
    CK_PRINTF(4, 5);
/* CK_OK, or the sentence of a trouble that waiting does not cure. */
CK_NODISCARD ck_status ck_kafka_hopeless(ck_kafka_client *c, const ck_kafka_options *o, ck_error *err);

/* ---- keys of records that are written (key.c) ---- */

typedef struct ck_kafka_key {
    ck_mem mem;
    const uint32_t *columns; /* of the table */
    uint32_t count;          /* 0: records have no key */
    bool raw;
    const ck_type *type; /* of the first */
    ck_encoder *encoder;
    ck_bytes text; /* of the batch in hand */
    size_t *ends;  /* CK_BATCH_ROWS_MAX */
} ck_kafka_key;
/* What 'key', 'key.format' and the PRIMARY KEY say together. */
CK_NODISCARD ck_status ck_kafka_key_check(const ck_table_decl *t, const ck_kafka_options *o, ck_error *err);
CK_NODISCARD ck_status ck_kafka_key_init(ck_kafka_key *k, const ck_kafka_options *o, const ck_sink_table *t,
                                         ck_arena *a, ck_mem mem, ck_error *err);
void ck_kafka_key_destroy(ck_kafka_key *k); /* safe on zero */
/* Of the batch's live rows. kinds: as ck_encoder_rows'. CK_NOMEM. */
CK_NODISCARD ck_status ck_kafka_key_encode(ck_kafka_key *k, const ck_batch *b, const uint8_t *kinds);
ck_view ck_kafka_key_of(const ck_kafka_key *k, uint32_t i); /* of live row i; p NULL: it has none */

/* ---- how large a record may be (limits.c) ---- */

/* The topic's max.message.bytes; SIZE_MAX where it is not told (the right to describe it may be missing) or records are
 * compressed. Blocks. */
CK_NODISCARD ck_status ck_kafka_topic_bytes_max(ck_proc *proc, const ck_kafka_options *o, ck_arena *a, size_t *out,
                                                ck_error *err);
/* Of a batch with this record alone: what the topic's limit is compared with. */
size_t ck_kafka_batch_bytes(ck_view key, ck_view value);
/* The client's batch.size that stays below it. */
const char *ck_kafka_batch_size(size_t topic_bytes_max, char out[24]);

/* ---- committing exactly once (committer.c, transaction.c, tokens.c) ---- */

extern const ck_committer_vtbl ck_kafka_committer_vtbl;
CK_NODISCARD ck_status ck_kafka_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);

/* ---- splits (splits.c) ---- */

/* One partition from an offset on. As JSON in ck_split.spec; id "<topic>-<partition>". */
typedef struct ck_kafka_split {
    const char *topic;
    int32_t partition;
    int64_t position; /* offset of the next record not yet emitted */
    int64_t end;      /* bounded: where it is finished; INT64_MAX: never */
    int64_t time_us;  /* the greatest event time before position; INT64_MIN: none */
    bool half;        /* of the record at position, an update, the row before it is emitted already */
} ck_kafka_split;
CK_NODISCARD ck_status ck_kafka_split_print(ck_arena *a, const ck_kafka_split *s, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_kafka_split_parse(ck_arena *a, const char *spec, ck_kafka_split *out, ck_error *err);
/* What a subtask must know to find partitions that come later: those from `known` on are new, and it takes every
 * of-th. Dealt like a split, one a subtask, and not stored: a restore counts anew. */
typedef struct ck_kafka_share {
    int32_t known;
    uint32_t of, turn;
} ck_kafka_share;
/* CK_NOTFOUND: the spec is a partition's. */
CK_NODISCARD ck_status ck_kafka_share_parse(ck_arena *a, const char *spec, ck_kafka_share *out, ck_error *err);
CK_NODISCARD ck_status ck_kafka_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out,
                                          ck_error *err);

#endif
