CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT GROUPING(note) FROM orders GROUP BY ROLLUP (usr);
