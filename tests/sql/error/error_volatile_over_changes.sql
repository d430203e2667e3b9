-- options: changes
CREATE TABLE t (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT a, COUNT(*) AS n, RANDOM() AS x FROM t GROUP BY a;
-- way out:
CREATE TABLE t (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT a, COUNT(*) AS n, MAX(x) AS x FROM (SELECT a, RANDOM() AS x FROM t) AS q GROUP BY a;
