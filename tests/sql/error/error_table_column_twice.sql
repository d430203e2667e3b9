CREATE TABLE t (a INT, A INT) WITH (connector='file', path='x.ndjson');
