/* The `kafka` source from the inside: its partitions, and what of them is under way. Thread: the subtask, but where it
 * says otherwise. */
#ifndef CK_CONNECTOR_KAFKA_SOURCE_INT_H
#define CK_CONNECTOR_KAFKA_SOURCE_INT_H

#include "connector/background.h"
#include "connector/dead_letters.h"
#include "connector/kafka/kafka_int.h"
#include "connector/kafka/metadata_int.h"
#include "connector/kafka/schemas_int.h"
#include "connector/kafka/unfit.h"

enum {
    CK_KAFKA_FETCH_RECORDS = 4096,               /* taken from the library at once */
    CK_KAFKA_LINES = 2 * CK_KAFKA_FETCH_RECORDS, /* they become: a change has a row before it and one after */
};

/* One owned partition. */
typedef struct ck_kafka_partition {
    struct ck_kafka_source *of;
    char *id;
    ck_kafka_split split;
    uint32_t clock; /* in event_time */
    bool finished, started, at_end;
    int64_t read_ms; /* when the newest record taken was written; -1: not known */
    _Atomic bool woken;
    /* taken and not copied yet */
    rd_kafka_message_t **records;
    size_t record_count, record_at;
    int64_t behind; /* offset behind the last that was copied or is no row: markers and tombstones, too */
    /* copied and not decoded yet: line i of the buffer ends at ends[i] and is of the record at offset offsets[i] */
    ck_buffer *buffer;
    size_t begin, end;
    size_t *ends;
    int64_t *offsets;
    size_t copied, decoded, taken; /* taken: of them in earlier batches */
    ck_kafka_beside *beside;       /* CK_KAFKA_LINES; NULL: nobody wants it */
    int8_t *weights;               /* CK_KAFKA_LINES; NULL: no changes */
    ck_bytes beside_text;
    ck_kafka_unfit unfit; /* lines of which no row can be made */
} ck_kafka_partition;

/* A look at how many partitions there are, on an I/O thread. */
typedef struct ck_kafka_discovery {
    ck_background call; /* first */
    struct ck_kafka_source *of;
    bool on;
    ck_kafka_share share;
    int64_t next_us;
    int32_t found; /* the call's while it runs */
} ck_kafka_discovery;

typedef struct ck_kafka_source {
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    ck_kafka_options options;
    bool is_csv;
    ck_decoder *decoder;
    ck_kafka_metadata metadata;
    ck_event_time event_time;
    ck_dead_letters letters;
    ck_kafka_client client;
    rd_kafka_topic_t *topic;
    ck_kafka_partition **partitions; /* in the arena */
    uint32_t count, capacity, turn;
    ck_kafka_partition *decoding;
    int64_t lag_next_us;
    ck_kafka_discovery discovery;
    ck_kafka_schemas schemas; /* avro, protobuf */
    ck_op_ctx *ctx;           /* also read by the library's threads, to wake */
    uint64_t bad_rows;
} ck_kafka_source;

/* A partition from its split's position on; one whose end it is at already is finished. */
CK_NODISCARD ck_status ck_kafka_source_add(ck_kafka_source *s, const char *id, const ck_kafka_split *split,
                                           ck_op_ctx *ctx);

/* ---- one partition (partition.c) ---- */

CK_NODISCARD ck_status ck_kafka_partition_start(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx);
void ck_kafka_partition_free(ck_kafka_source *s, ck_kafka_partition *p); /* what it holds */
/* With nothing left to decode: the values of the next records, in a new buffer. Never waits: there may be none. */
CK_NODISCARD ck_status ck_kafka_partition_fetch(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx);

/* ---- partitions that come later (discovery.c) ---- */

/* Begins a look where it is time, and takes in what one found. *until_us: when to come again, where that is earlier. */
CK_NODISCARD ck_status ck_kafka_discover(ck_kafka_source *s, int64_t now, int64_t *until_us, ck_op_ctx *ctx);

#endif
