CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson', follow='true');
SELECT /*+ STATE_TTL('x'='1d') */ o.usr, COUNT(*) AS n FROM orders o GROUP BY o.usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson', follow='true');
SELECT /*+ STATE_TTL('o'='1d') */ o.usr, COUNT(*) AS n FROM orders o GROUP BY o.usr;
