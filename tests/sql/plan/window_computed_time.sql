CREATE TABLE t (k VARCHAR, ms BIGINT, rt AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND) WITH (connector='file', path='x.ndjson');
SELECT k, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(rt), SIZE => INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
