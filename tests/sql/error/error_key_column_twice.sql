CREATE TABLE t (a INT, PRIMARY KEY (a, a) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
