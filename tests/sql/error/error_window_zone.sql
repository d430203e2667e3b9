SET timezone = 'Europe/Berlin';
CREATE TABLE t (ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
-- way out:
CREATE TABLE t (ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
-- way out:
SET timezone = 'Europe/Berlin';
CREATE TABLE t (ts TIMESTAMP_LTZ(3), l AS CAST(ts AS TIMESTAMP(3)), WATERMARK FOR l AS l - INTERVAL '1' HOUR) WITH (connector='file', path='x.ndjson');
SELECT COUNT(*) FROM t GROUP BY TUMBLE(l, INTERVAL '1' DAY);
