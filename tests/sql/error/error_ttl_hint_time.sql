CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson', follow='true');
SELECT /*+ STATE_TTL('o'='1 fortnight') */ o.usr, COUNT(*) AS n FROM orders o GROUP BY o.usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson', follow='true');
SELECT /*+ STATE_TTL('o'='14 days') */ o.usr, COUNT(*) AS n FROM orders o GROUP BY o.usr;
