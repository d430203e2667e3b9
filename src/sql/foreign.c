/* See foreign.h. A row a name; names of one meaning share their row, separated by blanks. */
#include "sql/foreign.h"

#include "base/status.h"

typedef struct row {
    const char *names, *advice;
} row;

static const row functions[] = {
    {"group_concat wm_concat", "STRING_AGG(x, ',' ORDER BY y) is it"},
    {"collect_list collect_set json_arrayagg json_objectagg",
     "ARRAY_AGG(x ORDER BY y) collects values, ARRAY_AGG(DISTINCT x) each once"},
    {"percentile quantile quantile_cont quantile_disc approx_quantile",
     "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x) is it, or APPROX_PERCENTILE(x, 0.9)"},
    {"approx_distinct hll_count", "APPROX_COUNT_DISTINCT(x) is it"},
    {"any_value arbitrary", "MIN(x) or MAX(x) gives one value of a group"},
    {"first last", "FIRST_VALUE(x ORDER BY y) and LAST_VALUE(x ORDER BY y) are there"},
    {"max_by arg_max argmax", "LAST_VALUE(x ORDER BY y) gives the x of the greatest y"},
    {"min_by arg_min argmin", "FIRST_VALUE(x ORDER BY y) gives the x of the least y"},
    {"bool_and every logical_and", "MIN(CASE WHEN x THEN 1 ELSE 0 END) = 1 is it"},
    {"bool_or some logical_or", "MAX(CASE WHEN x THEN 1 ELSE 0 END) = 1 is it"},
    {"count_if countif", "COUNT(*) FILTER (WHERE x) is it"},
    {"sum_if sumif", "SUM(y) FILTER (WHERE x) is it"},
    {"decode", "CASE x WHEN 1 THEN 'a' ELSE 'b' END is it"},
    {"nvl2", "CASE WHEN x IS NOT NULL THEN a ELSE b END is it"},
    {"iif", "CASE WHEN x THEN a ELSE b END is it"},
    {"convert", "CAST(x AS type) is it"},
    {"try_convert safe_cast", "TRY_CAST(x AS type) is it"},
    {"to_char strftime format_datetime",
     "DATE_FORMAT(x, 'yyyy-MM-dd HH:mm:ss') writes a time, CAST(x AS VARCHAR) a number"},
    {"strptime parse_datetime str_to_date", "TO_TIMESTAMP('2024-01-31', 'yyyy-MM-dd') reads a time"},
    {"datediff date_diff timediff", "TIMESTAMPDIFF(DAY, a, b) is it"},
    {"dateadd date_add adddate", "x + INTERVAL '1' DAY is it, or TIMESTAMPADD(DAY, 1, x)"},
    {"date_sub datesub subdate", "x - INTERVAL '1' DAY is it, or TIMESTAMPADD(DAY, -1, x)"},
    {"datepart date_part", "EXTRACT(DAY FROM x) is it"},
    {"date_bin time_bucket time_slice", "windows are made with TUMBLE; DATE_TRUNC('hour', x) cuts a time to a unit"},
    {"getdate sysdate systimestamp", "NOW() is it"},
    {"to_unixtime", "UNIX_TIMESTAMP(x) is it"},
    {"current_watermark", "the watermark is not a value here; a window fires when it has passed its end"},
    {"tumble_proctime hop_proctime session_proctime cumulate_proctime",
     "PROCTIME() is it; of a window there are its start, its end and its rowtime: TUMBLE_END(ts, size)"},
    {"convert_tz",
     "x AT TIME ZONE 'zone' is it: of a TIMESTAMP the instant there, of a TIMESTAMP_LTZ the wall clock there"},
    {"json_extract json_extract_path get_json_object json_extract_scalar",
     "JSON_VALUE(x, '$.key') gives a value as text, JSON_QUERY(x, '$.key') an object or array"},
    {"parse_json", "JSON is kept as text; JSON_VALUE(x, '$.key') reads a value of it"},
    {"to_json", "JSON_STRING(x) is it"},
    {"charindex", "POSITION('x' IN s) is it"},
    {"rlike regexp_matches regexp_match", "REGEXP_LIKE(x, 'pattern') is it, or x ~ 'pattern'"},
    {"editdist3 levenshtein soundex", "texts are compared with LIKE and regular expressions"},
    {"size array_size list_length len_array", "CARDINALITY(x) is it"},
    {"list_contains array_has", "ARRAY_CONTAINS(x, value) is it"},
    {"element_at list_extract", "x[1] is the first element"},
    {"explode unnest flatten", "FROM t CROSS JOIN UNNEST(x) AS u (y) gives a row for each element"},
    {"hash xxhash64 murmur_hash farm_fingerprint", "FNV1A64(x) is a 64-bit hash, MD5(x) and SHA256(x) are longer ones"},
    {"sha sha2 sha512_256", "SHA1(x), SHA224(x), SHA256(x), SHA384(x) and SHA512(x) are there"},
    {"generate_series sequence", "a table WITH (connector = 'datagen') counts"},
    {"last_insert_id nextval", "nothing counts rows here; UUID() makes a key"},
    {"ntile percent_rank cume_dist nth_value",
     "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE and LAST_VALUE go with OVER"},
    {"rollup cube", "it stands in GROUP BY: GROUP BY ROLLUP (a, b)"},
    {"corr covar_pop covar_samp regr_slope", "SUM(x * y), SUM(x), SUM(y) and COUNT(*) are what it is made of"},
};

static const row table_functions[] = {
    {"read_csv read_csv_auto read_json read_json_auto read_parquet scan_csv",
     "CREATE TABLE t (a BIGINT, ...) WITH (connector = 'file', path = 'file.csv') makes a table of a file"},
    {"generate_series range sequence", "CREATE TABLE g (i BIGINT) WITH (connector = 'datagen', "
                                       "fields.i.kind = 'sequence', rows = 10) counts"},
    {"explode flatten", "CROSS JOIN UNNEST(x) AS u (y) gives a row for each element"},
};

static const row connectors[] = {
    {"filesystem files local csv json", "it is connector = 'file' here"},
    {"upsert-kafka", "it is connector = 'kafka' here, with a PRIMARY KEY where rows are to replace those of their key"},
    {"kafka-upsert confluent-kafka redpanda", "it is connector = 'kafka' here"},
    {"generator faker datagenerator nexmark-flink", "connector = 'datagen' and connector = 'nexmark' make rows"},
    {"console stdout log", "it is connector = 'print' here"},
    {"jdbc postgresql postgres-cdc", "PostgreSQL is connector = 'postgres' here"},
    {"null devnull dev-null", "it is connector = 'blackhole' here"},
};

static const row options[] = {
    {"properties.bootstrap.servers bootstrap.servers kafka.bootstrap.servers bootstrap_servers kafka.brokers",
     "it is brokers here"},
    {"properties.group.id", "it is group here"},
    {"scan.startup.mode scan_startup_mode kafka.scan.startup.mode",
     "it is start here: earliest, latest, group-offsets, timestamp or offsets"},
    {"scan.startup.timestamp-millis", "it is start_timestamp_ms here, with start = 'timestamp'"},
    {"scan.bounded.mode", "bounded = 'true' ends at what is there when the job starts"},
    {"scan.topic-partition-discovery.interval", "it is discover_ms here"},
    {"value.format key.format", "it is format here"},
    {"key.fields", "it is key here; a PRIMARY KEY is the record's key by itself"},
    {"json.ignore-parse-errors csv.ignore-parse-errors ignore_errors ignore-parse-errors",
     "on_error = 'skip' leaves out what does not fit, on_error = 'dead_letter' keeps it"},
    {"csv.field-delimiter field-delimiter field_delimiter sep separator delim", "it is delimiter here"},
    {"csv.null-literal null null_literal nullstr na_values", "it is null_string here"},
    {"csv.ignore-first-line skip.header.line.count skip_header has_header",
     "header = 'true' reads column names from the first line"},
    {"csv.allow-comments csv.quote-character csv.escape-character quote escape",
     "CSV is read as RFC 4180 writes it: fields in double quotes, a quote in them doubled"},
    {"json.timestamp-format.standard timestampformat timestamp_format",
     "times are read as ISO 8601, with T or a blank"},
    {"source.monitor-interval monitor_interval", "follow = 'true' waits for the file to grow"},
    {"source.path.regex-pattern match_pattern", "path takes a pattern: 'dir/*.csv'"},
    {"sink.rolling-policy.file-size", "it is part_bytes here"},
    {"sink.delivery-guarantee delivery.guarantee", "it is delivery here: exactly_once or at_least_once"},
    {"sink.parallelism scan.parallelism", "the whole job has one parallelism: clink run -p 4"},
    {"rows-per-second rows_per_second", "it is rate_limit here"},
    {"number-of-rows number_of_rows", "it is rows here"},
    {"lookup.cache.ttl lookup.partial-cache.expire-after-write", "it is lookup.cache_ttl_ms here"},
    {"scan.watermark.idle-timeout idle-timeout", "it is idle_timeout_ms here"},
};

/* fields.<column>.start and .end of datagen. */
static const row field_options[] = {{"start", "it is fields.*.min here"}, {"end", "it is fields.*.max here"}};

#define BY_ROWS "rows are handed on in batches by themselves; SET batch_rows bounds them"
static const row settings[] = {
    {"table.exec.state.ttl execution.state.ttl", "it is state_ttl here: SET state_ttl = '1h'"},
    {"parallelism.default table.exec.resource.default-parallelism parallelism streaming_parallelism threads",
     "it is a flag of the command: clink run -p 4"},
    {"execution.checkpointing.interval checkpoint_frequency checkpoint_interval barrier_interval_ms",
     "it is a flag of the command: clink run --checkpoint-dir DIR --checkpoint-interval-ms 10000"},
    {"execution.checkpointing.dir state.checkpoints.dir execution.checkpointing.mode state.checkpoints.num-retained",
     "checkpoints are flags of the command: clink run --checkpoint-dir DIR"},
    {"execution.savepoint.path execution.state-recovery.path", "it is a flag of the command: clink run --restore DIR"},
    {"state.backend state.backend.type", "it is a flag of the command: clink run --state-backend file:DIR"},
    {"execution.runtime-mode", "whether input ends decides: a file that is not followed does"},
    {"table.local-time-zone time_zone", "it is timezone here: SET timezone = 'Europe/Berlin'"},
    {"sql-client.execution.result-mode sql-client.verbose",
     "it is a flag of the command: clink run --format ndjson|table|csv"},
    {"table.exec.mini-batch.enabled table.exec.mini-batch.allow-latency table.exec.mini-batch.size",
     BY_ROWS ", SET flush_ms how often changes of unbounded input are emitted"},
    {"table.exec.source.idle-timeout", "it is an option of the table: idle_timeout_ms"},
    {"table.exec.emit.allow-lateness", "it is an option of the table: allowed_lateness_ms"},
    {"pipeline.name job.name", "it is a flag of the command: clink run --name NAME"},
    {"taskmanager.memory.process.size memory_limit", "it is a flag of the command: clink run --memory 2G"},
    {"rw_implicit_flush", "INSERT into a table in memory is seen by the next statement"},
};

static const row shows[] = {
    {"databases schemas catalogs",
     "there are no catalogs or databases: tables are named alone, SHOW TABLES lists them"},
    {"jobs streams queries processlist", "a job is a run of the command; what it does it says itself"},
    {"sources sinks connections materialized", "SHOW TABLES lists what is read and written"},
    {"modules jars", "there is nothing to load; SHOW FUNCTIONS lists what there is"},
    {"partitions indexes", "tables have neither; SHOW CREATE TABLE t shows how one is read"},
};

static const row types[] = {
    {"long int64 uint32 int128_t", "BIGINT has 64 bits"},
    {"uint64 ubigint hugeint int128 uint128", "DECIMAL(38) holds 38 digits"},
    {"int32 uint16 mediumint", "INT has 32 bits"},
    {"int16 uint8 short", "SMALLINT has 16 bits"},
    {"int8_t byte utinyint", "TINYINT has 8 bits"},
    {"float32", "REAL has 32 bits"},
    {"float64", "DOUBLE has 64 bits"},
    {"nvarchar nchar varchar2 clob longtext mediumtext tinytext ntext citext", "VARCHAR holds text of any length"},
    {"bit", "BOOLEAN is true or false"},
    {"money smallmoney bignumeric", "DECIMAL(19, 4) is exact"},
    {"datetime2 smalldatetime timestamp_ntz", "TIMESTAMP(3) is a time without a zone"},
    {"datetimeoffset timestamp_tz", "TIMESTAMP_LTZ(3) is an instant"},
    {"list", "ARRAY<t> is it"},
    {"struct record object", "ROW<x BIGINT, y VARCHAR> is it"},
    {"serial bigserial", "nothing counts rows here; UUID() in the query makes a key"},
    {"enum set inet cidr geometry", "VARCHAR holds such values as text"},
};

static bool has_word(const char *names, ck_view word) {
    while (*names) {
        size_t n = strcspn(names, " ");
        if (ck_view_eq_nocase((ck_view){names, n}, word)) return true;
        names += n + (names[n] != 0);
    }
    return false;
}

static const char *advice(const row *rows, size_t n, ck_view name) {
    for (size_t i = 0; i < n; i++)
        if (has_word(rows[i].names, name)) return rows[i].advice;
    return NULL;
}

#define ADVICE(rows, name) advice((rows), CK_ARRAY_COUNT(rows), (name))

static const char *option(ck_view name) {
    static const char prefix[] = "fields.";
    size_t dot = name.n;
    while (dot && name.p[dot - 1] != '.') dot--;
    if (dot > sizeof prefix - 1 && memcmp(name.p, prefix, sizeof prefix - 1) == 0)
        return ADVICE(field_options, ((ck_view){name.p + dot, name.n - dot}));
    return ADVICE(options, name);
}

const char *ck_foreign_name(ck_foreign kind, ck_view name) {
    switch (kind) {
    case CK_FOREIGN_FUNCTION: return ADVICE(functions, name);
    case CK_FOREIGN_TABLE_FUNCTION: return ADVICE(table_functions, name);
    case CK_FOREIGN_CONNECTOR: return ADVICE(connectors, name);
    case CK_FOREIGN_OPTION: return option(name);
    case CK_FOREIGN_SETTING: return ADVICE(settings, name);
    case CK_FOREIGN_SHOW: return ADVICE(shows, name);
    case CK_FOREIGN_TYPE: return ADVICE(types, name);
    }
    return NULL;
}
