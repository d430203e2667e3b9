CREATE TABLE t (a INT) WITH (connector='file', pth='x');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
