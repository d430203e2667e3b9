CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT k FROM t WHERE SUM(v) OVER (ORDER BY ts) > 3;
-- way out:
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT k FROM (SELECT k, SUM(v) OVER (ORDER BY ts) AS s FROM t) WHERE s > 3;
