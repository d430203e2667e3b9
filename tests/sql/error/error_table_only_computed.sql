CREATE TABLE t (a AS 1) WITH (connector='file', path='x.ndjson');
