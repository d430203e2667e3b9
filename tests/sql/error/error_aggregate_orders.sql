CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT ARRAY_AGG(a ORDER BY a + 0, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8, a + 9, a + 10, a + 11, a + 12, a + 13, a + 14, a + 15) FROM t;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
SELECT ARRAY_AGG(a ORDER BY a + 1, a + 2) FROM t;
