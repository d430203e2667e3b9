CREATE TABLE t (a VARCHAR(99999999999)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR) WITH (connector='file', path='x.ndjson');
