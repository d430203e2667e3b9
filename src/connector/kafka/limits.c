/* How large a record may be, asked of the topic: brokers refuse a batch of records as a whole, so what does not fit is
 * kept out of it. */
#include <stdio.h>
#include <stdlib.h>

#include "connector/kafka/kafka_int.h"

enum { BATCH_HEAD_BYTES = 61 };

static size_t varint_bytes(uint64_t v) {
    size_t n = 1;
    for (; v > 127; v >>= 7) n++;
    return n;
}

/* A batch of this record alone, as message format 2 has it: the head, and a record of attributes, two deltas, key,
 * value and the number of headers. */
size_t ck_kafka_batch_bytes(ck_view key, ck_view value) {
    size_t n =
        1 + 1 + 1 + varint_bytes(key.p ? 2 * key.n : 1) + key.n + varint_bytes(value.p ? 2 * value.n : 1) + value.n + 1;
    return BATCH_HEAD_BYTES + varint_bytes(2 * n) + n;
}

static size_t limit_of(const ck_kafka_lib *lib, rd_kafka_event_t *ev) {
    size_t resources = 0, entries = 0;
    if (lib->rd_kafka_event_error(ev)) return SIZE_MAX;
    const rd_kafka_DescribeConfigs_result_t *r = lib->rd_kafka_event_DescribeConfigs_result(ev);
    const rd_kafka_ConfigResource_t **list = r ? lib->rd_kafka_DescribeConfigs_result_resources(r, &resources) : NULL;
    if (resources != 1 || lib->rd_kafka_ConfigResource_error(list[0])) return SIZE_MAX;
    const rd_kafka_ConfigEntry_t **e = lib->rd_kafka_ConfigResource_configs(list[0], &entries);
    for (size_t i = 0; i < entries; i++) {
        const char *value = lib->rd_kafka_ConfigEntry_value(e[i]);
        if (!value || strcmp(lib->rd_kafka_ConfigEntry_name(e[i]), "max.message.bytes") != 0) continue;
        long long bytes = strtoll(value, NULL, 10);
        return bytes > 0 ? (size_t)bytes : SIZE_MAX;
    }
    return SIZE_MAX;
}

static bool is_compressed(const ck_table_options *o) {
    const char *codec =
        ck_option_text(o, "properties.compression.codec", ck_option_text(o, "properties.compression.type", "none"));
    return strcmp(codec, "none") != 0;
}

ck_status ck_kafka_topic_bytes_max(ck_proc *proc, const ck_kafka_options *o, ck_arena *a, size_t *out, ck_error *err) {
    static const char *const no_pairs[] = {NULL};
    ck_kafka_client c = {0};
    *out = SIZE_MAX;
    if (is_compressed(o->all)) return CK_OK; /* the brokers count compressed bytes, and nobody knows them before */
    CK_TRY(ck_kafka_client_new(proc, o, RD_KAFKA_PRODUCER, no_pairs, a, &c, err));
    const ck_kafka_lib *lib = c.lib;
    rd_kafka_ConfigResource_t *topic = lib->rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, o->topic);
    rd_kafka_queue_t *q = lib->rd_kafka_queue_new(c.rk);
    if (topic) {
        lib->rd_kafka_DescribeConfigs(c.rk, &topic, 1, NULL, q);
        rd_kafka_event_t *ev = lib->rd_kafka_queue_poll(q, (int)o->timeout_ms);
        if (ev) *out = limit_of(lib, ev);
        if (ev) lib->rd_kafka_event_destroy(ev);
        lib->rd_kafka_ConfigResource_destroy(topic);
    }
    lib->rd_kafka_queue_destroy(q);
    ck_kafka_client_destroy(&c);
    return CK_OK;
}

const char *ck_kafka_batch_size(size_t topic_bytes_max, char out[24]) {
    snprintf(out, 24, "%zu", topic_bytes_max < 1000000 ? topic_bytes_max : (size_t)1000000);
    return out;
}
