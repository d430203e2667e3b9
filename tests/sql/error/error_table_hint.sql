CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x');
SELECT a FROM t /*+ OPTIONS('path'='y') */;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x');
CREATE TABLE u (a BIGINT) WITH (connector='file', path='y');
SELECT a FROM u;
