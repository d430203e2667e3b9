CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), ms BIGINT, txt VARCHAR, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) AS n, window_end FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE window_start > TIMESTAMP '2020-01-01 00:00:00' GROUP BY k, window_start, window_end;
