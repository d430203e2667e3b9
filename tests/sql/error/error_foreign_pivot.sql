CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT * FROM t PIVOT (SUM(a) FOR s IN ('k1', 'k2'));
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT SUM(a) FILTER (WHERE s = 'k1') AS k1, SUM(a) FILTER (WHERE s = 'k2') AS k2 FROM t;
