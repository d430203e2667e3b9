CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr FROM orders WHERE COUNT(*) > 1 GROUP BY usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr FROM orders GROUP BY usr HAVING COUNT(*) > 1;
