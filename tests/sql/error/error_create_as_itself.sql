CREATE TABLE t WITH (connector='file', path='t') AS SELECT * FROM t;
