CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, amout
FROM orders;
