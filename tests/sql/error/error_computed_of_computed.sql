CREATE TABLE t (a INT, b AS a + 1, c AS b + 1) WITH (connector='file', path='x.ndjson');
