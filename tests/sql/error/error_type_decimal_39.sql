CREATE TABLE t (a DECIMAL(39, 2)) WITH (connector='file', path='x.ndjson');
