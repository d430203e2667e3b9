CREATE TABLE t (a TIMESTAMP) WITH (connector='file', path='x', allowed_lateness_ms='5');
