CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT SUM(s) OVER (ORDER BY s) FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k);
-- way out:
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT SUM(s) OVER (ORDER BY window_time) FROM (SELECT window_time, SUM(v) AS s FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, window_time);
-- way out:
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT SUM(s) OVER (ORDER BY s) FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k) EMIT ON CLOSE;
