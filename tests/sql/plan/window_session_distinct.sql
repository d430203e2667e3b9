CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', format='json', path='x.ndjson', allowed_lateness_ms='5000');
SELECT k, COUNT(DISTINCT v) AS n FROM t GROUP BY SESSION(ts, INTERVAL '1' DAY), k;
