CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT * FROM (SELECT amount, COUNT(*) AS n FROM orders GROUP BY amount) WHERE 10 / amount > 1;
