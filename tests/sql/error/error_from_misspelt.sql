CREATE TABLE t (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT * FORM t;
-- way out:
CREATE TABLE t (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT * FROM t;
