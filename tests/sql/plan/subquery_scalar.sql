CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, amount - (SELECT AVG(amount) FROM orders) AS above FROM orders WHERE amount > (SELECT MIN(amount) FROM orders) + 1;
