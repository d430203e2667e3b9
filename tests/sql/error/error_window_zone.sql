SET timezone = 'Europe/Berlin';
CREATE TABLE t (ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
