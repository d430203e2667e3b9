CREATE TABLE t (PRIMARY KEY (b) NOT ENFORCED) WITH (connector='file', path='t.ndjson') AS SELECT 1 AS a;
