CREATE TABLE t WITH (connector='file', path='t.ndjson') AS SELECT * FROM t;
