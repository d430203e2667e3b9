CREATE TABLE t (a MULTISET<INT>) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a MAP<INT, BIGINT>) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a ARRAY<INT>) WITH (connector='file', path='x.ndjson');
