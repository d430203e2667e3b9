CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT COALESCE(usr, 'all') AS usr, SUM(amount) FROM orders GROUP BY ROLLUP (usr, note) HAVING SUM(amount) > 3 ORDER BY 1;
