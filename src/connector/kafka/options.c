/* Options of a table of connector 'kafka'. */
#include <stdlib.h>

#include "connector/kafka/kafka_int.h"
#include "connector/sink_rejects.h"

/* The place of a word in a list; -1 where it is none of them. */
static int place_of(const char *word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0) return (int)i;
    return -1;
}

static ck_status read_start(const ck_table_options *o, ck_kafka_options *out, ck_error *err) {
    static const char *const words[] = {"earliest", "latest", "group-offsets", "timestamp", "offsets"};
    const char *word = ck_option_text(o, "start", "earliest");
    int at = place_of(word, words, CK_ARRAY_COUNT(words));
    if (at < 0)
        return ck_fail(err, CK_INVALID,
                       "option 'start' is '%s', which is none of earliest, latest, group-offsets, timestamp, offsets",
                       word);
    out->start = (ck_kafka_start)at;
    const char *time = ck_option_text(o, "start_timestamp_ms", NULL);
    out->start_offsets = ck_option_text(o, "start_offsets", NULL);
    CK_TRY(ck_option_i64(o, "start_timestamp_ms", 0, 0, INT64_MAX, &out->start_ms, err));
    if ((out->start == CK_KAFKA_TIMESTAMP) != (time != NULL))
        return ck_fail(err, CK_INVALID, "start = 'timestamp' and the option 'start_timestamp_ms' go together");
    if ((out->start == CK_KAFKA_OFFSETS) != (out->start_offsets != NULL))
        return ck_fail(err, CK_INVALID, "start = 'offsets' and the option 'start_offsets' go together");
    if (out->start == CK_KAFKA_GROUP_OFFSETS && !out->group)
        return ck_fail(err, CK_INVALID, "start = 'group-offsets' needs the option 'group', whose offsets they are");
    int64_t ignored;
    return out->start_offsets ? ck_kafka_offset_of(out->start_offsets, 0, &ignored, err) : CK_OK;
}

static ck_status read_key(const ck_table_options *o, ck_kafka_options *out, ck_error *err) {
    const char *word = ck_option_text(o, "key.format", "json");
    out->key = ck_option_text(o, "key", NULL);
    out->raw_key = strcmp(word, "raw") == 0;
    if (out->raw_key || strcmp(word, "json") == 0) return CK_OK;
    return ck_fail(err, CK_INVALID, "option 'key.format' is '%s', which is neither json nor raw", word);
}

static ck_status read_delivery(const ck_table_options *o, ck_kafka_options *out, ck_error *err) {
    static const char *const words[] = {"at_least_once", "exactly_once"};
    const char *word = ck_option_text(o, "delivery", "exactly_once");
    int at = place_of(word, words, CK_ARRAY_COUNT(words));
    if (at < 0)
        return ck_fail(err, CK_INVALID, "option 'delivery' is '%s', which is neither exactly_once nor at_least_once",
                       word);
    out->exactly_once = at == 1;
    out->token_topic = ck_option_text(o, "token_topic", "clink-tokens");
    if (strcmp(out->token_topic, out->topic) == 0)
        return ck_fail(err, CK_INVALID, "option 'token_topic' names the topic of the table, which holds rows");
    return ck_option_i64(o, "transaction_timeout_ms", 60000, 1000, INT32_MAX, &out->transaction_ms, err);
}

/* The port of one of the brokers, as 'host:port', 'protocol://host:port' or '[IPv6]:port' have it; p NULL: it has none.
 */
static ck_view port_of(ck_view broker) {
    const char *end = broker.p + broker.n, *at = broker.p;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
    for (const char *p = at; p + 3 <= end; p++)
        if (memcmp(p, "://", 3) == 0) at = p + 3;
    const char *colon = end, *first = memchr(at, ':', (size_t)(end - at));
    while (colon > at && colon[-1] != ':' && colon[-1] != ']') colon--;
    if (colon == at || colon[-1] != ':') return (ck_view){0};
    if (first != colon - 1 && (colon - at < 2 || colon[-2] != ']')) return (ck_view){0}; /* an address of IPv6 alone */
    return (ck_view){colon, (size_t)(end - colon)};
}

/* The client library takes the low 16 bits of whatever number there is. */
static ck_status check_ports(const char *brokers, ck_error *err) {
    for (const char *at = brokers; at;) {
        const char *comma = strchr(at, ',');
        ck_view broker = {at, comma ? (size_t)(comma - at) : strlen(at)}, port = port_of(broker);
        uint32_t number = 0;
        bool ok = port.n > 0 && port.n <= 5;
        for (size_t i = 0; i < port.n && ok; i++) {
            ok = port.p[i] >= '0' && port.p[i] <= '9';
            number = number * 10 + (uint32_t)(port.p[i] - '0');
        }
        if (port.p && (!ok || number < 1 || number > 65535))
            return ck_fail(err, CK_INVALID, "option 'brokers' has '%.*s', whose port is no number from 1 to 65535",
                           (int)(broker.n < 200 ? broker.n : 200), broker.p);
        at = comma ? comma + 1 : NULL;
    }
    return CK_OK;
}

ck_status ck_kafka_options_read(const ck_table_options *o, ck_kafka_options *out, ck_error *err) {
    *out = (ck_kafka_options){
        .brokers = ck_option_text(o, "brokers", NULL),
        .topic = ck_option_text(o, "topic", NULL),
        .format = ck_option_text(o, "format", "json"),
        .group = ck_option_text(o, "group", NULL),
        .all = o,
    };
    if (!out->brokers || !out->brokers[0])
        return ck_fail(err, CK_INVALID,
                       "a table of connector 'kafka' needs the option 'brokers', as 'host:port,host:port'");
    CK_TRY(check_ports(out->brokers, err));
    if (!out->topic || !out->topic[0])
        return ck_fail(err, CK_INVALID, "a table of connector 'kafka' needs the option 'topic'");
    out->changelog = strcmp(out->format, "debezium-json") == 0;
    if (out->changelog) out->format = "json";
    ck_message_format message;
    if (strcmp(out->format, "json") != 0 && strcmp(out->format, "csv") != 0 &&
        !ck_message_format_of(out->format, &message))
        return ck_fail(err, CK_INVALID,
                       "option 'format' is '%s', which is none of json, csv, avro, protobuf, debezium-json",
                       out->format);
    CK_TRY(ck_registry_options_read(o, out->format, out->topic, &out->registry, err));
    CK_TRY(ck_option_i64(o, "timeout_ms", 10000, 1, 3600000, &out->timeout_ms, err));
    CK_TRY(ck_option_i64(o, "discover_ms", 30000, 0, INT64_MAX / 1000, &out->discover_ms, err));
    CK_TRY(ck_option_bool(o, "bounded", false, &out->bounded, err));
    CK_TRY(ck_option_bool(o, "strict", false, &out->strict, err));
    CK_TRY(read_start(o, out, err));
    CK_TRY(read_key(o, out, err));
    CK_TRY(read_delivery(o, out, err));
    out->on_error_is_given = ck_option_text(o, "on_error", NULL) != NULL;
    return ck_on_error_read(o, &out->on_error, &out->dead_letter_table, err);
}

ck_status ck_kafka_record_bytes_max(const ck_table_options *o, size_t *out, ck_error *err) {
    int64_t bytes;
    CK_TRY(ck_option_i64(o, "properties.message.max.bytes", 1000000, 1000, 1000000000, &bytes, err));
    *out = (size_t)bytes;
    return CK_OK;
}

int64_t ck_kafka_partition_max(const char *list) {
    int64_t max = -1;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strtoll(at, NULL, 10) > max) max = strtoll(at, NULL, 10);
    return max;
}

ck_status ck_kafka_offset_of(const char *list, int32_t partition, int64_t *out, ck_error *err) {
    *out = -1;
    for (const char *at = list;;) {
        char *end;
        long long p = strtoll(at, &end, 10), offset = -1;
        bool ok = end != at && *end == ':' && p >= 0 && p <= INT32_MAX;
        if (ok) {
            at = end + 1;
            offset = strtoll(at, &end, 10);
            ok = end != at && offset >= 0 && (*end == ',' || *end == 0);
        }
        if (!ok)
            return ck_fail(err, CK_INVALID,
                           "option 'start_offsets' is '%s', not partitions and offsets as in '0:42,1:7'", list);
        if (p == partition && *out >= 0)
            return ck_fail(err, CK_INVALID, "option 'start_offsets' is '%s', which names partition %d twice", list,
                           partition);
        if (p == partition) *out = offset;
        if (*end == 0) return CK_OK;
        at = end + 1;
    }
}
