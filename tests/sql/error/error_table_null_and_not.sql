CREATE TABLE t (a INT NULL NOT NULL) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT NOT NULL) WITH (connector='file', path='x.ndjson');
