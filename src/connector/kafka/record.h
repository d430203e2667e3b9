/* A record of a topic as the source sees it, whoever has brought it: the library, or a fetch of our own (fetcher.h). */
#ifndef CK_CONNECTOR_KAFKA_RECORD_H
#define CK_CONNECTOR_KAFKA_RECORD_H

#include <librdkafka/rdkafka.h>

#include "base/view.h"

/* Views are valid until the next one is taken. */
typedef struct ck_kafka_record {
    ck_view value, key; /* p NULL: none; a record without a value is a tombstone */
    int64_t offset;
    int64_t time_ms; /* any number its writer may have said; -1: none */
    ck_view headers; /* as they are in a batch, header_count of them; where there is a message, that has them */
    int64_t header_count;
    rd_kafka_message_t *message; /* the library's, which owns it all; NULL: it is in a batch */
} ck_kafka_record;

#endif
