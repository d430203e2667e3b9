CREATE TABLE t (a INT, b AS c + 1) WITH (connector='file', path='x.ndjson');
