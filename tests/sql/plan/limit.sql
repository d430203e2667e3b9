CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr FROM orders WHERE amount > 1 LIMIT 10 OFFSET 5;
