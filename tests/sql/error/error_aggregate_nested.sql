CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT SUM(COUNT(*)) FROM orders GROUP BY usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY usr);
