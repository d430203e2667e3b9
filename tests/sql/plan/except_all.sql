CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr FROM orders EXCEPT ALL SELECT note FROM orders EXCEPT ALL SELECT 'x';
