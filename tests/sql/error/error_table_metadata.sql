CREATE TABLE t (a INT, o BIGINT METADATA) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
