CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, amount FROM orders UNION ALL SELECT note, 1 FROM orders UNION ALL SELECT 'x', 2;
