CREATE TABLE t (a BIGNIT) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a BIGINT) WITH (connector='file', path='x.ndjson');
