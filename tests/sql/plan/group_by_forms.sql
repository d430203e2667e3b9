CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT COALESCE(usr, '!') AS who, amount % 10, COUNT(*), SUM(amount) + 1 AS more, AVG(amount), MIN(note), COUNT(DISTINCT note), SUM(amount) FILTER (WHERE amount > 5) FROM orders GROUP BY who, 2 HAVING COUNT(*) > 1 AND COALESCE(usr, '!') <> 'X';
