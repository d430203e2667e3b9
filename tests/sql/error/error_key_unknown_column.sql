CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
