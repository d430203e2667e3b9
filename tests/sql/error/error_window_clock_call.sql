CREATE TABLE t (k VARCHAR, v BIGINT) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) FROM t GROUP BY TUMBLE(PROCTIME(), INTERVAL '5' SECOND), k;
-- way out:
CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x.ndjson');
SELECT k, COUNT(*) FROM t GROUP BY TUMBLE(p, INTERVAL '5' SECOND), k;
