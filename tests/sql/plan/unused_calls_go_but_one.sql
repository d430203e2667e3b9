CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM (SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders);
