CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), ms BIGINT, txt VARCHAR, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
WITH c AS (SELECT k, window_start AS ws, window_end AS we, window_time AS wt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end, window_time)
SELECT 'same' AS what, ws, MAX(s) AS m FROM c GROUP BY ws, we
UNION ALL SELECT 'hour', window_start, SUM(s) FROM TABLE(TUMBLE(TABLE c, DESCRIPTOR(wt), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
