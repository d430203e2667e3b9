/* A broker's answer to a fetch, down to the headers of records. What must hold: nothing but the answer, or what it
 * unpacks to, is looked at; memory stays within the budget, and all of it is given back. */
#include "fuzz.h"

#include "connector/kafka/batches.h"
#include "connector/kafka/fetch.h"

enum { RECORDS_MAX = 10000 };

static uint64_t sum; /* so that bytes are read */

static void look_at(ck_view v) {
    for (size_t i = 0; i < v.n; i++) sum += (unsigned char)v.p[i];
}

static void look_at_record(const ck_kafka_record *r) {
    look_at(r->key);
    look_at(r->value);
    ck_cursor left = ck_cursor_of(r->headers.p, r->headers.n);
    ck_view name, value;
    for (int64_t i = 0; i < r->header_count && ck_kafka_header_next(&left, &name, &value); i++) {
        look_at(name);
        look_at(value);
    }
}

static void look_at_batches(ck_view bytes, ck_mem mem) {
    ck_kafka_batches b;
    ck_kafka_unpacker u = {0};
    ck_kafka_record r;
    ck_kafka_batches_init(&b, mem);
    b.unpacked.bytes_max = 1 << 20;
    ck_kafka_batches_give(&b, bytes);
    for (int n = 0; n < RECORDS_MAX && ck_kafka_batches_next(&b, &u, &r) == CK_OK; n++) look_at_record(&r);
    int64_t end = ck_kafka_batches_end(bytes, 5);
    CK_ASSERT(end >= 5);
    ck_kafka_batches_destroy(&b);
    ck_kafka_unpacker_destroy(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 16 << 20);
    ck_kafka_answer a;
    ck_kafka_answer_part part;
    int16_t error;
    uint32_t number = 0;
    for (size_t i = 0; i < 4 && i < size; i++) number = number << 8 | data[i];
    if (size > 100000 || !ck_kafka_answer_open(&a, (ck_view){(const char *)data, size}, number, &error)) return 0;
    for (int n = 0; n < RECORDS_MAX && ck_kafka_answer_next(&a, &part) == CK_OK; n++)
        look_at_batches(part.batches, (ck_mem){&budget, CK_MEM_DECODE});
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
