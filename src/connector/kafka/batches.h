/* Record batches as brokers keep and send them (format 2), one after the other, and the records in them.
 *
 *   i64 first offset | i32 bytes behind this field | i32 leader epoch | i8 2 | u32 CRC-32C | i16 attributes
 *   | i32 last offset - first | i64 first time | i64 greatest time | i64 producer | i16 its epoch | i32 its sequence
 *   | i32 records
 * attributes: 0-2 codec, 3 the time is the broker's: the greatest, 5 a mark of a transaction, no records. Behind this
 * head, compressed as a whole, each record: its bytes, then
 *   i8 0 | time - first | offset - first | key bytes, key | value bytes, value | headers, each: name bytes, name, value
 *   bytes, value
 * where numbers are zigzag varints and -1 bytes stand for none. All else is big-endian. */
#ifndef CK_CONNECTOR_KAFKA_BATCHES_H
#define CK_CONNECTOR_KAFKA_BATCHES_H

#include "base/cursor.h"
#include "connector/kafka/record.h"
#include "connector/kafka/unpack.h"

enum { CK_KAFKA_BATCH_HEAD_BYTES = 61 };

/* Reads the batches of one answer. One thread at a time. */
typedef struct ck_kafka_batches {
    ck_bytes unpacked; /* records of the batch at hand, when they were compressed */
    ck_cursor left;    /* batches that are not begun */
    ck_cursor records;
    uint32_t record_count;
    int64_t first_offset, first_ms, broker_ms;
    bool broker_time;
} ck_kafka_batches;

void ck_kafka_batches_init(ck_kafka_batches *b, ck_mem mem);
void ck_kafka_batches_destroy(ck_kafka_batches *b); /* safe on zero */
/* bytes stay until all of them are read or others are given. */
void ck_kafka_batches_give(ck_kafka_batches *b, ck_view bytes);
/* The next record. CK_NOTFOUND: there is none any more; a last batch that is cut is none. CK_CORRUPT, CK_REFUSED (a
 * codec or format that is not read here), CK_FULL (too large), CK_NOMEM. */
CK_NODISCARD ck_status ck_kafka_batches_next(ck_kafka_batches *b, ck_kafka_unpacker *u, ck_kafka_record *out);

/* A batch is begun, and more of its records come. */
static inline bool ck_kafka_batches_are_open(const ck_kafka_batches *b) { return b->record_count > 0; }

/* The offset behind the last whole batch; begin where there is none. */
int64_t ck_kafka_batches_end(ck_view bytes, int64_t begin);

/* The next of a record's headers; *left is their bytes, and the value's p is NULL where it has none. */
CK_NODISCARD bool ck_kafka_header_next(ck_cursor *left, ck_view *name, ck_view *value);

#endif
