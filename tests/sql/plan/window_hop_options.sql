CREATE TABLE t (k VARCHAR, ms BIGINT) WITH (connector='file', path='x.ndjson', event_time_column='ms', watermark_lag_ms='4000', allowed_lateness_ms='1000');
SELECT k, HOP_END(ms, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS e, COUNT(*) AS n FROM t GROUP BY HOP(ms, INTERVAL '2' SECOND, INTERVAL '10' SECOND), k;
