CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, amount FROM orders ORDER BY amount DESC, usr NULLS FIRST;
