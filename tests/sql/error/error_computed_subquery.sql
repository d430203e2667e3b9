CREATE TABLE t (a INT, b AS a + (SELECT 1)) WITH (connector='file', path='x.ndjson');
