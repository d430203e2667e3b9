/* Partitions fetched by ourselves, from a connection to each broker that leads some, on one thread: for brokers that
 * are spoken to in the clear. The library stays who knows the brokers, and reads on whatever is not as it mostly is: an
 * error of a partition, batches of a format or codec that is not read here. Why not leave it all to the library: it
 * makes each record an object, handed from thread to thread, which costs three times what reading it does
 * (docs/decisions). */
#ifndef CK_CONNECTOR_KAFKA_FETCHER_H
#define CK_CONNECTOR_KAFKA_FETCHER_H

#include "connector/kafka/kafka_int.h"
#include "stream/operator.h"

/* Batches of one partition out of an answer. */
typedef struct ck_kafka_chunk {
    struct ck_kafka_chunk *next;
    struct ck_kafka_response *of;
    ck_view batches;
    int64_t end; /* offset behind them */
} ck_kafka_chunk;

/* A partition that is fetched. Embedded by its owner, who keeps it until the fetcher is freed; all of it is guarded by
 * the fetcher's lock. */
typedef struct ck_kafka_feed {
    int32_t partition, leader; /* leader -1: to be asked for */
    int64_t next, end;         /* offset to be asked for; the one to stop at */
    int64_t high;              /* the partition's, when it was fetched last; -1: not yet */
    bool asked;                /* in a request that is under way */
    bool at_end, off, refused;
    ck_kafka_chunk *first, *last; /* ready */
} ck_kafka_feed;

/* What there is of a partition. */
typedef struct ck_kafka_ready {
    ck_kafka_chunk *chunk; /* NULL: nothing now. The taker's until it gives it back */
    int64_t high;          /* -1: not known */
    bool at_end;           /* nothing is behind what has been taken */
    bool refused;          /* and nothing will come: the library is to read it */
} ck_kafka_ready;

typedef struct ck_kafka_fetcher ck_kafka_fetcher;

/* client and topic are borrowed, and used by the thread too; so is ctx, to wake. Thread of all of these: the source's.
 */
CK_NODISCARD ck_status ck_kafka_fetcher_new(ck_kafka_client *client, rd_kafka_topic_t *topic, const char *name,
                                            ck_mem mem, ck_op_ctx *ctx, ck_kafka_fetcher **out, ck_error *err);
void ck_kafka_fetcher_free(ck_kafka_fetcher *f); /* waits for the thread; all chunks are gone. NULL is fine */
/* Fetches it from an offset up to another. */
CK_NODISCARD ck_status ck_kafka_fetcher_add(ck_kafka_fetcher *f, ck_kafka_feed *feed, int32_t partition, int64_t from,
                                            int64_t end, ck_error *err);
/* CK_NOMEM: an answer found no room; the thread has ended. */
CK_NODISCARD ck_status ck_kafka_fetcher_take(ck_kafka_fetcher *f, ck_kafka_feed *feed, ck_kafka_ready *out,
                                             ck_error *err);
void ck_kafka_fetcher_give_back(ck_kafka_fetcher *f, ck_kafka_chunk *chunk);
void ck_kafka_fetcher_drop(ck_kafka_fetcher *f, ck_kafka_feed *feed); /* wants nothing more of it */

#endif
