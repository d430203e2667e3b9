CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), ms BIGINT, txt VARCHAR, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT k, window_start, window_end, SUM(v) AS s, COUNT(DISTINCT v) AS d FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE v > 0 GROUP BY k, window_start, window_end;
