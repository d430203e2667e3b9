CREATE TABLE t (a INT CHECK (a > 0)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
CREATE VIEW v AS SELECT a FROM t WHERE a > 0;
