CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), ms BIGINT, txt VARCHAR, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE t, ts, INTERVAL '5' SECOND)) GROUP BY window_start, window_end;
