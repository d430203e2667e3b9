CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT t.a FROM t JOIN t AS u ON t.a = u.a JOIN t AS v USING (s);
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT t.a FROM t JOIN t AS u ON t.a = u.a JOIN t AS v ON v.s = t.s;
