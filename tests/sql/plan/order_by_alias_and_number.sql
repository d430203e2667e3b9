CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr AS u, SUM(amount) AS s FROM orders GROUP BY usr ORDER BY s DESC, 1;
