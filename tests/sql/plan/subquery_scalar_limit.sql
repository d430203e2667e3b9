CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT (SELECT usr FROM orders LIMIT 1) AS any_usr, COUNT(*) FROM orders;
