CREATE TABLE t (id INT, m MAP<VARCHAR, INT>) WITH (connector='file', path='t.ndjson');
SELECT t.id, k, v FROM t LEFT JOIN UNNEST(t.m) AS u (k, v) ON TRUE;
