CREATE TABLE t (a BIGINT, b BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
EXPLAIN SELECT b FROM t WHERE a = 1 OR a = 2 OR a = 3 OR a = 4 OR b = 5;
-- three are not worth it, and what may fail keeps its place
EXPLAIN SELECT b FROM t WHERE a = 1 OR a = 2 OR 10 / b = 1 OR a = 3 OR a = 4;
EXPLAIN SELECT CASE WHEN s = 'a' OR s = 'b' OR s = 'c' OR s = 'd' OR a IS NULL THEN 1 ELSE b END AS x FROM t;
