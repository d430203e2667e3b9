CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT a.usr, a.n, b.s FROM (SELECT usr, COUNT(*) AS n FROM orders GROUP BY usr) a JOIN (SELECT usr, SUM(amount) AS s FROM orders GROUP BY usr) b ON a.usr = b.usr;
