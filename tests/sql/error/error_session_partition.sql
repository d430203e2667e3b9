CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) FROM TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY k, window_start, window_end;
-- way out:
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY k, window_start, window_end;
