CREATE TABLE t (a VARCHAR(0)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR(1)) WITH (connector='file', path='x.ndjson');
