CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x', format='json', follow=TRUE);
WITH c AS (SELECT k, window_start AS ws, window_end AS we, window_time AS wt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end, window_time),
  top AS (SELECT k, ws, we, wt, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY ws, we ORDER BY s DESC) AS n FROM c) WHERE n <= 3)
SELECT window_start, COUNT(*) AS n, MAX(s) AS s FROM TABLE(TUMBLE(TABLE top, DESCRIPTOR(wt), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
