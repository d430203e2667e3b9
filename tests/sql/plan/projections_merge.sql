CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT COALESCE(b, '!') FROM (SELECT COALESCE(a, '!') AS b FROM (SELECT usr AS a, amount FROM orders));
