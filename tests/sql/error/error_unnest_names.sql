CREATE TABLE t (tags ARRAY<VARCHAR>) WITH (connector='file', path='t.ndjson'); SELECT * FROM t, UNNEST(tags) AS u (a, b);
