CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT * FROM (SELECT usr, amount FROM orders LIMIT 10) WHERE amount > 3;
