/* The change of a row as Debezium writes it: {"before":ROW,"after":ROW,"op":"c|r|u|d",...}, or that as "payload" beside
 * its schema. */
#ifndef CK_CONNECTOR_KAFKA_DEBEZIUM_H
#define CK_CONNECTOR_KAFKA_DEBEZIUM_H

#include "base/view.h"

typedef struct ck_debezium {
    ck_view before, after; /* JSON objects, in the text; n 0: there is none */
} ck_debezium;

/* NULL, or why this is no change of a row: a sentence without an end, static. */
const char *ck_debezium_read(ck_view text, ck_debezium *out);

#endif
