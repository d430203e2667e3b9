CREATE TABLE t (a TIMESTAMP(9)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a TIMESTAMP(6)) WITH (connector='file', path='x.ndjson');
