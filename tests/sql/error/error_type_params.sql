CREATE TABLE t (a BIGINT(5)) WITH (connector='file', path='x.ndjson');
