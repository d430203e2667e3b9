CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS a) WITH (connector='file', path='x.ndjson', watermark_lag_ms='5');
