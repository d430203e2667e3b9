CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT x FROM t, UNNEST(arr, arr) AS u (x);
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, ts TIMESTAMP(3), arr ARRAY<BIGINT>, r ROW<x BIGINT, y VARCHAR>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT x FROM t, UNNEST(arr) AS u (x);
