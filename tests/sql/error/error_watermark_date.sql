CREATE TABLE t (d DATE, WATERMARK FOR d AS d) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (d DATE, event_time AS CAST(d AS TIMESTAMP), WATERMARK FOR event_time AS event_time) WITH (connector='file', path='x.ndjson');
