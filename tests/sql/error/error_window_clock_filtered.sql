CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND)) WHERE window_start > p GROUP BY k, window_start, window_end;
