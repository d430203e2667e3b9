CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT LAG(v, 1, k) OVER (PARTITION BY k ORDER BY ts) FROM t;
