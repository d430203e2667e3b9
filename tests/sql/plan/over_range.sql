CREATE TABLE t (k VARCHAR, ms BIGINT, v BIGINT) WITH (connector='file', path='x.ndjson', follow='true', event_time_column='ms', watermark_lag_ms='4000');
SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ms RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s FROM t WHERE k = 'a';
