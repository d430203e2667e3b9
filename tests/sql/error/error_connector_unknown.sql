CREATE TABLE t (a INT) WITH (connector='fil', path='x');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
