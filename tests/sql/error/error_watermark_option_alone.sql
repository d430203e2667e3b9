CREATE TABLE t (a TIMESTAMP) WITH (connector='file', path='x.ndjson', allowed_lateness_ms='5');
