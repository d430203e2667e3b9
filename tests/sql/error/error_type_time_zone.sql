CREATE TABLE t (a TIME WITH TIME ZONE) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a TIMESTAMP_LTZ) WITH (connector='file', path='x.ndjson');
