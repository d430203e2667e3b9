CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT COUNT(*), SUM(amount) FROM orders WHERE note IS NULL;
