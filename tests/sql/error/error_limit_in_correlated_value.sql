CREATE TABLE t (a BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
SELECT (SELECT u.s FROM t AS u WHERE u.a = t.a LIMIT 1) AS s FROM t;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
SELECT (SELECT MAX(u.s) FROM t AS u WHERE u.a = t.a) AS s FROM t;
