CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT BOOL_AND(a > 1) FROM t;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT MIN(CASE WHEN a > 1 THEN 1 ELSE 0 END) = 1 AS x FROM t;
