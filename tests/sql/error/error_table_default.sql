CREATE TABLE t (a INT, b INT DEFAULT 3) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT, b INT) WITH (connector='file', path='x.ndjson');
CREATE VIEW v AS SELECT a, COALESCE(b, 3) AS b FROM t;
