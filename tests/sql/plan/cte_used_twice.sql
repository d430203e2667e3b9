CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
WITH s AS (SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr) SELECT usr FROM s WHERE total > 5 UNION ALL SELECT usr FROM s WHERE total < 3;
