CREATE TABLE t (a BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.a = t.a LIMIT 1);
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR) WITH (connector='file', path='x.ndjson');
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.a = t.a);
