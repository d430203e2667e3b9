CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x.ndjson');
SELECT k, window_start FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND));
-- way out:
CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x.ndjson');
SELECT k, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end;
