CREATE TABLE t WITH (connector='file', path='x.ndjson');
