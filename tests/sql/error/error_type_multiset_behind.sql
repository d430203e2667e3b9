CREATE TABLE t (a INT MULTISET, b INT) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a ARRAY<INT>, b INT) WITH (connector='file', path='x.ndjson');
