CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, SUM(amount) AS s FROM orders GROUP BY usr HAVING SUM(amount) > (SELECT AVG(amount) FROM orders) ORDER BY s;
