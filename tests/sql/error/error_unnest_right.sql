CREATE TABLE t (tags ARRAY<VARCHAR>) WITH (connector='file', path='t.ndjson'); SELECT * FROM t RIGHT JOIN UNNEST(tags) AS u ON TRUE;
