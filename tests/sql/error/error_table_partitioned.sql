CREATE TABLE t (a INT) PARTITIONED BY (a) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
