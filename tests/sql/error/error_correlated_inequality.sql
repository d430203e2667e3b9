CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT (SELECT MAX(u.a) FROM t AS u WHERE u.a < t.a) AS n FROM t;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
SELECT t.a, MAX(u.a) AS n FROM t JOIN t AS u ON t.s = u.s AND u.a < t.a GROUP BY t.a;
