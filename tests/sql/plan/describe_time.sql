CREATE TABLE a (i INT, "Odd" TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', "offset" BIGINT METADATA, WATERMARK FOR "Odd" AS "Odd" - INTERVAL '1.5' SECOND) WITH (connector='kafka', brokers='x:1', topic='a');
DESCRIBE a;
CREATE TABLE b (ms BIGINT, PRIMARY KEY (ms) NOT ENFORCED) WITH (connector='file', path='x.csv', event_time_column='ms', watermark_lag_ms=120000);
DESCRIBE b;
CREATE TABLE c (s VARCHAR, t AS CAST(s AS TIMESTAMP(3)), WATERMARK FOR t AS t) WITH (connector='file', path='x.csv');
DESCRIBE c;
