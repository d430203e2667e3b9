CREATE TABLE t (a ROW<x INT, x INT>) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a ROW<x INT, y INT>) WITH (connector='file', path='x.ndjson');
