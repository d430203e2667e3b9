CREATE TABLE t (a TIMESTAMP) WITH (connector='file', path='x.ndjson', event_time_column='a', watermark_lag_ms='-5');
