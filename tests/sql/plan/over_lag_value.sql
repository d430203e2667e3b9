CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT LAG(v, 2, n + 1) OVER (PARTITION BY k ORDER BY ts) AS a, LAG(v, 2) OVER (PARTITION BY k ORDER BY ts) AS b FROM t;
