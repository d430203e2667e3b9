CREATE TABLE t (id INT, r ARRAY<ROW<a INT, b VARCHAR>>) WITH (connector='file', path='t.ndjson');
SELECT id, x.a, x.b FROM t, UNNEST(r) AS x;
