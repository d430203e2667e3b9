CREATE TABLE t (a VARCHAR(3, 4)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR(3)) WITH (connector='file', path='x.ndjson');
