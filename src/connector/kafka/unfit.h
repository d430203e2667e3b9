/* Records that are known to be no row before a decoder sees them: an empty one, csv that is not one record by itself, a
 * key that is no text. In the decoder's input something stands in that it always refuses, so that they leave in order,
 * as any record that does not fit; what they were, and why, is here. Thread: the subtask's. */
#ifndef CK_CONNECTOR_KAFKA_UNFIT_H
#define CK_CONNECTOR_KAFKA_UNFIT_H

#include "base/bytes.h"

/* Of one buffer of records. Zero may be destroyed. */
typedef struct ck_kafka_unfit {
    ck_mem mem;
    ck_bytes text;
    struct ck_kafka_unfit_record *list;
    size_t count, capacity;
} ck_kafka_unfit;

void ck_kafka_unfit_init(ck_kafka_unfit *u, ck_mem mem);
void ck_kafka_unfit_destroy(ck_kafka_unfit *u);
void ck_kafka_unfit_clear(ck_kafka_unfit *u);
/* line: of the buffer, greater than those before. why: static. CK_NOMEM. */
CK_NODISCARD ck_status ck_kafka_unfit_add(ck_kafka_unfit *u, size_t line, const char *why, ck_view record);
/* Why the line is no row, NULL: it is not here. *record is valid until the next call that changes u. */
const char *ck_kafka_unfit_of(const ck_kafka_unfit *u, size_t line, ck_view *record);

/* Why text is not one record of csv by itself: what is behind it in a buffer would become part of it, or it would
 * become several. NULL: it is one. */
const char *ck_kafka_csv_unfit(ck_view text);

#endif
