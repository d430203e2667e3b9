/* The one request our own fetching makes of a broker, and its answer: Fetch, version 10, of brokers from 2.1 on. Bytes
 * only; all numbers are big-endian.
 *
 *   request: i32 bytes | i16 1 | i16 10 | i32 number of the request | str client | i32 -1 | i32 wait ms | i32 bytes min
 *            | i32 bytes max | i8 1: committed only | i32 0 | i32 -1 | i32 1 | str topic | i32 partitions
 *            | each: i32 partition, i32 -1, i64 offset, i64 -1, i32 bytes max | i32 0
 *   answer:  i32 bytes | i32 number of the request | i32 throttled ms | i16 error | i32 session | i32 topics
 *            | each: str topic | i32 partitions | each: i32 partition, i16 error, i64 high watermark, i64 last stable
 *            offset, i64 first offset, i32 aborted transactions (-1: none) of i64 producer and i64 offset, i32 bytes,
 *            record batches
 * str: i16 bytes. */
#ifndef CK_CONNECTOR_KAFKA_FETCH_H
#define CK_CONNECTOR_KAFKA_FETCH_H

#include "base/bytes.h"
#include "base/cursor.h"

typedef struct ck_kafka_fetch_limits {
    uint32_t wait_ms, bytes_max, partition_bytes_max; /* the first batch comes, however large it is */
} ck_kafka_fetch_limits;

/* A request: begun, a partition each, then ended. out is cleared first. CK_NOMEM, CK_FULL. */
CK_NODISCARD ck_status ck_kafka_fetch_begin(ck_bytes *out, uint32_t number, const ck_kafka_fetch_limits *l,
                                            const char *topic, uint32_t partitions);
CK_NODISCARD ck_status ck_kafka_fetch_partition(ck_bytes *out, const ck_kafka_fetch_limits *l, int32_t partition,
                                                int64_t offset);
CK_NODISCARD ck_status ck_kafka_fetch_end(ck_bytes *out);

/* An answer behind its number of bytes. */
typedef struct ck_kafka_answer {
    ck_cursor left;
    uint32_t topics, partitions;
} ck_kafka_answer;
typedef struct ck_kafka_answer_part {
    int32_t partition;
    int16_t error;        /* Kafka's */
    int64_t high, stable; /* -1: not known */
    bool aborted;         /* transactions that were, among the batches */
    ck_view batches;
} ck_kafka_answer_part;
/* *error: of the whole. false: it is no answer to the request of this number. */
CK_NODISCARD bool ck_kafka_answer_open(ck_kafka_answer *a, ck_view bytes, uint32_t number, int16_t *error);
/* CK_NOTFOUND: that was all. CK_CORRUPT. */
CK_NODISCARD ck_status ck_kafka_answer_next(ck_kafka_answer *a, ck_kafka_answer_part *out);

#endif
