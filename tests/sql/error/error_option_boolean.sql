CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson', header='maybe');
