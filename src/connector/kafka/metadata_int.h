/* Columns that are not in a record's value but beside it: `off BIGINT METADATA FROM 'offset'`. The table says them as
 * options metadata.<column> = 'offset'. */
#ifndef CK_CONNECTOR_KAFKA_METADATA_INT_H
#define CK_CONNECTOR_KAFKA_METADATA_INT_H

#include "connector/kafka/kafka_int.h"

typedef enum ck_kafka_meta {
    CK_KAFKA_META_NONE,
    CK_KAFKA_META_KEY,
    CK_KAFKA_META_HEADERS,
    CK_KAFKA_META_TIMESTAMP,
    CK_KAFKA_META_PARTITION,
    CK_KAFKA_META_OFFSET,
    CK_KAFKA_META_TOPIC
} ck_kafka_meta;

/* What a table has of them. */
typedef struct ck_kafka_metadata {
    bool any;
    bool keys, headers;      /* wanted: kept when a record is copied */
    bool text_keys;          /* a column says that keys are texts */
    bool times;              /* a column says that a record's time is a timestamp */
    ck_kafka_meta *kinds;    /* a table column each */
    const ck_schema *values; /* the columns of the value, in order: what the decoder is given */
    uint32_t *places;        /* table column of each */
    bool *wanted, *checked;  /* of them */
} ck_kafka_metadata;

CK_NODISCARD ck_status ck_kafka_metadata_check(const ck_table_decl *t, bool changelog, ck_error *err);
CK_NODISCARD ck_status ck_kafka_metadata_read(ck_arena *a, const ck_source_table *t, ck_kafka_metadata *out,
                                              ck_error *err);

/* What is kept of a record beside its value. */
typedef struct ck_kafka_beside {
    int64_t time_ms, offset; /* time -1: none */
    uint32_t key_at, key_n;  /* in `text`; key_n UINT32_MAX: there is none */
    uint32_t headers_at, header_count;
} ck_kafka_beside;
/* Whether the key is what a column of the table says, wanted or not: a text. */
bool ck_kafka_key_is_text(const ck_kafka_metadata *m, const rd_kafka_message_t *msg);
/* The same of its time: of the years that timestamps have. Its writer can say any number. */
bool ck_kafka_time_is_one(const ck_kafka_metadata *m, const ck_kafka_lib *lib, const rd_kafka_message_t *msg);
/* Appends key and headers to text, as wanted. */
CK_NODISCARD ck_status ck_kafka_beside_take(const ck_kafka_metadata *m, const ck_kafka_lib *lib,
                                            const rd_kafka_message_t *msg, ck_bytes *text, ck_kafka_beside *out);

/* A batch of the table's columns from one of the value's columns; row i of it is of record rows[i] (NULL where the
 * table has no metadata) and weighs weights[i] (NULL: +1). */
CK_NODISCARD ck_status ck_kafka_metadata_add(const ck_kafka_metadata *m, const ck_source_table *t,
                                             const ck_kafka_split *split, const ck_batch *values,
                                             const ck_kafka_beside *const *rows, const int8_t *weights,
                                             const ck_bytes *text, ck_mem mem, ck_batch **out, ck_error *err);

#endif
