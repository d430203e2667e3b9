CREATE TABLE t (a VARCHAR, WATERMARK FOR a AS a) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR, event_time AS CAST(a AS TIMESTAMP), WATERMARK FOR event_time AS event_time) WITH (connector='file', path='x.ndjson');
