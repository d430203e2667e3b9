CREATE TABLE t (id INT, tags ARRAY<VARCHAR>, m MAP<VARCHAR, INT>, r ARRAY<ROW<a INT, b VARCHAR>>) WITH (connector='file', path='t.ndjson');
SELECT id, tag, n FROM t CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u (tag, n) WHERE id > 3 AND tag <> 'x';
