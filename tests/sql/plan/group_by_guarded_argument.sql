CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, SUM(100 / amount) FILTER (WHERE amount <> 0) FROM orders GROUP BY usr;
