CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT n FROM (SELECT usr, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY usr);
