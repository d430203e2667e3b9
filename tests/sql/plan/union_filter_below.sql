CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT * FROM (SELECT usr, amount FROM orders UNION ALL SELECT note, amount FROM orders) AS u (who, n) WHERE n > 3;
