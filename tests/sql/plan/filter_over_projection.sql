CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT a FROM (SELECT COALESCE(usr, '!') AS a, amount + 1 AS b FROM orders) WHERE b > 3 AND a <> 'X';
