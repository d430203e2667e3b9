CREATE TABLE t (a INT UNIQUE, b INT) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
