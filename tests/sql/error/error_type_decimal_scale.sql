CREATE TABLE t (a DECIMAL(5, 6)) WITH (connector='file', path='x.ndjson');
