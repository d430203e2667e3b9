CREATE TABLE o (k VARCHAR, v BIGINT) WITH (connector='file', path='o.ndjson');
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), n BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
INSERT INTO o SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM t) WHERE rn = 1;
