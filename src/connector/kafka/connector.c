/* What SQL may say about a Kafka topic, and what such a table can promise. */
#include "connector/connectors.h"

#include "connector/kafka/kafka_int.h"
#include "connector/kafka/metadata_int.h"

static const ck_option_desc kafka_options[] = {
    {"brokers", "text", NULL, "host:port of some brokers, commas between"},
    {"topic", "text", NULL, "the topic; it must be there"},
    {"format", "json|csv|avro|protobuf|debezium-json", "json",
     "how a value is written; avro and protobuf: by schemas of a registry; debezium-json: reading, changes of rows"},
    {"schema_registry", "text", NULL, "avro and protobuf: where the registry is, as http://registry:8081"},
    {"schema_registry.subject", "text", NULL,
     "avro and protobuf: the subject of the values; <topic>-value where not given"},
    {"schema_registry.message", "text", NULL,
     "protobuf: which message of the schema a row is; the first where not given"},
    {"schema_registry.user", "text", NULL, "who we are to the registry"},
    {"schema_registry.password", "text", NULL, "the same; ${env:NAME} or ${file:PATH}"},
    {"schema_registry.token", "text", NULL, "instead: a bearer's token; ${env:NAME} or ${file:PATH}"},
    {"schema_registry.ca", "text", NULL,
     "a file of certificates that may vouch for the registry; the system's where not given"},
    {"schema_registry.retry_ms", "integer", "120000",
     "reading: how long a registry that is away is waited for in a run"},
    {"group", "text", NULL, "reading: the consumer group of start = 'group-offsets'; nothing is committed to it"},
    {"start", "earliest|latest|group-offsets|timestamp|offsets", "earliest",
     "reading: where a new job begins in each partition; one that continues goes on where it was"},
    {"start_timestamp_ms", "integer", NULL, "reading: start = 'timestamp': the first record of this time or later"},
    {"start_offsets", "text", NULL, "reading: start = 'offsets': '0:42,1:7'; other partitions from the earliest on"},
    {"bounded", "boolean", "false", "reading: end at what is there when the job starts"},
    {"discover_ms", "integer", "30000", "reading: how often to look for new partitions; 0: only at a start"},
    {"strict", "boolean", "false", "reading: check the type of every column, also of those the query does not need"},
    {"on_error", "fail|skip|dead_letter", "fail",
     "what a record that does not fit the table does; writing: a row too large for the topic, or without a place in "
     "the "
     "schema"},
    {"dead_letter_table", "text", NULL,
     "the table that takes such records, with columns raw BYTES, split VARCHAR, offset BIGINT, reason "
     "VARCHAR"},
    {"key", "columns", NULL, "writing: columns of the record's key, commas between; the PRIMARY KEY where not given"},
    {"key.format", "json|raw", "json",
     "writing: a key is a JSON object of its columns, or one column's text or bytes alone"},
    {"delivery", "exactly_once|at_least_once", "exactly_once",
     "writing, where checkpoints are on: rows appear to read_committed readers when a checkpoint commits them; or at "
     "once, and some again after a restart"},
    {"token_topic", "text", "clink-tokens",
     "writing exactly once: the compacted topic that says what is committed; it is made where it is missing"},
    {"transaction_timeout_ms", "integer", "60000",
     "writing exactly once: how long a transaction may take, and how long a dead job's open one may hold readers"},
    {"timeout_ms", "integer", "10000", "how long a broker may take to answer at the start, or to take a record"},
    {"metadata.*", "key|headers|timestamp|partition|offset|topic", NULL,
     "reading: what column * is, as in `off BIGINT METADATA FROM 'offset'`"},
    {"properties.*", "property", NULL,
     "a property of the client library, as properties.security.protocol; ${env:NAME} and ${file:PATH} keep secrets "
     "out of the script"},
};

static ck_status kafka_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    ck_kafka_options o;
    CK_TRY(ck_kafka_options_read(&t->options, &o, err));
    return as_sink ? ck_kafka_sink_check(t, &o, err) : ck_kafka_metadata_check(t, o.changelog, err);
}

static bool ends(const ck_table_decl *t) {
    ck_kafka_options o;
    return ck_kafka_options_read(&t->options, &o, NULL) == CK_OK && o.bounded;
}

static bool is_changelog(const ck_table_decl *t) {
    ck_kafka_options o;
    return ck_kafka_options_read(&t->options, &o, NULL) == CK_OK && o.changelog;
}

static bool puts_aside(const ck_table_decl *t) {
    (void)t;
    return true;
}

static bool is_keyed(const ck_table_decl *t) { return t->primary_key_count > 0; }

static ck_guarantee kafka_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    if (!checkpoints) {
        *why = "there is no checkpoint directory to continue from";
        return CK_NO_GUARANTEE;
    }
    ck_kafka_options o;
    if (ck_kafka_options_read(&t->options, &o, NULL) == CK_OK && o.exactly_once) {
        *why = "rows appear in a transaction when a checkpoint commits them";
        return CK_EXACTLY_ONCE;
    }
    *why = is_keyed(t) ? "records are sent before a checkpoint has them; the last one of a key is right"
                       : "records are sent before a checkpoint has them, and again after a restart";
    return CK_AT_LEAST_ONCE;
}

const ck_connector_desc ck_connector_kafka = {
    .name = "kafka",
    .options = kafka_options,
    .option_count = CK_ARRAY_COUNT(kafka_options),
    .source_type = "source.kafka",
    .sink_type = "sink.kafka",
    .check = kafka_check,
    .bounded = ends,
    .changes = is_changelog,
    .accepts_changes = is_keyed,
    .accepts_upserts = is_keyed,
    .sets_aside = puts_aside,
    .guarantee = kafka_guarantee,
};
