CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', format='json', path='x.ndjson', allowed_lateness_ms='5000');
CREATE VIEW w AS SELECT k, window_time AS at, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end, window_time;
SELECT k, SUM(n) FROM w GROUP BY SESSION(at, INTERVAL '1' DAY), k;
