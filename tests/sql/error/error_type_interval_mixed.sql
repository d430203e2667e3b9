CREATE TABLE t (a INTERVAL YEAR TO DAY) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INTERVAL YEAR TO MONTH) WITH (connector='file', path='x.ndjson');
