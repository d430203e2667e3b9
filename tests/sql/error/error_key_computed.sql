CREATE TABLE t (a INT, b AS a, PRIMARY KEY (b) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
