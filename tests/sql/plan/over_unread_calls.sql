CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
SELECT k, s FROM (SELECT k, SUM(v) OVER w AS s, MAX(n) OVER w AS m FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)) WHERE k <> 'b';
