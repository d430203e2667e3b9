CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
CREATE MATERIALIZED VIEW m AS SELECT s, COUNT(*) AS n FROM t GROUP BY s;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
CREATE TABLE m (s VARCHAR, n BIGINT, PRIMARY KEY (s) NOT ENFORCED) WITH (connector='file', format='json', path='m', mode='upsert');
INSERT INTO m SELECT s, COUNT(*) FROM t WHERE s IS NOT NULL GROUP BY s;
