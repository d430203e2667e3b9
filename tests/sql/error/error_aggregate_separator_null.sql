CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT STRING_AGG(s, NULL) FROM t;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT STRING_AGG(s, '') FROM t;
