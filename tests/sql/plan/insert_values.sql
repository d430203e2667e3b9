CREATE TABLE t (d DATE, x DECIMAL(10,2), s VARCHAR, b BOOLEAN) WITH (connector='file', path='t.ndjson');
INSERT INTO t VALUES ('2020-01-31', 1, 'a', 'true'), (DATE '2020-02-01', 2.5, NULL, FALSE);
