CREATE TABLE t (k VARCHAR, v BIGINT) WITH (connector='file', path='x.ndjson', follow=TRUE);
SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE (SELECT k, COUNT(*) AS n, PROCTIME() AS p FROM t GROUP BY k), DESCRIPTOR(p), INTERVAL '5' SECOND)) GROUP BY window_start, window_end;
