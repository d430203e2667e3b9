CREATE TABLE t (tags ARRAY<VARCHAR>) WITH (connector='file', path='t'); SELECT * FROM t RIGHT JOIN UNNEST(tags) AS u ON TRUE;
