CREATE TABLE t (a INT REFERENCES u (b)) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
