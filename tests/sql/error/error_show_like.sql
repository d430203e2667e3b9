CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SHOW COLUMNS FROM t LIKE 'a%';
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SHOW TABLES LIKE 't%';
