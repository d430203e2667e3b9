CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT SUM(amount) OVER (PARTITION BY usr ORDER BY note) FROM orders;
